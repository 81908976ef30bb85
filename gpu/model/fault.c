/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "gpu/model/driver.h"

/* splitmix64 */
static uint64_t next_random(struct model *m)
{
	uint64_t z = (m->random += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

int model_fault_set(struct model *m, const struct model_fault *fault)
{
	if (fault->kind == MODEL_FAULT_NONE) {
		for (int i = 0; i < MODEL_FAULT_KINDS; i++)
			m->faults[i].kind = MODEL_FAULT_NONE;
		m->vanish_at_call = 0;
		return 0;
	}
	if (fault->kind >= MODEL_FAULT_KINDS)
		return -EINVAL;
	if (fault->gpu_index >= m->config.n_gpus)
		return -ENODEV;
	if (fault->kind == MODEL_FAULT_VANISH)
		m->vanish_at_call = m->calls + MAX(fault->count, 1u);
	m->faults[fault->kind] = *fault;
	return 0;
}

/* A process of some user with a queue, or any but our own; NULL: none. */
static struct model_kproc *random_victim(struct model *m)
{
	uint32_t n = 0;
	uint64_t pick;

	for (struct model_kproc *k = m->kprocs; k; k = k->next)
		n += k->proc->pid != MODEL_SELF_PID;
	if (!n)
		return NULL;
	pick = next_random(m) % n;
	for (struct model_kproc *k = m->kprocs; k; k = k->next)
		if (k->proc->pid != MODEL_SELF_PID && !pick--)
			return k;
	return NULL;
}

/* Places a fault whose targets are chosen when it comes due. */
void model_fault_scatter(struct model *m, uint32_t calls)
{
	for (int kind = MODEL_FAULT_SLOW; kind < MODEL_FAULT_KINDS; kind++) {
		m->pending[kind].at_call = 0;
		if (!calls || next_random(m) % 2)
			continue;
		m->pending[kind].at_call = m->calls + 1 + next_random(m) % calls;
		m->pending[kind].fault = (struct model_fault){
			.kind = kind,
			.gpu_index = (uint32_t)(next_random(m) % MAX(m->config.n_gpus, 1u)),
			.ns = NSEC_PER_MSEC + next_random(m) % (50 * NSEC_PER_MSEC),
			.count = 1,
		};
	}
}

static void arm_pending(struct model *m)
{
	for (int kind = MODEL_FAULT_SLOW; kind < MODEL_FAULT_KINDS; kind++) {
		struct pending_fault *pending = &m->pending[kind];
		struct model_fault fault = pending->fault;
		struct model_kproc *victim;

		if (!pending->at_call || pending->at_call != m->calls + 1)
			continue;
		pending->at_call = 0;
		victim = random_victim(m);
		if (victim) {
			fault.pid = victim->proc->pid;
			fault.queue_id = victim->queues ? victim->queues->id : 0;
		}
		model_fault_set(m, &fault);
	}
}

void model_faults_before_call(struct model *m)
{
	arm_pending(m);
	m->calls++;
	if (!m->vanish_at_call || m->calls != m->vanish_at_call)
		return;
	m->vanish_at_call = 0;
	model_proc_exit(m, m->faults[MODEL_FAULT_VANISH].pid);
	m->faults[MODEL_FAULT_VANISH].kind = MODEL_FAULT_NONE;
}

bool model_fault_is_dead(const struct model_gpu *gpu)
{
	const struct model_fault *dead = &gpu->m->faults[MODEL_FAULT_DEAD_SCHEDULER];

	return dead->kind && dead->gpu_index == gpu->index;
}

static struct model_queue *stuck_queue(const struct model_gpu *gpu)
{
	const struct model_fault *stuck = &gpu->m->faults[MODEL_FAULT_STUCK_QUEUE];
	struct model_proc *p = stuck->kind ? model_proc_find(gpu->m, stuck->pid) : NULL;
	struct model_queue *q = p && p->kproc ? model_queue_find(p->kproc, stuck->queue_id) : NULL;

	return q && q->gpu == gpu ? q : NULL;
}

void model_fault_into_unmap(struct model_gpu *gpu, struct hw_unmap *op)
{
	struct model *m = gpu->m;
	const struct model_fault *slow = &m->faults[MODEL_FAULT_SLOW];
	struct model_queue *stuck = stuck_queue(gpu);

	if (slow->kind && slow->gpu_index == gpu->index)
		op->extra_ns = slow->ns;
	op->dead = model_fault_is_dead(gpu);
	if (stuck && hw_queue_mapped(stuck->hw))
		op->stuck = stuck->hw;
}

struct model_queue *model_fault_take_resettable(struct model_gpu *gpu)
{
	struct model_fault *fault = &gpu->m->faults[MODEL_FAULT_STUCK_QUEUE];
	struct model_queue *q = fault->resettable ? stuck_queue(gpu) : NULL;

	if (q)
		fault->kind = MODEL_FAULT_NONE;
	return q;
}

bool model_fault_take(struct model *m, enum model_fault_kind kind)
{
	bool set = m->faults[kind].kind != MODEL_FAULT_NONE;

	m->faults[kind].kind = MODEL_FAULT_NONE;
	return set;
}
