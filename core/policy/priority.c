/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#include "core/policy/common.h"

static_assert(sizeof(struct gpol_relief) <= GPOL_STATE_BYTES, "the state of priority is too large");

/*
 * Promises that nobody runs beside somebody more urgent who needs the GPU: online jobs come before
 * offline ones, and among offline jobs the priority counts; equals share. Work that ended less than
 * linger_ns ago or is announced counts as work. Who waited for its bound gets a turn all the same.
 *
 * Between online jobs nothing is held; there the priority only says for whom room is made.
 *
 * Bad at fairness: while urgent work lasts the lesser live on their bounds alone, and a long burst
 * with a modest target stops them as soon as a short one with a tight target does.
 */
static uint64_t decide(const void *state, const struct gpol_input *in, struct gpol_verdict *ret)
{
	const struct gpol_job *top = gpol_most_urgent(in, JOB_ONLINE);

	if (!top)
		top = gpol_most_urgent(in, JOB_OFFLINE);
	if (top)
		return gpol_hold_lesser(state, in, top, ret);
	gpol_hold_nobody(in, ret);
	return GPOL_NEVER;
}

const struct gpol_ops gpol_priority = {
	.name = "priority",
	.summary = "the most urgent work runs; the lesser wait, but not past their bound",
	.observe = gpol_relief_observe,
	.decide = decide,
};
