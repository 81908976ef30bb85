/* SPDX-License-Identifier: MIT */
#include "gpu/nvrm/selftest.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "gpu/nvrm/internal.h"
#include "gpu/nvrm/selftest_child.h"
#include "util/clock.h"

#define PAGE_BYTES 4096u
#define START_NS (30 * NSEC_PER_SEC) /* eight GPUs take a while to be initialised */
#define BEATS_ENOUGH 8u
/* Others that use the GPU have their turns too. */
#define TURN_NS (2 * NSEC_PER_SEC)
#define SETTLE_NS (5 * NSEC_PER_MSEC) /* what was written before lands */
#define QUIET_NS (20 * NSEC_PER_MSEC)

struct test {
	struct nvrm *n;
	struct selftest_page *page;
	pid_t child;
	int said; /* the child's end of it is closed by its end */
	struct nvrm_process *process;
	uint32_t beat; /* when it was held */
	uint64_t began_ns; /* the call that is waited for */
};

/* The process is let go before it is ended: no channel of it stays disabled. */
static void test_done(struct test *t)
{
	nvrm_process_close(t->process);
	if (t->page)
		atomic_store(&t->page->stop, 1);
	if (t->child > 0) {
		kill(t->child, SIGKILL);
		while (waitpid(t->child, NULL, 0) < 0 && errno == EINTR)
			;
	}
	closep(&t->said);
	if (t->page)
		munmap(t->page, PAGE_BYTES);
}

static int start_child(struct test *t, unsigned int gpu)
{
	_cleanup_close_ int theirs = -1;
	int ends[2];

	t->page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (t->page == MAP_FAILED) {
		t->page = NULL;
		return -errno;
	}
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	t->said = ends[0];
	theirs = ends[1];
	t->child = fork();
	if (t->child < 0)
		return -errno;
	if (t->child == 0)
		selftest_child(t->page, PAGE_BYTES, gpu, theirs);
	return 0;
}

/* 1: @until is so; 0: not within @ns; -ECHILD: the child has ended. */
static int watch(const struct test *t, uint64_t ns, bool (*until)(const struct test *t))
{
	uint64_t end = monotonic_ns() + ns;

	for (;;) {
		struct pollfd fd = { .fd = t->said, .events = POLLIN };

		if (until && until(t))
			return 1;
		if (monotonic_ns() >= end)
			return 0;
		if (poll(&fd, 1, 1) > 0)
			return -ECHILD;
	}
}

static bool beats(const struct test *t)
{
	return atomic_load(&t->page->beat) >= BEATS_ENOUGH;
}

static bool beats_again(const struct test *t)
{
	return atomic_load(&t->page->beat) != t->beat &&
	       atomic_load(&t->page->again_ns) >= t->began_ns;
}

/* Whatever keeps the test from being made says nothing about the driver. */
static int wait_until_it_runs(struct test *t, struct nvrm_failure *ret)
{
	static const char *const steps[] = {
		[SELFTEST_NO_LIBRARY] = "loading libcuda.so.1",
		[SELFTEST_NO_CONTEXT] = "making a context of our own",
		[SELFTEST_NO_KERNEL] = "starting a kernel of our own",
	};
	struct pollfd fd = { .fd = t->said, .events = POLLIN };
	const char *step = NULL;
	uint8_t said = 0;

	if (poll(&fd, 1, START_NS / NSEC_PER_MSEC) <= 0 || read(t->said, &said, sizeof(said)) <= 0)
		step = steps[SELFTEST_NO_CONTEXT];
	else if (said != SELFTEST_STARTED)
		step = said < ARRAY_SIZE(steps) ? steps[said] : steps[SELFTEST_NO_KERNEL];
	else if (watch(t, TURN_NS, beats) <= 0)
		step = steps[SELFTEST_NO_KERNEL];
	if (!step)
		return 0;
	*ret = (struct nvrm_failure){
		.why = NVRM_WHY_SELF_TEST,
		.step = step,
		.status = atomic_load(&t->page->error),
	};
	return -EOPNOTSUPP;
}

static int hold(struct test *t, struct nvrm_selftest *figures, struct nvrm_failure *ret)
{
	uint64_t began = monotonic_ns(), changed, off_ns;
	int r = nvrm_hold(&t->process, 1, NVRM_ALL_GPUS, &off_ns, ret);

	if (r < 0)
		return r;
	figures->suspend_ns = monotonic_ns() - began;
	r = watch(t, SETTLE_NS, NULL);
	t->beat = atomic_load(&t->page->beat);
	changed = atomic_load(&t->page->changed_ns);
	if (r == 0)
		r = watch(t, QUIET_NS, NULL);
	if (r < 0)
		return nvrm_fail(ret, -EIO, NVRM_WHY_SELF_TEST, "it ended when it was suspended");
	if (atomic_load(&t->page->beat) != t->beat)
		return nvrm_fail(ret, -EIO, NVRM_WHY_SELF_TEST, "what was suspended went on");
	figures->frozen_ns = changed > began ? changed - began : 0;
	return 0;
}

static int let_go(struct test *t, struct nvrm_selftest *figures, struct nvrm_failure *ret)
{
	int r;

	t->began_ns = monotonic_ns();
	r = nvrm_let_go(&t->process, 1, NVRM_ALL_GPUS, ret);
	if (r < 0)
		return r;
	figures->resume_ns = monotonic_ns() - t->began_ns;
	if (watch(t, TURN_NS, beats_again) <= 0)
		return nvrm_fail(ret, -EIO, NVRM_WHY_SELF_TEST, "what was resumed did not go on");
	figures->running_ns = atomic_load(&t->page->again_ns) - t->began_ns;
	return 0;
}

/* Found, held and let go as a stranger's would be; only that a stranger would have a guard. */
static int try_it(struct test *t, struct nvrm_selftest *figures, struct nvrm_failure *ret)
{
	const char *step = "finding its channel groups";
	int r = nvrm_process_open(t->n, t->child, &t->process, ret);

	if (r >= 0) {
		step = "suspending it";
		r = hold(t, figures, ret);
	}
	if (r >= 0) {
		step = "resuming it";
		r = let_go(t, figures, ret);
	}
	if (r >= 0)
		return 0;
	ret->why = NVRM_WHY_SELF_TEST;
	if (!ret->step)
		ret->step = step;
	return -EIO;
}

int nvrm_selftest(struct nvrm *n, unsigned int gpu, struct nvrm_selftest *ret,
		  struct nvrm_failure *ret_failure)
{
	_cleanup_(test_done) struct test t = { .n = n, .said = -1 };
	struct nvrm_selftest figures = { 0 };
	struct nvrm_failure failure = { 0 };
	int r = start_child(&t, gpu);

	if (r < 0)
		r = nvrm_fail(&failure, r, NVRM_WHY_SYSTEM, "starting a child for the self-test");
	if (r >= 0)
		r = wait_until_it_runs(&t, &failure);
	if (r >= 0)
		r = try_it(&t, &figures, &failure);
	if (r < 0) {
		*ret_failure = failure;
		return r;
	}
	*ret = figures;
	return 0;
}
