/* SPDX-License-Identifier: MIT */
/* One look at an attached process: the driver's snapshot, debugfs and its memory together. */
#include <errno.h>
#include <string.h>

#include "gpu/kfd/backend.h"
#include "gpu/kfd/progress.h"
#include "lib/internal.h"
#include "util/array.h"

/* ---- what each source knows ---- */

void describe_cwsr(struct gpreempt_ctx *ctx, struct gpreempt_queue *q, uint64_t base,
		   uint32_t per_xcc)
{
	const struct gkfd_topology *topology;
	const struct gkfd_node *node;

	if (base) {
		q->cwsr_base = base;
		q->valid |= GPREEMPT_QUEUE_CWSR_BASE;
	}
	if (ctx_topology(ctx, &topology) < 0)
		return;
	node = gkfd_topology_find(topology, q->gpu_id);
	if (!node || !(node->known & GKFD_NODE_NUM_XCC) || per_xcc == 0)
		return;
	q->cwsr_bytes = (uint64_t)per_xcc * node->num_xcc;
	q->valid |= GPREEMPT_QUEUE_CWSR_BYTES;
}

static void set_progress(struct gpreempt_queue *q, const struct gkfd_progress *progress)
{
	if (progress->pointers_known) {
		q->read_index = progress->read_index;
		q->write_index = progress->write_index;
		q->valid |= GPREEMPT_QUEUE_INDICES;
	}
	if (progress->state == GKFD_QUEUE_UNKNOWN)
		return;
	q->pending = progress->pending;
	if (!(q->valid & GPREEMPT_QUEUE_STATE)) /* else it is suspended */
		snprintf(q->state, sizeof(q->state), "%s", gkfd_queue_state_name(progress->state));
	q->valid |= GPREEMPT_QUEUE_PENDING | GPREEMPT_QUEUE_STATE;
}

int describe_progress(struct gpreempt_ctx *ctx, pid_t pid, struct gpreempt_queue *queues, size_t n)
{
	_cleanup_free_ struct gkfd_queue_addr *addrs = calloc(n + 1, sizeof(*addrs));
	_cleanup_free_ struct gkfd_progress *progress = calloc(n + 1, sizeof(*progress));

	if (!addrs || !progress)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		addrs[i] = (struct gkfd_queue_addr){
			.type = queues[i].type,
			.ring_base = queues[i].ring_base,
			.ring_bytes = queues[i].ring_bytes,
			.read_ptr_addr = queues[i].read_ptr_addr,
			.write_ptr_addr = queues[i].write_ptr_addr,
		};
	if (n == 0 || gkfd_progress_read(ctx->k, pid, addrs, n, progress) < 0)
		return 0;
	for (size_t i = 0; i < n; i++)
		set_progress(&queues[i], &progress[i]);
	return 0;
}

/* ---- descriptors ---- */

static int compare_mqds(const void *a, const void *b)
{
	const struct gkfd_mqd *x = a, *y = b;

	return x->gpu_id != y->gpu_id ? compare_u32(&x->gpu_id, &y->gpu_id) :
					compare_u64(&x->ring_base, &y->ring_base);
}

static const struct gkfd_mqd *find_mqd(const struct gpreempt_process *p,
				       const struct gpreempt_queue *q)
{
	struct gkfd_mqd key = { .gpu_id = q->gpu_id, .ring_base = q->ring_base };

	if (p->mqds.n == 0)
		return NULL;
	return bsearch(&key, p->mqds.mqds, p->mqds.n, sizeof(key), compare_mqds);
}

/* Descriptors change only with the queues: debugfs prints the whole machine, so ask rarely. */
static bool mqds_are_current(const struct gpreempt_process *p, const struct gpreempt_queue *queues,
			     size_t n)
{
	size_t compute = 0;

	for (size_t i = 0; i < n; i++) {
		if (!gkfd_type_is_compute(queues[i].type))
			continue;
		compute++;
		if (!find_mqd(p, &queues[i]))
			return false;
	}
	return compute == p->mqds.n;
}

static void keep_own_mqds(struct gpreempt_process *p, struct gkfd_mqds *all)
{
	const struct gkfd_mqd *first;
	size_t n = gkfd_mqds_of_process(all, p->pid, &first);

	if (n)
		qsort(memmove(all->mqds, first, n * sizeof(*first)), n, sizeof(*first),
		      compare_mqds);
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
	refresh_mqds(p, queues, n);
	for (size_t i = 0; i < n; i++) {
		const struct gkfd_mqd *mqd = find_mqd(p, &queues[i]);

		if (!mqd)
			continue;
		queues[i].priority = mqd->priority;
		queues[i].valid |= GPREEMPT_QUEUE_PRIORITY;
	}
}

static void set_class(struct gpreempt_queue *queues, size_t n)
{
	enum gpreempt_class job_class = GPREEMPT_CLASS_OFFLINE;
	size_t compute = 0;

	for (size_t i = 0; i < n; i++) {
		if (!gkfd_type_is_compute(queues[i].type))
			continue;
		compute++;
		job_class = class_with(job_class, queues[i].valid & GPREEMPT_QUEUE_PRIORITY,
				       queues[i].priority);
	}
	for (size_t i = 0; i < n; i++)
		queues[i].job_class = compute ? job_class : GPREEMPT_CLASS_UNKNOWN;
}

static void mark_suspended(struct gpreempt_queue *q)
{
	snprintf(q->state, sizeof(q->state), "suspended");
	q->valid |= GPREEMPT_QUEUE_STATE;
}

int snapshot_mark_held(struct gpreempt_process *p, struct gpreempt_queue *queues, size_t n)
{
	_cleanup_free_ uint32_t *held = NULL;
	int n_held = process_held(p, &held);

	for (size_t i = 0; i < n && n_held > 0; i++)
		if (bsearch(&queues[i].queue_id, held, (size_t)n_held, sizeof(*held), compare_u32))
			mark_suspended(&queues[i]);
	return MIN(n_held, 0);
}

/* sysfs has no addresses to look at, and does not tell the kinds of compute queues apart. */
static void drop_unknown(struct gpreempt_queue *q)
{
	q->valid = 0;
	if (gkfd_type_is_compute(q->type))
		q->type = GPREEMPT_QUEUE_COMPUTE;
}

/* ---- what the driver tells: how many queues; *ret is the caller's to free ---- */

static enum gpreempt_queue_type type_of(uint32_t type)
{
	return type <= GPREEMPT_QUEUE_SDMA_BY_ENGINE ? (enum gpreempt_queue_type)type :
						       GPREEMPT_QUEUE_OTHER;
}

static void describe_entry(struct gpreempt_ctx *ctx, struct gpreempt_queue *q, pid_t pid,
			   const struct kfd_queue_snapshot_entry *entry)
{
	*q = (struct gpreempt_queue){
		.size = sizeof(*q),
		.valid = GPREEMPT_QUEUE_RING_BASE | GPREEMPT_QUEUE_POINTERS |
			 GPREEMPT_QUEUE_EXCEPTIONS,
		.pid = pid,
		.queue_id = entry->queue_id,
		.gpu_id = entry->gpu_id,
		.type = type_of(entry->queue_type),
		.ring_base = entry->ring_base_address,
		.ring_bytes = entry->ring_size,
		.read_ptr_addr = entry->read_pointer_address,
		.write_ptr_addr = entry->write_pointer_address,
		.exceptions = entry->exception_status,
	};
	describe_cwsr(ctx, q, entry->ctx_save_restore_address, entry->ctx_save_restore_area_size);
}

static int read_session(struct gpreempt_process *p, struct gkfd_target *target,
			struct gpreempt_queue **ret)
{
	_cleanup_free_ struct kfd_queue_snapshot_entry *entries = NULL;
	struct gkfd_failure failure = { 0 };
	uint32_t n = 0;
	int r;

	ctx_call_begin(p->ctx);
	r = gkfd_target_snapshot(target, &entries, &n, &failure);
	ctx_call_end(p->ctx);
	if (r < 0)
		return ctx_fail_target(p->ctx, r, p->pid, &failure);
	*ret = calloc(n + 1, sizeof(**ret));
	for (uint32_t i = 0; *ret && i < n; i++) {
		describe_entry(p->ctx, &(*ret)[i], p->pid, &entries[i]);
		if (p->b->caps.unit == GPU_UNIT_CONTEXT)
			drop_unknown(&(*ret)[i]);
	}
	if (!*ret || (n && snapshot_mark_held(p, *ret, n) < 0))
		return ctx_fail_errno(p->ctx, -ENOMEM, "snapshot");
	return (int)n;
}

#define OFF \
	(KFD_GPREEMPT_QUEUE_HELD | KFD_GPREEMPT_QUEUE_HELD_SELF | KFD_GPREEMPT_QUEUE_STOPPED | \
	 KFD_GPREEMPT_QUEUE_SUSPENDED)

static void describe_stats(struct gpreempt_ctx *ctx, struct gpreempt_queue *q, pid_t pid,
			   const struct kfd_gpreempt_queue *stats)
{
	*q = (struct gpreempt_queue){
		.size = sizeof(*q),
		.valid = GPREEMPT_QUEUE_RING_BASE | GPREEMPT_QUEUE_POINTERS |
			 GPREEMPT_QUEUE_PRIORITY,
		.pid = pid,
		.queue_id = stats->queue_id,
		.gpu_id = stats->gpu_id,
		.type = type_of(stats->type),
		.priority = stats->priority,
		.ring_base = stats->ring_base,
		.ring_bytes = stats->ring_bytes,
		.read_ptr_addr = stats->read_ptr,
		.write_ptr_addr = stats->write_ptr,
	};
	describe_cwsr(ctx, q, stats->cwsr_base, stats->cwsr_bytes);
}

static int read_ext(struct gpreempt_process *p, struct gpreempt_queue **ret)
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
	*ret = calloc((size_t)n + 1, sizeof(**ret));
	if (!*ret)
		return ctx_fail_errno(p->ctx, -ENOMEM, "snapshot");
	for (int i = 0; i < n; i++) {
		describe_stats(p->ctx, &(*ret)[i], p->pid, &stats[i]);
		if (stats[i].flags & OFF)
			mark_suspended(&(*ret)[i]);
	}
	return n;
}

int amd_snapshot(struct gpreempt_process *p, struct gpreempt_queue **ret, size_t *ret_n)
{
	_cleanup_free_ struct gpreempt_queue *queues = NULL;
	struct gkfd_target *target = gkfd_backend_target(p->target);
	int n = target ? read_session(p, target, &queues) : read_ext(p, &queues);

	if (n < 0)
		return n;
	if (n > 0 && p->b->caps.unit == GPU_UNIT_QUEUE) {
		if (target)
			add_priorities(p, queues, (size_t)n);
		set_class(queues, (size_t)n);
		if (describe_progress(p->ctx, p->pid, queues, (size_t)n) < 0)
			return ctx_fail_errno(p->ctx, -ENOMEM, "snapshot");
	}
	*ret = steal_ptr(&queues);
	*ret_n = (size_t)n;
	return 0;
}

void amd_saved(struct gpreempt_process *p, struct gpreempt_timing *t)
{
	struct gkfd_target *target = gkfd_backend_target(p->target);
	_cleanup_free_ struct kfd_queue_snapshot_entry *entries = NULL;
	_cleanup_free_ uint32_t *held = NULL;
	const struct gkfd_topology *topology;
	struct gkfd_failure failure;
	uint64_t bytes = 0;
	uint32_t n = 0;
	int n_held;

	if (!target || ctx_topology(p->ctx, &topology) < 0 ||
	    gkfd_target_snapshot(target, &entries, &n, &failure) < 0)
		return;
	n_held = process_held(p, &held);
	if (n_held < 0)
		return;
	for (uint32_t i = 0; i < n; i++) {
		const struct kfd_queue_snapshot_entry *e = &entries[i];
		const struct gkfd_node *node = gkfd_topology_find(topology, e->gpu_id);
		uint64_t saved;

		if (!gkfd_type_is_compute(e->queue_type) ||
		    !bsearch(&e->queue_id, held, (size_t)n_held, sizeof(*held), compare_u32))
			continue;
		if (!node || !(node->known & GKFD_NODE_NUM_XCC) ||
		    gkfd_saved_read(p->ctx->k, p->pid, e->ctx_save_restore_address,
				    e->ctx_save_restore_area_size, node->num_xcc, &saved) < 0)
			return;
		bytes += saved;
	}
	t->has_saved = true;
	t->saved_bytes = bytes;
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
	r = p->ctx->vendor->snapshot(p, &queues, &n);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		out_array_add(&out, &queues[i]);
	if (ret_time_ns)
		*ret_time_ns = gpreempt_now_ns(p->ctx);
	return (int)n;
}

EXPORT int gpreempt_is_queue_active(struct gpreempt_process *p, uint32_t queue_id)
{
	_cleanup_free_ struct gpreempt_queue *queues = NULL;
	size_t n = 0;
	int r;

	r = p->ctx->vendor->snapshot(p, &queues, &n);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		if (queues[i].queue_id != queue_id)
			continue;
		/* Where nobody counts work, states say only whether queues are held. */
		if (!(queues[i].valid & GPREEMPT_QUEUE_STATE) || !p->b->caps.counts_progress)
			return ctx_fail(p->ctx, -ENODATA, GPREEMPT_ERROR_FAILED, NULL,
					"what queue %u of process %d does cannot be told", queue_id,
					(int)p->pid);
		return strcmp(queues[i].state, "running") == 0 ||
		       strcmp(queues[i].state, "pending") == 0 ||
		       (strcmp(queues[i].state, "suspended") == 0 && queues[i].pending > 0);
	}
	return ctx_fail_target(
		p->ctx, -EINVAL, p->pid,
		&(struct gkfd_failure){ .why = GKFD_WHY_NO_SUCH_QUEUE, .queue_id = queue_id });
}
