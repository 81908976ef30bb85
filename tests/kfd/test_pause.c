/* SPDX-License-Identifier: MIT */
/* Level K1: the calls one by one, and real processes with a guard over a driver that counts. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "gpu/kfd/release.h"
#include "tests/kfd/job.h"
#include "tests/kfd/script.h"
#include "tests/kfd/tracee.h"
#include "util/macros.h"

#define PID 4711
#define NOT_PAUSED -EINVAL

/* ---- call by call ---- */

struct scripted {
	struct script *script;
	struct gkfd *k;
	struct gkfd_session p;
	struct gkfd_failure fail;
	struct gkfd_moved hold, resumed;
};

static int setup(void **state)
{
	struct scripted *f = calloc(1, sizeof(*f));

	f->script = script_new(NULL);
	script_set_process(f->script, PID, 0, 7);
	script_lend(f->script, 1);
	f->k = script_gkfd(f->script);
	f->k->major = 1;
	f->k->minor = 17;
	f->p = GKFD_SESSION_NONE;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct scripted *f = *state;

	gkfd_session_forget(&f->p);
	gkfd_free(f->k);
	free(f);
	return 0;
}

static int begin(struct scripted *f)
{
	return gkfd_session_by_pause.begin(&f->p, f->k, PID, &f->fail);
}

static int hold(struct scripted *f)
{
	return gkfd_session_by_pause.hold(&f->p, &(struct gpu_hold){ 0 }, &f->hold, &f->fail);
}

static int hold_one(struct scripted *f)
{
	const uint32_t id = 3;

	return gkfd_session_by_pause.hold(&f->p, &(struct gpu_hold){ .ids = &id, .n = 1 }, &f->hold,
					  &f->fail);
}

static void a_pause_and_its_end_are_one_call_each(void **state)
{
	struct scripted *f = *state;

	SCRIPT_PLAY(f->script, { "unpause", NOT_PAUSED }, { "pause", 0 }, { "unpause", 0 },
		    { "pause", 0 }, { "unpause", 0 });
	assert_int_equal(begin(f), 0);
	assert_int_equal(hold(f), 0);
	assert_true(f->p.holding);
	assert_int_equal(gkfd_session_by_pause.resume(&f->p, NULL, 0, &f->resumed, &f->fail), 0);
	assert_false(f->p.holding);
	assert_int_equal(hold(f), 0);
	gkfd_session_by_pause.end(&f->p);
	script_done(f->script);
}

static void a_second_pause_never_reaches_the_driver(void **state)
{
	struct scripted *f = *state;

	SCRIPT_PLAY(f->script, { "unpause", NOT_PAUSED }, { "pause", 0 });
	assert_int_equal(begin(f), 0);
	assert_int_equal(hold(f), 0);
	assert_int_equal(hold(f), 0);
	assert_int_equal(f->hold.n, 0);
	assert_int_equal(hold_one(f), -EALREADY);
	assert_int_equal(f->fail.why, GKFD_WHY_ALREADY_HELD);
	script_done(f->script);
}

static void what_somebody_has_paused_is_refused_and_left_as_it_was(void **state)
{
	struct scripted *f = *state;

	SCRIPT_PLAY(f->script, { "unpause", 0 }, { "pause", 0 });
	assert_int_equal(begin(f), -EBUSY);
	assert_int_equal(f->fail.why, GKFD_WHY_PAUSED);
	assert_int_equal(f->p.fd, -1);
	script_done(f->script);
}

static void an_inherited_descriptor_is_passed_over(void **state)
{
	struct scripted *f = *state;

	script_lend(f->script, 2);
	SCRIPT_PLAY(f->script, { "unpause", -EBADF }, { "unpause", NOT_PAUSED });
	assert_int_equal(begin(f), 0);
	script_done(f->script);
}

static void refusals_are_told_apart(void **state)
{
	struct scripted *f = *state;

	SCRIPT_PLAY(f->script, { "unpause", -EACCES });
	assert_int_equal(begin(f), -EACCES);
	assert_int_equal(f->fail.why, GKFD_WHY_NO_CRIU_RIGHT);
	script_done(f->script);

	SCRIPT_PLAY(f->script, { "unpause", -EBADF });
	assert_int_equal(begin(f), -ESRCH);
	assert_int_equal(f->fail.why, GKFD_WHY_NO_KFD_PROCESS);
	script_done(f->script);
}

static void single_queues_cannot_be_paused(void **state)
{
	struct scripted *f = *state;

	SCRIPT_PLAY(f->script, { "unpause", NOT_PAUSED });
	assert_int_equal(begin(f), 0);
	assert_int_equal(hold_one(f), -EINVAL);
	assert_int_equal(f->fail.why, GKFD_WHY_WHOLE_ONLY);
	script_done(f->script);
}

static void a_pause_that_failed_is_none(void **state)
{
	struct scripted *f = *state;

	SCRIPT_PLAY(f->script, { "unpause", NOT_PAUSED }, { "pause", -ETIME });
	assert_int_equal(begin(f), 0);
	assert_int_equal(hold(f), -EIO);
	assert_int_equal(f->fail.why, GKFD_WHY_PREEMPTION_FAILED);
	gkfd_session_by_pause.end(&f->p); /* and so needs no end */
	script_done(f->script);
}

static void an_end_that_failed_is_tried_again(void **state)
{
	struct scripted *f = *state;

	SCRIPT_PLAY(f->script, { "unpause", NOT_PAUSED }, { "pause", 0 }, { "unpause", -EIO },
		    { "unpause", 0 });
	assert_int_equal(begin(f), 0);
	assert_int_equal(hold(f), 0);
	assert_int_equal(gkfd_session_by_pause.resume(&f->p, NULL, 0, &f->resumed, &f->fail), -EIO);
	assert_true(f->p.holding);
	gkfd_session_by_pause.end(&f->p);
	script_done(f->script);
}

static void an_orphaned_pause_is_ended_once(void **state)
{
	struct scripted *f = *state;

	SCRIPT_PLAY(f->script, { "unpause", 0 });
	assert_int_equal(gkfd_pause_recover(f->k, PID, &f->fail), 1);
	script_done(f->script);
	SCRIPT_PLAY(f->script, { "unpause", NOT_PAUSED });
	assert_int_equal(gkfd_pause_recover(f->k, PID, &f->fail), 0);
	script_done(f->script);
}

/* ---- real processes ---- */

struct real {
	struct script *script;
	struct gkfd *k;
	struct job job;
	struct guard *guard;
	struct tracee *t;
	struct gkfd_failure fail;
	struct gkfd_moved hold;
};

static int setup_real(void **state)
{
	struct real *f = calloc(1, sizeof(*f));

	f->script = script_new(&gkfd_trace_syscall);
	script_lend(f->script, 1);
	f->k = script_gkfd(f->script);
	job_start(&f->job);
	assert_int_equal(guard_start(&f->guard), 0);
	*state = f;
	return 0;
}

static int teardown_real(void **state)
{
	struct real *f = *state;

	tracee_release(f->t);
	guard_stop(f->guard);
	gkfd_free(f->k);
	job_end(&f->job);
	free(f);
	return 0;
}

static int attach_real(struct real *f)
{
	return tracee_attach(f->k, f->job.pid, GKFD_BY_PAUSE, f->guard, &f->t, &f->fail);
}

static int hold_real(struct real *f)
{
	return tracee_hold(f->t, &(struct gpu_hold){ 0 }, &f->hold, &f->fail);
}

static void a_process_is_paused_and_let_go(void **state)
{
	struct real *f = *state;
	struct gkfd_moved resumed;

	assert_int_equal(attach_real(f), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(hold_real(f), 0);
		assert_int_equal(script_evictions(f->script), 1);
		assert_int_equal(hold_real(f), 0);
		assert_int_equal(script_evictions(f->script), 1);
		assert_int_equal(tracee_resume(f->t, &resumed, &f->fail), 0);
		assert_int_equal(script_evictions(f->script), 0);
	}
	assert_int_equal(hold_real(f), 0);
	tracee_release(steal_ptr(&f->t));
	assert_int_equal(script_evictions(f->script), 0);
	assert_int_equal(job_tracer(f->job.pid), 0);
}

static void a_pause_ends_with_its_guard(void **state)
{
	struct real *f = *state;

	assert_int_equal(attach_real(f), 0);
	assert_int_equal(hold_real(f), 0);
	kill(guard_pid(f->guard), SIGKILL);
	assert_int_equal(tracee_await_end(f->t), GKFD_WHY_GUARD_DIED);
	assert_int_equal(script_evictions(f->script), 0);
	assert_int_equal(hold_real(f), -EOWNERDEAD);
}

static void nothing_is_paused_without_a_guard_that_answers(void **state)
{
	struct real *f = *state;

	kill(guard_pid(f->guard), SIGSTOP);
	assert_int_equal(attach_real(f), -EOWNERDEAD);
	assert_int_equal(f->fail.why, GKFD_WHY_GUARD_DIED);
	assert_int_equal(job_tracer(f->job.pid), 0);
}

static void a_pause_ends_after_its_longest_time(void **state)
{
	struct real *f = *state;
	struct gpu_hold request = { .longest_ns = NSEC_PER_MSEC };

	assert_int_equal(attach_real(f), 0);
	assert_int_equal(tracee_hold(f->t, &request, &f->hold, &f->fail), 0);
	for (int looks = 0; looks < 250 && script_evictions(f->script); looks++)
		gkfd_wait(f->k, NULL, 0, 20 * NSEC_PER_MSEC);
	assert_int_equal(script_evictions(f->script), 0);
}

static void a_pause_ends_when_only_the_leader_ends(void **state)
{
	struct real *f = *state;

	assert_int_equal(attach_real(f), 0);
	assert_int_equal(hold_real(f), 0);
	job_tell(&f->job, 'l');
	assert_int_equal(tracee_await_end(f->t), GKFD_WHY_LET_GO);
	assert_int_equal(script_evictions(f->script), 0);
}

static void the_end_of_a_paused_process_is_noticed(void **state)
{
	struct real *f = *state;

	assert_int_equal(attach_real(f), 0);
	assert_int_equal(hold_real(f), 0);
	job_tell(&f->job, 'q');
	assert_int_equal(tracee_await_end(f->t), GKFD_WHY_EXITED);
	assert_int_equal(hold_real(f), -ESRCH);
}

static void release_ends_an_orphaned_pause(void **state)
{
	struct real *f = *state;
	struct kfd_ioctl_criu_args orphan = { .op = KFD_CRIU_OP_PROCESS_INFO };

	assert_int_equal(gkfd_ioctl(f->k, AMDKFD_IOC_CRIU_OP, &orphan), 0);
	assert_int_equal(attach_real(f), -EBUSY);
	assert_int_equal(f->fail.why, GKFD_WHY_PAUSED);
	assert_int_equal(script_evictions(f->script), 1);
	assert_int_equal(gkfd_release_pid(f->k, f->job.pid, &f->fail), 1);
	assert_int_equal(script_evictions(f->script), 0);
	assert_int_equal(gkfd_release_pid(f->k, f->job.pid, &f->fail), 0);
}

#define SCRIPTED(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define REAL(name) cmocka_unit_test_setup_teardown(name, setup_real, teardown_real)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCRIPTED(a_pause_and_its_end_are_one_call_each),
		SCRIPTED(a_second_pause_never_reaches_the_driver),
		SCRIPTED(what_somebody_has_paused_is_refused_and_left_as_it_was),
		SCRIPTED(an_inherited_descriptor_is_passed_over),
		SCRIPTED(refusals_are_told_apart),
		SCRIPTED(single_queues_cannot_be_paused),
		SCRIPTED(a_pause_that_failed_is_none),
		SCRIPTED(an_end_that_failed_is_tried_again),
		SCRIPTED(an_orphaned_pause_is_ended_once),
		REAL(a_process_is_paused_and_let_go),
		REAL(a_pause_ends_with_its_guard),
		REAL(nothing_is_paused_without_a_guard_that_answers),
		REAL(a_pause_ends_after_its_longest_time),
		REAL(a_pause_ends_when_only_the_leader_ends),
		REAL(the_end_of_a_paused_process_is_noticed),
		REAL(release_ends_an_orphaned_pause),
	};

	return cmocka_run_group_tests_name("pause", tests, NULL, NULL) != 0;
}
