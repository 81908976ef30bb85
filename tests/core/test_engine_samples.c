/* SPDX-License-Identifier: MIT */
/* What samples tell, what they cannot do, and how often they are wanted. */
#include <stdalign.h>

#include "tests/core/engine_rig.h"

static const struct engine_sample wild[] = {
	{ .read = 5, .write = 4 },
	{ .read = 0, .write = UINT64_MAX },
	{ .read = UINT64_MAX, .write = 0 },
	{ .read = UINT64_MAX, .write = UINT64_MAX - 1 },
	{ .read = 7, .write = 7, .busy = true },
};

static void step_with(struct rig *r, const struct engine_sample *samples, size_t n, bool complete)
{
	struct engine_step step = {
		.now_ns = r->now_ns += MS,
		.samples = samples,
		.n_samples = n,
		.complete = complete,
		.actions = r->actions,
		.max = r->max,
	};

	engine_step(r->e, &step);
	r->n_actions = step.n_actions;
	r->wake_ns = step.wake_ns;
	if (!r->silent)
		rig_report(r, 0);
}

static void what_makes_no_sense_counts_as_work(void **state)
{
	struct engine_config config = rig_config(&rig_hold_none);

	for (size_t i = 0; i < sizeof(wild) / sizeof(wild[0]); i++) {
		struct engine_sample s = wild[i];
		struct rig r;

		rig_open(&r, &config, 1, 24);
		s.job = rig_online(&r);
		step_with(&r, &s, 1, true);
		assert_true(rig_job(&r, s.job).has_work);
		rig_close(&r);
	}
}

static void counters_that_go_backwards_count_as_work(void **state)
{
	struct engine_config config = rig_config(&rig_hold_none);
	struct engine_sample s = { .read = 9, .write = 9 };
	struct rig r;

	rig_open(&r, &config, 1, 24);
	s.job = rig_online(&r);
	step_with(&r, &s, 1, true);
	assert_false(rig_job(&r, s.job).has_work);
	s.read = s.write = 3;
	step_with(&r, &s, 1, true);
	assert_true(rig_job(&r, s.job).has_work);
	step_with(&r, &s, 1, true);
	assert_false(rig_job(&r, s.job).has_work);
	rig_close(&r);
}

/* Whatever it writes, it is held when urgent work comes and for no shorter than others. */
static void no_values_of_its_own_save_an_offline_job_from_being_held(void **state)
{
	struct engine_config config = rig_config(&gpol_priority);

	for (size_t i = 0; i < sizeof(wild) / sizeof(wild[0]); i++) {
		uint32_t online, liar, honest;
		struct rig r;

		rig_open(&r, &config, 1, 24);
		online = rig_online(&r);
		honest = rig_offline(&r);
		liar = rig_offline(&r);
		rig_step(&r, MS);
		rig_work(&r, online, true);
		for (int n = 0; n < 100; n++) {
			r.samples[2] = wild[(i + (size_t)n) % 5];
			r.samples[2].job = liar;
			rig_step(&r, MS);
			assert_true(rig_holds(&r, honest) && rig_holds(&r, liar));
		}
		rig_close(&r);
	}
}

static void queues_of_jobs_nobody_added_are_ignored(void **state)
{
	struct engine_config config = rig_config(&rig_hold_all);
	struct engine_sample s[] = {
		{ .job = 0, .write = 1 },
		{ .job = 255, .write = 1 },
		{ .job = 1u << 20, .write = 1 },
		{ .job = INT32_MAX, .write = 1 },
		{ .job = UINT32_MAX, .queue = 0, .write = 1 },
	};
	struct rig r;

	rig_open(&r, &config, 1, 24);
	for (int i = 0; i < 3; i++)
		step_with(&r, s, sizeof(s) / sizeof(s[0]), i % 2);
	assert_int_equal(r.n_actions, 0);
	rig_close(&r);
}

static void absence_means_something_only_where_samples_are_complete(void **state)
{
	struct engine_config config = rig_config(&rig_hold_none);
	struct engine_sample s[2] = { { .queue = 0, .write = 1 }, { .queue = 1 } };
	struct rig r;
	uint32_t a;

	rig_open(&r, &config, 1, 24);
	a = rig_add(&r, &(struct engine_job_config){ .gpu = RIG_GPU }, 0);
	s[0].job = s[1].job = a;
	step_with(&r, s, 2, true);
	assert_int_equal(rig_gpu(&r, RIG_GPU).slots_offline, 2);
	step_with(&r, &s[1], 1, false);
	step_with(&r, NULL, 0, false);
	assert_true(rig_job(&r, a).has_work);
	assert_int_equal(rig_gpu(&r, RIG_GPU).slots_offline, 2);
	step_with(&r, &s[1], 1, true);
	assert_false(rig_job(&r, a).has_work);
	assert_int_equal(rig_gpu(&r, RIG_GPU).slots_offline, 1);
	rig_close(&r);
}

static void the_order_of_samples_does_not_matter(void **state)
{
	struct engine_config config = rig_config(&rig_hold_none);
	struct engine_sample s[200];
	uint32_t jobs[20];
	uint64_t random = 1;
	struct rig r;

	rig_open(&r, &config, 1, 24);
	for (int i = 0; i < 20; i++)
		jobs[i] = rig_add(&r, &(struct engine_job_config){ .gpu = RIG_GPU }, 0);
	for (uint32_t i = 0; i < 200; i++)
		s[i] = (struct engine_sample){ .job = jobs[i % 20], .queue = i };
	for (int round = 0; round < 50; round++) {
		size_t n = 100 + (size_t)round * 2;

		for (size_t i = 199; i; i--) {
			size_t k = (random = random * 6364136223846793005u + 1) >> 33;
			struct engine_sample swap = s[i];

			k %= i + 1;
			s[i] = s[k];
			s[k] = swap;
			s[i].write = s[i].read + (s[i].queue % 20 == (uint32_t)round % 20);
		}
		s[0].write = s[0].read + (s[0].queue % 20 == (uint32_t)round % 20);
		step_with(&r, s, n, true);
		assert_int_equal(rig_gpu(&r, RIG_GPU).slots_offline, n);
		step_with(&r, s, 200, true);
		for (int i = 0; i < 20; i++)
			assert_int_equal(rig_job(&r, jobs[i]).has_work, i == round % 20);
	}
	rig_close(&r);
}

static void work_in_more_queues_than_can_be_remembered_is_seen(void **state)
{
	const struct engine_limits limits = { .gpus = 1, .jobs = 2, .queues = 3 };
	struct engine_config config = rig_config(&rig_urgent_first);
	struct engine_sample s[6];
	struct rig r = { .now_ns = SEC, .max = 8 };
	int hog, online;

	r.memory = malloc(engine_bytes(&limits));
	r.e = engine_init(r.memory, &limits, &config);
	engine_add_gpu(r.e, RIG_GPU, 0);
	hog = engine_add_job(
		r.e, SEC,
		&(struct engine_job_config){ .gpu = RIG_GPU, .flags = ENGINE_JOB_PREEMPTIBLE });
	online = engine_add_job(r.e, SEC,
				&(struct engine_job_config){ .gpu = RIG_GPU, .class = JOB_ONLINE });
	assert_int_equal(engine_add_job(r.e, SEC, &(struct engine_job_config){ .gpu = RIG_GPU }),
			 -ENOSPC);
	assert_int_equal(engine_add_job(r.e, SEC, &(struct engine_job_config){ .gpu = 1 }),
			 -ENODEV);
	assert_int_equal(engine_add_gpu(r.e, RIG_GPU, 0), -EEXIST);
	assert_int_equal(engine_add_gpu(r.e, 1, 0), -ENOSPC);
	for (uint32_t i = 0; i < 6; i++)
		s[i] = (struct engine_sample){ .job = (uint32_t)(i < 5 ? hog : online),
					       .queue = i,
					       .write = i < 5 };
	step_with(&r, s, 6, true);
	assert_int_equal(r.n_actions, 0);
	s[5].write = 1;
	step_with(&r, s, 6, true);
	assert_true(rig_did(&r, ENGINE_SUSPEND, (uint32_t)hog));
	s[5].read = 1;
	step_with(&r, s, 6, true);
	assert_true(rig_did(&r, ENGINE_RESUME, (uint32_t)hog));
	rig_close(&r);
}

static void where_progress_cannot_be_seen_only_hints_tell_of_work(void **state)
{
	struct engine_config config = rig_config(&rig_urgent_first);
	uint32_t online, a;
	struct rig r;

	config.costs.counts_progress = false;
	rig_open(&r, &config, 1, 24);
	online = rig_online(&r);
	a = rig_add(&r,
		    &(struct engine_job_config){ .gpu = RIG_GPU, .flags = ENGINE_JOB_PREEMPTIBLE },
		    1);
	rig_work(&r, online, true);
	rig_step(&r, MS);
	assert_false(rig_job(&r, online).has_work);
	assert_true(rig_job(&r, a).has_work);
	engine_hint(r.e, r.now_ns, online, r.now_ns, 0);
	assert_int_equal(rig_step(&r, 0), 1);
	rig_step(&r, config.hint_ns - 1);
	assert_true(rig_holds(&r, a));
	rig_step(&r, 1);
	assert_false(rig_holds(&r, a));
	rig_close(&r);
}

/* ---- how often ---- */

static void observation_is_as_frequent_as_what_could_be_preempted_demands(void **state)
{
	static const struct {
		bool offline;
		uint32_t flags;
		bool critical, tripped;
		uint64_t interval_ns;
	} cases[] = {
		{ false, 0, false, false, 50 * MS },
		{ false, 0, true, false, 50 * MS },
		{ true, 0, true, false, 50 * MS },
		{ true, ENGINE_JOB_PREEMPTIBLE, false, false, 5 * MS },
		{ true, ENGINE_JOB_PREEMPTIBLE, true, false, 1 * MS },
		{ true, ENGINE_JOB_PREEMPTIBLE, true, true, 50 * MS },
	};
	struct engine_config config = rig_config(&gpol_priority);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct engine_job_config job = { .gpu = RIG_GPU, .class = JOB_ONLINE };
		struct rig r;

		rig_open(&r, &config, 2, 0);
		job.flags = cases[i].critical ? ENGINE_JOB_CRITICAL : 0;
		rig_add(&r, &job, 1);
		job = (struct engine_job_config){ .gpu = RIG_GPU, .flags = cases[i].flags };
		if (cases[i].offline)
			rig_add(&r, &job, 1);
		if (cases[i].tripped) {
			rig_work(&r, 0, true);
			r.result = -EIO;
			rig_step(&r, MS);
			r.result = 0;
			rig_step(&r, MS);
			rig_work(&r, 0, false);
			rig_step(&r, MS);
		}
		rig_step(&r, SEC);
		assert_int_equal(r.wake_ns - r.now_ns, cases[i].interval_ns);
		rig_close(&r);
	}
}

static void one_gpu_with_something_to_preempt_sets_the_pace(void **state)
{
	struct engine_config config = rig_config(&gpol_priority);
	struct engine_job_config job = { .gpu = RIG_GPU + 1, .flags = ENGINE_JOB_PREEMPTIBLE };
	struct rig r;
	uint32_t a;

	rig_open(&r, &config, 2, 0);
	rig_online(&r);
	a = rig_add(&r, &job, 1);
	rig_step(&r, MS);
	assert_int_equal(r.wake_ns - r.now_ns, 5 * MS);
	rig_remove(&r, a);
	rig_step(&r, MS);
	assert_int_equal(r.wake_ns - r.now_ns, 50 * MS);
	rig_close(&r);
}

static void limits_that_cannot_be_are_refused(void **state)
{
	static const struct engine_limits bad[] = {
		{ UINT32_MAX, 1, 1 },
		{ 1, UINT32_MAX, 1 },
		{ 1, 1, UINT32_MAX },
	};
	static const struct engine_limits none = { 0 };
	struct engine_config config = rig_config(&gpol_priority);
	alignas(8) char memory[2048];
	struct engine_step step = { .now_ns = 5 };
	struct engine *e;

	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(engine_bytes(&bad[i]), 0);
		assert_null(engine_init(memory, &bad[i], &config));
	}
	assert_in_range(engine_bytes(&none), 1, sizeof(memory));
	e = engine_init(memory, &none, &config);
	engine_step(e, &step);
	assert_int_equal(step.wake_ns, 5 + config.idle_interval_ns);
	assert_int_equal(engine_add_gpu(e, 1, 1), -ENOSPC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_makes_no_sense_counts_as_work),
		cmocka_unit_test(counters_that_go_backwards_count_as_work),
		cmocka_unit_test(no_values_of_its_own_save_an_offline_job_from_being_held),
		cmocka_unit_test(queues_of_jobs_nobody_added_are_ignored),
		cmocka_unit_test(absence_means_something_only_where_samples_are_complete),
		cmocka_unit_test(the_order_of_samples_does_not_matter),
		cmocka_unit_test(work_in_more_queues_than_can_be_remembered_is_seen),
		cmocka_unit_test(where_progress_cannot_be_seen_only_hints_tell_of_work),
		cmocka_unit_test(observation_is_as_frequent_as_what_could_be_preempted_demands),
		cmocka_unit_test(one_gpu_with_something_to_preempt_sets_the_pace),
		cmocka_unit_test(limits_that_cannot_be_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
