/* SPDX-License-Identifier: MIT */
/* The machine: its driver, its GPUs, and which ways to preempt it has. Attaches to nobody. */
#include <errno.h>

#include "gpu/freezer.h"
#include "lib/internal.h"

EXPORT int gpreempt_get_gpus(struct gpreempt_ctx *ctx, struct gpreempt_gpu *ret, size_t max)
{
	return out_list(ctx, ctx->vendor->gpus, ret, max, UP_TO(struct gpreempt_gpu, mig));
}

EXPORT int gpreempt_get_levels(struct gpreempt_ctx *ctx, struct gpreempt_level *ret, size_t max)
{
	return out_list(ctx, ctx->vendor->levels, ret, max, UP_TO(struct gpreempt_level, reason));
}

EXPORT int gpreempt_get_device_info(struct gpreempt_ctx *ctx, struct gpreempt_device_info *ret)
{
	struct gpreempt_device_info info = { .size = sizeof(info) };
	char freezer[FREEZER_PATH_SIZE];
	int r;

	r = out_check(&ctx->last, ret, UP_TO(struct gpreempt_device_info, signed_modules_only));
	if (r < 0)
		return r;
	snprintf(info.backend, sizeof(info.backend), "%s", ctx->driver->name);
	r = ctx->vendor->device_info(ctx, &info);
	if (r < 0)
		return r;
	if (!gpreempt_is_modelled(ctx) && freezer_group(freezer))
		snprintf(info.freezer, sizeof(info.freezer), "%.*s", (int)sizeof(info.freezer) - 1,
			 freezer);
	return out_struct(ret, &info);
}

EXPORT int gpreempt_self_test(struct gpreempt_ctx *ctx, uint32_t index,
			      struct gpreempt_self_test *ret)
{
	struct gpreempt_self_test test = { .size = sizeof(test) };
	int r;

	r = out_check(&ctx->last, ret, UP_TO(struct gpreempt_self_test, running_ns));
	if (r < 0)
		return r;
	if (!ctx->vendor->self_test)
		return ctx_fail(ctx, -EOPNOTSUPP, GPREEMPT_ERROR_REFUSED,
				"try what is claimed on a process of yours: gpreempt accept PID",
				"the self-test is for NVIDIA GPUs");
	r = ctx->vendor->self_test(ctx, index, &test);
	return r < 0 ? r : out_struct(ret, &test);
}
