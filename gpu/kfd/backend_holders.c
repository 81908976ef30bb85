/* SPDX-License-Identifier: MIT */
/*
 * Acting by holders (gpu/kfd/holder.h): each target has a process of its own, to which orders go,
 * and from which comes what came of them. The owner has no session with the driver.
 *
 * A holder that does not answer for longer than any driver call takes hangs at its target, which
 * then cannot be held any more. It is left to itself: it lets the target go as soon as it can. Of
 * one user's targets only so many may be in that state.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "gpu/helpers/helper.h"
#include "gpu/kfd/backend_internal.h"
#include "gpu/kfd/holder.h"
#include "util/macros.h"

#define LATE_NS GUARD_DRIVER_CALL_NS
#define MOST_HUNG 4u /* holders of one user's targets */
/*
 * A process that used the driver ends when nobody keeps it from that: any GPU process can (Linux
 * 6.12 kfd_process_notifier_release). So many of one user's may be left.
 */
#define MOST_LEFT 16u
#define LEFT_NS (2 * NSEC_PER_SEC) /* then one is taken for left */
#define SLOW_NS (500 * NSEC_PER_MSEC) /* who answers later than that may hang */
#define PROBE_NS (5 * NSEC_PER_SEC)
#define CLOSE_NS (2 * NSEC_PER_SEC)

struct gpu_target {
	struct target_base base;
	uid_t user;
	uint64_t start_ticks;
	struct helper helper;
	struct order_list sent; /* not answered yet */
	uint64_t sent_ns; /* when the oldest was */
	bool holds; /* something of it is off the GPU */
	bool released; /* it was asked to */
	bool gone; /* the holder has ended, or hangs and was given up */
};

struct former { /* a holder that has ended, or will as soon as it can */
	LIST_ENTRY(former) link;
	struct helper helper;
	uid_t user;
	bool hung;
	uint64_t since_ns;
};

/* ---- answers ---- */

static void note_holds(struct gpu_target *t, const struct gpu_done *done)
{
	if (done->verb == GPU_SUSPEND || done->verb == GPU_RESUME)
		t->holds = done->holds;
	else if (done->verb != GPU_ATTACH)
		t->holds = false;
}

static void take_done(struct gpu_target *t, const struct gpu_done *done)
{
	struct order *o;

	note_holds(t, done);
	if (done->verb == GPU_ENDED) {
		o = steal_ptr(&t->base.ended);
	} else {
		o = STAILQ_FIRST(&t->sent);
		if (o)
			STAILQ_REMOVE_HEAD(&t->sent, link);
		t->sent_ns = gkfd_now_ns(t->base.b->k);
	}
	if (!o)
		return;
	o->done = *done;
	acting_deliver(o);
}

/* Whatever was asked is answered by @result. */
static void fail_all(struct gpu_target *t, int result, const char *why)
{
	struct gpu_done done = { .result = result };

	done.began_ns = done.done_ns = gkfd_now_ns(t->base.b->k);
	gpu_why_set(&done.why, GPU_WHY_FAILED, NULL, "%s", why);
	while (!STAILQ_EMPTY(&t->sent)) {
		const struct order *o = STAILQ_FIRST(&t->sent);

		done.verb = o->done.verb;
		done.cookie = o->done.cookie;
		if (done.verb == GPU_RELEASE) /* the last */
			done.result = done.why.message[0] = 0;
		take_done(t, &done);
	}
	done.verb = GPU_ENDED;
	done.cookie = 0;
	done.result = result;
	if (t->base.ended && !t->released)
		take_done(t, &done);
}

/*
 * It lets go when it notices. Without memory to remember it by, it stays a zombie of ours. Closing
 * the socket is not enough for epoll: a child of ours may have a copy.
 */
static void forget_holder(struct gpu_target *t, bool hung)
{
	struct former *f = calloc(1, sizeof(*f));

	t->gone = true;
	t->holds = false;
	epoll_ctl(t->base.b->holders_fd, EPOLL_CTL_DEL, t->helper.socket, NULL);
	helper_hang_up(&t->helper, &t->base.b->sockets, t->user);
	if (f) {
		*f = (struct former){ .helper = t->helper,
				      .user = t->user,
				      .hung = hung,
				      .since_ns = gkfd_now_ns(t->base.b->k) };
		LIST_INSERT_HEAD(&t->base.b->former, f, link);
	}
	t->helper = HELPER_NONE;
}

static void hear(struct gpu_target *t)
{
	struct gpu_done done;
	ssize_t n;

	while (!t->gone) {
		n = recv(t->helper.socket, &done, sizeof(done), MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n == sizeof(done)) {
			take_done(t, &done);
			continue;
		}
		forget_holder(t, false);
		fail_all(t, -ECANCELED, "its holder has ended");
	}
}

static void check_late(struct gpu_target *t, uint64_t now_ns)
{
	if (t->gone || STAILQ_EMPTY(&t->sent) || now_ns - t->sent_ns < LATE_NS)
		return;
	forget_holder(t, true);
	fail_all(t, -ETIMEDOUT, "it keeps the driver from answering");
}

static void bury_former(struct backend *b)
{
	struct former *f = LIST_FIRST(&b->former), *next;

	for (; f; f = next) {
		next = LIST_NEXT(f, link);
		if (!helper_bury(&f->helper))
			continue;
		LIST_REMOVE(f, link);
		free(f);
	}
}

void holders_run(struct backend *b, bool speak)
{
	struct epoll_event events[32];
	int n = speak ? epoll_wait(b->holders_fd, events, ARRAY_SIZE(events), 0) : 0;
	uint64_t now_ns;

	for (int i = 0; i < n; i++)
		hear(events[i].data.ptr);
	now_ns = gkfd_now_ns(b->k); /* not before what was heard, or the next would be late */
	for_each_target(b, t) check_late(t, now_ns);
	if (!LIST_EMPTY(&b->former))
		bury_former(b);
}

/* ---- orders ---- */

static int send_order(const struct helper *h, const struct holder_order *o)
{
	size_t n = o->n == GPU_ALL_QUEUES ? 0 : o->n;
	size_t len = offsetof(struct holder_order, ids) + n * sizeof(*o->ids);

	if (send(h->socket, o, len, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)len)
		return errno == EPIPE ? -ECANCELED : -errno;
	return 0;
}

static int post(struct gpu_target *t, struct order *o)
{
	struct holder_order message = {
		.verb = o->done.verb,
		.n = o->what.ids ? (uint32_t)o->what.n : GPU_ALL_QUEUES,
		.pid = t->base.pid,
		.start_ticks = t->start_ticks,
		.cookie = o->done.cookie,
		.called_ns = gkfd_now_ns(t->base.b->k),
		.longest_ns = o->what.longest_ns,
		.grace_kclk = o->what.grace_kclk,
	};
	int r = t->gone ? -ECANCELED : 0;

	if (o->what.n > HOLDER_IDS_MAX)
		return -EINVAL;
	if (o->what.n)
		memcpy(message.ids, o->what.ids, o->what.n * sizeof(*o->what.ids));
	if (r >= 0)
		r = send_order(&t->helper, &message);
	if (r < 0)
		return r;
	if (STAILQ_EMPTY(&t->sent))
		t->sent_ns = message.called_ns;
	STAILQ_INSERT_TAIL(&t->sent, o, link);
	return 0;
}

/* Cannot fail to be released: of a holder that is gone there is nothing to wait for. */
static int holders_post(struct gpu_target *t, struct order *o)
{
	bool releases = o->done.verb == GPU_RELEASE;
	int r;

	t->released |= releases;
	r = post(t, o);
	if (r >= 0 || !releases)
		return r;
	if (!t->gone)
		forget_holder(t, false);
	o->done.began_ns = o->done.done_ns = gkfd_now_ns(t->base.b->k);
	acting_deliver(o);
	return 0;
}

/* ---- targets come and go ---- */

static void holders_end(struct gpu_target *t)
{
	if (t->helper.pid && !t->gone)
		forget_holder(t, false);
	acting_forget(&t->sent);
}

/* Those that may hang count as well: it takes long to be sure. */
static unsigned int count_hung(const struct backend *b, uid_t user)
{
	uint64_t now_ns = gkfd_now_ns(b->k);
	const struct former *f;
	unsigned int n = 0;

	for_each_target(b, t) n +=
		t->user == user && !STAILQ_EMPTY(&t->sent) && now_ns - t->sent_ns >= SLOW_NS;

	LIST_FOREACH(f, &b->former, link)
		n += f->hung && f->user == user;
	return n;
}

static unsigned int count_left(const struct backend *b, uid_t user)
{
	uint64_t now_ns = gkfd_now_ns(b->k);
	const struct former *f;
	unsigned int n = 0;

	LIST_FOREACH(f, &b->former, link)
		n += f->user == user && now_ns - f->since_ns >= LEFT_NS;
	return n;
}

static int start_helper(const struct backend *b, struct helper *ret)
{
	_cleanup_close_ int us = (int)syscall(SYS_pidfd_open, getpid(), 0);
	const int files[HELPER_FILES] = { us, -1 };
	const char *const argv[] = { HOLDER_PROGRAM, NULL };

	return helper_start(b->holder_program, argv, files, false, ret);
}

static int holders_begin(struct gpu_target *t, const struct gpu_attach *request)
{
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = t };
	struct backend *b = t->base.b;
	int r = readers_user_of(t->base.pid, &t->user);

	t->start_ticks = request->start_ticks;
	t->helper = HELPER_NONE;
	STAILQ_INIT(&t->sent);
	if (r < 0)
		return r;
	bury_former(b);
	if (count_hung(b, t->user) >= MOST_HUNG || count_left(b, t->user) >= MOST_LEFT)
		return -EUSERS;
	r = start_helper(b, &t->helper);
	if (r >= 0 && epoll_ctl(b->holders_fd, EPOLL_CTL_ADD, t->helper.socket, &e) < 0)
		r = -errno;
	return r;
}

bool holders_hold(struct gpu_target *t)
{
	return t->holds;
}

bool holders_own(const struct backend *b, pid_t pid)
{
	const struct former *f;

	for_each_target(b, t) if (t->helper.pid == pid) return true;
	LIST_FOREACH(f, &b->former, link)
		if (f->helper.pid == pid)
			return true;
	return false;
}

/* ---- beginning and end ---- */

/* One packet, at most @ns later. */
static int await(const struct helper *h, uint64_t ns, struct gpu_done *ret)
{
	struct pollfd p = { .fd = h->socket, .events = POLLIN };
	int r;

	do {
		r = poll(&p, 1, (int)(ns / NSEC_PER_MSEC));
	} while (r < 0 && errno == EINTR);
	if (r <= 0)
		return r < 0 ? -errno : -ETIMEDOUT;
	return recv(h->socket, ret, sizeof(*ret), MSG_DONTWAIT) == sizeof(*ret) ? 0 : -EIO;
}

/* By a process that ends then: whoever opens the device is counted by the driver. */
static int probe(struct backend *b)
{
	const struct holder_order message = { .verb = HOLDER_PROBE, .n = GPU_ALL_QUEUES };
	struct gpu_target t = { .base.b = b, .helper = HELPER_NONE };
	struct gpu_done done;
	int r = start_helper(b, &t.helper);

	if (r < 0)
		return r;
	r = send_order(&t.helper, &message);
	if (r >= 0)
		r = await(&t.helper, PROBE_NS, &done);
	forget_holder(&t, false);
	if (r < 0 || done.result < 0)
		return r < 0 ? r : done.result;
	b->k->major = done.queues >> 16;
	b->k->minor = done.queues & 0xffff;
	return 0;
}

int holders_open(struct backend *b)
{
	b->holder_program = helper_open(HOLDER_PROGRAM);
	if (b->holder_program < 0)
		return b->holder_program;
	b->holders_fd = epoll_create1(EPOLL_CLOEXEC);
	return b->holders_fd < 0 ? -errno : probe(b);
}

static bool any_left(const struct backend *b)
{
	for_each_target(b, t) if (!t->gone) return true;
	return false;
}

/* Those that are well end at once; the others are left to themselves. */
static void holders_close(struct backend *b)
{
	struct pollfd p = { .fd = b->holders_fd, .events = POLLIN };
	uint64_t until_ns = gkfd_now_ns(b->k) + CLOSE_NS;

	for_each_target(b, t) if (!t->gone) shutdown(t->helper.socket, SHUT_WR);
	while (any_left(b) && gkfd_now_ns(b->k) < until_ns) {
		poll(&p, 1, (int)(CLOSE_NS / 10 / NSEC_PER_MSEC));
		holders_run(b, true);
	}
}

void holders_free(struct backend *b)
{
	struct former *f;

	while ((f = LIST_FIRST(&b->former))) {
		LIST_REMOVE(f, link);
		helper_leave(&f->helper);
		free(f);
	}
	drop_now(&b->sockets); /* else the end of this process does it */
	free(b->sockets.all);
	closep(&b->holders_fd);
	closep(&b->holder_program);
}

const struct acting acting_by_holders = {
	.target_size = sizeof(struct gpu_target),
	.order_size = sizeof(struct order),
	.begin = holders_begin,
	.end = holders_end,
	.post = holders_post,
	.close = holders_close,
};
