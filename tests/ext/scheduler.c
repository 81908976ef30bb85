/* SPDX-License-Identifier: MIT */
/* The scheduler in the driver, without a daemon: who leaves for whom, and that all come back. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "tests/ext/ext.h"

#define BOTH (ON_CP | ON_MES)
#define HOLD_MAX_MS 400
#define SOON_MS 200 /* for a look and a change of the run list, on this slow machine */

static int set_class_by(struct actor *by, struct actor *a, uint32_t class)
{
	struct kfd_gpreempt_class *args = shared(sizeof(*args));

	*args = (struct kfd_gpreempt_class){
		.pid = (uint32_t)a->pid,
		.queue_id = ALL,
		.class = class,
	};
	return by ? ext_by(by, KFD_GPREEMPT_SET_CLASS, args) : -EINVAL;
}

static int set_class(int fd, struct actor *a, uint32_t class)
{
	struct kfd_gpreempt_class args = {
		.pid = (uint32_t)a->pid,
		.queue_id = ALL,
		.class = class,
	};

	return ext(fd, KFD_GPREEMPT_SET_CLASS, &args);
}

static int set_own_class(struct actor *a, uint32_t class)
{
	struct kfd_gpreempt_class *args = shared(sizeof(*args));

	*args = (struct kfd_gpreempt_class){ .queue_id = ALL, .class = class };
	return kfd_call(a, KFD_GPREEMPT_SET_CLASS, args);
}

static int set_longest(int fd, uint32_t flags, const char *policy, uint32_t hold_max_ms)
{
	struct kfd_gpreempt_monitor args = {
		.gpu_id = ANY,
		.flags = flags,
		.interval_us = 2000,
		.critical_interval_us = 1000,
		.hold_max_ms = hold_max_ms,
	};

	snprintf(args.policy, sizeof(args.policy), "%s", policy);
	return ext(fd, KFD_GPREEMPT_SET_MONITOR, &args);
}

static int set_monitor(int fd, uint32_t flags, const char *policy)
{
	return set_longest(fd, flags, policy, HOLD_MAX_MS);
}

static void scheduler_on(int fd)
{
	expect_is("scheduler on", set_monitor(fd, KFD_GPREEMPT_MONITOR_ON, ""), 0);
}

static int scheduler_off(int fd)
{
	return set_monitor(fd, 0, "");
}

static bool is_scheduled(int fd, struct actor *a, unsigned int i)
{
	return queue_stats(fd, a, i).flags & KFD_GPREEMPT_QUEUE_SCHEDULED;
}

static void wait_until(bool scheduled, int fd, struct actor *a, unsigned int ms)
{
	uint64_t until = now_ms() + ms * slowness;

	while (is_scheduled(fd, a, 0) != scheduled) {
		expect(now_ms() < until, "after %u ms it is %sheld", ms, scheduled ? "not " : "");
		let_pass(2);
	}
}

/* An offline job with so many queues, an online one with one, and the scheduler on. */
struct contest {
	int fd;
	struct actor *offline, *online;
};

static struct contest contest(unsigned int queues)
{
	struct contest c = { .offline = job(queues), .online = job(1), .fd = open_ext() };

	machine.may_be_off = true; /* its thread works whenever it wants */
	scheduler_on(c.fd);
	expect_is("offline", set_class(c.fd, c.offline, KFD_GPREEMPT_OFFLINE), 0);
	expect_is("online", set_class(c.fd, c.online, KFD_GPREEMPT_ONLINE), 0);
	return c;
}

/* Both have work, and the offline one is held for the other's. */
static struct contest contest_held(unsigned int queues)
{
	struct contest c = contest(queues);

	give(c.offline, 100);
	give(c.online, 3000);
	wait_until(true, c.fd, c.offline, SOON_MS);
	return c;
}

static void online_first(void)
{
	struct contest c = contest(4);

	give(c.offline, 400);
	expect_runs(c.offline);
	give(c.online, 100);
	wait_until(true, c.fd, c.offline, SOON_MS);
	expect_runs(c.online);
	expect_all_done(c.online);
	wait_until(false, c.fd, c.offline, SOON_MS);
	expect_runs(c.offline);
	expect_is("off", scheduler_off(c.fd), 0);
	expect_all_done(c.offline);
}

static void without_class(void)
{
	struct actor *offline = job(2), *online = job(1);
	int fd = open_ext();

	scheduler_on(fd);
	expect_is("online", set_class(fd, online, KFD_GPREEMPT_ONLINE), 0);
	give(offline, 200);
	give(online, 50);
	expect_all_done(online);
	expect_is("preemptions", queue_stats(fd, offline, 0).preemptions, 0);
	expect_is("off", scheduler_off(fd), 0);
	expect_all_done(offline);
}

static void bounded(void)
{
	struct contest c = contest_held(1);

	wait_until(false, c.fd, c.offline, HOLD_MAX_MS + SOON_MS);
	expect_runs(c.offline);
	expect_is("off", scheduler_off(c.fd), 0);
}

static void off_lets_go(void)
{
	struct contest c = contest_held(2);

	expect_is("off", scheduler_off(c.fd), 0);
	expect_is("held", hqd(0).held, 0);
	expect_runs(c.offline);
	expect_is("off again", scheduler_off(c.fd), 0);
}

/* Whoever ends holds must find the holder, though the scheduler came before him. */
static void held_too(void)
{
	struct contest c = contest_held(1);
	int other = open_ext();

	expect_is("hold", hold(other, c.offline), 0);
	expect_is("by", queue_stats(c.fd, c.offline, 0).preempted_by, getpid());
	expect_is("off", scheduler_off(c.fd), 0);
	expect_is("still held", hqd(0).held, 1);
	close_ext(other);
	expect_is("held", hqd(0).held, 0);
	expect_runs(c.offline);
}

/* It may be let go, its time being over, while the queue is made: then once more. */
static void born_held(void)
{
	struct contest c = contest_held(1);
	unsigned int n = 1;

	do {
		wait_until(true, c.fd, c.offline, HOLD_MAX_MS + SOON_MS);
		add_queues(c.offline, 1, MK_AQL, 0);
		n++;
		expect(n < 8, "no queue of a held process is born held");
	} while (!is_scheduled(c.fd, c.offline, n - 1));
	expect_is("off", scheduler_off(c.fd), 0);
}

static void class_taken(void)
{
	struct contest c = contest_held(2);

	expect_is("none", set_class(c.fd, c.offline, KFD_GPREEMPT_NO_CLASS), 0);
	wait_until(false, c.fd, c.offline, SOON_MS);
	expect_runs(c.offline);
	expect_is("off", scheduler_off(c.fd), 0);
}

static void hint_makes_room(void)
{
	struct actor *offline = job(1), *online = job(1);
	struct kfd_gpreempt_hint hint = { .pid = (uint32_t)online->pid, .gpu_id = ANY };
	int fd = open_ext();

	machine.may_be_off = true;
	scheduler_on(fd);
	expect_is("offline", set_class(fd, offline, KFD_GPREEMPT_OFFLINE), 0);
	expect_is("hint of nobody", ext(fd, KFD_GPREEMPT_HINT, &hint), -EPERM);
	expect_is("online", set_class(fd, online, KFD_GPREEMPT_ONLINE), 0);
	give(offline, 300);
	expect_runs(offline);
	hint.for_ns = 300000000;
	expect_is("hint", ext(fd, KFD_GPREEMPT_HINT, &hint), 0);
	wait_until(true, fd, offline, SOON_MS);
	wait_until(false, fd, offline, HOLD_MAX_MS + SOON_MS);
	expect_runs(offline);
	expect_is("off", scheduler_off(fd), 0);
}

static void rights_to_class(void)
{
	struct actor *a = job_of(SOMEBODY, 1), *other = actor(SOMEBODY_ELSE);
	int fd = open_ext();

	expect_is("online, by itself", set_own_class(a, KFD_GPREEMPT_ONLINE), -EPERM);
	expect_is("offline, by itself", set_own_class(a, KFD_GPREEMPT_OFFLINE), 0);
	expect_is("none, by itself", set_own_class(a, KFD_GPREEMPT_NO_CLASS), 0);
	expect_is("offline, by root", set_class(fd, a, KFD_GPREEMPT_OFFLINE), 0);
	expect_is("none, against root", set_own_class(a, KFD_GPREEMPT_NO_CLASS), -EPERM);
	open_ext_by(other);
	expect_is("by somebody else", set_class_by(other, a, KFD_GPREEMPT_OFFLINE), -EPERM);
	expect_is("online, by root", set_class(fd, a, KFD_GPREEMPT_ONLINE), 0);
	expect_is("offline, against root", set_own_class(a, KFD_GPREEMPT_OFFLINE), -EPERM);
}

static void wrong_settings(void)
{
	struct kfd_gpreempt_monitor m = { .gpu_id = 12345, .flags = KFD_GPREEMPT_MONITOR_ON };
	struct kfd_gpreempt_reservation r = { .gpu_id = ANY, .online_permille = 600,
					      .offline_permille = 600 };
	int fd = open_ext();

	expect_is("no such GPU", ext(fd, KFD_GPREEMPT_SET_MONITOR, &m), -ENODEV);
	m.gpu_id = ANY;
	m.interval_us = 1;
	expect_is("too often", ext(fd, KFD_GPREEMPT_SET_MONITOR, &m), -EINVAL);
	m.interval_us = 0;
	m.flags = 0x80;
	expect_is("unknown flag", ext(fd, KFD_GPREEMPT_SET_MONITOR, &m), -EINVAL);
	expect_is("no such policy", set_monitor(fd, KFD_GPREEMPT_MONITOR_ON, "magic"), -EINVAL);
	expect_is("kick of none", set_monitor(fd, KFD_GPREEMPT_MONITOR_KICK, ""), -ENOENT);
	expect_is("too much kept", ext(fd, KFD_GPREEMPT_SET_HQD_RESERVATION, &r), -EINVAL);
	r.online_permille = 100;
	expect_is("kept by none", ext(fd, KFD_GPREEMPT_SET_HQD_RESERVATION, &r), -ENOENT);
}

static void tells(void)
{
	struct contest c = contest(1);
	struct kfd_gpreempt_subscribe on = { .on = 1 };
	struct kfd_gpreempt_event e = { 0 };
	struct pollfd p = { .fd = c.fd, .events = POLLIN };
	void *volatile nowhere = (void *)8;

	expect_is("read unsubscribed", read(c.fd, &e, sizeof(e)), -1);
	expect_is("subscribe", ext(c.fd, KFD_GPREEMPT_SUBSCRIBE, &on), 0);
	give(c.offline, 200);
	give(c.online, 300);
	expect_is("poll", poll(&p, 1, (int)(2000 * slowness)), 1);
	expect_is("read to nowhere", read(c.fd, nowhere, sizeof(e)), -1);
	expect_is("why", errno, EFAULT); /* and nothing is lost by it */
	expect_is("read", read(c.fd, &e, sizeof(e)), sizeof(e));
	expect_is("kind", e.kind, KFD_GPREEMPT_EVENT_HELD);
	expect_is("pid", e.pid, c.offline->pid);
	expect_is("by", e.by_pid, c.online->pid);
	expect_is("off", scheduler_off(c.fd), 0);
}

/* ---- slots ---- */

#define CROWD 10
#define CROWD_QUEUES 10
#define CROWD_HOLD_MAX_MS 10000 /* all have a turn before: a bound outranks what slots there are */

static void crowd_shares_slots(void)
{
	struct kfd_gpreempt_reservation r = {
		.gpu_id = ANY,
		.online_permille = 100,
		.offline_permille = 850,
	};
	struct actor *crowd[CROWD], *online;
	uint64_t before[CROWD], until;
	uint32_t limit, most = 0;
	int fd = open_ext();
	bool all;

	machine.may_be_off = true;
	expect_is("scheduler on",
		  set_longest(fd, KFD_GPREEMPT_MONITOR_ON, "", CROWD_HOLD_MAX_MS), 0);
	expect_is("reservation", ext(fd, KFD_GPREEMPT_SET_HQD_RESERVATION, &r), 0);
	online = job(1);
	expect_is("online", set_class(fd, online, KFD_GPREEMPT_ONLINE), 0);
	for (unsigned int i = 0; i < CROWD; i++) {
		crowd[i] = job(0);
		expect_is("offline", set_class(fd, crowd[i], KFD_GPREEMPT_OFFLINE), 0);
		add_queues(crowd[i], CROWD_QUEUES, MK_AQL, 0);
		give(crowd[i], 2000);
		before[i] = left(crowd[i]);
	}
	limit = hqd(0).total * 850 / 1000;
	until = now_ms() + 20000 * slowness;
	do {
		struct kfd_gpreempt_hqd h = hqd(0);

		most = h.active_compute > most ? h.active_compute : most;
		expect(!(h.flags & KFD_GPREEMPT_HQD_OVERSUBSCRIBED) || h.active_compute <= h.total,
		       "%u queues on %u slots", h.active_compute, h.total);
		all = true;
		for (unsigned int i = 0; i < CROWD; i++)
			all &= left(crowd[i]) < before[i];
		expect(now_ms() < until, "somebody of the crowd made no progress");
		let_pass(20);
	} while (!all);
	expect(most <= limit + 1, "%u queues were on, of %u", most, limit + 1);
	expect(most >= limit * 85 / 100, "only %u queues were on, of %u", most, limit);
	expect_is("off", scheduler_off(fd), 0);
}

static void lazy(void)
{
	struct kfd_gpreempt_policy *policy = shared(sizeof(*policy));
	struct actor *a = job(0);
	int fd = open_ext();

	machine.may_be_off = true;
	scheduler_on(fd);
	expect_is("offline", set_class(fd, a, KFD_GPREEMPT_OFFLINE), 0);
	policy->flags = KFD_GPREEMPT_LAZY_ACTIVATION | KFD_GPREEMPT_PREEMPTIBLE;
	expect_is("lazy", kfd_call(a, KFD_GPREEMPT_SET_QUEUE_POLICY, policy), 0);
	add_queues(a, 3, MK_AQL, 0);
	wait_until(true, fd, a, SOON_MS);
	let_pass(200 * slowness);
	expect_is("active before there is work", hqd(0).active_compute, 0);
	give(a, 30);
	wait_until(false, fd, a, SOON_MS);
	expect_all_done(a);
	expect_is("off", scheduler_off(fd), 0);
}

const struct ext_case scheduler_cases[] = {
	{ "scheduler: online work takes the GPU, and gives it back", online_first, BOTH },
	{ "scheduler: who has no class is left alone", without_class, BOTH },
	{ "scheduler: nobody is held longer than allowed", bounded, BOTH },
	{ "scheduler: turned off it lets everybody go", off_lets_go, BOTH },
	{ "scheduler: whoever holds the same queue is named", held_too, BOTH },
	{ "scheduler: a queue of a held process is born held", born_held, BOTH },
	{ "scheduler: who loses its class while held runs", class_taken, BOTH },
	{ "scheduler: a hint makes room, and its end ends it", hint_makes_room, BOTH },
	{ "scheduler: classes are raised by root only", rights_to_class, BOTH },
	{ "scheduler: wrong settings are refused", wrong_settings, BOTH },
	{ "scheduler: who asked is told", tells, BOTH },
	{ "scheduler: a crowd shares what slots it may have", crowd_shares_slots, ON_CP },
	{ "scheduler: lazy queues have no slot before there is work", lazy, BOTH },
	{ .name = NULL },
};
