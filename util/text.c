/* SPDX-License-Identifier: MIT */
#include "util/text.h"

#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "util/macros.h"

/* Overlong and surrogate forms are none. */
size_t text_utf8_bytes(const unsigned char *s)
{
	size_t n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;

	if (s[0] > 0xf4)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

/* Of ASCII, and those of eight bits, which terminals heed too: U+0080 to U+009F. */
static bool is_control(const unsigned char *s)
{
	return s[0] < 0x20 || s[0] == 0x7f || (s[0] == 0xc2 && s[1] < 0xa0);
}

void text_clean(char *text)
{
	unsigned char *s = (unsigned char *)text;

	while (*s) {
		size_t n = text_utf8_bytes(s);
		bool bad = n == 0 || is_control(s);

		n = n ? n : 1;
		if (bad)
			memset(s, '?', n);
		s += n;
	}
}

char *text_next_line(const char **text)
{
	size_t len = *text ? strcspn(*text, "\n") : 0;
	char *line = *text && **text ? strndup(*text, len) : NULL;

	if (!line)
		return NULL;
	*text += len + ((*text)[len] == '\n');
	text_clean(line);
	return line;
}

static const char *text_scaled(double value, double step, const char *const *units, char *buf)
{
	int digits = 0;

	while (units[1] && value >= step * 0.9995) {
		value /= step;
		units++;
	}
	if (value < 99.95)
		digits = value < 9.995 ? 2 : 1;
	snprintf(buf, UNIT_TEXT_SIZE, "%.*f %s", digits, value, *units);
	return buf;
}

const char *text_duration(uint64_t ns, char buf[UNIT_TEXT_SIZE])
{
	static const char *const units[] = { "us", "ms", "s", NULL };

	return text_scaled((double)ns / 1000, 1000, units, buf);
}

const char *text_bytes(uint64_t bytes, char buf[UNIT_TEXT_SIZE])
{
	static const char *const units[] = { "KiB", "MiB", "GiB", "TiB", NULL };

	return text_scaled((double)bytes / 1024, 1024, units, buf);
}

const char *text_age(uint64_t seconds, char buf[UNIT_TEXT_SIZE])
{
	unsigned long long minutes = seconds / 60, hours = minutes / 60, days = hours / 24;

	if (minutes == 0)
		snprintf(buf, UNIT_TEXT_SIZE, "%llu s", (unsigned long long)seconds);
	else if (hours == 0)
		snprintf(buf, UNIT_TEXT_SIZE, "%llu min", minutes);
	else if (days < 2)
		snprintf(buf, UNIT_TEXT_SIZE, "%llu h %llu min", hours, minutes % 60);
	else
		snprintf(buf, UNIT_TEXT_SIZE, "%llu days", days);
	return buf;
}

const char *text_clock(uint64_t time_ns, char buf[UNIT_TEXT_SIZE])
{
	time_t seconds = (time_t)(time_ns / NSEC_PER_SEC);
	struct tm tm;

	buf[0] = '\0';
	if (localtime_r(&seconds, &tm))
		strftime(buf, UNIT_TEXT_SIZE, "%H:%M:%S", &tm);
	return buf;
}
