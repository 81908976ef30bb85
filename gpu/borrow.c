/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "gpu/borrow.h"
#include "util/macros.h"

#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438 /* the same on every architecture since Linux 5.6 */
#endif

#define TRIES 3

static void closedirp(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

/* Others are not even looked at: of a file on a network this may wait for a server, for ever. */
static bool may_be_device(int dir, const char *name)
{
	char target[PATH_MAX];
	ssize_t len = readlinkat(dir, name, target, sizeof(target) - 1);

	if (len < 0)
		return false;
	target[len] = '\0';
	return strstr(target, "/dev/") != NULL;
}

/* /proc has them in the order of their numbers. */
static int find_number(pid_t pid, dev_t rdev, unsigned int nth)
{
	_cleanup_(closedirp) DIR *dir = NULL;
	char path[sizeof("/proc//fd") + 3 * sizeof(pid_t)];
	const struct dirent *e;
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? -ESRCH : -errno;
	while ((e = readdir(dir)) != NULL) {
		if (e->d_name[0] == '.' || !may_be_device(dirfd(dir), e->d_name) ||
		    fstatat(dirfd(dir), e->d_name, &st, 0) < 0)
			continue;
		if (S_ISCHR(st.st_mode) && st.st_rdev == rdev && nth-- == 0)
			return (int)strtol(e->d_name, NULL, 10);
	}
	return -ENOENT;
}

static int borrow_once(int pidfd, pid_t pid, dev_t rdev, unsigned int nth)
{
	int number = find_number(pid, rdev, nth), fd;
	struct stat st;

	if (number < 0)
		return number;
	fd = (int)syscall(SYS_pidfd_getfd, pidfd, number, 0u); /* close-on-exec by nature */
	if (fd < 0)
		return errno == EBADF ? -EAGAIN : -errno;
	/* The number may stand for something else by now, and the pid for somebody else. */
	if (fstat(fd, &st) < 0 || !S_ISCHR(st.st_mode) || st.st_rdev != rdev) {
		close(fd);
		return -EAGAIN;
	}
	return fd;
}

int gpu_borrow(int pidfd, pid_t pid, dev_t rdev, unsigned int nth)
{
	int r = -EAGAIN;

	for (int i = 0; i < TRIES && r == -EAGAIN; i++)
		r = borrow_once(pidfd, pid, rdev, nth);
	return r;
}
