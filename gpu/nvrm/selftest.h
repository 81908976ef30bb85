/* SPDX-License-Identifier: MIT */
/*
 * Does this driver do what we think it does? Tried on a child of our own with a CUDA context
 * (libcuda is loaded by it, at run time) before anybody else is touched: its heartbeat must stop,
 * stay stopped, and go on.
 */
#ifndef GPREEMPT_GPU_NVRM_SELFTEST_H
#define GPREEMPT_GPU_NVRM_SELFTEST_H

#include "gpu/nvrm/failure.h"
#include "gpu/nvrm/rm.h"

struct nvrm_selftest {
	uint64_t suspend_ns, frozen_ns; /* from the call until it returned, until the last beat */
	uint64_t resume_ns, running_ns; /* until it returned, until the first beat */
};

/*
 * @gpu: the index libcuda gives it. 0, or -errno with a reason: -EOPNOTSUPP where there is no
 * libcuda to try it with, which is no reason not to go on (the failure's status is libcuda's
 * then); -EIO where it went wrong, which is.
 */
int nvrm_selftest(struct nvrm *n, unsigned int gpu, struct nvrm_selftest *ret,
		  struct nvrm_failure *ret_failure);

#endif
