/* SPDX-License-Identifier: MIT */
/* Holds end in time, and work that came meanwhile is done then. */
#include <errno.h>

#include "tests/ext/ext.h"

#define BOTH (ON_CP | ON_MES)
#define UNMAP KFD_GPREEMPT_BATCH_UNMAP_QUEUES
#define LATE_MS 150 /* at most, for the end of a hold and for us to see it */

/* When @a runs again: between @early and a bit later, since @began. */
static void expect_end(struct actor *a, uint64_t began, unsigned int early)
{
	uint64_t took;

	expect_runs(a);
	took = now_ms() - began;
	expect(took >= early, "a hold of %u ms ended after %llu", early, (unsigned long long)took);
	expect(took <= early + lasting(LATE_MS), "a hold of %u ms ended after %llu", early,
	       (unsigned long long)took);
	expect_is("held", hqd(0).held, 0);
}

static void work_in_flight(void)
{
	struct actor *a = job(3);
	int fd = open_ext();
	struct meter m;

	give(a, 60);
	m = meter(0);
	expect_is("hold", hold(fd, a), 0);
	expect_one_cycle(m, 0, 3, 0);
	expect_is("active", hqd(0).active, 0);
	expect_stands(a);
	m = meter(0);
	expect_is("let go", let_go(fd, a), 0);
	expect_one_cycle(m, 0, 0, 3);
	expect_runs(a);
	expect_all_done(a);
}

static void rung_while_unmapped(void)
{
	struct actor *a = job(2);
	int fd = open_ext();

	add_queues(a, 1, MK_PM4, 0);
	add_queues(a, 1, MK_SDMA, 0);
	expect_is("hold", hold(fd, a), 0);
	give(a, 25);
	expect_stands(a);
	give(a, 25);
	expect_is("packets that are left", (long)left(a), 4 * 50);
	expect_stands(a);
	expect_is("let go", let_go(fd, a), 0);
	expect_all_done(a);
}

static void over_in_time(void)
{
	struct actor *a = job(2);
	uint64_t began;
	int fd = open_ext();

	give(a, 60);
	began = now_ms();
	expect_is("hold", hold_for(fd, a, lasting(80)), 0);
	expect_stands(a);
	expect_end(a, began, lasting(80));
	expect_all_done(a);
	expect_is("remap of what is over", let_go(fd, a), 0);
}

static void renewed(void)
{
	struct actor *a = job(2);
	uint64_t began;
	struct meter m;
	int fd = open_ext();

	give(a, 60);
	expect_is("hold", hold_for(fd, a, lasting(120)), 0);
	m = meter(0);
	let_pass(lasting(60));
	began = now_ms();
	expect_is("renewed", hold_for(fd, a, lasting(180)), 0);
	expect_no_work(m, 0);
	let_pass(lasting(110));
	expect_stands(a);
	expect_no_work(m, 0);
	expect_end(a, began, lasting(180));
	expect_all_done(a);
}

static void shortened(void)
{
	struct actor *a = job(1);
	uint64_t began;
	int fd = open_ext();

	give(a, 60);
	expect_is("hold", hold_for(fd, a, 30000), 0);
	began = now_ms();
	expect_is("shorter", hold_for(fd, a, lasting(50)), 0);
	expect_end(a, began, lasting(50));
}

static void each_its_own_time(void)
{
	struct actor *a = job(2);
	struct kfd_gpreempt_one *first = one(a, queue_id(a, 0)), *second = one(a, queue_id(a, 1));
	uint64_t began;
	int fd = open_ext();

	give(a, 100);
	second->hold_ms = lasting(200);
	first->hold_ms = lasting(60);
	began = now_ms();
	expect_is("the longer", ext(fd, KFD_GPREEMPT_PREEMPT_QUEUE, second), 0);
	expect_is("the shorter", ext(fd, KFD_GPREEMPT_PREEMPT_QUEUE, first), 0);
	expect_queue_stands(a, 0);
	expect_queue_runs(a, 0);
	expect_queue_stands(a, 1);
	expect_queue_runs(a, 1);
	expect(now_ms() - began >= lasting(200), "the longer hold ended with the shorter");
	expect_all_done(a);
}

static void longest(void)
{
	struct actor *a = job(1);
	int fd = open_ext();

	give(a, 40);
	expect_is("no time", hold_for(fd, a, 0), 0);
	expect_stands(a);
	expect_is("the longest", hold_for(fd, a, KFD_GPREEMPT_MAX_HOLD_MS), 0);
	expect_stands(a);
	expect_is("let go", let_go(fd, a), 0);
	expect_all_done(a);
}

static void own_hold_over(void)
{
	struct actor *a = job(1);
	struct kfd_gpreempt_batch *b = batch(entry_of(a, ALL, ANY), 1, 0);
	uint64_t began = now_ms();

	give(a, 40);
	b->hold_ms = lasting(80);
	expect_is("hold", kfd_call(a, UNMAP, b), 1);
	expect_stands(a);
	expect_end(a, began, lasting(80));
}

static void many_times(void)
{
	struct actor *a = job(4);
	int fd = open_ext();

	give(a, 120);
	for (int i = 0; i < 20; i++) {
		expect_is("hold", hold(fd, a), 0);
		expect_is("let go", let_go(fd, a), 0);
	}
	expect_all_done(a);
}

const struct ext_case hold_cases[] = {
	{ "work in flight stands while held, and ends in order", work_in_flight, BOTH },
	{ "what is rung while unmapped runs in order when mapped", rung_while_unmapped, BOTH },
	{ "a hold ends when its time is over", over_in_time, BOTH },
	{ "a renewed hold lasts longer and costs no cycle", renewed, BOTH },
	{ "a hold can be made shorter", shortened, BOTH },
	{ "each queue has its own time", each_its_own_time, BOTH },
	{ "no time is the longest time", longest, BOTH },
	{ "a process's own hold ends in time", own_hold_over, BOTH },
	{ "twenty holds lose no packet", many_times, BOTH },
	{ 0 },
};
