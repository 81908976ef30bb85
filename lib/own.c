/* SPDX-License-Identifier: MIT */
/* The caller's own queues. */
#include <errno.h>

#include "lib/internal.h"

/* *ret is the caller's to free; NULL when @queues is. */
static int copy_queues(struct gpreempt_ctx *ctx, const struct gpreempt_own_queue *queues, size_t n,
		       struct gkfd_own_queue **ret)
{
	_cleanup_free_ struct gkfd_own_queue *copy = NULL;
	int r;

	if (!queues)
		return 0;
	if (n == 0 || n > UINT32_MAX)
		return ctx_fail(ctx, -EINVAL, GPREEMPT_ERROR_USAGE,
				"give NULL to suspend all queues", "no queue was named");
	copy = calloc(n, sizeof(*copy));
	if (!copy)
		return ctx_fail_errno(ctx, -ENOMEM, "suspend");
	for (size_t i = 0; i < n; i++) {
		struct gpreempt_own_queue q = { .size = sizeof(q) };

		r = in_entry(&ctx->last, &q, queues, i,
			     UP_TO(struct gpreempt_own_queue, ring_bytes));
		if (r < 0)
			return r;
		copy[i] = (struct gkfd_own_queue){
			.id = q.queue_id,
			.priority = q.priority,
			.ring_base = q.ring_base,
			.ring_bytes = q.ring_bytes > UINT32_MAX ? 0 : (uint32_t)q.ring_bytes,
		};
	}
	*ret = steal_ptr(&copy);
	return 0;
}

EXPORT int gpreempt_suspend_own(struct gpreempt_ctx *ctx, const struct gpreempt_own_queue *queues,
				size_t n, const struct gpreempt_suspend_options *options,
				struct gpreempt_timing *ret)
{
	struct gpreempt_timing timing = { .size = sizeof(timing) };
	_cleanup_free_ struct gkfd_own_queue *own = NULL;
	struct gpreempt_suspend_options o;
	struct gkfd_failure failure = { 0 };
	struct gkfd_moved hold;
	int r = ctx_needs(ctx, GPREEMPT_HAS_OWN, "way to suspend the caller's own queues",
			  "let another process, or gpreemptd, do it");

	if (r >= 0)
		r = suspend_options(ctx, &o, options);
	if (r >= 0)
		r = suspend_check_timing(ctx, ret);
	if (r >= 0)
		r = copy_queues(ctx, queues, n, &own);
	if (r >= 0)
		r = ctx_open_device(ctx);
	if (r < 0)
		return r;
	ctx_call_begin(ctx);
	r = gkfd_own_hold(&ctx->own, ctx->k, ctx_own_pid(ctx), own, own ? (uint32_t)n : 0,
			  o.grace_kclk, &hold, &failure);
	ctx_call_end(ctx);
	if (r < 0)
		return ctx_fail_target(ctx, r, ctx_own_pid(ctx), &failure);
	timing.call_ns = hold.done_ns - hold.began_ns;
	timing.queues = hold.n;
	return out_struct(ret, &timing);
}

EXPORT int gpreempt_resume_own(struct gpreempt_ctx *ctx, struct gpreempt_timing *ret)
{
	struct gpreempt_timing timing = { .size = sizeof(timing) };
	struct gkfd_failure failure = { 0 };
	struct gkfd_moved resumed;
	int r;

	if (ctx->has & GPREEMPT_HAS_OWN) {
		ctx_call_begin(ctx);
		r = gkfd_own_resume(&ctx->own, ctx->k, &resumed, &failure);
		ctx_call_end(ctx);
		if (r < 0)
			return ctx_fail_target(ctx, r, ctx_own_pid(ctx), &failure);
		timing.call_ns = resumed.done_ns - resumed.began_ns;
		timing.queues = resumed.n;
	}
	r = suspend_check_timing(ctx, ret); /* nothing stays held for that */
	return r < 0 ? r : out_struct(ret, &timing);
}
