/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "lib/internal.h"

struct gpreempt_monitor {
	struct gpreempt_process *process;
	struct gpreempt_queue *queues; /* of the last sample */
	struct analysis analysis;
};

EXPORT int gpreempt_monitor_new(struct gpreempt_process *p, struct gpreempt_monitor **ret)
{
	struct gpreempt_monitor *mon;
	int r = ctx_needs(p->ctx, GPREEMPT_HAS_PROGRESS, "progress of its queues to be watched",
			  "see them as they are with: gpreempt queues PID");

	if (r < 0)
		return r;
	mon = calloc(1, sizeof(*mon));
	if (!mon)
		return ctx_fail_errno(p->ctx, -ENOMEM, "monitor");
	mon->process = p;
	*ret = mon;
	return 0;
}

EXPORT struct gpreempt_monitor *gpreempt_monitor_free(struct gpreempt_monitor *mon)
{
	if (!mon)
		return NULL;
	analysis_done(&mon->analysis);
	free(mon->queues);
	free(mon);
	return NULL;
}

EXPORT int gpreempt_monitor_sample(struct gpreempt_monitor *mon,
				   const struct gpreempt_queue **ret_queues, uint64_t *ret_time_ns)
{
	_cleanup_free_ struct gpreempt_queue *queues = NULL;
	size_t n = 0;
	int r;

	r = mon->process->ctx->vendor->snapshot(mon->process, &queues, &n);
	if (r < 0)
		return r;
	r = analysis_add(&mon->analysis, queues, n);
	if (r < 0)
		return ctx_fail_errno(mon->process->ctx, r, "monitor");
	free(mon->queues);
	mon->queues = steal_ptr(&queues);
	if (ret_queues)
		*ret_queues = mon->queues;
	if (ret_time_ns)
		*ret_time_ns = gpreempt_now_ns(mon->process->ctx);
	return (int)n;
}

EXPORT int gpreempt_monitor_stats(struct gpreempt_monitor *mon, struct gpreempt_stats *ret)
{
	struct gpreempt_stats stats;
	int r;

	r = out_check(&mon->process->ctx->last, ret, UP_TO(struct gpreempt_stats, advice));
	if (r < 0)
		return r;
	if (mon->analysis.samples == 0)
		return ctx_fail(mon->process->ctx, -ENODATA, GPREEMPT_ERROR_USAGE,
				"take a sample first", "there is no sample yet");
	analysis_stats(&mon->analysis, &stats);
	return out_struct(ret, &stats);
}
