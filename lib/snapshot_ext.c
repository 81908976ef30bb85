/* SPDX-License-Identifier: MIT */
/* One look at an attached process: what the driver knows, and its memory. */
#include <errno.h>

#include "lib/describe.h"
#include "gpu/kfd/ext.h"
#include "lib/act.h"

#define OFF \
	(KFD_GPREEMPT_QUEUE_HELD | KFD_GPREEMPT_QUEUE_HELD_SELF | KFD_GPREEMPT_QUEUE_STOPPED | \
	 KFD_GPREEMPT_QUEUE_SUSPENDED)

static int set_class(struct gpreempt_queue *queues, size_t n)
{
	_cleanup_free_ struct gkfd_mqd *mqds = calloc(n, sizeof(*mqds));
	enum gpreempt_class job_class;
	size_t compute = 0;

	if (!mqds)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (gkfd_type_is_compute(queues[i].type))
			mqds[compute++].priority = queues[i].priority;
	job_class = mqds_class(mqds, compute, compute);
	for (size_t i = 0; i < n; i++)
		queues[i].job_class = job_class;
	return 0;
}

static void mark_off(struct gpreempt_queue *queues, const struct kfd_gpreempt_queue *stats,
		     size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!(stats[i].flags & OFF))
			continue;
		snprintf(queues[i].state, sizeof(queues[i].state), "suspended");
		queues[i].valid |= GPREEMPT_QUEUE_STATE;
	}
}

static int describe(struct gpreempt_process *p, const struct kfd_gpreempt_queue *stats, size_t n,
		    struct gpreempt_queue **ret)
{
	_cleanup_free_ struct gpreempt_queue *queues = calloc(n ? n : 1, sizeof(*queues));
	int r = 0;

	if (!queues)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		describe_stats(p->ctx, &queues[i], p->pid, &stats[i]);
	if (n)
		r = set_class(queues, n);
	if (n && r >= 0)
		r = describe_progress(p->ctx, p->pid, queues, n);
	if (r < 0)
		return r;
	mark_off(queues, stats, n);
	*ret = steal_ptr(&queues);
	return 0;
}

int snapshot_by_ext(struct gpreempt_process *p, struct gpreempt_queue **ret, size_t *ret_n)
{
	_cleanup_free_ struct kfd_gpreempt_queue *stats = NULL;
	struct kfd_gpreempt_entry e = gkfd_ext_entry(p->pid, 0, KFD_GPREEMPT_ALL_QUEUES);
	struct gkfd_failure failure = { 0 };
	int n, r = process_check(p);

	if (r < 0)
		return r;
	ctx_call_begin(p->ctx);
	n = gkfd_ext_queues(p->ctx->k, p->pid, 0, &stats);
	ctx_call_end(p->ctx);
	if (n < 0) {
		r = gkfd_ext_explain(p->ctx->k, &e, n, &failure);
		return ctx_fail_target(p->ctx, r, p->pid, &failure);
	}
	r = describe(p, stats, (size_t)n, ret);
	if (r < 0)
		return ctx_fail_errno(p->ctx, r, "snapshot");
	*ret_n = (size_t)n;
	return 0;
}
