/* SPDX-License-Identifier: MIT */
#include "util/text.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* How many bytes the character at @s has; 0: it is none. Overlong and surrogate forms are none. */
static size_t utf8_length(const unsigned char *s)
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
		size_t n = utf8_length(s);
		bool bad = n == 0 || is_control(s);

		n = n ? n : 1;
		if (bad)
			memset(s, '?', n);
		s += n;
	}
}

char *text_copy(const char *text, size_t len)
{
	char *copy = malloc(len + 1);

	if (!copy)
		return NULL;
	memcpy(copy, text, len);
	copy[len] = '\0';
	return copy;
}

char *text_next_line(const char **text)
{
	size_t len = *text ? strcspn(*text, "\n") : 0;
	char *line = *text && **text ? text_copy(*text, len) : NULL;

	if (!line)
		return NULL;
	*text += len + ((*text)[len] == '\n');
	text_clean(line);
	return line;
}
