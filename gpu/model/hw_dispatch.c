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

static bool wants(const struct hw_queue *q, uint32_t xcc, uint64_t room)
{
	const struct hw_packet *p = q->launching;

	return p && p->wg_room && p->wg_room <= room && p->to_launch[xcc];
}

/*
 * One round: each queue that has a workgroup for this XCC gets an equal part of the room, the
 * first being the one after the last that got some. Rounds go on until nothing more fits, so
 * what one does not use goes to the others.
 */
static bool share(struct hw_gpu *gpu, uint32_t xcc)
{
	uint64_t room = gpu->free_room[xcc];
	size_t first = gpu->turn[xcc];
	size_t contenders = 0;
	bool progress = false;

	if (!room)
		return false;
	for (size_t i = 0; i < gpu->n_mapped; i++)
		contenders += wants(gpu->mapped[i], xcc, room);
	for (size_t i = 0; i < gpu->n_mapped && contenders; i++) {
		size_t at = (first + i) % gpu->n_mapped;
		struct hw_queue *q = gpu->mapped[at];
		uint64_t fit;

		if (!wants(q, xcc, room))
			continue;
		fit = gpu->free_room[xcc] / q->launching->wg_room;
		if (fit) {
			uint64_t part = MAX(fit / contenders, 1u);

			if (!hw_launch(q->launching, xcc, MIN(part, q->launching->to_launch[xcc])))
				return progress;
			gpu->turn[xcc] = at + 1;
			progress = true;
		}
		contenders--;
	}
	return progress;
}

void hw_dispatch(struct hw_gpu *gpu)
{
	uint64_t now = gpu->time->now_ns;
	bool progress;

	if (gpu->frozen || now < gpu->live_at_ns)
		return;
	for (uint32_t x = 0; x < gpu->chip.n_xcc; x++) {
		if (gpu->n_waiting[x]) {
			hw_restore(gpu, now);
			break;
		}
	}
	do {
		progress = false;
		for (size_t i = 0; i < gpu->n_mapped; i++)
			progress |= advance(gpu->mapped[i]);
		for (uint32_t x = 0; x < gpu->chip.n_xcc; x++)
			progress |= !gpu->n_waiting[x] && share(gpu, x);
	} while (progress);
}
