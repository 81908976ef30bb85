/* SPDX-License-Identifier: MIT */
/* A connection to the daemon: one request at a time, its answer checked before anybody sees it. */
#ifndef GPREEMPT_LIB_DAEMON_INTERNAL_H
#define GPREEMPT_LIB_DAEMON_INTERNAL_H

#include "lib/internal.h"
#include "wire/wire.h"

#define DAEMON_ANSWER_NS (5 * NSEC_PER_SEC)
#define DAEMON_PAUSE_NS (20 * NSEC_PER_SEC) /* it waits for what the driver has begun */
#define DAEMON_RELEASE_NS NSEC_PER_SEC /* then its end is the better way */

struct gpreempt_daemon {
	int fd;
	uint32_t seq; /* of the last request */
	uint64_t timeout_ns; /* 0: each request's own */
	bool subscribed;
	struct gpreempt_error last;
};

#define daemon_fail(d, ...) error_note(&(d)->last, __VA_ARGS__)
int daemon_fail_nonsense(struct gpreempt_daemon *d); /* -EPROTO */

/*
 * One request and its answer, which is of the type that was asked for and checked. @request begins
 * with a wire_header, which is filled in. What the daemon refused is the failure it says. *ret_fd,
 * where not NULL, is the descriptor that came along, or -1.
 */
int daemon_ask(struct gpreempt_daemon *d, enum wire_type type, void *request, size_t bytes,
	       union wire_packet *ret, int *ret_fd);
/* The two halves of that. @until_ns 0: -EAGAIN where there is no answer yet. */
int daemon_send(struct gpreempt_daemon *d, enum wire_type type, void *request, size_t bytes);
int daemon_answer(struct gpreempt_daemon *d, enum wire_type type, uint64_t until_ns,
		  union wire_packet *ret, int *ret_fd);
/* The next packet without asking: its length; 0: none now. A descriptor with it is closed. */
int daemon_receive(struct gpreempt_daemon *d, union wire_packet *ret);

/* As gpreempt_daemon_open(), but if @hurried nothing waits: also not for a daemon that hangs. */
int daemon_open(const char *path, bool hurried, struct gpreempt_daemon **ret,
		struct gpreempt_error *ret_error);

/* Hints that are asked for on a connection, which it owns; NULL: it opens one. */
struct gpreempt_hint *hint_from(struct gpreempt_daemon *d, const char *path,
				struct gpreempt_error *ret_error);

static inline void daemon_closep(struct gpreempt_daemon **d)
{
	gpreempt_daemon_close(*d);
}

#endif
