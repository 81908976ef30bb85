/* SPDX-License-Identifier: MIT */
/* Taking queues off the GPU and back. */
#include <errno.h>
#include <string.h>

#include "gpu/kfd/backend.h"
#include "gpu/kfd/progress.h"
#include "lib/internal.h"
#include "util/array.h"

#define MOST_IDS 1024u /* that the drivers take in one call */

int suspend_check_timing(struct gpreempt_ctx *ctx, const struct gpreempt_timing *ret)
{
	return out_check(&ctx->last, ret, UP_TO(struct gpreempt_timing, save_ns));
}

int suspend_options(struct gpreempt_ctx *ctx, struct gpreempt_suspend_options *o,
		    const struct gpreempt_suspend_options *given)
{
	int r;

	*o = (struct gpreempt_suspend_options){ .size = sizeof(*o) };
	r = in_struct(&ctx->last, o, given, UP_TO(struct gpreempt_suspend_options, want_saved));
	if (r < 0 || o->grace_kclk == 0)
		return r;
	r = ctx_needs(ctx, GPREEMPT_HAS_GRACE, "grace period",
		      "leave it out: what runs is saved at once");
	if (r < 0)
		return r;
	/* An 8-bit register, where 256 would have no end (Linux 6.12 amdgpu_amdkfd_gfx_v9.c). */
	if (o->grace_kclk > GPREEMPT_GRACE_MAX)
		return ctx_fail(ctx, -EINVAL, GPREEMPT_ERROR_USAGE,
				"the hardware register has 8 bits: give 1 to 255",
				"a grace period of %u thousand clocks is not possible",
				o->grace_kclk);
	return 0;
}

static int check_ids(struct gpreempt_process *p, const uint32_t *ids, size_t n)
{
	if (n > MOST_IDS)
		return ctx_fail(p->ctx, -EINVAL, GPREEMPT_ERROR_USAGE,
				"name no ids to hold all queues",
				"process %d cannot be held by so many queue ids: %u at once",
				(int)p->pid, MOST_IDS);
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < i; j++)
			if (ids[i] == ids[j])
				return ctx_fail(p->ctx, -EINVAL, GPREEMPT_ERROR_USAGE,
						"name each queue once", "queue %u is named twice",
						ids[i]);
	return 0;
}

static int check_call(struct gpreempt_process *p, const uint32_t *ids, size_t n)
{
	if (p->look_only)
		return ctx_fail(p->ctx, -EPERM, GPREEMPT_ERROR_USAGE,
				"attach without GPREEMPT_ATTACH_LOOK_ONLY",
				"process %d was attached for looking only", (int)p->pid);
	if (ids && n == 0)
		return ctx_fail(p->ctx, -EINVAL, GPREEMPT_ERROR_USAGE,
				"give NULL to suspend all queues", "no queue was named");
	return check_ids(p, ids, ids ? n : 0);
}

/* ---- acting ---- */

bool process_holds(const struct gpreempt_process *p)
{
	return p->target && p->b->ops->holds(p->target);
}

int process_held(const struct gpreempt_process *p, uint32_t **ret)
{
	_cleanup_free_ uint32_t *ids = NULL;
	int n = 0, now;

	ctx_call_begin(p->ctx); /* whoever knows may be waiting for the driver */
	if (process_holds(p))
		n = p->b->ops->held(p->target, NULL, 0);
	ids = calloc((size_t)n + 1, sizeof(*ids));
	now = ids && n ? p->b->ops->held(p->target, ids, (size_t)n) : 0;
	ctx_call_end(p->ctx);
	if (!ids)
		return -ENOMEM;
	n = MIN(n, now);
	qsort(ids, (size_t)n, sizeof(*ids), compare_u32);
	*ret = steal_ptr(&ids);
	return n;
}

/* Adds up what became of them. -errno of the first that failed. */
static int end_calls(struct gpreempt_process *const *procs, size_t n,
		     struct gpreempt_timing *timing)
{
	int r = 0;

	for (size_t i = 0; i < n; i++) {
		const struct gpu_done *d = &procs[i]->done;

		if (d->result < 0 && r == 0)
			r = process_fail(procs[i]);
		timing->queues += d->queues;
		timing->call_ns =
			MAX(timing->call_ns, d->took_ns ? d->took_ns : d->done_ns - d->began_ns);
	}
	return r;
}

/* Whatever is wrong with one, the others are asked for; the first failure is told. */
static int resume(struct gpreempt_process *const *procs, size_t n, struct gpreempt_timing *timing)
{
	struct gpreempt_ctx *ctx = procs[0]->ctx;
	struct gpreempt_error first = { 0 };
	int r;

	ctx_call_begin(ctx);
	for (size_t i = 0; i < n; i++) {
		struct gpreempt_process *p = procs[i];

		if (p->waits)
			continue; /* named twice */
		p->done = (struct gpu_done){ 0 };
		r = process_check(p);
		if (r >= 0)
			r = process_begun(p, p->b->ops->resume(p->target, NULL, 0, 0), "resume");
		if (r < 0 && !first.error)
			first = ctx->last;
	}
	process_await(procs, n);
	r = end_calls(procs, n, timing);
	ctx_call_end(ctx);
	if (!first.error)
		return r;
	ctx->last = first;
	return first.error;
}

/* Whoever was taken off though another could not be comes back. */
static int undo(struct gpreempt_process *const *procs, size_t n)
{
	struct gpreempt_error why = procs[0]->ctx->last;

	for (size_t i = 0; i < n; i++)
		if (process_holds(procs[i]))
			resume(&procs[i], 1, &(struct gpreempt_timing){ 0 });
	procs[0]->ctx->last = why;
	return why.error;
}

/* Before anybody is touched. */
static int check_hold(struct gpreempt_process *p)
{
	int r = process_check(p);

	if (r < 0)
		return r;
	if (process_holds(p))
		return ctx_fail(p->ctx, -EALREADY, GPREEMPT_ERROR_USAGE, "resume it first",
				"process %d is already held by the caller", (int)p->pid);
	return 0;
}

/* Answers are told apart by their process. */
static int begin_hold(struct gpreempt_process *p, const struct gpu_hold *hold)
{
	if (p->waits)
		return ctx_fail(p->ctx, -EINVAL, GPREEMPT_ERROR_USAGE, "name each process once",
				"process %d is named twice", (int)p->pid);
	return process_begun(p, p->b->ops->suspend(p->target, hold, 0), "suspend");
}

static int suspend_all(struct gpreempt_process *const *procs, size_t n, const struct gpu_hold *hold,
		       struct gpreempt_timing *timing)
{
	size_t begun = 0;
	int r = 0;

	for (size_t i = 0; i < n && r >= 0; i++)
		r = check_hold(procs[i]);
	while (begun < n && r >= 0) {
		r = begin_hold(procs[begun], hold);
		begun += r >= 0;
	}
	if (begun)
		process_await(procs, begun);
	if (r >= 0)
		r = end_calls(procs, n, timing);
	return r < 0 ? undo(procs, begun) : 0;
}

static uint64_t save_ns(struct gpreempt_ctx *ctx)
{
	return ctx->modelled && ctx->vendor->save_ns ? ctx->vendor->save_ns(ctx) : 0;
}

/* @ids of one process only. */
static int suspend(struct gpreempt_process *const *procs, size_t n, const uint32_t *ids,
		   size_t n_ids, const struct gpreempt_suspend_options *options,
		   struct gpreempt_timing *timing)
{
	struct gpreempt_ctx *ctx = procs[0]->ctx;
	struct gpreempt_suspend_options o;
	struct gpu_hold hold = { .ids = ids, .n = n_ids, .exact = true };
	uint64_t save_ns_before;
	int r = suspend_options(ctx, &o, options);

	for (size_t i = 0; i < n && r >= 0; i++)
		r = check_call(procs[i], ids, n_ids);
	if (r < 0)
		return r;
	hold.longest_ns = o.longest_ns;
	hold.grace_kclk = o.grace_kclk;
	save_ns_before = save_ns(ctx);
	ctx_call_begin(ctx);
	r = suspend_all(procs, n, &hold, timing);
	ctx_call_end(ctx);
	if (r < 0)
		return r;
	timing->has_save_ns = ctx->modelled && ctx->vendor->save_ns;
	timing->save_ns = save_ns(ctx) - save_ns_before;
	if (o.want_saved && ctx->vendor->saved)
		ctx->vendor->saved(procs[0], timing);
	return 0;
}

EXPORT int gpreempt_suspend_queues(struct gpreempt_process *p, const uint32_t *ids, size_t n,
				   const struct gpreempt_suspend_options *options,
				   struct gpreempt_timing *ret)
{
	struct gpreempt_timing timing = { .size = sizeof(timing) };
	int r = suspend_check_timing(p->ctx, ret);

	if (r >= 0)
		r = suspend(&p, 1, ids, n, options, &timing);
	return r < 0 ? r : out_struct(ret, &timing);
}

EXPORT int gpreempt_resume_queues(struct gpreempt_process *p, struct gpreempt_timing *ret)
{
	struct gpreempt_timing timing = { .size = sizeof(timing) };
	int r = resume(&p, 1, &timing);

	if (r >= 0)
		r = suspend_check_timing(p->ctx, ret); /* nobody stays held for that */
	return r < 0 ? r : out_struct(ret, &timing);
}

EXPORT int gpreempt_held_queues(const struct gpreempt_process *p, uint32_t *ret, size_t max)
{
	_cleanup_free_ uint32_t *ids = NULL;
	int n = process_held(p, &ids);

	if (n > 0 && max > 0)
		memcpy(ret, ids, MIN(max, (size_t)n) * sizeof(*ret));
	return n;
}

/* One call of the driver can be for several processes there. */
static bool one_call(struct gpreempt_process *const *procs, size_t n)
{
	if (n < 2 || !procs[0]->b->ops->submit)
		return false;
	for (size_t i = 1; i < n; i++)
		if (procs[i]->b != procs[0]->b)
			return false;
	return true;
}

EXPORT int gpreempt_batch_unmap_queues(struct gpreempt_process *const *procs, size_t n,
				       const struct gpreempt_suspend_options *options)
{
	if (one_call(procs, n))
		return suspend(procs, n, NULL, 0, options, &(struct gpreempt_timing){ 0 });
	for (size_t i = 0; i < n; i++) {
		int r = gpreempt_suspend_queues(procs[i], NULL, 0, options, NULL);

		if (r < 0) {
			struct gpreempt_error why = procs[i]->ctx->last;

			gpreempt_fast_remap_queues(procs, i);
			procs[i]->ctx->last = why;
			return r;
		}
	}
	return 0;
}

EXPORT int gpreempt_fast_remap_queues(struct gpreempt_process *const *procs, size_t n)
{
	int first_error = 0;

	if (one_call(procs, n))
		return resume(procs, n, &(struct gpreempt_timing){ 0 });
	for (size_t i = 0; i < n; i++) {
		int r = gpreempt_resume_queues(procs[i], NULL);

		if (r < 0 && first_error == 0)
			first_error = r;
	}
	return first_error;
}
