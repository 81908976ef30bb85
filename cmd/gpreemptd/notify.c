/* SPDX-License-Identifier: MIT */
#include "cmd/gpreemptd/notify.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>

#include "cmd/gpreemptd/timer.h"

#define TEXT_BYTES 64
#define UNSENT 8u
#define AGAIN_NS (50 * NSEC_PER_MSEC)

struct notify {
	int fd; /* -1: nobody is to be told */
	struct sockaddr_un address;
	socklen_t address_len;
	char unsent[UNSENT][TEXT_BYTES]; /* the oldest first */
	unsigned int n_unsent;
	sd_event_source *again, *watchdog;
	uint64_t watchdog_ns; /* between two signs of life */
};

/* False: not now. What will never be taken counts as taken. */
static bool send_text(const struct notify *n, const char *text)
{
	ssize_t sent;

	do {
		sent = sendto(n->fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT,
			      (const struct sockaddr *)&n->address, n->address_len);
	} while (sent < 0 && errno == EINTR);
	return sent >= 0 || (errno != EAGAIN && errno != ENOBUFS && errno != ENOMEM);
}

static void send_unsent(struct notify *n)
{
	while (n->n_unsent && send_text(n, n->unsent[0])) {
		n->n_unsent--;
		memmove(n->unsent[0], n->unsent[1], n->n_unsent * sizeof(n->unsent[0]));
	}
}

static int on_again(sd_event_source *source, uint64_t usec, void *user)
{
	struct notify *n = user;

	send_unsent(n);
	if (n->n_unsent)
		timer_set_after(n->again, AGAIN_NS);
	return 0;
}

void notify_tell(struct notify *n, const char *fmt, ...)
{
	va_list ap;

	if (!n || n->fd < 0)
		return;
	if (n->n_unsent == UNSENT) /* the first is the oldest news */
		memmove(n->unsent[0], n->unsent[1], --n->n_unsent * sizeof(n->unsent[0]));
	va_start(ap, fmt);
	vsnprintf(n->unsent[n->n_unsent++], TEXT_BYTES, fmt, ap);
	va_end(ap);
	send_unsent(n);
	if (n->n_unsent)
		timer_set_after(n->again, AGAIN_NS);
}

/* One that is not taken is as good as the next. */
static int on_watchdog(sd_event_source *source, uint64_t usec, void *user)
{
	struct notify *n = user;

	if (!n->n_unsent)
		send_text(n, "WATCHDOG=1");
	timer_set_after(n->watchdog, n->watchdog_ns);
	return 0;
}

/* A path, or, in Linux's abstract namespace, a name behind "@". */
static int find_address(struct notify *n)
{
	const char *where = getenv("NOTIFY_SOCKET");
	size_t len = where ? strlen(where) : 0;

	if (!len || (where[0] != '/' && where[0] != '@'))
		return -ENOENT;
	if (len >= sizeof(n->address.sun_path))
		return -ENAMETOOLONG;
	n->address.sun_family = AF_UNIX;
	memcpy(n->address.sun_path, where, len);
	if (where[0] == '@')
		n->address.sun_path[0] = '\0';
	n->address_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
	return 0;
}

static int begin_watchdog(sd_event *loop, struct notify *n)
{
	uint64_t us = 0;
	int r;

	if (sd_watchdog_enabled(0, &us) <= 0)
		return 0;
	n->watchdog_ns = us / 4 * NSEC_PER_USEC;
	r = timer_add(loop, on_watchdog, n, &n->watchdog);
	return r < 0 ? r : on_watchdog(n->watchdog, 0, n);
}

int notify_new(sd_event *loop, struct notify **ret)
{
	struct notify *n = calloc(1, sizeof(*n));
	int r = 0;

	if (!n)
		return -ENOMEM;
	n->fd = -1;
	if (find_address(n) >= 0) {
		n->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		r = n->fd < 0 ? -errno : timer_add(loop, on_again, n, &n->again);
		if (r >= 0)
			r = begin_watchdog(loop, n);
	}
	if (r < 0) {
		notify_free(n);
		return r;
	}
	*ret = n;
	return 0;
}

void notify_free(struct notify *n)
{
	if (!n)
		return;
	sd_event_source_disable_unref(n->again);
	sd_event_source_disable_unref(n->watchdog);
	closep(&n->fd);
	free(n);
}
