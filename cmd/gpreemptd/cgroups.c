/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd/gpreemptd/scheduler_internal.h"

bool cgroup_is_path(const char *pattern)
{
	return pattern[0] == '/' && pattern[1] && !strpbrk(pattern, "*?\\") &&
	       !strstr(pattern, "/../") && !strstr(pattern, "/./");
}

static bool is_at(const char *root, const char *hierarchy, const char *path)
{
	char full[PATH_MAX];
	int n = snprintf(full, sizeof(full), "%s/%s%s", root, hierarchy, path);

	return n > 0 && (size_t)n < sizeof(full) && access(full, F_OK) == 0;
}

/* The unified hierarchy is the root itself; the older ones have a folder each. */
bool cgroup_is_there(const char *root, const char *path)
{
	const struct dirent *e;
	bool there = false;
	DIR *dir;

	if (is_at(root, ".", path))
		return true;
	if (is_at(root, ".", "/cgroup.procs"))
		return false;
	dir = opendir(root);
	if (!dir)
		return false;
	while (!there && (e = readdir(dir)))
		there = e->d_name[0] != '.' && is_at(root, e->d_name, path);
	closedir(dir);
	return there;
}
