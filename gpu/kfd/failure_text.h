/* SPDX-License-Identifier: MIT */
/* A gkfd_failure as a line for people, and what to do about it. */
#ifndef GPREEMPT_GPU_KFD_FAILURE_TEXT_H
#define GPREEMPT_GPU_KFD_FAILURE_TEXT_H

#include "gpu/kfd/target.h"
#include "gpu/why.h"

/*
 * @error: the -errno that came with it. Looks into /proc for names; @k NULL: does not, as that can
 * hang.
 */
void gkfd_failure_describe(struct gkfd *k, int error, pid_t pid, const struct gkfd_failure *f,
			   struct gpu_why *ret);

#endif
