/* SPDX-License-Identifier: MIT */
/* Taking queues off the GPU and back. */
#include <errno.h>
#include <string.h>

#include "gpu/kfd/progress.h"
#include "lib/internal.h"
#include "lib/model_stats.h"

#define DEFAULT_GRACE_KCLK 1

int suspend_take_options(struct gpreempt_ctx *ctx, struct gpreempt_suspend_options *o,
			 const struct gpreempt_suspend_options *given)
{
	*o = (struct gpreempt_suspend_options){ .size = sizeof(*o) };
	return ctx_take(ctx, o, given, UP_TO(struct gpreempt_suspend_options, want_saved));
}

int suspend_check_timing(struct gpreempt_ctx *ctx, const struct gpreempt_timing *ret)
{
	return ctx_check_out(ctx, ret, UP_TO(struct gpreempt_timing, save_ns));
}

int suspend_options(struct gpreempt_ctx *ctx, struct gpreempt_suspend_options *o,
		    const struct gpreempt_suspend_options *given)
{
	int r = suspend_take_options(ctx, o, given);

	if (r < 0)
		return r;
	if (o->grace_kclk == 0)
		o->grace_kclk = DEFAULT_GRACE_KCLK;
	/* An 8-bit register, where 256 would have no end (Linux 6.12 amdgpu_amdkfd_gfx_v9.c). */
	if (o->grace_kclk > GPREEMPT_GRACE_MAX)
		return ctx_fail(ctx, -EINVAL, GPREEMPT_ERROR_USAGE,
				"the hardware register has 8 bits: give 1 to 255",
				"a grace period of %u thousand clocks is not possible",
				o->grace_kclk);
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
	return 0;
}

static int compare_ids(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static int note_held(struct gpreempt_process *p, const struct gkfd_hold *hold)
{
	uint32_t *ids = calloc(hold->n ? hold->n : 1, sizeof(*ids));

	if (!ids)
		return -ENOMEM;
	if (hold->n) {
		memcpy(ids, hold->ids, hold->n * sizeof(*ids));
		qsort(ids, hold->n, sizeof(*ids), compare_ids);
	}
	free(p->held_ids);
	p->held_ids = ids;
	p->n_held = hold->n;
	p->held = true;
	return 0;
}

bool process_is_held(const struct gpreempt_process *p)
{
	if (p->ops)
		return p->ops->holds(p);
	return p->held && gkfd_target_holds(p->target);
}

bool process_holds(const struct gpreempt_process *p, uint32_t queue_id)
{
	return process_is_held(p) && p->n_held &&
	       bsearch(&queue_id, p->held_ids, p->n_held, sizeof(*p->held_ids), compare_ids);
}

/* What the suspension left in the save areas of the queues it took. */
static void read_saved(struct gpreempt_process *p, struct gpreempt_timing *t)
{
	_cleanup_free_ struct kfd_queue_snapshot_entry *entries = NULL;
	const struct gkfd_topology *topology;
	struct gkfd_failure failure;
	uint64_t bytes = 0;
	uint32_t n = 0;

	if (ctx_topology(p->ctx, &topology) < 0 ||
	    gkfd_target_snapshot(p->target, &entries, &n, &failure) < 0)
		return;
	for (uint32_t i = 0; i < n; i++) {
		const struct kfd_queue_snapshot_entry *e = &entries[i];
		const struct gkfd_node *node = gkfd_topology_find(topology, e->gpu_id);
		struct gkfd_saved saved;

		if (!gkfd_type_is_compute(e->queue_type) || !process_holds(p, e->queue_id))
			continue;
		if (!node || !(node->known & GKFD_NODE_NUM_XCC) ||
		    gkfd_saved_read(p->ctx->k, p->pid, e->ctx_save_restore_address,
				    e->ctx_save_restore_area_size, node->num_xcc, &saved) < 0)
			return;
		bytes += saved.wave_bytes;
	}
	t->has_saved = true;
	t->saved_bytes = bytes;
}

static int suspend(struct gpreempt_process *p, const uint32_t *ids, size_t n,
		   const struct gpreempt_suspend_options *options, struct gpreempt_timing *timing)
{
	struct gpreempt_suspend_options o;
	struct gkfd_failure failure = { 0 };
	struct gkfd_hold hold = { 0 };
	uint64_t save_ns_before;
	int r;

	r = suspend_options(p->ctx, &o, options);
	if (r < 0)
		return r;
	save_ns_before = model_save_ns(p->ctx);
	ctx_call_begin(p->ctx);
	r = gkfd_target_hold(p->target,
			     &(struct gkfd_hold_request){ .ids = ids,
							  .n = (uint32_t)MIN(n, UINT32_MAX),
							  .grace_kclk = o.grace_kclk,
							  .longest_ns = o.longest_ns },
			     &hold, &failure);
	if (r < 0)
		ctx_fail_target(p->ctx, r, p->pid, &failure);
	else if (note_held(p, &hold) < 0) {
		gkfd_target_resume(p->target, &(struct gkfd_resumed){ 0 }, &failure);
		r = ctx_fail_errno(p->ctx, -ENOMEM, "suspend");
	}
	ctx_call_end(p->ctx);
	if (r < 0)
		return r;

	timing->call_ns = hold.done_ns - hold.began_ns;
	timing->queues = hold.n;
	timing->has_save_ns = gpreempt_is_modelled(p->ctx);
	timing->save_ns = model_save_ns(p->ctx) - save_ns_before;
	if (o.want_saved)
		read_saved(p, timing);
	return 0;
}

EXPORT int gpreempt_suspend_queues(struct gpreempt_process *p, const uint32_t *ids, size_t n,
				   const struct gpreempt_suspend_options *options,
				   struct gpreempt_timing *ret)
{
	struct gpreempt_timing timing = { .size = sizeof(timing) };
	int r = check_call(p, ids, n);

	if (r >= 0)
		r = suspend_check_timing(p->ctx, ret);
	if (r >= 0)
		r = p->ops ? p->ops->suspend(&p, 1, ids, n, options, &timing)
			   : suspend(p, ids, n, options, &timing);
	if (r < 0)
		return r;
	out_struct(ret, &timing);
	return 0;
}

static int resume(struct gpreempt_process *p, struct gpreempt_timing *timing)
{
	struct gkfd_failure failure = { 0 };
	struct gkfd_resumed resumed = { 0 };
	int r;

	ctx_call_begin(p->ctx);
	r = gkfd_target_resume(p->target, &resumed, &failure);
	p->held = false; /* an error gives the session up, which resumes as well */
	p->n_held = 0;
	ctx_call_end(p->ctx);
	if (r < 0)
		return ctx_fail_target(p->ctx, r, p->pid, &failure);
	timing->call_ns = resumed.done_ns - resumed.began_ns;
	timing->queues = resumed.n;
	return 0;
}

EXPORT int gpreempt_resume_queues(struct gpreempt_process *p, struct gpreempt_timing *ret)
{
	struct gpreempt_timing timing = { .size = sizeof(timing) };
	int r = p->ops ? p->ops->resume(&p, 1, &timing) : resume(p, &timing);

	if (r >= 0)
		r = suspend_check_timing(p->ctx, ret); /* nobody stays held for that */
	if (r < 0)
		return r;
	out_struct(ret, &timing);
	return 0;
}

EXPORT int gpreempt_held_queues(const struct gpreempt_process *p, uint32_t *ret, size_t max)
{
	size_t n;

	if (p->ops)
		return p->ops->held(p, ret, max);
	n = process_is_held(p) ? p->n_held : 0;
	if (MIN(max, n))
		memcpy(ret, p->held_ids, MIN(max, n) * sizeof(*ret));
	return (int)n;
}

/* One call of the driver can be for several processes there. */
static bool one_call(struct gpreempt_process *const *procs, size_t n)
{
	if (n < 2 || !procs[0]->ops)
		return false;
	for (size_t i = 1; i < n; i++)
		if (procs[i]->ctx != procs[0]->ctx || procs[i]->ops != procs[0]->ops)
			return false;
	return true;
}

static int suspend_together(struct gpreempt_process *const *procs, size_t n,
			    const struct gpreempt_suspend_options *options)
{
	struct gpreempt_timing timing = { .size = sizeof(timing) };
	int r = 0;

	for (size_t i = 0; i < n && r >= 0; i++)
		r = check_call(procs[i], NULL, 0);
	return r < 0 ? r : procs[0]->ops->suspend(procs, n, NULL, 0, options, &timing);
}

EXPORT int gpreempt_batch_unmap_queues(struct gpreempt_process *const *procs, size_t n,
				       const struct gpreempt_suspend_options *options)
{
	if (one_call(procs, n))
		return suspend_together(procs, n, options);
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
	struct gpreempt_timing timing = { .size = sizeof(timing) };
	int first_error = 0;

	if (one_call(procs, n))
		return procs[0]->ops->resume(procs, n, &timing);
	for (size_t i = 0; i < n; i++) {
		int r = gpreempt_resume_queues(procs[i], NULL);

		if (r < 0 && first_error == 0)
			first_error = r;
	}
	return first_error;
}
