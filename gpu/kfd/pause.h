/* SPDX-License-Identifier: MIT */
/*
 * A process paused through the driver's checkpoint interface (K1): all its queues on all GPUs at
 * once, whatever its runtime. Every call must be made on the thread that traces the process's
 * leader; nothing here blocks but the driver.
 *
 * The driver does not undo a pause when its maker dies, and up to Linux 6.12.115 it counts: paused
 * twice, it takes one "unpause" and then knows nothing of the other (kfd_chardev.c). So a pause is
 * made only where there is none, and only the tracer can make one.
 */
#ifndef GPREEMPT_GPU_KFD_PAUSE_H
#define GPREEMPT_GPU_KFD_PAUSE_H

#include "gpu/kfd/target.h"

struct gkfd_pause {
	struct gkfd *k;
	pid_t pid;
	int fd; /* borrowed from the target; -1: none */
	bool paused;
	uint32_t *ids; /* its queues when it was paused */
	uint32_t n_ids;
};

/* Borrows a descriptor and makes sure that nobody has the process paused. */
int gkfd_pause_begin(struct gkfd_pause *p, struct gkfd *k, pid_t pid, struct gkfd_failure *fail);
/* Unpauses and closes; errors cannot be helped any more and are passed over. */
void gkfd_pause_end(struct gkfd_pause *p);
/* The target is gone or runs another program; also lets the driver free what it had. */
void gkfd_pause_forget(struct gkfd_pause *p);

/* The queues as sysfs has them: ids, GPUs, types and sizes. *ret is the caller's to free. */
int gkfd_pause_snapshot(struct gkfd_pause *p, struct kfd_queue_snapshot_entry **ret,
			uint32_t *ret_n, struct gkfd_failure *fail);
int gkfd_pause_hold(struct gkfd_pause *p, const struct gkfd_hold_request *request,
		    struct gkfd_hold *ret, struct gkfd_failure *fail);
/* On an error it is still paused: the guard's turn, or gkfd_target_recover()'s. */
int gkfd_pause_resume(struct gkfd_pause *p, struct gkfd_resumed *ret, struct gkfd_failure *fail);

/* What a guard has to do on @fd when the holder dies. */
void gkfd_pause_undo(struct guard_undo *ret);

/* Ends a pause whose maker is gone. 1: there was one; 0: none, or no right to know. */
int gkfd_pause_recover(struct gkfd *k, pid_t pid, struct gkfd_failure *fail);

#endif
