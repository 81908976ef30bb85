/* SPDX-License-Identifier: MIT */
/* Several GPUs. */
#include <errno.h>

#include "tests/ext/ext.h"

#define TWO (ON_CP | ON_MES | ON_TWO)
#define UNMAP KFD_GPREEMPT_BATCH_UNMAP_QUEUES
#define SLOW "100000"

/* Queues 0 and 1 on the first GPU, 2 and 3 on the second. */
static struct actor *job_on_both(void)
{
	struct actor *a = job(2);

	add_queues(a, 2, MK_AQL, 1);
	give(a, 80);
	return a;
}

static void named(void)
{
	struct actor *a = job_on_both();
	struct kfd_gpreempt_entry *e = entry_of(a, ALL, machine.gpu_ids[1]);
	int fd = open_ext();
	struct meter m0 = meter(0), m1 = meter(1);

	expect_is("unmap", ext(fd, UNMAP, batch(e, 1, 0)), 1);
	expect_is("taken off", e->queues, 2);
	expect_no_work(m0, 0);
	expect_one_cycle(m1, 1, 2, 0);
	expect_queue_stands(a, 2);
	expect_queue_stands(a, 3);
	expect_queue_runs(a, 0);
	add_queues(a, 1, MK_AQL, 1);
	add_queues(a, 1, MK_AQL, 0);
	give_one(a, 4, 10);
	give_one(a, 5, 10);
	expect_queue_stands(a, 4);
	expect_queue_runs(a, 5);
	*e = *entry_of(a, queue_id(a, 0), machine.gpu_ids[1]);
	expect_is("a queue that is not there", ext(fd, UNMAP, batch(e, 1, 0)), 0);
	expect_is("result", e->result, -ENOENT);
	*e = *entry_of(a, ALL, machine.gpu_ids[0]);
	expect_is("remap of the other", ext(fd, KFD_GPREEMPT_FAST_REMAP, batch(e, 0, 1)), 1);
	expect_queue_stands(a, 2);
	*e = *entry_of(a, ALL, ANY);
	expect_is("remap", ext(fd, KFD_GPREEMPT_FAST_REMAP, batch(e, 0, 1)), 1);
	expect_is("put on", e->queues, 3);
	expect_all_done(a);
}

static void both(void)
{
	struct actor *a = job_on_both();
	struct kfd_gpreempt_batch *b = batch(entry_of(a, ALL, ANY), 1, 0);
	int fd = open_ext();
	struct meter m0 = meter(0), m1 = meter(1);

	expect_is("unmap", ext(fd, UNMAP, b), 1);
	expect_one_cycle(m0, 0, 2, 0);
	expect_one_cycle(m1, 1, 2, 0);
	expect_is("cycles", b->cycles, machine.is_mes ? 0 : 2);
	expect_stands(a);
	close_ext(fd);
	expect_is("held", hqd(0).held + hqd(1).held, 0);
	expect_all_done(a);
}

static void at_the_same_time(void)
{
	struct actor *a = job(1);
	struct kfd_gpreempt_batch *b = batch(entry_of(a, ALL, ANY), 1, 0);
	int fd = open_ext();

	add_queues(a, 1, MK_AQL, 1);
	set_knob(0, "preempt_us", SLOW);
	set_knob(1, "preempt_us", SLOW);
	expect_is("unmap", ext(fd, UNMAP, b), 1);
	set_knob(0, "preempt_us", "50");
	set_knob(1, "preempt_us", "50");
	expect(b->fence_ns >= 100000000, "waited for %llu ns", (unsigned long long)b->fence_ns);
	expect(b->took_ns < (160 + lasting(10)) * 1000000ull, "two of 100 ms took %llu ns",
	       (unsigned long long)b->took_ns);
}

static void stopped(void)
{
	struct kfd_gpreempt_stop s = { .gpu_id = machine.gpu_ids[1], .hold_ms = 10000 };
	struct actor *a = job_on_both();
	int fd = open_ext();

	expect_is("STOP_SCHED", ext(fd, KFD_GPREEMPT_STOP_SCHED, &s), 0);
	expect_queue_runs(a, 0);
	expect_queue_stands(a, 2);
	s.hold_ms = 0;
	s.gpu_id = machine.gpu_ids[0];
	expect_is("START_SCHED", ext(fd, KFD_GPREEMPT_START_SCHED, &s), -EALREADY);
	s.gpu_id = machine.gpu_ids[1];
	expect_is("START_SCHED", ext(fd, KFD_GPREEMPT_START_SCHED, &s), 0);
	expect_all_done(a);
}

static void in_time(void)
{
	struct actor *a = job_on_both();
	int fd = open_ext();

	expect_is("hold", hold_for(fd, a, lasting(60)), 0);
	expect_stands(a);
	let_pass(lasting(60));
	expect_queue_runs(a, 0);
	expect_queue_runs(a, 2);
	expect_is("held", hqd(0).held + hqd(1).held, 0);
	expect_all_done(a);
}

const struct ext_case gpu_cases[] = {
	{ "a GPU can be named", named, TWO },
	{ "a process is held on all its GPUs", both, TWO },
	{ "GPUs are waited for at the same time", at_the_same_time, TWO },
	{ "one GPU is stopped", stopped, TWO },
	{ "holds on all GPUs end in time", in_time, TWO },
	{ 0 },
};
