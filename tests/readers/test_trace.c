/* SPDX-License-Identifier: MIT */
/* The ptrace table on real processes. */
#include <poll.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "tests/readers/child.h"
#include "tests/readers/rig.h"

static const struct gkfd_trace_ops *const ops = &gkfd_trace_syscall;

static int start(void **state)
{
	struct child *c = calloc(1, sizeof(*c));

	child_start(c, NULL, NULL);
	*state = c;
	return 0;
}

static int end(void **state)
{
	child_end(*state);
	free(*state);
	return 0;
}

/* Blocks until there is an event and takes it. */
static int next_event(pid_t pid)
{
	int status = 0;

	assert_int_equal(ops->peek(NULL, pid), 0);
	assert_int_equal(ops->peek(NULL, pid), 0); /* looking takes nothing */
	assert_int_equal(ops->reap(NULL, pid, &status), 1);
	return status;
}

static void a_seized_process_runs_on(void **state)
{
	struct child *c = *state;
	int status = 77;

	assert_int_equal(ops->seize(NULL, c->pid), 0);
	child_answers(c);
	assert_int_equal(ops->reap(NULL, c->pid, &status), 0);
	assert_int_equal(status, 77);
}

static void an_interrupted_process_stops_continues_and_is_let_go(void **state)
{
	struct child *c = *state;
	int status;

	assert_int_equal(ops->seize(NULL, c->pid), 0);
	assert_int_equal(ops->interrupt(NULL, c->pid), 0);
	status = next_event(c->pid);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(status >> 16, PTRACE_EVENT_STOP);
	assert_int_equal(ops->cont(NULL, c->pid, 0), 0);
	child_answers(c);
	assert_int_equal(ops->interrupt(NULL, c->pid), 0);
	next_event(c->pid);
	assert_int_equal(ops->detach(NULL, c->pid, 0), 0);
	child_answers(c);
}

static void signals_pass_through_the_tracer(void **state)
{
	struct child *c = *state;
	int status;

	assert_int_equal(ops->seize(NULL, c->pid), 0);
	assert_int_equal(kill(c->pid, SIGURG), 0);
	status = next_event(c->pid);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(WSTOPSIG(status), SIGURG);
	assert_int_equal(ops->cont(NULL, c->pid, WSTOPSIG(status)), 0);
	child_answers(c);
}

static void a_group_stop_is_listened_to(void **state)
{
	struct child *c = *state;
	int status;

	assert_int_equal(ops->seize(NULL, c->pid), 0);
	assert_int_equal(kill(c->pid, SIGSTOP), 0);
	status = next_event(c->pid);
	assert_int_equal(ops->cont(NULL, c->pid, WSTOPSIG(status)), 0);
	status = next_event(c->pid);
	assert_int_equal(status >> 16, PTRACE_EVENT_STOP);
	assert_int_equal(WSTOPSIG(status), SIGSTOP);
	assert_int_equal(ops->listen(NULL, c->pid), 0);
	assert_int_equal(kill(c->pid, SIGCONT), 0);
	status = next_event(c->pid);
	assert_int_equal(ops->cont(NULL, c->pid, 0), 0);
	status = next_event(c->pid);
	assert_int_equal(WSTOPSIG(status), SIGCONT);
	assert_int_equal(ops->cont(NULL, c->pid, SIGCONT), 0);
	child_answers(c);
}

static void refusals_are_negative_errnos(void **state)
{
	struct child *c = *state;
	int status;

	assert_int_equal(ops->interrupt(NULL, c->pid), -ESRCH); /* not ours yet */
	assert_int_equal(ops->seize(NULL, getpid()), -EPERM);
	assert_int_equal(ops->seize(NULL, 0), -ESRCH);
	assert_int_equal(ops->seize(NULL, c->pid), 0);
	assert_int_equal(ops->seize(NULL, c->pid), -EPERM);
	assert_int_equal(ops->cont(NULL, c->pid, 0), -ESRCH); /* it is not stopped */
	assert_int_equal(ops->reap(NULL, getpid(), &status), -ECHILD);
	assert_int_equal(ops->peek(NULL, getpid()), -ECHILD);
	assert_int_equal(ops->pidfd(NULL, -1), -EINVAL);
}

static void a_pidfd_turns_readable_at_the_end(void **state)
{
	struct child *c = *state;
	struct pollfd fd = { .fd = ops->pidfd(NULL, c->pid), .events = POLLIN };

	assert_true(fd.fd >= 0);
	assert_int_equal(poll(&fd, 1, 0), 0);
	assert_int_equal(kill(c->pid, SIGKILL), 0);
	assert_int_equal(poll(&fd, 1, -1), 1);
	close(fd.fd);
}

static void a_tracer_that_dies_leaves_its_target_running(void **state)
{
	struct child *c = *state;
	pid_t tracer = fork();
	int status;

	assert_true(tracer >= 0);
	if (tracer == 0)
		_exit(ops->seize(NULL, c->pid) == 0 ? 0 : 1);
	assert_int_equal(waitpid(tracer, &status, 0), tracer);
	assert_int_equal(status, 0);
	child_answers(c);
}

#define CHILD_TEST(f) cmocka_unit_test_setup_teardown(f, start, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CHILD_TEST(a_seized_process_runs_on),
		CHILD_TEST(an_interrupted_process_stops_continues_and_is_let_go),
		CHILD_TEST(signals_pass_through_the_tracer),
		CHILD_TEST(a_group_stop_is_listened_to),
		CHILD_TEST(refusals_are_negative_errnos),
		CHILD_TEST(a_pidfd_turns_readable_at_the_end),
		CHILD_TEST(a_tracer_that_dies_leaves_its_target_running),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
