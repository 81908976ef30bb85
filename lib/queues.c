/* SPDX-License-Identifier: MIT */
/*
 * The queues of the whole machine, without attaching to anybody. sysfs knows the ids of a process's
 * queues, debugfs their contents, and neither says which is which. Queues of one process on one GPU
 * with rings of one size look alike; what all descriptors of such a kind have in common is true of
 * every queue of that kind.
 */
#include <errno.h>
#include <string.h>

#include "lib/internal.h"

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

/* ---- which descriptor is whose ---- */

static void keep_if(struct gpreempt_queue *q, uint64_t bits, bool same)
{
	if (!same)
		q->valid &= ~bits;
}

static void keep_common(struct gpreempt_queue *a, const struct gpreempt_queue *b)
{
	a->valid &= b->valid;
	keep_if(a, GPREEMPT_QUEUE_RING_BASE, a->ring_base == b->ring_base);
	keep_if(a, GPREEMPT_QUEUE_POINTERS,
		a->read_ptr_addr == b->read_ptr_addr && a->write_ptr_addr == b->write_ptr_addr);
	keep_if(a, GPREEMPT_QUEUE_INDICES,
		a->read_index == b->read_index && a->write_index == b->write_index);
	keep_if(a, GPREEMPT_QUEUE_CWSR_BASE, a->cwsr_base == b->cwsr_base);
	keep_if(a, GPREEMPT_QUEUE_CWSR_BYTES, a->cwsr_bytes == b->cwsr_bytes);
	keep_if(a, GPREEMPT_QUEUE_PRIORITY, a->priority == b->priority);
	keep_if(a, GPREEMPT_QUEUE_PENDING, a->pending == b->pending);
	keep_if(a, GPREEMPT_QUEUE_STATE, strcmp(a->state, b->state) == 0);
}

static size_t count_lookalikes(const struct gkfd_proc *proc, const struct gkfd_proc_queue *q)
{
	size_t n = 0;

	for (size_t i = 0; i < proc->n_queues; i++)
		n += gkfd_type_is_compute(proc->queues[i].type) &&
		     proc->queues[i].gpu_id == q->gpu_id &&
		     proc->queues[i].ring_bytes == q->ring_bytes;
	return n;
}

/* What the @n descriptors of its process tell of @q, of whose kind there are so many queues. */
static struct gpreempt_queue known_of(const struct gkfd_proc_queue *q, size_t lookalikes,
				      const struct gpreempt_queue *described, size_t n)
{
	struct gpreempt_queue common = { 0 };
	size_t found = 0;

	for (size_t i = 0; i < n; i++) {
		if (described[i].gpu_id != q->gpu_id || described[i].ring_bytes != q->ring_bytes)
			continue;
		if (found++)
			keep_common(&common, &described[i]);
		else
			common = described[i];
	}
	/* As many descriptors as ids, or one of them is not of this kind after all. */
	return gkfd_type_is_compute(q->type) && found == lookalikes ? common :
								      (struct gpreempt_queue){ 0 };
}

static void describe_mqd(struct gpreempt_ctx *ctx, struct gpreempt_queue *q,
			 const struct gkfd_mqd *mqd)
{
	*q = (struct gpreempt_queue){
		.valid = GPREEMPT_QUEUE_RING_BASE | GPREEMPT_QUEUE_POINTERS |
			 GPREEMPT_QUEUE_PRIORITY,
		.gpu_id = mqd->gpu_id,
		/* ROCm programs make no other compute queues; a descriptor does not say. */
		.type = GPREEMPT_QUEUE_COMPUTE_AQL,
		.priority = mqd->priority,
		.ring_base = mqd->ring_base,
		.ring_bytes = mqd->ring_bytes,
		.read_ptr_addr = mqd->read_ptr_addr,
		.write_ptr_addr = mqd->write_ptr_addr,
	};
	describe_cwsr(ctx, q, mqd->cwsr_base, mqd->cwsr_bytes);
}

int queues_of_proc(struct gpreempt_ctx *ctx, const struct gkfd_proc *proc,
		   const struct gkfd_mqds *mqds, struct gpreempt_queue *ret)
{
	enum gpreempt_class job_class = proc_class(mqds, proc);
	const struct gkfd_mqd *first;
	size_t n = gkfd_mqds_of_process(mqds, proc->pid, &first);
	_cleanup_free_ struct gpreempt_queue *described = calloc(n + 1, sizeof(*described));
	int r;

	if (!described)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		describe_mqd(ctx, &described[i], &first[i]);
	/* Memory of another user's process cannot be read: state and indices stay unknown. */
	r = describe_progress(ctx, proc->pid, described, n);
	for (size_t i = 0; i < proc->n_queues && r >= 0; i++) {
		const struct gkfd_proc_queue *from = &proc->queues[i];

		ret[i] = known_of(from, count_lookalikes(proc, from), described, n);
		ret[i].size = sizeof(ret[i]);
		ret[i].pid = proc->pid;
		ret[i].queue_id = from->queue_id;
		ret[i].gpu_id = from->gpu_id;
		ret[i].type = sysfs_type(from->type);
		ret[i].job_class = job_class;
		ret[i].ring_bytes = from->ring_bytes;
	}
	return r;
}

/* ---- of all processes ---- */

struct search {
	const struct gpreempt_queue_filter *filter;
	struct out_array *out;
	bool only_idle;
};

static bool matches(const struct search *s, const struct gpreempt_queue *q)
{
	const struct gpreempt_queue_filter *f = s->filter;
	bool known = q->valid & GPREEMPT_QUEUE_PRIORITY;

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
	_cleanup_free_ struct gpreempt_queue *queues = NULL;
	struct search *s = user;
	int r = -ENOMEM;

	/* Before the costly part: reading the process's memory. */
	if (s->filter->job_class != GPREEMPT_CLASS_UNKNOWN &&
	    s->filter->job_class != proc_class(mqds, proc))
		return 0;
	queues = calloc(proc->n_queues + 1, sizeof(*queues));
	if (queues)
		r = queues_of_proc(ctx, proc, mqds, queues);
	if (r < 0)
		return ctx_fail_errno(ctx, r, "reading the queues");
	for (size_t i = 0; i < proc->n_queues; i++)
		if (matches(s, &queues[i]))
			out_array_add(s->out, &queues[i]);
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
	int r = ctx_needs(ctx, GPREEMPT_HAS_PROGRESS, "record of what its queues have to do",
			  "see them with: gpreempt queues --all");

	return r < 0 ? r : search(ctx, &f, true, ret, max);
}
