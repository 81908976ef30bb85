/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#include "core/policy/common.h"

struct rotate {
	struct gpol_relief relief;
	struct gpol_turn turn;
};
static_assert(sizeof(struct rotate) <= GPOL_STATE_BYTES, "the state of rotate is too large");

/* An online job interrupts a turn; what is left of it, unless next to nothing, is taken after. */
static void observe(void *state, const struct gpol_input *in)
{
	struct rotate *s = state;
	struct gpol_round round = gpol_round(in, false, false);

	gpol_relief_observe(&s->relief, in);
	if (gpol_most_urgent(in, JOB_ONLINE))
		s->turn.paused = true;
	else
		gpol_turn_observe(&s->turn, in, &round);
}

/*
 * Promises that of the offline jobs that can be held only one is on the GPU at a time, and yields
 * at once to an online job; that each with work gets its turn after at most as many turns as there
 * are others with work; and that turns are turn_ns long, or shorter where so many wait that a bound
 * would be passed. Jobs without work are passed over.
 *
 * Where bounds are so short, or online work lasts so long, that a bound is passed all the same, the
 * one whose bound it is runs beside the one whose turn it is.
 *
 * Bad at using a GPU that one job does not fill, and blind to priorities and weights of offline
 * jobs.
 */
static uint64_t decide(const void *state, const struct gpol_input *in, struct gpol_verdict *ret)
{
	const struct rotate *s = state;
	const struct gpol_job *online = gpol_most_urgent(in, JOB_ONLINE);
	struct gpol_round round = gpol_round(in, false, false);

	if (online)
		return gpol_hold_lesser(&s->relief, in, online, ret);
	return gpol_turn_hold_others(&s->turn, &s->relief, in, &round, ret);
}

const struct gpol_ops gpol_rotate = {
	.name = "rotate",
	.summary = "offline jobs take equal turns, one at a time; online work interrupts them",
	.observe = observe,
	.decide = decide,
};
