/* SPDX-License-Identifier: MIT */
/* The real engine and the simulated GPU together: figures that follow from the costs alone. */
#include "tests/sim/sim_rig.h"

#define FULL_SAVE_NS 59542u /* a full MI100 */
#define TRIED (7 * USEC) /* two bursts of a thousand, twice as long */
#define BEFORE_TRYING (300 * MSEC)
#define SUSPEND_NS (27000 + FULL_SAVE_NS)

/* 3 ms of online work every 10, @n continuous offline jobs. All fill the GPU. */
static void make_contest(struct sim_rig *rig, size_t n)
{
	struct sim_job *online;

	sim_rig_init(rig);
	rig->s.duration_ns = 10 * SEC;
	online = sim_rig_job(rig, JOB_ONLINE, 30, 100 * USEC);
	online->arrival = SIM_PERIODIC;
	online->rate_mhz = 100 * 1000;
	online->latency_critical = true;
	while (n--)
		sim_rig_job(rig, JOB_OFFLINE, 50, 100 * USEC);
}

static uint64_t offline_ms(const struct sim_result *r)
{
	return r->offline_work_ns / MSEC;
}

/*
 * A preemption costs the offline jobs the suspend, the burst, what the engine lingers and the
 * resume: 3.4 ms of every 10. The online job loses what it takes to try, a few times, what comes of
 * not making room.
 */
static void an_announced_burst_costs_what_a_preemption_costs(void **state)
{
	for (size_t n = 1; n <= 5; n++) {
		struct sim_result r;
		struct sim_rig rig;

		make_contest(&rig, n);
		rig.jobs[0].announce_ns = 100 * USEC;
		r = sim_rig_run(&rig, SIM_ENGINE, n);
		assert_in_range(r.online.mean_ns, 3 * MSEC, 3 * MSEC + 3 * USEC + TRIED);
		assert_in_range(r.jobs[1].preempted, 990, 1000);
		assert_in_range(offline_ms(&r), 6400, 6650);
		sim_result_done(&r);
	}
}

static void announced_when_it_comes_it_waits_for_the_save_at_half_speed(void **state)
{
	struct sim_result r;
	struct sim_rig rig;

	make_contest(&rig, 1);
	rig.jobs[0].announce_ns = 0;
	rig.s.duration_ns = BEFORE_TRYING;
	r = sim_rig_run(&rig, SIM_ENGINE, 1);
	assert_in_range(r.inversion.max_ns, SUSPEND_NS - FULL_SAVE_NS / 2 - 10, SUSPEND_NS);
	assert_in_range(r.online.mean_ns, 3 * MSEC + 20 * USEC, 3 * MSEC + 60 * USEC);
	sim_result_done(&r);
}

static void unannounced_it_waits_for_the_next_look_too(void **state)
{
	struct sim_result r;
	struct sim_rig rig;

	make_contest(&rig, 1);
	rig.s.duration_ns = BEFORE_TRYING;
	r = sim_rig_run(&rig, SIM_ENGINE, 1);
	assert_in_range(r.inversion.max_ns, 100 * USEC,
			engine_config_default.critical_interval_ns + SUSPEND_NS);
	assert_in_range(r.online.mean_ns, 3 * MSEC + 50 * USEC, 3 * MSEC + 600 * USEC);
	sim_result_done(&r);
}

static void without_a_policy_nobody_is_held(void **state)
{
	struct sim_options options = { .mode = SIM_ENGINE, .policy = &gpol_none, .seed = 1 };
	struct sim_result r, none;
	struct sim_rig rig;

	make_contest(&rig, 2);
	assert_int_equal(sim_run(&rig.s, &options, &r), 0);
	none = sim_rig_run(&rig, SIM_NONE, 1);
	assert_int_equal(r.preemptions, 0);
	assert_memory_equal(&r.online, &none.online, sizeof(r.online));
	assert_int_equal(r.work_ns, none.work_ns);
	sim_result_done(&r);
	sim_result_done(&none);
}

static void a_gang_stops_as_one(void **state)
{
	struct sim_result r;
	struct sim_rig rig;

	make_contest(&rig, 1);
	rig.s.gpus = 4;
	rig.jobs[0].gpu = 2;
	rig.jobs[0].announce_ns = 100 * USEC;
	rig.jobs[1].gang = true;
	r = sim_rig_run(&rig, SIM_ENGINE, 1);
	assert_in_range(r.jobs[1].preempted, 4 * 990, 4 * 1000);
	assert_in_range(r.online.mean_ns, 3 * MSEC, 3 * MSEC + 3 * USEC + TRIED);
	assert_in_range(offline_ms(&r), 4 * 6300, 4 * 6650);
	sim_result_done(&r);
}

/* Urgent work leaves gaps that are worth a resume, but too short to get anywhere in. */
static void short_gaps_starve_nobody(void **state)
{
	struct sim_result r;
	struct sim_rig rig;

	make_contest(&rig, 2);
	rig.models[0].kernel_ns = 9600 * USEC / rig.models[0].kernels;
	rig.jobs[0].announce_ns = 0;
	for (size_t i = 1; i <= 2; i++)
		rig.jobs[i].wait_bound_ns = 50 * MSEC;
	r = sim_rig_run(&rig, SIM_ENGINE, 1);
	assert_true(r.jobs[1].preempted > 50);
	assert_true(r.jobs[1].longest_wait_ns > 40 * MSEC);
	assert_int_equal(r.starved, 0);
	sim_result_done(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_announced_burst_costs_what_a_preemption_costs),
		cmocka_unit_test(announced_when_it_comes_it_waits_for_the_save_at_half_speed),
		cmocka_unit_test(unannounced_it_waits_for_the_next_look_too),
		cmocka_unit_test(without_a_policy_nobody_is_held),
		cmocka_unit_test(a_gang_stops_as_one),
		cmocka_unit_test(short_gaps_starve_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
