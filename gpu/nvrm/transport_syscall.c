/* SPDX-License-Identifier: MIT */
/* The transport to the kernel. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "gpu/nvrm/transport.h"
#include "util/macros.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434 /* the same on every architecture since Linux 5.3 */
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438 /* since Linux 5.6 */
#endif

#define READ_FIRST_BYTES 4096u
#define READ_MOST_BYTES (16u << 20)
#define BORROW_TRIES 3

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

/* ---- borrowing ---- */

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

/* The number of the @nth descriptor that is open on the device @rdev; /proc has them in order. */
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

static int kernel_borrow(void *data, int pidfd, pid_t pid, unsigned int nth)
{
	_cleanup_free_ char *path = NULL;
	int r = below_root(data, "/dev/nvidiactl", &path);
	struct stat device;

	if (r < 0)
		return r;
	if (stat(path, &device) < 0)
		return errno == ENOENT ? -ENODEV : -errno;
	r = -EAGAIN;
	for (int i = 0; i < BORROW_TRIES && r == -EAGAIN; i++)
		r = borrow_once(pidfd, pid, device.st_rdev, nth);
	return r;
}

/* ---- files ---- */

static bool path_is_inside(const char *path)
{
	if (*path == '/')
		return false;
	while (*path) {
		size_t len = strcspn(path, "/");

		if (len == 2 && path[0] == '.' && path[1] == '.')
			return false;
		path += len;
		path += strspn(path, "/");
	}
	return true;
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

/* Files of proc have no size: what they hold is known at their end. */
static int read_to_end(int fd, char **ret_text, size_t *ret_len)
{
	_cleanup_free_ char *text = NULL;
	size_t room = 0, len = 0;
	ssize_t r;

	do {
		if (len == room) {
			size_t bigger = room ? room * 2 : READ_FIRST_BYTES;
			char *grown = realloc(text, bigger + 1);

			if (!grown)
				return -ENOMEM;
			text = grown;
			room = bigger;
		}
		r = read(fd, text + len, room - len);
		if (r < 0 && errno != EINTR)
			return -errno;
		if (r > 0)
			len += (size_t)r;
		if (len > READ_MOST_BYTES)
			return -EFBIG;
	} while (r != 0);

	text[len] = '\0';
	*ret_text = steal_ptr(&text);
	*ret_len = len;
	return 0;
}

/* -EINVAL: not a link. */
static int read_link(int dir, const char *path, char **ret_text, size_t *ret_len)
{
	char target[PATH_MAX];
	ssize_t len = readlinkat(dir, path, target, sizeof(target) - 1);
	char *text;

	if (len < 0)
		return -errno;
	text = strndup(target, (size_t)len);
	if (!text)
		return -ENOMEM;
	*ret_text = text;
	*ret_len = strlen(text);
	return 0;
}

static int kernel_read_proc(void *data, const char *path, char **ret_text, size_t *ret_len)
{
	_cleanup_close_ int dir = -1, fd = -1;
	int r;

	if (!path_is_inside(path))
		return -EINVAL;
	dir = open_proc(data);
	if (dir < 0)
		return dir;
	r = read_link(dir, path, ret_text, ret_len);
	if (r != -EINVAL)
		return r;
	/* O_NONBLOCK: a fifo in a copied tree must not hang us. */
	fd = openat(dir, path, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return read_to_end(fd, ret_text, ret_len);
}

static int append_name(char **names, size_t *len, size_t *room, const char *name)
{
	size_t bytes = strlen(name) + 1;

	if (*len + bytes + 1 > *room) {
		size_t bigger = *room * 2 + bytes + READ_FIRST_BYTES;
		char *grown = realloc(*names, bigger);

		if (!grown)
			return -ENOMEM;
		*names = grown;
		*room = bigger;
	}
	memcpy(*names + *len, name, bytes);
	*len += bytes;
	(*names)[*len] = '\0';
	return 0;
}

static int kernel_list_proc(void *data, const char *path, char **ret_names)
{
	_cleanup_(closedirp) DIR *dir = NULL;
	_cleanup_free_ char *names = calloc(1, 1);
	_cleanup_close_ int proc = -1;
	size_t len = 0, room = 1;
	const struct dirent *e;
	int fd;

	if (!names)
		return -ENOMEM;
	if (!path_is_inside(path))
		return -EINVAL;
	proc = open_proc(data);
	if (proc < 0)
		return proc;
	fd = openat(proc, *path ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return -ENOMEM;
	}
	while ((e = readdir(dir)) != NULL) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (append_name(&names, &len, &room, e->d_name) < 0)
			return -ENOMEM;
	}
	*ret_names = steal_ptr(&names);
	return 0;
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
