/* SPDX-License-Identifier: MIT */
/* Calls of the driver. Who may do what, the driver decides, by the process that is connected. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "abi/kfd_gpreempt.h"
#include "cmd/gpreempt-softgpu/internal.h"
#include "util/macros.h"

#define DEBUGFS_BELOW_SYS "kernel/debug" /* which is root's alone, however it is reached */
#define MAX_PIPES DEVICE_MAX_PROCESSES /* a session each */
#define ACCURACY_US 1

struct client { /* one open device, and one of its extension */
	LIST_ENTRY(client) link;
	uint64_t id;
	uint32_t n_connections;
	uint64_t ext; /* its file; 0: not open */
	struct { /* for the events of its sessions; 0: none */
		uint64_t inode;
		int fd;
	} pipes[MAX_PIPES];
};

struct call {
	struct connection *c;
	struct model *m;
	const struct device_call *q;
	struct device_parts parts;
	struct model_task task;
	struct device_return *a;
	int fd; /* to go with the answer; -1: none */
};

/* ---- answers ---- */

static int make_answer(struct call *k, size_t n_bytes)
{
	free(k->a);
	k->a = calloc(1, sizeof(*k->a) + n_bytes);
	if (!k->a)
		return -ENOMEM;
	k->a->n_bytes = (uint32_t)n_bytes;
	return 0;
}

static uint8_t *bytes_of(struct device_return *a)
{
	return (uint8_t *)(a + 1);
}

/* Who calls has to listen: an answer that finds no room ends the connection. */
static int send_answer(struct connection *c)
{
	int r = connection_send(c, c->answer, c->answer->h.bytes, c->answer_fd);

	free(steal_ptr(&c->answer));
	closep(&c->answer_fd);
	c->answer_fd = -1;
	return r;
}

static int on_due(sd_event_source *source, uint64_t usec, void *user)
{
	struct connection *c = user;

	c->due = sd_event_source_disable_unref(c->due);
	sd_event_source_set_io_events(c->io, EPOLLIN);
	if (send_answer(c) < 0)
		connection_end(c);
	return 0;
}

/* When the modelled time of the call has passed. */
static int answer_then(struct connection *c, uint64_t at_ns)
{
	if (at_ns <= gkfd_syscall_now_ns(NULL))
		return send_answer(c);
	sd_event_source_set_io_events(c->io, 0);
	return sd_event_add_time(c->s->loop, &c->due, CLOCK_MONOTONIC, at_ns / NSEC_PER_USEC + 1,
				 ACCURACY_US, on_due, c);
}

/* ---- clients ---- */

static struct client *find_client(const struct process *p, uint64_t id)
{
	struct client *client;

	LIST_FOREACH(client, &p->clients, link)
		if (client->id == id)
			break;
	return client;
}

static struct client *add_client(struct process *p)
{
	struct client *client = calloc(1, sizeof(*client));

	if (!client)
		return NULL;
	client->id = ++p->s->next_client;
	LIST_INSERT_HEAD(&p->clients, client, link);
	return client;
}

static int join(struct call *k)
{
	struct connection *c = k->c;
	struct client *client;
	int r;

	if (k->q->pid != c->p->pid)
		return -EOPNOTSUPP;
	r = process_arrive(c->p);
	if (r < 0)
		return r;
	client = k->q->value ? find_client(c->p, k->q->value) : add_client(c->p);
	if (!client)
		return k->q->value ? -ESTALE : -ENOMEM;
	client->n_connections++;
	c->client = client;
	k->a->value = client->id;
	return c->s->invented;
}

void client_leave(struct connection *c)
{
	struct client *client = steal_ptr(&c->client);

	if (!client || --client->n_connections)
		return;
	if (client->ext)
		model_ext_close(c->s->m, client->ext);
	for (uint32_t i = 0; i < MAX_PIPES; i++)
		if (client->pipes[i].inode)
			close(client->pipes[i].fd);
	LIST_REMOVE(client, link);
	free(client);
}

static int open_device(struct call *k)
{
	int r = model_kfd_open(k->m, k->task);

	if (r >= 0)
		softgpu_opened(k->c->s);
	return r;
}

/* ---- ioctls ---- */

/* Nobody reads those any more. */
static void drop_pipes(struct client *client)
{
	for (uint32_t i = 0; i < MAX_PIPES; i++) {
		struct pollfd p = { .fd = client->pipes[i].fd };

		if (client->pipes[i].inode && poll(&p, 1, 0) == 1 && p.revents & POLLERR) {
			close(client->pipes[i].fd);
			client->pipes[i].inode = 0;
		}
	}
}

/* Nobody else can write to it, nor have it wait. */
static int make_events(struct call *k)
{
	struct client *client = k->c->client;
	uint32_t at = 0;
	struct stat st;
	int ends[2];

	drop_pipes(client);
	while (at < MAX_PIPES && client->pipes[at].inode)
		at++;
	if (at == MAX_PIPES)
		return -EMFILE;
	if (pipe2(ends, O_NONBLOCK | O_CLOEXEC) < 0)
		return -errno;
	k->fd = ends[0];
	fstat(ends[1], &st);
	client->pipes[at].inode = st.st_ino;
	client->pipes[at].fd = ends[1];
	k->a->value = st.st_ino;
	return 0;
}

static int find_pipe(const struct client *client, uint64_t inode)
{
	for (uint32_t i = 0; i < MAX_PIPES; i++)
		if (inode && client->pipes[i].inode == inode)
			return client->pipes[i].fd;
	return -1;
}

static int run_ioctl(struct call *k, void *arg)
{
	int r = 0;

	if (k->q->op == DEVICE_OP_IOCTL)
		return model_ioctl_now(k->m, k->task, k->q->pid, k->q->request, arg);
	if (!k->c->client->ext)
		r = model_ext_open(k->m, k->task, &k->c->client->ext);
	return r < 0 ? r : model_ext_ioctl(k->m, k->task, k->c->client->ext, k->q->request, arg);
}

/* Descriptors that the argument names are the caller's: ours stand for them meanwhile. */
static int run_named(struct call *k, void *arg, void *copy)
{
	struct kfd_ioctl_dbg_trap_args *trap = copy;
	struct kfd_gpreempt_bind *bind = copy;
	_cleanup_close_ int made = -1;
	uint32_t named;
	int r;

	if (k->q->request == AMDKFD_IOC_DBG_TRAP && trap->op == KFD_IOC_DBG_TRAP_ENABLE) {
		named = trap->enable.dbg_fd;
		trap->enable.dbg_fd = (uint32_t)find_pipe(k->c->client, k->q->value);
		r = run_ioctl(k, arg);
		trap->enable.dbg_fd = named;
	} else if (k->q->request == KFD_GPREEMPT_BIND) {
		named = (uint32_t)bind->fd;
		made = model_descriptor(k->q->value);
		bind->fd = made;
		r = run_ioctl(k, arg);
		bind->fd = (int32_t)named;
	} else {
		r = run_ioctl(k, arg);
	}
	return r;
}

static int call_driver(struct call *k)
{
	const struct device_span *spans = k->parts.spans;
	struct device_span known[DEVICE_IOCTL_SPANS];
	struct model_lent lent[DEVICE_IOCTL_SPANS];
	uint8_t *at;
	int r = make_answer(k, k->q->n_bytes);

	if (r < 0)
		return r;
	at = bytes_of(k->a);
	memcpy(at, k->parts.bytes, k->q->n_bytes);
	r = device_spans(k->q->request, at, known);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < k->q->n_spans; i++) {
		lent[i] = (struct model_lent){ spans[i].addr, at, spans[i].bytes };
		at += spans[i].bytes;
	}
	model_lend(k->m, lent, k->q->n_spans);
	r = run_named(k, (void *)(uintptr_t)spans[0].addr, lent[0].bytes);
	model_lend(k->m, NULL, 0);
	return r;
}

/* ---- files and memory ---- */

static bool is_debugfs(const struct call *k, const char *path)
{
	return k->q->number == GKFD_TREE_DEBUGFS ||
	       (k->q->number == GKFD_TREE_SYS &&
		strncmp(path, DEBUGFS_BELOW_SYS, strlen(DEBUGFS_BELOW_SYS)) == 0);
}

/* The driver's own rights; what of /proc is the machine's, the caller reads. */
static int check_file(const struct call *k, const char *path)
{
	if (k->q->number >= GKFD_TREE_COUNT)
		return -EINVAL;
	if (is_debugfs(k, path) && !k->c->p->admin)
		return -EACCES;
	if (k->q->number == GKFD_TREE_PROC &&
	    !model_is_invented(k->m, (pid_t)strtol(path, NULL, 10)))
		return -EXDEV;
	return 0;
}

static int read_file(struct call *k)
{
	const char *path = (const char *)k->parts.bytes;
	_cleanup_free_ char *text = NULL;
	size_t len;
	int r = check_file(k, path);

	if (r >= 0)
		r = model_read(k->m, k->q->number, path, k->q->op == DEVICE_OP_LIST_DIR, &text,
			       &len);
	if (r < 0)
		return r;
	if (len <= DEVICE_INLINE_BYTES) {
		r = make_answer(k, len);
		if (r >= 0)
			memcpy(bytes_of(k->a), text, len);
		return r;
	}
	k->fd = memfd_create("file", MFD_CLOEXEC);
	if (k->fd < 0)
		return -errno;
	return pwrite(k->fd, text, len, 0) == (ssize_t)len ? 0 : -ENOMEM;
}

static int read_mem(struct call *k)
{
	const struct device_span *spans = k->parts.spans;
	uint32_t n = k->q->n_spans;
	size_t bytes = n;
	uint8_t *ok, *at;
	int r = model_check_trace(k->m, k->task.pid, k->q->pid);

	if (r < 0)
		return r;
	for (uint32_t i = 0; i < n; i++)
		bytes += spans[i].bytes;
	if (bytes > DEVICE_MAX_CALL_BYTES - sizeof(*k->a))
		return -E2BIG;
	r = make_answer(k, bytes);
	if (r < 0)
		return r;
	ok = bytes_of(k->a);
	at = ok + n;
	for (uint32_t i = 0; i < n; at += spans[i++].bytes)
		ok[i] = model_mem_read(k->m, k->q->pid, spans[i].addr, at, spans[i].bytes) == 0;
	return 0;
}

static int tell_save_ns(struct call *k)
{
	struct model_gpu_stats stats;

	for (uint32_t i = 0; model_gpu_stats(k->m, i, &stats) >= 0; i++)
		k->a->value += stats.save_ns;
	return 0;
}

/* ---- process control ---- */

static bool lives(pid_t pid, pid_t tid)
{
	return tgkill(pid, tid, 0) == 0 || errno != ESRCH;
}

/* Tracer threads come and go without telling. */
static int seize(struct call *k)
{
	struct model_task before = model_tracer(k->m, k->q->pid);

	model_bury_threads(k->m, before.pid ? before.pid : k->task.pid, lives);
	return model_ptrace_seize(k->m, k->task, k->q->pid);
}

static int tell_tracer(struct call *k)
{
	struct model_task by = model_tracer(k->m, k->q->pid);

	k->a->value = lives(by.pid, by.tid) ? (uint64_t)by.tid : 0;
	return 0;
}

/* ---- one call ---- */

static int run(struct call *k)
{
	switch (k->q->op) {
	case DEVICE_OP_JOIN:
		return join(k);
	case DEVICE_OP_OPEN:
		return open_device(k);
	case DEVICE_OP_IOCTL:
	case DEVICE_OP_EXT:
		return call_driver(k);
	case DEVICE_OP_EVENTS:
		return make_events(k);
	case DEVICE_OP_BORROW:
		return model_borrow(k->m, k->task.pid, k->q->pid, k->q->number, &k->a->value);
	case DEVICE_OP_READ_FILE:
	case DEVICE_OP_LIST_DIR:
		return read_file(k);
	case DEVICE_OP_READ_MEM:
		return read_mem(k);
	case DEVICE_OP_SEIZE:
		return seize(k);
	case DEVICE_OP_DETACH:
		return model_ptrace_detach(k->m, k->task, k->q->pid);
	case DEVICE_OP_TRACEE:
		return model_check_tracee(k->m, k->task, k->q->pid);
	case DEVICE_OP_TRACER:
		return tell_tracer(k);
	default:
		return tell_save_ns(k);
	}
}

int client_call(struct connection *c, const void *packet, size_t len)
{
	struct call k = { .c = c, .fd = -1 };
	bool waits;
	int result;

	if (!device_take_call(packet, len, &k.parts))
		return -EBADMSG;
	k.q = k.parts.call;
	/* First it joins, once, and threads are its own. */
	if ((k.q->op == DEVICE_OP_JOIN) == !!c->client ||
	    (c->client && !lives(c->p->pid, k.q->tid)))
		return -EBADMSG;
	k.m = softgpu_now(c->s);
	k.task = (struct model_task){ .pid = c->p->pid, .tid = k.q->tid };
	if (make_answer(&k, 0) < 0)
		return -ENOMEM;
	result = run(&k);
	if (!k.a)
		return -ENOMEM;
	k.a->result = result;
	k.a->h = device_header(DEVICE_CALL, sizeof(*k.a) + k.a->n_bytes, k.q->h.seq);
	c->answer = k.a;
	c->answer_fd = k.fd;
	/* What only looks does not wait for what others wait for. */
	waits = k.q->op == DEVICE_OP_IOCTL || k.q->op == DEVICE_OP_EXT;
	return answer_then(c, waits ? model_now_ns(k.m) : 0);
}
