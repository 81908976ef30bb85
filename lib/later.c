/* SPDX-License-Identifier: MIT */
/* What the stock driver cannot do. */
#include <errno.h>

#include "lib/internal.h"

static int needs_extension(struct gpreempt_ctx *ctx, const char *what)
{
	if (ctx->vendor)
		return ctx->vendor->cannot(ctx, what, "see what works here with: gpreempt doctor");
	return ctx_fail(ctx, -EOPNOTSUPP, GPREEMPT_ERROR_REFUSED,
			"see what works here with: gpreempt doctor",
			"a %s needs the kernel extension, which is not loaded", what);
}

EXPORT int gpreempt_set_queue_policy(struct gpreempt_ctx *ctx, pid_t pid, uint32_t queue_id,
				     uint32_t flags)
{
	return needs_extension(ctx, "queue policy");
}

EXPORT int gpreempt_set_hqd_reservation(struct gpreempt_ctx *ctx, uint32_t gpu_id,
					uint32_t online_percent, uint32_t offline_percent)
{
	return needs_extension(ctx, "reservation of hardware queues");
}
