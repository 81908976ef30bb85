/* SPDX-License-Identifier: MIT */
/* A policy of one's own; docs/policies.md walks through it. */
#include "core/policy/common.h"
#include "docs/examples/policy.h"

struct neediest {
	struct gpol_relief relief; /* keeps the promise of a bounded wait */
	uint64_t since_ns; /* the turn began */
	uint32_t on; /* whose it is; meaningful when taken */
	bool taken;
};
static_assert(sizeof(struct neediest) <= GPOL_STATE_BYTES, "the state of neediest is too large");

/* What it got of the time it wanted, in thousandths; a job that is new got nothing yet. */
static uint64_t served(const struct gpol_job *job)
{
	uint64_t wanted_us = job->wanted_ns / 1000;

	return wanted_us ? job->ran_ns / wanted_us : 0;
}

static bool takes_part(const struct gpol_job *job)
{
	return job->class == JOB_OFFLINE && job->preemptible;
}

/* Of equals the one with the lower id, so that the order of the array decides nothing. */
static const struct gpol_job *least_served(const struct gpol_input *in)
{
	const struct gpol_job *best = NULL;

	for (size_t i = 0; i < in->n; i++) {
		const struct gpol_job *job = &in->jobs[i];

		if (!takes_part(job) || !job->has_work)
			continue;
		if (!best || served(job) < served(best) ||
		    (served(job) == served(best) && job->id < best->id))
			best = job;
	}
	return best;
}

static const struct gpol_job *whose_turn(const struct neediest *s, const struct gpol_input *in)
{
	for (size_t i = 0; s->taken && i < in->n; i++) {
		if (in->jobs[i].id == s->on && takes_part(&in->jobs[i]) &&
		    gpol_needs_gpu(&in->jobs[i], in))
			return &in->jobs[i];
	}
	return NULL;
}

/* All memory is here. A turn ends by the clock, or when its holder needs the GPU no more. */
static void observe(void *state, const struct gpol_input *in)
{
	struct neediest *s = state;
	const struct gpol_job *next = least_served(in);

	gpol_relief_observe(&s->relief, in);
	if (whose_turn(s, in) && gpol_elapsed(in->now_ns, s->since_ns) < in->params->turn_ns)
		return;
	s->taken = next != NULL;
	s->on = next ? next->id : 0;
	s->since_ns = next ? in->now_ns : 0;
}

/*
 * Promises that online jobs have the GPU to themselves, and that one offline job is on at a time:
 * at the beginning of each turn the one that got the least of what it wanted. Nobody waits past its
 * bound. Bad at using a GPU that one job does not fill, and blind to priorities and weights.
 */
static uint64_t decide(const void *state, const struct gpol_input *in, struct gpol_verdict *ret)
{
	const struct neediest *s = state;
	const struct gpol_job *online = gpol_most_urgent(in, JOB_ONLINE), *on = whose_turn(s, in);
	uint64_t again = GPOL_NEVER;

	gpol_hold_nobody(in, ret);
	if (on)
		again = gpol_min(gpol_after(s->since_ns, gpol_max(in->params->turn_ns, 1)),
				 gpol_linger_ends(on, in));
	if (online)
		return gpol_min(again, gpol_hold_lesser(&s->relief, in, online, ret));
	for (size_t i = 0; on && i < in->n; i++) {
		const struct gpol_job *job = &in->jobs[i];

		if (job == on || job->class != JOB_OFFLINE)
			continue;
		again = gpol_min(again, gpol_holding_changes(&s->relief, job, in));
		if (gpol_can_be_held(&s->relief, job, in))
			ret[i] = (struct gpol_verdict){ .hold = true, .because = on->id };
	}
	return again;
}

const struct gpol_ops gpol_neediest = {
	.name = "neediest",
	.summary = "online first; of offline jobs the one that got the least of what it wanted",
	.observe = observe,
	.decide = decide,
};
