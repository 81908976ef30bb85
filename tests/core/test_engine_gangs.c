/* SPDX-License-Identifier: MIT */
/* Gangs on several GPUs, whose policies know nothing of each other. */
#include "tests/core/engine_rig.h"

#define GANGS 2
#define GPUS 2

struct gangs {
	struct rig rig;
	uint32_t jobs[GANGS][GPUS];
};

static struct engine_config config_of(const struct gpol_ops *policy)
{
	struct engine_config config = engine_config_default;

	config.policy = policy;
	return config;
}

static uint32_t add_member(struct rig *r, uint32_t gang, uint32_t gpu, uint32_t queues)
{
	const struct engine_job_config job = {
		.gpu = RIG_GPU + gpu,
		.gang = gang,
		.flags = ENGINE_JOB_PREEMPTIBLE,
	};
	uint32_t id = rig_add(r, &job, queues);

	rig_work(r, id, true);
	return id;
}

/* Two gangs, each with a job on both GPUs. */
static void open_gangs(struct gangs *t, const struct gpol_ops *policy)
{
	struct engine_config config = config_of(policy);

	rig_open(&t->rig, &config, GPUS, 0);
	for (uint32_t i = 0; i < GANGS; i++) {
		for (uint32_t gpu = 0; gpu < GPUS; gpu++)
			t->jobs[i][gpu] = add_member(&t->rig, 1 + i, gpu, 1);
	}
}

static uint64_t ran(const struct gangs *t, uint32_t gang, uint32_t gpu)
{
	return rig_job(&t->rig, t->jobs[gang][gpu]).ran_ns;
}

static void expect_equal_parts(const struct gpol_ops *policy)
{
	struct gangs t;

	open_gangs(&t, policy);
	rig_run(&t.rig, 10 * SEC);
	for (uint32_t i = 0; i < GANGS; i++) {
		for (uint32_t gpu = 0; gpu < GPUS; gpu++)
			assert_in_range(ran(&t, i, gpu), 4500 * MS, 5500 * MS);
	}
	rig_close(&t.rig);
}

static void gangs_take_turns_though_their_gpus_disagree_whose_it_is(void **state)
{
	expect_equal_parts(&gpol_rotate);
	expect_equal_parts(&gpol_share);
}

static void a_gang_has_turns_where_it_is_idle_too(void **state)
{
	struct gangs t;

	open_gangs(&t, &gpol_rotate);
	rig_work(&t.rig, t.jobs[0][0], false);
	rig_run(&t.rig, 10 * SEC);
	assert_in_range(ran(&t, 0, 1), 4500 * MS, 5500 * MS);
	assert_in_range(ran(&t, 1, 1), 4500 * MS, 5500 * MS);
	rig_close(&t.rig);
}

/* The other's GPU would have no reason to look again. */
static void work_of_a_gang_is_news_on_all_its_gpus(void **state)
{
	struct engine_config config = config_of(&gpol_rotate);
	uint32_t other, a, b;
	struct rig r;

	rig_open(&r, &config, GPUS, 0);
	other = add_member(&r, ENGINE_NO_GANG, 0, 1);
	a = add_member(&r, 1, 0, 1);
	b = add_member(&r, 1, 1, 1);
	rig_work(&r, a, false);
	rig_work(&r, b, false);
	rig_run(&r, SEC);
	assert_false(rig_holds(&r, other));
	rig_work(&r, b, true);
	rig_run(&r, config.interval_ns);
	assert_true(rig_holds(&r, other));
	rig_close(&r);
}

static void a_gang_is_not_held_for_one_of_its_own(void **state)
{
	struct engine_config config = config_of(&gpol_rotate);
	uint32_t a, b;
	struct rig r;

	rig_open(&r, &config, 1, 0);
	a = add_member(&r, 1, 0, 1);
	b = add_member(&r, 1, 0, 1);
	rig_run(&r, SEC);
	assert_int_equal(rig_job(&r, a).preempted, 0);
	assert_int_equal(rig_job(&r, b).preempted, 0);
	rig_close(&r);
}

/* In the middle of a run that only online work may end. */
static void online_work_is_the_reason_before_whoever_has_a_turn(void **state)
{
	struct engine_config config = config_of(&gpol_rotate);
	uint32_t a, b, online;
	struct rig r;

	config.min_run_ns = 50 * MS;
	config.params.turn_ns = 20 * MS;
	rig_open(&r, &config, GPUS, 0);
	add_member(&r, ENGINE_NO_GANG, 0, 1);
	a = add_member(&r, 1, 0, 1);
	b = add_member(&r, 1, 1, 1);
	online = rig_add(&r, &(struct engine_job_config){ .gpu = RIG_GPU + 1, .class = JOB_ONLINE },
			 1);
	rig_run_until(&r, ENGINE_SUSPEND, a);
	rig_run_until(&r, ENGINE_RESUME, a);
	rig_run(&r, 21 * MS); /* the turn is the other's, who is not held for lack of a run */
	assert_false(rig_holds(&r, a));
	rig_work(&r, online, true);
	rig_step(&r, 0);
	assert_true(rig_did(&r, ENGINE_SUSPEND, b));
	assert_int_equal(r.actions[0].because, online);
	rig_close(&r);
}

/* Turns on the two GPUs end at different times. */
static void a_gang_is_not_starved_by_those_that_need_slots_on_one_gpu_only(void **state)
{
	struct engine_config config = rig_config(&rig_hold_none);
	uint32_t gang;
	struct rig r;

	config.hold_max_ns = 100 * SEC;
	config.online_permille = 0;
	config.offline_permille = 1000;
	rig_open(&r, &config, GPUS, 2);
	for (uint32_t gpu = 0; gpu < GPUS; gpu++) {
		add_member(&r, ENGINE_NO_GANG, gpu, 2);
		add_member(&r, ENGINE_NO_GANG, gpu, 2);
		rig_run(&r, 50 * MS);
	}
	rig_run(&r, 330 * MS);
	gang = add_member(&r, 1, 0, 2);
	add_member(&r, 1, 1, 2);
	rig_run(&r, 10 * SEC);
	assert_true(rig_job(&r, gang).longest_wait_ns < SEC);
	assert_true(rig_job(&r, gang).ran_ns > 2 * SEC);
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gangs_take_turns_though_their_gpus_disagree_whose_it_is),
		cmocka_unit_test(a_gang_has_turns_where_it_is_idle_too),
		cmocka_unit_test(work_of_a_gang_is_news_on_all_its_gpus),
		cmocka_unit_test(a_gang_is_not_held_for_one_of_its_own),
		cmocka_unit_test(online_work_is_the_reason_before_whoever_has_a_turn),
		cmocka_unit_test(a_gang_is_not_starved_by_those_that_need_slots_on_one_gpu_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
