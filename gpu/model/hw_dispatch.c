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

void hw_dispatch(struct hw_gpu *gpu)
{
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
