/* SPDX-License-Identifier: MIT */
/* Who a process is, from /proc. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cmd/gpreemptd/rules_internal.h"
#include "gpu/backend.h"
#include "util/macros.h"
#include "util/text.h"

/* Of what a process says of itself, which may be megabytes, no more is kept and looked at. */
#define COMMAND_MAX_BYTES 4096u
#define ENVIRONMENT_MAX_BYTES 65536u

#define CONTAINER_DIGITS 64u

/* ---- parsers ---- */

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

/* Fields of proc(5), from 1; those wanted are the parent and the start time. */
static bool parse_stat_fields(const char *at, const char *end, struct identity *id)
{
	uint64_t value;

	for (int field = 3; field <= 22; field++) {
		at = skip_blanks(at, end);
		if (field == 4) {
			if (!take_number(&at, end, INT32_MAX, &value))
				return false;
			id->parent = (pid_t)value;
		} else if (field == 22) {
			return take_number(&at, end, UINT64_MAX, &id->start_ticks);
		}
		while (at < end && *at != ' ' && *at != '\n')
			at++;
	}
	return false;
}

/* A name may hold blanks and brackets: it ends at the last bracket. */
int identity_parse_stat(const char *text, size_t len, struct identity *ret)
{
	const char *at = text, *end = text + len, *close = memrchr(text, ')', len);
	struct identity id = *ret;
	uint64_t pid;
	size_t n;

	if (!take_number(&at, end, INT32_MAX, &pid) || !close || close - at < 2)
		return -EBADMSG;
	if (at[0] != ' ' || at[1] != '(')
		return -EBADMSG;
	at += 2;
	n = MIN((size_t)(close - at), sizeof(id.comm) - 1);
	memset(id.comm, 0, sizeof(id.comm));
	memcpy(id.comm, at, n);
	id.pid = (pid_t)pid;
	if (!parse_stat_fields(close + 1, end, &id))
		return -EBADMSG;
	*ret = id;
	return 0;
}

/* The first number behind @key at the beginning of a line: of four ids, the real one. */
static bool find_id(const char *text, const char *end, const char *key, uint64_t *ret)
{
	size_t n = strlen(key);

	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		const char *line_end = newline ? newline : end;

		if ((size_t)(line_end - text) > n && !memcmp(text, key, n)) {
			text = skip_blanks(text + n, line_end);
			return take_number(&text, line_end, UINT32_MAX, ret);
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
	cgroup = all ? text_copy(best, best_len) : NULL;
	if (!cgroup)
		return -ENOMEM;
	free(ret->cgroup);
	free(ret->cgroups);
	ret->cgroup = cgroup;
	ret->cgroups = steal_ptr(&all);
	find_container(cgroup, ret->container, sizeof(ret->container));
	return 0;
}

/* ---- reading ---- */

static int read_file(struct gpu_backend *b, pid_t pid, const char *name, char **ret,
		     size_t *ret_len)
{
	char path[64];
	int r;

	snprintf(path, sizeof(path), "%d/%s", pid, name);
	r = b->ops->read_proc(b, path, ret, ret_len);
	return r == -ENOENT ? -ESRCH : r;
}

static int read_stat(struct gpu_backend *b, pid_t pid, struct identity *id)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	int r = read_file(b, pid, "stat", &text, &len);

	if (r < 0)
		return r;
	r = identity_parse_stat(text, len, id);
	return r == 0 && id->pid != pid ? -EBADMSG : r;
}

static int read_ids(struct gpu_backend *b, pid_t pid, struct identity *id)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	int r = read_file(b, pid, "status", &text, &len);

	return r < 0 ? r : identity_parse_status(text, len, id);
}

static int read_cgroup(struct gpu_backend *b, pid_t pid, struct identity *id)
{
	_cleanup_free_ char *text = NULL;
	size_t len = 0;

	if (read_file(b, pid, "cgroup", &text, &len) < 0)
		return identity_parse_cgroup("", 0, id); /* a kernel or device without them */
	return identity_parse_cgroup(text, len, id);
}

/* Strings, each ended by NUL, and an empty one last; those beyond @max are left out. */
static char *read_strings(struct gpu_backend *b, pid_t pid, const char *name, size_t max,
			  size_t *ret_len)
{
	_cleanup_free_ char *text = NULL;
	char *copy;
	size_t len;

	if (read_file(b, pid, name, &text, &len) < 0)
		return NULL;
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

static char *read_command(struct gpu_backend *b, pid_t pid)
{
	size_t len;
	char *command = read_strings(b, pid, "cmdline", COMMAND_MAX_BYTES, &len);

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
static char *read_path(struct gpu_backend *b, pid_t pid)
{
	static const char deleted[] = " (deleted)";
	size_t len, tail = strlen(deleted);
	char *path;

	if (read_file(b, pid, "exe", &path, &len) < 0)
		return NULL;
	if (len > tail && !strcmp(path + len - tail, deleted))
		path[len - tail] = '\0';
	return path;
}

static void identity_donep(struct identity *id)
{
	identity_done(id);
}

/* The pid may have passed on while we read: what was read is of one process or of nobody. */
int identity_read(struct gpu_backend *b, pid_t pid, bool with_environment, struct identity *ret)
{
	_cleanup_(identity_donep) struct identity id = { 0 };
	struct identity again = { 0 };
	size_t len;
	int r;

	r = read_stat(b, pid, &id);
	if (r < 0)
		return r;
	r = read_ids(b, pid, &id);
	if (r < 0)
		return r;
	r = read_cgroup(b, pid, &id);
	if (r < 0)
		return r;
	id.path = read_path(b, pid);
	id.command = read_command(b, pid);
	if (with_environment)
		id.environment = read_strings(b, pid, "environ", ENVIRONMENT_MAX_BYTES, &len);
	r = read_stat(b, pid, &again);
	if (r < 0)
		return r;
	if (again.start_ticks != id.start_ticks)
		return -ESRCH;
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
	*id = (struct identity){ 0 };
}
