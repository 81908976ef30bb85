/* SPDX-License-Identifier: MIT */
#include "gpu/soft/transport.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "abi/kfd.h"
#include "abi/kfd_gpreempt.h"
#include "gpu/files.h"
#include "gpu/soft/link.h"
#include "gpu/soft/wire.h"
#include "util/macros.h"

struct soft {
	struct soft_link link;
	void *kernel; /* for the machine's /proc */
};

static int call(struct soft *s, enum device_op op, pid_t pid, uint32_t number,
		struct device_return *ret)
{
	struct soft_call c = { .call = { .op = op, .pid = pid, .number = number } };
	int r = soft_call(&s->link, &c);

	closep(&c.fd);
	if (ret)
		*ret = c.answer;
	return r;
}

/* ---- its life ---- */

static void soft_close(void *data)
{
	struct soft *s = data;

	soft_link_close(&s->link);
	if (s->kernel)
		gkfd_transport_syscall.close(s->kernel);
	free(s);
}

int soft_new(const char *socket, void **ret_data)
{
	struct soft *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->kernel = gkfd_syscall_new(NULL);
	r = soft_link_open(&s->link, socket);
	if (!s->kernel)
		r = -ENOMEM;
	if (r < 0) {
		soft_close(s);
		return r;
	}
	*ret_data = s;
	return 0;
}

static int soft_open(void *data)
{
	return call(data, DEVICE_OP_OPEN, 0, 0, NULL);
}

/* Of a socket nobody tells that it was opened: the device changes its times. */
static int soft_opens(void *data)
{
	const struct soft *s = data;
	_cleanup_close_ int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	if (fd < 0)
		return -errno;
	return inotify_add_watch(fd, s->link.addr.sun_path, IN_ATTRIB) < 0 ? -errno : steal_fd(&fd);
}

/* ---- ioctls ---- */

/* Descriptors mean nothing to the device: it is told what they stand for. */
static int name_descriptor(unsigned long request, const void *arg, uint64_t *ret)
{
	const struct kfd_ioctl_dbg_trap_args *trap = arg;
	const struct kfd_gpreempt_bind *bind = arg;
	struct stat st;

	if (request == AMDKFD_IOC_DBG_TRAP && trap->op == KFD_IOC_DBG_TRAP_ENABLE) {
		if (fstat((int)trap->enable.dbg_fd, &st) < 0)
			return -EBADF;
		*ret = st.st_ino;
	} else if (request == KFD_GPREEMPT_BIND) {
		if (pread(bind->fd, ret, sizeof(*ret), 0) != sizeof(*ret))
			return -EBADF;
	}
	return 0;
}

static int call_driver(struct soft *s, enum device_op op, pid_t pid, unsigned long request,
		       void *arg)
{
	struct device_span spans[DEVICE_IOCTL_SPANS];
	struct soft_call c = { .call = { .op = op, .pid = pid, .request = request } };
	int n = device_spans(request, arg, spans), r;

	if (n < 0)
		return n;
	r = name_descriptor(request, arg, &c.call.value);
	if (r < 0)
		return r;
	c.call.n_spans = (uint32_t)n;
	c.out[c.n_out++] = (struct iovec){ spans, (size_t)n * sizeof(*spans) };
	for (int i = 0; i < n; i++) {
		struct iovec part = { (void *)(uintptr_t)spans[i].addr, spans[i].bytes };

		c.call.n_bytes += spans[i].bytes;
		c.out[c.n_out++] = part;
		c.in[c.n_in++] = part;
	}
	r = soft_call(&s->link, &c);
	closep(&c.fd);
	return r;
}

static int soft_ioctl(void *data, unsigned long request, void *arg)
{
	return call_driver(data, DEVICE_OP_IOCTL, getpid(), request, arg);
}

/* @fd says whose it is, and that is @pid's. */
static int soft_ioctl_on(void *data, pid_t pid, int fd, unsigned long request, void *arg)
{
	return call_driver(data, DEVICE_OP_IOCTL, pid, request, arg);
}

static int soft_ext(void *data, unsigned long request, void *arg)
{
	return call_driver(data, DEVICE_OP_EXT, 0, request, arg);
}

/* The pipe is the device's, which nobody can make it wait at. */
static int soft_events(void *data, int ret_fds[2])
{
	struct soft *s = data;
	struct soft_call c = { .call = { .op = DEVICE_OP_EVENTS } };
	int r = soft_call(&s->link, &c);
	_cleanup_close_ int fd = c.fd;

	if (r < 0)
		return r;
	ret_fds[1] = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (ret_fds[1] < 0)
		return fd < 0 ? -ENODEV : -errno;
	ret_fds[0] = steal_fd(&fd);
	return 0;
}

static int soft_borrow(void *data, pid_t pid, unsigned int nth)
{
	_cleanup_close_ int fd = -1;
	struct device_return answer;
	int r = call(data, DEVICE_OP_BORROW, pid, nth, &answer);

	if (r < 0)
		return r;
	fd = memfd_create("kfd", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, &answer.value, sizeof(answer.value)) != sizeof(answer.value))
		return -ENOMEM;
	return steal_fd(&fd);
}

/* ---- files ---- */

/* Of a path "PID/..."; 0: of another. */
static pid_t pid_of(const char *path, const char **ret_rest)
{
	char *end;
	unsigned long pid = strtoul(path, &end, 10);

	*ret_rest = *end == '/' ? end + 1 : end;
	return end == path || pid > INT32_MAX ? 0 : (pid_t)pid;
}

/*
 * What of /proc is neither the machine's nor the device's: the pids that the device knows are those
 * of our own namespace, whichever that is, and what a process has open there its real descriptors
 * do not show.
 */
static bool is_nobodys(const char *path)
{
	const char *rest;
	pid_t pid = pid_of(path, &rest);

	if (!strncmp(path, "self/ns/", strlen("self/ns/")))
		return true;
	return pid && pid != getpid() && (!strcmp(rest, "fd") || !strncmp(rest, "fd/", 3));
}

/* *ret_text has a NUL after it. -EXDEV: it is the machine's. */
static int keep_text(const char *bytes, size_t len, char **ret_text, size_t *ret_len)
{
	char *text = malloc(len + 1);

	if (!text)
		return -ENOMEM;
	memcpy(text, bytes, len);
	text[len] = '\0';
	*ret_text = text;
	*ret_len = len;
	return 0;
}

static int ask_file(struct soft *s, enum device_op op, enum gkfd_tree tree, const char *path,
		    char **ret_text, size_t *ret_len)
{
	char bytes[DEVICE_INLINE_BYTES];
	struct soft_call c = {
		.call = { .op = op, .number = tree, .n_bytes = (uint32_t)strlen(path) + 1 },
		.out = { { (void *)path, strlen(path) + 1 } },
		.n_out = 1,
		.in = { { bytes, sizeof(bytes) } },
		.n_in = 1,
	};
	_cleanup_close_ int fd = -1;
	int r;

	if (tree == GKFD_TREE_PROC && is_nobodys(path))
		return -ENOENT;
	if (tree == GKFD_TREE_PROC && !s->link.invented)
		return -EXDEV;
	r = soft_call(&s->link, &c);
	fd = c.fd;
	if (r < 0)
		return r;
	if (fd >= 0)
		return files_read_open(fd, GKFD_FILE_MAX_BYTES, ret_text, ret_len);
	return keep_text(bytes, c.answer.n_bytes, ret_text, ret_len);
}

/* Who traces a process there, nobody on the machine does. */
static int show_tracer(struct soft *s, const char *path, char **text, size_t *len)
{
	static const char none[] = "\nTracerPid:\t0\n";
	const char *rest, *at = strstr(*text, none);
	pid_t pid = pid_of(path, &rest);
	struct device_return answer;
	char *changed;
	int n;

	if (!pid || strcmp(rest, "status") || !at ||
	    call(s, DEVICE_OP_TRACER, pid, 0, &answer) < 0 || !answer.value)
		return 0;
	n = asprintf(&changed, "%.*s\nTracerPid:\t%llu\n%s", (int)(at - *text), *text,
		     (unsigned long long)answer.value, at + strlen(none));
	if (n < 0)
		return -ENOMEM;
	free(*text);
	*text = changed;
	*len = (size_t)n;
	return 0;
}

static int soft_read_file(void *data, enum gkfd_tree tree, const char *path, char **ret_text,
			  size_t *ret_len)
{
	struct soft *s = data;
	_cleanup_free_ char *text = NULL;
	int r = ask_file(s, DEVICE_OP_READ_FILE, tree, path, ret_text, ret_len);

	if (r != -EXDEV)
		return r;
	r = gkfd_transport_syscall.read_file(s->kernel, tree, path, &text, ret_len);
	if (r >= 0)
		r = show_tracer(s, path, &text, ret_len);
	if (r < 0)
		return r;
	*ret_text = steal_ptr(&text);
	return 0;
}

static int soft_list_dir(void *data, enum gkfd_tree tree, const char *path, char **ret_names)
{
	struct soft *s = data;
	size_t len;
	int r = ask_file(s, DEVICE_OP_LIST_DIR, tree, path, ret_names, &len);

	if (r != -EXDEV)
		return r;
	return gkfd_transport_syscall.list_dir(s->kernel, tree, path, ret_names);
}

/* ---- memory ---- */

/* So many, from the first on, as one call has room for. */
static size_t fill_spans(const struct gkfd_span *from, size_t n, struct device_span *to,
			 size_t *ret_bytes)
{
	size_t bytes = 0, i;

	for (i = 0; i < n && i < DEVICE_MAX_SPANS; i++) {
		if (from[i].len > DEVICE_MAX_CALL_BYTES / 2 ||
		    bytes + from[i].len > DEVICE_MAX_CALL_BYTES / 2)
			break;
		to[i] = (struct device_span){ from[i].addr, (uint32_t)from[i].len, 0 };
		bytes += from[i].len;
	}
	*ret_bytes = bytes;
	return i;
}

static void take_spans(struct gkfd_span *spans, size_t n, const uint8_t *ok, const uint8_t *bytes)
{
	for (size_t i = 0; i < n; i++) {
		spans[i].ok = ok[i];
		if (ok[i])
			memcpy(spans[i].buf, bytes, spans[i].len);
		bytes += spans[i].len;
	}
}

/* How many were tried. */
static int read_some(struct soft *s, pid_t pid, struct gkfd_span *spans, size_t n)
{
	_cleanup_free_ struct device_span *asked =
		calloc(MIN(n, (size_t)DEVICE_MAX_SPANS), sizeof(*asked));
	_cleanup_free_ uint8_t *answer = NULL;
	size_t bytes, now = asked ? fill_spans(spans, n, asked, &bytes) : 0;
	struct soft_call c = {
		.call = { .op = DEVICE_OP_READ_MEM, .pid = pid, .n_spans = (uint32_t)now },
		.out = { { asked, now * sizeof(*asked) } },
		.n_out = 1,
		.n_in = 1,
	};
	int r;

	if (!asked)
		return -ENOMEM;
	if (!now) {
		spans[0].ok = false;
		return 1;
	}
	answer = malloc(now + bytes);
	if (!answer)
		return -ENOMEM;
	c.in[0] = (struct iovec){ answer, now + bytes };
	r = soft_call(&s->link, &c);
	closep(&c.fd);
	if (r >= 0 && c.answer.n_bytes != now + bytes)
		r = -ENODEV;
	if (r < 0)
		return r;
	take_spans(spans, now, answer, answer + now);
	return (int)now;
}

static bool is_own_page(const struct gkfd_span *s)
{
	return s->addr >= DEVICE_PAGES_VA && s->addr < DEVICE_PAGES_VA + DEVICE_PAGES_BYTES;
}

/* What the job has itself, it may be asked for. False: some of it it has not. */
static bool read_own_pages(struct soft *s, pid_t pid, struct gkfd_mem *mem,
			   struct gkfd_span *spans, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!is_own_page(&spans[i]))
			return false;
	if (gkfd_transport_syscall.read_mem(s->kernel, pid, mem, spans, n) < 0)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!spans[i].ok)
			return false;
	return true;
}

static int soft_read_mem(void *data, pid_t pid, struct gkfd_mem *mem, struct gkfd_span *spans,
			 size_t n)
{
	if (read_own_pages(data, pid, mem, spans, n))
		return 0;
	for (size_t i = 0; i < n; i++)
		spans[i].ok = false;
	for (size_t i = 0; i < n;) {
		int r = read_some(data, pid, spans + i, n - i);

		if (r < 0)
			return i ? 0 : r;
		i += (size_t)r;
	}
	return 0;
}

uint64_t soft_save_ns(void *data)
{
	struct device_return answer;

	return call(data, DEVICE_OP_SAVE_NS, 0, 0, &answer) < 0 ? 0 : answer.value;
}

/* ---- process control ---- */

static int soft_seize(void *data, pid_t pid)
{
	return call(data, DEVICE_OP_SEIZE, pid, 0, NULL);
}

static int soft_detach(void *data, pid_t pid, int sig)
{
	return call(data, DEVICE_OP_DETACH, pid, 0, NULL);
}

/* Nobody is stopped by being traced there: there is nothing to interrupt or to let go on. */
static int soft_nothing(void *data, pid_t pid)
{
	return call(data, DEVICE_OP_TRACEE, pid, 0, NULL);
}

static int soft_cont(void *data, pid_t pid, int sig)
{
	return soft_nothing(data, pid);
}

/* One that it has invented has its files there. */
static bool soft_is_real(void *data, pid_t pid)
{
	_cleanup_free_ char *comm = NULL;
	char path[sizeof("/comm") + 3 * sizeof(pid)];
	size_t len;

	snprintf(path, sizeof(path), "%d/comm", pid);
	return ask_file(data, DEVICE_OP_READ_FILE, GKFD_TREE_PROC, path, &comm, &len) < 0;
}

static int soft_pidfd(void *data, pid_t pid)
{
	return soft_is_real(data, pid) ? gkfd_trace_syscall.pidfd(data, pid) : -ENOSYS;
}

/* Before every order: the machine tells without a word with the device whether a process lives. */
static int soft_reap(void *data, pid_t pid, int *ret_status)
{
	_cleanup_close_ int fd = soft_pidfd(data, pid);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int r = 0;

	if (fd == -ENOSYS)
		r = soft_nothing(data, pid);
	else if (fd == -ESRCH || (fd >= 0 && poll(&p, 1, 0) == 1))
		r = -ESRCH;
	return r == -ESRCH ? -ECHILD : r;
}

static const struct gkfd_trace_ops trace_ops = {
	.seize = soft_seize,
	.interrupt = soft_nothing,
	.cont = soft_cont,
	.listen = soft_nothing,
	.detach = soft_detach,
	.reap = soft_reap,
	.pidfd = soft_pidfd,
};

const struct gkfd_transport gkfd_transport_soft = {
	.modelled = true,
	.trace = &trace_ops,
	.is_real = soft_is_real,
	.open = soft_open,
	.close = soft_close,
	.ioctl = soft_ioctl,
	.ext = soft_ext,
	.opens = soft_opens,
	.events = soft_events,
	.borrow = soft_borrow,
	.ioctl_on = soft_ioctl_on,
	.read_file = soft_read_file,
	.list_dir = soft_list_dir,
	.read_mem = soft_read_mem,
	.now_ns = gkfd_syscall_now_ns,
	.wait = gkfd_syscall_wait,
};
