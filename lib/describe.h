/* SPDX-License-Identifier: MIT */
/* Filling in a queue's fields from what each source knows. */
#ifndef GPREEMPT_LIB_DESCRIBE_H
#define GPREEMPT_LIB_DESCRIBE_H

#include "abi/kfd_gpreempt.h"
#include "lib/internal.h"

void describe_entry(struct gpreempt_ctx *ctx, struct gpreempt_queue *q, pid_t pid,
		    const struct kfd_queue_snapshot_entry *entry);
void describe_stats(struct gpreempt_ctx *ctx, struct gpreempt_queue *q, pid_t pid,
		    const struct kfd_gpreempt_queue *stats);
void describe_mqd(struct gpreempt_ctx *ctx, struct gpreempt_queue *q, const struct gkfd_mqd *mqd);
/*
 * What can be told from the memory of the process; @queues with their addresses. Memory that cannot
 * be read tells nothing, which is not a failure.
 */
int describe_progress(struct gpreempt_ctx *ctx, pid_t pid, struct gpreempt_queue *queues, size_t n);

#endif
