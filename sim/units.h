/* SPDX-License-Identifier: MIT */
/* Values as people write them: "100us", "20/s", "85 %", "2.5", "64GB/s". Exact, without floats. */
#ifndef GPREEMPT_SIM_UNITS_H
#define GPREEMPT_SIM_UNITS_H

#include "abi/types.h"

enum sim_unit {
	SIM_COUNT, /* no unit, whole */
	SIM_DURATION, /* in nanoseconds */
	SIM_RATE, /* in 1,000 s */
	SIM_SHARE, /* "%", in permille */
	SIM_SCALE, /* no unit, in permille */
	SIM_BYTES,
	SIM_BYTES_PER_S,
};

/* NULL: @ret is set. Else what is wrong, to follow the text in a sentence. */
const char *sim_unit_parse(enum sim_unit unit, const char *text, uint64_t *ret);

#define SIM_UNIT_TEXT 32
/* The shortest text that is parsed to @value. */
const char *sim_unit_text(enum sim_unit unit, uint64_t value, char buf[SIM_UNIT_TEXT]);

#endif
