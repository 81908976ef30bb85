/* SPDX-License-Identifier: MIT */
/* A GPU that one process has at a time, and the slices that gpreemptd gives. */
#include "tests/sim/sim_rig.h"

#define CHANGE (200 * USEC)
#define SLICE (2 * MSEC)

/* A request of 1 ms every 20, and @n offline processes without an end. */
static void make_turns(struct sim_rig *rig, uint32_t n)
{
	struct sim_job *online;

	sim_rig_init(rig);
	rig->s.duration_ns = 10 * SEC;
	rig->costs.counts_progress = false;
	rig->costs.change_ns = CHANGE;
	rig->costs.slice_ns = SLICE;
	rig->costs.short_slice_ns = USEC;
	rig->costs.long_slice_ns = 50 * MSEC;
	online = sim_rig_job(rig, JOB_ONLINE, 10, 100 * USEC);
	online->arrival = SIM_POISSON;
	online->rate_mhz = 50 * 1000;
	sim_rig_job(rig, JOB_OFFLINE, 100, 100 * USEC)->copies = n;
	stub_reset(STUB_IDLE);
}

static struct sim_result run(const struct sim_rig *rig, enum sim_mode mode,
			     const struct gpol_ops *policy)
{
	const struct sim_options options = { .mode = mode, .policy = policy, .seed = 1 };
	struct sim_result r;

	assert_int_equal(sim_run(&rig->s, &options, &r), 0);
	return r;
}

static struct sim_quantiles online(const struct sim_rig *rig, enum sim_mode mode,
				   const struct gpol_ops *policy)
{
	struct sim_result r = run(rig, mode, policy);
	struct sim_quantiles q = r.online;

	sim_result_done(&r);
	return q;
}

static void whoever_is_alone_has_the_gpu_without_a_change(void **state)
{
	struct sim_rig rig;
	struct sim_quantiles q;

	make_turns(&rig, 1);
	q = online(&rig, SIM_ALONE, NULL);
	assert_int_equal(q.p50_ns, MSEC);
	assert_in_range(q.max_ns, MSEC, 3 * MSEC + CHANGE); /* the first; some come in twos */
}

/* Where in a slice a request comes is for chance to say. */
static void without_preemption_a_request_waits_for_the_slice_to_end(void **state)
{
	struct sim_rig rig;
	struct sim_quantiles q;

	make_turns(&rig, 1);
	q = online(&rig, SIM_NONE, NULL);
	assert_in_range(q.p50_ns, MSEC + CHANGE + SLICE * 4 / 10, MSEC + CHANGE + SLICE * 6 / 10);
	assert_in_range(q.p99_ns, MSEC + CHANGE + SLICE * 9 / 10, MSEC + CHANGE + SLICE);
}

static void with_several_it_waits_for_the_slices_of_all(void **state)
{
	struct sim_rig rig;
	struct sim_quantiles q;

	make_turns(&rig, 4);
	q = online(&rig, SIM_NONE, NULL);
	assert_in_range(q.p99_ns, MSEC + CHANGE + 3 * SLICE, MSEC + CHANGE + 4 * (SLICE + CHANGE));
}

static void changes_are_lost_to_all(void **state)
{
	struct sim_result r;
	struct sim_rig rig;

	make_turns(&rig, 2);
	rig.s.n_jobs = 2;
	rig.jobs[0] = rig.jobs[1];
	rig.s.n_jobs = 1;
	r = run(&rig, SIM_NONE, NULL);
	assert_in_range(r.work_ns, 10 * SEC * 10 / 11 - 20 * MSEC, 10 * SEC * 10 / 11 + 20 * MSEC);
	assert_in_range(r.jobs[0].gpu_ns, r.work_ns / 2 - 10 * MSEC, r.work_ns / 2 + 10 * MSEC);
	sim_result_done(&r);
}

static void the_daemons_slices_let_an_online_process_in_at_once(void **state)
{
	struct sim_rig rig;
	struct sim_quantiles q;

	make_turns(&rig, 1);
	q = online(&rig, SIM_ENGINE, &gpol_priority);
	assert_in_range(q.p50_ns, MSEC + CHANGE, MSEC + CHANGE + USEC);
	assert_in_range(q.p99_ns, MSEC + CHANGE, 2 * (MSEC + CHANGE));
}

/* Where several would only change among each other they keep their slices, unless one is on. */
static void short_slices_are_for_one_offline_process_at_a_time(void **state)
{
	struct sim_rig rig;

	make_turns(&rig, 4);
	assert_true(online(&rig, SIM_ENGINE, &gpol_priority).p50_ns > MSEC + CHANGE + SLICE);
	make_turns(&rig, 4);
	assert_true(online(&rig, SIM_ENGINE, &gpol_rotate).p50_ns < MSEC + 5 * (CHANGE + USEC));
}

static void without_a_policy_and_without_offline_work_slices_stay_what_they_are(void **state)
{
	struct sim_rig rig;

	make_turns(&rig, 1);
	assert_true(online(&rig, SIM_ENGINE, &gpol_none).p50_ns > MSEC + CHANGE + SLICE / 3);
	make_turns(&rig, 0);
	rig.jobs[0].copies = 2;
	rig.jobs[0].rate_mhz = 900 * 1000;
	assert_true(online(&rig, SIM_ENGINE, &gpol_rotate).p99_ns < 10 * MSEC);
}

/* Two online processes would wait for the end of each other's long slices. */
static void long_slices_are_for_an_only_online_process(void **state)
{
	struct sim_rig rig;
	uint64_t two, one;

	make_turns(&rig, 1);
	rig.models[0].kernel_ns = 3 * MSEC; /* 30 ms: longer than a slice, less than a long one */
	rig.jobs[0].rate_mhz = 5 * 1000;
	one = online(&rig, SIM_ENGINE, &gpol_rotate).p50_ns;
	assert_in_range(one, 30 * MSEC + CHANGE, 30 * MSEC + CHANGE + 10 * USEC);
	rig.jobs[0].copies = 2;
	two = online(&rig, SIM_ENGINE, &gpol_rotate).p50_ns;
	assert_true(two > 30 * MSEC + 10 * CHANGE);
}

static void the_scenario_and_the_costs_say_who_gets_the_gpu(void **state)
{
	struct sim_rig rig;

	make_turns(&rig, 1);
	rig.s.policy[0] = '\0';
	rig.s.params.turn_ns = 0;
	assert_ptr_equal(sim_scenario_policy(&rig.s), &gpol_rotate);
	online(&rig, SIM_ENGINE, NULL);
	assert_ptr_equal(stub.config.policy, &gpol_rotate);
	assert_int_equal(stub.config.params.turn_ns, 200 * MSEC);
	assert_true(stub.config.costs.suspends_first);
	rig.costs.change_ns = 0;
	assert_ptr_equal(sim_scenario_policy(&rig.s), &gpol_priority);
	online(&rig, SIM_ENGINE, NULL);
	assert_int_equal(stub.config.params.turn_ns, gpol_params_default.turn_ns);
	assert_false(stub.config.costs.suspends_first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whoever_is_alone_has_the_gpu_without_a_change),
		cmocka_unit_test(without_preemption_a_request_waits_for_the_slice_to_end),
		cmocka_unit_test(with_several_it_waits_for_the_slices_of_all),
		cmocka_unit_test(changes_are_lost_to_all),
		cmocka_unit_test(the_daemons_slices_let_an_online_process_in_at_once),
		cmocka_unit_test(short_slices_are_for_one_offline_process_at_a_time),
		cmocka_unit_test(
			without_a_policy_and_without_offline_work_slices_stay_what_they_are),
		cmocka_unit_test(long_slices_are_for_an_only_online_process),
		cmocka_unit_test(the_scenario_and_the_costs_say_who_gets_the_gpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
