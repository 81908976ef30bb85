/* SPDX-License-Identifier: MIT */
/* Descriptors of other processes, by pidfd_getfd(2). */
#ifndef GPREEMPT_GPU_BORROW_H
#define GPREEMPT_GPU_BORROW_H

#include <sys/types.h>

/*
 * A copy of the @nth descriptor, by its number, that the process has open on the device @rdev; the
 * caller's to close. The right to it is the right to trace the process: -EPERM, -EACCES. -ENOENT:
 * it has no more; -ESRCH: it is gone; -EAGAIN: it opens and closes them as we look.
 */
int gpu_borrow(int pidfd, pid_t pid, dev_t rdev, unsigned int nth);

#endif
