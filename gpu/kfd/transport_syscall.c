/* SPDX-License-Identifier: MIT */
/* The transport to the kernel: device, file trees and clock. Memory: mem_syscall.c. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>

#include "abi/kfd_gpreempt.h"
#include "gpu/files.h"
#include "gpu/helpers/borrow.h"
#include "gpu/kfd/transport.h"
#include "util/clock.h"
#include "util/macros.h"

struct kernel {
	char *root;
	int kfd; /* negative: not open, as the next */
	int ext; /* any thread opens it */
	bool expendable;
	DIR *procs; /* one thread's; NULL: not open */
};

void *gkfd_syscall_new(const char *root)
{
	struct kernel *k = calloc(1, sizeof(*k));

	if (!k)
		return NULL;
	k->kfd = -1;
	k->ext = -1;
	k->root = strdup(root ? root : "");
	if (!k->root) {
		free(k);
		return NULL;
	}
	return k;
}

void gkfd_syscall_may_hang(void *data)
{
	struct kernel *k = data;

	k->expendable = true;
}

static void kernel_close(void *data)
{
	struct kernel *k = data;

	closep(&k->kfd);
	closep(&k->ext); /* lets go of all that is held through it */
	if (k->procs)
		closedir(k->procs);
	free(k->root);
	free(k);
}

static int open_below_root(const struct kernel *k, const char *path, int flags)
{
	_cleanup_free_ char *full = NULL;
	int fd;

	if (asprintf(&full, "%s%s", k->root, path) < 0) {
		full = NULL; /* asprintf leaves it undefined */
		return -ENOMEM;
	}
	fd = open(full, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int kernel_open(void *data)
{
	struct kernel *k = data;

	if (k->kfd < 0)
		k->kfd = open_below_root(k, "/dev/kfd", O_RDWR);
	return MIN(k->kfd, 0);
}

static int kernel_ioctl_on(void *data, pid_t pid, int fd, unsigned long request, void *arg)
{
	int r;

	do {
		r = ioctl(fd, request, arg);
	} while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : r;
}

static int kernel_ioctl(void *data, unsigned long request, void *arg)
{
	struct kernel *k = data;

	return kernel_ioctl_on(data, 0, k->kfd, request, arg);
}

/* The first to open it wins: what is held belongs to one file. */
static int open_ext(struct kernel *k)
{
	int fd = __atomic_load_n(&k->ext, __ATOMIC_ACQUIRE), none = -1;

	if (fd >= 0)
		return fd;
	fd = open_below_root(k, "/dev/" KFD_GPREEMPT_DEVICE, O_RDWR);
	if (fd < 0)
		return fd == -ENOENT || fd == -ENXIO ? -ENODEV : fd;
	if (__atomic_compare_exchange_n(&k->ext, &none, fd, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return fd;
	close(fd);
	return none;
}

static int kernel_ext(void *data, unsigned long request, void *arg)
{
	int fd = open_ext(data);

	return fd < 0 ? fd : kernel_ioctl_on(data, 0, fd, request, arg);
}

int gkfd_syscall_device(void *data, dev_t *ret)
{
	_cleanup_close_ int kfd = open_below_root(data, "/dev/kfd", O_PATH);
	struct stat device;

	if (kfd < 0)
		return kfd;
	if (fstat(kfd, &device) < 0)
		return -errno;
	*ret = device.st_rdev;
	return 0;
}

static int kernel_borrow(void *data, pid_t pid, unsigned int nth)
{
	const struct kernel *k = data;
	dev_t device;
	int r = gkfd_syscall_device(data, &device);

	return r < 0 ? r : (k->expendable ? borrow_here : borrow)(pid, device, nth);
}

static int kernel_opens(void *data)
{
	const struct kernel *k = data;
	_cleanup_close_ int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	_cleanup_free_ char *path = NULL;

	if (fd < 0)
		return -errno;
	if (asprintf(&path, "%s/dev/kfd", k->root) < 0) {
		path = NULL; /* asprintf leaves it undefined */
		return -ENOMEM;
	}
	return inotify_add_watch(fd, path, IN_OPEN) < 0 ? -errno : steal_fd(&fd);
}

/* Of a file in a tree; in one piece, as the kernel walks it faster than in two. */
static int full_path(const struct kernel *k, enum gkfd_tree tree, const char *path, char **ret)
{
	static const char *const dirs[GKFD_TREE_COUNT] = {
		[GKFD_TREE_SYSFS] = "/sys/class/kfd/kfd",
		[GKFD_TREE_DEBUGFS] = "/sys/kernel/debug/kfd",
		[GKFD_TREE_PARAMS] = "/sys/module/amdgpu/parameters",
		[GKFD_TREE_MODULE] = "/sys/module/amdgpu",
		[GKFD_TREE_PROC] = "/proc",
		[GKFD_TREE_SYS] = "/sys",
	};

	if (!files_stay_inside(path))
		return -EINVAL;
	if (asprintf(ret, "%s%s/%s", k->root, dirs[tree], path) < 0) {
		*ret = NULL; /* asprintf leaves it undefined */
		return -ENOMEM;
	}
	return 0;
}

static bool is_link_of_proc(const char *path)
{
	const char *slash = strrchr(path, '/');

	return strstr(path, "/ns/") || strstr(path, "/fd/") || (slash && !strcmp(slash, "/exe"));
}

static int kernel_read_file(void *data, enum gkfd_tree tree, const char *path, char **ret_text,
			    size_t *ret_len)
{
	_cleanup_free_ char *full = NULL;
	int r = full_path(data, tree, path, &full);

	if (r < 0)
		return r;
	r = -EINVAL;
	if (tree == GKFD_TREE_PROC && is_link_of_proc(path))
		r = files_read_link(AT_FDCWD, full, ret_text, ret_len);
	if (r != -EINVAL)
		return r;
	return files_read(AT_FDCWD, full, GKFD_FILE_MAX_BYTES, ret_text, ret_len);
}

static int kernel_list_dir(void *data, enum gkfd_tree tree, const char *path, char **ret_names)
{
	_cleanup_free_ char *full = NULL;
	int r = full_path(data, tree, path, &full);

	return r < 0 ? r : files_list(AT_FDCWD, full, ret_names);
}

/* The folder is kept open: to walk to it costs more than to read it. */
static int open_procs(struct kernel *k)
{
	_cleanup_free_ char *full = NULL;
	int r = k->procs ? 0 : full_path(k, GKFD_TREE_SYSFS, "proc", &full);

	if (r < 0 || k->procs)
		return r;
	k->procs = opendir(full);
	return k->procs ? 0 : -errno;
}

/* FNV-1a, over the folders that processes are while they use the driver. */
static int kernel_stamp(void *data, uint64_t *ret)
{
	uint64_t stamp = 0xcbf29ce484222325;
	struct kernel *k = data;
	const struct dirent *e;
	int r = open_procs(k);

	if (r < 0)
		return r;
	rewinddir(k->procs);
	while ((e = readdir(k->procs)))
		for (const char *c = e->d_name; c == e->d_name || c[-1]; c++)
			stamp = (stamp ^ (unsigned char)*c) * 0x100000001b3;
	*ret = stamp;
	return 0;
}

uint64_t gkfd_syscall_now_ns(void *data)
{
	return monotonic_ns();
}

/* A signal does not end the wait: who wants to hear of one passes a descriptor for it. */
int gkfd_syscall_wait(void *data, struct pollfd *fds, size_t n, uint64_t timeout_ns)
{
	uint64_t start_ns = gkfd_syscall_now_ns(data), left_ns = timeout_ns;

	for (;;) {
		struct timespec left = {
			.tv_sec = (time_t)(left_ns / NSEC_PER_SEC),
			.tv_nsec = (long)(left_ns % NSEC_PER_SEC),
		};
		uint64_t spent_ns;
		int r = ppoll(fds, n, timeout_ns == UINT64_MAX ? NULL : &left, NULL);

		if (r >= 0)
			return r;
		if (errno != EINTR)
			return -errno;
		spent_ns = gkfd_syscall_now_ns(data) - start_ns;
		left_ns = spent_ns < timeout_ns ? timeout_ns - spent_ns : 0;
	}
}

/* Files below a root of one's own were captured, and processes in them are of another machine. */
static bool kernel_is_real(void *data, pid_t pid)
{
	const struct kernel *k = data;

	return !*k->root;
}

const struct gkfd_transport gkfd_transport_syscall = {
	.trace = &gkfd_trace_syscall,
	.is_real = kernel_is_real,
	.open = kernel_open,
	.close = kernel_close,
	.ioctl = kernel_ioctl,
	.ext = kernel_ext,
	.opens = kernel_opens,
	.stamp = kernel_stamp,
	.borrow = kernel_borrow,
	.ioctl_on = kernel_ioctl_on,
	.read_file = kernel_read_file,
	.list_dir = kernel_list_dir,
	.read_mem = gkfd_syscall_read_mem,
	.now_ns = gkfd_syscall_now_ns,
	.wait = gkfd_syscall_wait,
};
