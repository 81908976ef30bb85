/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The calls of abi/kfd_gpreempt.h, and what they share: who makes them, through which file. */
#ifndef GPREEMPT_KERNEL_EXT_CALLS_H
#define GPREEMPT_KERNEL_EXT_CALLS_H

#include "kfd_gpreempt_internal.h"

struct gp_file {
	u64 owner;
	struct pid *by; /* who took something off through it last */
	spinlock_t lock;
	struct list_head tickets; /* struct gp_batch, oldest first */
	unsigned int n_tickets;
	u64 last_ticket;
	wait_queue_head_t wait;
	struct list_head bound; /* struct gp_bound */
	unsigned int n_bound;
	struct gp_events *events; /* NULL: not subscribed */
};

/* Who makes a call, through which device. */
struct gp_caller {
	struct gp_file *file; /* NULL: /dev/kfd */
	struct kfd_process *own; /* then */
	u64 owner;
};

/* ---- kfd_gpreempt_rights.c ---- */

/* A reference to the process, which the caller may name; or why not, as ERR_PTR(). */
struct kfd_process *gp_find_process(const struct gp_caller *caller, u32 nr, u64 start_ticks);
void gp_forget_bound(struct gp_file *f); /* at its end */
int gp_call_bind(const struct gp_caller *caller, void *data);

/* ---- kfd_gpreempt_calls.c, kfd_gpreempt_unmap.c; @data is in and out ---- */

int gp_call_version(const struct gp_caller *caller, void *data);
int gp_call_unmap(const struct gp_caller *caller, void *data);
int gp_call_map(const struct gp_caller *caller, void *data);
int gp_call_switch(const struct gp_caller *caller, void *data);
int gp_call_selective(const struct gp_caller *caller, void *data);
int gp_call_preempt(const struct gp_caller *caller, void *data);
int gp_call_resume(const struct gp_caller *caller, void *data);
int gp_call_set_state(const struct gp_caller *caller, void *data);
int gp_call_collect(const struct gp_caller *caller, void *data);
int gp_call_stop(const struct gp_caller *caller, void *data);
int gp_call_start(const struct gp_caller *caller, void *data);
int gp_call_hqd(const struct gp_caller *caller, void *data);
int gp_call_stats(const struct gp_caller *caller, void *data);
int gp_call_class(const struct gp_caller *caller, void *data);
int gp_call_policy(const struct gp_caller *caller, void *data);
int gp_call_hint(const struct gp_caller *caller, void *data);
int gp_call_monitor(const struct gp_caller *caller, void *data);
int gp_call_reserve(const struct gp_caller *caller, void *data);
int gp_call_subscribe(const struct gp_caller *caller, void *data);

#endif
