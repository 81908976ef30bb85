/* SPDX-License-Identifier: MIT */
/* Queues that come and go, processes that end. */
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "tests/ext/ext.h"

#define BOTH (ON_CP | ON_MES)
#define UNMAP KFD_GPREEMPT_BATCH_UNMAP_QUEUES

static void born_held(void)
{
	struct actor *a = job(1);
	int fd = open_ext();
	struct meter m;

	give(a, 40);
	expect_is("hold", hold(fd, a), 0);
	m = meter(0);
	add_queues(a, 2, MK_AQL, 0);
	add_queues(a, 1, MK_PM4, 0);
	add_queues(a, 1, MK_SDMA, 0);
	expect_no_work(m, 0);
	expect_is("held", hqd(0).held, 5);
	for (unsigned int i = 0; i < 5; i++)
		expect_is("by", queue_stats(fd, a, i).preempted_by, getpid());
	give(a, 20);
	for (unsigned int i = 0; i < 5; i++)
		expect_queue_stands(a, i);
	expect_is("let go", let_go(fd, a), 0);
	expect_is("held", hqd(0).held, 0);
	expect_all_done(a);
	add_queues(a, 1, MK_AQL, 0);
	give(a, 5);
	expect_all_done(a);
}

static void before_the_first(void)
{
	struct actor *a = job(0);
	struct kfd_gpreempt_entry *e = entry_of(a, ALL, ANY);
	int fd = open_ext();

	expect_is("hold", ext(fd, UNMAP, batch(e, 1, 0)), 1);
	expect_is("taken off", e->queues, 0);
	add_queues(a, 2, MK_AQL, 0);
	give(a, 20);
	expect_stands(a);
	expect_is("let go", let_go(fd, a), 0);
	expect_all_done(a);
}

static void born_later(void)
{
	struct actor *a = job(0), *b = job(0), *c = job(0);
	int fd = open_ext(), closed = open_ext();

	expect_is("a short hold", hold_for(fd, a, 20), 0);
	expect_is("a closed file's", hold(closed, b), 0);
	expect_is("one that is let go", hold(fd, c), 0);
	expect_is("let go", let_go(fd, c), 0);
	close_ext(closed);
	let_pass(40);
	add_queues(a, 1, MK_AQL, 0);
	add_queues(b, 1, MK_AQL, 0);
	add_queues(c, 1, MK_AQL, 0);
	give(a, 10);
	give(b, 10);
	give(c, 10);
	expect_all_done(a);
	expect_all_done(b);
	expect_all_done(c);
	expect_is("held", hqd(0).held, 0);
}

/* Of one queue: what is created is not it. */
static void not_born_held(void)
{
	struct actor *a = job(1);
	int fd = open_ext();

	give(a, 40);
	expect_is("hold", ext(fd, KFD_GPREEMPT_PREEMPT_QUEUE, one(a, queue_id(a, 0))), 0);
	add_queues(a, 1, MK_AQL, 0);
	give_one(a, 1, 30);
	expect_queue_runs(a, 1);
	expect_queue_stands(a, 0);
}

static void born_own_held(void)
{
	struct actor *a = job(1);

	expect_is("hold", hold_self(a), 0);
	add_queues(a, 2, MK_AQL, 0);
	give(a, 20);
	expect_stands(a);
	expect_is("let go", let_go_self(a), 0);
	expect_all_done(a);
}

static void destroyed_while_held(void)
{
	struct actor *a = job(3);
	int fd = open_ext();
	struct meter m;

	give(a, 40);
	expect_is("hold", hold(fd, a), 0);
	m = meter(0);
	destroy_queue(a, 1);
	expect_no_work(m, 0);
	expect_is("held", hqd(0).held, 2);
	expect_is("its resume", ext(fd, KFD_GPREEMPT_RESUME_QUEUE, one(a, queue_id(a, 1))),
		  -ENOENT);
	expect_stands(a);
	expect_is("let go", let_go(fd, a), 0);
	expect_all_done(a);
}

static void killed_while_held(void)
{
	struct actor *a = job(3), *b = job(1);
	int fd = open_ext();
	struct kfd_gpreempt_entry *e = entries(2);

	give(a, 40);
	give(b, 60);
	e[0] = *entry_of(a, ALL, ANY);
	e[1] = *entry_of(b, ALL, ANY);
	expect_is("hold", ext(fd, UNMAP, batch(e, 2, 0)), 2);
	kill_actor(a);
	expect_stands(b);
	expect_is("let go", ext(fd, KFD_GPREEMPT_FAST_REMAP, batch(e, 0, 2)), 1);
	expect_is("of who was killed", e[0].result, -ESRCH);
	expect_all_done(b);
}

static int do_exec(void *arg)
{
	(void)arg;
	execlp("tail", "tail", "-f", "/dev/null", (char *)NULL);
	return -errno;
}

static void exec_while_held(void)
{
	struct actor *a = job(2);
	int fd = open_ext();

	give(a, 40);
	expect_is("hold", hold(fd, a), 0);
	begin_in(a, do_exec, NULL);
	wait_for_exec(a);
	expect_is("let go", let_go(fd, a), -ESRCH);
	wait_for_no_queues();
}

static int do_slow_hold(void *arg)
{
	return ioctl(*(int *)arg, UNMAP, (char *)arg + 16) < 0 ? -errno : 0;
}

/* A preemption takes its time; meanwhile the target, its queue or the holder is no more. */
static void dies_in_the_middle(bool holder)
{
	struct actor *a = job(2), *b = job(1), *them;
	struct kfd_gpreempt_entry *e = entries(2);
	struct {
		int fd, unused[3];
		struct kfd_gpreempt_batch b;
	} *args = shared(sizeof(*args));

	give(a, 60);
	give(b, 200);
	e[0] = *entry_of(a, ALL, ANY);
	e[1] = *entry_of(b, ALL, ANY);
	args->fd = open_ext();
	args->b = *batch(e, 2, 0);
	them = actor(0); /* with a copy of the descriptor */
	machine.may_be_off = true;
	set_knob(0, "preempt_us", "60000");
	begin_in(them, do_slow_hold, args);
	let_pass(20);
	if (holder)
		close(args->fd);
	kill_actor(holder ? them : a);
	set_knob(0, "preempt_us", "50");
	if (!holder) {
		expect_is("hold", end_in(them), 0);
		kill_actor(them);
		close(args->fd);
	}
	machine.may_be_off = false;
	check_books();
	expect_is("held", hqd(0).held, 0);
	expect_all_done(b);
	if (holder)
		expect_all_done(a);
}

static void target_dies_in_the_middle(void)
{
	dies_in_the_middle(false);
}

static void holder_dies_in_the_middle(void)
{
	dies_in_the_middle(true);
}

static void without_first_thread(void)
{
	struct actor *a = job(1);
	int fd = open_ext();

	lose_first_thread(a);
	give(a, 40);
	expect_is("hold", hold(fd, a), 0);
	expect_stands(a);
	expect_is("let go", let_go(fd, a), 0);
	expect_all_done(a);
}

const struct ext_case life_cases[] = {
	{ "queues that are created while held are born held", born_held, BOTH },
	{ "a process can be held before its first queue", before_the_first, BOTH },
	{ "queues that are created after a hold's end run", born_later, BOTH },
	{ "a hold of one queue is none of the next", not_born_held, BOTH },
	{ "a process's own hold has its new queues, too", born_own_held, BOTH },
	{ "a held queue can be destroyed", destroyed_while_held, BOTH },
	{ "a held process can be killed", killed_while_held, BOTH },
	{ "a held process can become another program", exec_while_held, BOTH },
	{ "a target that dies during its preemption", target_dies_in_the_middle, BOTH },
	{ "a holder that dies during its call", holder_dies_in_the_middle, BOTH },
	{ "a process without its first thread can be held", without_first_thread, BOTH },
	{ 0 },
};
