/* SPDX-License-Identifier: MIT */
/*
 * Work for the processes of a modelled device ("model[:SPEC]"), for trying things out where
 * there is no GPU. On any other device these calls return -EOPNOTSUPP.
 */
#ifndef GPREEMPT_MODEL_H
#define GPREEMPT_MODEL_H

#include <gpreempt/gpreempt.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gpreempt_model_work { /* one kernel */
	size_t size;
	uint32_t workgroups;
	uint32_t wg_per_cu; /* how many fit on a compute unit: 1 fills it */
	uint64_t wg_ns; /* how long one runs */
};

/* Submits a kernel; *ret_index (may be NULL) counts the packets of the queue. Since: 0.1 */
int gpreempt_model_submit(struct gpreempt_ctx *ctx, pid_t pid, uint32_t queue_id,
			  const struct gpreempt_model_work *work, uint64_t *ret_index);

struct gpreempt_model_queue {
	size_t size;
	uint64_t completed; /* packets, in order */
	uint64_t resident; /* workgroups on compute units now */
	uint64_t saved; /* workgroups in the save area now */
	bool suspended;
};

int gpreempt_model_get_queue(struct gpreempt_ctx *ctx, pid_t pid, uint32_t queue_id,
			     struct gpreempt_model_queue *ret); /* Since: 0.1 */

struct gpreempt_model_gpu { /* since the model was made */
	size_t size;
	uint64_t cycles; /* runlist cycles: everything off the GPU and back on */
	uint64_t saved_bytes;
	uint64_t save_ns;
};

int gpreempt_model_get_gpu(struct gpreempt_ctx *ctx, uint32_t index,
			   struct gpreempt_model_gpu *ret); /* Since: 0.1 */

struct gpreempt_model_packet {
	size_t size;
	uint64_t index;
	uint64_t submitted_ns, started_ns, done_ns; /* done 0: not yet */
	uint64_t executed_ns; /* summed over its workgroups */
	uint32_t workgroups;
	uint32_t finished; /* workgroups */
	uint32_t saves; /* how often some of it was saved */
};

/*
 * Packets of a queue from @first on, oldest first; how many were written: none unless the model
 * was opened with "log=1" ("model:mi308x,log=1"). Since: 0.1
 */
int gpreempt_model_get_packets(struct gpreempt_ctx *ctx, pid_t pid, uint32_t queue_id,
			       uint64_t first, struct gpreempt_model_packet *ret, size_t max);

#ifdef __cplusplus
}
#endif

#endif
