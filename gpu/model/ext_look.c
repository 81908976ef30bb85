/* SPDX-License-Identifier: MIT */
/* What can be seen of the driver's book-keeping through the extension. */
#include <errno.h>
#include <string.h>

#include "gpu/model/driver.h"

#define MAX_STATS 8192u

static uint32_t hqd_flags(const struct model_gpu *gpu)
{
	bool mes = model_is_mes(gpu);

	return (mes ? KFD_GPREEMPT_HQD_MES : 0) |
	       (gpu->reset_pending ? KFD_GPREEMPT_HQD_HANG : 0) |
	       (model_ext_is_stopped(gpu) ? KFD_GPREEMPT_HQD_STOPPED : 0) |
	       (!mes && gpu->oversubscribed ? KFD_GPREEMPT_HQD_OVERSUBSCRIBED : 0);
}

void model_ext_fill_hqd(const struct model_gpu *gpu, struct kfd_gpreempt_hqd *ret)
{
	struct gpu_counts n = model_gpu_count(gpu);

	*ret = (struct kfd_gpreempt_hqd){
		.gpu_id = gpu->id,
		.total = gpu->m->config.chip->n_cp_queues,
		.active_compute = n.compute,
		.active = n.active,
		.active_sum = n.active,
		.queues = gpu->total_queues,
		.processes = model_gpu_processes(gpu),
		.gws = n.gws,
		.held = n.held,
		.flags = hqd_flags(gpu),
	};
}

int model_ext_hqd(struct ext_call *c, void *data)
{
	struct kfd_gpreempt_hqd *a = data;
	const struct model_gpu *gpu = model_gpu_by_id(c->m, a->gpu_id);

	if (!gpu)
		return -ENODEV;
	model_ext_fill_hqd(gpu, a);
	return 0;
}

static uint32_t queue_flags(const struct model_queue *q, uint64_t owner)
{
	const struct ext_queue *s = &q->ext;
	bool mine = s->holds[EXT_HOLDER].owner == owner || s->holds[EXT_ITSELF].owner == owner;

	return (q->is_active ? KFD_GPREEMPT_QUEUE_ACTIVE : 0) |
	       (q->is_evicted ? KFD_GPREEMPT_QUEUE_EVICTED : 0) |
	       (q->is_suspended ? KFD_GPREEMPT_QUEUE_SUSPENDED : 0) |
	       (s->reasons & EXT_BY(EXT_HOLDER) ? KFD_GPREEMPT_QUEUE_HELD : 0) |
	       (s->reasons & EXT_BY(EXT_ITSELF) ? KFD_GPREEMPT_QUEUE_HELD_SELF : 0) |
	       (s->reasons & EXT_BY_STOP ? KFD_GPREEMPT_QUEUE_STOPPED : 0) |
	       (q->is_gws ? KFD_GPREEMPT_QUEUE_GWS : 0) | (mine ? KFD_GPREEMPT_QUEUE_MINE : 0);
}

static const struct ext_file *stopper(const struct model_gpu *gpu)
{
	for (const struct ext_file *f = gpu->m->ext.files; f; f = f->next)
		if (f->stops[gpu->index].count)
			return f;
	return NULL;
}

/* Whoever must end for it to run; of several one, and the next when that one has ended. */
static pid_t preempted_by(const struct model_queue *q)
{
	const struct ext_file *f = NULL;

	if (q->ext.reasons & EXT_BY(EXT_HOLDER))
		f = model_ext_find_file(q->gpu->m, q->ext.holds[EXT_HOLDER].owner);
	else if (q->ext.reasons & EXT_BY_STOP)
		f = stopper(q->gpu);
	return f ? f->pid : q->ext.by;
}

static void fill_queue(const struct model_queue *q, uint64_t owner, struct kfd_gpreempt_queue *ret)
{
	const struct ext_queue *s = &q->ext;
	uint64_t now_ns = model_now_ns(q->gpu->m);

	*ret = (struct kfd_gpreempt_queue){
		.ring_base = q->ring_base,
		.write_ptr = q->write_ptr,
		.read_ptr = q->read_ptr,
		.cwsr_base = q->cwsr_base,
		.queue_id = q->id,
		.gpu_id = q->gpu->id,
		.ring_bytes = q->ring_bytes,
		.type = model_queue_user_type(q),
		.cwsr_bytes = q->cwsr_bytes,
		.priority = q->priority,
		.percent = q->percent,
		.flags = queue_flags(q, owner),
		.preemptions = s->preemptions,
		.preempted_by = (uint32_t)preempted_by(q),
		.held_ns = s->held_ns + (s->since_ns ? now_ns - s->since_ns : 0),
		.last_latency_ns = s->last_latency_ns,
		.max_latency_ns = s->max_latency_ns,
	};
}

int model_ext_stats(struct ext_call *c, void *data)
{
	struct kfd_gpreempt_stats *a = data;
	uint32_t room = MIN(a->n, MAX_STATS), n = 0;
	int r;

	for (const struct model_queue *q = c->target->queues; q; q = q->next, n++) {
		struct kfd_gpreempt_queue out;

		if (n >= room)
			continue;
		fill_queue(q, c->file->id, &out);
		r = model_copy_to_user(c->m, a->queues + n * sizeof(out), &out, sizeof(out));
		if (r < 0)
			return r;
	}
	a->n = n;
	return 0;
}
