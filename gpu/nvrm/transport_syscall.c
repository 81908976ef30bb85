/* SPDX-License-Identifier: MIT */
/* The transport to the kernel. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "gpu/files.h"
#include "gpu/helpers/borrow.h"
#include "gpu/nvrm/rm.h"
#include "util/clock.h"
#include "util/macros.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434 /* the same on every architecture since Linux 5.3 */
#endif

#define READ_MOST_BYTES (16u << 20)
#define LIST_MOST 1024u /* entries at once */

struct kernel {
	char *root;
	struct nvrm_readers *readers; /* NULL: none */
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

int nvrm_syscall_by_readers(void *data)
{
	struct kernel *k = data;

	return nvrm_readers_new(&k->readers);
}

static void kernel_close(void *data)
{
	struct kernel *k = data;

	nvrm_readers_free(k->readers);
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

static int kernel_borrow(void *data, pid_t pid, uint64_t device, struct borrow_place *at,
			 struct borrowed *ret)
{
	return borrow_some_here(pid, (dev_t)device, at, ret, NVRM_COPIES);
}

static void kernel_drop_fd(void *data, int fd)
{
	struct kernel *k = data;

	if (k->readers)
		nvrm_readers_drop(k->readers, fd);
	else
		close(fd);
}

static int find_device(const struct kernel *k, uint64_t *ret)
{
	_cleanup_free_ char *path = NULL;
	int r = below_root(k, "/dev/nvidiactl", &path);
	struct stat device;

	if (r < 0)
		return r;
	if (stat(path, &device) < 0)
		return errno == ENOENT ? -ENODEV : -errno;
	*ret = device.st_rdev;
	return 0;
}

/* Also without readers of ours, what could hang for ever is done by one. */
static void kernel_ask(void *data, struct nvrm_question *q)
{
	struct nvrm n = { .transport = &nvrm_transport_syscall, .data = data };
	struct kernel *k = data;
	bool copies = q->words.what == NVRM_ASK_COPIES;
	int r = copies ? find_device(k, &q->words.device) : 0;

	if (r < 0)
		nvrm_question_end(q, r);
	else if (k->readers)
		nvrm_readers_ask(k->readers, q);
	else if (copies)
		nvrm_readers_ask_now(q);
	else
		nvrm_question_end(q, nvrm_answer(&n, &q->words, NULL));
}

static void kernel_forget(void *data, struct nvrm_question *q)
{
	nvrm_readers_forget(q);
}

static int kernel_answers_fd(void *data)
{
	struct kernel *k = data;

	return k->readers ? nvrm_readers_fd(k->readers) : -1;
}

static uint64_t kernel_hear(void *data)
{
	struct kernel *k = data;

	return k->readers ? nvrm_readers_hear(k->readers) : UINT64_MAX;
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

/* Below /proc; false: it is longer than a path may be. */
static bool proc_path(const struct kernel *k, const char *path, char ret[static PATH_MAX])
{
	return snprintf(ret, PATH_MAX, "%s/proc/%s", k->root, path) < PATH_MAX;
}

/* As the kernel has it, getdents(2): the C library keeps the struct to itself. */
struct entry {
	uint64_t inode;
	int64_t next; /* position of the one after it; in /proc it is good for another open, too */
	unsigned short len;
	unsigned char type;
	char name[];
};

#define ENTRY_BYTES 24u /* of the shortest */
#define LONGEST_BYTES 512u /* it is refused if the next one does not fit */

static bool parse_number(const char *name, uint32_t *ret)
{
	unsigned long number;

	if (!*name || name[strspn(name, "0123456789")] != '\0' || strlen(name) > 10)
		return false;
	number = strtoul(name, NULL, 10);
	*ret = (uint32_t)number;
	return number <= UINT32_MAX;
}

static int list_from(int dir, uint64_t *position, uint32_t *ret, size_t max)
{
	_Alignas(struct entry) char buf[LIST_MOST * ENTRY_BYTES + LONGEST_BYTES];
	size_t count = 0;

	if (lseek(dir, (off_t)*position, SEEK_SET) < 0)
		return -errno;
	while (count < max) {
		size_t most = (max - count) * ENTRY_BYTES + LONGEST_BYTES;
		long n = syscall(SYS_getdents64, dir, buf, most);

		if (n < 0)
			return -errno;
		if (n == 0) {
			*position = NVRM_LIST_END;
			break;
		}
		for (long at = 0; at < n && count < max;) {
			const struct entry *e = (const struct entry *)(buf + at);

			count += parse_number(e->name, &ret[count]);
			*position = (uint64_t)e->next;
			at += e->len;
		}
	}
	return (int)count;
}

static int kernel_list(void *data, const char *path, uint64_t *position, uint32_t *ret, size_t max)
{
	_cleanup_close_ int dir = -1;
	char full[PATH_MAX];

	if (!proc_path(data, path, full))
		return -ENAMETOOLONG;
	dir = open(full, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir < 0 ? -errno : list_from(dir, position, ret, MIN(max, LIST_MOST));
}

static int kernel_read_link(void *data, const char *path, char *ret, size_t size)
{
	char full[PATH_MAX];
	ssize_t len;

	if (!proc_path(data, path, full))
		return -ENAMETOOLONG;
	len = readlink(full, ret, size - 1);
	if (len < 0)
		return -errno;
	ret[len] = '\0';
	return (int)len;
}

/* Its effective one, also of a process that may not be dumped: Linux fs/proc/base.c. */
static int kernel_owner(void *data, pid_t pid, uid_t *ret)
{
	char path[16], full[PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%d", (int)pid);
	if (!proc_path(data, path, full))
		return -ENAMETOOLONG;
	if (stat(full, &st) < 0)
		return -errno;
	*ret = st.st_uid;
	return 0;
}

static uint64_t kernel_now_ns(void *data)
{
	return monotonic_ns();
}

const struct nvrm_transport nvrm_transport_syscall = {
	.close = kernel_close,
	.open = kernel_open,
	.ioctl = kernel_ioctl,
	.close_fd = kernel_close_fd,
	.pidfd = kernel_pidfd,
	.borrow = kernel_borrow,
	.drop_fd = kernel_drop_fd,
	.read_proc = kernel_read_proc,
	.list_proc = kernel_list_proc,
	.list_numbers = kernel_list,
	.read_link = kernel_read_link,
	.owner = kernel_owner,
	.now_ns = kernel_now_ns,
	.ask = kernel_ask,
	.forget = kernel_forget,
	.answers_fd = kernel_answers_fd,
	.hear = kernel_hear,
};
