/* SPDX-License-Identifier: MIT */
#include "gpu/helpers/borrow.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include "util/macros.h"

#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438 /* the same on every architecture since Linux 5.6 */
#endif

#define TRIES 3
#define PATIENCE_NS NSEC_PER_SEC

static void closedirp(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

/* Others are not even looked at: of a file on a network this may wait for a server, for ever. */
static bool may_be_device(int dir, const char *name, char target[static PATH_MAX])
{
	ssize_t len = readlinkat(dir, name, target, PATH_MAX - 1);

	if (len < 0)
		return false;
	target[len] = '\0';
	return strstr(target, "/dev/") != NULL;
}

/* As the kernel remembers it, without asking whoever serves the file. */
static bool is_device(int dir, const char *name, int flags, dev_t rdev)
{
	struct statx x;

	return statx(dir, name, AT_STATX_DONT_SYNC | flags, STATX_TYPE, &x) == 0 &&
	       S_ISCHR(x.stx_mode) && makedev(x.stx_rdev_major, x.stx_rdev_minor) == rdev;
}

static int open_descriptors(pid_t pid, DIR **ret)
{
	char path[sizeof("/proc//fd") + 3 * sizeof(pid_t)];

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	*ret = opendir(path);
	if (!*ret)
		return errno == ENOENT ? -ESRCH : -errno;
	return 0;
}

static int copy_number(int pidfd, int number, dev_t rdev)
{
	int fd = (int)syscall(SYS_pidfd_getfd, pidfd, number, 0u); /* close-on-exec by nature */

	if (fd < 0)
		return errno == EBADF ? -EAGAIN : -errno;
	/* The number may stand for something else by now, and the pid for somebody else. */
	if (!is_device(fd, "", AT_EMPTY_PATH, rdev)) {
		close(fd);
		return -EAGAIN;
	}
	return fd;
}

static bool is_wanted(DIR *dir, const char *name, dev_t rdev, char target[static PATH_MAX])
{
	return name[0] != '.' && may_be_device(dirfd(dir), name, target) &&
	       is_device(dirfd(dir), name, 0, rdev);
}

/* 1; 0: it is closed by now; -errno */
static int copy_entry(int pidfd, const char *name, const char *target, dev_t rdev,
		      struct borrowed *ret)
{
	ret->number = (uint32_t)strtoul(name, NULL, 10);
	ret->fd = copy_number(pidfd, (int)ret->number, rdev);
	snprintf(ret->link, sizeof(ret->link), "%.*s", BORROW_LINK - 1, target);
	if (ret->fd == -EAGAIN)
		return 0;
	return ret->fd < 0 ? ret->fd : 1;
}

/* A place in /proc/PID/fd is good for another open, too: Linux 6.12 proc_readfd_common(). */
int borrow_some_here(pid_t pid, dev_t rdev, struct borrow_place *at, struct borrowed *ret,
		     size_t max)
{
	_cleanup_close_ int pidfd = (int)syscall(SYS_pidfd_open, pid, 0u);
	_cleanup_(closedirp) DIR *dir = NULL;
	char target[PATH_MAX];
	const struct dirent *e;
	size_t n = 0;
	int r = pidfd < 0 ? -errno : open_descriptors(pid, &dir);

	if (r < 0)
		return r;
	seekdir(dir, (long)at->position);
	while (at->left && n < max && r >= 0) {
		e = readdir(dir);
		if (!e) {
			at->position = BORROW_END;
			break;
		}
		at->left--;
		at->position = (uint64_t)e->d_off;
		if (!is_wanted(dir, e->d_name, rdev, target))
			continue;
		if (at->skip) {
			at->skip--;
			continue;
		}
		r = copy_entry(pidfd, e->d_name, target, rdev, &ret[n]);
		n += r > 0;
		at->missed |= r == 0;
	}
	for (size_t i = 0; r < 0 && i < n; i++)
		close(ret[i].fd);
	return r < 0 ? r : (int)n;
}

/* At least one, from the @nth on. */
static int borrow_from(pid_t pid, dev_t rdev, unsigned int nth, struct borrowed *ret, size_t max)
{
	for (int i = 0; i < TRIES; i++) {
		struct borrow_place at = { .left = UINT_MAX, .skip = nth };
		int n = borrow_some_here(pid, rdev, &at, ret, max);

		if (n != 0 || !at.missed)
			return n == 0 ? -ENOENT : n;
	}
	return -EAGAIN;
}

int borrow_here(pid_t pid, dev_t rdev, unsigned int nth)
{
	struct borrowed one;
	int r = borrow_from(pid, rdev, nth, &one, 1);

	return r < 0 ? r : one.fd;
}

int borrow_serve(void *user, pid_t pid, const void *request, size_t len, struct reader_room *room)
{
	const struct borrow_request *want = request;
	struct borrowed got[READER_FDS];
	int n;

	if (len != sizeof(*want) || want->most > READER_FDS)
		return -EINVAL;
	n = borrow_from(pid, want->rdev, want->first, got, want->most);
	for (int i = 0; i < n; i++)
		room->fds[room->n_fds++] = got[i].fd;
	return n;
}

/* ---- one, waiting for it ---- */

struct one {
	struct readers_task task;
	int result;
};

static void one_done(struct readers_task *t, struct readers_answer *answer)
{
	struct one *one = (struct one *)t;

	one->result = answer->result;
	if (answer->n_fds)
		one->result = steal_fd(&answer->fds[0]);
}

int borrow(pid_t pid, dev_t rdev, unsigned int nth)
{
	const struct borrow_request request = { .rdev = rdev, .first = nth, .most = 1 };
	struct one one = {
		.task = { .service = READER_BORROW,
			  .pid = pid,
			  .user = READERS_SYSTEM,
			  .wants_fds = true,
			  .request = &request,
			  .len = sizeof(request),
			  .done = one_done },
	};
	int r = readers_once(&one.task, PATIENCE_NS, 2 * PATIENCE_NS);

	return r < 0 ? r : one.result;
}
