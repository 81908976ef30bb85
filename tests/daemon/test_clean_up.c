/* SPDX-License-Identifier: MIT */
/* After a daemon that is no more: a real job, a real journal, and a driver by script. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above first */
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "cmd/gpreemptd/clean_up.h"
#include "gpu/kfd/driver.h"
#include "gpu/kfd/procs.h"
#include "gpu/nvrm/driver.h"
#include "tests/kfd/job.h"
#include "tests/kfd/script.h"
#include "tests/nvrm/fake_rm.h"

struct fixture {
	struct script *script;
	struct fake_rm *rm;
	struct gkfd *k;
	struct nvrm *n;
	struct job job;
	uint64_t start_ticks;
	char dir[64], path[96];
};

/* The drivers of this test's machine: they are there, whatever is opened. */
static struct fixture *the_fixture;
static struct gpu_driver kfd, nvrm;
const struct gpu_driver *const gpu_drivers[] = { &kfd, &nvrm, NULL };

static int open_kfd(const char *argument, void **ret, struct gpu_why *ret_why)
{
	*ret = gkfd_ref(the_fixture->k);
	return 0;
}

static int open_nvrm(const char *argument, void **ret, struct gpu_why *ret_why)
{
	*ret = nvrm_ref(the_fixture->n);
	return 0;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct gkfd_proc_ident ident;

	the_fixture = f;
	kfd = gkfd_driver;
	kfd.open = open_kfd;
	nvrm = nvrm_driver;
	nvrm.open = open_nvrm;
	f->script = script_new(&gkfd_trace_syscall);
	f->rm = fake_rm_new();
	f->k = script_gkfd(f->script);
	f->n = fake_rm_nvrm(f->rm);
	job_start(&f->job);
	assert_int_equal(gkfd_proc_identify(f->k, f->job.pid, &ident), 0);
	f->start_ticks = ident.start_ticks;
	snprintf(f->dir, sizeof(f->dir), "/tmp/gpreempt-clean-XXXXXX");
	snprintf(f->path, sizeof(f->path), "%s/journal", mkdtemp(f->dir));
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	gkfd_free(f->k);
	nvrm_free(f->n);
	fake_rm_free(f->rm);
	job_end(&f->job);
	unlink(f->path);
	rmdir(f->dir);
	free(f);
	return 0;
}

/* A daemon that wrote this down and is gone. */
static void leave(struct fixture *f, uint64_t start_ticks)
{
	struct journal *j = NULL;

	assert_int_equal(journal_open(f->path, &j), 0);
	assert_true(journal_add(j, f->job.pid, start_ticks, "K2") >= 0);
	journal_close(j);
}

static size_t left(struct fixture *f)
{
	struct journal *j = NULL;
	size_t n;

	assert_int_equal(journal_open(f->path, &j), 0);
	n = journal_left(j, NULL, 0);
	journal_close(j);
	return n;
}

static struct clean_up_result cleaned_up(struct fixture *f)
{
	struct clean_up_result result;

	assert_int_equal(clean_up(f->path, &result), 0);
	return result;
}

static void what_a_dead_daemon_held_is_released(void **state)
{
	struct fixture *f = *state;
	struct clean_up_result result;

	leave(f, f->start_ticks);
	SCRIPT_PLAY(f->script, { "version", 0 }, { "snapshot mask=0 room=0", 0, .queues = 1 },
		    { "enable", -EALREADY }, { "runtime-event", 0 }, { "resume all", 1 },
		    { "disable", 0 });
	result = cleaned_up(f);
	assert_int_equal(result.left, 1);
	assert_int_equal(result.released, 1);
	assert_int_equal(result.failed, 0);
	assert_int_equal(left(f), 0);
	assert_int_equal(job_tracer(f->job.pid), 0);
	assert_false(gkfd_is_stained()); /* we may hold others ourselves now */
}

static void a_process_that_only_has_its_pid_is_left_alone(void **state)
{
	struct fixture *f = *state;
	struct clean_up_result result;

	leave(f, f->start_ticks + 1);
	result = cleaned_up(f);
	assert_int_equal(result.left, 0);
	assert_int_equal(result.released + result.failed, 0);
	assert_int_equal(left(f), 0);
}

/* A "gpreempt hold" of somebody: a tracer with our name. */
static pid_t start_holder(pid_t target)
{
	int ready[2];
	pid_t holder;
	char byte;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	holder = fork();
	if (holder == 0) {
		prctl(PR_SET_NAME, "gpreempt");
		if (ptrace(PTRACE_SEIZE, target, NULL, NULL) < 0 || write(ready[1], "r", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return holder;
}

static void whom_somebody_else_holds_now_is_left_to_them(void **state)
{
	struct fixture *f = *state;
	struct clean_up_result result;
	pid_t holder = start_holder(f->job.pid);

	leave(f, f->start_ticks);
	SCRIPT_PLAY(f->script, { "version", 0 });
	result = cleaned_up(f);
	assert_int_equal(result.left, 1);
	assert_int_equal(result.released + result.failed, 0);
	assert_int_equal(job_tracer(f->job.pid), holder);
	kill(holder, SIGKILL);
	waitpid(holder, NULL, 0);
}

static void what_could_not_be_released_stays_written_down(void **state)
{
	struct fixture *f = *state;
	struct clean_up_result result;

	leave(f, f->start_ticks);
	SCRIPT_PLAY(f->script, { "version", -EIO });
	result = cleaned_up(f);
	assert_int_equal(result.failed, 1);
	assert_int_equal(result.error, -EIO);
	assert_int_equal(left(f), 1);
}

static void a_journal_that_is_none_is_replaced(void **state)
{
	struct fixture *f = *state;
	FILE *out = fopen(f->path, "we");

	assert_int_equal(fchmod(fileno(out), 0600), 0);
	fputs("not a journal", out);
	fclose(out);
	assert_true(cleaned_up(f).torn);
	assert_int_equal(left(f), 0);
	assert_false(cleaned_up(f).torn);
}

static void a_living_daemon_is_not_cleaned_up_after(void **state)
{
	struct fixture *f = *state;
	struct clean_up_result result;
	struct journal *j = NULL;
	pid_t child;
	int status;

	assert_int_equal(journal_open(f->path, &j), 0);
	child = fork();
	if (child == 0)
		_exit(clean_up(f->path, &result) == -EBUSY ? 0 : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	journal_close(j);
}

/* ---- NVIDIA's ---- */

#define CUDA 4711 /* a process of the fake's machine */
#define COMPUTE_GROUP 0x5c000015u

static struct journal_entry contexts_of(struct fixture *f, pid_t pid)
{
	struct journal_entry e = { .pid = pid, .level = "N2" };
	_cleanup_free_ char *text = NULL;
	char path[32];
	size_t len;

	snprintf(path, sizeof(path), "%d/stat", pid);
	assert_true(f->n->transport->read_proc(f->n->data, path, &text, &len) >= 0);
	assert_int_equal(sscanf(strrchr(text, ')'),
				") %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
				"%*s %*s %*s %lu",
				&e.start_ticks),
			 1);
	return e;
}

/* Held once and with short turns, by one that is no more. */
static uint32_t leave_contexts(struct fixture *f)
{
	uint32_t client = fake_rm_job(f->rm, CUDA);

	fake_rm_leave_disabled(f->rm, client, COMPUTE_GROUP, 1);
	fake_rm_leave_slice(f->rm, client, COMPUTE_GROUP, 1);
	return client;
}

static void write_down(struct fixture *f, const struct journal_entry *e)
{
	struct journal *j = NULL;

	assert_int_equal(journal_open(f->path, &j), 0);
	assert_true(journal_add(j, e->pid, e->start_ticks, e->level) >= 0);
	journal_close(j);
}

static void what_a_dead_daemon_did_to_contexts_is_undone(void **state)
{
	struct fixture *f = *state;
	uint32_t client = leave_contexts(f);
	struct journal_entry e = contexts_of(f, CUDA);
	struct clean_up_result result = { 0 };

	clean_up_here(&e, &result);
	assert_int_equal(result.released, 1);
	assert_int_equal(result.failed, 0);
	assert_int_equal(fake_rm_disabled(f->rm, CUDA), 0);
	assert_true(fake_rm_slice(f->rm, client, COMPUTE_GROUP) > 1000);
	assert_int_equal(fake_rm_descriptors(f->rm), 0);
	write_down(f, &e);
	result = cleaned_up(f);
	assert_int_equal(result.left, 1);
	assert_int_equal(result.released, 1);
	assert_int_equal(left(f), 0);
}

static void contexts_of_another_with_that_pid_are_left_alone(void **state)
{
	struct fixture *f = *state;
	struct clean_up_result result = { 0 };
	struct journal_entry e;

	leave_contexts(f);
	e = contexts_of(f, CUDA);
	e.start_ticks++;
	fake_rm_forget_calls(f->rm);
	clean_up_here(&e, &result);
	assert_int_equal(result.released + result.failed, 0);
	assert_int_equal(fake_rm_count(f->rm, FAKE_BORROW, 0), 0);
	assert_true(fake_rm_disabled(f->rm, CUDA) > 0);
	write_down(f, &e);
	assert_int_equal(cleaned_up(f).left, 0);
}

static void what_is_held_by_a_driver_that_is_gone_is_no_failure(void **state)
{
	struct fixture *f = *state;
	struct clean_up_result result = { 0 };
	struct journal_entry entries[2] = {
		{ .pid = f->job.pid, .start_ticks = f->start_ticks, .level = "K2" },
	};

	leave_contexts(f);
	entries[1] = contexts_of(f, CUDA);
	SCRIPT_PLAY(f->script, { "version", -ENOENT });
	clean_up_here(&entries[0], &result);
	clean_up_here(&entries[1], &result);
	assert_int_equal(result.failed, 0);
	assert_int_equal(result.released, 1);
	assert_int_equal(fake_rm_disabled(f->rm, CUDA), 0);
}

static void contexts_that_cannot_be_freed_stay_written_down(void **state)
{
	struct fixture *f = *state;
	struct clean_up_result result;
	struct journal_entry e;

	leave_contexts(f);
	e = contexts_of(f, CUDA);
	write_down(f, &e);
	fake_rm_fault(f->rm, &(struct fake_fault){ .op = FAKE_BORROW, .error = EPERM });
	result = cleaned_up(f);
	assert_int_equal(result.failed, 1);
	assert_int_equal(left(f), 1);
}

static void one_that_its_driver_sticks_at_keeps_nobody_else_waiting(void **state)
{
	struct fixture *f = *state;
	struct clean_up_result result;
	struct journal_entry e;

	leave_contexts(f);
	e = contexts_of(f, CUDA);
	write_down(f, &e);
	leave(f, f->start_ticks);
	fake_rm_block(f->rm, NVRM_CTRL_DISABLE_CHANNELS);
	SCRIPT_PLAY(f->script, { "version", 0 }, { "snapshot mask=0 room=0", 0, .queues = 1 },
		    { "enable", -EALREADY }, { "runtime-event", 0 }, { "resume all", 1 },
		    { "disable", 0 });
	result = cleaned_up(f);
	assert_int_equal(result.left, 2);
	assert_int_equal(result.failed, 1);
	assert_int_equal(result.error, -ETIMEDOUT);
	assert_int_equal(result.released, 1);
	assert_int_equal(left(f), 2);
}

/* The driver is not even opened for it. */
static void what_ended_with_an_open_device_is_no_more_to_be_released(void **state)
{
	struct fixture *f = *state;
	struct journal *j = NULL;
	struct clean_up_result result;

	assert_int_equal(journal_open(f->path, &j), 0);
	assert_true(journal_add(j, f->job.pid, f->start_ticks, "K3") >= 0);
	journal_close(j);
	script_play(f->script, NULL, 0);
	result = cleaned_up(f);
	assert_int_equal(result.left + result.released + result.failed, 0);
	assert_int_equal(left(f), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(what_a_dead_daemon_held_is_released),
		T(what_ended_with_an_open_device_is_no_more_to_be_released),
		T(a_process_that_only_has_its_pid_is_left_alone),
		T(whom_somebody_else_holds_now_is_left_to_them),
		T(what_could_not_be_released_stays_written_down),
		T(a_journal_that_is_none_is_replaced),
		T(a_living_daemon_is_not_cleaned_up_after),
		T(what_a_dead_daemon_did_to_contexts_is_undone),
		T(contexts_of_another_with_that_pid_are_left_alone),
		T(what_is_held_by_a_driver_that_is_gone_is_no_failure),
		T(contexts_that_cannot_be_freed_stay_written_down),
		T(one_that_its_driver_sticks_at_keeps_nobody_else_waiting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
