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
static bool may_be_device(int dir, const char *name)
{
	char target[PATH_MAX];
	ssize_t len = readlinkat(dir, name, target, sizeof(target) - 1);

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

/* /proc has them in the order of their numbers. */
static int find_number(pid_t pid, dev_t rdev, unsigned int nth)
{
	_cleanup_(closedirp) DIR *dir = NULL;
	char path[sizeof("/proc//fd") + 3 * sizeof(pid_t)];
	const struct dirent *e;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? -ESRCH : -errno;
	while ((e = readdir(dir)) != NULL) {
		if (e->d_name[0] != '.' && may_be_device(dirfd(dir), e->d_name) &&
		    is_device(dirfd(dir), e->d_name, 0, rdev) && nth-- == 0)
			return (int)strtol(e->d_name, NULL, 10);
	}
	return -ENOENT;
}

static int borrow_once(int pidfd, pid_t pid, dev_t rdev, unsigned int nth, uint32_t *ret_number)
{
	int number = find_number(pid, rdev, nth), fd;

	if (number < 0)
		return number;
	fd = (int)syscall(SYS_pidfd_getfd, pidfd, number, 0u); /* close-on-exec by nature */
	if (fd < 0)
		return errno == EBADF ? -EAGAIN : -errno;
	/* The number may stand for something else by now, and the pid for somebody else. */
	if (!is_device(fd, "", AT_EMPTY_PATH, rdev)) {
		close(fd);
		return -EAGAIN;
	}
	if (ret_number)
		*ret_number = (uint32_t)number;
	return fd;
}

int borrow_here(pid_t pid, dev_t rdev, unsigned int nth, uint32_t *ret_number)
{
	_cleanup_close_ int pidfd = (int)syscall(SYS_pidfd_open, pid, 0u);
	int r = -EAGAIN;

	if (pidfd < 0)
		return -errno;
	for (int i = 0; i < TRIES && r == -EAGAIN; i++)
		r = borrow_once(pidfd, pid, rdev, nth, ret_number);
	return r;
}

int borrow_serve(void *user, pid_t pid, const void *request, size_t len, struct reader_room *room)
{
	const struct borrow_request *want = request;
	int r = 0;

	if (len != sizeof(*want) || want->most > READER_FDS)
		return -EINVAL;
	while (room->n_fds < want->most) {
		uint32_t number;

		r = borrow_here(pid, want->rdev, want->first + room->n_fds, &number);
		if (r < 0)
			break;
		room->fds[room->n_fds++] = r;
		reader_put(room, &number, sizeof(number));
	}
	return room->n_fds ? (int)room->n_fds : r;
}

/* ---- one, waiting for it ---- */

struct one {
	struct readers_task task;
	struct borrow_request request;
	unsigned int left;
	int result;
	uint32_t number;
};

static size_t write_one(struct readers_task *t, uint32_t reader, void *to, size_t max)
{
	const struct one *one = (const struct one *)t;

	if (max < sizeof(one->request))
		return SIZE_MAX;
	memcpy(to, &one->request, sizeof(one->request));
	return sizeof(one->request);
}

static void one_done(struct readers_task *t, struct readers_answer *answer)
{
	struct one *one = (struct one *)t;

	one->left = 0;
	one->result = answer->result;
	if (answer->n_fds && answer->len >= sizeof(one->number)) {
		one->result = steal_fd(&answer->fds[0]);
		memcpy(&one->number, answer->bytes, sizeof(one->number));
	}
}

int borrow(pid_t pid, dev_t rdev, unsigned int nth, uint32_t *ret_number)
{
	struct one one = {
		.task = { .service = READER_BORROW,
			  .pid = pid,
			  .user = READERS_SYSTEM,
			  .wants_fds = true,
			  .write = write_one,
			  .done = one_done },
		.request = { .rdev = rdev, .first = nth, .most = 1 },
		.left = 1,
		.result = -ETIMEDOUT,
	};
	struct readers *r;
	int error = readers_new(&(struct readers_options){ .patience_ns = PATIENCE_NS }, &r);

	if (error < 0)
		return error;
	readers_post(r, &one.task);
	readers_wait(r, 2 * PATIENCE_NS, &one.left);
	readers_cancel(r, &one.task);
	readers_free(r);
	if (ret_number)
		*ret_number = one.number;
	return one.result;
}
