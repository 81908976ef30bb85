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
#include "gpu/mailbox.h"

struct tracer;

/* Something to be run on the tracer thread; the poster's to keep until it has run. */
struct tracer_order {
	void (*run)(struct tracer_order *order);
	struct mail mail;
};

enum tracer_end { TRACER_EXITED, TRACER_EXECED };

/* All called on the tracer thread. */
struct tracer_ops {
	/* The target is no longer the process that was seized; the last call but for leave. */
	void (*ended)(void *user, enum tracer_end how);
	/* Descriptors to watch; how many were written to @fds (at most TRACER_MAX_FDS). */
	size_t (*watch)(void *user, struct pollfd *fds);
	/* Those of them that were ready have revents set. After every wait: first orders, */
	void (*orders)(void *user, const struct pollfd *fds);
	/* and, when it is known what became of the target, all else. */
	void (*turn)(void *user, const struct pollfd *fds, size_t n);
	int (*timeout_ms)(void *user); /* until the next turn at the latest; -1: none */
	void (*leave)(void *user); /* the thread is about to let the target go */
	void (*gone)(void *user); /* it has; the thread does nothing more. May be NULL */
};
#define TRACER_MAX_FDS 5

/* One without a thread yet; it is for an order to seize. @ops may be NULL. */
int tracer_new(struct gkfd *k, pid_t pid, const struct tracer_ops *ops, void *user,
	       struct tracer **ret);
int tracer_launch(struct tracer *tr); /* gives it one */
/* Makes the caller its thread, until somebody calls tracer_leave(). */
void tracer_run(struct tracer *tr);
/* On the tracer thread only, once. -EPERM, -ESRCH as ptrace(2) says. */
int tracer_seize(struct tracer *tr);
void tracer_let_go(struct tracer *tr); /* undoes it; on the tracer thread only */
/* Orders are run one after the other as posted, before anything else the thread has to do. */
void tracer_post(struct tracer *tr, struct tracer_order *order);
/* As an order, for who waits: runs @fn on the tracer thread and returns what it returns. */
int tracer_call(struct tracer *tr, int (*fn)(void *arg), void *arg);
/*
 * Once the orders before it are run, the thread goes. Nothing may be asked of it afterwards, but
 * this again.
 */
void tracer_leave(struct tracer *tr);
/* Lets the target go, waits until the thread is gone, and frees. */
void tracer_stop(struct tracer *tr);

#endif
