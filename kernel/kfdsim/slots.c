/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Which queues of the run list sit on hardware, and taking turns when not all can.
 *
 * The slots and VMIDs of SET_RESOURCES (24, and 13 or 8) go to queues in the order of the list.
 * When some are left over and the list is chained, the next turn begins with the first of them
 * after a quantum. That the firmware goes on in list order, and that a queue in two successive
 * turns stays where it is, are assumptions.
 */
#include <linux/bitops.h>

#include "kernel/kfdsim/sim.h"

void sim_slots_reset(struct sim_gpu *gpu)
{
	u32 slot;

	gpu->vmids = GENMASK(SIM_LAST_VMID, gpu->chip->first_vmid);
	gpu->slots = 0;
	for (slot = 0; slot < SIM_SLOTS; slot++) {
		if (slot % SIM_PIPE_QUEUES >= SIM_KERNEL_QUEUES)
			gpu->slots |= BIT(slot);
	}
}

struct sim_queue *sim_queue_add(struct sim_gpu *gpu)
{
	struct sim_queue *q;

	if (gpu->n_queues == SIM_MAX_QUEUES)
		return NULL;
	q = &gpu->queues[gpu->n_queues++];
	memset(q, 0, sizeof(*q));
	q->slot = SIM_NO_SLOT;
	return q;
}

void sim_queue_remove(struct sim_gpu *gpu, struct sim_queue *q)
{
	unsigned int at = q - gpu->queues;

	gpu->n_queues--;
	memmove(q, q + 1, (gpu->n_queues - at) * sizeof(*q));
	if (gpu->window > at)
		gpu->window--;
}

struct sim_queue *sim_slot_owner(struct sim_gpu *gpu, u32 slot)
{
	unsigned int i;

	for (i = 0; i < gpu->n_queues; i++) {
		struct sim_queue *q = &gpu->queues[i];

		if (q->resident && q->slot == slot)
			return q;
	}
	return NULL;
}

/* Queues that are alike are spread over the pipes. */
static u32 free_slot(struct sim_gpu *gpu)
{
	u32 pipe, queue;

	for (queue = 0; queue < SIM_PIPE_QUEUES; queue++) {
		for (pipe = 0; pipe < SIM_PIPES; pipe++) {
			u32 slot = pipe * SIM_PIPE_QUEUES + queue;

			if ((gpu->slots & BIT(slot)) && !sim_slot_owner(gpu, slot))
				return slot;
		}
	}
	return SIM_NO_SLOT;
}

static u32 vmid_for(struct sim_gpu *gpu, const struct sim_queue *q)
{
	u32 left = gpu->vmids;
	unsigned int i;

	if (q->debug_vmid)
		return q->debug_vmid;
	for (i = 0; i < gpu->n_queues; i++) {
		const struct sim_queue *other = &gpu->queues[i];

		if (!other->resident)
			continue;
		if (other->pasid == q->pasid)
			return other->vmid;
		left &= ~BIT(other->vmid);
	}
	return left ? __ffs(left) : 0;
}

/* Marks who gets a place this turn. False, and whose turn is next, when not all do. */
static bool choose(struct sim_gpu *gpu, unsigned int *ret_next)
{
	unsigned int slots = hweight32(gpu->slots), vmids = hweight32(gpu->vmids);
	unsigned int i, at = gpu->window < gpu->n_queues ? gpu->window : 0;
	u32 pasid = 0;

	for (i = 0; i < gpu->n_queues; i++)
		gpu->queues[i].in_turn = false;
	for (i = 0; i < gpu->n_queues; i++) {
		struct sim_queue *q = &gpu->queues[at];

		if (q->pasid != pasid && !q->debug_vmid) {
			if (!vmids)
				break;
			vmids--;
		}
		pasid = q->pasid;
		if (q->kind != SIM_SDMA) {
			if (!slots)
				break;
			slots--;
		}
		q->in_turn = true;
		at = at + 1 < gpu->n_queues ? at + 1 : 0;
	}
	*ret_next = at;
	return i == gpu->n_queues;
}

static void place(struct sim_gpu *gpu, struct sim_queue *q)
{
	q->vmid = vmid_for(gpu, q);
	if (q->kind != SIM_SDMA)
		q->slot = free_slot(gpu);
	q->resident = sim_queue_on_hardware(gpu, q);
	if (!q->resident)
		q->slot = SIM_NO_SLOT;
}

static void take_turns(struct sim_gpu *gpu, u64 now)
{
	u32 waves = gpu->waves;
	unsigned int i;

	for (i = 0; i < gpu->n_queues; i++) {
		struct sim_queue *q = &gpu->queues[i];

		if (q->resident && !q->in_turn && !q->hopeless)
			sim_queue_off_hardware(gpu, q, false);
	}
	if (gpu->waves < waves)
		gpu->stalled_until_ns = now + sim_save_ns(gpu, waves - gpu->waves);
	for (i = 0; i < gpu->n_queues; i++) {
		struct sim_queue *q = &gpu->queues[i];

		if (q->in_turn && !q->resident)
			place(gpu, q);
	}
	gpu->turn_ends_ns = now + gpu->knobs.quantum_us * NSEC_PER_USEC;
}

void sim_slots_fill(struct sim_gpu *gpu, u64 now)
{
	unsigned int next;

	sim_count_slots(gpu, now);
	choose(gpu, &next);
	take_turns(gpu, now);
}

void sim_slots_step(struct sim_gpu *gpu, u64 now)
{
	unsigned int next;

	if (!gpu->chained || gpu->preempt.phase || gpu->halted || now < gpu->turn_ends_ns)
		return;
	if (choose(gpu, &next))
		return;
	gpu->window = next;
	choose(gpu, &next);
	gpu->count.rotations++;
	sim_log(gpu, SIM_EV_ROTATE, 0, 0, gpu->window, gpu->n_queues);
	take_turns(gpu, now);
}
