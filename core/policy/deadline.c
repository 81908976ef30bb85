/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#include "core/policy/common.h"

static_assert(sizeof(struct gpol_relief) <= GPOL_STATE_BYTES, "the state of deadline is too large");

/*
 * The last moment at which a preemption still lets the job meet its target; 0: there is none, or
 * nothing to reckon it from. Work that is only announced has all its time before it.
 */
static uint64_t act_by(const struct gpol_job *job, const struct gpol_input *in)
{
	uint64_t needed =
		gpol_after(gpol_after(in->gpu->suspend_ns, job->service_ns), in->params->margin_ns);
	uint64_t arrival = job->has_work ? job->work_since_ns : in->now_ns;

	if (!job->target_ns || !job->service_ns || needed >= job->target_ns)
		return 0;
	return gpol_after(arrival, job->target_ns - needed);
}

/* The most urgent online job that would be late if nothing happened for another @spare_ns. */
static const struct gpol_job *pressing(const struct gpol_input *in, uint64_t spare_ns)
{
	const struct gpol_job *best = NULL;

	for (size_t i = 0; i < in->n; i++) {
		const struct gpol_job *job = &in->jobs[i];

		if (job->class != JOB_ONLINE || !gpol_needs_gpu(job, in) ||
		    act_by(job, in) > gpol_after(in->now_ns, spare_ns))
			continue;
		if (!best || gpol_more_urgent(job, best) ||
		    (!gpol_more_urgent(best, job) && job->id < best->id))
			best = job;
	}
	return best;
}

/* When a job becomes pressing, for those that are on and for those that are held. */
static uint64_t pressing_changes(const struct gpol_input *in)
{
	uint64_t again = GPOL_NEVER;

	for (size_t i = 0; i < in->n; i++) {
		const struct gpol_job *job = &in->jobs[i];
		uint64_t by = act_by(job, in);

		if (job->class != JOB_ONLINE || !job->has_work || by <= in->now_ns ||
		    by == GPOL_NEVER)
			continue;
		again = gpol_min(again, by);
		if (gpol_elapsed(by, in->params->linger_ns) > in->now_ns)
			again = gpol_min(again, by - in->params->linger_ns);
	}
	return again;
}

/* Who is off stays off. */
static uint64_t hold_the_held(const struct gpol_relief *relief, const struct gpol_input *in,
			      const struct gpol_job *top, struct gpol_verdict *ret)
{
	uint64_t again = gpol_hold_lesser(relief, in, top, ret);

	for (size_t i = 0; i < in->n; i++) {
		if (!in->jobs[i].held)
			ret[i] = (struct gpol_verdict){ .hold = false, .because = GPOL_NOBODY };
	}
	return again;
}

/*
 * Promises that an online job with a target has the GPU to itself when it needs to be in order to
 * be done in time, by the best knowledge of its service time and of what a suspend takes, with
 * margin_ns to spare; and that until then nobody is held for it. Without a target, or without a
 * known service time, it is served as priority does; so are offline jobs among themselves. What is
 * held is not let go for less than linger_ns.
 *
 * Bad where service times vary: a burst longer than the estimate is late. Requests that queue up
 * behind each other count as one burst, whose target is that of the first. And a job that is let
 * alone shares the GPU until the last moment, so that all its requests take about its target.
 */
static uint64_t decide(const void *state, const struct gpol_input *in, struct gpol_verdict *ret)
{
	const struct gpol_job *now = pressing(in, 0);
	const struct gpol_job *soon = pressing(in, in->params->linger_ns);
	const struct gpol_job *offline = gpol_most_urgent(in, JOB_OFFLINE);
	uint64_t again = GPOL_NEVER;

	if (now)
		again = gpol_hold_lesser(state, in, now, ret);
	else if (soon)
		again = hold_the_held(state, in, soon, ret);
	else if (offline)
		again = gpol_hold_lesser(state, in, offline, ret);
	else
		gpol_hold_nobody(in, ret);
	return gpol_min(again, pressing_changes(in));
}

const struct gpol_ops gpol_deadline = {
	.name = "deadline",
	.summary = "offline work goes on until an online job would miss its latency target",
	.observe = gpol_relief_observe,
	.decide = decide,
};
