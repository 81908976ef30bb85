/* SPDX-License-Identifier: MIT */
/* One look at an attached process: the driver's snapshot, debugfs and its memory together. */
#include <errno.h>
#include <string.h>

#include "gpu/kfd/backend.h"
#include "lib/act.h"
#include "lib/describe.h"

/* Descriptors change only with the queues: debugfs prints the whole machine, so ask rarely. */
static bool mqds_are_current(const struct gpreempt_process *p, const struct gpreempt_queue *queues,
			     size_t n)
{
	size_t compute = 0;

	for (size_t i = 0; i < n; i++) {
		if (!gkfd_type_is_compute(queues[i].type))
			continue;
		compute++;
		if (!mqds_find(&p->mqds, p->pid, queues[i].gpu_id, queues[i].ring_base))
			return false;
	}
	return compute == p->mqds.n;
}

static void keep_own_mqds(struct gpreempt_process *p, struct gkfd_mqds *all)
{
	const struct gkfd_mqd *first;
	size_t n = mqds_of(all, p->pid, &first);

	if (n)
		memmove(all->mqds, first, n * sizeof(*first));
	all->n = n;
	p->mqds = *all;
}

static void refresh_mqds(struct gpreempt_process *p, const struct gpreempt_queue *queues, size_t n)
{
	struct gkfd_mqds all;

	if (p->mqds_read && mqds_are_current(p, queues, n))
		return;
	gkfd_mqds_done(&p->mqds);
	p->mqds = (struct gkfd_mqds){ 0 };
	p->mqds_read = mqds_read(p->ctx, &all) >= 0;
	if (p->mqds_read)
		keep_own_mqds(p, &all);
}

static void add_priorities(struct gpreempt_process *p, struct gpreempt_queue *queues, size_t n)
{
	enum gpreempt_class job_class;
	size_t compute = 0;

	refresh_mqds(p, queues, n);
	for (size_t i = 0; i < n; i++)
		compute += gkfd_type_is_compute(queues[i].type);
	job_class = mqds_class(p->mqds.mqds, p->mqds.n, compute);
	for (size_t i = 0; i < n; i++) {
		const struct gkfd_mqd *mqd =
			mqds_find(&p->mqds, p->pid, queues[i].gpu_id, queues[i].ring_base);

		queues[i].job_class = job_class;
		if (!mqd)
			continue;
		queues[i].priority = mqd->priority;
		queues[i].valid |= GPREEMPT_QUEUE_PRIORITY;
	}
}

static int compare_ids(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static void mark_held(struct gpreempt_process *p, struct gpreempt_queue *queues, size_t n)
{
	_cleanup_free_ uint32_t *held = NULL;
	int n_held = process_held(p, &held);

	for (size_t i = 0; i < n && n_held > 0; i++) {
		if (!bsearch(&queues[i].queue_id, held, (size_t)n_held, sizeof(*held), compare_ids))
			continue;
		snprintf(queues[i].state, sizeof(queues[i].state), "suspended");
		queues[i].valid |= GPREEMPT_QUEUE_STATE;
	}
}

static int add_details(struct gpreempt_process *p, struct gpreempt_queue *queues, size_t n)
{
	add_priorities(p, queues, n);
	return describe_progress(p->ctx, p->pid, queues, n);
}

/* sysfs has no addresses to look at, and does not tell the kinds of compute queues apart. */
static void drop_unknown(struct gpreempt_queue *queues, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		queues[i].valid = 0;
		if (gkfd_type_is_compute(queues[i].type))
			queues[i].type = GPREEMPT_QUEUE_COMPUTE;
	}
}

int amd_snapshot(struct gpreempt_process *p, struct gpreempt_queue **ret, size_t *ret_n)
{
	_cleanup_free_ struct kfd_queue_snapshot_entry *entries = NULL;
	_cleanup_free_ struct gpreempt_queue *queues = NULL;
	struct gkfd_failure failure = { 0 };
	struct gkfd_target *target;
	uint32_t n = 0;
	int r;

	target = gkfd_backend_target(p->target);
	if (!target)
		return snapshot_by_ext(p, ret, ret_n);
	ctx_call_begin(p->ctx);
	r = gkfd_target_snapshot(target, &entries, &n, &failure);
	ctx_call_end(p->ctx);
	if (r < 0)
		return ctx_fail_target(p->ctx, r, p->pid, &failure);
	queues = calloc(n ? n : 1, sizeof(*queues));
	if (!queues)
		return ctx_fail_errno(p->ctx, -ENOMEM, "snapshot");
	for (uint32_t i = 0; i < n; i++)
		describe_entry(p->ctx, &queues[i], p->pid, &entries[i]);
	if (n) {
		if (p->b->caps.unit == GPU_UNIT_CONTEXT)
			drop_unknown(queues, n);
		else
			r = add_details(p, queues, n);
		if (r < 0)
			return ctx_fail_errno(p->ctx, r, "snapshot");
		if (r >= 0)
			mark_held(p, queues, n);
	}
	*ret = steal_ptr(&queues);
	*ret_n = n;
	return 0;
}

int process_snapshot(struct gpreempt_process *p, struct gpreempt_queue **ret, size_t *ret_n)
{
	return p->ctx->vendor->snapshot(p, ret, ret_n);
}

EXPORT int gpreempt_snapshot(struct gpreempt_process *p, struct gpreempt_queue *ret, size_t max,
			     uint64_t *ret_time_ns)
{
	_cleanup_free_ struct gpreempt_queue *queues = NULL;
	struct out_array out;
	size_t n = 0;
	int r;

	r = out_array_init(&p->ctx->last, &out, ret, max, UP_TO(struct gpreempt_queue, slice_us));
	if (r < 0)
		return r;
	r = process_snapshot(p, &queues, &n);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		out_array_add(&out, &queues[i]);
	if (ret_time_ns)
		*ret_time_ns = gpreempt_now_ns(p->ctx);
	return (int)n;
}

static int fail_no_such_queue(struct gpreempt_process *p, uint32_t queue_id)
{
	return ctx_fail_target(
		p->ctx, -EINVAL, p->pid,
		&(struct gkfd_failure){ .why = GKFD_WHY_NO_SUCH_QUEUE, .queue_id = queue_id });
}

/* Where nobody counts what queues have to do, their state says only whether they are held. */
static bool tells_work(const struct gpreempt_process *p, const struct gpreempt_queue *q)
{
	return (q->valid & GPREEMPT_QUEUE_STATE) && p->b->caps.counts_progress;
}

EXPORT int gpreempt_is_queue_active(struct gpreempt_process *p, uint32_t queue_id)
{
	_cleanup_free_ struct gpreempt_queue *queues = NULL;
	size_t n = 0;
	int r;

	r = process_snapshot(p, &queues, &n);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		if (queues[i].queue_id != queue_id)
			continue;
		if (!tells_work(p, &queues[i]))
			return ctx_fail(p->ctx, -ENODATA, GPREEMPT_ERROR_FAILED, NULL,
					"what queue %u of process %d does cannot be told", queue_id,
					(int)p->pid);
		return strcmp(queues[i].state, "running") == 0 ||
		       strcmp(queues[i].state, "pending") == 0 ||
		       (strcmp(queues[i].state, "suspended") == 0 && queues[i].pending > 0);
	}
	return fail_no_such_queue(p, queue_id);
}
