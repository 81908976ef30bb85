/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/model/hw_internal.h"
#include "util/macros.h"

static void wait_grace(struct hw_gpu *gpu, uint32_t grace_kclk, uint64_t deadline)
{
	uint64_t grace_ns = grace_kclk * NSEC_PER_MSEC / gpu->chip.clock_mhz;
	uint64_t limit = grace_kclk ? MIN(gpu->time->now_ns + grace_ns, deadline) : deadline;

	while (gpu->waves && timeline_step(gpu->time, limit))
		;
}

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
				hw_log_saved(c->packet);
			c->packet->save_seq = gpu->save_seq;
		}
		hw_cohort_save(c);
	}
}

void hw_save_running(struct hw_gpu *gpu, struct hw_queue *const *qs, size_t n,
		     struct hw_unmap *op)
{
	uint64_t bytes[MODEL_MAX_XCC] = { 0 };

	gpu->save_seq++;
	for (size_t i = 0; i < n; i++)
		save_queue(qs[i], bytes);
	for (uint32_t x = 0; x < gpu->chip.n_xcc; x++) {
		op->saved_bytes += bytes[x];
		op->save_ns = MAX(op->save_ns, hw_gpu_move_ns(gpu, bytes[x]));
	}
}

/* How long it takes from now on until they are off. */
static int pass_time(struct hw_gpu *gpu, const struct hw_unmap *op, uint64_t deadline)
{
	const struct model_costs *costs = &gpu->chip.costs;
	uint64_t begin = MAX(gpu->time->now_ns, gpu->saved_at_ns);
	uint64_t end = begin + op->save_ns + costs->unmap_ns;

	if (op->saved_bytes)
		end += costs->trap_ns;
	end = hw_add_sat(end, op->extra_ns);
	if (end > deadline)
		return -ETIME;
	timeline_run(gpu->time, end);
	return 0;
}

static int take_off(struct hw_gpu *gpu, struct hw_unmap *op, uint64_t deadline)
{
	int r = 0;

	wait_grace(gpu, op->grace_kclk, deadline);
	if (op->stuck && op->stuck->gpu == gpu && op->stuck->on) {
		hw_queue_lose(op->stuck);
		r = -EREMOTEIO;
	}
	hw_save_running(gpu, gpu->on, gpu->n_on, op);
	return pass_time(gpu, op, deadline) < 0 ? -ETIME : r;
}

void hw_note_saved_state(struct hw_queue *q)
{
	const struct hw_cohort *c;

	memset(q->left, 0, sizeof(q->left));
	TAILQ_FOREACH(c, &q->saved, link)
	{
		for (uint32_t x = 0; x < q->gpu->chip.n_xcc; x++) {
			uint32_t waves = c->packet->wg_waves * c->count[x];

			q->left[x].wave_bytes += hw_cohort_bytes(c, x);
			q->left[x].ctl_stack_used += waves * HW_WAVE_CTL_BYTES;
		}
	}
}

static void clear_mapped(struct hw_gpu *gpu)
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

int hw_unmap_all(struct hw_gpu *gpu, struct hw_unmap *op)
{
	uint64_t start = gpu->time->now_ns;
	uint64_t deadline = hw_add_sat(start, op->timeout_ns);
	int r;

	op->saved_bytes = 0;
	op->save_ns = 0;
	op->unmapped = gpu->n_listed;
	gpu->frozen = true;
	r = op->dead ? -ETIME : take_off(gpu, op, deadline);
	if (r == -ETIME) {
		timeline_run(gpu->time, deadline);
		for (size_t i = 0; i < gpu->n_on; i++)
			hw_queue_lose(gpu->on[i]);
		op->saved_bytes = 0;
		op->save_ns = 0;
	}
	clear_mapped(gpu);
	op->took_ns = gpu->time->now_ns - start;
	return r;
}

static int make_room(struct hw_gpu *gpu, size_t n)
{
	struct hw_queue **on;

	if (n <= gpu->cap_on)
		return 0;
	on = reallocarray(gpu->on, n, sizeof(*on));
	if (!on)
		return -ENOMEM;
	gpu->on = on;
	gpu->cap_on = n;
	return 0;
}

int hw_map(struct hw_gpu *gpu, struct hw_queue *const *qs, size_t n)
{
	int r;

	if (gpu->n_listed || gpu->frozen)
		return -EBUSY;
	r = make_room(gpu, n);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		if (qs[i]->gpu != gpu || qs[i]->mapped) {
			while (i--)
				hw_list_drop(qs[i]);
			return -EINVAL;
		}
		hw_list_add(qs[i]);
	}
	hw_slots_fill(gpu);
	return 0;
}

/* ---- one queue at a time ---- */

int hw_remove(struct hw_queue *q, struct hw_unmap *op)
{
	struct hw_gpu *gpu = q->gpu;
	uint64_t start = gpu->time->now_ns;
	uint64_t deadline = hw_add_sat(start, op->timeout_ns);
	int r = 0;

	if (!q->mapped)
		return -EINVAL;
	op->saved_bytes = 0;
	op->save_ns = 0;
	op->unmapped = 1;
	hw_list_drop(q);
	hw_queue_unwatch(q);
	if (op->dead) {
		r = -ETIME;
	} else if (op->stuck == q) {
		hw_queue_lose(q);
		r = -EREMOTEIO;
	} else {
		hw_save_running(gpu, &q, 1, op);
		r = pass_time(gpu, op, deadline);
	}
	if (r == -ETIME) {
		timeline_run(gpu->time, deadline);
		hw_queue_lose(q);
		op->saved_bytes = 0;
		op->save_ns = 0;
	}
	hw_note_saved_state(q);
	if (gpu->n_on < gpu->n_listed)
		hw_slots_fill(gpu);
	hw_gpu_kick(gpu);
	op->took_ns = gpu->time->now_ns - start;
	return r;
}

int hw_add(struct hw_queue *q)
{
	struct hw_gpu *gpu = q->gpu;
	int r;

	if (q->mapped || gpu->frozen)
		return -EBUSY;
	r = make_room(gpu, gpu->n_listed + 1);
	if (r < 0)
		return r;
	hw_list_add(q);
	hw_slots_fill(gpu);
	return 0;
}

void hw_reset(struct hw_gpu *gpu)
{
	struct hw_queue *q;

	TAILQ_FOREACH(q, &gpu->queues, link)
	{
		hw_queue_lose(q);
		memset(q->left, 0, sizeof(q->left));
	}
	clear_mapped(gpu);
}
