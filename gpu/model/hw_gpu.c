/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "gpu/model/hw_internal.h"
#include "util/macros.h"

/* Room is counted finer than in units, so that thirds of a compute unit add up to a whole one. */
#define CU_ROOM ((uint64_t)HW_CU_UNITS << 8)
#define OUT_OF_MEMORY_RETRY_NS NSEC_PER_MSEC

static void run_dispatch(struct event *e)
{
	struct hw_gpu *gpu = container_of(e, struct hw_gpu, kick);

	timeline_set(gpu->time, e, TIMELINE_NEVER);
	hw_dispatch(gpu);
}

static bool makes_sense(const struct model_chip *chip)
{
	return chip->n_xcc && chip->n_xcc <= MODEL_MAX_XCC && chip->cu_per_xcc && chip->clock_mhz &&
	       chip->n_cp_queues && chip->n_vmid && chip->costs.quantum_ns &&
	       chip->hbm_bytes_per_s && (!chip->save_in_host || chip->link_bytes_per_s);
}

struct hw_gpu *hw_gpu_new(const struct model_chip *chip, struct timeline *time)
{
	_cleanup_free_ struct hw_gpu *gpu = NULL;

	if (!makes_sense(chip))
		return NULL;
	gpu = calloc(1, sizeof(*gpu));
	if (!gpu)
		return NULL;
	gpu->chip = *chip;
	gpu->time = time;
	TAILQ_INIT(&gpu->queues);
	TAILQ_INIT(&gpu->run_list);
	for (uint32_t x = 0; x < chip->n_xcc; x++)
		gpu->free_room[x] = chip->cu_per_xcc * CU_ROOM;
	gpu->kick.run = run_dispatch;
	gpu->turn_over.run = hw_turn_over;
	if (timeline_set(time, &gpu->kick, TIMELINE_NEVER) < 0)
		return NULL;
	if (timeline_set(time, &gpu->turn_over, TIMELINE_NEVER) < 0) {
		timeline_cancel(time, &gpu->kick);
		return NULL;
	}
	return steal_ptr(&gpu);
}

void hw_gpu_free(struct hw_gpu *gpu)
{
	if (!gpu)
		return;
	timeline_cancel(gpu->time, &gpu->kick);
	timeline_cancel(gpu->time, &gpu->turn_over);
	free(gpu->on);
	free(gpu);
}

static void kick_at(struct hw_gpu *gpu, uint64_t at_ns)
{
	if (!gpu->frozen && gpu->n_on && at_ns < gpu->kick.at_ns)
		timeline_set(gpu->time, &gpu->kick, at_ns);
}

void hw_gpu_kick(struct hw_gpu *gpu)
{
	kick_at(gpu, MAX(gpu->time->now_ns, gpu->live_at_ns));
}

void hw_gpu_kick_later(struct hw_gpu *gpu)
{
	kick_at(gpu, gpu->time->now_ns + OUT_OF_MEMORY_RETRY_NS);
}

uint64_t hw_gpu_wg_room(uint32_t wg_units)
{
	return CU_ROOM / MIN(HW_CU_UNITS / wg_units, HW_CU_WAVES);
}

uint64_t hw_gpu_move_ns(const struct hw_gpu *gpu, uint64_t bytes)
{
	const struct model_chip *chip = &gpu->chip;
	uint64_t rate = chip->save_in_host ? chip->link_bytes_per_s : chip->hbm_bytes_per_s;

	return (bytes * chip->n_xcc * NSEC_PER_SEC + rate - 1) / rate;
}

void hw_gpu_turns(const struct hw_gpu *gpu, struct hw_turns *ret)
{
	*ret = gpu->turns;
}
