/* SPDX-License-Identifier: MIT */
/*
 * Ending holds from outside, whoever made them and whatever state they are in. A holder of ours
 * is a tracer with a guard process as its child.
 */
#ifndef GPREEMPT_GPU_KFD_RELEASE_H
#define GPREEMPT_GPU_KFD_RELEASE_H

#include "gpu/kfd/target.h"

/* 1: the process of thread @tid is a holder of ours; *ret_holder is its pid. 0: it is not. */
int gkfd_holder_of(struct gkfd *k, pid_t tid, pid_t *ret_holder);

/* Asks it to end (SIGTERM), and kills it when it does not. */
int gkfd_end_holder(struct gkfd *k, pid_t holder, struct gkfd_failure *ret_failure);

/*
 * gkfd_target_recover(), once whoever traces the process is gone who will be in no time: the holder
 * @ended (0: none), or another process of ours.
 */
int gkfd_recover(struct gkfd *k, pid_t pid, enum gkfd_way way, pid_t ended,
		 struct gkfd_failure *fail);

/*
 * Ends every hold on @pid: asks its holder (SIGTERM), kills it when it has not let go in time,
 * and takes an orphaned session back. 1: let go; 0: nothing held it; -EBUSY: traced by
 * somebody who is not ours (failure.other_pid); -EPERM: no right.
 */
int gkfd_release_pid(struct gkfd *k, pid_t pid, struct gkfd_failure *ret_failure);

#endif
