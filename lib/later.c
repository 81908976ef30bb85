/* SPDX-License-Identifier: MIT */
/* What the stock driver cannot do. */
#include <errno.h>

#include "lib/internal.h"

static int needs(struct gpreempt_ctx *ctx, const char *what, const char *needed)
{
	return ctx_fail(ctx, -EOPNOTSUPP, GPREEMPT_ERROR_REFUSED,
			"see what works here with: gpreempt doctor", "%s needs %s", what, needed);
}

EXPORT int gpreempt_set_queue_policy(struct gpreempt_ctx *ctx, pid_t pid, uint32_t queue_id,
				     uint32_t flags)
{
	return needs(ctx, "a queue policy", "the kernel extension, which is not loaded");
}

EXPORT int gpreempt_set_hqd_reservation(struct gpreempt_ctx *ctx, uint32_t gpu_id,
					uint32_t online_percent, uint32_t offline_percent)
{
	return needs(ctx, "reserving hardware queues", "the kernel extension, which is not loaded");
}

EXPORT int gpreempt_hint(struct gpreempt_ctx *ctx, pid_t pid)
{
	return needs(ctx, "a hint", "gpreemptd, which is not running");
}
