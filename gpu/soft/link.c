/* SPDX-License-Identifier: MIT */
#include "gpu/soft/link.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>

#include "gpu/soft/wire.h"
#include "util/clock.h"
#include "util/macros.h"

#define PATIENCE_S 30 /* a driver call takes 10 s at most */
#define UNUSED_NS NSEC_PER_SEC /* then a connection is closed, if there are others */

/* ---- one call ---- */

static int send_call(int fd, struct soft_call *c)
{
	struct iovec parts[1 + ARRAY_SIZE(c->out)] = { { &c->call, sizeof(c->call) } };
	struct msghdr m = { .msg_iov = parts, .msg_iovlen = 1 + (size_t)c->n_out };
	size_t len = sizeof(c->call);
	ssize_t r;

	for (int i = 0; i < c->n_out; i++) {
		parts[i + 1] = c->out[i];
		len += c->out[i].iov_len;
	}
	if (len > DEVICE_MAX_CALL_BYTES)
		return -E2BIG;
	c->call.h = device_header(DEVICE_CALL, len, 0);
	c->call.tid = gettid();
	do {
		r = sendmsg(fd, &m, MSG_NOSIGNAL);
	} while (r < 0 && errno == EINTR);
	return r < 0 ? -ENODEV : 0;
}

static int take_fd(struct msghdr *m)
{
	struct cmsghdr *h = CMSG_FIRSTHDR(m);
	int fd = -1;

	if (h && h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS &&
	    h->cmsg_len == CMSG_LEN(sizeof(fd)))
		memcpy(&fd, CMSG_DATA(h), sizeof(fd));
	return fd;
}

static int receive_answer(int fd, struct soft_call *c)
{
	struct iovec parts[1 + ARRAY_SIZE(c->in)] = { { &c->answer, sizeof(c->answer) } };
	union {
		struct cmsghdr h;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct msghdr m = {
		.msg_iov = parts,
		.msg_iovlen = 1 + (size_t)c->n_in,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	int again = 1; /* that it has hung up is told before what it said last */
	ssize_t len;

	memcpy(parts + 1, c->in, sizeof(c->in));
	do {
		len = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
	} while (len < 0 && (errno == EINTR || (errno == ECONNRESET && again-- > 0)));
	if (len <= 0)
		return -ENODEV;
	c->fd = take_fd(&m);
	if (c->answer.h.type == DEVICE_ERROR && c->answer.result > 0)
		return -c->answer.result; /* where struct device_error has its error */
	if ((m.msg_flags & MSG_TRUNC) || !device_is_return(&c->answer, (size_t)len)) {
		closep(&c->fd);
		c->fd = -1;
		return -ENODEV;
	}
	return 0;
}

/* ---- connections ---- */

static int connect_to(const struct sockaddr_un *addr)
{
	const struct timeval patience = { .tv_sec = PATIENCE_S };
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0 ||
	    connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) < 0)
		return -errno;
	return steal_fd(&fd);
}

/* With the lock: a child that was forked has none of its parent's connections. */
static void begin_anew_in_child(struct soft_link *l)
{
	if (l->pid == getpid())
		return;
	while (l->n_idle)
		close(l->idle[--l->n_idle].fd);
	l->n_open = 0;
	l->client = 0;
	l->pid = getpid();
}

static int join(struct soft_link *l, int fd)
{
	struct soft_call c = {
		.call = { .op = DEVICE_OP_JOIN, .pid = getpid(), .value = l->client },
		.fd = -1,
	};
	int r;

	send_call(fd, &c); /* if it cannot be sent, there may be a word why */
	r = receive_answer(fd, &c);
	closep(&c.fd);
	if (r < 0)
		return r;
	if (c.answer.result < 0)
		return c.answer.result;
	l->client = c.answer.value;
	l->invented = c.answer.result;
	return 0;
}

/* With the lock. A connection to another device than before is to none that we know. */
static int add_connection(struct soft_link *l)
{
	bool first = !l->client;
	_cleanup_close_ int fd = connect_to(&l->addr);
	int r = fd < 0 ? fd : join(l, fd);

	if (r < 0)
		return first || r == -EUSERS ? r : -ENODEV;
	l->n_open++;
	return steal_fd(&fd);
}

static int take_connection(struct soft_link *l)
{
	int fd;

	pthread_mutex_lock(&l->lock);
	begin_anew_in_child(l);
	while (!l->n_idle && l->n_open == SOFT_MAX_OPEN)
		pthread_cond_wait(&l->freed, &l->lock);
	fd = l->n_idle ? l->idle[--l->n_idle].fd : add_connection(l);
	pthread_mutex_unlock(&l->lock);
	return fd;
}

/* With the lock: of what many calls at once needed, one is left when they are over. */
static void close_unused(struct soft_link *l, uint64_t now_ns)
{
	int n = 0;

	while (l->n_idle - n > 1 && now_ns - l->idle[n].since_ns >= UNUSED_NS)
		close(l->idle[n++].fd);
	l->n_idle -= n;
	l->n_open -= n;
	memmove(l->idle, l->idle + n, (size_t)l->n_idle * sizeof(*l->idle));
}

static void add_idle(struct soft_link *l, int fd)
{
	uint64_t now_ns = monotonic_ns();

	l->idle[l->n_idle++] = (struct soft_idle){ fd, now_ns };
	close_unused(l, now_ns);
}

static void give_connection(struct soft_link *l, int fd, bool broken)
{
	pthread_mutex_lock(&l->lock);
	if (broken) {
		close(fd);
		l->n_open--;
	} else {
		add_idle(l, fd);
	}
	pthread_cond_signal(&l->freed);
	pthread_mutex_unlock(&l->lock);
}

int soft_call(struct soft_link *l, struct soft_call *c)
{
	int fd = take_connection(l), r;

	c->fd = -1;
	if (fd < 0)
		return fd;
	r = send_call(fd, c);
	if (r >= 0)
		r = receive_answer(fd, c);
	give_connection(l, fd, r < 0 && r != -E2BIG);
	return r < 0 ? r : c->answer.result;
}

/* ---- its life ---- */

int soft_link_open(struct soft_link *l, const char *path)
{
	int fd;

	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->freed, NULL);
	if (strlen(path) >= sizeof(l->addr.sun_path))
		return -ENAMETOOLONG;
	l->addr.sun_family = AF_UNIX;
	memcpy(l->addr.sun_path, path, strlen(path));
	l->pid = getpid();
	fd = add_connection(l);
	if (fd < 0)
		return fd == -ENODEV ? -EPROTO : fd;
	add_idle(l, fd);
	return 0;
}

/* As when a file is closed: once that returns, it is. A child leaves its parent's alone. */
static void hang_up(const struct soft_link *l, int fd)
{
	char c;

	if (l->pid == getpid() && shutdown(fd, SHUT_WR) == 0)
		(void)!recv(fd, &c, sizeof(c), 0);
	close(fd);
}

void soft_link_close(struct soft_link *l)
{
	while (l->n_idle)
		hang_up(l, l->idle[--l->n_idle].fd);
	pthread_cond_destroy(&l->freed);
	pthread_mutex_destroy(&l->lock);
}
