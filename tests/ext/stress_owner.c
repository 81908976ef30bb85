/* SPDX-License-Identifier: MIT */
/*
 * The machine's owner, who cannot make up his mind: the scheduler in the driver is turned on and
 * off, gets another policy and other figures, slots are kept and not kept, targets change their
 * class, hints come, and what it tells is read. What he set stays when he is killed.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tests/ext/stress.h"

#define LONGEST_PAUSE_MS 6
#define LONGEST_HOLD_MS 200
#define MS 1000000ull
#define FIGURES "/sys/kernel/debug/kfd_gpreempt"

struct owner {
	struct world *w;
	int fd;
	unsigned int seed;
};

static unsigned int below(struct owner *o, unsigned int n)
{
	return stress_below(&o->seed, n);
}

static uint32_t some_gpu(struct owner *o)
{
	return below(o, 2) ? KFD_GPREEMPT_ANY_GPU : o->w->gpu_ids[below(o, o->w->n_gpus)];
}

/* May be gone, or not there yet. */
static uint32_t some_pid(struct owner *o)
{
	return (uint32_t)atomic_load(&o->w->targets[below(o, STRESS_TARGETS)].pid);
}

/* 0 or an errno, which must be one of two. */
static int call(struct owner *o, const char *name, unsigned long request, void *args, int may_be,
		int or_be)
{
	int r = ioctl(o->fd, request, args) ? errno : 0;

	if (r && r != may_be && r != or_be)
		stress_broken(o->w, "%s: %s", name, strerrorname_np(r));
	return r;
}

static uint32_t figure(struct owner *o, unsigned int least, unsigned int most)
{
	return below(o, 3) ? least + below(o, most - least + 1) : 0;
}

static void set_monitor(struct owner *o)
{
	static const char *const policies[] = { "", "none", "priority", "share", "rotate",
						"deadline" };
	struct kfd_gpreempt_monitor m = {
		.gpu_id = some_gpu(o),
		.flags = below(o, 8) ? KFD_GPREEMPT_MONITOR_ON : 0,
		.interval_us = figure(o, 100, 5000),
		.critical_interval_us = figure(o, 100, 2000),
		.turn_ms = figure(o, 1, 50),
		.hold_max_ms = 1 + below(o, LONGEST_HOLD_MS),
		.cycles_per_s = figure(o, 1, 2000),
	};

	snprintf(m.policy, sizeof(m.policy), "%s",
		 policies[below(o, sizeof(policies) / sizeof(*policies))]);
	call(o, "SET_MONITOR", KFD_GPREEMPT_SET_MONITOR, &m, 0, 0);
	atomic_fetch_add(&o->w->settings, 1);
}

static void nudge(struct owner *o)
{
	struct kfd_gpreempt_monitor m = {
		.gpu_id = some_gpu(o),
		.flags = below(o, 2) ? KFD_GPREEMPT_MONITOR_KICK : KFD_GPREEMPT_MONITOR_REARM,
	};

	call(o, "KICK", KFD_GPREEMPT_SET_MONITOR, &m, ENOENT, 0); /* it is off */
}

static void reserve(struct owner *o)
{
	uint32_t online = below(o, 500);
	struct kfd_gpreempt_reservation r = {
		.gpu_id = some_gpu(o),
		.online_permille = online,
		.offline_permille = below(o, 1001 - online),
		.low_water = below(o, 30),
	};

	if (!below(o, 3))
		r.online_permille = r.offline_permille = 0;
	if (!call(o, "SET_HQD_RESERVATION", KFD_GPREEMPT_SET_HQD_RESERVATION, &r, ENOENT, 0))
		atomic_fetch_add(&o->w->reservations, 1);
}

static void set_class(struct owner *o)
{
	struct kfd_gpreempt_class c = {
		.pid = some_pid(o),
		.queue_id = below(o, 4) ? KFD_GPREEMPT_ALL_QUEUES : below(o, STRESS_QUEUES),
		.class = below(o, 3),
		.flags = below(o, 4) ? 0 : KFD_GPREEMPT_CLASS_CRITICAL,
		.priority = below(o, 256),
		.weight = below(o, 4),
		.target_ns = below(o, 2) * below(o, 50) * MS,
		.wait_bound_ns = below(o, 2) * below(o, LONGEST_HOLD_MS) * MS,
	};

	if (!call(o, "SET_CLASS", KFD_GPREEMPT_SET_CLASS, &c, ESRCH, ENOENT))
		atomic_fetch_add(&o->w->classes, 1);
}

static void set_policy(struct owner *o)
{
	struct kfd_gpreempt_policy p = { .pid = some_pid(o), .flags = below(o, 8) };

	if (!call(o, "SET_QUEUE_POLICY", KFD_GPREEMPT_SET_QUEUE_POLICY, &p, ESRCH, 0))
		atomic_fetch_add(&o->w->policies, 1);
}

static void hint(struct owner *o)
{
	struct kfd_gpreempt_hint h = {
		.pid = some_pid(o),
		.gpu_id = some_gpu(o),
		.ahead_ns = below(o, 20) * MS,
		.for_ns = below(o, 50) * MS,
	};
	int r = ioctl(o->fd, KFD_GPREEMPT_HINT, &h) ? errno : 0;

	/* It is gone, not online, or has not come to that GPU yet. */
	if (r && r != ESRCH && r != EPERM && r != ENODEV)
		stress_broken(o->w, "HINT: %s", strerrorname_np(r));
	if (!r)
		atomic_fetch_add(&o->w->hints, 1);
}

/* Subscribed or not. */
static void listen(struct owner *o)
{
	struct kfd_gpreempt_subscribe s = { .on = 1 };
	struct kfd_gpreempt_event es[16];
	ssize_t n;

	if (!below(o, 4))
		call(o, "SUBSCRIBE", KFD_GPREEMPT_SUBSCRIBE, &s, 0, 0);
	n = read(o->fd, es, sizeof(es));
	if (n < 0 && errno != EAGAIN && errno != EINVAL)
		stress_broken(o->w, "read: %s", strerrorname_np(errno));
	for (ssize_t i = 0; i < n / (ssize_t)sizeof(*es); i++) {
		if (es[i].kind > KFD_GPREEMPT_EVENT_TRIPPED)
			stress_broken(o->w, "an event of kind %u", es[i].kind);
		atomic_fetch_add(&o->w->events, 1);
	}
}

static void read_figures(struct owner *o)
{
	char text[4096];
	int fd = open(FIGURES, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, text, sizeof(text)) <= 0)
		stress_broken(o->w, FIGURES ": %s", strerrorname_np(errno));
	if (fd >= 0)
		close(fd);
}

static void do_something(struct owner *o)
{
	switch (below(o, 18)) {
	case 0 ... 3:
		set_monitor(o);
		break;
	case 4 ... 8:
		set_class(o);
		break;
	case 9:
		set_policy(o);
		break;
	case 10 ... 11:
		hint(o);
		break;
	case 12:
		reserve(o);
		break;
	case 13:
		nudge(o);
		break;
	case 14:
		read_figures(o);
		break;
	default:
		listen(o);
		break;
	}
}

_Noreturn void stress_owner(struct world *w, unsigned int seed)
{
	struct owner o = {
		.w = w,
		.fd = open(STRESS_DEVICE, O_RDWR | O_NONBLOCK | O_CLOEXEC),
		.seed = seed,
	};

	if (o.fd < 0) {
		stress_broken(w, STRESS_DEVICE ": %s", strerrorname_np(errno));
		exit(1);
	}
	while (!atomic_load(&w->stop)) {
		do_something(&o);
		poll(NULL, 0, (int)below(&o, LONGEST_PAUSE_MS));
	}
	exit(0);
}
