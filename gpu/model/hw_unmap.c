/* SPDX-License-Identifier: MIT */
/*
 * Queues off the hardware: first a grace period, then the save, both taking time, on any number of
 * GPUs side by side.
 */
#include <errno.h>

#include "gpu/model/hw_internal.h"
#include "util/macros.h"

static uint64_t grace_end_ns(const struct hw_unmap_part *part)
{
	uint32_t kclk = part->op.grace_kclk;
	uint64_t ns = kclk * NSEC_PER_MSEC / part->gpu->chip.clock_mhz;

	return kclk ? MIN(part->began_ns + ns, part->deadline_ns) : part->deadline_ns;
}

/* When what is to be saved is off. */
static uint64_t save_end_ns(const struct hw_unmap_part *part)
{
	const struct hw_gpu *gpu = part->gpu;
	const struct model_costs *costs = &gpu->chip.costs;
	uint64_t begin = MAX(gpu->time->now_ns, gpu->saved_at_ns);
	uint64_t end = begin + part->saved.ns + costs->unmap_ns;

	if (part->saved.bytes)
		end += costs->trap_ns;
	return hw_add_sat(end, part->op.extra_ns);
}

static void fail_at_deadline(struct hw_unmap_part *part)
{
	part->result = -ETIME;
	part->until_ns = part->deadline_ns;
	part->stage = HW_UNMAP_SAVE;
}

static void begin_save(struct hw_unmap_part *part, struct hw_queue *const *qs, size_t n)
{
	part->saved = hw_save_running(part->gpu, qs, n);
	part->until_ns = save_end_ns(part);
	part->stage = HW_UNMAP_SAVE;
	if (part->until_ns > part->deadline_ns)
		fail_at_deadline(part);
}

/* ---- all queues ---- */

static void begin_all(struct hw_unmap_part *part)
{
	part->op.unmapped = (uint32_t)part->gpu->n_listed;
	part->gpu->frozen = true;
	if (part->op.dead) {
		fail_at_deadline(part);
		return;
	}
	part->stage = HW_UNMAP_GRACE;
	part->until_ns = grace_end_ns(part);
}

static void end_grace(struct hw_unmap_part *part)
{
	struct hw_queue *stuck = part->op.stuck;

	if (stuck && stuck->gpu == part->gpu && stuck->seen.on) {
		hw_queue_lose(stuck);
		part->result = -EREMOTEIO;
	}
	begin_save(part, part->gpu->on, part->gpu->n_on);
}

static void end_all(struct hw_unmap_part *part)
{
	struct hw_gpu *gpu = part->gpu;

	for (size_t i = 0; part->result == -ETIME && i < gpu->n_on; i++)
		hw_queue_lose(gpu->on[i]);
	hw_clear_mapped(gpu);
}

/* ---- some of them ---- */

static size_t n_now(const struct hw_unmap_part *part)
{
	return part->one_by_one ? MIN(part->n_some - part->at, (size_t)1) : part->n_some;
}

static void begin_some(struct hw_unmap_part *part)
{
	struct hw_queue *const *qs = part->some + part->at;
	size_t n = n_now(part);

	part->deadline_ns = hw_add_sat(part->gpu->time->now_ns, part->op.timeout_ns);
	part->op.unmapped += (uint32_t)n;
	for (size_t i = 0; i < n; i++) {
		hw_list_drop(qs[i]);
		hw_queue_unwatch(qs[i]);
	}
	if (part->op.dead) {
		fail_at_deadline(part);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		if (part->op.stuck != qs[i])
			continue;
		hw_queue_lose(qs[i]);
		part->result = -EREMOTEIO;
	}
	begin_save(part, qs, n);
	/* Nothing of it is left to wait for. */
	if (part->result == -EREMOTEIO && n == 1)
		part->until_ns = part->gpu->time->now_ns;
}

/* Whether there are more to come. */
static bool end_some(struct hw_unmap_part *part)
{
	struct hw_gpu *gpu = part->gpu;
	struct hw_queue *const *qs = part->some + part->at;
	size_t n = n_now(part);

	for (size_t i = 0; i < n; i++) {
		if (part->result == -ETIME)
			hw_queue_lose(qs[i]);
		hw_note_saved_state(qs[i]);
	}
	if (gpu->n_on < gpu->n_listed)
		hw_slots_fill(gpu);
	hw_gpu_kick(gpu);
	part->at += n;
	return part->result == 0 && part->at < part->n_some;
}

/* ---- side by side ---- */

static void begin(struct hw_unmap_part *part)
{
	part->began_ns = part->gpu->time->now_ns;
	part->deadline_ns = hw_add_sat(part->began_ns, part->op.timeout_ns);
	part->op.saved_bytes = 0;
	part->op.save_ns = 0;
	part->op.unmapped = 0;
	part->result = 0;
	part->at = 0;
	if (part->some)
		begin_some(part);
	else
		begin_all(part);
}

static void end_save(struct hw_unmap_part *part)
{
	timeline_run(part->gpu->time, part->until_ns);
	if (part->result != -ETIME) {
		part->op.saved_bytes += part->saved.bytes;
		part->op.save_ns += part->saved.ns;
	}
	if (part->some && end_some(part)) {
		begin_some(part);
		return;
	}
	if (!part->some)
		end_all(part);
	part->op.took_ns = part->gpu->time->now_ns - part->began_ns;
	part->stage = HW_UNMAP_OVER;
	if (part->over)
		part->over(part);
}

/* Goes on as far as it can now. Until when it has to wait; TIMELINE_NEVER: it is over. */
static uint64_t go_on(struct hw_unmap_part *part)
{
	const struct hw_gpu *gpu = part->gpu;

	if (part->stage == HW_UNMAP_GRACE && (!gpu->waves || gpu->time->now_ns >= part->until_ns))
		end_grace(part);
	while (part->stage == HW_UNMAP_SAVE && gpu->time->now_ns >= part->until_ns)
		end_save(part);
	return part->stage == HW_UNMAP_OVER ? TIMELINE_NEVER : part->until_ns;
}

void hw_unmap_parts(struct hw_unmap_part *parts, size_t n)
{
	uint64_t next_ns = 0;

	for (size_t i = 0; i < n; i++)
		begin(&parts[i]);
	while (n && next_ns != TIMELINE_NEVER) {
		next_ns = TIMELINE_NEVER;
		for (size_t i = 0; i < n; i++)
			next_ns = MIN(next_ns, go_on(&parts[i]));
		if (next_ns != TIMELINE_NEVER)
			timeline_step(parts[0].gpu->time, next_ns);
	}
}

int hw_unmap_all(struct hw_gpu *gpu, struct hw_unmap *op)
{
	struct hw_unmap_part part = { .gpu = gpu, .op = *op };

	hw_unmap_parts(&part, 1);
	*op = part.op;
	return part.result;
}

int hw_remove(struct hw_queue *q, struct hw_unmap *op)
{
	struct hw_unmap_part part = { .gpu = q->gpu, .op = *op, .some = &q, .n_some = 1 };

	if (!q->seen.mapped)
		return -EINVAL;
	hw_unmap_parts(&part, 1);
	*op = part.op;
	return part.result;
}
