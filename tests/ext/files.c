/* SPDX-License-Identifier: MIT */
/* Holds belong to files. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "tests/ext/ext.h"

#define BOTH (ON_CP | ON_MES)
#define UNMAP KFD_GPREEMPT_BATCH_UNMAP_QUEUES
#define REMAP KFD_GPREEMPT_FAST_REMAP

static int preempt(int fd, struct actor *a, unsigned int i)
{
	return ext(fd, KFD_GPREEMPT_PREEMPT_QUEUE, one(a, queue_id(a, i)));
}

static int resume(int fd, struct actor *a, unsigned int i)
{
	return ext(fd, KFD_GPREEMPT_RESUME_QUEUE, one(a, queue_id(a, i)));
}

static void second_file(void)
{
	struct actor *a = job(2);
	int first = open_ext(), second = open_ext();
	struct meter m;

	give(a, 40);
	expect_is("the first's hold", hold(first, a), 0);
	m = meter(0);
	expect_is("the second's hold", hold(second, a), -EBUSY);
	expect_is("the second's remap", let_go(second, a), -EBUSY);
	expect_is("the second's hold of one", preempt(second, a, 0), -EBUSY);
	expect_is("the second's remap of one", resume(second, a, 0), -EBUSY);
	expect_no_work(m, 0);
	expect_stands(a);
	close_ext(second);
	expect_stands(a);
	close_ext(first);
	expect_runs(a);
	second = open_ext();
	expect_is("a third's hold", hold(second, a), 0);
	expect_is("its remap", let_go(second, a), 0);
	expect_all_done(a);
}

static void queues_of_two_files(void)
{
	struct actor *a = job(3);
	struct kfd_gpreempt_entry *e = entry_of(a, ALL, ANY);
	int first = open_ext(), second = open_ext();

	give(a, 80);
	expect_is("the first's", preempt(first, a, 0), 0);
	expect_is("the second's", preempt(second, a, 1), 0);
	expect_is("another's", resume(second, a, 0), -EBUSY);
	expect_is("nobody's", resume(second, a, 2), -EALREADY);
	expect_is("all, of which one is taken", ext(second, UNMAP, batch(e, 1, 0)), 0);
	expect_is("result", e->result, -EBUSY);
	expect_is("taken off all the same", e->queues, 1);
	expect_is("held", hqd(0).held, 3);
	close_ext(first);
	expect_is("held", hqd(0).held, 2);
	expect_queue_runs(a, 0);
	expect_queue_stands(a, 1);
	expect_queue_stands(a, 2);
	close_ext(second);
	expect_is("held", hqd(0).held, 0);
	expect_all_done(a);
}

static void two_kinds(void)
{
	struct actor *a = job(2);
	int fd = open_ext();
	struct meter m;

	give(a, 80);
	expect_is("its own", hold_self(a), 0);
	m = meter(0);
	expect_is("the holder's", hold(fd, a), 0);
	expect_no_work(m, 0);
	expect_is("its own ends", let_go_self(a), 0);
	expect_no_work(m, 0);
	expect_stands(a);
	expect_is("its own", hold_self(a), 0);
	expect_is("the holder's ends", let_go(fd, a), 0);
	expect_no_work(m, 0);
	expect_stands(a);
	expect_is("the holder's remap of what is not its", resume(fd, a, 0), -EALREADY);
	expect_is("its own ends", let_go_self(a), 0);
	expect_runs(a);
	expect_is("both", hold(fd, a), 0);
	expect_is("both", hold_self(a), 0);
	close_ext(fd);
	expect_stands(a);
	expect_is("its own ends", let_go_self(a), 0);
	expect_all_done(a);
}

static void last_copy(void)
{
	struct actor *a = job(1);
	int fd = open_ext(), copy = dup(fd);

	give(a, 40);
	expect_is("hold", hold(fd, a), 0);
	close_ext(fd);
	expect_stands(a);
	expect_is("renewed by the other", hold(copy, a), 0);
	close_ext(copy);
	expect_all_done(a);
}

static void killed_holder(void)
{
	struct actor *a = job(2), *b = job(1), *them = actor(0);
	struct kfd_gpreempt_entry *e = entries(2);
	uint64_t began;

	open_ext_by(them);
	give(a, 60);
	give(b, 60);
	e[0] = *entry_of(a, ALL, ANY);
	e[1] = *entry_of(b, ALL, ANY);
	expect_is("hold", ext_by(them, UNMAP, batch(e, 2, 0)), 2);
	expect_stands(a);
	began = now_ms();
	kill_actor(them);
	expect_runs(a);
	expect_runs(b);
	expect(now_ms() - began < lasting(500), "it took %llu ms",
	       (unsigned long long)(now_ms() - began));
	expect_all_done(a);
	expect_all_done(b);
}

/* ---- several files of /dev/kfd ---- */

static int own_second = -1; /* the process's */

static int do_open_second(void *arg)
{
	(void)arg;
	own_second = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	return own_second < 0 ? -errno : 0;
}

static int do_second(void *arg)
{
	return ioctl(own_second, UNMAP, arg) < 0 ? -errno : 0;
}

static int do_close_second(void *arg)
{
	(void)arg;
	return close(own_second);
}

static void own_second_file(void)
{
	struct actor *a = job(1);
	struct kfd_gpreempt_entry *e = entry_of(a, ALL, ANY);

	give(a, 60);
	expect_is("open", in(a, do_open_second, NULL), 0);
	expect_is("hold", in(a, do_second, batch(e, 1, 0)), 0);
	expect_is("result", e->result, 0);
	expect_stands(a);
	expect_is("by its first file", hold_self(a), -EBUSY);
	expect_is("by its first file", let_go_self(a), -EBUSY);
	expect_is("close", in(a, do_close_second, NULL), 0);
	expect_runs(a);
	expect_all_done(a);
}

/* Nothing is there yet that a list of queues would lead to. */
static void own_second_file_before_queues(void)
{
	struct actor *a = job(0);
	struct kfd_gpreempt_entry *e = entry_of(a, ALL, ANY);

	expect_is("open", in(a, do_open_second, NULL), 0);
	expect_is("hold", in(a, do_second, batch(e, 1, 0)), 0);
	expect_is("result", e->result, 0);
	expect_is("close", in(a, do_close_second, NULL), 0);
	add_queues(a, 1, MK_AQL, 0);
	give(a, 20);
	expect_all_done(a);
}

const struct ext_case file_cases[] = {
	{ "what one file holds another cannot, and its close ends it", second_file, BOTH },
	{ "the queues of a process can be held by two files", queues_of_two_files, BOTH },
	{ "a process's own hold and a holder's are independent", two_kinds, BOTH },
	{ "a hold lasts until the last copy of its descriptor is closed", last_copy, BOTH },
	{ "a holder that is killed holds nothing", killed_holder, BOTH },
	{ "a process's own holds belong to one of its files", own_second_file, BOTH },
	{ "a file that is closed before the first queue holds none", own_second_file_before_queues,
	  BOTH },
	{ 0 },
};
