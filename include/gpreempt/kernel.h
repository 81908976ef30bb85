/* SPDX-License-Identifier: MIT */
/*
 * libgpreempt: the scheduler inside AMD's driver, which the kernel extension has. It does for a GPU
 * what gpreemptd does for all, with the same policies, and goes on when nobody is there any more.
 *
 * The conventions are those of gpreempt/gpreempt.h. Without the extension, or where it has no
 * scheduler, all calls are -EOPNOTSUPP.
 */
#ifndef GPREEMPT_KERNEL_H
#define GPREEMPT_KERNEL_H

#include "gpreempt/daemon.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GPREEMPT_ALL_GPUS UINT32_MAX

/* ---- turning it on and off: for administrators (CAP_SYS_ADMIN), -EPERM ---- */

struct gpreempt_kernel_options { /* 0 in a figure, and a NULL policy: the driver's default */
	size_t size;
	const char *policy;
	uint32_t interval_us; /* between looks, while something could be preempted: 100..1000000 */
	uint32_t critical_interval_us; /* where a latency-critical process is; the same range */
	uint32_t turn_ms; /* of the policies that take turns: 1..60000 */
	uint32_t hold_max_ms; /* a hold ends by itself after so long: 1..60000 */
	bool reserve; /* slots: then what follows counts, see gpreempt_set_hqd_reservation() */
	uint32_t online_percent, offline_percent;
};

/*
 * Turns it on for @gpu_id or GPREEMPT_ALL_GPUS, or sets it anew where it is on. @options may be
 * NULL. All or nothing: after a failure those GPUs on which it was off are off again, where that
 * can be told, and the error says what is not. -EINVAL: no such policy, a figure out of its range;
 * -ENODEV: no such GPU. Since: 0.1
 */
int gpreempt_kernel_on(struct gpreempt_ctx *ctx, uint32_t gpu_id,
		       const struct gpreempt_kernel_options *options);
/* Everybody it holds runs again. Off already: 0. Since: 0.1 */
int gpreempt_kernel_off(struct gpreempt_ctx *ctx, uint32_t gpu_id);
/* After a preemption that failed, it leaves a GPU alone until this. -ENOENT: off. Since: 0.1 */
int gpreempt_kernel_rearm(struct gpreempt_ctx *ctx, uint32_t gpu_id);

/* ---- how it is ---- */

/* 1: it is on, on some GPU; 0: on none. For everybody who may open the extension. Since: 0.1 */
int gpreempt_kernel_is_on(struct gpreempt_ctx *ctx);

enum {
	GPREEMPT_KERNEL_SLOTS = 1 << 0, /* slots, queues, held_queues */
	GPREEMPT_KERNEL_POLICY = 1 << 1,
	GPREEMPT_KERNEL_INTERVALS = 1 << 2,
	GPREEMPT_KERNEL_TURN = 1 << 3,
	GPREEMPT_KERNEL_HOLD_MAX = 1 << 4,
	GPREEMPT_KERNEL_RESERVED = 1 << 5, /* both shares */
	GPREEMPT_KERNEL_LOOKS = 1 << 6, /* looks, busy_ns */
	GPREEMPT_KERNEL_ACTIONS = 1 << 7, /* holds, resumes, failures, tripped */
	GPREEMPT_KERNEL_JOBS = 1 << 8, /* online, offline, held */
};

struct gpreempt_kernel_gpu {
	size_t size;
	uint64_t valid; /* of one that is off nothing but slots */
	uint32_t gpu_id;
	bool on;
	bool tripped; /* a preemption failed: it leaves this GPU alone until it is rearmed */
	char policy[20];
	uint32_t slots, queues, held_queues; /* held by anybody through the extension */
	uint32_t interval_us, critical_interval_us, turn_ms, hold_max_ms;
	uint32_t online_permille, offline_permille; /* slots kept for them; that they may have */
	uint32_t online, offline, held; /* jobs it knows, and holds */
	uint64_t looks, busy_ns; /* since it was turned on; of the processor */
	uint64_t holds, resumes, failures;
};

/* One entry per GPU, from debugfs: root only. -EACCES: no right to read it. Since: 0.1 */
int gpreempt_kernel_get_gpus(struct gpreempt_ctx *ctx, struct gpreempt_kernel_gpu *ret, size_t max);

/* ---- who is who: of processes the caller may trace; more than others have needs -EPERM ---- */

/*
 * The class of one process that has the driver open (-ESRCH), and of queues it creates; not of its
 * descendants. GPREEMPT_CLASS_UNKNOWN: it is left alone. A priority of -1 is 0, and nobody is
 * attached to, lazily or not. To make one online, to give it a priority, to make it critical, and
 * what an administrator has set before, takes an administrator: -EPERM. Since: 0.1
 */
int gpreempt_kernel_set_class(struct gpreempt_ctx *ctx, pid_t pid,
			      const struct gpreempt_class_request *request);
/*
 * Work of an online process comes in @ahead_ns (0: now, at most a second) and takes @for_ns (0: not
 * known, at most ten). -EPERM: it is not online. Since: 0.1
 */
int gpreempt_kernel_hint(struct gpreempt_ctx *ctx, pid_t pid, uint64_t ahead_ns, uint64_t for_ns);

#ifdef __cplusplus
}
#endif

#endif
