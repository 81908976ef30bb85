/* SPDX-License-Identifier: MIT */
/* Who is held, for whom, and when that ends. */
#include "tests/core/engine_rig.h"

static void an_online_job_takes_the_gpu_from_offline_jobs_and_gives_it_back(void **state)
{
	struct engine_config config = rig_config(&gpol_priority);
	uint32_t online, a, b;
	struct rig r;

	rig_open(&r, &config, 1, 0);
	online = rig_online(&r);
	a = rig_offline(&r);
	b = rig_offline(&r);
	assert_int_equal(rig_step(&r, 5 * MS), 0);
	rig_work(&r, online, true);
	assert_int_equal(rig_step(&r, 5 * MS), 2);
	assert_true(rig_did(&r, ENGINE_SUSPEND, a) && rig_did(&r, ENGINE_SUSPEND, b));
	assert_int_equal(r.actions[0].because, online);
	assert_int_equal(r.actions[0].queue, ENGINE_ALL_QUEUES);
	rig_work(&r, online, false);
	assert_int_equal(rig_step(&r, 5 * MS), 0); /* lingers */
	assert_int_equal(rig_step(&r, 5 * MS), 2);
	assert_true(rig_did(&r, ENGINE_RESUME, a) && rig_did(&r, ENGINE_RESUME, b));
	assert_int_equal(rig_job(&r, online).made_room, 2);
	assert_int_equal(rig_job(&r, a).preempted, 1);
	rig_close(&r);
}

static void only_offline_jobs_that_may_be_preempted_are_held_whatever_the_policy_says(void **state)
{
	static const struct {
		uint8_t class;
		uint32_t flags;
		bool held;
	} cases[] = {
		{ JOB_OFFLINE, ENGINE_JOB_PREEMPTIBLE, true },
		{ JOB_OFFLINE, 0, false },
		{ JOB_OFFLINE, ENGINE_JOB_AUTO_DEACTIVATE | ENGINE_JOB_LAZY, false },
		{ JOB_ONLINE, ENGINE_JOB_PREEMPTIBLE, false },
		{ JOB_ONLINE, 0, false },
	};
	struct engine_config config = rig_config(&rig_hold_all);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct engine_job_config job = {
			.gpu = RIG_GPU,
			.class = cases[i].class,
			.flags = cases[i].flags,
		};
		struct rig r;

		rig_open(&r, &config, 1, 0);
		rig_add(&r, &job, 1);
		assert_int_equal(rig_step(&r, 5 * MS), cases[i].held);
		rig_close(&r);
	}
}

static void a_job_that_may_no_longer_be_preempted_is_let_go(void **state)
{
	struct engine_config config = rig_config(&rig_hold_all);
	struct engine_job_config job = { .gpu = RIG_GPU };
	struct rig r;
	uint32_t a;

	rig_open(&r, &config, 1, 0);
	a = rig_offline(&r);
	rig_step(&r, 5 * MS);
	assert_true(rig_holds(&r, a));
	assert_int_equal(engine_change_job(r.e, a, &job), 0);
	rig_step(&r, 5 * MS);
	assert_true(rig_did(&r, ENGINE_RESUME, a));
	assert_int_equal(rig_step(&r, 5 * MS), 0);
	job.gpu++;
	assert_int_equal(engine_change_job(r.e, a, &job), -EINVAL);
	rig_close(&r);
}

static void an_offline_job_that_looks_idle_is_held_all_the_same(void **state)
{
	struct engine_config config = rig_config(&gpol_priority);
	uint32_t online, a;
	struct rig r;

	rig_open(&r, &config, 1, 0);
	online = rig_online(&r);
	a = rig_offline(&r);
	rig_work(&r, a, false);
	rig_run(&r, SEC);
	rig_work(&r, online, true);
	rig_step(&r, 5 * MS);
	assert_true(rig_did(&r, ENGINE_SUSPEND, a));
	rig_close(&r);
}

/* ---- ends ---- */

static void a_hold_ends_at_its_deadline_though_the_policy_insists(void **state)
{
	struct engine_config config = rig_config(&rig_hold_all);
	uint64_t began_ns;
	struct rig r;
	uint32_t a;

	config.hold_max_ns = 100 * MS;
	rig_open(&r, &config, 1, 0);
	a = rig_offline(&r);
	rig_work(&r, a, false);
	rig_step(&r, 5 * MS);
	began_ns = r.now_ns;
	assert_int_equal(r.actions[0].deadline_ns, began_ns + 100 * MS);
	rig_run_until(&r, ENGINE_RESUME, a);
	assert_in_range(r.now_ns, began_ns + 99 * MS, began_ns + 100 * MS);
	rig_close(&r);
}

static void a_waiting_job_is_let_go_at_its_bound_and_stays_no_longer_than_it_waited(void **state)
{
	struct engine_config config = rig_config(&rig_hold_all);
	struct engine_job_config job = {
		.gpu = RIG_GPU,
		.flags = ENGINE_JOB_PREEMPTIBLE,
		.wait_bound_ns = 50 * MS,
	};
	uint64_t began_ns, on_ns;
	struct rig r;
	uint32_t a;

	config.min_run_ns = 10 * MS;
	rig_open(&r, &config, 1, 0);
	a = rig_add(&r, &job, 1);
	rig_work(&r, a, true);
	rig_step(&r, 5 * MS);
	began_ns = r.now_ns;
	rig_run_until(&r, ENGINE_RESUME, a);
	on_ns = r.now_ns;
	assert_in_range(on_ns, began_ns + 49 * MS, began_ns + 50 * MS);
	rig_run_until(&r, ENGINE_SUSPEND, a);
	assert_int_equal(r.now_ns - on_ns, on_ns - began_ns);
	rig_close(&r);
}

/* The first hold leaves nothing to wait for; the job starts to wait in the middle of it. */
static void a_wait_begins_with_the_work_not_with_the_hold(void **state)
{
	struct engine_config config = rig_config(&rig_hold_all);
	uint64_t work_ns;
	struct rig r;
	uint32_t a;

	config.hold_max_ns = SEC;
	rig_open(&r, &config, 1, 0);
	a = rig_add(&r,
		    &(struct engine_job_config){ .gpu = RIG_GPU,
						 .flags = ENGINE_JOB_PREEMPTIBLE,
						 .wait_bound_ns = 50 * MS },
		    1);
	rig_step(&r, 5 * MS);
	rig_run(&r, 300 * MS);
	assert_true(rig_holds(&r, a) && !rig_job(&r, a).waits);
	rig_work(&r, a, true);
	rig_step(&r, 0);
	assert_true(rig_job(&r, a).waits);
	work_ns = r.now_ns;
	rig_run_until(&r, ENGINE_RESUME, a);
	assert_in_range(r.now_ns - work_ns, 49 * MS, 50 * MS);
	rig_close(&r);
}

static void online_work_waits_for_a_job_let_go_no_longer_than_its_own_bound(void **state)
{
	struct engine_config config = rig_config(&rig_urgent_first);
	struct engine_job_config online = {
		.gpu = RIG_GPU,
		.class = JOB_ONLINE,
		.wait_bound_ns = 20 * MS,
	};
	uint64_t on_ns;
	struct rig r;
	uint32_t a, urgent;

	config.hold_max_ns = SEC;
	config.min_run_ns = 5 * MS;
	rig_open(&r, &config, 1, 0);
	urgent = rig_add(&r, &online, 1);
	a = rig_offline(&r);
	rig_work(&r, urgent, true);
	rig_step(&r, 5 * MS);
	rig_run_until(&r, ENGINE_RESUME, a);
	on_ns = r.now_ns;
	rig_run_until(&r, ENGINE_SUSPEND, a);
	assert_int_equal(r.now_ns - on_ns, 20 * MS);
	rig_close(&r);
}

static void whatever_the_policy_short_waits_are_paid_back_in_full(void **state)
{
	struct engine_config config = rig_config(&rig_hold_all);
	struct rig r;
	uint32_t a;

	config.hold_max_ns = 20 * MS;
	rig_open(&r, &config, 1, 0);
	a = rig_offline(&r);
	rig_step(&r, 0);
	rig_run(&r, 10 * SEC);
	assert_in_range(rig_job(&r, a).ran_ns, 4 * SEC, 6 * SEC);
	assert_true(rig_job(&r, a).longest_wait_ns <= 20 * MS);
	rig_close(&r);
}

static void a_bound_shorter_than_the_interval_is_woken_for(void **state)
{
	struct engine_config config = rig_config(&rig_hold_all);
	struct engine_job_config job = {
		.gpu = RIG_GPU,
		.flags = ENGINE_JOB_PREEMPTIBLE,
		.wait_bound_ns = 2 * MS,
	};
	struct rig r;
	uint32_t a;

	rig_open(&r, &config, 1, 0);
	a = rig_add(&r, &job, 1);
	rig_work(&r, a, true);
	rig_step(&r, MS);
	assert_true(rig_did(&r, ENGINE_SUSPEND, a));
	assert_in_range(r.wake_ns, r.now_ns, r.now_ns + 2 * MS);
	rig_close(&r);
}

static void a_long_wait_earns_a_turn_not_as_long_a_rest(void **state)
{
	struct engine_config config = rig_config(&rig_hold_all);
	uint64_t on_ns;
	struct rig r;
	uint32_t a;

	rig_open(&r, &config, 1, 0);
	a = rig_offline(&r);
	rig_step(&r, 0);
	rig_run_until(&r, ENGINE_RESUME, a);
	on_ns = r.now_ns;
	rig_run_until(&r, ENGINE_SUSPEND, a);
	assert_int_equal(r.now_ns - on_ns, config.params.turn_ns);
	rig_close(&r);
}

/* Urgent work with gaps in which nothing gets done: each lets the job go, none serves it. */
static void gaps_too_short_to_run_in_do_not_begin_a_wait_anew(void **state)
{
	struct engine_config config = rig_config(&rig_urgent_first);
	uint32_t urgent, a;
	struct rig r;

	config.hold_max_ns = 200 * MS;
	config.min_run_ns = 10 * MS;
	rig_open(&r, &config, 1, 0);
	urgent = rig_online(&r);
	a = rig_offline(&r);
	for (int i = 0; i < 40; i++) {
		rig_work(&r, urgent, true);
		rig_step(&r, 100 * US);
		rig_run(&r, 10 * MS);
		rig_work(&r, urgent, false);
		rig_step(&r, 0);
	}
	assert_true(rig_job(&r, a).ran_ns >= 80 * MS);
	assert_true(rig_job(&r, a).longest_wait_ns <= 200 * MS);
	rig_close(&r);
}

/* ---- reports ---- */

static void an_action_is_not_repeated_while_its_report_is_outstanding(void **state)
{
	struct engine_config config = rig_config(&rig_urgent_first);
	struct engine_action suspend;
	uint32_t online, a;
	struct rig r;

	rig_open(&r, &config, 1, 0);
	online = rig_online(&r);
	a = rig_offline(&r);
	r.silent = true;
	rig_work(&r, online, true);
	assert_int_equal(rig_step(&r, 5 * MS), 1);
	suspend = r.actions[0];
	assert_int_equal(rig_step(&r, 5 * MS), 0);
	rig_work(&r, online, false);
	assert_int_equal(rig_step(&r, 5 * MS), 0);
	assert_int_equal(engine_report(r.e, r.now_ns, suspend.ticket, 0, MS), 0);
	assert_int_equal(engine_report(r.e, r.now_ns, suspend.ticket, 0, MS), -ENOENT);
	assert_int_equal(rig_step(&r, 5 * MS), 1);
	assert_true(rig_did(&r, ENGINE_RESUME, a));
	rig_work(&r, online, true);
	assert_int_equal(rig_step(&r, 5 * MS), 0);
	rig_report(&r, 0);
	rig_close(&r);
}

static void a_hold_ends_in_time_though_nobody_ever_reported_the_suspend(void **state)
{
	struct engine_config config = rig_config(&rig_hold_all);
	uint64_t began_ns;
	struct rig r;
	uint32_t a;

	config.hold_max_ns = 100 * MS;
	rig_open(&r, &config, 1, 0);
	a = rig_offline(&r);
	r.silent = true;
	rig_step(&r, 5 * MS);
	began_ns = r.now_ns;
	rig_run_until(&r, ENGINE_RESUME, a);
	assert_in_range(r.now_ns, began_ns + 99 * MS, began_ns + 100 * MS);
	assert_int_equal(rig_step(&r, SEC), 0);
	rig_close(&r);
}

static void what_acting_takes_is_learnt_from_reports(void **state)
{
	struct engine_config config = rig_config(&rig_hold_all);
	struct rig r;

	config.hold_max_ns = 10 * MS;
	rig_open(&r, &config, 1, 0);
	rig_offline(&r);
	assert_int_equal(rig_gpu(&r, RIG_GPU).suspend_ns, 500 * US);
	rig_run(&r, 2 * SEC);
	assert_in_range(rig_gpu(&r, RIG_GPU).suspend_ns, 100 * US, 101 * US);
	assert_in_range(rig_gpu(&r, RIG_GPU).resume_ns, 100 * US, 101 * US);
	rig_close(&r);
}

/* ---- order and room ---- */

static void what_does_not_fit_is_written_in_the_next_step_at_once(void **state)
{
	struct engine_config config = rig_config(&rig_hold_all);
	struct rig r;
	size_t n = 0;

	rig_open(&r, &config, 1, 0);
	for (int i = 0; i < 5; i++)
		rig_offline(&r);
	r.max = 2;
	for (int i = 0; i < 2; i++) {
		n += rig_step(&r, 0);
		assert_int_equal(r.wake_ns, r.now_ns);
	}
	n += rig_step(&r, 0);
	assert_int_equal(n, 5);
	assert_true(r.wake_ns > r.now_ns);
	rig_close(&r);
}

static void check_order(bool suspends_first)
{
	struct engine_config config = rig_config(&rig_urgent_first);
	struct engine_job_config second = {
		.gpu = RIG_GPU + 1,
		.flags = ENGINE_JOB_PREEMPTIBLE,
	};
	uint32_t online, other, a;
	struct rig r;

	config.costs.suspends_first = suspends_first;
	rig_open(&r, &config, 2, 0);
	online = rig_online(&r);
	rig_offline(&r);
	a = rig_add(&r, &second, 1);
	rig_work(&r, a, true);
	second.class = JOB_ONLINE;
	other = rig_add(&r, &second, 1);
	rig_work(&r, other, true);
	assert_int_equal(rig_step(&r, MS), 1);
	rig_work(&r, other, false);
	rig_work(&r, online, true);
	assert_int_equal(rig_step(&r, MS), 2);
	assert_int_equal(r.actions[suspends_first].verb, ENGINE_RESUME);
	assert_int_equal(r.actions[suspends_first].gpu, RIG_GPU + 1);
	assert_int_equal(r.actions[!suspends_first].verb, ENGINE_SUSPEND);
	rig_close(&r);
}

static void resumes_come_before_suspends(void **state)
{
	check_order(false);
}

static void where_two_must_not_be_on_together_suspends_come_first(void **state)
{
	check_order(true);
}

static void a_burst_is_detected_once_however_often_others_are_held_for_it(void **state)
{
	struct engine_config config = rig_config(&rig_urgent_first);
	struct rig r;
	uint32_t online;

	rig_open(&r, &config, 1, 0);
	online = rig_online(&r);
	rig_offline(&r);
	rig_step(&r, MS);
	rig_work(&r, online, true);
	assert_int_equal(rig_step(&r, MS), 1);
	assert_int_equal(rig_job(&r, online).detections, 1);
	rig_step(&r, SEC);
	rig_offline(&r); /* comes into its way a second later */
	assert_int_equal(rig_step(&r, MS), 1);
	assert_int_equal(rig_job(&r, online).made_room, 2);
	assert_int_equal(rig_job(&r, online).detections, 1);
	assert_int_equal(rig_job(&r, online).detect_ns, 0);
	rig_close(&r);
}

static void a_job_that_is_gone_takes_its_tickets_with_it(void **state)
{
	struct engine_config config = rig_config(&rig_hold_all);
	struct engine_job_stats stats;
	uint32_t a, b;
	struct rig r;

	rig_open(&r, &config, 1, 0);
	r.silent = true;
	a = rig_offline(&r);
	assert_int_equal(rig_step(&r, MS), 1);
	rig_remove(&r, a);
	assert_int_equal(engine_report(r.e, r.now_ns, r.actions[0].ticket, -EIO, MS), -ENOENT);
	assert_false(rig_gpu(&r, RIG_GPU).tripped);
	assert_int_equal(engine_remove_job(r.e, a), -ENOENT);
	for (int i = 0; i < 1000; i++) {
		b = rig_offline(&r);
		assert_int_not_equal(a, b);
		assert_int_equal(engine_job_stats(r.e, a, &stats), -ENOENT);
		rig_remove(&r, b);
	}
	rig_close(&r);
}

/* It is never off the GPU; what it waits for is that others are. */
static void online_work_waits_while_offline_work_is_beside_it(void **state)
{
	struct engine_config config = rig_config(&rig_hold_none);
	struct rig r;
	uint32_t online, a;

	rig_open(&r, &config, 1, 0);
	online = rig_online(&r);
	a = rig_offline(&r);
	rig_step(&r, MS);
	rig_work(&r, online, true);
	rig_step(&r, 0);
	rig_step(&r, 5 * MS);
	assert_int_equal(rig_job(&r, online).longest_wait_ns, 5 * MS);
	rig_work(&r, a, false);
	rig_step(&r, 0);
	rig_step(&r, 7 * MS);
	assert_int_equal(rig_job(&r, online).longest_wait_ns, 5 * MS);
	rig_work(&r, online, false);
	rig_step(&r, 0);
	rig_work(&r, a, true);
	rig_step(&r, 9 * MS);
	rig_work(&r, online, true);
	rig_step(&r, 0);
	rig_step(&r, 2 * MS);
	assert_int_equal(rig_job(&r, online).longest_wait_ns, 5 * MS);
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_online_job_takes_the_gpu_from_offline_jobs_and_gives_it_back),
		cmocka_unit_test(
			only_offline_jobs_that_may_be_preempted_are_held_whatever_the_policy_says),
		cmocka_unit_test(a_job_that_may_no_longer_be_preempted_is_let_go),
		cmocka_unit_test(an_offline_job_that_looks_idle_is_held_all_the_same),
		cmocka_unit_test(a_hold_ends_at_its_deadline_though_the_policy_insists),
		cmocka_unit_test(
			a_waiting_job_is_let_go_at_its_bound_and_stays_no_longer_than_it_waited),
		cmocka_unit_test(a_wait_begins_with_the_work_not_with_the_hold),
		cmocka_unit_test(online_work_waits_for_a_job_let_go_no_longer_than_its_own_bound),
		cmocka_unit_test(whatever_the_policy_short_waits_are_paid_back_in_full),
		cmocka_unit_test(a_bound_shorter_than_the_interval_is_woken_for),
		cmocka_unit_test(a_long_wait_earns_a_turn_not_as_long_a_rest),
		cmocka_unit_test(gaps_too_short_to_run_in_do_not_begin_a_wait_anew),
		cmocka_unit_test(an_action_is_not_repeated_while_its_report_is_outstanding),
		cmocka_unit_test(a_hold_ends_in_time_though_nobody_ever_reported_the_suspend),
		cmocka_unit_test(what_acting_takes_is_learnt_from_reports),
		cmocka_unit_test(what_does_not_fit_is_written_in_the_next_step_at_once),
		cmocka_unit_test(resumes_come_before_suspends),
		cmocka_unit_test(where_two_must_not_be_on_together_suspends_come_first),
		cmocka_unit_test(a_burst_is_detected_once_however_often_others_are_held_for_it),
		cmocka_unit_test(a_job_that_is_gone_takes_its_tickets_with_it),
		cmocka_unit_test(online_work_waits_while_offline_work_is_beside_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
