/* SPDX-License-Identifier: MIT */
#include "gpu/model/model.h"

#include <errno.h>

#include "gpreempt/model.h"
#include "gpu/soft/transport.h"
#include "lib/internal.h"

/* One of our own. Tracer threads use it too: to be given back soon. */
static int model_take(struct gpreempt_ctx *ctx, struct model **ret)
{
	if (!ctx->alone)
		return ctx_fail(ctx, -EOPNOTSUPP, GPREEMPT_ERROR_REFUSED, "open \"model\"",
				"only a model can do this");
	*ret = model_transport_lock(ctx->k->data);
	return 0;
}

static void model_give(struct gpreempt_ctx *ctx)
{
	model_transport_unlock(ctx->k->data);
}

uint64_t model_save_ns(struct gpreempt_ctx *ctx)
{
	struct model_gpu_stats stats;
	struct model *m;
	uint64_t sum = 0;

	if (!ctx->alone)
		return soft_save_ns(ctx->k->data);
	m = model_transport_lock(ctx->k->data);
	for (uint32_t i = 0; model_gpu_stats(m, i, &stats) >= 0; i++)
		sum += stats.save_ns;
	model_give(ctx);
	return sum;
}

EXPORT int gpreempt_model_submit(struct gpreempt_ctx *ctx, pid_t pid, uint32_t queue_id,
				 const struct gpreempt_model_work *work, uint64_t *ret_index)
{
	struct gpreempt_model_work w = { .size = sizeof(w) };
	struct model *m = NULL;
	uint64_t index = 0;
	int r;

	r = in_struct(&ctx->last, &w, work, UP_TO(struct gpreempt_model_work, wg_ns));
	if (r >= 0)
		r = model_take(ctx, &m);
	if (r < 0)
		return r;
	r = model_submit(m, pid, queue_id,
			 &(struct model_work){ .workgroups = w.workgroups,
					       .wg_ns = w.wg_ns,
					       .wg_per_cu = w.wg_per_cu ? w.wg_per_cu : 1,
					       .signal = true },
			 &index);
	model_give(ctx);
	if (r < 0)
		return ctx_fail_errno(ctx, r, "submitting to the model");
	if (ret_index)
		*ret_index = index;
	return 0;
}

EXPORT int gpreempt_model_get_queue(struct gpreempt_ctx *ctx, pid_t pid, uint32_t queue_id,
				    struct gpreempt_model_queue *ret)
{
	struct model *m = NULL;
	struct model_queue_stats stats;
	int r;

	r = out_check(&ctx->last, ret, UP_TO(struct gpreempt_model_queue, suspended));
	if (r >= 0)
		r = model_take(ctx, &m);
	if (r < 0)
		return r;
	r = model_queue_stats(m, pid, queue_id, &stats);
	model_give(ctx);
	if (r < 0)
		return ctx_fail_target(ctx, r, pid,
				       &(struct gkfd_failure){ .why = GKFD_WHY_NO_SUCH_QUEUE,
							       .queue_id = queue_id });
	return out_struct(ret, &(struct gpreempt_model_queue){ .size = sizeof(*ret),
							       .completed = stats.completed,
							       .resident = stats.resident,
							       .saved = stats.saved,
							       .suspended = stats.suspended });
}

EXPORT int gpreempt_model_get_gpu(struct gpreempt_ctx *ctx, uint32_t index,
				  struct gpreempt_model_gpu *ret)
{
	struct model *m = NULL;
	struct model_gpu_stats stats;
	int r;

	r = out_check(&ctx->last, ret, UP_TO(struct gpreempt_model_gpu, save_ns));
	if (r >= 0)
		r = model_take(ctx, &m);
	if (r < 0)
		return r;
	r = model_gpu_stats(m, index, &stats);
	model_give(ctx);
	if (r < 0)
		return ctx_fail(ctx, r, GPREEMPT_ERROR_ABSENT, NULL, "the model has no GPU %u",
				index);
	return out_struct(ret, &(struct gpreempt_model_gpu){ .size = sizeof(*ret),
							     .cycles = stats.cycles,
							     .saved_bytes = stats.saved_bytes,
							     .save_ns = stats.save_ns });
}

EXPORT int gpreempt_model_get_packets(struct gpreempt_ctx *ctx, pid_t pid, uint32_t queue_id,
				      uint64_t first, struct gpreempt_model_packet *ret, size_t max)
{
	_cleanup_free_ struct model_packet *packets = NULL;
	struct out_array out;
	struct model *m = NULL;
	size_t n;
	int r;

	r = out_array_init(&ctx->last, &out, ret, max, UP_TO(struct gpreempt_model_packet, saves));
	if (r < 0)
		return r;
	packets = calloc(max ? max : 1, sizeof(*packets));
	if (!packets)
		return ctx_fail_errno(ctx, -ENOMEM, "packets");
	r = model_take(ctx, &m);
	if (r < 0)
		return r;
	n = model_packets(m, pid, queue_id, first, packets, max);
	model_give(ctx);
	for (size_t i = 0; i < n; i++)
		out_array_add(&out, &(struct gpreempt_model_packet){
					    .size = sizeof(*ret),
					    .index = packets[i].index,
					    .submitted_ns = packets[i].submitted_ns,
					    .started_ns = packets[i].started_ns,
					    .done_ns = packets[i].done_ns,
					    .executed_ns = packets[i].executed_ns,
					    .workgroups = packets[i].workgroups,
					    .finished = packets[i].finished,
					    .saves = packets[i].saves,
				    });
	return (int)n;
}
