/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "lib/daemon_internal.h"
#include "util/clock.h"

static const char hint_start[] =
	"start it with: systemctl start gpreemptd; without a GPU: gpreemptd --device model";

int daemon_fail_nonsense(struct gpreempt_daemon *d)
{
	return daemon_fail(d, -EPROTO, GPREEMPT_ERROR_FAILED,
			   "are gpreemptd and this program of the same version?",
			   "what answers on the daemon's socket makes no sense");
}

/* ---- opening ---- */

static int fail_connect(struct gpreempt_daemon *d, int error, const char *path)
{
	switch (error) {
	case ENOENT:
	case ENOTDIR:
	case ECONNREFUSED:
		return daemon_fail(d, -error, GPREEMPT_ERROR_ABSENT, hint_start,
				   "gpreemptd is not running (%s: %s)", path, strerror(error));
	case EACCES:
	case EPERM:
		return daemon_fail(d, -error, GPREEMPT_ERROR_REFUSED,
				   "look at the rights of that path", "%s: %s", path,
				   strerror(error));
	case EAGAIN:
		return daemon_fail(d, -ETIMEDOUT, GPREEMPT_ERROR_FAILED,
				   "it hangs: systemctl restart gpreemptd",
				   "gpreemptd takes no new connections (%s)", path);
	case EPROTOTYPE:
		return daemon_fail(d, -error, GPREEMPT_ERROR_FAILED,
				   "check --socket and $GPREEMPT_SOCKET",
				   "%s is not a socket of gpreemptd", path);
	default:
		return daemon_fail(d, -error, GPREEMPT_ERROR_FAILED, NULL, "%s: %s", path,
				   strerror(error));
	}
}

static int connect_to(struct gpreempt_daemon *d, const char *path, bool hurried)
{
	const struct timeval longest = { .tv_sec = DAEMON_ANSWER_NS / NSEC_PER_SEC };
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	if (!path[0] || strlen(path) >= sizeof(address.sun_path))
		return daemon_fail(d, -EINVAL, GPREEMPT_ERROR_USAGE,
				   "paths of sockets have 1 to 107 bytes",
				   "'%.100s' cannot be a socket", path);
	memcpy(address.sun_path, path, strlen(path));
	d->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | (hurried ? SOCK_NONBLOCK : 0), 0);
	if (d->fd < 0)
		return daemon_fail(d, -errno, GPREEMPT_ERROR_FAILED,
				   "raise the limit of open files (ulimit -n)",
				   "cannot make a socket: %s", strerror(errno));
	/* A full backlog makes connect() wait; this is what bounds it, and sending too. */
	setsockopt(d->fd, SOL_SOCKET, SO_SNDTIMEO, &longest, sizeof(longest));
	while (connect(d->fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		if (errno != EINTR)
			return fail_connect(d, errno, path);
	return 0;
}

/* The daemon of the machine; where there is none, one that the same user runs to try it out. */
static int connect_somewhere(struct gpreempt_daemon *d, bool hurried)
{
	const char *folder = secure_getenv("XDG_RUNTIME_DIR");
	const struct gpreempt_error none = d->last;
	struct gpreempt_error first;
	char path[128];
	int r = connect_to(d, WIRE_SOCKET, hurried);

	if (r != -ENOENT || !folder || geteuid() == 0 ||
	    snprintf(path, sizeof(path), "%s/gpreempt/control.sock", folder) >= (int)sizeof(path))
		return r;
	first = d->last;
	closep(&d->fd);
	d->last = none;
	if (connect_to(d, path, hurried) >= 0)
		return 0;
	d->last = first;
	return r;
}

int daemon_open(const char *path, bool hurried, struct gpreempt_daemon **ret,
		struct gpreempt_error *ret_error)
{
	_cleanup_(daemon_closep) struct gpreempt_daemon *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return -ENOMEM;
	d->fd = -1;
	d->last.size = sizeof(d->last);
	if (!path)
		path = secure_getenv("GPREEMPT_SOCKET");
	r = path ? connect_to(d, path, hurried) : connect_somewhere(d, hurried);
	if (r < 0) {
		gpreempt_daemon_get_error(d, ret_error);
		return r;
	}
	*ret = steal_ptr(&d);
	return 0;
}

EXPORT int gpreempt_daemon_open(const char *path, struct gpreempt_daemon **ret,
				struct gpreempt_error *ret_error)
{
	return daemon_open(path, false, ret, ret_error);
}

EXPORT struct gpreempt_daemon *gpreempt_daemon_close(struct gpreempt_daemon *d)
{
	if (!d)
		return NULL;
	if (d->fd >= 0)
		close(d->fd);
	free(d);
	return NULL;
}

EXPORT void gpreempt_daemon_get_error(const struct gpreempt_daemon *d, struct gpreempt_error *ret)
{
	error_tell(&d->last, ret);
}

EXPORT void gpreempt_daemon_set_timeout(struct gpreempt_daemon *d, uint64_t timeout_ns)
{
	d->timeout_ns = timeout_ns;
}

EXPORT int gpreempt_daemon_fd(const struct gpreempt_daemon *d)
{
	return d->fd;
}

/* ---- packets ---- */

static int fail_gone(struct gpreempt_daemon *d)
{
	return daemon_fail(d, -ECONNRESET, GPREEMPT_ERROR_ABSENT,
			   "it ended, or has too many connections: look with gpreempt status",
			   "gpreemptd has closed the connection");
}

static int fail_silent(struct gpreempt_daemon *d)
{
	return daemon_fail(d, -ETIMEDOUT, GPREEMPT_ERROR_FAILED,
			   "should it hang: systemctl restart gpreemptd; what it holds runs again",
			   "gpreemptd does not answer");
}

static int fail_version(struct gpreempt_daemon *d, const struct wire_header *h, const char *why)
{
	return daemon_fail(d, -EPROTO, GPREEMPT_ERROR_FAILED,
			   h->version < WIRE_VERSION ? "upgrade gpreemptd" :
						       "upgrade gpreempt and libgpreempt",
			   "%s", why);
}

/* The descriptor that came along; -1: none. */
static int take_descriptor(struct msghdr *msg)
{
	const struct cmsghdr *c = CMSG_FIRSTHDR(msg);
	int fd = -1;

	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

/* How long the packet is; 0: there is none now. */
static int receive(struct gpreempt_daemon *d, union wire_packet *ret, int *ret_fd)
{
	union {
		struct cmsghdr h;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { .iov_base = ret->bytes, .iov_len = sizeof(ret->bytes) };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = CMSG_LEN(sizeof(int)), /* more are not even opened */
	};
	ssize_t n = recvmsg(d->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	const char *why;
	int r;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return fail_gone(d); /* an empty packet looks the same, and is none of ours */
	*ret_fd = take_descriptor(&msg);
	r = msg.msg_flags & MSG_TRUNC ? -EBADMSG : wire_check_answer(ret, (size_t)n, &why);
	if (r >= 0)
		return (int)n;
	closep(ret_fd);
	*ret_fd = -1;
	return r == -EPROTO ? fail_version(d, &ret->h, why) : daemon_fail_nonsense(d);
}

int daemon_receive(struct gpreempt_daemon *d, union wire_packet *ret)
{
	_cleanup_close_ int fd = -1;

	return receive(d, ret, &fd);
}

static int wait_readable(struct gpreempt_daemon *d, uint64_t until_ns)
{
	struct pollfd p = { .fd = d->fd, .events = POLLIN };
	uint64_t now = monotonic_ns();
	uint64_t left = until_ns > now ? until_ns - now : 0;
	struct timespec ts = {
		.tv_sec = (time_t)(left / NSEC_PER_SEC),
		.tv_nsec = (long)(left % NSEC_PER_SEC),
	};
	int r = ppoll(&p, 1, &ts, NULL);

	if (r < 0 && errno != EINTR)
		return daemon_fail(d, -errno, GPREEMPT_ERROR_FAILED, NULL, "waiting: %s",
				   strerror(errno));
	return r == 0 ? fail_silent(d) : 0;
}

/* The one asked for, or the last word to whoever is turned away before they asked. */
static bool is_answer(const struct gpreempt_daemon *d, const struct wire_header *h)
{
	return h->type == WIRE_ERROR ? h->seq == d->seq || h->seq == 0 :
				       h->seq == d->seq && h->type != WIRE_EVENT;
}

/* What was asked before and answered too late is passed over, events too. */
static int receive_answer(struct gpreempt_daemon *d, uint64_t until_ns, union wire_packet *ret,
			  int *ret_fd)
{
	for (;;) {
		int r = receive(d, ret, ret_fd);

		if (r < 0 || (r > 0 && is_answer(d, &ret->h)))
			return r;
		closep(ret_fd);
		*ret_fd = -1;
		if (r == 0 && !until_ns)
			return -EAGAIN;
		if (r > 0 && until_ns && monotonic_ns() >= until_ns)
			return fail_silent(d);
		if (r == 0)
			r = wait_readable(d, until_ns);
		if (r < 0)
			return r;
	}
}

/* A kind that a later version has is a failure. */
static int fail_as_told(struct gpreempt_daemon *d, const struct wire_error *e)
{
	bool known = e->kind > GPREEMPT_ERROR_NONE && e->kind <= GPREEMPT_ERROR_REFUSED;
	enum gpreempt_error_kind kind = known ? e->kind : GPREEMPT_ERROR_FAILED;

	return daemon_fail(d, -e->error, kind, e->hint, "%s",
			   e->message[0] ? e->message : strerror(e->error));
}

static int send_request(struct gpreempt_daemon *d, const void *request, size_t bytes)
{
	ssize_t n;

	do {
		n = send(d->fd, request, bytes, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	/* Whoever hung up may have said why before. */
	if (n == (ssize_t)bytes || (n < 0 && errno == EPIPE))
		return 0;
	return n < 0 && errno != EAGAIN ? fail_gone(d) : fail_silent(d);
}

static uint64_t patience(const struct gpreempt_daemon *d, enum wire_type type)
{
	if (d->timeout_ns)
		return d->timeout_ns;
	return type == WIRE_PAUSE ? DAEMON_PAUSE_NS : DAEMON_ANSWER_NS;
}

int daemon_send(struct gpreempt_daemon *d, enum wire_type type, void *request, size_t bytes)
{
	if (d->subscribed)
		return daemon_fail(d, -EBUSY, GPREEMPT_ERROR_USAGE, "open another for requests",
				   "this connection is for events");
	if (++d->seq == 0)
		d->seq = 1; /* events have 0 */
	*(struct wire_header *)request = wire_header(type, bytes, d->seq);
	return send_request(d, request, bytes);
}

int daemon_answer(struct gpreempt_daemon *d, enum wire_type type, uint64_t until_ns,
		  union wire_packet *ret, int *ret_fd)
{
	_cleanup_close_ int fd = -1;
	int r = receive_answer(d, until_ns, ret, &fd);

	if (r < 0)
		return r;
	if (ret->h.type == WIRE_ERROR)
		return fail_as_told(d, &ret->error);
	if (ret->h.type != type)
		return daemon_fail_nonsense(d);
	if (ret_fd)
		*ret_fd = steal_fd(&fd);
	return r;
}

int daemon_ask(struct gpreempt_daemon *d, enum wire_type type, void *request, size_t bytes,
	       union wire_packet *ret, int *ret_fd)
{
	uint64_t now = monotonic_ns(), wait = patience(d, type);
	int r = daemon_send(d, type, request, bytes);

	if (r < 0)
		return r;
	return daemon_answer(d, type, wait > UINT64_MAX - now ? UINT64_MAX : now + wait, ret,
			     ret_fd);
}
