/* SPDX-License-Identifier: MIT */
/* The backend with real processes and a real guard, over a driver that obliges. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/kfd/backend.h"
#include "tests/kfd/counts.h"
#include "tests/kfd/job.h"
#include "tests/kfd/script.h"
#include "util/macros.h"

struct fixture {
	struct script *script;
	struct gkfd_transport table; /* the script's, in a pid namespace of our choice */
	struct job job;
	struct guard *guard;
	struct gpu_backend *b;
	struct gpu_target *t;
};

static const char *pid_namespace;

static int read_file(void *data, enum gkfd_tree tree, const char *path, char **ret_text,
		     size_t *ret_len)
{
	void *kernel;
	int r;

	if (tree == GKFD_TREE_PROC && strcmp(path, "self/ns/pid") == 0) {
		*ret_text = strdup(pid_namespace);
		*ret_len = strlen(pid_namespace);
		return 0;
	}
	kernel = gkfd_syscall_new(NULL);
	if (!kernel)
		return -ENOMEM;
	r = gkfd_transport_syscall.read_file(kernel, tree, path, ret_text, ret_len);
	gkfd_transport_syscall.close(kernel);
	return r;
}

static int open_backend(struct fixture *f, struct gpu_why *why)
{
	struct gkfd *k = script_gkfd(f->script);

	f->table = *k->transport;
	f->table.read_file = read_file;
	k->transport = &f->table;
	return gkfd_backend_open(
		k, &(struct gkfd_backend_options){ .guard = f->guard, .why = why }, &f->b);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	pid_namespace = "pid:[4026531836]";
	f->script = script_new(&gkfd_trace_syscall);
	job_start(&f->job);
	assert_int_equal(guard_start(&f->guard), 0);
	assert_int_equal(open_backend(f, NULL), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	if (f->b)
		f->b->ops->close(f->b);
	guard_stop(f->guard);
	job_end(&f->job);
	free(f);
	return 0;
}

static struct gpu_done next(struct fixture *f)
{
	struct pollfd p = { .fd = f->b->ops->fd(f->b), .events = POLLIN };
	struct gpu_done done;

	assert_int_equal(poll(&p, 1, 10000), 1);
	assert_int_equal(f->b->ops->take(f->b, &done), 1);
	return done;
}

static void attach(struct fixture *f)
{
	struct gpu_done done;

	assert_int_equal(f->b->ops->attach(f->b, &(struct gpu_attach){ f->job.pid }, 1, &f->t), 0);
	done = next(f);
	assert_int_equal(done.verb, GPU_ATTACH);
	assert_int_equal(done.result, 0);
	assert_true(job_tracer(f->job.pid) > 0);
}

static void attach_and_hold(struct fixture *f)
{
	struct gpu_done done;

	attach(f);
	f->b->ops->suspend(f->t, &(struct gpu_hold){ 0 }, 2);
	done = next(f);
	assert_int_equal(done.verb, GPU_SUSPEND);
	assert_int_equal(done.result, 0);
	assert_int_equal(done.queues, 2);
}

static void expect_end(struct fixture *f, int result)
{
	struct gpu_done done = next(f);

	assert_int_equal(done.verb, GPU_ENDED);
	assert_ptr_equal(done.target, f->t);
	assert_int_equal(done.result, result);
	assert_false(done.gpu_failed);
	assert_true(done.why.message[0]);
}

static void a_target_killed_while_held_is_told_of(void **state)
{
	struct fixture *f = *state;

	attach_and_hold(f);
	kill(f->job.pid, SIGKILL);
	expect_end(f, -ESRCH);
	assert_int_equal(job_hear(f->job.from_parent), 'K');
	f->b->ops->release(f->t, 3);
	assert_int_equal(next(f).verb, GPU_RELEASE);
}

static void an_exit_is_told_of_without_a_hold(void **state)
{
	struct fixture *f = *state;

	attach(f);
	job_tell(&f->job, 'q');
	expect_end(f, -ESRCH);
	assert_int_equal(job_hear(f->job.from_parent), 'E');
}

static void an_exec_is_told_of_and_the_program_is_let_go(void **state)
{
	struct fixture *f = *state;

	attach(f);
	job_tell(&f->job, 'x');
	expect_end(f, -ESRCH);
	assert_int_equal(job_tracer(f->job.pid), 0);
}

static void nothing_stays_held_without_a_guard(void **state)
{
	struct fixture *f = *state;

	attach_and_hold(f);
	kill(guard_pid(f->guard), SIGKILL);
	expect_end(f, -EOWNERDEAD);
	assert_int_equal(script_suspended(f->script), 0);
	f->b->ops->suspend(f->t, &(struct gpu_hold){ 0 }, 4);
	assert_int_equal(next(f).result, -EOWNERDEAD);
}

static void a_process_traced_by_another_is_refused_by_name(void **state)
{
	struct fixture *f = *state;
	struct gpu_target *second;
	struct gpu_done done;

	attach(f);
	assert_int_equal(f->b->ops->attach(f->b, &(struct gpu_attach){ f->job.pid }, 9, &second),
			 0);
	done = next(f);
	assert_int_equal(done.cookie, 9);
	assert_int_equal(done.result, -EBUSY);
	assert_non_null(strstr(done.why.message, "already"));
	f->b->ops->release(second, 10);
	done = next(f);
	assert_int_equal(done.verb, GPU_RELEASE);
	assert_int_equal(done.cookie, 10);
	assert_true(job_tracer(f->job.pid) > 0); /* still ours */
}

/* At once, and not when somebody gets round to releasing it. */
static void a_refused_target_is_not_traced_any_more(void **state)
{
	struct fixture *f = *state;

	script_vanish_after(f->script, 0); /* the driver knows no such process */
	assert_int_equal(f->b->ops->attach(f->b, &(struct gpu_attach){ f->job.pid }, 1, &f->t), 0);
	assert_int_equal(next(f).result, -ESRCH);
	assert_int_equal(job_tracer(f->job.pid), 0);
	kill(f->job.pid, SIGUSR1);
	assert_int_equal(job_hear(f->job.from_job), 'u');
}

static void closing_ends_holds_threads_and_descriptors(void **state)
{
	struct fixture *f = *state;
	size_t threads = count_threads(), fds = count_fds();

	attach_and_hold(f);
	f->b->ops->close(f->b);
	f->b = NULL;
	assert_int_equal(job_tracer(f->job.pid), 0);
	assert_int_equal(count_threads(), threads);
	assert_true(count_fds() < fds); /* its own are gone as well */
	kill(f->job.pid, SIGUSR1);
	assert_int_equal(job_hear(f->job.from_job), 'u');
}

static void a_pid_namespace_of_ones_own_is_refused_with_a_reason(void **state)
{
	struct fixture *f = *state;
	struct gpu_why why = { 0 };

	f->b->ops->close(f->b);
	f->b = NULL;
	f->script = script_new(&gkfd_trace_syscall);
	pid_namespace = "pid:[4026532000]";
	assert_int_equal(open_backend(f, &why), -EOPNOTSUPP);
	assert_non_null(strstr(why.message, "pid namespace"));
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_target_killed_while_held_is_told_of),
		T(an_exit_is_told_of_without_a_hold),
		T(an_exec_is_told_of_and_the_program_is_let_go),
		T(nothing_stays_held_without_a_guard),
		T(a_process_traced_by_another_is_refused_by_name),
		T(a_refused_target_is_not_traced_any_more),
		T(closing_ends_holds_threads_and_descriptors),
		T(a_pid_namespace_of_ones_own_is_refused_with_a_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
