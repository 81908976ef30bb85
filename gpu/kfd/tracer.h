/* SPDX-License-Identifier: MIT */
/*
 * The thread that traces one target. It seizes the process, runs what it is asked to run, and
 * in between passes the target's signals on. It never stops the target.
 *
 * A second thread only waits for the target's stops (without taking them) and wakes the first:
 * the kernel tells of ptrace stops through wait(2) alone, and signals for that purpose would
 * be the host program's business.
 */
#ifndef GPREEMPT_GPU_KFD_TRACER_H
#define GPREEMPT_GPU_KFD_TRACER_H

#include "gpu/kfd/kfd.h"

struct tracer;

enum tracer_end { TRACER_EXITED, TRACER_EXECED };

/* All called on the tracer thread. */
struct tracer_ops {
	/* The target is no longer the process that was seized; the last call but for leave. */
	void (*ended)(void *user, enum tracer_end how);
	/* Descriptors to watch; how many were written to @fds (at most TRACER_MAX_FDS). */
	size_t (*watch)(void *user, struct pollfd *fds);
	/* Those of them that were ready have revents set; called after every wait. */
	void (*turn)(void *user, const struct pollfd *fds, size_t n);
	int (*timeout_ms)(void *user); /* until the next turn at the latest; -1: none */
	void (*leave)(void *user); /* the thread is about to let the target go */
};
#define TRACER_MAX_FDS 4

/* Starts the thread and seizes; @ops may be NULL. -EPERM, -ESRCH as ptrace(2) says. */
int tracer_start(struct gkfd *k, pid_t pid, const struct tracer_ops *ops, void *user,
		 struct tracer **ret);
/* Runs @fn on the tracer thread and returns what it returns. */
int tracer_call(struct tracer *tr, int (*fn)(void *arg), void *arg);
/* Lets the target go and ends the threads. */
void tracer_stop(struct tracer *tr);

#endif
