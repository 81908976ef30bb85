/* SPDX-License-Identifier: MIT */
/*
 * Holders of real processes that go wrong in every way we could think of. All of them run at
 * once, because each takes its silence; the cases then look at what became of their own.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

#include "gpu/guard.h"
#include "gpu/guard_watch.h"
#include "tests/kfd/job.h"
#include "tests/kfd/script.h"
#include "tests/kfd/tracee.h"
#include "util/macros.h"

#ifdef __SANITIZE_THREAD__
#define GONE_WITHIN_NS (3 * NSEC_PER_SEC) /* its programs sleep for a second as they end */
#else
#define GONE_WITHIN_NS (2 * NSEC_PER_SEC)
#endif
#define WATCHED_NS (4 * NSEC_PER_SEC)
#define GUARD_SLEEPS_NS (GUARD_OWN_NS / 2) /* not so long that it would be killed */

enum fate {
	WELL, /* beats, and must not be killed */
	WELL_WITH_SLEEPY_GUARD, /* its guard is stopped for a while */
	KILLED,
	STOPPED,
	STOPPED_WHILE_ATTACHED, /* holds nothing; its target would stop at its next signal */
	STOPPED_IN_A_CALL, /* with the time that is allowed to the driver */
	STOPPED_WITH_NOTHING, /* nothing is armed: its own affair */
	EXECED, /* runs another program, which must not be killed */
	OWNER_DEADLOCKED,
	TRACER_DEADLOCKED,
	DRIVER_HANGS, /* which the tracer of a held target asks now and then */
	ABORTED,
	GUARD_KILLED,
	GUARD_KILLED_AND_WELL, /* goes on, with nothing held */
	GUARD_KILLED_THEN_STOPPED,
	GUARD_STOPPED_THEN_STOPPED,
	GUARD_STOPPED, /* for good */
	GUARD_STOPPED_THEN_KILLED, /* the holder: its memory is the guard's, too */
	FATES,
};

struct holder {
	pid_t pid, guard;
	int say_fd; /* tells what the holder says */
	struct job job;
	uint64_t began_ns, gone_ns; /* gone 0: still there when watching ended */
	uint64_t guard_gone_ns; /* the same, once the holder is */
	int status;
};

static struct holder holders[FATES];

static uint64_t now_ns(void)
{
	return gkfd_syscall_now_ns(NULL);
}

/* ---- the holder process ---- */

static void wait_for_ever(void)
{
	for (;;)
		pause();
}

static _Noreturn void exec_what_never_ends(void)
{
	int fds[2];

	if (pipe(fds) == 0 && dup2(fds[0], STDIN_FILENO) == STDIN_FILENO)
		execl("/bin/cat", "cat", (char *)NULL);
	_exit(2);
}

static int owner_slot(struct guard *g)
{
	int slot = guard_arm(g, 0, GUARD_SILENCE_NS);

	if (slot < 0)
		_exit(3);
	return slot;
}

static void say_guard(struct guard *g, int say_fd)
{
	pid_t guard = guard_pid(g);

	if (write(say_fd, &guard, sizeof(guard)) != sizeof(guard))
		_exit(2);
}

/* Armed before it is told of: the guard may be stopped from then on. */
static _Noreturn void beat_until_target_changes(struct guard *g, struct tracee *t, enum fate fate,
						int say_fd)
{
	struct pollfd p = { .fd = tracee_fd(t), .events = POLLIN };
	int slot = owner_slot(g);

	say_guard(g, say_fd);
	while (poll(&p, 1, (int)(GUARD_BEAT_NS / NSEC_PER_MSEC)) == 0)
		guard_beat(g, slot, GUARD_SILENCE_NS);
	if (fate == GUARD_KILLED_AND_WELL) {
		guard_disarm(g, slot);
		wait_for_ever();
	}
	_exit(tracee_end(t) == GKFD_WHY_GUARD_DIED ? 42 : 4);
}

static _Noreturn void wait_alone(enum fate fate, struct guard *g, int say_fd)
{
	if (fate == STOPPED_IN_A_CALL && guard_arm(g, 0, GUARD_DRIVER_CALL_NS) < 0)
		_exit(3);
	say_guard(g, say_fd);
	wait_for_ever();
	_exit(1);
}

static bool falls_silent(enum fate fate)
{
	switch (fate) {
	case OWNER_DEADLOCKED:
	case TRACER_DEADLOCKED:
	case DRIVER_HANGS:
	case ABORTED:
	case EXECED:
	case STOPPED_WHILE_ATTACHED:
		return true;
	default:
		return false;
	}
}

static _Noreturn void holder_main(enum fate fate, pid_t job, int say_fd)
{
	struct script *script = script_new(&gkfd_trace_syscall);
	struct gkfd *k = script_gkfd(script);
	struct gkfd_failure failure;
	struct tracee *t;
	struct gkfd_moved hold;
	struct guard *g;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (guard_start(&g) < 0)
		_exit(2);
	if (fate == STOPPED_IN_A_CALL || fate == STOPPED_WITH_NOTHING)
		wait_alone(fate, g, say_fd);
	if (tracee_attach(k, job, GKFD_BY_DEBUG, g, &t, &failure) < 0)
		_exit(2);
	if (fate != STOPPED_WHILE_ATTACHED &&
	    tracee_hold(t, &(struct gpu_hold){ 0 }, &hold, &failure) < 0)
		_exit(2);
	if (!falls_silent(fate))
		beat_until_target_changes(g, t, fate, say_fd);
	say_guard(g, say_fd);
	switch (fate) {
	case OWNER_DEADLOCKED:
		owner_slot(g);
		wait_for_ever();
		break;
	case TRACER_DEADLOCKED:
		script_freeze(script);
		wait_for_ever();
		break;
	case DRIVER_HANGS:
		script_hang_driver(script);
		wait_for_ever();
		break;
	case ABORTED:
		abort();
	case EXECED:
		exec_what_never_ends();
	default:
		wait_for_ever();
	}
	_exit(1);
}

/* ---- the world around it ---- */

static void start_holder(enum fate fate)
{
	struct holder *h = &holders[fate];
	int fds[2];

	job_start(&h->job);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	h->pid = fork();
	assert_true(h->pid >= 0);
	if (h->pid == 0)
		holder_main(fate, h->job.pid, fds[1]);
	close(fds[1]);
	h->say_fd = fds[0];
	assert_int_equal(read(h->say_fd, &h->guard, sizeof(h->guard)), sizeof(h->guard));
	h->began_ns = now_ns();
}

static void strike(enum fate fate)
{
	struct holder *h = &holders[fate];

	h->began_ns = now_ns();
	switch (fate) {
	case KILLED:
		kill(h->pid, SIGKILL);
		break;
	case STOPPED:
	case STOPPED_WHILE_ATTACHED:
	case STOPPED_IN_A_CALL:
	case STOPPED_WITH_NOTHING:
		kill(h->pid, SIGSTOP);
		break;
	case GUARD_KILLED:
	case GUARD_KILLED_AND_WELL:
		kill(h->guard, SIGKILL);
		break;
	case GUARD_KILLED_THEN_STOPPED:
		/* Stopped first, or it would notice and let go by itself. */
		kill(h->pid, SIGSTOP);
		kill(h->guard, SIGKILL);
		break;
	case GUARD_STOPPED_THEN_STOPPED:
		kill(h->guard, SIGSTOP);
		kill(h->pid, SIGSTOP);
		break;
	case GUARD_STOPPED_THEN_KILLED:
		kill(h->guard, SIGSTOP);
		kill(h->pid, SIGKILL);
		break;
	case WELL_WITH_SLEEPY_GUARD:
	case GUARD_STOPPED:
		kill(h->guard, SIGSTOP);
		break;
	default:
		break;
	}
}

/* Orphans are ours (see main): who else would reap them takes its time. */
static bool gone(pid_t pid)
{
	return waitpid(pid, NULL, WNOHANG | __WALL) == pid || (kill(pid, 0) < 0 && errno == ESRCH);
}

static void note_deaths(void)
{
	for (int i = 0; i < FATES; i++) {
		struct holder *h = &holders[i];

		if (!h->gone_ns && waitpid(h->pid, &h->status, WNOHANG) == h->pid)
			h->gone_ns = now_ns();
		if (h->gone_ns && !h->guard_gone_ns && gone(h->guard))
			h->guard_gone_ns = now_ns();
	}
}

/* Watches all of them; the sleepy guard wakes in time to be seen at it. */
static int watch_all(void **state)
{
	bool woken = false;
	uint64_t began_ns;

	for (int i = 0; i < FATES; i++)
		start_holder((enum fate)i);
	for (int i = 0; i < FATES; i++)
		strike((enum fate)i);
	began_ns = now_ns();
	while (now_ns() - began_ns < WATCHED_NS) {
		struct pollfd nothing = { .fd = -1 };

		poll(&nothing, 1, 20);
		note_deaths();
		if (!woken && now_ns() - began_ns > GUARD_SLEEPS_NS)
			woken = kill(holders[WELL_WITH_SLEEPY_GUARD].guard, SIGCONT) == 0;
	}
	return 0;
}

static int clean_up(void **state)
{
	for (int i = 0; i < FATES; i++) {
		struct holder *h = &holders[i];

		if (h->guard <= 0)
			continue; /* never stood: a pid of 0 would be all of us */
		if (!h->gone_ns) {
			kill(h->pid, SIGKILL);
			waitpid(h->pid, NULL, 0);
		}
		if (!h->guard_gone_ns)
			kill(h->guard, SIGKILL);
		close(h->say_fd);
		job_end(&h->job);
	}
	return 0;
}

static void is_gone_in_time(enum fate fate)
{
	const struct holder *h = &holders[fate];

	assert_int_not_equal(h->gone_ns, 0);
	assert_true(h->gone_ns - h->began_ns < GONE_WITHIN_NS);
	/* What it traced runs free. */
	assert_int_equal(job_tracer(h->job.pid), 0);
	kill(h->job.pid, SIGUSR1);
	assert_int_equal(job_hear(h->job.from_job), 'u');
	print_message("# gone after %llu ms\n",
		      (unsigned long long)((h->gone_ns - h->began_ns) / NSEC_PER_MSEC));
}

static void died_by(enum fate fate, int sig)
{
	is_gone_in_time(fate);
	assert_true(WIFSIGNALED(holders[fate].status));
	assert_int_equal(WTERMSIG(holders[fate].status), sig);
}

static void a_holder_that_is_well_lives(void **state)
{
	assert_int_equal(holders[WELL].gone_ns, 0);
}

static void a_holder_that_waits_for_the_driver_lives(void **state)
{
	assert_int_equal(holders[DRIVER_HANGS].gone_ns, 0);
}

static void a_guard_that_slept_does_not_kill_a_holder_that_is_well(void **state)
{
	assert_int_equal(holders[WELL_WITH_SLEEPY_GUARD].gone_ns, 0);
}

static void a_killed_holder_is_gone(void **state)
{
	died_by(KILLED, SIGKILL);
}

static void a_stopped_holder_is_killed(void **state)
{
	died_by(STOPPED, SIGKILL);
}

static void a_stopped_process_that_is_merely_attached_is_killed(void **state)
{
	died_by(STOPPED_WHILE_ATTACHED, SIGKILL);
}

static void a_holder_stopped_in_a_driver_call_is_killed_as_soon(void **state)
{
	died_by(STOPPED_IN_A_CALL, SIGKILL);
}

static void a_stopped_process_with_nothing_attached_is_left_alone(void **state)
{
	assert_int_equal(holders[STOPPED_WITH_NOTHING].gone_ns, 0);
}

static void a_state_is_read_from_proc_whatever_the_name(void **state)
{
	static const struct {
		const char *stat;
		char state;
	} cases[] = {
		{ "7 (hold) T 1 7 7 0", 'T' },
		{ "7 (hold) t 1 7 7 0", 't' },
		{ "7 (hold) S 1 7 7 0", 'S' },
		{ "7 (T) T) S 1 7", 'S' },
		{ "7 (a) R 1) T 1 7 7", 'T' },
		{ "7 (hold)", '\0' },
		{ "", '\0' },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(guard_read_state(cases[i].stat, strlen(cases[i].stat)),
				 cases[i].state);
}

static void a_holder_that_execs_lets_go_and_is_not_killed(void **state)
{
	const struct holder *h = &holders[EXECED];

	assert_int_equal(h->gone_ns, 0);
	assert_int_equal(job_tracer(h->job.pid), 0);
}

/* Nothing inside a pid namespace can kill its first process. */
static void the_first_process_of_a_container_gets_no_guard(void **state)
{
	pid_t child = fork();
	int status;

	assert_true(guard_is_possible());
	if (child == 0) {
		if (unshare(CLONE_NEWPID) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWPID) < 0)
			_exit(77);
		child = fork();
		if (child == 0)
			_exit(guard_is_possible() ? 1 : 0);
		waitpid(child, &status, 0);
		_exit(WEXITSTATUS(status));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		print_message("# no right to make a pid namespace\n");
	else
		assert_int_equal(status, 0);
}

static void a_holder_whose_owner_deadlocks_is_killed(void **state)
{
	died_by(OWNER_DEADLOCKED, SIGKILL);
}

static void a_holder_whose_tracer_deadlocks_is_killed(void **state)
{
	died_by(TRACER_DEADLOCKED, SIGKILL);
}

static void an_aborted_holder_is_gone_without_a_core(void **state)
{
	died_by(ABORTED, SIGABRT);
	assert_false(WCOREDUMP(holders[ABORTED].status));
}

static void a_holder_lets_go_when_its_guard_is_killed(void **state)
{
	is_gone_in_time(GUARD_KILLED);
	assert_true(WIFEXITED(holders[GUARD_KILLED].status));
	assert_int_equal(WEXITSTATUS(holders[GUARD_KILLED].status), 42);
}

static void a_holder_that_has_let_go_survives_its_guard(void **state)
{
	assert_int_equal(holders[GUARD_KILLED_AND_WELL].gone_ns, 0);
}

static void a_stopped_holder_without_guard_is_killed_by_the_kernel(void **state)
{
	died_by(GUARD_KILLED_THEN_STOPPED, SIGKILL);
}

static void a_stopped_holder_with_a_stopped_guard_is_killed_by_the_kernel(void **state)
{
	died_by(GUARD_STOPPED_THEN_STOPPED, SIGKILL);
}

static void a_stopped_guard_is_as_good_as_dead(void **state)
{
	is_gone_in_time(GUARD_STOPPED);
	assert_int_equal(WEXITSTATUS(holders[GUARD_STOPPED].status), 42);
}

/* The driver waits for the end of the memory that both have. */
static void a_stopped_guard_does_not_keep_the_holders_memory(void **state)
{
	static const enum fate stopped[] = { GUARD_STOPPED, GUARD_STOPPED_THEN_STOPPED,
					     GUARD_STOPPED_THEN_KILLED };

	for (size_t i = 0; i < ARRAY_SIZE(stopped); i++) {
		const struct holder *h = &holders[stopped[i]];

		assert_int_not_equal(h->guard_gone_ns, 0);
		assert_true(h->guard_gone_ns - h->began_ns < GONE_WITHIN_NS);
	}
}

static bool any_guard_left(void)
{
	for (int i = 0; i < FATES; i++)
		if (holders[i].gone_ns && !holders[i].guard_gone_ns)
			return true;
	return false;
}

static void guards_do_not_outlive_their_holders(void **state)
{
	struct pollfd nothing = { .fd = -1 };

	for (int looks = 0; looks < 100 && any_guard_left(); looks++) {
		poll(&nothing, 1, 20);
		note_deaths();
	}
	for (int i = 0; i < FATES; i++)
		assert_true(!holders[i].gone_ns || holders[i].guard_gone_ns);
}

/* ---- the guard's own part, without the kernel's timer behind it ---- */

static void one_late_look_does_not_kill_but_two_in_a_row_do(void **state)
{
	bool late = false;

	assert_false(guard_must_kill(0, 100, &late)); /* nothing is armed */
	assert_false(guard_must_kill(200, 100, &late)); /* in time */
	assert_false(guard_must_kill(50, 100, &late)); /* late, but it may be we who slept */
	assert_false(guard_must_kill(300, 200, &late)); /* it was: the holder is well */
	assert_false(guard_must_kill(300, 400, &late));
	assert_true(guard_must_kill(300, 500, &late));
}

/* A holder that armed a slot and never beats, and a guard that is its child. */
static _Noreturn void hold_without_timer(struct guard_page *page)
{
	struct guard_holder holder = { .pid = getpid(), .stat_fd = -1 };
	int life[2];

	holder.pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	if (pipe2(life, O_CLOEXEC) < 0)
		_exit(1);
	holder.life_fd = life[0];
	page->slots[0].deadline_ns = 1; /* long past */
	page->used = 1;
	if (fork() == 0)
		guard_watch(page, &holder);
	wait_for_ever();
	_exit(1);
}

static void the_guard_process_kills_without_the_timers_help(void **state)
{
	struct guard_page *page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status;
	pid_t holder;

	assert_ptr_not_equal(page, MAP_FAILED);
	holder = fork();
	if (holder == 0) {
		alarm(20); /* should nobody kill it */
		hold_without_timer(page);
	}
	assert_int_equal(waitpid(holder, &status, 0), holder);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
	munmap(page, sizeof(*page));
}

/* ---- what the guard undoes ---- */

#define UNTOUCHED 7
#define UNDONE 42

static unsigned short rows(int terminal)
{
	struct winsize size = { 0 };

	assert_int_equal(ioctl(terminal, TIOCGWINSZ, &size), 0);
	return size.ws_row;
}

/* Any ioctl will do whose effect can be seen from outside: the size of a terminal. */
static _Noreturn void entrust_and_wait(pid_t job, int pidfd, int terminal, bool due, int say_fd)
{
	struct guard_undo undo = {
		.traced = true,
		.n_calls = 1,
		.calls[0] = { .request = TIOCSWINSZ, .pointer_at = GUARD_NO_POINTER },
	};
	struct winsize size = { .ws_row = UNDONE };
	struct guard *g;
	int slot;

	memcpy(undo.calls[0].arg, &size, sizeof(size));
	if (guard_start(&g) < 0)
		_exit(2);
	slot = guard_arm(g, job, 20 * NSEC_PER_SEC);
	if (slot < 0 || guard_entrust(g, slot, terminal, pidfd, &undo) < 0)
		_exit(2);
	guard_set_due(g, slot, 0, true);
	guard_set_due(g, slot, 0, due);
	say_guard(g, say_fd);
	wait_for_ever();
	_exit(1);
}

struct undo {
	struct job job;
	int terminal;
	pid_t holder, guard;
};

/* False where the kernel has no pidfds, without which nothing can be entrusted. */
static bool start_undo(struct undo *u, bool due)
{
	struct winsize size = { .ws_row = UNTOUCHED };
	int pidfd, fds[2];

	job_start(&u->job);
	u->terminal = posix_openpt(O_RDWR | O_NOCTTY);
	assert_true(u->terminal >= 0);
	assert_int_equal(ioctl(u->terminal, TIOCSWINSZ, &size), 0);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pidfd = gkfd_trace_syscall.pidfd(NULL, u->job.pid);
	if (pidfd == -ENOSYS)
		return false;
	assert_true(pidfd >= 0);
	u->holder = fork();
	if (u->holder == 0)
		entrust_and_wait(u->job.pid, pidfd, u->terminal, due, fds[1]);
	close(fds[1]);
	close(pidfd);
	assert_int_equal(read(fds[0], &u->guard, sizeof(u->guard)), sizeof(u->guard));
	close(fds[0]);
	return true;
}

static void kill_holder(const struct undo *u)
{
	kill(u->holder, SIGKILL);
	assert_int_equal(waitpid(u->holder, NULL, 0), u->holder);
}

static bool within_two_seconds(const struct undo *u, bool (*is_so)(const struct undo *u))
{
	uint64_t began_ns = now_ns();
	struct pollfd nothing = { .fd = -1 };

	while (!is_so(u) && now_ns() - began_ns < GONE_WITHIN_NS)
		poll(&nothing, 1, 10);
	return is_so(u);
}

static bool is_undone(const struct undo *u)
{
	return rows(u->terminal) == UNDONE;
}

static bool guard_is_gone(const struct undo *u)
{
	return gone(u->guard);
}

static bool job_is_free(const struct undo *u)
{
	return job_tracer(u->job.pid) == 0;
}

static void end_undo(struct undo *u)
{
	close(u->terminal);
	job_end(&u->job);
}

static void the_guard_undoes_what_a_killed_holder_left(void **state)
{
	struct undo u;

	if (start_undo(&u, true)) {
		assert_int_equal(rows(u.terminal), UNTOUCHED);
		kill_holder(&u);
		assert_true(within_two_seconds(&u, is_undone));
		assert_true(within_two_seconds(&u, guard_is_gone));
		assert_true(within_two_seconds(&u, job_is_free));
		kill(u.job.pid, SIGUSR1);
		assert_int_equal(job_hear(u.job.from_job), 'u');
	}
	end_undo(&u);
}

static void the_guard_leaves_alone_what_is_not_due(void **state)
{
	struct undo u;

	if (start_undo(&u, false)) {
		kill_holder(&u);
		assert_true(within_two_seconds(&u, guard_is_gone));
		assert_int_equal(rows(u.terminal), UNTOUCHED);
	}
	end_undo(&u);
}

static void the_guard_waits_for_another_tracer_of_the_target(void **state)
{
	struct undo u;
	int status;

	if (start_undo(&u, true)) {
		assert_int_equal(ptrace(PTRACE_SEIZE, u.job.pid, NULL, NULL), 0);
		kill_holder(&u);
		assert_true(within_two_seconds(&u, guard_is_gone));
		assert_int_equal(rows(u.terminal), UNTOUCHED);
		assert_int_equal(ptrace(PTRACE_INTERRUPT, u.job.pid, NULL, NULL), 0);
		assert_int_equal(waitpid(u.job.pid, &status, __WALL), u.job.pid);
		assert_int_equal(ptrace(PTRACE_DETACH, u.job.pid, NULL, NULL), 0);
		assert_true(within_two_seconds(&u, is_undone));
	}
	end_undo(&u);
}

/* ---- a core handler that takes its time ---- */

#define CORE_PATTERN "/proc/sys/kernel/core_pattern"

static bool write_pattern(const char *pattern)
{
	_cleanup_close_ int fd = open(CORE_PATTERN, O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, pattern, strlen(pattern)) == (ssize_t)strlen(pattern);
}

static void a_slow_core_handler_does_not_delay_an_abort(void **state)
{
	char before[256] = "";
	_cleanup_close_ int fd = open(CORE_PATTERN, O_RDONLY | O_CLOEXEC);
	struct holder *h = &holders[ABORTED];
	bool slow = fd >= 0 && read(fd, before, sizeof(before) - 1) > 0 &&
		    write_pattern("|/bin/sleep 10");

	if (!slow)
		print_message("# core_pattern is not ours to change: without a slow handler\n");
	close(h->say_fd);
	job_end(&h->job);
	start_holder(ABORTED);
	waitpid(h->pid, &h->status, 0);
	h->gone_ns = now_ns();
	if (slow)
		assert_true(write_pattern(before));
	died_by(ABORTED, SIGABRT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_holder_that_is_well_lives),
		cmocka_unit_test(a_holder_that_waits_for_the_driver_lives),
		cmocka_unit_test(a_guard_that_slept_does_not_kill_a_holder_that_is_well),
		cmocka_unit_test(a_killed_holder_is_gone),
		cmocka_unit_test(a_stopped_holder_is_killed),
		cmocka_unit_test(a_stopped_process_that_is_merely_attached_is_killed),
		cmocka_unit_test(a_holder_stopped_in_a_driver_call_is_killed_as_soon),
		cmocka_unit_test(a_stopped_process_with_nothing_attached_is_left_alone),
		cmocka_unit_test(a_state_is_read_from_proc_whatever_the_name),
		cmocka_unit_test(a_holder_that_execs_lets_go_and_is_not_killed),
		cmocka_unit_test(the_first_process_of_a_container_gets_no_guard),
		cmocka_unit_test(a_holder_whose_owner_deadlocks_is_killed),
		cmocka_unit_test(a_holder_whose_tracer_deadlocks_is_killed),
		cmocka_unit_test(an_aborted_holder_is_gone_without_a_core),
		cmocka_unit_test(a_holder_lets_go_when_its_guard_is_killed),
		cmocka_unit_test(a_holder_that_has_let_go_survives_its_guard),
		cmocka_unit_test(a_stopped_holder_without_guard_is_killed_by_the_kernel),
		cmocka_unit_test(a_stopped_holder_with_a_stopped_guard_is_killed_by_the_kernel),
		cmocka_unit_test(a_stopped_guard_is_as_good_as_dead),
		cmocka_unit_test(a_stopped_guard_does_not_keep_the_holders_memory),
		cmocka_unit_test(guards_do_not_outlive_their_holders),
		cmocka_unit_test(one_late_look_does_not_kill_but_two_in_a_row_do),
		cmocka_unit_test(the_guard_process_kills_without_the_timers_help),
		cmocka_unit_test(the_guard_undoes_what_a_killed_holder_left),
		cmocka_unit_test(the_guard_leaves_alone_what_is_not_due),
		cmocka_unit_test(the_guard_waits_for_another_tracer_of_the_target),
		cmocka_unit_test(a_slow_core_handler_does_not_delay_an_abort),
	};

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	return cmocka_run_group_tests(tests, watch_all, clean_up) != 0;
}
