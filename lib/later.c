/* SPDX-License-Identifier: MIT */
/* What only some drivers can do. */
#include <errno.h>

#include "lib/internal.h"

static int needs_another_driver(struct gpreempt_ctx *ctx, const char *what)
{
	if (ctx->vendor)
		return ctx->vendor->cannot(ctx, what, "see what works here with: gpreempt doctor");
	return ctx_fail(ctx, -EOPNOTSUPP, GPREEMPT_ERROR_REFUSED,
			"see what works here with: gpreempt doctor",
			"a %s needs more than this driver can do", what);
}

EXPORT int gpreempt_self_test(struct gpreempt_ctx *ctx, uint32_t index,
			      struct gpreempt_self_test *ret)
{
	struct gpreempt_self_test test = { .size = sizeof(test) };
	int r;

	if (!ctx->vendor)
		return ctx_fail(ctx, -EOPNOTSUPP, GPREEMPT_ERROR_REFUSED,
				"try what is claimed on a process of yours: gpreempt accept PID",
				"the self-test is for NVIDIA GPUs");
	r = ctx->vendor->self_test(ctx, index, &test);
	if (r < 0)
		return r;
	out_struct(ret, &test);
	return 0;
}

EXPORT int gpreempt_set_queue_policy(struct gpreempt_ctx *ctx, pid_t pid, uint32_t queue_id,
				     uint32_t flags)
{
	return needs_another_driver(ctx, "queue policy");
}

EXPORT int gpreempt_set_hqd_reservation(struct gpreempt_ctx *ctx, uint32_t gpu_id,
					uint32_t online_percent, uint32_t offline_percent)
{
	return needs_another_driver(ctx, "reservation of hardware queues");
}
