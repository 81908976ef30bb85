/* SPDX-License-Identifier: MIT */
#include "gpu/model/model.h"

#include <errno.h>

#include "gpreempt/model.h"
#include "lib/internal.h"
#include "lib/model_stats.h"

/* NULL on hardware. */
static struct model *model_of(struct gpreempt_ctx *ctx)
{
	return gpreempt_is_modelled(ctx) ? model_transport_get(ctx->k->data) : NULL;
}

static int fail_not_a_model(struct gpreempt_ctx *ctx)
{
	return ctx_fail(ctx, -EOPNOTSUPP, GPREEMPT_ERROR_REFUSED, "open \"model\"",
			"only a model can do this");
}

uint64_t model_save_ns(struct gpreempt_ctx *ctx)
{
	struct model *m = model_of(ctx);
	struct model_gpu_stats stats;
	uint64_t sum = 0;

	for (uint32_t i = 0; m && model_gpu_stats(m, i, &stats) >= 0; i++)
		sum += stats.save_ns;
	return sum;
}

EXPORT int gpreempt_model_submit(struct gpreempt_ctx *ctx, pid_t pid, uint32_t queue_id,
				 const struct gpreempt_model_work *work, uint64_t *ret_index)
{
	struct gpreempt_model_work w = { .size = sizeof(w) };
	struct model *m = model_of(ctx);
	uint64_t index = 0;
	int r;

	if (!m)
		return fail_not_a_model(ctx);
	in_struct(&w, work);
	r = model_submit(m, pid, queue_id,
			 &(struct model_work){ .workgroups = w.workgroups,
					       .wg_ns = w.wg_ns,
					       .wg_per_cu = w.wg_per_cu ? w.wg_per_cu : 1,
					       .signal = true },
			 &index);
	if (r < 0)
		return ctx_fail_errno(ctx, r, "submitting to the model");
	if (ret_index)
		*ret_index = index;
	return 0;
}

EXPORT int gpreempt_model_get_queue(struct gpreempt_ctx *ctx, pid_t pid, uint32_t queue_id,
				    struct gpreempt_model_queue *ret)
{
	struct model *m = model_of(ctx);
	struct model_queue_stats stats;
	int r;

	if (!m)
		return fail_not_a_model(ctx);
	r = model_queue_stats(m, pid, queue_id, &stats);
	if (r < 0)
		return ctx_fail_target(ctx, r, pid,
				       &(struct gkfd_failure){ .why = GKFD_WHY_NO_SUCH_QUEUE,
							       .queue_id = queue_id });
	out_struct(ret, &(struct gpreempt_model_queue){ .size = sizeof(*ret),
							.completed = stats.completed,
							.resident = stats.resident,
							.saved = stats.saved,
							.suspended = stats.suspended });
	return 0;
}

EXPORT int gpreempt_model_get_gpu(struct gpreempt_ctx *ctx, uint32_t index,
				  struct gpreempt_model_gpu *ret)
{
	struct model *m = model_of(ctx);
	struct model_gpu_stats stats;
	int r;

	if (!m)
		return fail_not_a_model(ctx);
	r = model_gpu_stats(m, index, &stats);
	if (r < 0)
		return ctx_fail(ctx, r, GPREEMPT_ERROR_ABSENT, NULL, "the model has no GPU %u",
				index);
	out_struct(ret, &(struct gpreempt_model_gpu){ .size = sizeof(*ret),
						      .cycles = stats.cycles,
						      .saved_bytes = stats.saved_bytes,
						      .save_ns = stats.save_ns });
	return 0;
}

EXPORT int gpreempt_model_get_packets(struct gpreempt_ctx *ctx, pid_t pid, uint32_t queue_id,
				      uint64_t first, struct gpreempt_model_packet *ret, size_t max)
{
	struct model *m = model_of(ctx);
	_cleanup_free_ struct model_packet *packets = NULL;
	struct out_array out;
	size_t n;
	int r;

	if (!m)
		return fail_not_a_model(ctx);
	r = out_array_init(ctx, &out, ret, max);
	if (r < 0)
		return r;
	packets = calloc(max ? max : 1, sizeof(*packets));
	if (!packets)
		return ctx_fail_errno(ctx, -ENOMEM, "packets");
	n = model_packets(m, pid, queue_id, first, packets, max);
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
