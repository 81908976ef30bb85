/* SPDX-License-Identifier: MIT */
/* The transport to the kernel. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "gpu/files.h"
#include "gpu/nvrm/nodes.h"
#include "gpu/nvrm/rm.h"
#include "util/clock.h"
#include "util/macros.h"

#define READ_MOST_BYTES (16u << 20)
#define LIST_MOST 1024u /* entries at once */
#define HEAR_NS (20 * NSEC_PER_MSEC) /* whether a reader hangs, and what was dropped with others */
#define BURY_NS NSEC_PER_SEC /* children that have dropped something */
#define WAIT_NS (2 * NSEC_PER_SEC)
#define DROPS_MAX 64u /* of a user, that nobody was found for; then no more of his are borrowed */

struct kernel {
	char *device, *proc; /* paths */
	int nodes; /* that tells when they are opened; or -errno */
	struct readers *readers; /* NULL: none */
	uid_t *users; /* whose file each descriptor is a copy of, by its number */
	uint32_t n_users;
	uint64_t dropped_ns; /* when those there were to drop went last */
};

static void kernel_close(void *data)
{
	struct kernel *k = data;

	readers_free(k->readers);
	closep(&k->nodes);
	free(k->users);
	free(k->device);
	free(k->proc);
	free(k);
}

void *nvrm_syscall_new(const char *root)
{
	struct kernel *k = calloc(1, sizeof(*k));

	if (!k)
		return NULL;
	k->nodes = -ENOSYS;
	if (asprintf(&k->device, "%s/dev/nvidiactl", root ? root : "") < 0)
		k->device = NULL; /* asprintf leaves it undefined */
	if (asprintf(&k->proc, "%s/proc", root ? root : "") < 0)
		k->proc = NULL;
	if (k->device && k->proc)
		return k;
	kernel_close(k);
	return NULL;
}

void nvrm_syscall_watch(void *data)
{
	struct kernel *k = data;

	k->nodes = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (k->nodes < 0)
		k->nodes = -errno;
}

void nvrm_syscall_watch_by(void *data, int inotify)
{
	struct kernel *k = data;

	k->nodes = inotify;
}

int nvrm_syscall_by_readers(void *data)
{
	struct kernel *k = data;
	const struct readers_options options = { .file = MAX(k->nodes, 0) };

	return readers_new(&options, &k->readers);
}

static int kernel_open(void *data)
{
	const struct kernel *k = data;
	int fd = open(k->device, O_RDWR | O_CLOEXEC);

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

/* ---- questions that readers answer, and descriptors that children close ---- */

static void kernel_drop_fd(void *data, int fd)
{
	const struct kernel *k = data;

	if (k->readers)
		drop_later(readers_drops(k->readers), fd,
			   (uint32_t)fd < k->n_users ? k->users[fd] : READERS_SYSTEM);
	else
		close(fd);
}

static int find_device(const struct kernel *k, uint64_t *ret)
{
	struct stat device;

	if (stat(k->device, &device) < 0)
		return errno == ENOENT ? -ENODEV : -errno;
	*ret = device.st_rdev;
	return 0;
}

static int note_user(struct kernel *k, int fd, uid_t user)
{
	uint32_t n = (uint32_t)fd + 1;
	uid_t *users;

	if (n > k->n_users) {
		users = reallocarray(k->users, n, sizeof(*users));
		if (!users)
			return -ENOMEM;
		k->users = users;
		k->n_users = n;
	}
	k->users[fd] = user;
	return 0;
}

/*
 * What came for nobody readers drop. Without readers of ours nothing is noted: several threads may
 * ask then.
 */
static int take_answer(struct nvrm_question *q, struct readers_answer *answer)
{
	struct kernel *k = q->transport;
	struct nvrm_words words;

	if (answer->result < 0)
		return answer->result;
	if (answer->len != sizeof(words))
		return -EBADMSG;
	memcpy(&words, answer->bytes, sizeof(words));
	if (words.what != q->words.what || (q->task.wants_fds && words.n != answer->n_fds))
		return -EBADMSG;
	for (uint32_t i = 0; k->readers && i < answer->n_fds; i++)
		if (note_user(k, answer->fds[i], q->user) < 0)
			return -ENOMEM;
	for (uint32_t i = 0; i < answer->n_fds; i++)
		words.copies[i].fd = steal_fd(&answer->fds[i]);
	q->words = words;
	return answer->result;
}

static void done(struct readers_task *t, struct readers_answer *answer)
{
	struct nvrm_question *q = container_of(t, struct nvrm_question, task);

	nvrm_question_end(q, take_answer(q, answer));
}

static void ask_reader(struct kernel *k, struct nvrm_question *q)
{
	int r;

	q->transport = k;
	q->task = (struct readers_task){
		.service = READER_NVRM,
		.pid = q->blamed,
		.user = q->user,
		.apart = q->apart,
		.wants_fds = q->words.what == NVRM_ASK_COPIES,
		.request = &q->words,
		.len = sizeof(q->words),
		.done = done,
	};
	if (k->readers) {
		readers_post(k->readers, &q->task);
		return;
	}
	r = readers_once(&q->task, 0, WAIT_NS);
	if (r < 0)
		nvrm_question_end(q, r);
}

/* Also without readers of ours, what could hang for ever is done by one. */
static void kernel_ask(void *data, struct nvrm_question *q)
{
	struct nvrm n = { .transport = &nvrm_transport_syscall, .data = data };
	struct kernel *k = data;
	bool copies = q->words.what == NVRM_ASK_COPIES;
	bool device = copies || q->words.what == NVRM_ASK_NODES;
	int r = device ? find_device(k, &q->words.device) : 0;

	if (r >= 0 && copies && k->readers &&
	    drop_count(readers_drops(k->readers), q->user) >= DROPS_MAX)
		r = -EMFILE;
	if (r < 0)
		nvrm_question_end(q, r);
	else if (copies || k->readers)
		ask_reader(k, q);
	else
		nvrm_question_end(q, nvrm_answer(&n, &q->words));
}

static void kernel_forget(void *data, struct nvrm_question *q)
{
	const struct kernel *k = data;

	readers_cancel(k->readers, &q->task);
}

static int kernel_answers_fd(void *data)
{
	const struct kernel *k = data;

	return k->readers ? readers_fd(k->readers) : -1;
}

/* A child costs a tenth of a millisecond or more: those of a short time go together. */
static uint64_t kernel_hear(void *data)
{
	struct kernel *k = data;
	struct drops *drops;
	uint64_t now_ns = monotonic_ns();

	if (!k->readers)
		return UINT64_MAX;
	drops = readers_drops(k->readers);
	readers_run(k->readers);
	if (now_ns - k->dropped_ns >= HEAR_NS) {
		drop_now(drops);
		k->dropped_ns = now_ns;
	}
	if (readers_are_busy(k->readers) || drops->n)
		return HEAR_NS;
	return drops->n_children ? BURY_NS : UINT64_MAX;
}

/* ---- /proc ---- */

static int open_proc(const struct kernel *k)
{
	int fd = open(k->proc, O_PATH | O_DIRECTORY | O_CLOEXEC);

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
	return snprintf(ret, PATH_MAX, "%s/%s", k->proc, path) < PATH_MAX;
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

/* ---- nodes ---- */

static int kernel_watch_nodes(void *data, pid_t pid, uint64_t device, uint32_t *ret, size_t max,
			      int *ret_error)
{
	const struct kernel *k = data;
	char path[32], full[PATH_MAX];

	if (k->nodes < 0)
		return k->nodes;
	snprintf(path, sizeof(path), "%d/root/dev", (int)pid);
	if (!proc_path(k, path, full))
		return -ENAMETOOLONG;
	return nodes_watch(k->nodes, full, (dev_t)device, ret, max, ret_error);
}

static void kernel_unwatch_node(void *data, uint32_t node)
{
	const struct kernel *k = data;

	if (k->nodes >= 0)
		inotify_rm_watch(k->nodes, (int)node);
}

static int kernel_opened(void *data, uint32_t *ret, size_t max)
{
	const struct kernel *k = data;

	return k->nodes < 0 ? k->nodes : nodes_opened(k->nodes, ret, max);
}

static int kernel_opened_fd(void *data)
{
	const struct kernel *k = data;

	return MAX(k->nodes, -1);
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
	.watch_nodes = kernel_watch_nodes,
	.unwatch_node = kernel_unwatch_node,
	.opened = kernel_opened,
	.opened_fd = kernel_opened_fd,
	.ask = kernel_ask,
	.forget = kernel_forget,
	.answers_fd = kernel_answers_fd,
	.hear = kernel_hear,
};
