/* SPDX-License-Identifier: MIT */
/* Who a process is, from /proc. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cmd/gpreemptd/rules_internal.h"
#include "util/macros.h"
#include "util/text.h"

/* Of what a process says of itself, which may be megabytes, no more is kept and looked at. */
#define COMMAND_MAX_BYTES 4096u
#define ENVIRONMENT_MAX_BYTES 65536u

#define CONTAINER_DIGITS 64u

/* ---- parsers ---- */

int identity_parse_stat(const char *text, size_t len, struct identity *ret)
{
	struct proc_stat stat;
	int r = proc_stat_parse(text, len, &stat);

	if (r < 0)
		return r;
	ret->pid = stat.pid;
	ret->parent = stat.parent;
	ret->start_ticks = stat.start_ticks;
	memcpy(ret->comm, stat.comm, sizeof(ret->comm));
	return 0;
}

/* A number of at most ten digits. */
static bool parse_id(const char *at, const char *end, uint64_t *ret)
{
	uint64_t value = 0;
	int digits = 0;

	for (; at < end && *at >= '0' && *at <= '9' && digits <= 10; at++, digits++)
		value = value * 10 + (uint64_t)(*at - '0');
	if (!digits || value > UINT32_MAX)
		return false;
	*ret = value;
	return true;
}

/* The first number behind @key at the beginning of a line: of four ids, the real one. */
static bool find_id(const char *text, const char *end, const char *key, uint64_t *ret)
{
	size_t n = strlen(key);

	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		const char *line_end = newline ? newline : end;

		if ((size_t)(line_end - text) > n && !memcmp(text, key, n)) {
			for (text += n; text < line_end && (*text == ' ' || *text == '\t');)
				text++;
			return parse_id(text, line_end, ret);
		}
		text = newline ? newline + 1 : end;
	}
	return false;
}

int identity_parse_status(const char *text, size_t len, struct identity *ret)
{
	uint64_t uid, gid;

	if (!find_id(text, text + len, "Uid:", &uid) || !find_id(text, text + len, "Gid:", &gid))
		return -EBADMSG;
	ret->uid = (uid_t)uid;
	ret->gid = (gid_t)gid;
	return 0;
}

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* Runtimes call a container's cgroup by its id, with or without words around it. */
static void find_container(const char *cgroup, char *ret, size_t size)
{
	ret[0] = '\0';
	for (const char *at = cgroup; *at;) {
		size_t n = 0;

		while (is_hex(at[n]))
			n++;
		if (n == CONTAINER_DIGITS) {
			snprintf(ret, size, "%.*s", (int)n, at);
			return;
		}
		at += n ? n : 1;
	}
}

/* The third field of "hierarchy:controllers:path". */
static bool line_path(const char *line, size_t len, const char **ret, size_t *ret_len)
{
	const char *first = memchr(line, ':', len), *second;

	if (!first)
		return false;
	second = memchr(first + 1, ':', (size_t)(line + len - first - 1));
	if (!second || second + 1 >= line + len || second[1] != '/')
		return false;
	*ret = second + 1;
	*ret_len = (size_t)(line + len - second - 1);
	return true;
}

int identity_parse_cgroup(const char *text, size_t len, struct identity *ret)
{
	const char *end = text + len, *best = "/", *path;
	size_t best_len = 1, path_len, all_len = 0;
	_cleanup_free_ char *all = calloc(1, len + 2);
	bool decided = false;
	char *cgroup;

	while (all && text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		size_t n = (size_t)((newline ? newline : end) - text);
		bool unified = n > 3 && !memcmp(text, "0::", 3);

		if (line_path(text, n, &path, &path_len) && path_len > 1) {
			memcpy(all + all_len, path, path_len);
			all_len += path_len + 1;
			if (unified || (!decided && path_len > best_len)) {
				best = path;
				best_len = path_len;
				decided = unified;
			}
		}
		text = newline ? newline + 1 : end;
	}
	cgroup = all ? strndup(best, best_len) : NULL;
	if (!cgroup)
		return -ENOMEM;
	free(ret->cgroup);
	free(ret->cgroups);
	ret->cgroup = cgroup;
	ret->cgroups = steal_ptr(&all);
	find_container(cgroup, ret->container, sizeof(ret->container));
	return 0;
}

/* ---- taking ---- */

/* Strings, each ended by NUL, and an empty one last; those beyond @max are left out. */
static char *copy_strings(const char *text, size_t len, size_t max, size_t *ret_len)
{
	char *copy;

	if (len > max) {
		for (len = max; len > 0 && text[len - 1];)
			len--;
	}
	copy = calloc(1, len + 2);
	if (!copy)
		return NULL;
	memcpy(copy, text, len);
	*ret_len = len;
	return copy;
}

static char *command_of(const struct proc_files *f)
{
	char *command;
	size_t len;

	if (!f->text[PROC_CMDLINE])
		return NULL;
	command =
		copy_strings(f->text[PROC_CMDLINE], f->len[PROC_CMDLINE], COMMAND_MAX_BYTES, &len);
	if (!command)
		return NULL;
	while (len > 0 && !command[len - 1])
		len--;
	for (size_t i = 0; i < len; i++) {
		if (!command[i])
			command[i] = ' ';
	}
	return command;
}

/* "/usr/bin/python3.11 (deleted)" of a program that was replaced since is the same program. */
static char *path_of(const struct proc_files *f)
{
	static const char deleted[] = " (deleted)";
	size_t len = f->len[PROC_EXE], tail = strlen(deleted);

	if (!f->text[PROC_EXE])
		return NULL;
	if (len > tail && !memcmp(f->text[PROC_EXE] + len - tail, deleted, tail))
		len -= tail;
	return strndup(f->text[PROC_EXE], len);
}

static int take_ancestors(const struct proc_files *f, struct identity *id)
{
	const char *at = f->text[PROC_PARENTS], *end = at + f->len[PROC_PARENTS];

	if (!at)
		return 0;
	id->ancestors = calloc(PROC_PARENTS_MAX, sizeof(*id->ancestors));
	if (!id->ancestors)
		return -ENOMEM;
	while (at < end && id->n_ancestors < PROC_PARENTS_MAX) {
		struct proc_stat stat;

		if (proc_stat_parse(at, strnlen(at, (size_t)(end - at)), &stat) < 0)
			return 0;
		id->ancestors[id->n_ancestors++] =
			(struct ancestor){ .pid = stat.pid, .start_ticks = stat.start_ticks };
		at += strlen(at) + 1;
	}
	return 0;
}

static void identity_donep(struct identity *id)
{
	identity_done(id);
}

uint32_t identity_files(const struct rules *rules)
{
	return PROC_BIT(PROC_STAT) | PROC_BIT(PROC_STATUS) | PROC_BIT(PROC_CGROUP) |
	       PROC_BIT(PROC_EXE) | PROC_BIT(PROC_PARENTS) |
	       (rules_want_command(rules) ? PROC_BIT(PROC_CMDLINE) : 0) |
	       (rules_want_environment(rules) ? PROC_BIT(PROC_ENVIRON) : 0);
}

int identity_take(const struct proc_files *f, struct identity *ret)
{
	_cleanup_(identity_donep) struct identity id = { 0 };
	size_t len;
	int r;

	if (!f->text[PROC_STAT] || !f->text[PROC_STATUS])
		return -EBADMSG;
	r = identity_parse_stat(f->text[PROC_STAT], f->len[PROC_STAT], &id);
	if (r >= 0)
		r = identity_parse_status(f->text[PROC_STATUS], f->len[PROC_STATUS], &id);
	if (r >= 0) /* a kernel or device may be without them */
		r = identity_parse_cgroup(f->text[PROC_CGROUP] ? f->text[PROC_CGROUP] : "",
					  f->len[PROC_CGROUP], &id);
	if (r >= 0)
		r = take_ancestors(f, &id);
	if (r < 0)
		return r;
	id.path = path_of(f);
	id.command = command_of(f);
	if (f->text[PROC_ENVIRON])
		id.environment = copy_strings(f->text[PROC_ENVIRON], f->len[PROC_ENVIRON],
					      ENVIRONMENT_MAX_BYTES, &len);
	id.unread = f->unread;
	*ret = id;
	id = (struct identity){ 0 };
	return 0;
}

void identity_done(struct identity *id)
{
	free(id->cgroup);
	free(id->cgroups);
	free(id->path);
	free(id->command);
	free(id->environment);
	free(id->ancestors);
	*id = (struct identity){ 0 };
}
