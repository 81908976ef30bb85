/* SPDX-License-Identifier: MIT */
/* The brake. */
#include <errno.h>

#include "tests/ext/ext.h"

#define BOTH (ON_CP | ON_MES)

static int stop_for(int fd, uint32_t ms, uint32_t *ret_stops)
{
	struct kfd_gpreempt_stop s = { .gpu_id = machine.gpu_ids[0], .hold_ms = ms };
	int r = ext(fd, KFD_GPREEMPT_STOP_SCHED, &s);

	*ret_stops = s.stops;
	return r;
}

static void expect_stop(int fd, uint32_t wanted)
{
	uint32_t stops;

	expect_is("STOP_SCHED", stop_for(fd, 10000, &stops), 0);
	expect_is("stops", stops, wanted);
	expect(hqd(0).flags & KFD_GPREEMPT_HQD_STOPPED, "it is not told");
}

static int start(int fd, uint32_t *ret_left)
{
	struct kfd_gpreempt_stop s = { .gpu_id = machine.gpu_ids[0] };
	int r = ext(fd, KFD_GPREEMPT_START_SCHED, &s);

	*ret_left = s.stops;
	return r;
}

static void expect_start(int fd, uint32_t wanted)
{
	uint32_t stops;

	expect_is("START_SCHED", start(fd, &stops), 0);
	expect_is("stops that are left", stops, wanted);
}

static void everything_stands(void)
{
	struct actor *a = job(2), *b = job(1);
	int fd = open_ext();
	struct meter m;

	give(a, 60);
	give(b, 60);
	m = meter(0);
	expect_stop(fd, 1);
	expect_one_cycle(m, 0, 3, 0);
	expect_is("active", hqd(0).active, 0);
	add_queues(b, 1, MK_AQL, 0);
	give_one(b, 1, 10);
	expect_stands(a);
	expect_stands(b);
	expect_queue_stands(b, 1);
	m = meter(0);
	expect_start(fd, 0);
	expect_one_cycle(m, 0, 0, 4);
	expect(!(hqd(0).flags & KFD_GPREEMPT_HQD_STOPPED), "it is still told");
	expect_all_done(a);
	expect_all_done(b);
}

static void counted(void)
{
	struct actor *a = job(1);
	int fd = open_ext();
	uint32_t stops;
	struct meter m;

	give(a, 60);
	expect_stop(fd, 1);
	m = meter(0);
	expect_stop(fd, 2);
	expect_start(fd, 1);
	expect_no_work(m, 0);
	expect_stands(a);
	expect_start(fd, 0);
	expect_runs(a);
	expect_is("one too many", start(fd, &stops), -EALREADY);
	expect_all_done(a);
}

static void of_two_files(void)
{
	struct actor *a = job(1);
	int first = open_ext(), second = open_ext();
	uint32_t stops;

	give(a, 60);
	expect_stop(first, 1);
	expect_is("another's", start(second, &stops), -EALREADY);
	expect_stop(second, 1);
	expect_start(first, 0);
	expect_stands(a);
	expect_stop(first, 1);
	expect_stop(first, 2);
	close_ext(first);
	expect_stands(a);
	expect_start(second, 0);
	expect_runs(a);
	expect_all_done(a);
}

static void over_in_time(void)
{
	struct actor *a = job(1);
	int fd = open_ext();
	uint32_t stops;
	uint64_t began = now_ms(), took;

	give(a, 60);
	expect_is("STOP_SCHED", stop_for(fd, 10000, &stops), 0);
	expect_is("a shorter one", stop_for(fd, lasting(80), &stops), 0);
	expect_stands(a);
	expect_runs(a);
	took = now_ms() - began;
	expect(took >= lasting(80) && took < lasting(400), "it took %llu ms",
	       (unsigned long long)took);
	expect_is("what is over", start(fd, &stops), -EALREADY);
	expect_all_done(a);
}

static void refused(void)
{
	struct kfd_gpreempt_stop s = { .gpu_id = 12345 };
	int fd = open_ext();

	expect_is("no such GPU", ext(fd, KFD_GPREEMPT_STOP_SCHED, &s), -ENODEV);
	expect_is("no such GPU", ext(fd, KFD_GPREEMPT_START_SCHED, &s), -ENODEV);
	s.gpu_id = machine.gpu_ids[0];
	s.hold_ms = 60001;
	expect_is("too long", ext(fd, KFD_GPREEMPT_STOP_SCHED, &s), -EINVAL);
	s.hold_ms = 1;
	expect_is("a time", ext(fd, KFD_GPREEMPT_START_SCHED, &s), -EINVAL);
	s.hold_ms = 0;
	s.pad = 1;
	expect_is("pad", ext(fd, KFD_GPREEMPT_STOP_SCHED, &s), -EINVAL);
	expect_is("pad", ext(fd, KFD_GPREEMPT_START_SCHED, &s), -EINVAL);
	expect(!(hqd(0).flags & KFD_GPREEMPT_HQD_STOPPED), "it is stopped");
}

static void with_holds(void)
{
	struct actor *a = job(1), *b = job(1);
	int fd = open_ext();

	give(a, 60);
	give(b, 60);
	expect_is("hold", hold(fd, a), 0);
	expect_stop(fd, 1);
	expect_start(fd, 0);
	expect_stands(a);
	expect_runs(b);
	expect_stop(fd, 1);
	expect_is("let go", let_go(fd, a), 0);
	expect_stands(a);
	expect_is("hold", hold(fd, b), 0);
	expect_start(fd, 0);
	expect_runs(a);
	give(b, 5);
	expect_stands(b);
	close_ext(fd);
	expect_all_done(a);
	expect_all_done(b);
}

const struct ext_case stop_cases[] = {
	{ "a stopped GPU runs nothing, new queues neither", everything_stands, BOTH },
	{ "stops are counted", counted, BOTH },
	{ "stops of two files must both be undone", of_two_files, BOTH },
	{ "a stop ends when its time is over", over_in_time, BOTH },
	{ "stops that make no sense are refused", refused, BOTH },
	{ "stops and holds are independent", with_holds, BOTH },
	{ 0 },
};
