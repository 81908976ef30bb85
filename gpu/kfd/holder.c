/* SPDX-License-Identifier: MIT */
#include "gpu/kfd/holder.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#include "gpu/helpers/helper.h"
#include "gpu/kfd/release.h"
#include "util/macros.h"
#include "util/resident.h"

struct holder {
	struct gkfd_target *target;
	struct guard *guard;
	char pid[16], start_ticks[24]; /* in words, for its guard */
	const char *rescue[5];
	int program, signals;
	int owner; /* its pidfd; -1: this kernel has none */
	uint64_t cookie; /* of the release */
	bool released; /* by an order */
};

/* An owner that does not take its answers is one that is gone. */
static void answer(const struct gpu_done *done)
{
	send(HELPER_SOCKET, done, sizeof(*done), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* 1, or 0: nothing is there now; -EPIPE: the owner is gone, or talks nonsense. */
static int receive(struct holder_order *o, int flags)
{
	const size_t least = offsetof(struct holder_order, ids);
	ssize_t n;

	do {
		n = recv(HELPER_SOCKET, o, sizeof(*o), flags);
	} while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n < (ssize_t)least)
		return -EPIPE;
	if (o->n != GPU_ALL_QUEUES && (o->n > HOLDER_IDS_MAX ||
				       (size_t)n != least + o->n * sizeof(*o->ids)))
		return -EPIPE;
	return 1;
}

static void run(struct holder *h, const struct holder_order *o)
{
	const struct gpu_hold what = {
		.ids = o->n == GPU_ALL_QUEUES ? NULL : o->ids,
		.n = o->n == GPU_ALL_QUEUES ? 0 : o->n,
		.longest_ns = o->longest_ns,
		.grace_kclk = o->grace_kclk,
	};
	struct gpu_done done = { .verb = o->verb, .cookie = o->cookie };

	target_run(h->target, &what, o->called_ns, &done);
	answer(&done);
	target_settle(h->target);
}

static void take_orders(struct holder *h)
{
	struct holder_order o;
	int r;

	while (!h->released && (r = receive(&o, MSG_DONTWAIT)) != 0) {
		if (r < 0) {
			target_leave(h->target);
			return;
		}
		if (o.verb != GPU_RELEASE) {
			run(h, &o);
			continue;
		}
		h->released = true;
		h->cookie = o.cookie;
		target_leave(h->target);
	}
}

/* ---- what the target calls ---- */

static void on_ended(void *user, const struct gpu_done *done)
{
	answer(done);
}

/* Nothing of it is held any more, and nobody traces it. */
static void on_let_go(void *user)
{
	struct holder *h = user;
	struct gpu_done done = { .verb = GPU_RELEASE, .cookie = h->cookie };

	done.began_ns = done.done_ns = gkfd_now_ns(h->target->k);
	if (h->released)
		answer(&done);
}

static size_t on_watch(void *user, struct pollfd *fds)
{
	const struct holder *h = user;

	fds[0] = (struct pollfd){ .fd = HELPER_SOCKET, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = h->signals, .events = POLLIN };
	fds[2] = (struct pollfd){ .fd = h->owner, .events = POLLIN };
	return 3;
}

static void on_turn(void *user, const struct pollfd *fds)
{
	struct holder *h = user;

	if (fds[0].revents)
		take_orders(h);
	if (fds[1].revents || fds[2].revents)
		target_leave(h->target);
}

static const struct target_hooks hooks = {
	.ended = on_ended,
	.gone = on_let_go,
	.watch = on_watch,
	.turn = on_turn,
};

/* ---- beginning and end ---- */

static int catch_signals(struct holder *h)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	h->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return h->signals < 0 ? -errno : 0;
}

static int start_guard(struct holder *h, const struct holder_order *o)
{
	const struct guard_rescue rescue = { .program = h->program, .argv = h->rescue };

	snprintf(h->pid, sizeof(h->pid), "%d", o->pid);
	snprintf(h->start_ticks, sizeof(h->start_ticks), "%llu",
		 (unsigned long long)o->start_ticks);
	h->rescue[0] = HOLDER_PROGRAM;
	h->rescue[1] = HOLDER_RESCUE;
	h->rescue[2] = h->pid;
	h->rescue[3] = h->start_ticks;
	return guard_start_with(&rescue, &h->guard);
}

static int prepare(struct holder *h, struct gkfd *k, const struct holder_order *o)
{
	struct target_options options = {
		.pid = o->pid,
		.start_ticks = o->start_ticks,
		.hooks = &hooks,
		.user = h,
	};
	int r = catch_signals(h);

	h->program = open("/proc/self/exe", O_PATH | O_CLOEXEC);
	if (r >= 0)
		r = start_guard(h, o);
	options.guard = h->guard;
	return r < 0 ? r : target_new(k, &options, &h->target);
}

static int hold(struct gkfd *k, const struct holder_order *o)
{
	struct holder h = {
		.program = -1,
		.signals = -1,
		.owner = fcntl(HELPER_FILE, F_GETFD) < 0 ? -1 : HELPER_FILE,
	};
	int r = prepare(&h, k, o);

	if (r >= 0) {
		stay_in_memory();
		run(&h, o); /* on this thread, which becomes the tracer */
		tracer_run(h.target->tracer);
	} else {
		struct gpu_done done = { .verb = GPU_ATTACH, .cookie = o->cookie, .result = r };

		gpu_why_set(&done.why, GPU_WHY_FAILED, NULL, "cannot prepare a holder: %s",
			    strerror(-r));
		answer(&done);
	}
	target_free(h.target);
	guard_stop(h.guard);
	closep(&h.signals);
	closep(&h.program);
	return r;
}

static int probe(struct gkfd *k, const struct holder_order *o)
{
	struct gpu_done done = { .cookie = o->cookie };

	done.result = gkfd_open_device(k);
	done.queues = HOLDER_VERSION(k->major, k->minor);
	answer(&done);
	return done.result;
}

int holder_rescue(struct gkfd *k, pid_t pid, uint64_t start_ticks)
{
	struct gkfd_proc_ident ident;
	struct gkfd_failure failure;
	int r = gkfd_proc_identify(k, pid, &ident);

	prctl(PR_SET_NAME, HOLDER_PROGRAM);
	if (r < 0 || (start_ticks && ident.start_ticks != start_ticks))
		return r;
	r = gkfd_open_device(k);
	return r < 0 ? r : gkfd_recover(k, pid, GKFD_BY_DEBUG, 0, &failure);
}

int holder_serve(struct gkfd *k)
{
	struct holder_order first;
	int r;

	prctl(PR_SET_NAME, HOLDER_PROGRAM);
	r = receive(&first, 0);
	if (r <= 0)
		return r;
	return first.verb == HOLDER_PROBE ? probe(k, &first) : hold(k, &first);
}
