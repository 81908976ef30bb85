/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#include "core/policy/common.h"

#define MAX_GUARANTEED 900 /* permille: all minima together, where an online job needs the GPU */
#define LONGEST_NS (1ull << 40) /* a longer time counts as this: nothing overflows */

/*
 * While an online job needs the GPU, the offline jobs with a guaranteed minimum earn time on it,
 * and are let on for as long as the ceiling allows whenever they have earned that much.
 */
struct share {
	struct gpol_relief relief;
	struct gpol_turn turn;
	uint64_t seen_ns; /* the last observation */
	uint64_t owed; /* thousandths of nanoseconds */
	bool open; /* what is owed is being paid */
	bool on; /* offline jobs have been free to run since the last observation */
	uint16_t minima; /* permille, of those that had work then */
};
static_assert(sizeof(struct share) <= GPOL_STATE_BYTES, "the state of share is too large");

static uint64_t guaranteed(const struct gpol_round *round)
{
	return gpol_min(round->minima, MAX_GUARANTEED);
}

/* What is paid at once: no more than makes an online job wait for the ceiling, all told. */
static uint64_t full(const struct gpol_input *in, const struct gpol_round *round)
{
	uint64_t window_ns = gpol_elapsed(in->params->ceiling_ns, in->gpu->suspend_ns);

	return gpol_min(window_ns, LONGEST_NS) * (1000 - guaranteed(round));
}

static void keep_accounts(struct share *s, const struct gpol_input *in,
			  const struct gpol_round *round)
{
	uint64_t passed = s->seen_ns ? gpol_elapsed(in->now_ns, s->seen_ns) : 0;

	passed = gpol_min(passed, LONGEST_NS);
	if (s->on)
		s->owed = gpol_elapsed(s->owed, passed * (1000u - s->minima));
	else
		s->owed += passed * s->minima;
	s->minima = (uint16_t)guaranteed(round);
	s->owed = s->minima ? gpol_min(s->owed, full(in, round)) : 0;
	s->seen_ns = in->now_ns;
}

static void observe(void *state, const struct gpol_input *in)
{
	struct share *s = state;
	bool online = gpol_most_urgent(in, JOB_ONLINE) != NULL;
	struct gpol_round round = gpol_round(in, online, true);

	gpol_relief_observe(&s->relief, in);
	keep_accounts(s, in, &round);
	s->open = s->owed && (s->open || s->owed == full(in, &round));
	s->on = !online || s->open;
	if (s->on)
		gpol_turn_observe(&s->turn, in, &round);
	else
		s->turn.paused = true;
}

/* When observe would open or shut what is owed. */
static uint64_t accounts_change(const struct share *s, const struct gpol_input *in,
				const struct gpol_round *round)
{
	uint64_t minima = guaranteed(round), left, rate;

	if (!minima || !full(in, round))
		return GPOL_NEVER;
	left = s->open ? s->owed : full(in, round) - s->owed;
	rate = s->open ? 1000 - minima : minima;
	return gpol_after(in->now_ns, (left + rate - 1) / rate);
}

/*
 * Promises offline jobs with work turns in proportion: of each round its min_permille, and of what
 * the minima leave its weight's part. One is on at a time. Online jobs have the GPU to themselves,
 * but for what the minima demand: in the long run each offline job with work has at least its
 * min_permille, paid in pieces that make no online job wait for room longer than ceiling_ns. A
 * ceiling shorter than a suspend takes pays nothing. All minima together count for 900 at most.
 *
 * A turn is no shorter than what makes switching worth its cost, so that a very small weight gets
 * somewhat more than its part.
 *
 * Bad at using a GPU that one job does not fill, and at tails: with minima set, some online
 * requests wait for the whole ceiling.
 */
static uint64_t decide(const void *state, const struct gpol_input *in, struct gpol_verdict *ret)
{
	const struct share *s = state;
	const struct gpol_job *online = gpol_most_urgent(in, JOB_ONLINE);
	struct gpol_round round = gpol_round(in, online != NULL, true);
	uint64_t again;

	if (!online)
		return gpol_turn_hold_others(&s->turn, &s->relief, in, &round, ret);
	if (s->open)
		again = gpol_turn_hold_others(&s->turn, &s->relief, in, &round, ret);
	else
		again = gpol_hold_lesser(&s->relief, in, online, ret);
	again = gpol_min(again, gpol_linger_ends(online, in));
	return gpol_min(again, accounts_change(s, in, &round));
}

const struct gpol_ops gpol_share = {
	.name = "share",
	.summary = "offline jobs take turns by weight; minima that online work cannot take",
	.observe = observe,
	.decide = decide,
};
