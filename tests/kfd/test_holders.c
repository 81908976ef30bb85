/* SPDX-License-Identifier: MIT */
/* Holders: processes that trace real jobs, over a driver that obliges. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "gpu/helpers/proc_files.h"
#include "gpu/kfd/backend.h"
#include "gpu/kfd/procs.h"
#include "tests/kfd/counts.h"
#include "tests/kfd/holder/board.h"
#include "tests/kfd/job.h"
#include "tests/kfd/script.h"
#include "util/macros.h"

#define WAIT_MS 10000

struct fixture {
	struct gkfd_transport table; /* the script's, in the namespace of all */
	struct job job;
	uint64_t start_ticks;
	struct board *board;
	struct gpu_backend *b;
	struct gpu_target *t;
};

static int read_file(void *data, enum gkfd_tree tree, const char *path, char **ret_text,
		     size_t *ret_len)
{
	void *kernel;
	int r;

	if (tree == GKFD_TREE_PROC && strcmp(path, "self/ns/pid") == 0)
		return -ENOENT;
	kernel = gkfd_syscall_new(NULL);
	r = gkfd_transport_syscall.read_file(kernel, tree, path, ret_text, ret_len);
	gkfd_transport_syscall.close(kernel);
	return r;
}

static uint64_t later_ns; /* than it is */

static uint64_t now_ns(void *data)
{
	return gkfd_syscall_now_ns(data) + later_ns;
}

static void open_backend(struct fixture *f)
{
	struct gkfd *k = script_gkfd(script_new(&gkfd_trace_syscall));

	f->table = *k->transport;
	f->table.read_file = read_file;
	f->table.now_ns = now_ns;
	k->transport = &f->table;
	assert_int_equal(gkfd_backend_open(
				 k, &(struct gkfd_backend_options){ .by_holders = true }, &f->b),
			 0);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct gkfd_proc_ident ident;
	struct gkfd *k;

	later_ns = 0;
	job_start(&f->job);
	f->board = board_of(f->job.pid);
	k = script_gkfd(script_new(&gkfd_trace_syscall));
	assert_int_equal(gkfd_proc_identify(k, f->job.pid, &ident), 0);
	f->start_ticks = ident.start_ticks;
	gkfd_free(k);
	open_backend(f);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	if (f->b)
		f->b->ops->close(f->b);
	board_remove(f->job.pid);
	job_end(&f->job);
	free(f);
	return 0;
}

static struct gpu_done next(struct fixture *f)
{
	struct pollfd p = { .fd = f->b->ops->fd(f->b), .events = POLLIN };
	struct gpu_done done;

	while (f->b->ops->take(f->b, &done) == 0)
		assert_int_equal(poll(&p, 1, WAIT_MS), 1);
	return done;
}

static void expect(struct fixture *f, enum gpu_verb verb, uint64_t cookie, int result)
{
	struct gpu_done done = next(f);

	if (done.result != result)
		print_message("%s\n", done.why.message);
	assert_int_equal(done.verb, verb);
	assert_int_equal(done.cookie, cookie);
	assert_int_equal(done.result, result);
	assert_ptr_equal(done.target, f->t);
}

static void attach(struct fixture *f)
{
	assert_int_equal(f->b->ops->attach(f->b, &(struct gpu_attach){ f->job.pid, f->start_ticks },
					   1, &f->t),
			 0);
	expect(f, GPU_ATTACH, 1, 0);
}

static void attach_and_hold(struct fixture *f)
{
	attach(f);
	assert_int_equal(f->b->ops->suspend(f->t, &(struct gpu_hold){ 0 }, 2), 0);
	expect(f, GPU_SUSPEND, 2, 0);
	assert_int_equal(f->board->suspended, 2);
}

/* Somebody else does it: until it is so. */
static void await(const int *value, int wanted)
{
	struct pollfd nothing = { .fd = -1 };

	for (int i = 0; i < WAIT_MS && __atomic_load_n(value, __ATOMIC_ACQUIRE) != wanted; i++)
		poll(&nothing, 1, 1);
	assert_int_equal(__atomic_load_n(value, __ATOMIC_ACQUIRE), wanted);
}

static void await_untraced(const struct fixture *f)
{
	struct pollfd nothing = { .fd = -1 };

	for (int i = 0; i < WAIT_MS && job_tracer(f->job.pid) != 0; i++)
		poll(&nothing, 1, 1);
	assert_int_equal(job_tracer(f->job.pid), 0);
}

/* The process of the thread that traces the job. */
static pid_t holder_of(const struct fixture *f)
{
	struct gkfd *k = script_gkfd(script_new(&gkfd_trace_syscall));
	struct gkfd_proc_ident ident;

	assert_int_equal(gkfd_proc_identify(k, job_tracer(f->job.pid), &ident), 0);
	gkfd_free(k);
	return ident.tgid;
}

static pid_t guard_of(pid_t holder)
{
	char path[64], text[64] = "";
	FILE *children;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", holder, holder);
	children = fopen(path, "re");
	assert_non_null(children);
	assert_non_null(fgets(text, sizeof(text), children));
	fclose(children);
	return (pid_t)strtol(text, NULL, 10);
}

/* ---- cases ---- */

static void a_job_is_held_by_a_process_of_its_own(void **state)
{
	struct fixture *f = *state;
	pid_t holder;

	attach_and_hold(f);
	holder = holder_of(f);
	assert_int_not_equal(holder, getpid());
	assert_int_equal(f->b->ops->resume(f->t, NULL, 0, 3), 0);
	expect(f, GPU_RESUME, 3, 0);
	assert_int_equal(f->board->suspended, 0);
	assert_int_equal(f->b->ops->release(f->t, 4), 0);
	expect(f, GPU_RELEASE, 4, 0);
	assert_int_equal(job_tracer(f->job.pid), 0);
}

/* The first of them before it is attached. */
static void what_is_asked_at_once_is_done_in_that_order(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(f->b->ops->attach(f->b, &(struct gpu_attach){ f->job.pid, f->start_ticks },
					   1, &f->t),
			 0);
	for (uint64_t i = 0; i < 20; i++) {
		assert_int_equal(f->b->ops->suspend(f->t, &(struct gpu_hold){ 0 }, 2 * i + 2), 0);
		assert_int_equal(f->b->ops->resume(f->t, NULL, 0, 2 * i + 3), 0);
	}
	expect(f, GPU_ATTACH, 1, 0);
	for (uint64_t i = 0; i < 20; i++) {
		expect(f, GPU_SUSPEND, 2 * i + 2, 0);
		expect(f, GPU_RESUME, 2 * i + 3, 0);
	}
	assert_int_equal(f->board->suspended, 0);
}

static void single_queues_are_held_and_let_go(void **state)
{
	const uint32_t one = 1;
	struct fixture *f = *state;

	attach(f);
	assert_int_equal(f->b->ops->suspend(f->t, &(struct gpu_hold){ &one, 1 }, 2), 0);
	expect(f, GPU_SUSPEND, 2, 0);
	assert_int_equal(f->board->suspended, 1);
	assert_int_equal(f->b->ops->resume(f->t, &one, 1, 3), 0);
	expect(f, GPU_RESUME, 3, 0);
	assert_int_equal(f->board->suspended, 0);
}

static void a_hold_ends_by_itself_in_time(void **state)
{
	struct fixture *f = *state;

	attach(f);
	assert_int_equal(f->b->ops->suspend(
				 f->t, &(struct gpu_hold){ .longest_ns = 300 * NSEC_PER_MSEC }, 2),
			 0);
	expect(f, GPU_SUSPEND, 2, 0);
	await(&f->board->suspended, 0); /* nobody asks for it */
}

static void whoever_only_has_the_pid_is_not_touched(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(f->b->ops->attach(f->b,
					   &(struct gpu_attach){ f->job.pid, f->start_ticks + 1 },
					   1, &f->t),
			 0);
	expect(f, GPU_ATTACH, 1, -ESRCH);
	assert_int_equal(job_tracer(f->job.pid), 0);
	assert_int_equal(f->b->ops->release(f->t, 2), 0);
	expect(f, GPU_RELEASE, 2, 0);
}

static void a_holder_that_is_killed_lets_go_and_is_told_of(void **state)
{
	struct fixture *f = *state;

	attach_and_hold(f);
	kill(holder_of(f), SIGKILL);
	expect(f, GPU_ENDED, 0, -ECANCELED);
	await_untraced(f);
	await(&f->board->rescued, f->job.pid); /* by its guard: this driver would not */
	assert_int_equal(f->b->ops->suspend(f->t, &(struct gpu_hold){ 0 }, 3), -ECANCELED);
	assert_int_equal(f->b->ops->release(f->t, 4), 0);
	expect(f, GPU_RELEASE, 4, 0);
}

static void one_that_lets_go_in_good_order_needs_no_rescue(void **state)
{
	struct fixture *f = *state;

	attach_and_hold(f);
	kill(holder_of(f), SIGTERM);
	expect(f, GPU_ENDED, 0, -ECANCELED);
	await_untraced(f);
	assert_int_equal(f->board->suspended, 0);
	f->b->ops->close(f->b);
	f->b = NULL;
	assert_int_equal(f->board->rescued, 0);
}

static void a_holder_without_a_guard_lets_go(void **state)
{
	struct fixture *f = *state;

	attach_and_hold(f);
	kill(guard_of(holder_of(f)), SIGKILL);
	expect(f, GPU_ENDED, 0, -EOWNERDEAD);
	assert_int_equal(f->board->suspended, 0);
}

static void a_stopped_holder_is_ended_by_its_guard(void **state)
{
	struct fixture *f = *state;

	attach_and_hold(f);
	kill(holder_of(f), SIGSTOP);
	expect(f, GPU_ENDED, 0, -ECANCELED);
	await(&f->board->rescued, f->job.pid);
	await_untraced(f);
}

static void closing_lets_everybody_go(void **state)
{
	struct fixture *f = *state;
	size_t fds = count_fds();

	attach_and_hold(f);
	f->b->ops->close(f->b);
	f->b = NULL;
	assert_int_equal(job_tracer(f->job.pid), 0);
	assert_int_equal(f->board->suspended, 0);
	assert_true(count_fds() < fds); /* its own are gone as well */
}

/* Tells of a child that has a copy of all it has open. */
static void hold_and_wait(struct fixture *f, int told)
{
	pid_t child;

	open_backend(f);
	attach_and_hold(f);
	child = fork();
	if (child == 0 || write(told, &child, sizeof(child)) == sizeof(child))
		pause();
	_exit(1);
}

/* The child that is left; the caller's to kill. */
static pid_t kill_an_owner(struct fixture *f)
{
	pid_t owner, child = 0;
	int told[2];

	assert_int_equal(pipe(told), 0);
	owner = fork();
	if (owner == 0)
		hold_and_wait(f, told[1]);
	close(told[1]);
	assert_int_equal(read(told[0], &child, sizeof(child)), sizeof(child));
	close(told[0]);
	kill(owner, SIGKILL);
	waitpid(owner, NULL, 0);
	return child;
}

static void when_the_owner_is_killed_its_holders_let_go(void **state)
{
	struct fixture *f = *state;

	kill(kill_an_owner(f), SIGKILL);
	await(&f->board->suspended, 0);
	await_untraced(f);
	assert_int_equal(f->board->rescued, 0);
}

static void so_they_do_when_somebody_has_copies_of_its_descriptors(void **state)
{
	struct fixture *f = *state;
	pid_t child = kill_an_owner(f);

	await(&f->board->suspended, 0);
	await_untraced(f);
	kill(child, SIGKILL);
}

static void the_end_of_the_job_is_told(void **state)
{
	struct fixture *f = *state;

	attach_and_hold(f);
	kill(f->job.pid, SIGKILL);
	expect(f, GPU_ENDED, 0, -ESRCH);
	assert_int_equal(job_hear(f->job.from_parent), 'K');
}

/* While one hangs in the driver, at its target, the owner goes on. */
static void a_holder_that_hangs_keeps_nobody(void **state)
{
	struct fixture *f = *state;
	struct fixture other = { .b = f->b };
	struct gpu_target *first;

	attach(f);
	first = f->t;
	f->board->hangs = 1;
	assert_int_equal(f->b->ops->suspend(f->t, &(struct gpu_hold){ 0 }, 2), 0);
	job_start(&other.job);
	other.board = board_of(other.job.pid);
	attach_and_hold(&other);
	assert_int_equal(f->board->suspends, 0); /* it still hangs */
	other.b->ops->release(other.t, 5);
	expect(&other, GPU_RELEASE, 5, 0);
	f->t = first;
	f->board->hangs = 0;
	expect(f, GPU_SUSPEND, 2, 0);
	board_remove(other.job.pid);
	job_end(&other.job);
}

/* For longer than any driver call takes: then the job is not waited for any more. */
static void one_that_hangs_for_too_long_is_given_up(void **state)
{
	struct fixture *f = *state;

	attach(f);
	f->board->hangs = 1;
	assert_int_equal(f->b->ops->suspend(f->t, &(struct gpu_hold){ 0 }, 2), 0);
	later_ns = GUARD_DRIVER_CALL_NS + 1;
	expect(f, GPU_SUSPEND, 2, -ETIMEDOUT);
	expect(f, GPU_ENDED, 0, -ETIMEDOUT);
	assert_int_equal(f->b->ops->suspend(f->t, &(struct gpu_hold){ 0 }, 3), -ECANCELED);
	f->board->hangs = 0;
	await_untraced(f); /* it lets go when it can */
}

/* No more of one user's jobs are attached while so many do not answer. */
static void so_many_may_hang_and_no_more(void **state)
{
	struct fixture *f = *state;
	struct fixture others[4] = { 0 };
	struct gpu_target *t;

	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		others[i].b = f->b;
		job_start(&others[i].job);
		others[i].board = board_of(others[i].job.pid);
		attach(&others[i]);
		others[i].board->hangs = 1;
		assert_int_equal(f->b->ops->suspend(others[i].t, &(struct gpu_hold){ 0 }, 2), 0);
	}
	later_ns = 600 * NSEC_PER_MSEC;
	assert_int_equal(
		f->b->ops->attach(f->b, &(struct gpu_attach){ f->job.pid, f->start_ticks }, 1, &t),
		-EUSERS);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		others[i].board->hangs = 0;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_int_equal(next(f).result, 0);
	attach(f);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		f->b->ops->release(others[i].t, 5);
		expect(&others[i], GPU_RELEASE, 5, 0);
		board_remove(others[i].job.pid);
		job_end(&others[i].job);
	}
}

/* True when it is about to end: whoever traces it can keep it there. Else its signals go on. */
static bool is_ending(pid_t holder)
{
	int status;

	if (waitpid(holder, &status, WNOHANG | __WALL) != holder)
		return false;
	if (status >> 16 == PTRACE_EVENT_EXIT)
		return true;
	ptrace(PTRACE_CONT, holder, NULL, (void *)(intptr_t)WSTOPSIG(status));
	return false;
}

static pid_t leave_one(struct fixture *f)
{
	struct gpu_done done;
	pid_t holder;

	attach(f);
	holder = holder_of(f);
	assert_int_equal(ptrace(PTRACE_SEIZE, holder, NULL, (void *)PTRACE_O_TRACEEXIT), 0);
	assert_int_equal(f->b->ops->release(f->t, 5), 0);
	while (!is_ending(holder))
		sched_yield();
	assert_int_equal(f->b->ops->take(f->b, &done), 1);
	assert_int_equal(done.verb, GPU_RELEASE);
	return holder;
}

static void so_many_may_be_left_and_no_more(void **state)
{
	struct fixture *f = *state;
	pid_t left[16];

	for (size_t i = 0; i < ARRAY_SIZE(left); i++)
		left[i] = leave_one(f);
	later_ns = 3 * NSEC_PER_SEC;
	assert_int_equal(f->b->ops->attach(f->b, &(struct gpu_attach){ f->job.pid, f->start_ticks },
					   1, &f->t),
			 -EUSERS);
	for (size_t i = 0; i < ARRAY_SIZE(left); i++)
		assert_int_equal(ptrace(PTRACE_CONT, left[i], NULL, NULL), 0);
	while (f->b->ops->attach(f->b, &(struct gpu_attach){ f->job.pid, f->start_ticks }, 1,
				 &f->t) == -EUSERS)
		sched_yield();
	expect(f, GPU_ATTACH, 1, 0);
}

static void our_own_holders_are_no_jobs(void **state)
{
	struct fixture *f = *state;
	pid_t pids[64];
	int n;

	attach(f);
	n = f->b->ops->processes(f->b, pids, ARRAY_SIZE(pids));
	for (int i = 0; i < n; i++)
		assert_int_not_equal(pids[i], holder_of(f));
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_job_is_held_by_a_process_of_its_own),
		T(what_is_asked_at_once_is_done_in_that_order),
		T(single_queues_are_held_and_let_go),
		T(a_hold_ends_by_itself_in_time),
		T(whoever_only_has_the_pid_is_not_touched),
		T(a_holder_that_is_killed_lets_go_and_is_told_of),
		T(one_that_lets_go_in_good_order_needs_no_rescue),
		T(a_holder_without_a_guard_lets_go),
		T(a_stopped_holder_is_ended_by_its_guard),
		T(closing_lets_everybody_go),
		T(when_the_owner_is_killed_its_holders_let_go),
		T(so_they_do_when_somebody_has_copies_of_its_descriptors),
		T(the_end_of_the_job_is_told),
		T(a_holder_that_hangs_keeps_nobody),
		T(one_that_hangs_for_too_long_is_given_up),
		T(so_many_may_hang_and_no_more),
		T(so_many_may_be_left_and_no_more),
		T(our_own_holders_are_no_jobs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
