/* SPDX-License-Identifier: MIT */
/* Real processes, seized by the real tracer, over a driver that obliges. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "tests/kfd/job.h"
#include "tests/kfd/script.h"
#include "tests/kfd/tracee.h"
#include "util/macros.h"

struct fixture {
	struct script *script;
	struct gkfd *k;
	struct job job;
	struct guard *guard;
	struct tracee *t;
	struct gkfd_failure fail;
	struct gkfd_moved hold;
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

	tracee_release(f->t);
	guard_stop(f->guard);
	gkfd_free(f->k);
	job_end(&f->job);
	free(f);
	return 0;
}

static void attach(struct fixture *f)
{
	assert_int_equal(tracee_attach(f->k, f->job.pid, GKFD_BY_DEBUG, f->guard, &f->t, &f->fail),
			 0);
	assert_true(job_tracer(f->job.pid) > 0);
}

static void attach_and_hold(struct fixture *f, uint64_t longest_ns)
{
	struct gpu_hold request = { .grace_kclk = 1, .longest_ns = longest_ns };

	assert_int_equal(guard_start(&f->guard), 0);
	attach(f);
	assert_int_equal(tracee_hold(f->t, &request, &f->hold, &f->fail), 0);
	assert_int_equal(f->hold.n, 2);
	assert_int_equal(script_suspended(f->script), 2);
}

static void signals_reach_the_target(void **state)
{
	struct fixture *f = *state;

	attach(f);
	for (int i = 0; i < 100; i++) {
		kill(f->job.pid, SIGUSR1);
		assert_int_equal(job_hear(f->job.from_job), 'u');
	}
}

static void job_control_works_as_without_us(void **state)
{
	struct fixture *f = *state;

	attach(f);
	for (int i = 0; i < 20; i++) {
		kill(f->job.pid, i % 2 ? SIGSTOP : SIGTSTP);
		assert_int_equal(job_hear(f->job.from_parent), 'S');
		kill(f->job.pid, SIGCONT);
		assert_int_equal(job_hear(f->job.from_parent), 'C');
	}
	kill(f->job.pid, SIGUSR1);
	assert_int_equal(job_hear(f->job.from_job), 'u');
}

static void a_target_stopped_while_attached_stays_stopped(void **state)
{
	struct fixture *f = *state;
	struct pollfd p = { .fd = f->job.from_job, .events = POLLIN };

	attach(f);
	kill(f->job.pid, SIGSTOP);
	assert_int_equal(job_hear(f->job.from_parent), 'S');
	kill(f->job.pid, SIGUSR1);
	assert_int_equal(poll(&p, 1, 100), 0);
	kill(f->job.pid, SIGCONT);
	assert_int_equal(job_hear(f->job.from_parent), 'C');
	assert_int_equal(job_hear(f->job.from_job), 'u');
}

static void a_stopped_target_can_be_attached_and_stays_stopped(void **state)
{
	struct fixture *f = *state;

	kill(f->job.pid, SIGSTOP);
	assert_int_equal(job_hear(f->job.from_parent), 'S');
	attach(f);
	tracee_release(steal_ptr(&f->t));
	assert_int_equal(job_tracer(f->job.pid), 0);
	kill(f->job.pid, SIGUSR1); /* must not be handled before SIGCONT */
	kill(f->job.pid, SIGCONT);
	assert_int_equal(job_hear(f->job.from_parent), 'C');
	assert_int_equal(job_hear(f->job.from_job), 'u');
}

static void an_exit_is_seen_and_reaches_the_parent(void **state)
{
	struct fixture *f = *state;

	attach(f);
	job_tell(&f->job, 'q');
	assert_int_equal(tracee_await_end(f->t), GKFD_WHY_EXITED);
	assert_int_equal(job_hear(f->job.from_parent), 'E');
	assert_int_equal(job_hear(f->job.from_parent), 7);
}

static void a_kill_while_held_is_seen_and_reaches_the_parent(void **state)
{
	struct fixture *f = *state;
	struct gkfd_moved resumed;

	attach_and_hold(f, 0);
	kill(f->job.pid, SIGKILL);
	assert_int_equal(tracee_await_end(f->t), GKFD_WHY_EXITED);
	assert_int_equal(job_hear(f->job.from_parent), 'K');
	assert_int_equal(tracee_resume(f->t, &resumed, &f->fail), -ESRCH);
	assert_int_equal(f->fail.why, GKFD_WHY_EXITED);
}

static void an_exec_is_seen_and_the_program_goes_on(void **state)
{
	struct fixture *f = *state;

	attach(f);
	job_tell(&f->job, 'x');
	assert_int_equal(tracee_await_end(f->t), GKFD_WHY_EXECED);
	assert_int_equal(job_tracer(f->job.pid), 0); /* before anybody releases it */
	kill(f->job.pid, SIGTERM);
	assert_int_equal(job_hear(f->job.from_parent), 'K');
	assert_int_equal(job_hear(f->job.from_parent), SIGTERM);
}

static void an_exec_from_another_thread_is_seen_while_held(void **state)
{
	struct fixture *f = *state;

	attach_and_hold(f, 0);
	script_vanish_after(f->script, 0); /* the driver knows no such process any more */
	job_tell(&f->job, 't');
	assert_int_equal(tracee_await_end(f->t), GKFD_WHY_EXECED);
	kill(f->job.pid, SIGTERM);
	assert_int_equal(job_hear(f->job.from_parent), 'K');
	assert_int_equal(job_hear(f->job.from_parent), SIGTERM);
}

/* The driver knows the process by its other threads only: it must not stay frozen for that. */
static void a_target_whose_leader_ends_while_held_runs_again(void **state)
{
	struct fixture *f = *state;
	struct pollfd nothing = { .fd = -1 };

	attach_and_hold(f, 0);
	job_tell(&f->job, 'l');
	for (int i = 0; i < 500 && job_state(f->job.pid) != 'Z'; i++)
		poll(&nothing, 1, 10);
	script_lose_leader(f->script, f->job.pid);
	assert_int_equal(tracee_await_end(f->t), GKFD_WHY_LET_GO);
	assert_int_equal(script_suspended(f->script), 0);
	kill(f->job.pid, SIGUSR1);
	assert_int_equal(job_hear(f->job.from_job), 'u');
	kill(f->job.pid, SIGTERM);
	assert_int_equal(job_hear(f->job.from_parent), 'K');
}

static void release_resumes_and_lets_go(void **state)
{
	struct fixture *f = *state;

	attach_and_hold(f, 0);
	tracee_release(steal_ptr(&f->t));
	assert_int_equal(script_suspended(f->script), 0);
	assert_int_equal(job_tracer(f->job.pid), 0);
	kill(f->job.pid, SIGUSR1);
	assert_int_equal(job_hear(f->job.from_job), 'u');
}

static void nothing_is_held_without_a_guard(void **state)
{
	struct fixture *f = *state;

	attach(f);
	assert_int_equal(tracee_hold(f->t, &(struct gpu_hold){ 0 }, &f->hold, &f->fail),
			 -EOWNERDEAD);
	assert_int_equal(f->fail.why, GKFD_WHY_GUARD_DIED);
	assert_int_equal(script_suspended(f->script), 0);
}

static void a_hold_ends_when_the_guard_dies(void **state)
{
	struct fixture *f = *state;
	siginfo_t info;

	attach_and_hold(f, 0);
	/* The guard is our only child that raises no SIGCHLD. */
	kill(guard_pid(f->guard), SIGKILL);
	assert_int_equal(tracee_await_end(f->t), GKFD_WHY_GUARD_DIED);
	assert_int_equal(script_suspended(f->script), 0);
	assert_int_equal(
		waitid(P_PID, (id_t)guard_pid(f->guard), &info, WEXITED | WNOWAIT | __WALL), 0);
	assert_int_equal(tracee_hold(f->t, &(struct gpu_hold){ 0 }, &f->hold, &f->fail),
			 -EOWNERDEAD);
}

/* The driver has resumed it a moment before the target says so. */
static void a_hold_ends_by_itself_after_its_longest_time(void **state)
{
	struct fixture *f = *state;
	struct pollfd nothing = { .fd = -1 };

	attach_and_hold(f, 100 * NSEC_PER_MSEC);
	for (int i = 0; i < 50 && (script_suspended(f->script) || tracee_holds(f->t)); i++)
		gkfd_wait(f->k, &nothing, 1, 100 * NSEC_PER_MSEC);
	assert_int_equal(script_suspended(f->script), 0);
	assert_int_equal(tracee_end(f->t), GKFD_WHY_NONE);
	assert_false(tracee_holds(f->t));
}

static int pidfd_of_the_one_before;

static int stale_pidfd(void *data, pid_t pid)
{
	return fcntl(pidfd_of_the_one_before, F_DUPFD_CLOEXEC, 3);
}

static void a_process_that_only_has_the_pid_is_let_go(void **state)
{
	struct gkfd_trace_ops trace = gkfd_trace_syscall;
	struct gkfd *k = script_gkfd(script_new(&trace));
	struct fixture *f = *state;
	pid_t before = fork();

	if (before == 0)
		_exit(0);
	pidfd_of_the_one_before = (int)syscall(SYS_pidfd_open, before, 0);
	assert_int_equal(waitpid(before, NULL, 0), before);
	if (pidfd_of_the_one_before >= 0) { /* else the kernel has none */
		trace.pidfd = stale_pidfd;
		assert_int_equal(tracee_attach(k, f->job.pid, GKFD_BY_DEBUG, NULL, &f->t, &f->fail),
				 -ESRCH);
		assert_int_equal(job_tracer(f->job.pid), 0);
		closep(&pidfd_of_the_one_before);
	}
	kill(f->job.pid, SIGUSR1);
	assert_int_equal(job_hear(f->job.from_job), 'u');
	gkfd_free(k);
}

static void processes_we_cannot_have_are_told_apart(void **state)
{
	struct fixture *f = *state;
	struct tracee *t;
	pid_t tid = (pid_t)syscall(SYS_gettid);

	assert_int_equal(tracee_attach(f->k, getpid(), GKFD_BY_DEBUG, NULL, &t, &f->fail), -EINVAL);
	assert_int_equal(f->fail.why, GKFD_WHY_OWN_PROCESS);
	assert_int_equal(tracee_attach(f->k, 999999999, GKFD_BY_DEBUG, NULL, &t, &f->fail), -ESRCH);
	assert_int_equal(f->fail.why, GKFD_WHY_NO_PROCESS);
	attach(f);
	assert_int_equal(tracee_attach(f->k, f->job.pid, GKFD_BY_DEBUG, NULL, &t, &f->fail),
			 -EBUSY);
	assert_int_equal(f->fail.why, GKFD_WHY_TRACED);
	assert_true(f->fail.other_pid > 0 && f->fail.other_pid != tid);
	assert_int_equal(tracee_attach(f->k, f->fail.other_pid, GKFD_BY_DEBUG, NULL, &t, &f->fail),
			 -EINVAL);
	assert_int_equal(f->fail.why, GKFD_WHY_NOT_A_LEADER);
	assert_int_equal(f->fail.other_pid, getpid());
}

/* As another user, in a process of its own: its exit status tells. */
static void another_users_process_is_refused(void **state)
{
	struct fixture *f = *state;
	int status;
	pid_t child;

	if (getuid() != 0) {
		print_message("# not root: cannot become another user\n");
		return;
	}
	child = fork();
	if (child == 0) {
		struct tracee *t;

		if (setresuid(65534, 65534, 65534) < 0)
			_exit(2);
		_exit(tracee_attach(f->k, f->job.pid, GKFD_BY_DEBUG, NULL, &t, &f->fail) ==
					      -EPERM &&
				      f->fail.why == GKFD_WHY_NO_RIGHT ?
			      0 :
			      1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(job_tracer(f->job.pid), 0);
}

static void twenty_targets_are_held_at_once(void **state)
{
	struct fixture *f = *state;
	struct gpu_hold request = { .grace_kclk = 1 };
	struct {
		struct script *script;
		struct gkfd *k;
		struct job job;
		struct tracee *t;
	} many[20];

	assert_int_equal(guard_start(&f->guard), 0);
	for (size_t i = 0; i < ARRAY_SIZE(many); i++) {
		many[i].script = script_new(&gkfd_trace_syscall);
		many[i].k = script_gkfd(many[i].script);
		job_start(&many[i].job);
		assert_int_equal(tracee_attach(many[i].k, many[i].job.pid, GKFD_BY_DEBUG, f->guard,
					       &many[i].t, &f->fail),
				 0);
		assert_int_equal(tracee_hold(many[i].t, &request, &f->hold, &f->fail), 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(many); i++) {
		kill(many[i].job.pid, SIGUSR1);
		assert_int_equal(job_hear(many[i].job.from_job), 'u');
		tracee_release(many[i].t);
		assert_int_equal(script_suspended(many[i].script), 0);
		gkfd_free(many[i].k);
		job_end(&many[i].job);
	}
}

struct blocked_hold {
	struct tracee *t;
	int result;
};

static void *hold_main(void *arg)
{
	struct blocked_hold *b = arg;
	struct gkfd_failure failure;
	struct gkfd_moved hold;

	b->result = tracee_hold(b->t, &(struct gpu_hold){ 0 }, &hold, &failure);
	return NULL;
}

static void a_driver_call_that_blocks_keeps_no_other_targets_signals(void **state)
{
	struct fixture *f = *state;
	struct script *other = script_new(&gkfd_trace_syscall);
	struct gkfd *k = script_gkfd(other);
	struct blocked_hold blocked;
	struct tracee *t;
	pthread_t thread;
	struct job job;
	int fds[2];

	job_start(&job);
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(guard_start(&f->guard), 0);
	attach(f);
	assert_int_equal(tracee_attach(k, job.pid, GKFD_BY_DEBUG, f->guard, &t, &f->fail), 0);
	script_block_suspend(f->script, fds[0]);
	blocked.t = f->t;
	assert_int_equal(pthread_create(&thread, NULL, hold_main, &blocked), 0);
	for (int i = 0; i < 20; i++) {
		kill(job.pid, SIGUSR1);
		assert_int_equal(job_hear(job.from_job), 'u');
	}
	assert_int_equal(write(fds[1], "x", 1), 1);
	pthread_join(thread, NULL);
	assert_int_equal(blocked.result, 0);
	tracee_release(t);
	gkfd_free(k);
	job_end(&job);
	close(fds[0]);
	close(fds[1]);
}

/* Takes whatever there is, as many programs do, until a child has ended. */
static void *wait_for_any_main(void *arg)
{
	int status;

	while (waitpid(-1, &status, 0) > 0 && WIFSTOPPED(status))
		;
	return NULL;
}

static void a_host_that_waits_for_any_child_freezes_no_target(void **state)
{
	struct fixture *f = *state;
	pid_t child = fork();
	pthread_t thread;

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(1);
	}
	/* Before the target is attached: of two that wait, the first to wait takes the stop. */
	assert_int_equal(pthread_create(&thread, NULL, wait_for_any_main, NULL), 0);
	attach(f);
	for (int i = 0; i < 20; i++) {
		kill(f->job.pid, SIGUSR1);
		assert_int_equal(job_hear(f->job.from_job), 'u');
	}
	kill(f->job.pid, SIGSTOP);
	assert_int_equal(job_hear(f->job.from_parent), 'S');
	kill(f->job.pid, SIGCONT);
	assert_int_equal(job_hear(f->job.from_parent), 'C');
	kill(child, SIGKILL);
	pthread_join(thread, NULL);
}

static void the_end_of_the_hosts_own_child_is_left_to_the_host(void **state)
{
	struct fixture *f = *state;
	pid_t child = fork();
	int status;

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(1);
	}
	assert_int_equal(tracee_attach(f->k, child, GKFD_BY_DEBUG, NULL, &f->t, &f->fail), 0);
	kill(child, SIGTERM);
	assert_int_equal(tracee_await_end(f->t), GKFD_WHY_EXITED);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

static void attach_with_descriptors_left(struct fixture *f, int n)
{
	struct tracee *t = NULL;
	int last = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int r;

	setrlimit(RLIMIT_NOFILE, &(struct rlimit){ (rlim_t)(last + n), (rlim_t)(last + n) });
	close(last);
	r = tracee_attach(f->k, f->job.pid, GKFD_BY_DEBUG, NULL, &t, &f->fail);
	tracee_release(t);
	_exit(r >= 0 ? 0 : r == -EMFILE || r == -ELIBACC ? 1 : 2);
}

static void running_out_of_descriptors_is_an_error_like_another(void **state)
{
	struct fixture *f = *state;
	int status = 1;

	for (int n = 1; n < 20 && status != 0; n++) {
		pid_t child = fork();

		if (child == 0)
			attach_with_descriptors_left(f, n);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFEXITED(status));
		assert_in_range(WEXITSTATUS(status), 0, 1);
		assert_int_equal(job_tracer(f->job.pid), 0);
	}
	assert_int_equal(status, 0);
}

/* In a process of its own, which its guard would kill. */
static void hold_slowly(struct fixture *f)
{
	const struct itimerspec long_after = {
		.it_value.tv_sec = (GUARD_SILENCE_NS + GUARD_SILENCE_NS / 2) / NSEC_PER_SEC + 1
	};
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);

	if (guard_start(&f->guard) < 0 || timerfd_settime(timer, 0, &long_after, NULL) < 0 ||
	    tracee_attach(f->k, f->job.pid, GKFD_BY_DEBUG, f->guard, &f->t, &f->fail) < 0)
		_exit(2);
	script_block_files(f->script, timer);
	_exit(tracee_hold(f->t, &(struct gpu_hold){ .grace_kclk = 1 }, &f->hold, &f->fail) < 0);
}

static void many_descriptors_of_a_target_are_no_silence(void **state)
{
	struct fixture *f = *state;
	int status = -1;
	pid_t child = fork();

	if (child == 0)
		hold_slowly(f);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void a_zombie_is_no_process_any_more(void **state)
{
	struct fixture *f = *state;
	pid_t child = fork();
	siginfo_t info;

	if (child == 0)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(tracee_attach(f->k, child, GKFD_BY_DEBUG, NULL, &f->t, &f->fail), -ESRCH);
	assert_int_equal(f->fail.why, GKFD_WHY_EXITED);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

/*
 * Its death would not resume its targets any more (Linux 6.12 kfd_process.c). Stains this
 * process for good: the last of the cases.
 */
static void nothing_is_held_after_ending_a_strangers_session(void **state)
{
	struct fixture *f = *state;

	attach_and_hold(f, 0);
	gkfd_stain();
	assert_int_equal(tracee_await_end(f->t), GKFD_WHY_LET_GO);
	assert_int_equal(script_suspended(f->script), 0);
	tracee_release(steal_ptr(&f->t));
	attach(f);
	assert_int_equal(tracee_hold(f->t, &(struct gpu_hold){ 0 }, &f->hold, &f->fail), -EUCLEAN);
	assert_int_equal(f->fail.why, GKFD_WHY_STAINED);
	assert_int_equal(script_suspended(f->script), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(signals_reach_the_target),
		T(job_control_works_as_without_us),
		T(a_target_stopped_while_attached_stays_stopped),
		T(a_stopped_target_can_be_attached_and_stays_stopped),
		T(an_exit_is_seen_and_reaches_the_parent),
		T(a_kill_while_held_is_seen_and_reaches_the_parent),
		T(an_exec_is_seen_and_the_program_goes_on),
		T(an_exec_from_another_thread_is_seen_while_held),
		T(a_target_whose_leader_ends_while_held_runs_again),
		T(release_resumes_and_lets_go),
		T(nothing_is_held_without_a_guard),
		T(a_hold_ends_when_the_guard_dies),
		T(a_hold_ends_by_itself_after_its_longest_time),
		T(a_process_that_only_has_the_pid_is_let_go),
		T(processes_we_cannot_have_are_told_apart),
		T(another_users_process_is_refused),
		T(twenty_targets_are_held_at_once),
		T(a_driver_call_that_blocks_keeps_no_other_targets_signals),
		T(a_host_that_waits_for_any_child_freezes_no_target),
		T(the_end_of_the_hosts_own_child_is_left_to_the_host),
		T(running_out_of_descriptors_is_an_error_like_another),
		T(many_descriptors_of_a_target_are_no_silence),
		T(a_zombie_is_no_process_any_more),
		T(nothing_is_held_after_ending_a_strangers_session),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
