/* SPDX-License-Identifier: MIT */
/* Going through the processes of the machine without touching them. */
#ifndef GPREEMPT_LIB_PROCESSES_H
#define GPREEMPT_LIB_PROCESSES_H

#include "lib/internal.h"

/* @mqds is empty where debugfs cannot be read. A negative answer ends the walk. */
typedef int (*proc_visitor)(struct gpreempt_ctx *ctx, const struct gkfd_proc *proc,
			    const struct gkfd_mqds *mqds, void *user);

int for_each_proc(struct gpreempt_ctx *ctx, proc_visitor visit, void *user);
enum gpreempt_class proc_class(const struct gkfd_mqds *mqds, const struct gkfd_proc *proc);
size_t proc_compute_queues(const struct gkfd_proc *proc);
/* What is known of its queues, for which @ret has room. */
int queues_of_proc(struct gpreempt_ctx *ctx, const struct gkfd_proc *proc,
		   const struct gkfd_mqds *mqds, struct gpreempt_queue *ret);
/* Of one that nobody traces, by its letter in /proc: "running", "stopped", "zombie". */
const char *proc_state_name(char state);

#endif
