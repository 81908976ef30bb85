/* SPDX-License-Identifier: MIT */
/* Does a pattern mean this text? Patterns are of administrators, texts of anybody. */
#include <string.h>

#include "cmd/gpreemptd/rules.h"
#include "util/macros.h"

#define CONTAINER_DIGITS_MIN 12 /* what tools print */

/* Only the last '*' is ever tried again: no text takes longer than its length times ours. */
static bool match_bytes(const char *pattern, const char *text, size_t len)
{
	const char *star = NULL, *retry = NULL, *end = text + len;

	while (text < end) {
		bool escaped = *pattern == '\\' && pattern[1];

		if (*pattern == '*') {
			star = ++pattern;
			retry = text;
		} else if (escaped ? pattern[1] == *text : *pattern == '?' || *pattern == *text) {
			pattern += escaped ? 2 : 1;
			text++;
		} else if (star) {
			pattern = star;
			text = ++retry;
		} else {
			return false;
		}
	}
	pattern += strspn(pattern, "*");
	return !*pattern;
}

bool match_glob(const char *pattern, const char *text)
{
	return match_bytes(pattern, text, strlen(text));
}

bool match_cgroup(const char *pattern, const char *cgroup)
{
	_cleanup_free_ char *trimmed = NULL;
	size_t len = strlen(pattern);

	while (len > 1 && pattern[len - 1] == '/')
		len--;
	if (len == 1 && *pattern == '/')
		return true;
	trimmed = strndup(pattern, len);
	if (!trimmed)
		return false;
	for (const char *end = cgroup + strlen(cgroup); end > cgroup;) {
		if (match_bytes(trimmed, cgroup, (size_t)(end - cgroup)))
			return true;
		end = memrchr(cgroup, '/', (size_t)(end - cgroup));
		if (!end)
			return false;
	}
	return false;
}

bool match_container(const char *id, const char *container)
{
	size_t len = strlen(id);

	return len >= CONTAINER_DIGITS_MIN && !strncmp(id, container, len);
}
