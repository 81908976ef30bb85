/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "gpu/kfd/progress.h"
#include "lib/describe.h"
#include "lib/lookalike.h"

static int compare_kinds(const void *a, const void *b)
{
	const struct gpreempt_queue *x = &((const struct lookalike *)a)->common;
	const struct gpreempt_queue *y = &((const struct lookalike *)b)->common;

	if (x->gpu_id != y->gpu_id)
		return x->gpu_id < y->gpu_id ? -1 : 1;
	return x->ring_bytes < y->ring_bytes ? -1 : x->ring_bytes > y->ring_bytes;
}

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

static struct lookalike *find(const struct lookalikes *l, uint32_t gpu_id, uint64_t ring_bytes)
{
	struct lookalike key = { .common = { .gpu_id = gpu_id, .ring_bytes = ring_bytes } };

	if (l->n == 0)
		return NULL;
	return bsearch(&key, l->kinds, l->n, sizeof(*l->kinds), compare_kinds);
}

/* One entry per kind out of one per descriptor; @l is sorted. */
static void merge(struct lookalikes *l)
{
	size_t kept = 0;

	for (size_t i = 0; i < l->n; i++) {
		struct lookalike *last = kept ? &l->kinds[kept - 1] : NULL;

		if (last && compare_kinds(last, &l->kinds[i]) == 0) {
			keep_common(&last->common, &l->kinds[i].common);
			last->mqds++;
		} else {
			l->kinds[kept++] = l->kinds[i];
		}
	}
	l->n = kept;
}

static void count_ids(struct lookalikes *l, const struct gkfd_proc *proc)
{
	for (size_t i = 0; i < proc->n_queues; i++) {
		const struct gkfd_proc_queue *q = &proc->queues[i];
		struct lookalike *kind = find(l, q->gpu_id, q->ring_bytes);

		if (kind && gkfd_type_is_compute(q->type))
			kind->ids++;
	}
}

static int look(struct gpreempt_ctx *ctx, pid_t pid, const struct gkfd_mqd *mqds, size_t n,
		struct lookalike *kinds)
{
	_cleanup_free_ struct gkfd_queue_addr *addrs = calloc(n, sizeof(*addrs));
	_cleanup_free_ struct gkfd_progress *progress = calloc(n, sizeof(*progress));

	if (!addrs || !progress)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		addrs[i] = gkfd_mqd_addr(&mqds[i]);
	/* Memory of another user's process cannot be read: state and indices stay unknown. */
	if (gkfd_progress_read(ctx->k, pid, addrs, n, progress) < 0)
		return 0;
	for (size_t i = 0; i < n; i++)
		describe_progress(&kinds[i].common, &progress[i]);
	return 0;
}

int lookalikes_init(struct gpreempt_ctx *ctx, struct lookalikes *l, const struct gkfd_proc *proc,
		    const struct gkfd_mqds *mqds)
{
	const struct gkfd_mqd *first;
	size_t n = mqds_of(mqds, proc->pid, &first);
	int r;

	*l = (struct lookalikes){ 0 };
	if (n == 0)
		return 0;
	l->kinds = calloc(n, sizeof(*l->kinds));
	if (!l->kinds)
		return -ENOMEM;
	l->n = n;
	for (size_t i = 0; i < n; i++) {
		l->kinds[i].mqds = 1;
		l->kinds[i].common.gpu_id = first[i].gpu_id;
		describe_mqd(ctx, &l->kinds[i].common, &first[i]);
	}
	r = look(ctx, proc->pid, first, n, l->kinds);
	if (r < 0) {
		lookalikes_done(l);
		return r;
	}
	qsort(l->kinds, n, sizeof(*l->kinds), compare_kinds);
	merge(l);
	count_ids(l, proc);
	return 0;
}

void lookalikes_apply(const struct lookalikes *l, struct gpreempt_queue *q)
{
	const struct lookalike *kind = find(l, q->gpu_id, q->ring_bytes);
	struct gpreempt_queue known;

	/* As many descriptors as ids, or one of them is not of this kind after all. */
	if (!kind || kind->ids != kind->mqds || q->type != GPREEMPT_QUEUE_COMPUTE)
		return;
	known = kind->common;
	known.size = q->size;
	known.pid = q->pid;
	known.queue_id = q->queue_id;
	known.type = q->type;
	known.job_class = q->job_class;
	*q = known;
}

void lookalikes_done(struct lookalikes *l)
{
	free(l->kinds);
	*l = (struct lookalikes){ 0 };
}
