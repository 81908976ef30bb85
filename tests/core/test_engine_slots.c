/* SPDX-License-Identifier: MIT */
/* Who finds a slot, and who is parked. */
#include "tests/core/engine_rig.h"

#define SLOTS 24
#define CAP 19 /* 80 % */

static uint32_t add(struct rig *r, uint32_t queues, uint32_t flags, bool work)
{
	const struct engine_job_config config = {
		.gpu = RIG_GPU,
		.flags = ENGINE_JOB_PREEMPTIBLE | flags,
	};
	uint32_t job = rig_add(r, &config, queues);

	rig_work(r, job, work);
	return job;
}

static struct engine_config slots_config(void)
{
	struct engine_config config = rig_config(&rig_hold_none);

	config.slot_turn_ns = 50 * MS;
	return config;
}

static void a_hundred_offline_queues_on_24_slots_all_progress(void **state)
{
	struct engine_config config = slots_config();
	uint32_t jobs[100];
	struct rig r;

	rig_open(&r, &config, 1, SLOTS);
	for (int i = 0; i < 100; i++)
		jobs[i] = add(&r, 1, 0, true);
	rig_step(&r, 0);
	assert_int_equal(rig_gpu(&r, RIG_GPU).slots_offline, CAP);
	for (int i = 0; i < 1000; i++) {
		rig_run(&r, 10 * MS);
		assert_true(rig_gpu(&r, RIG_GPU).slots_offline <= CAP);
	}
	/* A fair part of 10 s would be 1.9 s. */
	for (int i = 0; i < 100; i++) {
		assert_in_range(rig_job(&r, jobs[i]).ran_ns, 1700 * MS, 2100 * MS);
		assert_true(rig_job(&r, jobs[i]).longest_wait_ns < 500 * MS);
	}
	/* One batch out and one in for each turn. */
	assert_true(rig_gpu(&r, RIG_GPU).cycles <= 2 * (10000 / 50) + 2);
	rig_close(&r);
}

static void jobs_have_slots_for_all_their_queues_or_for_none(void **state)
{
	struct engine_config config = slots_config();
	uint32_t jobs[8];
	struct rig r;

	rig_open(&r, &config, 1, SLOTS);
	for (int i = 0; i < 8; i++)
		jobs[i] = add(&r, 5, 0, true);
	rig_step(&r, 0);
	assert_int_equal(rig_gpu(&r, RIG_GPU).slots_offline, 15);
	rig_run(&r, 10 * SEC);
	for (int i = 0; i < 8; i++)
		assert_in_range(rig_job(&r, jobs[i]).ran_ns, 3 * SEC, 4500 * MS);
	rig_close(&r);
}

static void a_job_too_large_for_all_slots_is_let_in_alone(void **state)
{
	struct engine_config config = slots_config();
	uint32_t large, small[10];
	struct rig r;

	rig_open(&r, &config, 1, SLOTS);
	for (int i = 0; i < 10; i++)
		small[i] = add(&r, 1, 0, true);
	large = add(&r, 30, 0, true);
	for (int i = 0; i < 1000; i++) {
		rig_run(&r, 10 * MS);
		if (!rig_holds(&r, large))
			assert_int_equal(rig_gpu(&r, RIG_GPU).slots_offline, 30);
	}
	assert_true(rig_job(&r, large).ran_ns > 3 * SEC);
	for (int i = 0; i < 10; i++)
		assert_true(rig_job(&r, small[i]).ran_ns > 3 * SEC);
	rig_close(&r);
}

/* Small ones come and go all the time; each would find room before there is room for it. */
static void a_large_job_in_line_is_not_overtaken_by_small_ones(void **state)
{
	struct engine_config config = slots_config();
	uint32_t large, small[CAP];
	struct rig r;

	rig_open(&r, &config, 1, SLOTS);
	for (int i = 0; i < CAP; i++)
		small[i] = add(&r, 1, 0, true);
	rig_step(&r, MS);
	large = add(&r, CAP - 3, 0, true);
	for (int i = 0; i < 1000; i++) {
		rig_run(&r, MS);
		rig_remove(&r, small[i % CAP]);
		small[i % CAP] = add(&r, 1, 0, true);
	}
	assert_true(rig_job(&r, large).longest_wait_ns <= 2 * config.slot_turn_ns);
	assert_true(rig_job(&r, large).ran_ns > 300 * MS);
	rig_close(&r);
}

static void the_reserve_follows_online_queues_in_use_and_has_a_floor(void **state)
{
	const struct engine_job_config online = { .gpu = RIG_GPU, .class = JOB_ONLINE };
	struct engine_config config = slots_config();
	struct rig r;
	uint32_t job;

	rig_open(&r, &config, 1, SLOTS);
	job = rig_add(&r, &online, 10);
	for (int i = 0; i < 40; i++)
		add(&r, 1, 0, true);
	rig_step(&r, MS);
	assert_int_equal(rig_gpu(&r, RIG_GPU).slots_reserved, 3);
	assert_int_equal(rig_gpu(&r, RIG_GPU).slots_offline, CAP);
	rig_work(&r, job, true);
	rig_step(&r, MS);
	assert_int_equal(rig_gpu(&r, RIG_GPU).slots_reserved, 10);
	assert_int_equal(rig_gpu(&r, RIG_GPU).slots_offline, SLOTS - 10);
	assert_int_equal(rig_gpu(&r, RIG_GPU).slots_online, 10);
	rig_work(&r, job, false);
	rig_step(&r, MS);
	assert_int_equal(rig_gpu(&r, RIG_GPU).slots_reserved, 10);
	rig_run(&r, 100 * MS);
	assert_int_equal(rig_gpu(&r, RIG_GPU).slots_reserved, 3);
	assert_int_equal(rig_gpu(&r, RIG_GPU).slots_offline, CAP);
	rig_close(&r);
}

static void a_lazy_job_has_no_slot_before_its_first_work(void **state)
{
	struct engine_config config = slots_config();
	struct rig r;
	uint32_t a;

	rig_open(&r, &config, 1, SLOTS);
	a = add(&r, 4, ENGINE_JOB_LAZY, false);
	rig_step(&r, MS);
	assert_true(rig_did(&r, ENGINE_SUSPEND, a));
	assert_int_equal(r.actions[0].because, GPOL_NOBODY);
	rig_run(&r, SEC);
	assert_true(rig_holds(&r, a));
	rig_work(&r, a, true);
	rig_step(&r, MS);
	assert_true(rig_did(&r, ENGINE_RESUME, a));
	rig_work(&r, a, false);
	rig_run(&r, SEC);
	assert_false(rig_holds(&r, a));
	rig_close(&r);
}

static void an_idle_job_gives_its_slots_back_and_gets_them_when_work_comes(void **state)
{
	struct engine_config config = slots_config();
	uint64_t idle_ns;
	struct rig r;
	uint32_t a;

	rig_open(&r, &config, 1, SLOTS);
	a = add(&r, 2, ENGINE_JOB_AUTO_DEACTIVATE, true);
	rig_run(&r, SEC);
	assert_false(rig_holds(&r, a));
	rig_work(&r, a, false);
	rig_step(&r, MS);
	idle_ns = r.now_ns;
	rig_run_until(&r, ENGINE_SUSPEND, a);
	assert_int_equal(r.now_ns - idle_ns, config.idle_queue_ns);
	rig_work(&r, a, true);
	rig_step(&r, MS);
	assert_true(rig_did(&r, ENGINE_RESUME, a));
	rig_close(&r);
}

static void a_parked_job_is_let_go_by_its_deadline_like_any_other(void **state)
{
	struct engine_config config = slots_config();
	struct rig r;
	uint32_t a;

	config.hold_max_ns = 100 * MS;
	config.min_run_ns = 10 * MS;
	rig_open(&r, &config, 1, SLOTS);
	a = add(&r, 1, ENGINE_JOB_LAZY, false);
	rig_step(&r, MS);
	rig_run(&r, 99 * MS + 900 * US);
	assert_false(rig_holds(&r, a));
	rig_run(&r, 20 * MS);
	assert_true(rig_holds(&r, a));
	rig_close(&r);
}

static void where_few_slots_are_free_idle_jobs_are_parked_the_longest_idle_first(void **state)
{
	const struct engine_job_config online = { .gpu = RIG_GPU, .class = JOB_ONLINE };
	struct engine_config config = slots_config();
	uint32_t idle[5];
	struct rig r;

	config.low_water = 2;
	rig_open(&r, &config, 1, SLOTS);
	rig_add(&r, &online, 8);
	for (int i = 0; i < 5; i++)
		idle[i] = add(&r, 1, 0, true);
	rig_step(&r, MS);
	for (int i = 5; i--;) {
		rig_work(&r, idle[i], false);
		rig_step(&r, MS);
	}
	assert_false(rig_holds(&r, idle[4]));
	add(&r, 11, 0, true);
	rig_step(&r, MS);
	assert_true(rig_did(&r, ENGINE_SUSPEND, idle[4]));
	assert_true(rig_did(&r, ENGINE_SUSPEND, idle[3]));
	assert_int_equal(r.n_actions, 2);
	rig_close(&r);
}

static void idle_jobs_give_way_to_those_that_wait_for_slots(void **state)
{
	struct engine_config config = slots_config();
	uint32_t idle, busy;
	struct rig r;

	rig_open(&r, &config, 1, SLOTS);
	idle = add(&r, 15, 0, false);
	rig_run(&r, 10 * MS);
	busy = add(&r, 10, 0, true);
	rig_step(&r, MS);
	assert_true(rig_holds(&r, idle));
	rig_run(&r, SEC);
	assert_false(rig_holds(&r, busy));
	assert_int_equal(rig_job(&r, busy).preempted, 0);
	rig_close(&r);
}

static void without_progress_to_see_nobody_is_parked_for_being_idle(void **state)
{
	struct engine_config config = slots_config();
	struct rig r;
	uint32_t a;

	config.costs.counts_progress = false;
	rig_open(&r, &config, 1, SLOTS);
	a = add(&r, 1, ENGINE_JOB_LAZY | ENGINE_JOB_AUTO_DEACTIVATE, false);
	rig_run(&r, SEC);
	assert_int_equal(rig_job(&r, a).preempted, 0);
	rig_close(&r);
}

static void gangs_find_slots_on_all_their_gpus_or_wait(void **state)
{
	struct engine_config config = slots_config();
	uint32_t jobs[6][2];
	struct rig r;

	rig_open(&r, &config, 2, SLOTS);
	for (uint32_t i = 0; i < 6; i++) {
		for (uint32_t g = 0; g < 2; g++) {
			const struct engine_job_config job = {
				.gpu = RIG_GPU + g,
				.gang = i + 1,
				.flags = ENGINE_JOB_PREEMPTIBLE,
			};

			jobs[i][g] = rig_add(&r, &job, 8);
			rig_work(&r, jobs[i][g], true);
		}
	}
	for (int n = 0; n < 1000; n++) {
		rig_run(&r, 10 * MS);
		for (int i = 0; i < 6; i++)
			assert_int_equal(rig_holds(&r, jobs[i][0]), rig_holds(&r, jobs[i][1]));
	}
	for (int i = 0; i < 6; i++)
		assert_in_range(rig_job(&r, jobs[i][0]).ran_ns, 3 * SEC, 3700 * MS);
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_hundred_offline_queues_on_24_slots_all_progress),
		cmocka_unit_test(jobs_have_slots_for_all_their_queues_or_for_none),
		cmocka_unit_test(a_job_too_large_for_all_slots_is_let_in_alone),
		cmocka_unit_test(a_large_job_in_line_is_not_overtaken_by_small_ones),
		cmocka_unit_test(the_reserve_follows_online_queues_in_use_and_has_a_floor),
		cmocka_unit_test(a_lazy_job_has_no_slot_before_its_first_work),
		cmocka_unit_test(an_idle_job_gives_its_slots_back_and_gets_them_when_work_comes),
		cmocka_unit_test(a_parked_job_is_let_go_by_its_deadline_like_any_other),
		cmocka_unit_test(
			where_few_slots_are_free_idle_jobs_are_parked_the_longest_idle_first),
		cmocka_unit_test(idle_jobs_give_way_to_those_that_wait_for_slots),
		cmocka_unit_test(without_progress_to_see_nobody_is_parked_for_being_idle),
		cmocka_unit_test(gangs_find_slots_on_all_their_gpus_or_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
