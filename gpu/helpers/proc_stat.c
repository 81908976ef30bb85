/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "gpu/helpers/proc_files.h"
#include "util/macros.h"

static const char *skip_blanks(const char *at, const char *end)
{
	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	return at;
}

/* The number at *at, which it moves behind it. */
static bool take_number(const char **at, const char *end, uint64_t max, uint64_t *ret)
{
	const char *c = *at;
	uint64_t value = 0;

	if (c >= end || *c < '0' || *c > '9')
		return false;
	for (; c < end && *c >= '0' && *c <= '9'; c++) {
		if (value > (max - (uint64_t)(*c - '0')) / 10)
			return false;
		value = value * 10 + (uint64_t)(*c - '0');
	}
	*at = c;
	*ret = value;
	return true;
}

/* Fields of proc(5), from 1: the state, the parent and the start time are wanted. */
static bool parse_fields(const char *at, const char *end, struct proc_stat *s)
{
	uint64_t value;

	for (int field = 3; field <= 22; field++) {
		at = skip_blanks(at, end);
		if (field == 3) {
			s->state = at < end ? *at : '\0';
		} else if (field == 4) {
			if (!take_number(&at, end, INT32_MAX, &value))
				return false;
			s->parent = (pid_t)value;
		} else if (field == 22) {
			return take_number(&at, end, UINT64_MAX, &s->start_ticks);
		}
		while (at < end && *at != ' ' && *at != '\n')
			at++;
	}
	return false;
}

/* A name may hold blanks and brackets: it ends at the last bracket. */
int proc_stat_parse(const char *text, size_t len, struct proc_stat *ret)
{
	const char *at = text, *end = text + len, *close = memrchr(text, ')', len);
	struct proc_stat s = { 0 };
	uint64_t pid;

	if (!take_number(&at, end, INT32_MAX, &pid) || !close || close - at < 2)
		return -EBADMSG;
	if (at[0] != ' ' || at[1] != '(')
		return -EBADMSG;
	at += 2;
	s.pid = (pid_t)pid;
	memcpy(s.comm, at, MIN((size_t)(close - at), sizeof(s.comm) - 1));
	if (!parse_fields(close + 1, end, &s))
		return -EBADMSG;
	*ret = s;
	return 0;
}
