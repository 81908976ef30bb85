/* SPDX-License-Identifier: MIT */
/* What the engine is not talked into, by jobs, by a failing GPU or by doing nothing at all. */
#include "tests/core/engine_rig.h"

static void an_offline_job_cannot_spend_the_budget_of_online_work(void **state)
{
	struct engine_config config = rig_config(&gpol_priority);
	const struct engine_job_config job = {
		.gpu = RIG_GPU,
		.priority = 1,
		.flags = ENGINE_JOB_PREEMPTIBLE,
	};
	uint32_t online, a, restless;
	struct rig r;

	config.cycles_per_s = 100;
	rig_open(&r, &config, 1, 0);
	online = rig_online(&r);
	a = rig_offline(&r);
	restless = rig_add(&r, &job, 1);
	for (int i = 0; !rig_gpu(&r, RIG_GPU).denied_by_budget; i++) {
		assert_true(i < 1000);
		rig_work(&r, restless, i % 3 == 0);
		rig_step(&r, MS);
	}
	assert_false(rig_holds(&r, a));
	rig_work(&r, online, true);
	rig_step(&r, 0);
	assert_true(rig_holds(&r, a));
	rig_close(&r);
}

static void resumes_that_fail_for_long_do_not_cost_what_comes_after(void **state)
{
	struct engine_config config = engine_config_default;
	uint32_t online, a;
	struct rig r;

	rig_open(&r, &config, 1, 0);
	online = rig_online(&r);
	a = rig_offline(&r);
	rig_work(&r, online, true);
	rig_step(&r, MS);
	assert_true(rig_holds(&r, a));
	rig_step(&r, 10 * MS);
	rig_work(&r, online, false);
	r.result = -EIO;
	for (int i = 0; i < 10000; i++)
		rig_step(&r, MS);
	r.result = 0;
	assert_int_equal(engine_rearm(r.e, RIG_GPU), 0);
	rig_run(&r, SEC);
	assert_false(rig_holds(&r, a));
	rig_work(&r, online, true);
	rig_step(&r, MS);
	assert_true(rig_holds(&r, a));
	rig_close(&r);
}

/* Its bound passes while it is on, in a gap too short to count. */
static void a_hold_that_would_end_as_it_begins_is_not_made(void **state)
{
	struct engine_config config = rig_config(&rig_urgent_first);
	uint32_t urgent, a;
	struct rig r;

	config.hold_max_ns = 200 * MS;
	config.min_run_ns = 10 * MS;
	rig_open(&r, &config, 1, 0);
	urgent = rig_online(&r);
	a = rig_offline(&r);
	rig_work(&r, urgent, true);
	rig_step(&r, MS);
	assert_true(rig_holds(&r, a));
	rig_run(&r, 195 * MS);
	rig_work(&r, urgent, false);
	rig_step(&r, 0);
	assert_false(rig_holds(&r, a));
	rig_step(&r, 8 * MS);
	rig_work(&r, urgent, true);
	rig_step(&r, 0);
	assert_false(rig_holds(&r, a));
	assert_int_equal(r.wake_ns, r.now_ns + 2 * MS);
	rig_step(&r, 2 * MS);
	assert_true(rig_holds(&r, a));
	rig_close(&r);
}

static void an_online_job_that_comes_without_work_needs_no_room(void **state)
{
	struct engine_config config = rig_config(&gpol_priority);
	struct rig r;
	uint32_t a;

	rig_open(&r, &config, 1, 0);
	a = rig_offline(&r);
	rig_run(&r, 10 * MS);
	rig_online(&r);
	rig_step(&r, 100 * US);
	assert_false(rig_holds(&r, a));
	rig_close(&r);
}

static void without_a_policy_nobody_is_held_for_slots_either(void **state)
{
	struct engine_config config = rig_config(&gpol_none);
	struct rig r;

	config.low_water = 2;
	rig_open(&r, &config, 1, 4);
	for (int i = 0; i < 10; i++)
		rig_work(&r, rig_offline(&r), i % 2);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(rig_step(&r, MS), 0);
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_offline_job_cannot_spend_the_budget_of_online_work),
		cmocka_unit_test(resumes_that_fail_for_long_do_not_cost_what_comes_after),
		cmocka_unit_test(a_hold_that_would_end_as_it_begins_is_not_made),
		cmocka_unit_test(an_online_job_that_comes_without_work_needs_no_room),
		cmocka_unit_test(without_a_policy_nobody_is_held_for_slots_either),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
