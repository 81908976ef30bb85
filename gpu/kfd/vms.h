/* SPDX-License-Identifier: MIT */
/*
 * Has a process an address space on every GPU it may use?
 *
 * suspend_queues() of Linux 6.12 flushes the TLB of each GPU that comes after one where it has
 * suspended something, and the kernel oopses where the process never took an address space
 * (pdd->drm_priv is NULL). AMD's runtime takes one on every GPU when it starts; a program that
 * does not must not be suspended through the debug interface.
 *
 * Seen from outside, a GPU whose render node the process has not opened has none.
 */
#ifndef GPREEMPT_GPU_KFD_VMS_H
#define GPREEMPT_GPU_KFD_VMS_H

#include "gpu/kfd/failure.h"

/* -EOPNOTSUPP: @fail says on which it has none. 0: it has all, or it cannot be told. */
int gkfd_vms_check(struct gkfd *k, pid_t pid, struct gkfd_failure *fail);

#endif
