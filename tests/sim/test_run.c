/* SPDX-License-Identifier: MIT */
/* Whole runs: what the modes are, what a client does, and input that makes little sense. */
#include <errno.h>
#include <string.h>

#include "sim/arrival.h"
#include "tests/sim/sim_rig.h"

static const enum sim_mode modes[] = {
	SIM_ENGINE, SIM_ALONE, SIM_NONE, SIM_STREAM_PRIORITY, SIM_SEQUENTIAL,
};

/* An online job, 2 ms of work 100 times a second, and a continuous offline one of 10 ms. */
static void make_pair(struct sim_rig *rig)
{
	struct sim_job *online;

	sim_rig_init(rig);
	online = sim_rig_job(rig, JOB_ONLINE, 20, 100 * USEC);
	sim_rig_model(rig, online)->gap_ns = 1;
	online->arrival = SIM_PERIODIC;
	online->rate_mhz = 100 * 1000;
	sim_rig_job(rig, JOB_OFFLINE, 100, 100 * USEC);
}

static uint64_t online_mean(const struct sim_rig *rig, enum sim_mode mode)
{
	struct sim_result r = sim_rig_run(rig, mode, 1);
	uint64_t mean = r.online.mean_ns;

	sim_result_done(&r);
	return mean;
}

static void the_modes_differ_as_they_should(void **state)
{
	struct sim_rig rig;

	make_pair(&rig);
	stub_reset(STUB_PREEMPTS);
	assert_int_equal(online_mean(&rig, SIM_ALONE), 2 * MSEC + 19);
	assert_in_range(online_mean(&rig, SIM_NONE), 3990 * USEC, 4 * MSEC + 40);
	assert_in_range(online_mean(&rig, SIM_STREAM_PRIORITY), 2190 * USEC, 2200 * USEC + 100);
	assert_in_range(online_mean(&rig, SIM_SEQUENTIAL), 5 * MSEC, 9 * MSEC);
	assert_in_range(online_mean(&rig, SIM_ENGINE), 2 * MSEC, 3 * MSEC);
}

static void alone_the_offline_job_does_nothing(void **state)
{
	struct sim_result r;
	struct sim_rig rig;

	make_pair(&rig);
	r = sim_rig_run(&rig, SIM_ALONE, 1);
	assert_int_equal(r.n_jobs, 2);
	assert_int_equal(r.jobs[1].submitted, 0);
	assert_int_equal(r.offline_work_ns, 0);
	assert_in_range(r.work_ns, r.jobs[0].done * 2 * MSEC, (r.jobs[0].done + 2) * 2 * MSEC);
	assert_in_range(r.jobs[0].done, 99, 100);
	sim_result_done(&r);
}

static void a_full_gpu_does_its_time_in_work(void **state)
{
	struct sim_result r;
	struct sim_rig rig;

	make_pair(&rig);
	r = sim_rig_run(&rig, SIM_NONE, 1);
	assert_in_range(r.work_ns, 995 * MSEC, SEC);
	assert_int_equal(r.offline_work_ns, r.jobs[1].gpu_ns);
	assert_in_range(r.offline_work_ns, r.jobs[1].done * 10 * MSEC,
			(r.jobs[1].done + 1) * 10 * MSEC);
	assert_int_equal(r.slot_ns, 24 * SEC);
	assert_in_range(r.slot_used_ns, 1300 * MSEC, 1450 * MSEC);
	assert_false(r.overloaded);
	sim_result_done(&r);
}

static void same_seed_same_bytes(void **state)
{
	struct sim_rig rig;

	make_pair(&rig);
	rig.jobs[0].arrival = SIM_POISSON;
	stub_reset(STUB_PREEMPTS);
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		struct sim_result a = sim_rig_run(&rig, modes[i], 7);
		struct sim_result b = sim_rig_run(&rig, modes[i], 7);
		struct sim_result c = sim_rig_run(&rig, modes[i], 8);

		assert_memory_equal(a.jobs, b.jobs, a.n_jobs * sizeof(*a.jobs));
		free(b.jobs);
		b.jobs = a.jobs;
		assert_memory_equal(&a, &b, sizeof(a));
		assert_int_not_equal(a.online.n * 1000003 + a.online.max_ns,
				     c.online.n * 1000003 + c.online.max_ns);
		sim_result_done(&a);
		sim_result_done(&c);
	}
}

/* ---- clients ---- */

static void what_takes_longer_than_its_period_runs_back_to_back(void **state)
{
	struct sim_result r;
	struct sim_rig rig;
	struct sim_job *job;

	sim_rig_init(&rig);
	job = sim_rig_job(&rig, JOB_ONLINE, 25, MSEC);
	job->arrival = SIM_PERIODIC;
	job->rate_mhz = 100 * 1000;
	r = sim_rig_run(&rig, SIM_ALONE, 1);
	assert_in_range(r.jobs[0].done, 39, 40);
	assert_int_equal(r.online.max_ns, 25 * MSEC);
	assert_int_equal(r.jobs[0].backlog, 100 - r.jobs[0].done);
	assert_true(r.jobs[0].overloaded);
	assert_true(r.overloaded);
	sim_result_done(&r);
}

static void bursts_alone_are_no_overload(void **state)
{
	struct sim_result r;
	struct sim_rig rig;
	struct sim_job *job;

	sim_rig_init(&rig);
	rig.s.duration_ns = 10 * SEC;
	job = sim_rig_job(&rig, JOB_ONLINE, 6, MSEC);
	job->arrival = SIM_POISSON;
	job->rate_mhz = 100 * 1000;
	r = sim_rig_run(&rig, SIM_ALONE, 1);
	assert_true(r.jobs[0].backlog > 50); /* given up: two came during one */
	assert_false(r.overloaded);
	sim_result_done(&r);
	job->rate_mhz = 1000 * 1000;
	r = sim_rig_run(&rig, SIM_ALONE, 1);
	assert_true(r.overloaded);
	sim_result_done(&r);
}

static void periodic_processes_of_one_rate_keep_out_of_each_others_way(void **state)
{
	struct sim_result r;
	struct sim_rig rig;
	struct sim_job *job;

	sim_rig_init(&rig);
	job = sim_rig_job(&rig, JOB_ONLINE, 10, 100 * USEC);
	job->arrival = SIM_PERIODIC;
	job->rate_mhz = 100 * 1000;
	job->copies = 8;
	job->prepare_ns = 100 * USEC;
	for (uint64_t seed = 1; seed < 20; seed++) {
		r = sim_rig_run(&rig, SIM_NONE, seed);
		assert_int_equal(r.online.max_ns, MSEC);
		assert_true(r.online.n >= 8 * 99);
		sim_result_done(&r);
	}
}

static void preparing_does_not_count_as_latency(void **state)
{
	struct sim_result r;
	struct sim_rig rig;

	sim_rig_init(&rig);
	sim_rig_job(&rig, JOB_ONLINE, 10, 100 * USEC)->prepare_ns = 9 * MSEC;
	r = sim_rig_run(&rig, SIM_ALONE, 1);
	assert_int_equal(r.online.max_ns, MSEC);
	assert_in_range(r.online.n, 99, 100);
	sim_result_done(&r);
}

static void requests_go_to_the_queues_of_a_process_in_turn(void **state)
{
	struct sim_result r;
	struct sim_rig rig;
	struct sim_job *job;

	sim_rig_init(&rig);
	job = sim_rig_job(&rig, JOB_ONLINE, 15, MSEC);
	job->arrival = SIM_PERIODIC;
	job->rate_mhz = 100 * 1000;
	job->queues = 2;
	sim_rig_model(&rig, job)->occupancy_permille = 400;
	r = sim_rig_run(&rig, SIM_ALONE, 1);
	assert_int_equal(r.online.max_ns, 15 * MSEC);
	assert_in_range(r.jobs[0].done, 97, 99);
	assert_false(r.overloaded);
	sim_result_done(&r);
}

static void copies_go_round_the_gpus(void **state)
{
	struct sim_result r;
	struct sim_rig rig;

	sim_rig_init(&rig);
	rig.s.gpus = 4;
	sim_rig_job(&rig, JOB_OFFLINE, 10, 100 * USEC)->copies = 8;
	rig.jobs[0].gpu = 3;
	r = sim_rig_run(&rig, SIM_NONE, 1);
	assert_int_equal(r.n_jobs, 8);
	for (size_t i = 0; i < 8; i++)
		assert_in_range(r.jobs[i].done, 496, 500);
	sim_result_done(&r);
}

static void a_gang_goes_as_fast_as_its_slowest_gpu(void **state)
{
	struct sim_result r;
	struct sim_rig rig;

	sim_rig_init(&rig);
	rig.s.gpus = 4;
	sim_rig_job(&rig, JOB_OFFLINE, 10, 100 * USEC)->gang = true;
	sim_rig_job(&rig, JOB_OFFLINE, 10, 100 * USEC)->gpu = 2;
	r = sim_rig_run(&rig, SIM_NONE, 1);
	assert_int_equal(r.n_jobs, 2);
	assert_in_range(r.jobs[0].done, 494, 510);
	assert_in_range(r.jobs[0].gpu_ns, r.jobs[0].done * 4 * MSEC,
			(r.jobs[0].done + 1) * 4 * MSEC);
	sim_result_done(&r);
}

/* ---- what a trace is told ---- */

static void slices_of_a_process_never_overlap(void **state)
{
	uint64_t last_end[2] = { 0 };
	size_t kinds[3] = { 0 };
	struct sim_result r;
	struct sim_rig rig;
	struct sim_options options = {
		.mode = SIM_ENGINE,
		.policy = &gpol_priority,
		.trace = (struct sim_trace *)&rig,
	};

	make_pair(&rig);
	stub_reset(STUB_PREEMPTS);
	n_heard = 0;
	assert_int_equal(sim_run(&rig.s, &options, &r), 0);
	for (size_t i = 0; i < n_heard; i++) {
		const struct heard *h = &heard[i];

		kinds[h->kind]++;
		assert_true(h->from_ns < h->to_ns);
		if (h->kind == HEARD_REQUEST) {
			assert_true(h->from_ns <= h->started_ns && h->started_ns < h->to_ns);
			continue;
		}
		assert_true(h->from_ns >= last_end[h->process]);
		last_end[h->process] = h->to_ns;
	}
	assert_int_equal(kinds[HEARD_PREEMPTION], r.preemptions);
	assert_int_equal(kinds[HEARD_REQUEST], r.jobs[0].done + r.jobs[1].done);
	assert_true(kinds[HEARD_WORK] >= r.jobs[0].done + r.jobs[1].done + r.preemptions - 2);
	sim_result_done(&r);
}

/* ---- little sense ---- */

static void no_jobs_are_no_work(void **state)
{
	struct sim_result r;
	struct sim_rig rig;

	sim_rig_init(&rig);
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		r = sim_rig_run(&rig, modes[i], 1);
		assert_int_equal(r.n_jobs, 0);
		assert_int_equal(r.work_ns, 0);
		sim_result_done(&r);
	}
	rig.s.gpus = 0;
	r = sim_rig_run(&rig, SIM_ENGINE, 1);
	sim_result_done(&r);
}

static void kernels_of_no_length_end_after_all(void **state)
{
	struct sim_result r;
	struct sim_rig rig;

	sim_rig_init(&rig);
	sim_rig_job(&rig, JOB_ONLINE, 10, 0);
	sim_rig_job(&rig, JOB_OFFLINE, 0, 100)->queues = 3;
	stub_reset(STUB_PREEMPTS);
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		r = sim_rig_run(&rig, modes[i], 1);
		assert_in_range(r.jobs[0].done, 1000, SEC / SIM_HOST_TURN_NS);
		assert_true(r.online.min_ns >= 1);
		sim_result_done(&r);
	}
}

static void requests_longer_than_the_run_and_time_are_cut(void **state)
{
	struct sim_result r;
	struct sim_rig rig;

	sim_rig_init(&rig);
	sim_rig_job(&rig, JOB_ONLINE, UINT32_MAX, UINT64_MAX);
	sim_rig_job(&rig, JOB_OFFLINE, UINT32_MAX, 1);
	rig.models[0].gap_ns = UINT64_MAX;
	rig.models[0].workgroup_ns = UINT64_MAX;
	rig.models[1].workgroup_ns = UINT64_MAX;
	rig.s.kernel_permille = UINT32_MAX;
	stub_reset(STUB_PREEMPTS);
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		r = sim_rig_run(&rig, modes[i], 1);
		assert_int_equal(r.online.n, 0);
		assert_int_equal(r.jobs[0].backlog, 1);
		sim_result_done(&r);
	}
}

static void ten_thousand_processes_all_get_somewhere(void **state)
{
	struct sim_result r;
	struct sim_rig rig;

	sim_rig_init(&rig);
	sim_rig_job(&rig, JOB_OFFLINE, 1, 10 * USEC)->copies = 10000;
	rig.jobs[0].arrival = SIM_PERIODIC;
	rig.jobs[0].rate_mhz = 1000 * 1000;
	for (size_t i = 1; i < ARRAY_SIZE(modes); i++) {
		r = sim_rig_run(&rig, modes[i], 1);
		assert_int_equal(r.n_jobs, 10000);
		if (modes[i] == SIM_NONE)
			assert_true(r.overloaded && r.work_ns > 100 * MSEC);
		sim_result_done(&r);
	}
}

static void rates_beyond_capacity_are_an_overload(void **state)
{
	struct sim_result r;
	struct sim_rig rig;

	make_pair(&rig);
	rig.jobs[0].rate_mhz = UINT64_MAX;
	stub_reset(STUB_PREEMPTS);
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		r = sim_rig_run(&rig, modes[i], 1);
		assert_true(r.overloaded);
		assert_in_range(r.jobs[0].backlog, 90000, 100001);
		assert_false(r.jobs[1].overloaded);
		sim_result_done(&r);
	}
}

/* Neither keeps the GPU by sending the next request in the instant in which one is done. */
static void in_a_sequence_each_request_waits_for_its_turn(void **state)
{
	struct sim_result r;
	struct sim_rig rig;

	make_pair(&rig);
	rig.jobs[1].arrival = SIM_PERIODIC;
	rig.jobs[1].rate_mhz = 1000 * 1000;
	r = sim_rig_run(&rig, SIM_SEQUENTIAL, 1);
	assert_in_range(r.jobs[0].done, 80, 100);
	assert_in_range(r.online.max_ns, 2 * MSEC, 13 * MSEC);
	assert_in_range(r.jobs[1].done, 70, 85);
	sim_result_done(&r);
}

static void what_a_scenario_names_must_be_there(void **state)
{
	struct sim_options options = { .mode = SIM_ENGINE };
	struct sim_result r;
	struct sim_rig rig;

	make_pair(&rig);
	stub_reset(STUB_IDLE);
	snprintf(rig.s.policy, sizeof(rig.s.policy), "wish");
	assert_int_equal(sim_run(&rig.s, &options, &r), -EINVAL);
	snprintf(rig.s.policy, sizeof(rig.s.policy), "share");
	assert_int_equal(sim_run(&rig.s, &options, &r), 0);
	assert_ptr_equal(stub.config.policy, &gpol_share);
	sim_result_done(&r);
	snprintf(rig.s.costs, sizeof(rig.s.costs), "nothing");
	assert_int_equal(sim_run(&rig.s, &options, &r), -EINVAL);
	options.mode = SIM_NONE;
	assert_int_equal(sim_run(&rig.s, &options, &r), 0);
	sim_result_done(&r);
	snprintf(rig.s.chip, sizeof(rig.s.chip), "abacus");
	assert_int_equal(sim_run(&rig.s, &options, &r), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_modes_differ_as_they_should),
		cmocka_unit_test(alone_the_offline_job_does_nothing),
		cmocka_unit_test(a_full_gpu_does_its_time_in_work),
		cmocka_unit_test(same_seed_same_bytes),
		cmocka_unit_test(what_takes_longer_than_its_period_runs_back_to_back),
		cmocka_unit_test(bursts_alone_are_no_overload),
		cmocka_unit_test(periodic_processes_of_one_rate_keep_out_of_each_others_way),
		cmocka_unit_test(preparing_does_not_count_as_latency),
		cmocka_unit_test(requests_go_to_the_queues_of_a_process_in_turn),
		cmocka_unit_test(copies_go_round_the_gpus),
		cmocka_unit_test(a_gang_goes_as_fast_as_its_slowest_gpu),
		cmocka_unit_test(slices_of_a_process_never_overlap),
		cmocka_unit_test(no_jobs_are_no_work),
		cmocka_unit_test(kernels_of_no_length_end_after_all),
		cmocka_unit_test(requests_longer_than_the_run_and_time_are_cut),
		cmocka_unit_test(ten_thousand_processes_all_get_somewhere),
		cmocka_unit_test(rates_beyond_capacity_are_an_overload),
		cmocka_unit_test(in_a_sequence_each_request_waits_for_its_turn),
		cmocka_unit_test(what_a_scenario_names_must_be_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
