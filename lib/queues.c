/* SPDX-License-Identifier: MIT */
/* The queues of the whole machine, without attaching to anybody. */
#include <string.h>

#include "lib/internal.h"
#include "lib/lookalike.h"
#include "lib/processes.h"

static const char *const type_names[] = {
	[GPREEMPT_QUEUE_COMPUTE_PM4] = "compute-pm4",
	[GPREEMPT_QUEUE_SDMA] = "sdma",
	[GPREEMPT_QUEUE_COMPUTE_AQL] = "compute-aql",
	[GPREEMPT_QUEUE_SDMA_XGMI] = "sdma-xgmi",
	[GPREEMPT_QUEUE_SDMA_BY_ENGINE] = "sdma-by-engine",
	[GPREEMPT_QUEUE_COMPUTE] = "compute",
	[GPREEMPT_QUEUE_OTHER] = "other",
	[GPREEMPT_QUEUE_GROUP_COMPUTE] = "group-compute",
	[GPREEMPT_QUEUE_GROUP_COPY] = "group-copy",
};

EXPORT const char *gpreempt_queue_type_name(enum gpreempt_queue_type type)
{
	size_t i = (size_t)type;

	return type_names[i < ARRAY_SIZE(type_names) ? i : GPREEMPT_QUEUE_OTHER];
}

static enum gpreempt_queue_type sysfs_type(uint32_t type)
{
	if (gkfd_type_is_compute(type))
		return GPREEMPT_QUEUE_COMPUTE;
	return type == GKFD_QUEUE_TYPE_OTHER ? GPREEMPT_QUEUE_OTHER
					     : (enum gpreempt_queue_type)type;
}

struct search {
	const struct gpreempt_queue_filter *filter;
	struct out_array *out;
	bool only_idle;
};

static bool matches(const struct search *s, const struct gpreempt_queue *q)
{
	const struct gpreempt_queue_filter *f = s->filter;
	bool known = q->valid & GPREEMPT_QUEUE_PRIORITY;

	if (f->job_class != GPREEMPT_CLASS_UNKNOWN && f->job_class != q->job_class)
		return false;
	if (f->min_priority >= 0 && !(known && q->priority >= (uint32_t)f->min_priority))
		return false;
	if (f->max_priority >= 0 && !(known && q->priority <= (uint32_t)f->max_priority))
		return false;
	return !s->only_idle ||
	       ((q->valid & GPREEMPT_QUEUE_STATE) && strcmp(q->state, "idle") == 0);
}

static int visit(struct gpreempt_ctx *ctx, const struct gkfd_proc *proc,
		 const struct gkfd_mqds *mqds, void *user)
{
	enum gpreempt_class job_class = proc_class(mqds, proc);
	struct search *s = user;
	struct lookalikes looks;
	int r;

	/* Before the costly part: reading the process's memory. */
	if (s->filter->job_class != GPREEMPT_CLASS_UNKNOWN && s->filter->job_class != job_class)
		return 0;
	r = lookalikes_init(ctx, &looks, proc, mqds);
	if (r < 0)
		return ctx_fail_errno(ctx, r, "reading the queues");
	for (size_t i = 0; i < proc->n_queues; i++) {
		const struct gkfd_proc_queue *from = &proc->queues[i];
		struct gpreempt_queue q = {
			.size = sizeof(q),
			.pid = proc->pid,
			.queue_id = from->queue_id,
			.gpu_id = from->gpu_id,
			.type = sysfs_type(from->type),
			.job_class = job_class,
			.ring_bytes = from->ring_bytes,
		};

		lookalikes_apply(&looks, &q);
		if (matches(s, &q))
			out_array_add(s->out, &q);
	}
	lookalikes_done(&looks);
	return 0;
}

int amd_queues(struct gpreempt_ctx *ctx, const struct gpreempt_queue_filter *filter, bool only_idle,
	       struct out_array *out)
{
	struct search s = { filter, out, only_idle };

	return for_each_proc(ctx, visit, &s);
}

static int search(struct gpreempt_ctx *ctx, const struct gpreempt_queue_filter *filter,
		  bool only_idle, struct gpreempt_queue *ret, size_t max)
{
	struct out_array out;
	int r = out_array_init(&ctx->last, &out, ret, max, UP_TO(struct gpreempt_queue, slice_us));

	if (r >= 0)
		r = ctx->vendor->queues(ctx, filter, only_idle, &out);
	return r < 0 ? r : (int)out.n;
}

EXPORT int gpreempt_get_all_queues(struct gpreempt_ctx *ctx,
				   const struct gpreempt_queue_filter *filter,
				   struct gpreempt_queue *ret, size_t max)
{
	struct gpreempt_queue_filter f = { .size = sizeof(f),
					   .min_priority = -1,
					   .max_priority = -1 };
	int r = in_struct(&ctx->last, &f, filter,
			  UP_TO(struct gpreempt_queue_filter, max_priority));

	return r < 0 ? r : search(ctx, &f, false, ret, max);
}

EXPORT int gpreempt_find_idle_offline_queues(struct gpreempt_ctx *ctx, struct gpreempt_queue *ret,
					     size_t max)
{
	const struct gpreempt_queue_filter f = { .size = sizeof(f),
						 .job_class = GPREEMPT_CLASS_OFFLINE,
						 .min_priority = -1,
						 .max_priority = -1 };
	int r = ctx_needs(ctx, HAS_PROGRESS, "record of what its queues have to do",
			  "see them with: gpreempt queues --all");

	return r < 0 ? r : search(ctx, &f, true, ret, max);
}
