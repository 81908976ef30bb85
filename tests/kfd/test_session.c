/* SPDX-License-Identifier: MIT */
/* The driver calls of a session, one by one, against a scripted driver. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "gpu/kfd/session.h"
#include "tests/kfd/script.h"
#include "util/macros.h"

#define PID 4711
#define NEW "snapshot mask=40000000 room=64"
#define COUNT "snapshot mask=0 room=0"
#define BAD KFD_DBG_QUEUE_INVALID_MASK
#define BROKEN KFD_DBG_QUEUE_ERROR_MASK

struct fixture {
	struct script *script;
	struct gkfd *k;
	struct gkfd_session s;
	struct gkfd_failure fail;
	struct gkfd_moved hold, resumed;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->script = script_new(NULL);
	f->k = script_gkfd(f->script);
	f->s = GKFD_SESSION_NONE;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	gkfd_session_forget(&f->s);
	closep(&f->s.event_fd[0]);
	closep(&f->s.event_fd[1]);
	gkfd_free(f->k);
	free(f);
	return 0;
}

static void begin(struct fixture *f)
{
	SCRIPT_PLAY(f->script, { COUNT, -EINVAL }, { "enable", 0, .runtime_state = 1 },
		    { "runtime-event", 0 });
	assert_int_equal(gkfd_session_begin(&f->s, f->k, PID, &f->fail), 0);
	script_done(f->script);
}

static int hold_all(struct fixture *f, uint32_t grace)
{
	return gkfd_session_hold(&f->s, &(struct gpu_hold){ .grace_kclk = grace }, &f->hold,
				 &f->fail);
}

static int hold_ids(struct fixture *f, const uint32_t *ids, uint32_t n)
{
	return gkfd_session_hold(&f->s, &(struct gpu_hold){ .ids = ids, .n = n }, &f->hold,
				 &f->fail);
}

static void begin_and_hold(struct fixture *f)
{
	begin(f);
	SCRIPT_PLAY(f->script, { NEW, 0, .queues = 2, .ids = { 5, 3 } },
		    { "suspend grace=1 ids=5,3", 2 }, { COUNT, 0, .queues = 2 });
	assert_int_equal(hold_all(f, 1), 0);
	script_done(f->script);
}

static void a_whole_hold_is_these_calls_in_this_order(void **state)
{
	struct fixture *f = *state;

	begin_and_hold(f);
	assert_int_equal(f->hold.n, 2);
	assert_int_equal(f->s.held[0], 5);
	SCRIPT_PLAY(f->script, { "resume ids=5,3", 2 }, { "disable", 0 });
	assert_int_equal(gkfd_session_resume(&f->s, NULL, 0, &f->resumed, &f->fail), 0);
	assert_int_equal(f->resumed.n, 2);
	gkfd_session_end(&f->s);
	script_done(f->script);
}

static void a_target_somebody_debugs_is_never_enabled(void **state)
{
	struct fixture *f = *state;

	SCRIPT_PLAY(f->script, { COUNT, 0 });
	assert_int_equal(gkfd_session_begin(&f->s, f->k, PID, &f->fail), -EBUSY);
	assert_int_equal(f->fail.why, GKFD_WHY_DEBUGGED);
	script_done(f->script);
}

static void a_target_without_kfd_process_is_told_from_one_we_may_not_touch(void **state)
{
	struct fixture *f = *state;

	SCRIPT_PLAY(f->script, { COUNT, -ESRCH });
	assert_int_equal(gkfd_session_begin(&f->s, f->k, PID, &f->fail), -ESRCH);
	assert_int_equal(f->fail.why, GKFD_WHY_NO_KFD_PROCESS);
	script_done(f->script);
	SCRIPT_PLAY(f->script, { COUNT, -EPERM });
	assert_int_equal(gkfd_session_begin(&f->s, f->k, PID, &f->fail), -EPERM);
	assert_int_equal(f->fail.why, GKFD_WHY_NO_RIGHT);
	script_done(f->script);
}

static void a_session_taken_by_accident_is_given_up_at_once(void **state)
{
	struct fixture *f = *state;

	SCRIPT_PLAY(f->script, { COUNT, -EINVAL }, { "enable", -EALREADY }, { "disable", 0 });
	assert_int_equal(gkfd_session_begin(&f->s, f->k, PID, &f->fail), -EBUSY);
	assert_int_equal(f->fail.why, GKFD_WHY_DEBUGGED);
	assert_true(gkfd_is_stained());
	script_done(f->script);
}

static void a_driver_without_hardware_scheduler_is_said_to_have_no_debugging(void **state)
{
	struct fixture *f = *state;

	SCRIPT_PLAY(f->script, { COUNT, -EINVAL }, { "enable", -EINVAL });
	assert_int_equal(gkfd_session_begin(&f->s, f->k, PID, &f->fail), -EOPNOTSUPP);
	assert_int_equal(f->fail.why, GKFD_WHY_NO_DEBUG);
	script_done(f->script);
}

static void a_runtime_that_never_enabled_is_too_old(void **state)
{
	struct fixture *f = *state;

	SCRIPT_PLAY(f->script, { COUNT, -EINVAL }, { "enable", 0, .runtime_state = 0 },
		    { "runtime-event", 0 }, { "disable", 0 });
	assert_int_equal(gkfd_session_begin(&f->s, f->k, PID, &f->fail), -EOPNOTSUPP);
	assert_int_equal(f->fail.why, GKFD_WHY_RUNTIME_TOO_OLD);
	script_done(f->script);
}

static void a_hidden_activation_failure_is_found_in_the_runtime_state(void **state)
{
	struct fixture *f = *state;

	for (uint32_t hidden = 2; hidden <= 3; hidden++) {
		SCRIPT_PLAY(f->script, { COUNT, -EINVAL }, { "enable", 0, .runtime_state = hidden },
			    { "runtime-event", 0 }, { "disable", 0 });
		assert_int_equal(gkfd_session_begin(&f->s, f->k, PID, &f->fail), -EAGAIN);
		assert_int_equal(f->fail.why, GKFD_WHY_RUNTIME_BUSY);
		script_done(f->script);
	}
}

static void a_snapshot_grows_until_everything_fits(void **state)
{
	_cleanup_free_ struct kfd_queue_snapshot_entry *entries = NULL;
	struct fixture *f = *state;
	uint32_t n = 0;

	begin(f);
	SCRIPT_PLAY(f->script, { NEW, 0, .queues = 70 },
		    { "snapshot mask=40000000 room=134", 0, .queues = 71 });
	assert_int_equal(gkfd_session_snapshot(&f->s, &entries, &n, &f->fail), 0);
	assert_int_equal(n, 71);
	script_done(f->script);
}

static void grace_is_clamped_to_what_the_register_can_hold(void **state)
{
	static const struct {
		uint32_t asked;
		const char *call;
	} cases[] = {
		{ 0, "suspend grace=1 ids=9" },	       { 1, "suspend grace=1 ids=9" },
		{ 255, "suspend grace=255 ids=9" },    { 256, "suspend grace=255 ids=9" },
		{ 512, "suspend grace=255 ids=9" },    { 1000, "suspend grace=255 ids=9" },
		{ UINT32_MAX, "suspend grace=255 ids=9" },
	};
	struct fixture *f = *state;

	begin(f);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		SCRIPT_PLAY(f->script, { NEW, 0, .queues = 1, .ids = { 9 } }, { cases[i].call, 1 },
			    { COUNT, 0, .queues = 1 }, { "resume ids=9", 1 });
		assert_int_equal(hold_all(f, cases[i].asked), 0);
		assert_int_equal(gkfd_session_resume(&f->s, NULL, 0, &f->resumed, &f->fail), 0);
		script_done(f->script);
	}
}

static void a_queue_the_driver_calls_invalid_is_looked_at_again(void **state)
{
	struct fixture *f = *state;

	begin(f);
	SCRIPT_PLAY(f->script, { NEW, 0, .queues = 2, .ids = { 1, 2 } },
		    { "suspend grace=1 ids=1,2", 1, .ids = { 0, BAD } }, /* 2 was destroyed */
		    { NEW, 0, .queues = 1, .ids = { 1 } }, { "suspend grace=1 ids=1", 1 },
		    { COUNT, 0, .queues = 1 });
	assert_int_equal(hold_all(f, 1), 0);
	assert_int_equal(f->hold.n, 1);
	script_done(f->script);
}

static void a_restless_process_is_not_held_by_half(void **state)
{
	struct fixture *f = *state;

	begin(f);
	SCRIPT_PLAY(f->script, { NEW, 0, .queues = 2, .ids = { 1, 2 } },
		    { "suspend grace=1 ids=1,2", 1, .ids = { 0, BAD } },
		    { NEW, 0, .queues = 2, .ids = { 1, 2 } },
		    { "suspend grace=1 ids=1,2", 1, .ids = { 0, BAD } },
		    { NEW, 0, .queues = 2, .ids = { 1, 2 } },
		    { "suspend grace=1 ids=1,2", 1, .ids = { 0, BAD } },
		    { NEW, 0, .queues = 2, .ids = { 1, 2 } },
		    { "suspend grace=1 ids=1,2", 1, .ids = { 0, BAD } }, { "resume all", 2 });
	assert_int_equal(hold_all(f, 1), -EAGAIN);
	assert_int_equal(f->fail.why, GKFD_WHY_RESTLESS);
	assert_false(f->s.holding);
	script_done(f->script);
}

static void a_queue_created_between_look_and_suspend_is_held_too(void **state)
{
	struct fixture *f = *state;

	begin(f);
	SCRIPT_PLAY(f->script, { NEW, 0, .queues = 1, .ids = { 1 } },
		    { "suspend grace=1 ids=1", 1 }, { COUNT, 0, .queues = 2 },
		    { NEW, 0, .queues = 2, .ids = { 2, 1 } }, { "suspend grace=1 ids=2,1", 2 },
		    { COUNT, 0, .queues = 2 });
	assert_int_equal(hold_all(f, 1), 0);
	assert_int_equal(f->hold.n, 2);
	script_done(f->script);
}

static void an_error_bit_undoes_everything_and_is_a_failed_preemption(void **state)
{
	struct fixture *f = *state;

	begin(f);
	SCRIPT_PLAY(f->script, { NEW, 0, .queues = 2, .ids = { 1, 2 } },
		    { "suspend grace=1 ids=1,2", 1, .ids = { 0, BROKEN } }, { "resume all", 2 });
	assert_int_equal(hold_all(f, 1), -EIO);
	assert_int_equal(f->fail.why, GKFD_WHY_PREEMPTION_FAILED);
	assert_int_equal(f->fail.queue_id, 2);
	assert_false(f->s.holding);
	script_done(f->script);
}

static void a_zero_from_a_dead_scheduler_is_a_failure(void **state)
{
	struct fixture *f = *state;

	begin(f);
	SCRIPT_PLAY(f->script, { NEW, 0, .queues = 1, .ids = { 1 } },
		    { "suspend grace=1 ids=1", 0, .ids = { BROKEN } }, { "resume all", -EIO },
		    { "disable", 0 });
	assert_int_equal(hold_all(f, 1), -EIO);
	assert_int_equal(f->fail.why, GKFD_WHY_PREEMPTION_FAILED);
	assert_false(f->s.enabled); /* giving up the session is the last way to resume */
	script_done(f->script);
}

static void a_count_that_falls_short_without_a_bit_is_not_believed(void **state)
{
	struct fixture *f = *state;

	begin(f);
	SCRIPT_PLAY(f->script, { NEW, 0, .queues = 2, .ids = { 1, 2 } },
		    { "suspend grace=1 ids=1,2", 1 }, { NEW, 0, .queues = 2, .ids = { 1, 2 } },
		    { "suspend grace=1 ids=1,2", 2 }, { COUNT, 0, .queues = 2 });
	assert_int_equal(hold_all(f, 1), 0);
	script_done(f->script);
}

static void asked_for_ids_are_checked_before_anything_is_suspended(void **state)
{
	static const uint32_t twice[] = { 1, 2, 1 }, unknown[] = { 1, 9 };
	static uint32_t many[5000];
	struct fixture *f = *state;

	begin(f);
	SCRIPT_PLAY(f->script, { "nothing at all", 0 });
	assert_int_equal(hold_ids(f, twice, 3), -EINVAL);
	assert_int_equal(f->fail.why, GKFD_WHY_DUPLICATE_QUEUE);
	assert_int_equal(hold_ids(f, many, 5000), -EINVAL);
	assert_int_equal(f->fail.why, GKFD_WHY_TOO_MANY_QUEUES);
	SCRIPT_PLAY(f->script, { NEW, 0, .queues = 2, .ids = { 1, 2 } });
	assert_int_equal(hold_ids(f, unknown, 2), -EINVAL);
	assert_int_equal(f->fail.why, GKFD_WHY_NO_SUCH_QUEUE);
	assert_int_equal(f->fail.queue_id, 9);
	script_done(f->script);
}

static void some_queues_of_a_process_can_be_held(void **state)
{
	static const uint32_t some[] = { 2 };
	struct fixture *f = *state;

	begin(f);
	SCRIPT_PLAY(f->script, { NEW, 0, .queues = 2, .ids = { 1, 2 } },
		    { "suspend grace=1 ids=2", 1 }, { "resume ids=2", 1 });
	assert_int_equal(hold_ids(f, some, 1), 0);
	assert_int_equal(gkfd_session_resume(&f->s, NULL, 0, &f->resumed, &f->fail), 0);
	script_done(f->script);
}

static void a_process_without_queues_is_held_without_a_suspend(void **state)
{
	struct fixture *f = *state;

	begin(f);
	SCRIPT_PLAY(f->script, { NEW, 0, .queues = 0 }, { COUNT, 0, .queues = 0 });
	assert_int_equal(hold_all(f, 1), 0);
	assert_int_equal(f->hold.n, 0);
	assert_int_equal(gkfd_session_resume(&f->s, NULL, 0, &f->resumed, &f->fail), 0);
	script_done(f->script);
}

static void a_second_hold_on_top_of_one_asks_for_none_of_it_again(void **state)
{
	struct fixture *f = *state;

	begin_and_hold(f);
	SCRIPT_PLAY(f->script, { NEW, 0, .queues = 2, .ids = { 5, 3 } }, { COUNT, 0, .queues = 2 });
	assert_int_equal(hold_all(f, 1), 0);
	assert_int_equal(f->hold.n, 0);
	assert_true(f->s.holding);
	assert_int_equal(f->s.n_held, 2);
	script_done(f->script);
}

static void a_queue_created_while_held_is_held_as_well(void **state)
{
	struct fixture *f = *state;

	begin_and_hold(f);
	SCRIPT_PLAY(f->script, { "query", 0, .pending = KFD_EC_MASK(EC_QUEUE_NEW) },
		    { "query", -EAGAIN }, { NEW, 0, .queues = 3, .ids = { 7, 5, 3 } },
		    { NEW, 0, .queues = 3, .ids = { 7, 5, 3 } }, { "suspend grace=1 ids=7,5,3", 3 },
		    { COUNT, 0, .queues = 3 });
	assert_int_equal(gkfd_session_service(&f->s, &f->fail), 0);
	assert_int_equal(f->s.n_held, 3);
	assert_true(f->s.holding);
	script_done(f->script);
}

static void a_newcomer_that_cannot_be_held_lets_all_of_them_run(void **state)
{
	struct fixture *f = *state;

	begin_and_hold(f);
	SCRIPT_PLAY(f->script, { "query", 0, .pending = KFD_EC_MASK(EC_QUEUE_NEW) },
		    { "query", -EAGAIN }, { NEW, 0, .queues = 3, .ids = { 7, 5, 3 } },
		    { NEW, 0, .queues = 3, .ids = { 7, 5, 3 } },
		    { "suspend grace=1 ids=7,5,3", 2, .ids = { BROKEN } }, { "resume all", 3 });
	assert_int_equal(gkfd_session_service(&f->s, &f->fail), -EIO);
	assert_false(f->s.holding);
	script_done(f->script);
}

static void a_runtime_event_is_answered_each_time(void **state)
{
	struct fixture *f = *state;

	begin(f);
	SCRIPT_PLAY(f->script, { "query", 0, .pending = KFD_EC_MASK(EC_PROCESS_RUNTIME) },
		    { "runtime-event", 0 },
		    { "query", 0, .pending = KFD_EC_MASK(EC_PROCESS_RUNTIME) },
		    { "runtime-event", 0 }, { "query", -EAGAIN });
	assert_int_equal(gkfd_session_service(&f->s, &f->fail), 0);
	script_done(f->script);
}

static void a_lost_session_is_taken_back_to_resume(void **state)
{
	struct fixture *f = *state;

	begin_and_hold(f);
	SCRIPT_PLAY(f->script, { "resume ids=5,3", -EPERM }, { COUNT, -EPERM }, { COUNT, -EPERM },
		    { "enable", -EALREADY }, { "runtime-event", 0 }, { "resume all", 2 },
		    { "disable", 0 });
	assert_int_equal(gkfd_session_resume(&f->s, NULL, 0, &f->resumed, &f->fail), -EPERM);
	assert_int_equal(f->fail.why, GKFD_WHY_TAKEN);
	assert_false(f->s.holding);
	assert_false(f->s.enabled);
	script_done(f->script);
}

static void a_runtime_that_shut_down_has_already_resumed(void **state)
{
	struct fixture *f = *state;

	begin_and_hold(f);
	SCRIPT_PLAY(f->script, { "resume ids=5,3", -EPERM }, { COUNT, 0, .queues = 2 });
	assert_int_equal(gkfd_session_resume(&f->s, NULL, 0, &f->resumed, &f->fail), 0);
	assert_false(f->s.holding);
	script_done(f->script);
}

static void a_failed_resume_ends_the_session_to_resume(void **state)
{
	struct fixture *f = *state;

	begin_and_hold(f);
	SCRIPT_PLAY(f->script, { "resume ids=5,3", 0, .ids = { BROKEN, BROKEN } }, { COUNT, 0 },
		    { "enable", -EALREADY }, { "runtime-event", 0 }, { "resume all", 2 },
		    { "disable", 0 });
	assert_int_equal(gkfd_session_resume(&f->s, NULL, 0, &f->resumed, &f->fail), -EIO);
	assert_false(f->s.enabled);
	script_done(f->script);
}

static void an_end_while_holding_resumes_before_it_disables(void **state)
{
	struct fixture *f = *state;

	begin_and_hold(f);
	SCRIPT_PLAY(f->script, { "resume all", 2 }, { "disable", 0 });
	gkfd_session_end(&f->s);
	script_done(f->script);
}

static void an_orphan_is_recovered_and_a_free_process_left_alone(void **state)
{
	struct fixture *f = *state;

	SCRIPT_PLAY(f->script, { COUNT, 0, .queues = 1 }, { "enable", -EALREADY },
		    { "runtime-event", 0 }, { "resume all", 1 }, { "disable", 0 });
	assert_int_equal(gkfd_session_recover(f->k, PID, &f->fail), 1);
	script_done(f->script);
	SCRIPT_PLAY(f->script, { COUNT, -EINVAL });
	assert_int_equal(gkfd_session_recover(f->k, PID, &f->fail), 0);
	script_done(f->script);
}

/* The obliging driver, with the process gone from the n-th call on, for every n there is. */
static void a_target_that_dies_at_any_call_leaves_nothing_held(void **state)
{
	struct fixture *f = *state;
	bool died = true;

	for (size_t n = 0; died; n++) {
		int r;

		assert_true(n < 64);
		script_vanish_after(f->script, n);
		r = gkfd_session_begin(&f->s, f->k, PID, &f->fail);
		if (r >= 0)
			r = hold_all(f, 1);
		if (r >= 0)
			r = gkfd_session_resume(&f->s, NULL, 0, &f->resumed, &f->fail);
		died = r < 0;
		if (died) {
			assert_int_equal(r, -ESRCH);
			assert_false(f->s.holding);
		}
		gkfd_session_end(&f->s);
	}
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_whole_hold_is_these_calls_in_this_order),
		T(a_target_somebody_debugs_is_never_enabled),
		T(a_target_without_kfd_process_is_told_from_one_we_may_not_touch),
		T(a_session_taken_by_accident_is_given_up_at_once),
		T(a_driver_without_hardware_scheduler_is_said_to_have_no_debugging),
		T(a_runtime_that_never_enabled_is_too_old),
		T(a_hidden_activation_failure_is_found_in_the_runtime_state),
		T(a_snapshot_grows_until_everything_fits),
		T(grace_is_clamped_to_what_the_register_can_hold),
		T(a_queue_the_driver_calls_invalid_is_looked_at_again),
		T(a_restless_process_is_not_held_by_half),
		T(a_queue_created_between_look_and_suspend_is_held_too),
		T(an_error_bit_undoes_everything_and_is_a_failed_preemption),
		T(a_zero_from_a_dead_scheduler_is_a_failure),
		T(a_count_that_falls_short_without_a_bit_is_not_believed),
		T(asked_for_ids_are_checked_before_anything_is_suspended),
		T(some_queues_of_a_process_can_be_held),
		T(a_process_without_queues_is_held_without_a_suspend),
		T(a_second_hold_on_top_of_one_asks_for_none_of_it_again),
		T(a_queue_created_while_held_is_held_as_well),
		T(a_newcomer_that_cannot_be_held_lets_all_of_them_run),
		T(a_runtime_event_is_answered_each_time),
		T(a_lost_session_is_taken_back_to_resume),
		T(a_runtime_that_shut_down_has_already_resumed),
		T(a_failed_resume_ends_the_session_to_resume),
		T(an_end_while_holding_resumes_before_it_disables),
		T(an_orphan_is_recovered_and_a_free_process_left_alone),
		T(a_target_that_dies_at_any_call_leaves_nothing_held),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
