/* SPDX-License-Identifier: MIT */
/* Descriptors of other processes, by pidfd_getfd(2). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "gpu/kfd/transport.h"
#include "util/macros.h"

#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438 /* the same on every architecture since Linux 5.6 */
#endif

static void closedirp(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

/* The number of the @nth descriptor that is open on the device @rdev. */
static int find_number(pid_t pid, dev_t rdev, unsigned int nth)
{
	_cleanup_(closedirp) DIR *dir = NULL;
	char path[sizeof("/proc//fd") + 3 * sizeof(pid_t)];
	const struct dirent *e;
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	if (!dir)
		return -errno;
	while ((e = readdir(dir)) != NULL) {
		if (e->d_name[0] == '.' || fstatat(dirfd(dir), e->d_name, &st, 0) < 0)
			continue;
		if (S_ISCHR(st.st_mode) && st.st_rdev == rdev && nth-- == 0)
			return (int)strtol(e->d_name, NULL, 10);
	}
	return -ENOENT;
}

int gkfd_syscall_borrow(int kfd, pid_t pid, unsigned int nth)
{
	_cleanup_close_ int pidfd = -1;
	struct stat device, theirs;
	int number, fd;

	if (fstat(kfd, &device) < 0)
		return -errno;
	pidfd = gkfd_trace_syscall.pidfd(NULL, pid);
	if (pidfd < 0)
		return pidfd;
	number = find_number(pid, device.st_rdev, nth);
	if (number < 0)
		return number;
	fd = (int)syscall(SYS_pidfd_getfd, pidfd, number, 0u); /* close-on-exec by nature */
	if (fd < 0)
		return -errno;
	/* The number may stand for something else by now. */
	if (fstat(fd, &theirs) < 0 || theirs.st_rdev != device.st_rdev) {
		close(fd);
		return -EAGAIN;
	}
	return fd;
}
