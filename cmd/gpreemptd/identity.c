/* SPDX-License-Identifier: MIT */
/* Who a process is, from /proc. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cmd/gpreemptd/rules.h"
#include "util/macros.h"
#include "util/text.h"

/* Of what a process says of itself, which may be megabytes, no more is kept and looked at. */
#define COMMAND_MAX_BYTES 4096u
#define ENVIRONMENT_MAX_BYTES 65536u

#define CONTAINER_DIGITS 64u

/* ---- parsers ---- */

int identity_parse_status(const char *text, struct identity *ret)
{
	const char *uids = strstr(text, "\nUid:"), *gids = strstr(text, "\nGid:");
	uid_t uid;
	gid_t gid;

	/* Of four ids the first is the real one. */
	if (!uids || !gids || sscanf(uids, "\nUid: %u", &uid) != 1 ||
	    sscanf(gids, "\nGid: %u", &gid) != 1)
		return -EBADMSG;
	ret->uid = uid;
	ret->gid = gid;
	return 0;
}

/* Runtimes call a container's cgroup by its id, with or without words around it. */
static void find_container(const char *cgroup, char *ret, size_t size)
{
	ret[0] = '\0';
	for (const char *at = cgroup; *at;) {
		size_t n = strspn(at, "0123456789abcdef");

		if (n == CONTAINER_DIGITS) {
			snprintf(ret, size, "%.*s", (int)n, at);
			return;
		}
		at += n ? n : 1;
	}
}

/* The third field of "hierarchy:controllers:path"; NULL: it is no path. */
static const char *path_in(const char *line, size_t len)
{
	const char *first = memchr(line, ':', len), *second = NULL;

	if (first)
		second = memchr(first + 1, ':', (size_t)(line + len - first - 1));
	return second && second[1] == '/' ? second + 1 : NULL;
}

int identity_parse_cgroup(const char *text, struct identity *ret)
{
	_cleanup_free_ char *all = calloc(1, strlen(text) + 2);
	size_t best_len = 1, all_len = 0, n;
	const char *best = "/";
	bool decided = false;
	char *cgroup;

	for (; all && *text; text += n + (text[n] == '\n')) {
		bool unified = !strncmp(text, "0::", 3);
		const char *path;
		size_t len;

		n = strcspn(text, "\n");
		path = path_in(text, n);
		len = path ? (size_t)(text + n - path) : 0;
		if (len <= 1)
			continue;
		memcpy(all + all_len, path, len);
		all_len += len + 1;
		if (unified || (!decided && len > best_len)) {
			best = path;
			best_len = len;
			decided = unified;
		}
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
	while (at < end && id->n_ancestors < PROC_PARENTS_MAX &&
	       proc_stat_parse(at, strnlen(at, (size_t)(end - at)),
			       &id->ancestors[id->n_ancestors]) >= 0) {
		id->n_ancestors++;
		at += strlen(at) + 1;
	}
	return 0;
}

uint32_t identity_files(const struct rules *rules)
{
	uint32_t files = PROC_BIT(PROC_STAT) | PROC_BIT(PROC_STATUS) | PROC_BIT(PROC_CGROUP) |
			 PROC_BIT(PROC_EXE) | PROC_BIT(PROC_PARENTS);

	for (size_t i = 0; i < rules->n; i++) {
		files |= rules->rules[i].command ? PROC_BIT(PROC_CMDLINE) : 0;
		files |= rules->rules[i].variable ? PROC_BIT(PROC_ENVIRON) : 0;
	}
	return files;
}

int identity_take(const struct proc_files *f, struct identity *ret)
{
	_cleanup_(identity_done) struct identity id = { 0 };
	size_t len;
	int r;

	if (!f->text[PROC_STAT] || !f->text[PROC_STATUS])
		return -EBADMSG;
	r = proc_stat_parse(f->text[PROC_STAT], f->len[PROC_STAT], &id.stat);
	if (r >= 0)
		r = identity_parse_status(f->text[PROC_STATUS], &id);
	if (r >= 0) /* a kernel or device may be without them */
		r = identity_parse_cgroup(f->text[PROC_CGROUP] ? f->text[PROC_CGROUP] : "", &id);
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
