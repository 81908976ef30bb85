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

static struct sim_proc_counters *find(struct sim_counters *c, u32 pasid)
{
	unsigned int i, n = min_t(unsigned int, c->n_procs, SIM_MAX_PROCS);

	for (i = 1; i <= n; i++) {
		struct sim_proc_counters *p = &c->procs[(c->n_procs - i) % SIM_MAX_PROCS];

		if (p->pasid == pasid)
			return p;
	}
	return NULL;
}

struct sim_proc_counters *sim_count_new_proc(struct sim_gpu *gpu, u32 pasid)
{
	struct sim_proc_counters *p = find(&gpu->count, pasid);
	pid_t pid = pid_of(pasid);

	if (p && p->pid == pid)
		return p;
	p = &gpu->count.procs[gpu->count.n_procs++ % SIM_MAX_PROCS];
	*p = (struct sim_proc_counters){ .pasid = pasid, .pid = pid };
	return p;
}

struct sim_proc_counters *sim_count_proc(struct sim_gpu *gpu, u32 pasid)
{
	struct sim_proc_counters *p = find(&gpu->count, pasid);

	return p ?: sim_count_new_proc(gpu, pasid);
}
