/* SPDX-License-Identifier: MIT */
/* The way to a target before it is seized, and why it could not be. */
#ifndef GPREEMPT_GPU_KFD_FIND_H
#define GPREEMPT_GPU_KFD_FIND_H

#include "gpu/kfd/procs.h"
#include "gpu/kfd/failure.h"

/* Checks that @pid is a process, and another one. */
int gkfd_process_find(struct gkfd *k, pid_t pid, struct gkfd_proc_ident *ret,
		      struct gkfd_failure *fail);
/* Checks that @pid is a process we could attach to, and opens the device, which must have @cap. */
int gkfd_target_find(struct gkfd *k, pid_t pid, enum gkfd_cap cap, struct gkfd_proc_ident *ret,
		     struct gkfd_failure *fail);

/* ptrace(2) says -EPERM for no right and for "already traced"; /proc knows which. */
int gkfd_seize_failed(struct gkfd *k, pid_t pid, int error, struct gkfd_failure *fail);

#endif
