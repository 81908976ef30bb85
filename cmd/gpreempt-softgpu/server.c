/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "cmd/gpreempt-softgpu/internal.h"
#include "gpu/files.h"
#include "gpu/helpers/hang_up.h"
#include "gpu/kfd/procs.h"
#include "util/macros.h"
#include "util/send_fds.h"

#define BACKLOG 64
#define REQUESTS_A_TURN 32 /* of one connection, before others have theirs */
#define PROC_FILE_MAX_BYTES 4096
#define ACCURACY_US 1
#define ENDED_MAX 2048u /* connections still to be dropped; nobody new is let in then */
#define DROP_AGAIN_NS (50 * NSEC_PER_MSEC)

/* ---- time ---- */

struct model *softgpu_now(struct softgpu *s)
{
	uint64_t now_ns = gkfd_syscall_now_ns(NULL), model_ns = model_now_ns(s->m);

	if (now_ns > model_ns)
		model_advance(s->m, now_ns - model_ns);
	return s->m;
}

/* When it is to be tried again: what nobody can be found for now is not dropped. */
static uint64_t drop_ended(struct softgpu *s)
{
	if (s->ended.n)
		drop_now(&s->ended);
	if (s->crowded && s->ended.n < ENDED_MAX) {
		s->crowded = false;
		sd_event_source_set_enabled(s->accept, SD_EVENT_ON);
	}
	return s->ended.n ? gkfd_syscall_now_ns(NULL) + DROP_AGAIN_NS : UINT64_MAX;
}

/*
 * With nobody waiting for work the model does what is due when somebody next comes in. What it told
 * while it was ahead is for later as well.
 */
static int on_after(sd_event_source *source, void *user)
{
	struct softgpu *s = user;
	uint64_t at_ns = drop_ended(s);

	if (!TAILQ_EMPTY(&s->news))
		at_ns = MIN(at_ns, model_now_ns(s->m));
	else if (s->expected > 0)
		at_ns = MIN(at_ns, model_next_ns(s->m));
	if (at_ns == UINT64_MAX)
		return sd_event_source_set_enabled(s->turn, SD_EVENT_OFF);
	sd_event_source_set_time(s->turn, at_ns / NSEC_PER_USEC + 1);
	return sd_event_source_set_enabled(s->turn, SD_EVENT_ONESHOT);
}

static int on_turn(sd_event_source *source, uint64_t usec, void *user)
{
	struct softgpu *s = user;
	struct connection *c;
	int r;

	softgpu_now(s);
	while ((r = job_tell_next(s, &c)) != 0)
		if (r < 0)
			connection_end(c);
	return 0;
}

/* ---- processes ---- */

static int read_proc(pid_t pid, const char *name, char **ret_text, size_t *ret_len)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	return files_read_some(AT_FDCWD, path, PROC_FILE_MAX_BYTES, ret_text, ret_len);
}

/* 0: nobody can tell. */
static uint64_t start_ticks(pid_t pid)
{
	_cleanup_free_ char *text = NULL;
	struct gkfd_proc_ident ident = { 0 };
	size_t len;

	if (read_proc(pid, "stat", &text, &len) < 0 || gkfd_proc_parse_stat(text, len, &ident) < 0)
		return 0;
	return ident.start_ticks;
}

/* Root in a container may have lost them. */
static bool has_capabilities(pid_t pid)
{
	const uint64_t wanted = 1ull << CAP_SYS_PTRACE | 1ull << CAP_SYS_ADMIN;
	_cleanup_free_ char *text = NULL;
	unsigned long long has;
	const char *line;
	size_t len;

	if (read_proc(pid, "status", &text, &len) < 0)
		return false;
	line = strstr(text, "\nCapEff:");
	return line && sscanf(line, "\nCapEff: %llx", &has) == 1 && (has & wanted) == wanted;
}

void softgpu_opened(const struct softgpu *s)
{
	utimensat(AT_FDCWD, s->path, NULL, 0);
}

int process_arrive(struct process *p)
{
	struct model_proc_spec spec = {
		.pid = p->pid,
		.uid = p->uid,
		.rights = p->admin ? MODEL_RIGHTS_ALL : MODEL_RIGHTS_NONE,
		.start_ticks = start_ticks(p->pid),
	};
	int r = p->there ? 0 : model_proc_start(softgpu_now(p->s), &spec);

	p->there |= r >= 0;
	return r;
}

static void process_drop(struct process *p)
{
	struct softgpu *s = p->s;

	if (--p->n_connections)
		return;
	if (p->there)
		model_proc_exit(softgpu_now(s), p->pid);
	sd_event_source_disable_unref(p->exit);
	closep(&p->pid_fd);
	closep(&p->pages_fd);
	LIST_REMOVE(p, link);
	s->n_processes--;
	free(p);
}

static int on_exit_of(sd_event_source *source, int fd, uint32_t events, void *user)
{
	struct process *p = user;
	struct connection *c, *next;

	for (c = LIST_FIRST(&p->s->connections); c; c = next) {
		next = LIST_NEXT(c, link);
		if (c->p == p)
			connection_end(c);
	}
	return 0;
}

static int process_watch(struct process *p)
{
	p->pid_fd = gkfd_trace_syscall.pidfd(NULL, p->pid);
	if (p->pid_fd == -ENOSYS)
		return 0; /* then only the end of its connections tells */
	if (p->pid_fd < 0)
		return p->pid_fd;
	return sd_event_add_io(p->s->loop, &p->exit, p->pid_fd, EPOLLIN, on_exit_of, p);
}

static bool is_owner(const struct softgpu *s, uid_t uid)
{
	return uid == 0 || uid == s->owner;
}

/* Whoever else fills the device, its owner and root find room. */
static bool is_full(const struct softgpu *s, uid_t uid, uint32_t n, uint32_t max)
{
	return n >= (is_owner(s, uid) ? max : max - DEVICE_KEPT);
}

static struct process *add_process(struct softgpu *s, const struct ucred *peer)
{
	bool full = is_full(s, peer->uid, s->n_processes, DEVICE_MAX_PROCESSES);
	struct process *p = full ? NULL : calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	*p = (struct process){ .s = s, .pid = peer->pid, .uid = peer->uid, .n_connections = 1 };
	p->pages_fd = -1;
	p->admin = is_owner(s, peer->uid);
	if (peer->uid == 0)
		p->admin = has_capabilities(peer->pid);
	LIST_INSERT_HEAD(&s->processes, p, link);
	s->n_processes++;
	if (process_watch(p) >= 0)
		return p;
	process_drop(p);
	return NULL;
}

/* NULL: too many, or it has become another user since. */
static struct process *get_process(struct softgpu *s, const struct ucred *peer)
{
	struct process *p;

	LIST_FOREACH(p, &s->processes, link)
		if (p->pid == peer->pid)
			break;
	if (!p)
		return add_process(s, peer);
	if (p->uid != peer->uid || p->n_connections == DEVICE_MAX_PROCESS_CONNECTIONS)
		return NULL;
	p->n_connections++;
	return p;
}

/* ---- connections ---- */

void connection_end(struct connection *c)
{
	struct softgpu *s = c->s;

	sd_event_source_disable_unref(c->io);
	sd_event_source_disable_unref(c->due);
	softgpu_now(s);
	job_leave(c);
	client_leave(c);
	closep(&c->answer_fd);
	free(c->answer);
	hang_up(&s->ended, c->fd);
	process_drop(c->p);
	LIST_REMOVE(c, link);
	s->n_connections--;
	free(c);
	sd_event_source_set_enabled(s->accept, SD_EVENT_ON);
}

int connection_send(struct connection *c, const void *packet, size_t len, int fd)
{
	return send_fds(c->fd, packet, len, &fd, fd >= 0, MSG_DONTWAIT);
}

/* 1: there may be more. Who sends files, or nonsense, is hung up on. */
static int take_request(struct connection *c)
{
	static _Alignas(8) uint8_t packet[DEVICE_MAX_CALL_BYTES];
	union device_any *request = (union device_any *)packet;
	ssize_t len;
	int r;

	if (packet_has_files(c->fd))
		return -EBADMSG;
	len = recv(c->fd, packet, sizeof(packet), MSG_DONTWAIT | MSG_TRUNC);
	if (len < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (len == 0)
		return -ECONNRESET;
	if ((size_t)len > sizeof(packet))
		return -EBADMSG;
	if (!c->is_job && len >= (ssize_t)sizeof(request->h) && request->h.type == DEVICE_CALL)
		r = client_call(c, packet, (size_t)len);
	else if (!c->client && device_is_request(request, (size_t)len))
		r = job_request(c, request);
	else
		return -EBADMSG;
	return r < 0 ? r : !c->answer;
}

static int on_io(sd_event_source *source, int fd, uint32_t events, void *user)
{
	struct connection *c = user;
	int r = 1;

	if (c->answer)
		r = -ECONNRESET; /* only that it hung up is heard now */
	if (events & EPOLLOUT && c->full) {
		c->full = false;
		sd_event_source_set_io_events(c->io, EPOLLIN);
		job_go_on(c);
	}
	for (int i = 0; i < REQUESTS_A_TURN && r > 0; i++)
		r = take_request(c);
	if (r < 0)
		connection_end(c);
	return 0;
}

/* ---- connecting ---- */

static bool has_too_many(const struct softgpu *s, uid_t uid)
{
	const struct process *p;
	uint32_t n = 0;

	if (is_full(s, uid, s->n_connections, DEVICE_MAX_CONNECTIONS))
		return true;
	if (is_owner(s, uid))
		return false;
	LIST_FOREACH(p, &s->processes, link)
		n += p->uid == uid ? p->n_connections : 0;
	return n >= DEVICE_MAX_USER_CONNECTIONS;
}

static void refuse_connection(int fd)
{
	struct device_error e = {
		.h = device_header(DEVICE_ERROR, sizeof(e), 0),
		.error = EUSERS,
		.message = "there are too many processes on the device",
	};

	(void)send(fd, &e, sizeof(e), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void take_connection(struct softgpu *s, int fd)
{
	struct connection *c;
	struct process *p;
	struct ucred peer;
	socklen_t len = sizeof(peer);

	/* pid 0: of a namespace that is not below ours */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 || peer.pid <= 0) {
		hang_up(&s->ended, fd);
		return;
	}
	p = has_too_many(s, peer.uid) ? NULL : get_process(s, &peer);
	c = p ? calloc(1, sizeof(*c)) : NULL;
	if (!c) {
		if (p)
			process_drop(p);
		refuse_connection(fd);
		hang_up(&s->ended, fd);
		return;
	}
	*c = (struct connection){ .s = s, .p = p, .fd = fd, .answer_fd = -1 };
	LIST_INSERT_HEAD(&s->connections, c, link);
	s->n_connections++;
	if (sd_event_add_io(s->loop, &c->io, c->fd, EPOLLIN, on_io, c) < 0)
		connection_end(c);
}

static int on_accept(sd_event_source *source, int listening, uint32_t events, void *user)
{
	struct softgpu *s = user;
	int fd;

	s->crowded = s->ended.n >= ENDED_MAX;
	if (s->crowded)
		return sd_event_source_set_enabled(s->accept, SD_EVENT_OFF);
	fd = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd >= 0)
		take_connection(s, fd);
	else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
		sd_event_source_set_enabled(s->accept, SD_EVENT_OFF); /* until somebody leaves */
	return 0;
}

/* ---- its life ---- */

/* From when @s->fd is open on, the name is ours to remove. */
static int make_socket(struct softgpu *s)
{
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct stat st;

	if (fd < 0)
		return -errno;
	if (strlen(s->path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	memcpy(addr.sun_path, s->path, strlen(s->path));
	/* What an earlier one left; nothing else is removed for a mistyped name. */
	if (lstat(s->path, &st) == 0 && !S_ISSOCK(st.st_mode))
		return -EEXIST;
	if (unlink(s->path) < 0 && errno != ENOENT)
		return -errno;
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		return -errno;
	refuse_files(fd); /* before anybody can come */
	s->fd = steal_fd(&fd);
	return chmod(s->path, 0666) < 0 || listen(s->fd, BACKLOG) < 0 ? -errno : 0;
}

static int begin(struct softgpu *s)
{
	int r = make_socket(s);

	if (r >= 0)
		r = sd_event_add_io(s->loop, &s->accept, s->fd, EPOLLIN, on_accept, s);
	if (r >= 0)
		r = sd_event_add_time(s->loop, &s->turn, CLOCK_MONOTONIC, 0, ACCURACY_US, on_turn,
				      s);
	if (r >= 0)
		r = sd_event_source_set_enabled(s->turn, SD_EVENT_OFF);
	return r < 0 ? r : sd_event_add_post(s->loop, &s->after, on_after, s);
}

static int fill(struct softgpu *s, const char *spec, const char *path, char **ret_why)
{
	_cleanup_free_ char *names = NULL;
	size_t len;
	int r = model_new_empty(spec, gkfd_syscall_now_ns(NULL), &s->m, ret_why);

	if (r < 0)
		return r;
	model_proc_exit(s->m, MODEL_SELF_PID); /* we are no process on it */
	r = model_read(s->m, GKFD_TREE_PROC, "", true, &names, &len);
	s->invented = r >= 0 && len;
	s->path = strdup(path);
	return s->path ? begin(s) : -ENOMEM;
}

int softgpu_new(const char *spec, sd_event *loop, const char *path, struct softgpu **ret,
		char **ret_why)
{
	struct softgpu *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->loop = sd_event_ref(loop);
	s->fd = -1;
	s->owner = geteuid();
	TAILQ_INIT(&s->news);
	r = fill(s, spec, path, ret_why);
	if (r < 0) {
		softgpu_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

void softgpu_free(struct softgpu *s)
{
	if (!s)
		return;
	while (!LIST_EMPTY(&s->connections))
		connection_end(LIST_FIRST(&s->connections));
	sd_event_source_disable_unref(s->after);
	sd_event_source_disable_unref(s->turn);
	sd_event_source_disable_unref(s->accept);
	if (s->fd >= 0) {
		unlink(s->path);
		/* Who was never let in may have sent something all the same. */
		drop_later(&s->ended, s->fd, getuid());
	}
	drop_now(&s->ended); /* else it is done by the end of this process */
	free(s->ended.all);
	model_free(s->m);
	sd_event_unref(s->loop);
	free(s->path);
	free(s);
}
