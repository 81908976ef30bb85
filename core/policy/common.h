/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What policies have in common beside gpol.h: reckoning with times that may be anything, keeping
 * the promise of a bounded wait, and taking turns.
 */
#ifndef GPREEMPT_CORE_POLICY_COMMON_H
#define GPREEMPT_CORE_POLICY_COMMON_H

#include "core/policy/gpol.h"

static inline uint64_t gpol_elapsed(uint64_t now_ns, uint64_t since_ns)
{
	return now_ns > since_ns ? now_ns - since_ns : 0;
}

static inline uint64_t gpol_after(uint64_t at_ns, uint64_t duration_ns)
{
	return at_ns > GPOL_NEVER - duration_ns ? GPOL_NEVER : at_ns + duration_ns;
}

static inline uint64_t gpol_min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t gpol_max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* ---- a bounded wait ---- */

/*
 * Jobs that waited for as long as they have to are let go, whoever needs the GPU, and stay on for
 * turn_ns: a turn cut short is all cost. A latency-critical job waits out such a turn as well, for
 * a promise that the urgent can break promises nothing; who cannot bear it sets a longer bound.
 */
struct gpol_relief {
	uint64_t from_ns; /* who is let go from then on may have been let go for its bound */
	uint64_t until_ns; /* and may stay on until then */
};

/* Part of observe, or all of it where @relief is all the state there is. */
void gpol_relief_observe(void *relief, const struct gpol_input *in);

/*
 * An offline job can be held, nothing speaks for it, and there is a point in it: it is about to use
 * the GPU, or it is off already and letting it go would only cost.
 */
bool gpol_can_be_held(const struct gpol_relief *relief, const struct gpol_job *job,
		      const struct gpol_input *in);
/* When gpol_can_be_held() has another answer if nothing else changes, or GPOL_NEVER. */
uint64_t gpol_holding_changes(const struct gpol_relief *relief, const struct gpol_job *job,
			      const struct gpol_input *in);

/*
 * Verdicts of an inversion: all that can be held and are less urgent than @top make room for it.
 * Returns when to look again.
 */
uint64_t gpol_hold_lesser(const struct gpol_relief *relief, const struct gpol_input *in,
			  const struct gpol_job *top, struct gpol_verdict *ret);

/* ---- turns ---- */

/* Whose turn it is. Jobs follow each other by id. */
struct gpol_turn {
	uint64_t since_ns; /* the holder has been free to run at a stretch since then */
	uint64_t ran_ns; /* the holder's, when its turn began */
	uint32_t holder; /* without one: the last there was */
	bool taken;
	bool paused; /* set by observe where the holder is not free to run: the turn stands still */
};

/* Among whom turns are taken, and how long they are. */
struct gpol_round {
	bool guaranteed_only; /* only jobs with a guaranteed minimum, by that */
	bool weighted; /* turns are of different length */
	uint32_t jobs; /* that have work */
	uint64_t weights, minima; /* their sums */
	uint64_t all_ns; /* what the turns of all of them take */
	uint64_t worth_ns; /* no turn is shorter */
};

/* With work of offline jobs that can be held; kept within the shortest of their bounds. */
struct gpol_round gpol_round(const struct gpol_input *in, bool guaranteed_only, bool weighted);
/* The turn goes on, ends, or passes to the next with work. Part of observe. */
void gpol_turn_observe(struct gpol_turn *turn, const struct gpol_input *in,
		       const struct gpol_round *round);
/* Verdicts: all that can be held make room for the holder. Returns when to look again. */
uint64_t gpol_turn_hold_others(const struct gpol_turn *turn, const struct gpol_relief *relief,
			       const struct gpol_input *in, const struct gpol_round *round,
			       struct gpol_verdict *ret);

#endif
