/* SPDX-License-Identifier: MIT */
#include "sim/arrival.h"
#include "tests/sim/sim_rig.h"

static const uint64_t trace_ns[] = { 10, 20, 20, 40, 50, 60, 70 };

static const struct sim_scenario scenario = {
	.trace_ns = (uint64_t *)trace_ns,
	.n_trace = ARRAY_SIZE(trace_ns),
};

static struct sim_arrivals arrivals(enum sim_arrival kind, uint64_t per_s, uint64_t key)
{
	struct sim_job job = { .arrival = kind, .rate_mhz = per_s * 1000 };
	struct sim_place_in_line line = { .phase_ns = 3 * MSEC, .nth = 0, .of = 1 };
	struct sim_arrivals a;

	sim_arrivals_init(&a, &scenario, &job, key, &line);
	return a;
}

static void periodic_requests_are_late_by_the_timer_slack_at_most(void **state)
{
	struct sim_arrivals a = arrivals(SIM_PERIODIC, 100, 1);
	bool late = false;

	for (uint64_t i = 0; i < 1000; i++) {
		uint64_t on_time = 3 * MSEC + i * 10 * MSEC;

		assert_in_range(a.next_ns, on_time, on_time + SIM_TIMER_SLACK_NS);
		late |= a.next_ns > on_time + SIM_TIMER_SLACK_NS / 2;
		assert_int_equal(sim_arrivals_take(&a, a.next_ns), 1);
	}
	assert_true(late);
}

static void the_mean_of_poisson_intervals_is_the_rate(void **state)
{
	struct sim_arrivals a = arrivals(SIM_POISSON, 100, 1);
	uint64_t n = sim_arrivals_take(&a, 1000 * SEC), short_ones = 0, last = 0;

	assert_in_range(n, 98500, 101500);
	/* Half of them are shorter than ln 2 of the mean. */
	a = arrivals(SIM_POISSON, 100, 2);
	for (unsigned int i = 0; i < 10000; i++) {
		short_ones += a.next_ns - last < 6931472;
		last = a.next_ns;
		sim_arrivals_take(&a, last);
	}
	assert_in_range(short_ones, 4850, 5150);
}

static void taking_at_once_is_taking_one_by_one(void **state)
{
	for (unsigned int kind = SIM_PERIODIC; kind <= SIM_TRACE; kind++) {
		struct sim_arrivals one = arrivals(kind, 777, 5), all = one;
		uint64_t n = 0, until = kind == SIM_TRACE ? 45 : SEC;

		while (one.next_ns <= until)
			n += sim_arrivals_take(&one, one.next_ns);
		assert_int_equal(sim_arrivals_take(&all, until), n);
		assert_int_equal(all.next_ns, one.next_ns);
		assert_true(n > 3);
	}
}

static void a_seed_is_a_fate(void **state)
{
	struct sim_arrivals a = arrivals(SIM_POISSON, 100, 7);
	struct sim_arrivals same = arrivals(SIM_POISSON, 100, 7);
	struct sim_arrivals other = arrivals(SIM_POISSON, 100, 8);

	assert_int_equal(a.next_ns, same.next_ns);
	assert_int_not_equal(a.next_ns, other.next_ns);
	assert_int_not_equal(sim_random(1, 2, 3), sim_random(1, 3, 2));
	assert_int_not_equal(sim_random(1, 2, 3), sim_random(2, 2, 3));
}

static void a_trace_is_dealt_to_its_processes(void **state)
{
	struct sim_job job = { .arrival = SIM_TRACE };
	uint64_t seen[3] = { 0 };

	for (size_t p = 0; p < 3; p++) {
		struct sim_place_in_line line = { .nth = p, .of = 3 };
		struct sim_arrivals a;

		sim_arrivals_init(&a, &scenario, &job, 1, &line);
		assert_int_equal(a.next_ns, trace_ns[p]);
		seen[p] = sim_arrivals_take(&a, SEC);
		assert_true(a.next_ns == UINT64_MAX);
	}
	assert_int_equal(seen[0], 3);
	assert_int_equal(seen[1], 2);
	assert_int_equal(seen[2], 2);
}

static void nobody_is_due_without_a_rate(void **state)
{
	assert_true(arrivals(SIM_PERIODIC, 0, 1).next_ns == UINT64_MAX);
	assert_true(arrivals(SIM_POISSON, 0, 1).next_ns == UINT64_MAX);
	assert_true(arrivals(SIM_CLOSED, 100, 1).next_ns == UINT64_MAX);
}

static void a_rate_beyond_all_measure_is_cut(void **state)
{
	struct sim_arrivals a = arrivals(SIM_PERIODIC, UINT64_MAX / 1000, 1);

	assert_int_equal(a.interval_ns, SIM_HOST_TURN_NS);
	assert_in_range(sim_arrivals_take(&a, 3600 * SEC), 359999000, 360000001);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(periodic_requests_are_late_by_the_timer_slack_at_most),
		cmocka_unit_test(the_mean_of_poisson_intervals_is_the_rate),
		cmocka_unit_test(taking_at_once_is_taking_one_by_one),
		cmocka_unit_test(a_seed_is_a_fate),
		cmocka_unit_test(a_trace_is_dealt_to_its_processes),
		cmocka_unit_test(nobody_is_due_without_a_rate),
		cmocka_unit_test(a_rate_beyond_all_measure_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
