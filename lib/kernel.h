/* SPDX-License-Identifier: MIT */
/* What the calls to the scheduler in the driver share. */
#ifndef GPREEMPT_LIB_KERNEL_H
#define GPREEMPT_LIB_KERNEL_H

#include "gpreempt/kernel.h"
#include "gpu/kfd/scheduler.h"
#include "lib/internal.h"

/* 0 and what it can do; notes a failure, -EOPNOTSUPP where there is none. @what needs it. */
int kernel_open(struct gpreempt_ctx *ctx, const char *what, struct kfd_gpreempt_version *ret);
/* A call of @what failed with @r: notes what nobody knows better, and returns @r. */
int kernel_fail(struct gpreempt_ctx *ctx, int r, const char *what);

#endif
