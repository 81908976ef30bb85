/* SPDX-License-Identifier: MIT */
/* Why something could not be done to a process on an NVIDIA GPU, and how that is told. */
#ifndef GPREEMPT_GPU_NVRM_FAILURE_H
#define GPREEMPT_GPU_NVRM_FAILURE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "gpu/why.h"

enum nvrm_why {
	NVRM_WHY_NONE,
	NVRM_WHY_SYSTEM, /* an errno says it all */
	NVRM_WHY_NO_DRIVER, /* no /dev/nvidiactl; -ENODEV */
	NVRM_WHY_DRIVER_UNKNOWN, /* a version this was never checked with; -EOPNOTSUPP */
	NVRM_WHY_SELF_TEST, /* a context of our own did not do what it should; -EIO */
	NVRM_WHY_NO_RIGHT, /* to trace the process; -EPERM */
	NVRM_WHY_EXITED, /* -ESRCH */
	NVRM_WHY_NO_CONTEXT, /* it does not use an NVIDIA GPU, or has no context yet; -ENOENT */
	/* It does, but its client or groups are not where libcuda has them; -EOPNOTSUPP. */
	NVRM_WHY_NOT_FOUND,
	NVRM_WHY_FREEZER, /* whoever froze us would keep it held (gpu/freezer.h); -EPERM */
	NVRM_WHY_SHARED, /* MPS: its group is also somebody else's; -EOPNOTSUPP */
	NVRM_WHY_TOO_MANY, /* channels or clients, more than one undo can name; -ENOSPC */
	NVRM_WHY_REFUSED, /* the driver said a status */
	NVRM_WHY_GPU_LOST, /* -ENODEV */
	NVRM_WHY_TIMEOUT, /* the GPU did not let go: leave it alone; -ETIMEDOUT */
	NVRM_WHY_GUARD_DIED, /* -EOWNERDEAD */
	NVRM_WHY_NO_GROUP, /* it has no such group; -EINVAL */
	NVRM_WHY_TWICE, /* a group was named twice; -EINVAL */
};

struct nvrm_failure {
	enum nvrm_why why;
	const char *step; /* "suspending its channels", a literal; NULL */
	int status; /* of the driver */
	uint32_t gpu; /* 0: not known */
	uint32_t group; /* nvrm_group_id(), of the last two */
};

/* @r: the -errno that came with it. */
void nvrm_failure_describe(int r, pid_t pid, const struct nvrm_failure *f, struct gpu_why *ret);
/* The -errno a status stands for; 0 for NVRM_OK, -errno for itself. */
int nvrm_status_errno(int status);

#endif
