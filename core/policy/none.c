/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#include "core/policy/gpol.h"

/*
 * Promises to disturb nobody. Bad at everything else: urgent work waits for as long as the driver
 * lets it.
 */
static uint64_t decide(const void *state, const struct gpol_input *in, struct gpol_verdict *ret)
{
	gpol_hold_nobody(in, ret);
	return GPOL_NEVER;
}

const struct gpol_ops gpol_none = {
	.name = "none",
	.summary = "observe only: nobody is ever held",
	.decide = decide,
};
