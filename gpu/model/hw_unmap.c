/* SPDX-License-Identifier: MIT */
/*
 * Queues off the hardware: first a grace period, then the save, both taking time, on any number of
 * GPUs side by side; and back on it.
 */
#include <errno.h>
#include <string.h>

#include "gpu/model/hw_internal.h"
#include "util/array.h"
#include "util/macros.h"

/* ---- saving ---- */

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
	TAILQ_FOREACH(c, &q->saved, link) {
		for (uint32_t x = 0; x < q->gpu->chip.n_xcc; x++) {
			uint32_t waves = c->packet->wg_waves * c->count[x];

			q->seen.left[x].wave_bytes += hw_cohort_bytes(c, x);
			q->seen.left[x].ctl_stack_used += waves * HW_WAVE_CTL_BYTES;
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

/* ---- unmap ---- */

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
	clear_mapped(gpu);
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

int hw_unmap(struct hw_gpu *gpu, struct hw_queue *only, struct hw_unmap *op)
{
	struct hw_unmap_part part = {
		.gpu = gpu,
		.op = *op,
		.some = only ? &only : NULL,
		.n_some = 1,
	};

	if (only && !only->seen.mapped)
		return -EINVAL;
	hw_unmap_parts(&part, 1);
	*op = part.op;
	return part.result;
}

/* ---- map and reset ---- */

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

	TAILQ_FOREACH(q, &gpu->queues, link) {
		hw_queue_lose(q);
		memset(q->seen.left, 0, sizeof(q->seen.left));
	}
	clear_mapped(gpu);
}
