/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "gpu/model/driver.h"

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

void model_faults_before_call(struct model *m)
{
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
	if (stuck && hw_see(stuck->hw)->mapped)
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
