/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "gpu/model/hw_internal.h"
#include "util/array.h"
#include "util/macros.h"

/* Stops what runs of one queue. What was still on its way back has not left the save area. */
static void save_queue(struct hw_queue *q, uint64_t bytes[MODEL_MAX_XCC])
{
	struct hw_gpu *gpu = q->gpu;
	struct hw_cohort *c;

	while ((c = TAILQ_FIRST(&q->running))) {
		if (c->since_ns <= gpu->time->now_ns) {
			for (uint32_t x = 0; x < gpu->chip.n_xcc; x++)
				bytes[x] += hw_cohort_bytes(c, x);
			if (c->packet->save_seq != gpu->save_seq)
				hw_log(c->packet)->saves++;
			c->packet->save_seq = gpu->save_seq;
		}
		hw_cohort_save(c);
	}
}

struct hw_saved hw_save_running(struct hw_gpu *gpu, struct hw_queue *const *qs, size_t n)
{
	uint64_t bytes[MODEL_MAX_XCC] = { 0 };
	struct hw_saved saved = { 0 };

	gpu->save_seq++;
	for (size_t i = 0; i < n; i++)
		save_queue(qs[i], bytes);
	for (uint32_t x = 0; x < gpu->chip.n_xcc; x++) {
		saved.bytes += bytes[x];
		saved.ns = MAX(saved.ns, hw_gpu_move_ns(gpu, bytes[x]));
	}
	return saved;
}

void hw_note_saved_state(struct hw_queue *q)
{
	const struct hw_cohort *c;

	memset(q->seen.left, 0, sizeof(q->seen.left));
	TAILQ_FOREACH(c, &q->saved, link)
	{
		for (uint32_t x = 0; x < q->gpu->chip.n_xcc; x++) {
			uint32_t waves = c->packet->wg_waves * c->count[x];

			q->seen.left[x].wave_bytes += hw_cohort_bytes(c, x);
			q->seen.left[x].ctl_stack_used += waves * HW_WAVE_CTL_BYTES;
		}
	}
}

void hw_clear_mapped(struct hw_gpu *gpu)
{
	struct hw_queue *q;

	while ((q = TAILQ_FIRST(&gpu->run_list))) {
		hw_queue_unwatch(q);
		hw_note_saved_state(q);
		hw_list_drop(q);
	}
	gpu->frozen = false;
	gpu->pipes = 0;
	gpu->live_at_ns = 0;
	gpu->saved_at_ns = 0;
	timeline_set(gpu->time, &gpu->kick, TIMELINE_NEVER);
	timeline_set(gpu->time, &gpu->turn_over, TIMELINE_NEVER);
}

/* Where one cannot be added, none is. */
static int add(struct hw_gpu *gpu, struct hw_queue *const *qs, size_t n)
{
	int r = array_reserve(&gpu->on, gpu->n_listed + n, &gpu->cap_on, sizeof(*gpu->on));

	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		if (qs[i]->gpu != gpu || qs[i]->seen.mapped) {
			while (i--)
				hw_list_drop(qs[i]);
			return -EINVAL;
		}
		hw_list_add(qs[i]);
	}
	hw_slots_fill(gpu);
	return 0;
}

int hw_map(struct hw_gpu *gpu, struct hw_queue *const *qs, size_t n)
{
	return gpu->n_listed || gpu->frozen ? -EBUSY : add(gpu, qs, n);
}

int hw_add(struct hw_queue *q)
{
	return q->seen.mapped || q->gpu->frozen ? -EBUSY : add(q->gpu, &q, 1);
}

void hw_reset(struct hw_gpu *gpu)
{
	struct hw_queue *q;

	TAILQ_FOREACH(q, &gpu->queues, link)
	{
		hw_queue_lose(q);
		memset(q->seen.left, 0, sizeof(q->seen.left));
	}
	hw_clear_mapped(gpu);
}
