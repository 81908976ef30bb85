/* SPDX-License-Identifier: MIT */
/* Calls that do not wait. */
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "tests/ext/ext.h"

#define BOTH (ON_CP | ON_MES)
#define UNMAP KFD_GPREEMPT_BATCH_UNMAP_QUEUES
#define SLOW "60000" /* us that a preemption takes, long enough to look at it */
#define PATIENCE_MS 5000

static bool can_collect(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1 && p.revents == POLLIN;
}

static struct kfd_gpreempt_collect collect_args(uint64_t ticket, struct kfd_gpreempt_entry *e,
						uint32_t n)
{
	return (struct kfd_gpreempt_collect){ .ticket = ticket, .entries = (uintptr_t)e, .n = n };
}

static int collect(int fd, struct kfd_gpreempt_collect *c)
{
	return ext(fd, KFD_GPREEMPT_COLLECT, c);
}

/* Without a look at the books, which would wait for it. */
static int begin(int fd, struct kfd_gpreempt_batch *b)
{
	b->flags |= KFD_GPREEMPT_ASYNC;
	return ioctl(fd, UNMAP, b) < 0 ? -errno : 0;
}

static void told_by_poll(void)
{
	struct actor *a = job(1);
	struct kfd_gpreempt_entry *e = entry_of(a, ALL, ANY), *results = entries(2);
	struct kfd_gpreempt_batch *b = batch(e, 1, 0);
	struct kfd_gpreempt_collect c = collect_args(0, results, 2);
	int fd = open_ext();
	uint64_t began;

	give(a, 60);
	expect_is("nothing to collect", collect(fd, &c), -EAGAIN);
	set_knob(0, "preempt_us", SLOW);
	began = now_ms();
	expect_is("ASYNC", begin(fd, b), 0);
	expect(now_ms() - began < 50, "it waited");
	expect(b->ticket > 0, "there is no ticket");
	expect(!can_collect(fd, 0), "it is told too early");
	expect_is("too early", (ioctl(fd, KFD_GPREEMPT_COLLECT, &c), -errno), -EAGAIN);
	c.ticket = b->ticket;
	expect_is("too early", (ioctl(fd, KFD_GPREEMPT_COLLECT, &c), -errno), -EAGAIN);
	c.ticket = b->ticket + 1;
	expect_is("another", (ioctl(fd, KFD_GPREEMPT_COLLECT, &c), -errno), -ENOENT);
	expect(can_collect(fd, PATIENCE_MS), "it is never told");
	c = collect_args(b->ticket, results, 0);
	expect_is("no room", collect(fd, &c), -ENOSPC);
	c = collect_args(0, results, 2);
	expect_is("collect", collect(fd, &c), 0);
	expect_is("ticket", (long)c.ticket, (long)b->ticket);
	expect_is("entries", c.n, 1);
	expect_is("done", c.done, 1);
	expect_is("result", results[0].result, 0);
	expect_is("queues", results[0].queues, 1);
	expect_is("cycles", c.cycles, machine.is_mes ? 0 : 1);
	expect(c.fence_ns >= 50000000 && c.took_ns >= c.fence_ns, "%llu ns of %llu",
	       (unsigned long long)c.fence_ns, (unsigned long long)c.took_ns);
	expect(!can_collect(fd, 0), "it is told for ever");
	expect_is("again", collect(fd, &c), -ENOENT);
	expect_stands(a);
	set_knob(0, "preempt_us", "50");
	expect_is("let go", let_go(fd, a), 0);
	expect_all_done(a);
}

static void results_of_tickets(void)
{
	struct actor *a = job(1);
	struct kfd_gpreempt_entry *e = entries(3), *results = entries(3);
	struct kfd_gpreempt_batch *b = batch(e, 3, 0);
	struct kfd_gpreempt_collect c;
	int fd = open_ext();

	e[0] = *entry_of(a, 77, ANY);
	e[1] = *entry_of(a, ALL, ANY);
	e[2] = *entry_of(a, ALL, ANY);
	e[2].pid = 0;
	expect_is("ASYNC", begin(fd, b), 0);
	expect(can_collect(fd, PATIENCE_MS), "it is never told");
	c = collect_args(b->ticket, (void *)8, 3);
	expect_is("bad entries", collect(fd, &c), -EFAULT);
	expect_is("let go", let_go(fd, a), 0);
	expect_is("ASYNC", begin(fd, b), 0);
	expect(can_collect(fd, PATIENCE_MS), "it is never told");
	c = collect_args(b->ticket, results, 3);
	expect_is("collect", collect(fd, &c), 0);
	expect_is("done", c.done, 1);
	expect_is("first", results[0].result, -ENOENT);
	expect_is("second", results[1].result, 0);
	expect_is("third", results[2].result, -ESRCH);
}

static void many(void)
{
	struct actor *a = job(1);
	struct kfd_gpreempt_entry *e = entry_of(a, ALL, ANY);
	struct kfd_gpreempt_one *o = one(a, ALL);
	int fd = open_ext(), other = open_ext();
	uint64_t last = 0;

	for (unsigned int i = 0; i < KFD_GPREEMPT_MAX_TICKETS; i++)
		expect_is("ASYNC", begin(fd, batch(e, 1, 0)), 0);
	expect_is("one more", begin(fd, batch(e, 1, 0)), -ENOSPC);
	o->timeout_ms = 1000;
	expect_is("one with a timeout", ext(fd, KFD_GPREEMPT_PREEMPT_QUEUE, o), -ENOSPC);
	expect_is("another file's", begin(other, batch(entry_of(a, 77, ANY), 1, 0)), 0);
	for (unsigned int i = 0; i < KFD_GPREEMPT_MAX_TICKETS; i++) {
		struct kfd_gpreempt_collect c = collect_args(0, e, 1);

		expect(can_collect(fd, PATIENCE_MS), "it is never told");
		expect_is("collect", collect(fd, &c), 0);
		expect(c.ticket > last, "not the oldest");
		last = c.ticket;
	}
	expect(!can_collect(fd, 0), "there are more");
	expect_is("one more", begin(fd, batch(e, 1, 0)), 0);
	o->timeout_ms = 0;
	expect_is("without a ticket", ext(fd, KFD_GPREEMPT_PREEMPT_QUEUE, o), 0);
	give(a, 20);
	expect_stands(a);
}

static void out_of_time(void)
{
	struct actor *a = job(1);
	struct kfd_gpreempt_entry *e = entry_of(a, ALL, ANY);
	struct kfd_gpreempt_batch *b = batch(e, 1, 0);
	struct kfd_gpreempt_collect c;
	struct kfd_gpreempt_one *o = one(a, ALL);
	int fd = open_ext();

	give(a, 60);
	set_knob(0, "preempt_us", SLOW);
	b->timeout_ms = 10;
	expect_is("unmap", ioctl(fd, UNMAP, b) < 0 ? -errno : 0, -ETIME);
	expect(b->ticket > 0, "there is no ticket");
	expect(can_collect(fd, PATIENCE_MS), "it is never told");
	c = collect_args(b->ticket, e, 1);
	expect_is("collect", collect(fd, &c), 0);
	expect_is("result", e->result, 0);
	expect_stands(a);
	expect_is("let go", let_go(fd, a), 0);
	expect_runs(a);
	b->timeout_ms = PATIENCE_MS;
	b->ticket = 77;
	expect_is("with time enough", ext(fd, UNMAP, b), 1);
	expect_is("ticket", (long)b->ticket, 0);
	expect_is("let go", let_go(fd, a), 0);
	o->timeout_ms = 10;
	expect_is("one", ioctl(fd, KFD_GPREEMPT_PREEMPT_QUEUE, o) < 0 ? -errno : 0, -ETIME);
	expect(o->ticket > 0, "there is no ticket");
	expect(can_collect(fd, PATIENCE_MS), "it is never told");
	c = collect_args(0, e, 1);
	expect_is("collect", collect(fd, &c), 0);
	expect_is("ticket", (long)c.ticket, (long)o->ticket);
	set_knob(0, "preempt_us", "50");
	close_ext(fd);
	expect_all_done(a);
}

static void closed_in_flight(void)
{
	struct actor *a = job(2);
	int fd = open_ext();

	give(a, 60);
	set_knob(0, "preempt_us", SLOW);
	expect_is("ASYNC", begin(fd, batch(entry_of(a, ALL, ANY), 1, 0)), 0);
	close(fd);
	set_knob(0, "preempt_us", "50");
	check_books();
	expect_is("held", hqd(0).held, 0);
	expect_all_done(a);
}

static void killed_in_flight(void)
{
	struct actor *a = job(2), *them = actor(0);
	struct kfd_gpreempt_batch *b = batch(entry_of(a, ALL, ANY), 1, 0);

	open_ext_by(them);
	give(a, 60);
	set_knob(0, "preempt_us", SLOW);
	b->flags = KFD_GPREEMPT_ASYNC;
	machine.may_be_off = true;
	expect_is("ASYNC", ext_by(them, UNMAP, b), 0);
	kill_actor(them);
	machine.may_be_off = false;
	set_knob(0, "preempt_us", "50");
	check_books();
	expect_is("held", hqd(0).held, 0);
	expect_all_done(a);
}

/* Who waits for a batch is the one to be told of it. */
static int do_slow_unmap(void *arg)
{
	int r = ioctl(*(int *)arg, UNMAP, (char *)arg + 16);

	return r < 0 ? -errno : r;
}

static void waited_for(void)
{
	struct actor *a = job(1), *them;
	struct {
		int fd, unused[3];
		struct kfd_gpreempt_batch b;
	} *args = shared(sizeof(*args));
	struct kfd_gpreempt_collect c = collect_args(1, entries(1), 1); /* a file's first */
	uint64_t until;

	give(a, 60);
	args->fd = open_ext();
	args->b = *batch(entry_of(a, ALL, ANY), 1, 0);
	args->b.timeout_ms = PATIENCE_MS;
	them = actor(0); /* with a copy of the descriptor */
	set_knob(0, "preempt_us", SLOW);
	begin_in(them, do_slow_unmap, args);
	for (until = now_ms() + 150; now_ms() < until;) {
		expect_is("collect", (ioctl(args->fd, KFD_GPREEMPT_COLLECT, &c), -errno), -ENOENT);
		expect(!can_collect(args->fd, 1), "another is told");
	}
	expect_is("unmap", end_in(them), 1);
	set_knob(0, "preempt_us", "50");
	close_ext(args->fd);
}

const struct ext_case ticket_cases[] = {
	{ "a ticket is told of by poll and collected once", told_by_poll, BOTH },
	{ "a ticket has the results of its entries", results_of_tickets, BOTH },
	{ "sixty-four tickets, the oldest first", many, BOTH },
	{ "a call that takes too long becomes a ticket", out_of_time, BOTH },
	{ "a file is closed while its ticket is in flight", closed_in_flight, BOTH },
	{ "a holder is killed while its ticket is in flight", killed_in_flight, BOTH },
	{ "what one waits for another cannot collect", waited_for, BOTH },
	{ 0 },
};
