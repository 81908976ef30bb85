/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "gpu/model/hw_internal.h"
#include "util/macros.h"

/* Room is counted finer than in units, so that thirds of a compute unit add up to a whole one. */
#define CU_ROOM ((uint64_t)HW_CU_UNITS << 8)
#define OUT_OF_MEMORY_RETRY_NS NSEC_PER_MSEC

/* ---- dispatch ---- */

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

static bool launch_roomless(struct hw_packet *p)
{
	for (uint32_t x = 0; x < p->q->gpu->chip.n_xcc; x++) {
		if (p->to_launch[x])
			return hw_launch(p, x, p->to_launch[x]);
	}
	return false;
}

/* Everything a queue can do without waiting for room. */
static bool advance(struct hw_queue *q)
{
	bool progress = false;

	if (q->launching && !q->launching->unlaunched) {
		hw_ring_consume(q);
		progress = true;
	}
	if (!q->launching && hw_ring_fetch(q))
		progress = true;
	if (q->launching && !q->launching->wg_room && launch_roomless(q->launching))
		progress = true;
	return progress;
}

static bool waits_for_room(const struct hw_queue *q, uint32_t xcc)
{
	const struct hw_packet *p = q->launching;

	return p && p->to_launch[xcc] && p->wg_room;
}

static bool wants(const struct hw_queue *q, uint32_t xcc)
{
	return waits_for_room(q, xcc) && q->launching->wg_room <= q->gpu->free_room[xcc];
}

/*
 * The queues take turns, and a turn is all the room there is: what came free at one instant is
 * not divided up, so that what starts together is large and the events are few. What one does
 * not need goes to the next; over time equal queues get equal shares.
 */
static bool fill_pipe(struct hw_gpu *gpu, uint32_t xcc, uint32_t pipe)
{
	size_t *turn = &gpu->turn[xcc][pipe];
	size_t at = *turn < gpu->n_on ? *turn : 0;
	bool progress = false;

	for (size_t n = gpu->n_on; n && gpu->free_room[xcc]; n--) {
		struct hw_queue *q = gpu->on[at];

		at = at + 1 < gpu->n_on ? at + 1 : 0;
		if (q->pipe == pipe && wants(q, xcc)) {
			struct hw_packet *p = q->launching;
			uint64_t fit = gpu->free_room[xcc] / p->wg_room;

			if (!hw_launch(p, xcc, MIN(fit, p->to_launch[xcc])))
				break;
			*turn = at;
			progress = true;
		}
	}
	return progress;
}

static bool pipe_waits(const struct hw_gpu *gpu, uint32_t xcc, uint32_t pipe)
{
	for (size_t i = 0; i < gpu->n_on; i++) {
		if (gpu->on[i]->pipe == pipe && waits_for_room(gpu->on[i], xcc))
			return true;
	}
	return false;
}

/*
 * Room too small for what waits on an urgent pipe is kept for it, whatever would fit on the
 * others: assumed, as no source says how the hardware arbitrates then.
 */
static bool fill(struct hw_gpu *gpu, uint32_t xcc)
{
	bool progress = false;

	gpu->new_waits[xcc] = 0;
	for (uint32_t pipe = HW_N_PIPES; pipe-- > gpu->saved_waits[xcc] && gpu->free_room[xcc];) {
		if (!(gpu->pipes & 1u << pipe))
			continue;
		progress |= fill_pipe(gpu, xcc, pipe);
		if (gpu->free_room[xcc] && pipe_waits(gpu, xcc, pipe)) {
			gpu->new_waits[xcc] = pipe + 1;
			break;
		}
	}
	return progress;
}

static void launch_new(struct hw_gpu *gpu)
{
	bool progress;

	do {
		progress = false;
		for (size_t i = 0; i < gpu->n_on; i++)
			progress |= advance(gpu->on[i]);
		for (uint32_t x = 0; x < gpu->chip.n_xcc; x++)
			progress |= fill(gpu, x);
	} while (progress);
}

static bool saved_wait(const struct hw_gpu *gpu)
{
	for (uint32_t x = 0; x < gpu->chip.n_xcc; x++) {
		if (gpu->saved_waits[x])
			return true;
	}
	return false;
}

static void dispatch(struct event *e)
{
	struct hw_gpu *gpu = container_of(e, struct hw_gpu, kick);

	timeline_set(gpu->time, e, TIMELINE_NEVER);
	if (gpu->frozen)
		return;
	if (gpu->time->now_ns < gpu->live_at_ns) {
		hw_gpu_kick(gpu);
		return;
	}
	launch_new(gpu);
	if (saved_wait(gpu)) {
		hw_restore(gpu, gpu->time->now_ns);
		launch_new(gpu);
	}
}

/* ---- its life ---- */

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
	gpu->kick.run = dispatch;
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

const struct hw_turns *hw_gpu_turns(const struct hw_gpu *gpu)
{
	return &gpu->turns;
}
