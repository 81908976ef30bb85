/* SPDX-License-Identifier: MIT */
/* Holders in processes of their own, ended from outside. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "gpu/kfd/release.h"
#include "tests/kfd/job.h"
#include "tests/kfd/script.h"
#include "tests/kfd/tracee.h"
#include "util/macros.h"

struct fixture {
	struct script *script;
	struct gkfd *k;
	struct job job;
	pid_t holder;
	struct gkfd_failure fail;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->script = script_new(&gkfd_trace_syscall);
	f->k = script_gkfd(f->script);
	job_start(&f->job);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	if (f->holder) {
		kill(f->holder, SIGKILL);
		waitpid(f->holder, NULL, 0);
	}
	gkfd_free(f->k);
	job_end(&f->job);
	free(f);
	return 0;
}

/* Runs @body in a child and returns when the child has said it is ready. */
static void start_holder(struct fixture *f, void (*body)(struct fixture *f), bool deaf)
{
	int fds[2];
	char c;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	f->holder = fork();
	if (f->holder == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (deaf)
			signal(SIGTERM, SIG_IGN);
		body(f);
		if (write(fds[1], "h", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], &c, 1), 1);
	close(fds[0]);
	assert_true(job_tracer(f->job.pid) > 0);
}

static void hold_with_guard(struct fixture *f)
{
	struct tracee *t;
	struct gkfd_moved hold;
	struct guard *g;

	if (guard_start(&g) < 0 ||
	    tracee_attach(f->k, f->job.pid, GKFD_BY_DEBUG, g, &t, &f->fail) < 0 ||
	    tracee_hold(t, &(struct gpu_hold){ 0 }, &hold, &f->fail) < 0)
		_exit(1);
}

static void trace_like_a_debugger(struct fixture *f)
{
	if (ptrace(PTRACE_SEIZE, f->job.pid, NULL, NULL) < 0)
		_exit(1);
}

static void job_is_free(struct fixture *f)
{
	assert_int_equal(job_tracer(f->job.pid), 0);
	kill(f->job.pid, SIGUSR1);
	assert_int_equal(job_hear(f->job.from_job), 'u');
}

static void a_holder_that_is_well_is_asked(void **state)
{
	struct fixture *f = *state;
	int status;

	start_holder(f, hold_with_guard, false);
	assert_int_equal(gkfd_release_pid(f->k, f->job.pid, &f->fail), 1);
	assert_int_equal(waitpid(f->holder, &status, 0), f->holder);
	f->holder = 0;
	assert_int_equal(WTERMSIG(status), SIGTERM);
	job_is_free(f);
}

static void a_holder_that_does_not_listen_is_killed(void **state)
{
	struct fixture *f = *state;
	int status;

	start_holder(f, hold_with_guard, true);
	assert_int_equal(gkfd_release_pid(f->k, f->job.pid, &f->fail), 1);
	assert_int_equal(waitpid(f->holder, &status, 0), f->holder);
	f->holder = 0;
	assert_int_equal(WTERMSIG(status), SIGKILL);
	job_is_free(f);
}

static void a_stopped_holder_lets_go_too(void **state)
{
	struct fixture *f = *state;

	start_holder(f, hold_with_guard, false);
	kill(f->holder, SIGSTOP);
	assert_int_equal(gkfd_release_pid(f->k, f->job.pid, &f->fail), 1);
	job_is_free(f);
}

static void somebody_elses_debugger_is_left_alone(void **state)
{
	struct fixture *f = *state;

	start_holder(f, trace_like_a_debugger, false);
	assert_int_equal(gkfd_release_pid(f->k, f->job.pid, &f->fail), -EBUSY);
	assert_int_equal(f->fail.why, GKFD_WHY_TRACED);
	assert_int_equal(f->fail.other_pid, f->holder);
	assert_int_equal(job_tracer(f->job.pid), f->holder);
}

static void a_process_nobody_holds_is_left_alone(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(gkfd_release_pid(f->k, f->job.pid, &f->fail), 0);
	job_is_free(f);
}

static void an_orphaned_session_is_taken_back(void **state)
{
	struct fixture *f = *state;

	SCRIPT_PLAY(f->script, { "version", 0 }, { "snapshot mask=0 room=0", 0, .queues = 1 },
		    { "enable", -EALREADY }, { "runtime-event", 0 }, { "resume all", 1 },
		    { "disable", 0 });
	assert_int_equal(gkfd_release_pid(f->k, f->job.pid, &f->fail), 1);
	script_done(f->script);
	assert_true(gkfd_is_stained());
	job_is_free(f);
}

static void another_users_holder_is_not_ours_to_end(void **state)
{
	struct fixture *f = *state;
	int status;
	pid_t child;

	if (getuid() != 0) {
		print_message("# not root: cannot become another user\n");
		return;
	}
	start_holder(f, hold_with_guard, false);
	child = fork();
	if (child == 0) {
		if (setresuid(65534, 65534, 65534) < 0)
			_exit(2);
		_exit(gkfd_release_pid(f->k, f->job.pid, &f->fail) == -EPERM ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(kill(f->holder, 0), 0);
	assert_true(job_tracer(f->job.pid) > 0);
}

static void a_dead_process_is_no_process(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(gkfd_release_pid(f->k, 999999999, &f->fail), -ESRCH);
	assert_int_equal(f->fail.why, GKFD_WHY_NO_PROCESS);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_holder_that_is_well_is_asked),
		T(a_holder_that_does_not_listen_is_killed),
		T(a_stopped_holder_lets_go_too),
		T(somebody_elses_debugger_is_left_alone),
		T(a_process_nobody_holds_is_left_alone),
		T(an_orphaned_session_is_taken_back),
		T(another_users_holder_is_not_ours_to_end),
		T(a_dead_process_is_no_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
