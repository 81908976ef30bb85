/* SPDX-License-Identifier: MIT */
#include "gpu/model/hw_internal.h"
#include "util/macros.h"

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

static bool wants(const struct hw_queue *q, uint32_t xcc)
{
	const struct hw_packet *p = q->launching;

	return p && p->to_launch[xcc] && p->wg_room && p->wg_room <= q->gpu->free_room[xcc];
}

/*
 * The queues take turns, and a turn is all the room there is: what came free at one instant is
 * not divided up, so that what starts together is large and the events are few. What one does
 * not need goes to the next; over time equal queues get equal shares.
 */
static bool fill(struct hw_gpu *gpu, uint32_t xcc)
{
	size_t at = gpu->turn[xcc] < gpu->n_mapped ? gpu->turn[xcc] : 0;
	bool progress = false;

	for (size_t n = gpu->n_mapped; n && gpu->free_room[xcc]; n--) {
		struct hw_queue *q = gpu->mapped[at];

		at = at + 1 < gpu->n_mapped ? at + 1 : 0;
		if (wants(q, xcc)) {
			struct hw_packet *p = q->launching;
			uint64_t fit = gpu->free_room[xcc] / p->wg_room;

			if (!hw_launch(p, xcc, MIN(fit, p->to_launch[xcc])))
				break;
			gpu->turn[xcc] = at;
			progress = true;
		}
	}
	return progress;
}

static void restore_waiting(struct hw_gpu *gpu)
{
	for (uint32_t x = 0; x < gpu->chip.n_xcc; x++) {
		if (gpu->waited_for[x]) {
			hw_restore(gpu, gpu->time->now_ns);
			return;
		}
	}
}

void hw_dispatch(struct hw_gpu *gpu)
{
	bool progress;

	if (gpu->frozen)
		return;
	if (gpu->time->now_ns < gpu->live_at_ns) {
		hw_gpu_kick(gpu);
		return;
	}
	restore_waiting(gpu);
	do {
		progress = false;
		for (size_t i = 0; i < gpu->n_mapped; i++)
			progress |= advance(gpu->mapped[i]);
		for (uint32_t x = 0; x < gpu->chip.n_xcc; x++)
			progress |= !gpu->waited_for[x] && fill(gpu, x);
	} while (progress);
}
