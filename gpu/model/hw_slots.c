/* SPDX-License-Identifier: MIT */
/*
 * Which of the mapped queues sit on hardware, and taking turns when not all can.
 *
 * The rule is that of kernel/kfdsim: slots and VMIDs go to queues in the order of the run list, and
 * when some are left over the next turn begins with the first of them. An address space takes a
 * VMID where its queues begin, so one that has queues at both ends of a turn takes two. That the
 * firmware goes on in list order, that a queue in two successive turns stays where it is, and that
 * the quantum counts from when all of a turn is back, are assumptions.
 */
#include <string.h>

#include "gpu/model/hw_internal.h"
#include "util/macros.h"

/* Beside those of its address space, as both the driver's run list and MES have it. */
void hw_list_add(struct hw_queue *q)
{
	struct hw_gpu *gpu = q->gpu;
	struct hw_queue *last;

	TAILQ_FOREACH_REVERSE(last, &gpu->run_list, hw_queues, list_link) {
		if (last->config.vm == q->config.vm)
			break;
	}
	if (last)
		TAILQ_INSERT_AFTER(&gpu->run_list, last, q, list_link);
	else
		TAILQ_INSERT_TAIL(&gpu->run_list, q, list_link);
	gpu->n_listed++;
	q->seen.mapped = true;
}

static void drop_on(struct hw_queue *q)
{
	struct hw_gpu *gpu = q->gpu;
	size_t i = 0;

	while (gpu->on[i] != q)
		i++;
	gpu->n_on--;
	memmove(&gpu->on[i], &gpu->on[i + 1], (gpu->n_on - i) * sizeof(q));
	q->seen.on = false;
}

void hw_list_drop(struct hw_queue *q)
{
	struct hw_gpu *gpu = q->gpu;

	if (q->seen.on)
		drop_on(q);
	if (gpu->first == q)
		gpu->first = TAILQ_NEXT(q, list_link);
	TAILQ_REMOVE(&gpu->run_list, q, list_link);
	gpu->n_listed--;
	q->seen.mapped = false;
}

static struct hw_queue *head(const struct hw_gpu *gpu)
{
	return gpu->first ? gpu->first : TAILQ_FIRST(&gpu->run_list);
}

static struct hw_queue *after(const struct hw_gpu *gpu, struct hw_queue *q)
{
	struct hw_queue *next = TAILQ_NEXT(q, list_link);

	return next ? next : TAILQ_FIRST(&gpu->run_list);
}

/* Marks who gets a place this turn. Whose turn is next when not all do, else NULL. */
static struct hw_queue *choose(struct hw_gpu *gpu)
{
	uint32_t slots = gpu->chip.n_cp_queues, vmids = gpu->chip.n_vmid;
	const struct mem_space *vm = NULL;
	struct hw_queue *q;

	TAILQ_FOREACH(q, &gpu->run_list, list_link)
		q->in_turn = false;
	for (q = head(gpu); q && !q->in_turn; q = after(gpu, q)) {
		uint32_t vmid = q->config.vm != vm;
		uint32_t slot = q->config.ring != HW_RING_SDMA;

		if (vmid > vmids || slot > slots)
			return q;
		vmids -= vmid;
		slots -= slot;
		vm = q->config.vm;
		q->in_turn = true;
	}
	return NULL;
}

static void take_off(struct hw_gpu *gpu)
{
	uint64_t from_ns = MAX(gpu->time->now_ns, gpu->saved_at_ns);
	struct hw_saved saved;
	size_t n = 0;

	for (size_t i = 0; i < gpu->n_on; i++) {
		if (!gpu->on[i]->in_turn)
			gpu->on[n++] = gpu->on[i];
	}
	gpu->n_on = 0;
	saved = hw_save_running(gpu, gpu->on, n);
	for (size_t i = 0; i < n; i++) {
		hw_queue_unwatch(gpu->on[i]);
		hw_note_saved_state(gpu->on[i]);
		gpu->on[i]->seen.on = false;
	}
	if (!saved.bytes)
		return;
	gpu->saved_at_ns = from_ns + gpu->chip.costs.trap_ns + saved.ns;
	gpu->turns.saved.bytes += saved.bytes;
	gpu->turns.saved.ns += saved.ns;
}

uint32_t hw_pipe_of(uint32_t priority)
{
	return priority < 7 ? HW_PIPE_LOW : priority < 11 ? HW_PIPE_MEDIUM : HW_PIPE_HIGH;
}

static void put_on(struct hw_queue *q)
{
	struct hw_gpu *gpu = q->gpu;

	gpu->on[gpu->n_on++] = q;
	if (q->seen.on)
		return;
	q->seen.on = true;
	q->pipe = hw_pipe_of(q->config.priority);
	gpu->pipes |= 1u << q->pipe;
	hw_queue_see_write(q);
}

void hw_slots_fill(struct hw_gpu *gpu)
{
	const struct model_costs *costs = &gpu->chip.costs;
	bool crowded = choose(gpu);
	struct hw_queue *q = head(gpu);
	uint64_t restored_ns;

	take_off(gpu);
	for (size_t n = gpu->n_listed; n; n--, q = after(gpu, q)) {
		if (q->in_turn)
			put_on(q);
	}
	memset(gpu->new_waits, 0, sizeof(gpu->new_waits));
	restored_ns = MAX(gpu->time->now_ns, gpu->saved_at_ns) + costs->map_ns;
	restored_ns = hw_restore(gpu, restored_ns);
	gpu->live_at_ns = MAX(gpu->live_at_ns, restored_ns);
	timeline_set(gpu->time, &gpu->turn_over,
		     crowded ? hw_add_sat(gpu->live_at_ns, costs->quantum_ns) : TIMELINE_NEVER);
	hw_gpu_kick(gpu);
}

/* An unmap that has begun puts an end to turns. */
void hw_turn_over(struct event *e)
{
	struct hw_gpu *gpu = container_of(e, struct hw_gpu, turn_over);
	struct hw_queue *next = gpu->frozen ? NULL : choose(gpu);

	timeline_set(gpu->time, e, TIMELINE_NEVER);
	if (!next)
		return;
	gpu->first = next;
	gpu->turns.rotations++;
	hw_slots_fill(gpu);
}
