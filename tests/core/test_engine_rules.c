/* SPDX-License-Identifier: MIT */
/* Gangs, costs, the budget, the circuit breaker, hints. */
#include "tests/core/engine_rig.h"

static uint32_t add_member(struct rig *r, uint32_t gpu, uint32_t flags)
{
	const struct engine_job_config config = {
		.gpu = RIG_GPU + gpu,
		.gang = 7,
		.flags = flags,
	};
	uint32_t job = rig_add(r, &config, 1);

	rig_work(r, job, true);
	return job;
}

/* ---- gangs ---- */

static void a_gang_is_held_and_let_go_as_one(void **state)
{
	struct engine_config config = rig_config(&rig_urgent_first);
	uint32_t online, other;
	struct rig r;

	rig_open(&r, &config, 4, 0);
	online = rig_online(&r);
	for (uint32_t i = 0; i < 4; i++)
		add_member(&r, i, ENGINE_JOB_PREEMPTIBLE);
	other = rig_offline(&r);
	rig_work(&r, online, true);
	assert_int_equal(rig_step(&r, MS), 5);
	for (uint32_t i = 0; i < 4; i++)
		assert_true(r.actions[i].job != other); /* the gang's follow each other */
	assert_int_equal(r.actions[3].because, online);
	rig_work(&r, online, false);
	assert_int_equal(rig_step(&r, MS), 5);
	assert_int_equal(rig_count(&r, ENGINE_RESUME), 5);
	rig_close(&r);
}

static void a_gang_is_not_held_if_one_of_it_may_not_be(void **state)
{
	struct engine_config config = rig_config(&rig_hold_all);
	uint32_t last;
	struct rig r;

	rig_open(&r, &config, 2, 0);
	add_member(&r, 0, ENGINE_JOB_PREEMPTIBLE);
	last = add_member(&r, 1, 0);
	assert_int_equal(rig_step(&r, MS), 0);
	rig_remove(&r, last);
	assert_int_equal(rig_step(&r, MS), 1);
	add_member(&r, 1, 0);
	assert_int_equal(rig_step(&r, MS), 1);
	assert_int_equal(r.actions[0].verb, ENGINE_RESUME);
	rig_close(&r);
}

static void the_first_bound_of_a_gang_ends_the_hold_of_all(void **state)
{
	struct engine_config config = rig_config(&rig_hold_all);
	struct engine_job_config job = {
		.gpu = RIG_GPU,
		.gang = 7,
		.flags = ENGINE_JOB_PREEMPTIBLE,
		.wait_bound_ns = 30 * MS,
	};
	uint64_t began_ns;
	uint32_t other;
	struct rig r;

	rig_open(&r, &config, 2, 0);
	other = add_member(&r, 1, ENGINE_JOB_PREEMPTIBLE);
	rig_work(&r, rig_add(&r, &job, 1), true);
	assert_int_equal(rig_step(&r, MS), 2);
	assert_int_equal(r.actions[0].deadline_ns, r.actions[1].deadline_ns);
	began_ns = r.now_ns;
	rig_run_until(&r, ENGINE_RESUME, other);
	assert_int_equal(rig_count(&r, ENGINE_RESUME), 2);
	assert_in_range(r.now_ns - began_ns, 29 * MS, 30 * MS);
	rig_close(&r);
}

static void a_tripped_gpu_keeps_the_whole_gang_on(void **state)
{
	struct engine_config config = rig_config(&rig_hold_all);
	struct rig r;

	rig_open(&r, &config, 2, 0);
	add_member(&r, 0, ENGINE_JOB_PREEMPTIBLE);
	add_member(&r, 1, ENGINE_JOB_PREEMPTIBLE);
	r.silent = true;
	assert_int_equal(rig_step(&r, MS), 2);
	engine_report(r.e, r.now_ns, r.actions[0].ticket, -EIO, MS);
	engine_report(r.e, r.now_ns, r.actions[1].ticket, 0, MS);
	assert_int_equal(rig_step(&r, MS), 2);
	assert_int_equal(rig_count(&r, ENGINE_RESUME), 2);
	rig_report(&r, 0);
	rig_run(&r, SEC);
	assert_int_equal(r.n_actions, 0);
	rig_close(&r);
}

static void a_gang_is_not_torn_apart_for_lack_of_room(void **state)
{
	struct engine_config config = rig_config(&rig_hold_all);
	struct rig r;

	rig_open(&r, &config, 2, 0);
	rig_offline(&r);
	add_member(&r, 0, ENGINE_JOB_PREEMPTIBLE);
	add_member(&r, 1, ENGINE_JOB_PREEMPTIBLE);
	r.max = 2;
	assert_int_equal(rig_step(&r, MS), 1);
	assert_int_equal(r.wake_ns, r.now_ns);
	assert_int_equal(rig_step(&r, 0), 2);
	rig_close(&r);
}

/* ---- costs ---- */

/* Bursts of @burst_ns until the engine knows them; then whether one more makes room. */
static bool makes_room(const struct engine_config *config, uint64_t burst_ns)
{
	uint32_t online, a;
	struct rig r;
	bool did;

	rig_open(&r, config, 1, 0);
	online = rig_online(&r);
	for (int i = 0; i < 20; i++) {
		rig_work(&r, online, true);
		rig_step(&r, 10 * MS);
		rig_work(&r, online, false);
		rig_step(&r, burst_ns);
	}
	a = rig_offline(&r);
	rig_step(&r, 10 * MS);
	rig_work(&r, online, true);
	rig_step(&r, 10 * MS);
	did = rig_did(&r, ENGINE_SUSPEND, a);
	assert_int_equal(rig_gpu(&r, RIG_GPU).denied_by_cost, !did);
	rig_close(&r);
	return did;
}

static void nobody_is_held_for_a_burst_that_gains_less_than_it_costs(void **state)
{
	struct engine_config config = rig_config(&rig_urgent_first);

	config.costs.suspend_ns = MS;
	config.costs.resume_ns = MS;
	config.costs.cycle_ns = MS;
	config.costs.disturbs_all = false;
	assert_false(makes_room(&config, 1 * MS));
	assert_true(makes_room(&config, 3 * MS));
	config.costs.disturbs_all = true;
	assert_false(makes_room(&config, 3 * MS));
	assert_true(makes_room(&config, 5 * MS));
}

static void a_burst_that_waited_for_what_room_costs_gets_it(void **state)
{
	struct engine_config config = rig_config(&rig_urgent_first);
	uint32_t online, a;
	struct rig r;

	config.costs.suspend_ns = config.costs.resume_ns = MS;
	config.costs.disturbs_all = false;
	rig_open(&r, &config, 1, 0);
	online = rig_online(&r);
	for (int i = 0; i < 20; i++) {
		rig_work(&r, online, true);
		rig_step(&r, 10 * MS);
		rig_work(&r, online, false);
		rig_step(&r, MS);
	}
	a = rig_offline(&r);
	rig_step(&r, 10 * MS);
	rig_work(&r, online, true);
	rig_step(&r, 10 * MS);
	assert_false(rig_did(&r, ENGINE_SUSPEND, a));
	assert_int_equal(r.wake_ns, r.now_ns + 2 * MS);
	rig_step(&r, 2 * MS);
	assert_true(rig_did(&r, ENGINE_SUSPEND, a));
	rig_close(&r);
}

static void what_is_not_known_of_a_burst_is_no_reason_against_it(void **state)
{
	struct engine_config config = rig_config(&rig_urgent_first);
	uint32_t online;
	struct rig r;

	config.costs.suspend_ns = SEC;
	rig_open(&r, &config, 1, 0);
	online = rig_online(&r);
	rig_offline(&r);
	rig_step(&r, MS);
	rig_work(&r, online, true);
	assert_int_equal(rig_step(&r, MS), 1);
	rig_close(&r);
}

static void a_job_just_let_go_is_left_on_unless_urgent_work_waits(void **state)
{
	struct engine_config config = rig_config(&rig_hold_all);
	uint32_t online, a;
	struct rig r;

	config.min_run_ns = 20 * MS;
	rig_open(&r, &config, 1, 0);
	online = rig_online(&r);
	a = rig_offline(&r);
	rig_step(&r, MS);
	config.policy = &rig_hold_none;
	engine_configure(r.e, &config);
	rig_step(&r, MS);
	assert_true(rig_did(&r, ENGINE_RESUME, a));
	config.policy = &rig_hold_all;
	engine_configure(r.e, &config);
	assert_int_equal(rig_step(&r, 19 * MS), 0);
	assert_int_equal(r.wake_ns, r.now_ns + MS);
	config.policy = &rig_urgent_first;
	engine_configure(r.e, &config);
	rig_work(&r, online, true);
	assert_int_equal(rig_step(&r, 500 * US), 1);
	rig_close(&r);
}

/* Bursts take 1 ms where room is made and 3 ms where it is not, so that it is worth the cycles. */
static void the_budget_of_cycles_is_kept_in_every_second(void **state)
{
	struct engine_config config = rig_config(&rig_urgent_first);
	uint64_t suspends = 0;
	uint32_t online, a;
	struct rig r;
	int left = 0;

	config.cycles_per_s = 40;
	config.costs.suspend_ns = config.costs.resume_ns = config.costs.cycle_ns = 0;
	rig_open(&r, &config, 1, 0);
	online = rig_online(&r);
	a = rig_offline(&r);
	for (int ms = 0; ms < 10000; ms++) {
		left = left <= 0 ? 3 : left - (rig_holds(&r, a) ? 3 : 1);
		rig_work(&r, online, left > 0);
		rig_step(&r, MS);
		suspends += rig_count(&r, ENGINE_SUSPEND);
		if (ms == 999)
			assert_in_range(rig_gpu(&r, RIG_GPU).cycles, 30, 41);
	}
	assert_in_range(rig_gpu(&r, RIG_GPU).cycles, 250, 400);
	assert_in_range(suspends, 125, 200);
	assert_true(rig_gpu(&r, RIG_GPU).denied_by_budget > 0);
	rig_close(&r);
}

static void entries_of_one_gpu_and_step_are_one_cycle(void **state)
{
	struct engine_config config = rig_config(&rig_hold_all);
	struct rig r;

	rig_open(&r, &config, 1, 0);
	for (int i = 0; i < 10; i++)
		rig_offline(&r);
	assert_int_equal(rig_step(&r, MS), 10);
	assert_int_equal(rig_gpu(&r, RIG_GPU).cycles, 1);
	rig_close(&r);
}

/* ---- the circuit breaker ---- */

static void one_failed_suspend_lets_all_go_and_no_more_are_tried_until_rearmed(void **state)
{
	struct engine_config config = rig_config(&rig_hold_all);
	struct rig r;

	rig_open(&r, &config, 1, 0);
	for (int i = 0; i < 3; i++)
		rig_offline(&r);
	r.silent = true;
	assert_int_equal(rig_step(&r, MS), 3);
	for (int i = 0; i < 3; i++)
		engine_report(r.e, r.now_ns, r.actions[i].ticket, i == 1 ? -EIO : 0, MS);
	assert_true(rig_gpu(&r, RIG_GPU).tripped);
	r.silent = false;
	assert_int_equal(rig_step(&r, MS), 3);
	assert_int_equal(rig_count(&r, ENGINE_RESUME), 3);
	for (int i = 0; i < 100; i++)
		assert_int_equal(rig_step(&r, 100 * MS), 0);
	assert_int_equal(engine_rearm(r.e, RIG_GPU + 1), -ENOENT);
	assert_int_equal(engine_rearm(r.e, RIG_GPU), 0);
	assert_int_equal(rig_step(&r, MS), 3);
	rig_close(&r);
}

static void a_failed_resume_is_tried_again_in_each_step_and_trips_too(void **state)
{
	struct engine_config config = rig_config(&rig_hold_all);
	struct rig r;
	uint32_t a;

	config.hold_max_ns = 10 * MS;
	rig_open(&r, &config, 1, 0);
	a = rig_offline(&r);
	rig_step(&r, MS);
	r.result = -EIO;
	rig_run_until(&r, ENGINE_RESUME, a);
	assert_true(rig_gpu(&r, RIG_GPU).tripped && rig_holds(&r, a));
	for (int i = 0; i < 10; i++) {
		rig_step(&r, r.wake_ns - r.now_ns);
		assert_true(rig_did(&r, ENGINE_RESUME, a));
		assert_true(r.wake_ns - r.now_ns <= config.interval_ns);
	}
	r.result = 0;
	rig_step(&r, MS);
	assert_false(rig_holds(&r, a));
	assert_int_equal(rig_step(&r, MS), 0);
	rig_close(&r);
}

static void a_job_that_is_gone_is_no_fault_of_the_gpu(void **state)
{
	struct engine_config config = rig_config(&rig_hold_all);
	struct rig r;
	uint32_t a;

	rig_open(&r, &config, 1, 0);
	a = rig_offline(&r);
	r.result = -ESRCH;
	assert_int_equal(rig_step(&r, MS), 1);
	assert_false(rig_gpu(&r, RIG_GPU).tripped);
	assert_false(rig_holds(&r, a));
	assert_int_equal(rig_step(&r, SEC), 0);
	rig_offline(&r);
	assert_int_equal(rig_step(&r, MS), 1);
	rig_close(&r);
}

/* ---- hints ---- */

static void only_online_jobs_may_hint(void **state)
{
	struct engine_config config = rig_config(&rig_urgent_first);
	struct rig r;
	uint32_t a;

	rig_open(&r, &config, 1, 0);
	a = rig_offline(&r);
	assert_int_equal(engine_hint(r.e, r.now_ns, a, r.now_ns, 0), -EPERM);
	assert_int_equal(engine_hint(r.e, r.now_ns, a + 1, r.now_ns, 0), -ENOENT);
	assert_int_equal(rig_step(&r, MS), 0);
	rig_close(&r);
}

static void a_hint_makes_room_at_once_and_is_over_when_no_work_comes(void **state)
{
	struct engine_config config = rig_config(&rig_urgent_first);
	uint64_t hint_ns;
	struct rig r;
	uint32_t online, a;

	rig_open(&r, &config, 1, 0);
	online = rig_online(&r);
	a = rig_offline(&r);
	rig_step(&r, MS);
	hint_ns = r.now_ns;
	assert_int_equal(engine_hint(r.e, r.now_ns, online, r.now_ns, 0), 0);
	assert_int_equal(rig_step(&r, 0), 1);
	rig_run_until(&r, ENGINE_RESUME, a);
	assert_int_equal(r.now_ns - hint_ns, config.hint_ns);
	rig_close(&r);
}

static void room_for_announced_work_is_ready_when_it_comes(void **state)
{
	struct engine_config config = rig_config(&rig_urgent_first);
	uint64_t at_ns;
	struct rig r;
	uint32_t online;

	rig_open(&r, &config, 1, 0);
	online = rig_online(&r);
	rig_offline(&r);
	rig_step(&r, MS);
	at_ns = r.now_ns + 3 * MS;
	assert_int_equal(engine_hint(r.e, r.now_ns, online, at_ns, 0), 0);
	rig_step(&r, 0);
	assert_int_equal(r.wake_ns, at_ns - config.costs.suspend_ns);
	assert_int_equal(r.n_actions, 0);
	assert_int_equal(rig_step(&r, r.wake_ns - r.now_ns), 1);
	rig_close(&r);
}

static void room_once_made_for_announced_work_is_kept_however_fast_it_was_made(void **state)
{
	struct engine_config config = rig_config(&rig_urgent_first);
	struct rig r;
	uint32_t online, a;
	uint64_t at_ns;

	config.costs.suspend_ns = 8 * MS;
	rig_open(&r, &config, 1, 0);
	online = rig_online(&r);
	a = rig_offline(&r);
	rig_step(&r, MS);
	at_ns = r.now_ns + 8 * MS;
	assert_int_equal(engine_hint(r.e, r.now_ns, online, at_ns, 0), 0);
	r.silent = true;
	assert_int_equal(rig_step(&r, 0), 1);
	engine_report(r.e, r.now_ns, r.actions[0].ticket, 0, 0);
	r.silent = false;
	assert_int_equal(rig_step(&r, 0), 0);
	rig_run(&r, at_ns - r.now_ns);
	assert_true(rig_holds(&r, a));
	assert_int_equal(rig_job(&r, a).preempted, 1);
	assert_int_equal(rig_gpu(&r, RIG_GPU).cycles, 1);
	rig_run_until(&r, ENGINE_RESUME, a);
	assert_int_equal(r.now_ns, at_ns + config.hint_ns);
	rig_close(&r);
}

static void a_hint_is_over_when_its_work_came_and_went_between_two_looks(void **state)
{
	struct engine_config config = rig_config(&rig_urgent_first);
	struct rig r;
	uint32_t online;

	rig_open(&r, &config, 1, 0);
	online = rig_online(&r);
	rig_offline(&r);
	rig_step(&r, MS);
	engine_hint(r.e, r.now_ns, online, r.now_ns, 0);
	assert_int_equal(rig_step(&r, 0), 1);
	r.samples[0].write = r.samples[0].read = 5;
	assert_int_equal(rig_step(&r, MS), 1);
	assert_int_equal(rig_count(&r, ENGINE_RESUME), 1);
	rig_close(&r);
}

static void several_hints_are_remembered_each_for_its_time(void **state)
{
	struct engine_config config = rig_config(&rig_urgent_first);
	struct rig r;
	uint32_t online, a;
	size_t suspends = 0;

	rig_open(&r, &config, 1, 0);
	online = rig_online(&r);
	a = rig_offline(&r);
	rig_step(&r, MS);
	for (uint64_t i = 20; i; i--)
		assert_int_equal(engine_hint(r.e, r.now_ns, online, r.now_ns + i * 50 * MS, 0), 0);
	for (int i = 0; i < 600; i++) {
		rig_step(&r, MS);
		suspends += rig_did(&r, ENGINE_SUSPEND, a);
	}
	assert_int_equal(suspends, 8);
	rig_close(&r);
}

/* ---- none ---- */

static void without_a_policy_nobody_is_held_whoever_waits(void **state)
{
	struct engine_config config = rig_config(&gpol_none);
	struct rig r;
	uint32_t online, a;

	rig_open(&r, &config, 1, 0);
	online = rig_online(&r);
	a = rig_offline(&r);
	for (int i = 0; i < 3; i++) {
		rig_work(&r, online, true);
		assert_int_equal(rig_step(&r, 5 * MS), 0);
		assert_int_equal(rig_step(&r, 5 * MS), 0);
		rig_work(&r, online, false);
		rig_step(&r, 5 * MS);
		rig_step(&r, 5 * MS);
	}
	assert_int_equal(rig_job(&r, a).preempted, 0);
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_gang_is_held_and_let_go_as_one),
		cmocka_unit_test(a_gang_is_not_held_if_one_of_it_may_not_be),
		cmocka_unit_test(the_first_bound_of_a_gang_ends_the_hold_of_all),
		cmocka_unit_test(a_tripped_gpu_keeps_the_whole_gang_on),
		cmocka_unit_test(a_gang_is_not_torn_apart_for_lack_of_room),
		cmocka_unit_test(nobody_is_held_for_a_burst_that_gains_less_than_it_costs),
		cmocka_unit_test(a_burst_that_waited_for_what_room_costs_gets_it),
		cmocka_unit_test(what_is_not_known_of_a_burst_is_no_reason_against_it),
		cmocka_unit_test(a_job_just_let_go_is_left_on_unless_urgent_work_waits),
		cmocka_unit_test(the_budget_of_cycles_is_kept_in_every_second),
		cmocka_unit_test(entries_of_one_gpu_and_step_are_one_cycle),
		cmocka_unit_test(
			one_failed_suspend_lets_all_go_and_no_more_are_tried_until_rearmed),
		cmocka_unit_test(a_failed_resume_is_tried_again_in_each_step_and_trips_too),
		cmocka_unit_test(a_job_that_is_gone_is_no_fault_of_the_gpu),
		cmocka_unit_test(only_online_jobs_may_hint),
		cmocka_unit_test(a_hint_makes_room_at_once_and_is_over_when_no_work_comes),
		cmocka_unit_test(room_for_announced_work_is_ready_when_it_comes),
		cmocka_unit_test(
			room_once_made_for_announced_work_is_kept_however_fast_it_was_made),
		cmocka_unit_test(a_hint_is_over_when_its_work_came_and_went_between_two_looks),
		cmocka_unit_test(several_hints_are_remembered_each_for_its_time),
		cmocka_unit_test(without_a_policy_nobody_is_held_whoever_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
