/* SPDX-License-Identifier: MIT */
/*
 * sysfs knows the ids of a process's queues, debugfs their contents, and neither says which is
 * which. Queues of one process on one GPU with rings of one size look alike; what all
 * descriptors of such a kind have in common is true of every queue of that kind.
 */
#ifndef GPREEMPT_LIB_LOOKALIKE_H
#define GPREEMPT_LIB_LOOKALIKE_H

#include "lib/internal.h"

struct lookalike {
	struct gpreempt_queue common; /* gpu_id and ring_bytes name the kind */
	size_t mqds, ids;
};

struct lookalikes {
	struct lookalike *kinds; /* sorted */
	size_t n;
};

int lookalikes_init(struct gpreempt_ctx *ctx, struct lookalikes *l, const struct gkfd_proc *proc,
		    const struct gkfd_mqds *mqds);
/* Fills in what is known of @q, a queue of the process. */
void lookalikes_apply(const struct lookalikes *l, struct gpreempt_queue *q);
void lookalikes_done(struct lookalikes *l);

#endif
