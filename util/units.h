/* SPDX-License-Identifier: MIT */
/* Values as people write them: "100us", "20/s", "85 %", "2.5", "64GB/s". Exact, without floats. */
#ifndef GPREEMPT_UTIL_UNITS_H
#define GPREEMPT_UTIL_UNITS_H

#include <stdint.h>

enum unit_kind {
	UNIT_COUNT, /* no unit, whole */
	UNIT_DURATION, /* in nanoseconds */
	UNIT_RATE, /* in 1,000 s */
	UNIT_SHARE, /* "%", in permille */
	UNIT_SCALE, /* no unit, in permille */
	UNIT_BYTES,
	UNIT_BYTES_PER_S,
};

/* NULL: @ret is set. Else what is wrong, to follow the text in a sentence. */
const char *unit_parse(enum unit_kind unit, const char *text, uint64_t *ret);

#define UNIT_TEXT 32
/* The shortest text that is parsed to @value. */
const char *unit_text(enum unit_kind unit, uint64_t value, char buf[UNIT_TEXT]);

#endif
