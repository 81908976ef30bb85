/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The scheduler of one GPU: what its thread (monitor.c) and those who set it (settings.c) share. */
#ifndef GPREEMPT_KERNEL_EXT_MONITOR_H
#define GPREEMPT_KERNEL_EXT_MONITOR_H

#include "core/engine/engine.h"
#include "kfd_gpreempt_internal.h"

#define GP_MAX_JOBS 512
#define GP_MAX_QUEUES 2048
#define GP_MAX_HINTS 16

struct gp_job {
	const struct kfd_process *process; /* compared only; NULL: not in use */
	struct kfd_gpreempt_class_state state;
	u8 class;
	int engine_id; /* negative: the engine has no room */
	pid_t pid;
	bool seen, held;
	u64 since_ns, until_ns; /* held */
};

struct gp_hint {
	const struct kfd_process *process;
	u64 at_ns, for_ns;
};

struct gp_monitor {
	struct kfd_gpreempt_node *n;
	struct task_struct *thread;
	wait_queue_head_t wait;

	spinlock_t lock; /* notes for the thread, and what it tells */
	bool kicked, configured, rearm;
	struct engine_config config;
	struct gp_hint hints[GP_MAX_HINTS];
	unsigned int n_hints;
	struct gp_monitor_figures {
		u64 looks, steps, busy_ns, looked_queues;
		u64 holds, resumes, failures;
		u32 jobs, held, online, offline;
		bool tripped;
	} figures;

	/* the thread's */
	struct engine *engine;
	struct gp_job jobs[GP_MAX_JOBS];
	unsigned int n_jobs; /* the table's used part */
	struct gp_seen queues[GP_MAX_QUEUES];
	unsigned int n_queues;
	struct engine_sample samples[GP_MAX_QUEUES];
	struct engine_action actions[GP_MAX_JOBS];
	struct process_run {
		struct kfd_process *process; /* a reference */
		unsigned int first, n; /* of queues */
	} processes[GP_MAX_JOBS];
	unsigned int n_processes;
	bool complete;
	bool astray; /* some queue is not where its job is */
	u32 online, offline;
	u64 memory[]; /* the engine's */
};

int gp_monitor_run(void *data); /* the thread; @data is the monitor */

#endif
