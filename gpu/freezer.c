/* SPDX-License-Identifier: MIT */
#include "gpu/freezer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gpu/files.h"
#include "util/macros.h"

#define TEXT_MAX_BYTES (256u << 10)

/* Is @name one of these, with commas between them, of which there are @len bytes? */
static bool has_name(const char *names, size_t len, const char *name)
{
	while (len > 0) {
		size_t n = strcspn(names, ",");

		n = MIN(n, len);
		if (n == strlen(name) && strncmp(names, name, n) == 0)
			return true;
		n = MIN(n + 1, len);
		names += n;
		len -= n;
	}
	return false;
}

static bool copy(char *ret, const char *from, size_t len)
{
	if (len >= FREEZER_PATH_SIZE)
		return false;
	memcpy(ret, from, len);
	ret[len] = '\0';
	return true;
}

/* "NUMBER:CONTROLLERS:PATH" */
bool freezer_parse_group(const char *text, char ret[FREEZER_PATH_SIZE])
{
	for (const char *line = text; *line;) {
		const char *end = line + strcspn(line, "\n");
		const char *names = memchr(line, ':', (size_t)(end - line));
		const char *path = names ? memchr(names + 1, ':', (size_t)(end - names - 1)) : NULL;

		if (path && has_name(names + 1, (size_t)(path - names - 1), "freezer"))
			return copy(ret, path + 1, (size_t)(end - path - 1));
		line = *end ? end + 1 : end;
	}
	return false;
}

/* "36 35 98:0 ROOT PLACE OPTIONS ... - TYPE SOURCE OPTIONS" */
bool freezer_parse_mount(const char *text, char ret[FREEZER_PATH_SIZE])
{
	for (const char *line = text; *line;) {
		size_t len = strcspn(line, "\n");
		const char *type = strstr(line, " - cgroup "), *end = line + len, *options = end;
		const char *place = line;

		if (!type || type > end)
			type = end;
		while (options > type && options[-1] != ' ')
			options--; /* the last word */
		for (int i = 0; i < 4 && place < end; i++)
			place += strcspn(place, " \n") + 1;
		if (place < end && has_name(options, (size_t)(end - options), "freezer"))
			return copy(ret, place, strcspn(place, " \n"));
		line = *end ? end + 1 : end;
	}
	return false;
}

bool freezer_covers(const char *ours, const char *theirs)
{
	size_t len = strlen(ours);

	return strncmp(ours, theirs, len) == 0 && (theirs[len] == '\0' || theirs[len] == '/');
}

static bool read_text(const char *path, char **ret)
{
	_cleanup_close_ int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	size_t len;

	return proc >= 0 && files_read(proc, path, TEXT_MAX_BYTES, ret, &len) >= 0;
}

static bool read_group(const char *path, char ret[FREEZER_PATH_SIZE])
{
	_cleanup_free_ char *text = NULL;

	return read_text(path, &text) && freezer_parse_group(text, ret);
}

static bool find_mount(char ret[FREEZER_PATH_SIZE])
{
	_cleanup_free_ char *text = NULL;

	return read_text("self/mountinfo", &text) && freezer_parse_mount(text, ret);
}

/*
 * The root of the hierarchy cannot be frozen and has no such file. In a cgroup namespace another
 * group may be called "/".
 */
static bool can_be_frozen(const char *group)
{
	char mount[FREEZER_PATH_SIZE], state[2 * FREEZER_PATH_SIZE + 16];

	if (strcmp(group, "/") != 0)
		return true;
	if (!find_mount(mount))
		return false;
	snprintf(state, sizeof(state), "%s/freezer.state", mount);
	return access(state, F_OK) == 0;
}

bool freezer_group(char ret[FREEZER_PATH_SIZE])
{
	return read_group("self/cgroup", ret) && can_be_frozen(ret);
}

int freezer_check(pid_t pid)
{
	char ours[FREEZER_PATH_SIZE], theirs[FREEZER_PATH_SIZE], path[32];

	if (!freezer_group(ours))
		return 0;
	snprintf(path, sizeof(path), "%d/cgroup", (int)pid);
	return read_group(path, theirs) && freezer_covers(ours, theirs) ? 0 : -EPERM;
}

void freezer_leave(void)
{
	char group[FREEZER_PATH_SIZE], mount[FREEZER_PATH_SIZE], procs[FREEZER_PATH_SIZE + 16];
	_cleanup_close_ int fd = -1;

	if (!freezer_group(group) || !find_mount(mount))
		return;
	snprintf(procs, sizeof(procs), "%s/cgroup.procs", mount);
	fd = open(procs, O_WRONLY | O_CLOEXEC);
	if (fd >= 0 && write(fd, "0", 1) < 0)
		return; /* who stays in it is told so when it holds somebody */
}
