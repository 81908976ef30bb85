/* SPDX-License-Identifier: MIT */
/*
 * NVIDIA GPUs as a gpu_backend. The unit is a process on a GPU; there is no progress to be seen;
 * a hold is not undone by our death: guard, journal and the next start see to it.
 */
#ifndef GPREEMPT_GPU_NVRM_BACKEND_H
#define GPREEMPT_GPU_NVRM_BACKEND_H

#include "gpu/backend.h"
#include "gpu/nvrm/rm.h"

struct nvrm_backend_options {
	struct guard *guard; /* NULL: only in tests */
	bool by_readers; /* what processes control is read by others; else here, as in tests */
	struct nvrm *finder; /* for the owner's thread alone, owned; NULL: it has the same */
	bool untested; /* no self-test on a context of our own first */
	/* It fails, or there could be no self-test; else it stays as it is. May be NULL. */
	struct gpu_why *why;
};

/* Owns @n, also on failure. -ENODEV: no such driver; -EOPNOTSUPP: not with this one. */
int nvrm_backend_open(struct nvrm *n, const struct nvrm_backend_options *options,
		      struct gpu_backend **ret);

#endif
