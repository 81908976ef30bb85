/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#include <kfd_priv.h>

#include "kernel/kfdsim/sim.h"

static pid_t pid_of(u32 pasid)
{
	struct kfd_process *p = kfd_lookup_process_by_pasid(pasid);
	pid_t pid = 0;

	if (p) {
		pid = p->lead_thread->pid;
		kfd_unref_process(p);
	}
	return pid;
}

/* Never NULL; the entry may be taken over by another process at the next call. */
struct sim_proc_counters *sim_count_proc(struct sim_gpu *gpu, u32 pasid)
{
	struct sim_counters *c = &gpu->count;
	unsigned int i, n = min_t(unsigned int, c->n_procs, SIM_MAX_PROCS);
	struct sim_proc_counters *p;

	for (i = 0; i < n; i++) {
		if (c->procs[i].pasid == pasid)
			return &c->procs[i];
	}
	p = &c->procs[c->n_procs++ % SIM_MAX_PROCS];
	*p = (struct sim_proc_counters){ .pasid = pasid, .pid = pid_of(pasid) };
	return p;
}
