/* SPDX-License-Identifier: MIT */
/* The brake: nothing of any process runs on a GPU. */
#include <errno.h>

#include "lib/internal.h"

static int check_extension(struct gpreempt_ctx *ctx)
{
	struct kfd_gpreempt_version version;
	int r = ctx_needs(ctx, GPREEMPT_HAS_BRAKE, "brake for a whole GPU",
			  "to keep one process off it: gpreempt hold PID");

	if (r < 0)
		return r;
	r = gkfd_ext_open(ctx->k, &version);
	if (r == -EACCES)
		return ctx_fail(ctx, r, GPREEMPT_ERROR_REFUSED, "try sudo",
				"stopping a GPU needs the kernel extension (level K3), and no "
				"right to open it");
	if (r < 0)
		return ctx_fail(ctx, -EOPNOTSUPP, GPREEMPT_ERROR_REFUSED,
				"to keep one process off the GPU: gpreempt hold PID",
				"stopping a GPU needs the kernel extension (level K3), which is "
				"not loaded");
	return 0;
}

static int fail(struct gpreempt_ctx *ctx, int r, uint32_t gpu_id)
{
	switch (r) {
	case -ENODEV:
		return ctx_fail(ctx, r, GPREEMPT_ERROR_ABSENT,
				"see which there are with: gpreempt doctor", "there is no GPU %u",
				gpu_id);
	case -EPERM:
		return ctx_fail(ctx, r, GPREEMPT_ERROR_REFUSED, "needs CAP_SYS_ADMIN; try sudo",
				"no right to stop GPU %u", gpu_id);
	case -EALREADY:
		return ctx_fail(ctx, r, GPREEMPT_ERROR_USAGE, "it runs, or somebody else stops it",
				"GPU %u is not stopped by the caller", gpu_id);
	default:
		return ctx_fail_errno(ctx, r, "stopping a GPU");
	}
}

EXPORT int gpreempt_stop_gpu(struct gpreempt_ctx *ctx, uint32_t gpu_id, uint64_t longest_ns)
{
	uint64_t ms = longest_ns / NSEC_PER_MSEC + (longest_ns % NSEC_PER_MSEC != 0);
	struct kfd_gpreempt_stop stop = {
		.gpu_id = gpu_id,
		.hold_ms = (uint32_t)MIN(ms, KFD_GPREEMPT_MAX_HOLD_MS),
	};
	int r = check_extension(ctx);

	if (r < 0)
		return r;
	if (longest_ns == 0)
		return ctx_fail(ctx, -EINVAL, GPREEMPT_ERROR_USAGE, "give more than none",
				"no time to stop GPU %u for", gpu_id);
	r = gkfd_ext_call(ctx->k, KFD_GPREEMPT_STOP_SCHED, &stop);
	/* Another stop is only for the time it sets: one start is to end them all. */
	while (r >= 0 && stop.stops > 1) {
		stop = (struct kfd_gpreempt_stop){ .gpu_id = gpu_id };
		r = gkfd_ext_call(ctx->k, KFD_GPREEMPT_START_SCHED, &stop);
	}
	return r < 0 ? fail(ctx, r, gpu_id) : 0;
}

EXPORT int gpreempt_start_gpu(struct gpreempt_ctx *ctx, uint32_t gpu_id)
{
	struct kfd_gpreempt_stop stop = { .gpu_id = gpu_id };
	int r = check_extension(ctx);

	if (r < 0)
		return r;
	r = gkfd_ext_call(ctx->k, KFD_GPREEMPT_START_SCHED, &stop);
	return r < 0 ? fail(ctx, r, gpu_id) : 0;
}
