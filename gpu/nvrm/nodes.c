/* SPDX-License-Identifier: MIT */
#include "gpu/nvrm/nodes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "util/macros.h"

#define NAMES_MOST 8192u /* that are looked at in one folder */
#define READ_AT_ONCE 4096u /* bytes of what was told, */
#define READS 16u /* and so often: one who opens and opens again is not read to the end */

bool nodes_is_name(const char *name)
{
	static const char node[] = "nvidia";
	const char *rest = name + sizeof(node) - 1;

	if (strncmp(name, node, sizeof(node) - 1) != 0)
		return false;
	return !strcmp(rest, "ctl") || (*rest && rest[strspn(rest, "0123456789")] == '\0');
}

/* Its inode, if it is one of the driver's; only the kernel is asked where that is possible. */
static bool find_node(int dir, const char *name, dev_t device, struct statx *ret)
{
	return statx(dir, name, AT_SYMLINK_NOFOLLOW | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO,
		     ret) == 0 &&
	       S_ISCHR(ret->stx_mode) && ret->stx_rdev_major == major(device);
}

static bool is_same(const struct statx *a, const struct statx *b)
{
	return a->stx_ino == b->stx_ino && a->stx_dev_major == b->stx_dev_major &&
	       a->stx_dev_minor == b->stx_dev_minor;
}

/*
 * Nothing is opened here: that would be told, too. So another file may take its place meanwhile,
 * and that one might be opened a thousand times a second.
 */
static int watch_one(int inotify, const char *dev, int dir, const char *name, dev_t device)
{
	struct statx before, after;
	char path[PATH_MAX];
	int wd;

	if (!find_node(dir, name, device, &before))
		return -ENOENT;
	if (snprintf(path, sizeof(path), "%s/%s", dev, name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	wd = inotify_add_watch(inotify, path, IN_OPEN | IN_DONT_FOLLOW);
	if (wd < 0)
		return -errno;
	if (find_node(dir, name, device, &after) && is_same(&before, &after))
		return wd;
	inotify_rm_watch(inotify, wd);
	return -EAGAIN;
}

static void closedirp(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

/* Else it is gone, or no node. */
static bool is_refusal(int error)
{
	return error == -ENOSPC || error == -ENOMEM || error == -EACCES || error == -EPERM;
}

int nodes_watch(int inotify, const char *dev, dev_t device, uint32_t *ret, size_t max,
		int *ret_error)
{
	_cleanup_(closedirp) DIR *dir = opendir(dev);
	const struct dirent *e;
	size_t n = 0;

	*ret_error = 0;
	if (!dir)
		return -errno;
	for (size_t i = 0; i < NAMES_MOST && n < max && (e = readdir(dir)); i++) {
		int wd = nodes_is_name(e->d_name) ?
				 watch_one(inotify, dev, dirfd(dir), e->d_name, device) :
				 -ENOENT;

		if (wd >= 0)
			ret[n++] = (uint32_t)wd;
		else if (is_refusal(wd))
			*ret_error = wd;
	}
	return (int)n;
}

/* NODES_ANY where there is no room for another. */
static void add(uint32_t number, uint32_t *ret, size_t max, size_t *n)
{
	for (size_t i = 0; i < *n; i++)
		if (ret[i] == number)
			return;
	if (*n < max)
		ret[(*n)++] = number;
	else
		ret[max - 1] = NODES_ANY;
}

static uint32_t number_of(const struct inotify_event *e)
{
	if (e->mask & IN_Q_OVERFLOW)
		return NODES_ANY;
	return (uint32_t)e->wd | (e->mask & IN_IGNORED ? NODES_GONE : 0);
}

int nodes_opened(int inotify, uint32_t *ret, size_t max)
{
	_Alignas(struct inotify_event) char buf[READ_AT_ONCE];
	size_t n = 0;

	for (unsigned int i = 0; i < READS; i++) {
		ssize_t len = read(inotify, buf, sizeof(buf));

		if (len < 0)
			return errno == EAGAIN ? (int)n : -errno;
		for (ssize_t at = 0; at < len;) {
			const struct inotify_event *e = (const struct inotify_event *)(buf + at);

			at += (ssize_t)(sizeof(*e) + e->len);
			if (e->mask & (IN_OPEN | IN_IGNORED | IN_Q_OVERFLOW))
				add(number_of(e), ret, max, &n);
		}
	}
	add(NODES_ANY, ret, max, &n);
	return (int)n;
}
