/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "gpu/kfd/progress.h"
#include "lib/internal.h"

/* Sizes are given per XCC; without their number the whole is not known. */
static void set_cwsr(struct gpreempt_ctx *ctx, struct gpreempt_queue *q, uint64_t base,
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

static enum gpreempt_queue_type type_of(uint32_t type)
{
	return type <= GPREEMPT_QUEUE_SDMA_BY_ENGINE ? (enum gpreempt_queue_type)type :
						       GPREEMPT_QUEUE_OTHER;
}

void describe_entry(struct gpreempt_ctx *ctx, struct gpreempt_queue *q, pid_t pid,
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
	set_cwsr(ctx, q, entry->ctx_save_restore_address, entry->ctx_save_restore_area_size);
}

void describe_stats(struct gpreempt_ctx *ctx, struct gpreempt_queue *q, pid_t pid,
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
	set_cwsr(ctx, q, stats->cwsr_base, stats->cwsr_bytes);
}

void describe_mqd(struct gpreempt_ctx *ctx, struct gpreempt_queue *q, const struct gkfd_mqd *mqd)
{
	q->ring_base = mqd->ring_base;
	q->ring_bytes = mqd->ring_bytes;
	q->read_ptr_addr = mqd->read_ptr_addr;
	q->write_ptr_addr = mqd->write_ptr_addr;
	q->priority = mqd->priority;
	q->valid |= GPREEMPT_QUEUE_RING_BASE | GPREEMPT_QUEUE_POINTERS | GPREEMPT_QUEUE_PRIORITY;
	set_cwsr(ctx, q, mqd->cwsr_base, mqd->cwsr_bytes);
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
