/* SPDX-License-Identifier: MIT */
#include "util/units.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "util/macros.h"

struct suffix {
	const char *text;
	uint64_t times;
};

static const struct unit {
	struct suffix suffixes[7]; /* from small to large, ended by NULL */
	const char *wrong; /* what is not such a value */
} units[] = {
	[UNIT_COUNT] = { { { "", 1 } }, "is not a whole number" },
	[UNIT_DURATION] = { { { "ns", 1 },
			      { "us", NSEC_PER_USEC },
			      { "ms", NSEC_PER_MSEC },
			      { "s", NSEC_PER_SEC } },
			    "is not a duration such as 100us, 5ms or 2.5s" },
	[UNIT_RATE] = { { { "/s", 1000 } }, "is not a rate such as 20/s or 0.5/s" },
	[UNIT_SHARE] = { { { "%", 10 } }, "is not a share such as 85 % or 2.5 %" },
	[UNIT_SCALE] = { { { "", 1000 } }, "is not a number such as 2 or 0.5" },
	[UNIT_BYTES] = { { { "B", 1 },
			   { "KiB", 1ull << 10 },
			   { "MiB", 1ull << 20 },
			   { "GiB", 1ull << 30 } },
			 "is not a size such as 512KiB or 48.5MiB" },
	[UNIT_BYTES_PER_S] = { { { "MB/s", 1000000 },
				 { "GB/s", 1000000000 },
				 { "TB/s", 1000000000000 } },
			       "is not a speed such as 64GB/s" },
};

/* Digits with at most one point between them; where they end. */
static const char *skip_decimal(const char *text)
{
	size_t whole = strspn(text, "0123456789"), part;

	if (!whole || text[whole] != '.')
		return text + whole;
	part = strspn(text + whole + 1, "0123456789");
	return part ? text + whole + 1 + part : text;
}

/* False: it is beyond 64 bits, or finer than one. */
static bool scale(const char *text, const char *end, uint64_t times, uint64_t *ret)
{
	unsigned __int128 value = 0, divisor = 1;
	bool fraction = false;

	for (const char *c = text; c < end; c++) {
		if (*c == '.') {
			fraction = true;
			continue;
		}
		value = value * 10 + (unsigned int)(*c - '0');
		divisor *= fraction ? 10 : 1;
		if (value > UINT64_MAX || divisor > UINT64_MAX)
			return false;
	}
	value *= times;
	if (value % divisor || value / divisor > UINT64_MAX)
		return false;
	*ret = (uint64_t)(value / divisor);
	return true;
}

const char *unit_parse(enum unit_kind unit, const char *text, uint64_t *ret)
{
	const struct unit *u = &units[unit];
	const char *end = skip_decimal(text);
	const char *suffix = end + strspn(end, " \t");

	if (end == text)
		return u->wrong;
	for (const struct suffix *s = u->suffixes; s->text; s++) {
		if (strcmp(s->text, suffix))
			continue;
		return scale(text, end, s->times, ret) ? NULL : "is too large or too fine";
	}
	return u->wrong;
}

/* How many digits after the point it takes to say @value in units of @times; -1: no number does. */
static int digits_needed(uint64_t value, uint64_t times)
{
	unsigned __int128 rest = value % times;
	int digits = 0;

	while (rest % times && digits <= 3) {
		rest *= 10;
		digits++;
	}
	return digits <= 3 ? digits : -1;
}

const char *unit_text(enum unit_kind unit, uint64_t value, char buf[UNIT_TEXT])
{
	const struct unit *u = &units[unit];
	const struct suffix *best = u->suffixes;
	int digits;

	for (const struct suffix *s = u->suffixes; s->text; s++) {
		if (value >= s->times && digits_needed(value, s->times) >= 0)
			best = s;
	}
	digits = digits_needed(value, best->times);
	snprintf(buf, UNIT_TEXT, "%.*f%s", digits < 0 ? 3 : digits,
		 (double)value / (double)best->times, best->text);
	return buf;
}
