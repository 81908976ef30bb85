/* SPDX-License-Identifier: MIT */
/* GPUs that do not do what they are told. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "tests/ext/ext.h"

#define BOTH (ON_CP | ON_MES)
#define UNMAP KFD_GPREEMPT_BATCH_UNMAP_QUEUES
#define TIMEOUT "queue_preemption_timeout_ms"
#define PATIENCE_MS 10000

/* From now on. */
static int kernel_log(void)
{
	int log = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (log < 0 || lseek(log, 0, SEEK_END) < 0)
		mk_die("/dev/kmsg");
	return log;
}

static void await_reset(int log)
{
	struct pollfd fd = { .fd = log, .events = POLLIN };
	char line[1024];

	do {
		ssize_t n = read(log, line, sizeof(line) - 1);

		line[n < 0 ? 0 : n] = '\0';
		expect(n >= 0 || poll(&fd, 1, PATIENCE_MS) > 0, "the GPU is not reset");
	} while (!strstr(line, "GPU reset done"));
}

static void make_stuck(const char *resettable)
{
	char text[16];

	snprintf(text, sizeof(text), "%#x", doorbell_of_only_queue(0));
	set_knob(0, "queue_reset_works", resettable);
	set_knob(0, "stuck_ms", "20");
	set_knob(0, "stuck_doorbell", text);
}

static void mend(void)
{
	set_knob(0, "queue_reset_works", "Y");
	set_parameter(TIMEOUT, "9000");
}

static bool is_failure(int r)
{
	return r == -ETIME || r == -EIO || r == -ETIMEDOUT;
}

/* Afterwards another job finds the GPU as ever. */
static void expect_good_gpu(void)
{
	struct actor *a = job(1);
	int fd = open_ext();

	machine.may_be_off = false;
	give(a, 40);
	expect_is("hold", hold(fd, a), 0);
	expect_stands(a);
	expect_is("let go", let_go(fd, a), 0);
	expect_all_done(a);
	close_ext(fd);
}

static void stuck(void)
{
	struct actor *a = job(1);
	int fd = open_ext(), log = kernel_log(), r;

	give(a, 40);
	make_stuck("N");
	machine.may_be_off = true;
	r = hold(fd, a);
	expect(is_failure(r), "a queue that does not yield: %s", result_name(r));
	await_reset(log);
	mend();
	r = hold(fd, a);
	expect(r == 0 || is_failure(r), "again: %s", result_name(r));
	close_ext(fd);
	expect_is("held", hqd(0).held, 0);
	kill_actor(a);
	wait_for_no_queues();
	expect_good_gpu();
}

static void resettable(void)
{
	struct actor *a = job(1);
	int fd = open_ext(), r;

	give(a, 40);
	make_stuck("Y");
	machine.may_be_off = true;
	r = hold(fd, a);
	expect_is("a queue that is reset", r, -EIO);
	close_ext(fd);
	expect_is("held", hqd(0).held, 0);
	kill_actor(a);
	wait_for_no_queues();
	mend();
	expect_good_gpu();
}

static void dead(void)
{
	struct actor *a = job(2);
	struct kfd_gpreempt_stop s = { .gpu_id = machine.gpu_ids[0] };
	int fd = open_ext(), log = kernel_log(), r;

	give(a, 40);
	set_parameter(TIMEOUT, "30");
	machine.may_be_off = true;
	set_knob(0, "dead", "Y");
	r = hold(fd, a);
	expect(is_failure(r), "a dead scheduler: %s", result_name(r));
	r = ext(fd, KFD_GPREEMPT_STOP_SCHED, &s);
	expect(r == 0 || is_failure(r), "STOP_SCHED: %s", result_name(r));
	await_reset(log);
	mend();
	close_ext(fd);
	expect_is("held", hqd(0).held, 0);
	expect(!(hqd(0).flags & KFD_GPREEMPT_HQD_STOPPED), "it is stopped for ever");
	kill_actor(a);
	wait_for_no_queues();
	expect_good_gpu();
}

/* The hold ends while the GPU is reset. */
static void closed_during_reset(void)
{
	struct actor *a = job(2);
	int fd = open_ext(), log = kernel_log(), r;

	give(a, 40);
	set_parameter(TIMEOUT, "30");
	machine.may_be_off = true;
	set_knob(0, "dead", "Y");
	r = hold(fd, a);
	expect(is_failure(r), "a dead scheduler: %s", result_name(r));
	close_ext(fd);
	await_reset(log);
	mend();
	expect_is("held", hqd(0).held, 0);
	kill_actor(a);
	wait_for_no_queues();
	expect_good_gpu();
}

/* One that was held well when its GPU was reset. */
static void reset_while_held(void)
{
	struct actor *a = job(2), *b = job(1);
	int fd = open_ext(), log = kernel_log(), r;

	give(a, 40);
	expect_is("hold", hold(fd, a), 0);
	set_parameter(TIMEOUT, "30");
	machine.may_be_off = true;
	set_knob(0, "dead", "Y");
	r = hold(fd, b);
	expect(is_failure(r), "a dead scheduler: %s", result_name(r));
	await_reset(log);
	mend();
	expect_stands(a);
	r = let_go(fd, a);
	expect(r == 0 || is_failure(r), "let go: %s", result_name(r));
	close_ext(fd);
	expect_is("held", hqd(0).held, 0);
	kill_actor(a);
	kill_actor(b);
	wait_for_no_queues();
	expect_good_gpu();
}

/* The call does not wait longer than it is told to, whatever the driver does. */
static void timeout(void)
{
	struct actor *a = job(1);
	struct kfd_gpreempt_entry *e = entry_of(a, ALL, ANY);
	struct kfd_gpreempt_batch *b = batch(e, 1, 0);
	struct kfd_gpreempt_collect c = { .entries = (uintptr_t)e, .n = 1 };
	struct pollfd p = { .fd = open_ext(), .events = POLLIN };
	int log = kernel_log();
	uint64_t began;

	set_parameter(TIMEOUT, "300");
	machine.may_be_off = true;
	set_knob(0, "dead", "Y");
	b->timeout_ms = 20;
	began = now_ms();
	expect_is("unmap", ioctl(p.fd, UNMAP, b) < 0 ? -errno : 0, -ETIME);
	expect(now_ms() - began < 200, "it waited for %llu ms",
	       (unsigned long long)(now_ms() - began));
	expect(poll(&p, 1, PATIENCE_MS) == 1, "it is never told");
	expect_is("collect", ext(p.fd, KFD_GPREEMPT_COLLECT, &c), 0);
	expect(is_failure(e->result), "result %s", result_name(e->result));
	expect_is("done", c.done, 0);
	await_reset(log);
	mend();
	close_ext(p.fd);
	expect_is("held", hqd(0).held, 0);
	kill_actor(a);
	wait_for_no_queues();
	expect_good_gpu();
}

/* The driver evicts the jobs on the other GPU, too, when one is reset: that much is its own. */
static void one_of_two(void)
{
	struct actor *a = job(1), *b = job(0);
	struct kfd_gpreempt_entry *e = entries(2);
	int fd = open_ext(), log = kernel_log();

	add_queues(b, 1, MK_AQL, 1);
	give(b, 80);
	e[0] = *entry_of(a, ALL, machine.gpu_ids[0]);
	e[1] = *entry_of(b, ALL, machine.gpu_ids[1]);
	set_parameter(TIMEOUT, "30");
	machine.may_be_off = true;
	set_knob(0, "dead", "Y");
	expect_is("unmap", ext(fd, UNMAP, batch(e, 2, 0)), 1);
	expect(is_failure(e[0].result), "result %s", result_name(e[0].result));
	expect_is("the other", e[1].result, 0);
	await_reset(log);
	mend();
	close_ext(fd);
	expect_is("held", hqd(0).held + hqd(1).held, 0);
	kill_actor(a);
	kill_actor(b);
	wait_for_no_queues();
	expect_good_gpu();
}

const struct ext_case fault_cases[] = {
	{ "a queue that does not yield is told, its hold ends", stuck, BOTH },
	{ "a queue that is reset is told", resettable, ON_CP },
	{ "a dead scheduler is told, and nothing stays held", dead, BOTH },
	{ "a hold that ends during a reset is gone after it", closed_during_reset, BOTH },
	{ "what is held stands through a reset", reset_while_held, BOTH },
	{ "a call waits no longer than it is told to", timeout, ON_CP },
	{ "a dead GPU is none of the other's business", one_of_two, BOTH | ON_TWO },
	{ 0 },
};
