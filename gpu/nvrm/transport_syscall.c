/* SPDX-License-Identifier: MIT */
/* The transport to the kernel. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "gpu/files.h"
#include "gpu/helpers/borrow.h"
#include "gpu/nvrm/transport.h"
#include "util/macros.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434 /* the same on every architecture since Linux 5.3 */
#endif

#define READ_MOST_BYTES (16u << 20)

struct kernel {
	char *root;
};

void *nvrm_syscall_new(const char *root)
{
	struct kernel *k = calloc(1, sizeof(*k));

	if (!k)
		return NULL;
	k->root = strdup(root ? root : "");
	if (!k->root) {
		free(k);
		return NULL;
	}
	return k;
}

static void kernel_close(void *data)
{
	struct kernel *k = data;

	free(k->root);
	free(k);
}

static int below_root(const struct kernel *k, const char *path, char **ret)
{
	char *full;

	if (asprintf(&full, "%s%s", k->root, path) < 0)
		return -ENOMEM;
	*ret = full;
	return 0;
}

static int kernel_open(void *data)
{
	_cleanup_free_ char *path = NULL;
	int r = below_root(data, "/dev/nvidiactl", &path), fd;

	if (r < 0)
		return r;
	fd = open(path, O_RDWR | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int kernel_ioctl(void *data, int fd, unsigned long request, void *arg)
{
	int r;

	do {
		r = ioctl(fd, request, arg);
	} while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : r;
}

static void kernel_close_fd(void *data, int fd)
{
	close(fd);
}

static int kernel_pidfd(void *data, pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0u);

	return fd < 0 ? -errno : fd;
}

static int kernel_borrow(void *data, int pidfd, pid_t pid, unsigned int nth)
{
	_cleanup_free_ char *path = NULL;
	int r = below_root(data, "/dev/nvidiactl", &path);
	struct pollfd end = { .fd = pidfd, .events = POLLIN };
	struct stat device;

	if (r < 0)
		return r;
	if (stat(path, &device) < 0)
		return errno == ENOENT ? -ENODEV : -errno;
	r = borrow(pid, device.st_rdev, nth);
	if (r >= 0 && poll(&end, 1, 0) != 0) { /* the pid may be another's */
		close(r);
		return -ESRCH;
	}
	return r;
}

static int open_proc(const struct kernel *k)
{
	_cleanup_free_ char *path = NULL;
	int r = below_root(k, "/proc", &path), fd;

	if (r < 0)
		return r;
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int kernel_read_proc(void *data, const char *path, char **ret_text, size_t *ret_len)
{
	_cleanup_close_ int dir = open_proc(data);
	int r;

	if (dir < 0)
		return dir;
	r = files_read_link(dir, path, ret_text, ret_len);
	return r == -EINVAL ? files_read(dir, path, READ_MOST_BYTES, ret_text, ret_len) : r;
}

static int kernel_list_proc(void *data, const char *path, char **ret_names)
{
	_cleanup_close_ int dir = open_proc(data);

	return dir < 0 ? dir : files_list(dir, path, ret_names);
}

static uint64_t kernel_now_ns(void *data)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

const struct nvrm_transport nvrm_transport_syscall = {
	.name = "nvrm",
	.close = kernel_close,
	.open = kernel_open,
	.ioctl = kernel_ioctl,
	.close_fd = kernel_close_fd,
	.pidfd = kernel_pidfd,
	.borrow = kernel_borrow,
	.read_proc = kernel_read_proc,
	.list_proc = kernel_list_proc,
	.now_ns = kernel_now_ns,
};
