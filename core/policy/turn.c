/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#include "core/policy/common.h"

/* A turn with no more than such a part left ends when it is interrupted: it costs nothing then. */
#define LAST_PART 8
#define WORTH_SWITCHES 4 /* a turn is worth having if it is so many times what switching takes */
#define SHORTEST_TURN_NS (1000 * 1000) /* whatever figures are set: nobody is asked all the time */

static uint64_t times(uint64_t a, uint64_t b)
{
	return b && a > GPOL_NEVER / b ? GPOL_NEVER : a * b;
}

/* In whole microseconds and at most half an hour, so that nothing overflows. */
static uint64_t part_of(uint64_t all_ns, uint64_t part, uint64_t whole)
{
	uint64_t all_us = gpol_min(all_ns / 1000, UINT32_MAX / 2);

	return whole ? all_us * part / whole * 1000 : 0;
}

static uint64_t weight(const struct gpol_job *job)
{
	return job->weight ? job->weight : 1;
}

static bool takes_part(const struct gpol_job *job, const struct gpol_round *round)
{
	return job->class == JOB_OFFLINE && job->preemptible &&
	       (!round->guaranteed_only || job->min_permille);
}

struct gpol_round gpol_round(const struct gpol_input *in, bool guaranteed_only, bool weighted)
{
	struct gpol_round r = { .guaranteed_only = guaranteed_only, .weighted = weighted };
	uint64_t switch_ns = gpol_after(in->gpu->suspend_ns, in->gpu->resume_ns);
	uint64_t bound = GPOL_NEVER;

	for (size_t i = 0; i < in->n; i++) {
		const struct gpol_job *job = &in->jobs[i];

		if (!job->has_work || !takes_part(job, &r))
			continue;
		r.jobs++;
		r.weights += weight(job);
		r.minima += job->min_permille;
		if (job->wait_bound_ns)
			bound = gpol_min(bound, job->wait_bound_ns);
	}
	r.all_ns = times(in->params->turn_ns, r.jobs);
	if (bound != GPOL_NEVER)
		r.all_ns = gpol_min(r.all_ns, gpol_elapsed(bound, times(switch_ns, r.jobs)));
	r.worth_ns = gpol_min(times(switch_ns, WORTH_SWITCHES), in->params->turn_ns);
	r.worth_ns = gpol_max(r.worth_ns, SHORTEST_TURN_NS);
	return r;
}

/* How long this job's turn is: its minimum of the round, and its weight's part of the rest. */
static uint64_t slice(const struct gpol_job *job, const struct gpol_round *round)
{
	uint64_t ns, rest;

	if (!round->weighted) {
		ns = round->jobs ? round->all_ns / round->jobs : 0;
	} else if (round->guaranteed_only || round->minima >= 1000) {
		ns = part_of(round->all_ns, job->min_permille, round->minima);
	} else {
		rest = part_of(round->all_ns, 1000 - round->minima, 1000);
		ns = part_of(round->all_ns, job->min_permille, 1000) +
		     part_of(rest, weight(job), round->weights);
	}
	return gpol_max(gpol_min(ns, round->all_ns), round->worth_ns);
}

static const struct gpol_job *holder(const struct gpol_turn *turn, const struct gpol_input *in)
{
	for (size_t i = 0; turn->taken && i < in->n; i++) {
		if (in->jobs[i].id == turn->holder)
			return &in->jobs[i];
	}
	return NULL;
}

/* The one with work that follows @id, round the end of the ids. */
static const struct gpol_job *next_after(uint32_t id, const struct gpol_input *in,
					 const struct gpol_round *round)
{
	const struct gpol_job *best = NULL;

	for (size_t i = 0; i < in->n; i++) {
		const struct gpol_job *job = &in->jobs[i];

		/* Distances wrap: the holder itself is the farthest. */
		if (job->has_work && takes_part(job, round) &&
		    (!best || job->id - id - 1 < best->id - id - 1))
			best = job;
	}
	return best;
}

/* By the clock, or by what it ran where it was interrupted. */
static uint64_t turn_ends(const struct gpol_turn *turn, const struct gpol_job *job,
			  const struct gpol_input *in, const struct gpol_round *round)
{
	uint64_t all = slice(job, round), ran = gpol_elapsed(job->ran_ns, turn->ran_ns);

	return gpol_min(gpol_after(turn->since_ns, all),
			gpol_after(in->now_ns, gpol_elapsed(all, ran)));
}

void gpol_turn_observe(struct gpol_turn *turn, const struct gpol_input *in,
		       const struct gpol_round *round)
{
	const struct gpol_job *job = holder(turn, in);
	const struct gpol_job *next = next_after(turn->holder, in, round);
	bool stays = job && takes_part(job, round) && gpol_needs_gpu(job, in);
	bool rounds = stays && turn->paused && !round->weighted; /* else each is owed its part */
	uint64_t early = rounds ? slice(job, round) / LAST_PART : 0;

	if (turn->paused)
		turn->since_ns = in->now_ns;
	turn->paused = false;
	/* Nobody else waits: the turn may be as long as it likes, and ends when somebody does. */
	if (stays && (!next || next == job ||
		      gpol_after(in->now_ns, early) < turn_ends(turn, job, in, round)))
		return;
	turn->taken = next != NULL;
	if (next)
		*turn = (struct gpol_turn){ in->now_ns, next->ran_ns, next->id, .taken = true };
}

uint64_t gpol_turn_hold_others(const struct gpol_turn *turn, const struct gpol_relief *relief,
			       const struct gpol_input *in, const struct gpol_round *round,
			       struct gpol_verdict *ret)
{
	const struct gpol_job *on = holder(turn, in);
	const struct gpol_job *next = next_after(turn->holder, in, round);
	uint64_t again = GPOL_NEVER;

	gpol_hold_nobody(in, ret);
	if (!on)
		return GPOL_NEVER;
	for (size_t i = 0; i < in->n; i++) {
		const struct gpol_job *job = &in->jobs[i];

		if (job == on || job->class != JOB_OFFLINE)
			continue;
		again = gpol_min(again, gpol_holding_changes(relief, job, in));
		if (gpol_can_be_held(relief, job, in))
			ret[i] = (struct gpol_verdict){ .hold = true, .because = on->id };
	}
	/* Its turn ends for the next, and its lingering for whoever is held for it. */
	if (next && next != on)
		again = gpol_min(again, turn_ends(turn, on, in, round));
	return gpol_min(again, gpol_linger_ends(on, in));
}
