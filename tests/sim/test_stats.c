/* SPDX-License-Identifier: MIT */
#include "sim/stats.h"
#include "tests/sim/sim_rig.h"

static struct sim_quantiles of_the_numbers_up_to(uint64_t n)
{
	struct sim_samples s = { 0 };
	struct sim_quantiles q;

	/* Not in order: 7919 is prime to every n used here. */
	for (uint64_t i = 0; i < n; i++)
		assert_int_equal(sim_samples_add(&s, i * 7919 % n + 1), 0);
	q = sim_samples_quantiles(&s);
	sim_samples_done(&s);
	return q;
}

static void nothing_has_no_figures(void **state)
{
	struct sim_quantiles q = of_the_numbers_up_to(0);

	assert_memory_equal(&q, &(struct sim_quantiles){ 0 }, sizeof(q));
}

static void one_sample_is_every_quantile(void **state)
{
	struct sim_quantiles q = of_the_numbers_up_to(1);

	assert_int_equal(q.n, 1);
	assert_int_equal(q.min_ns, 1);
	assert_int_equal(q.mean_ns, 1);
	assert_int_equal(q.p50_ns, 1);
	assert_int_equal(q.p999_ns, 1);
	assert_int_equal(q.max_ns, 1);
}

static void quantiles_are_nearest_ranks(void **state)
{
	struct sim_quantiles q = of_the_numbers_up_to(1000);

	assert_int_equal(q.n, 1000);
	assert_int_equal(q.min_ns, 1);
	assert_int_equal(q.p50_ns, 500);
	assert_int_equal(q.p95_ns, 950);
	assert_int_equal(q.p99_ns, 990);
	assert_int_equal(q.p999_ns, 999);
	assert_int_equal(q.max_ns, 1000);
	q = of_the_numbers_up_to(10);
	assert_int_equal(q.p50_ns, 5);
	assert_int_equal(q.p95_ns, 10);
	assert_int_equal(q.p999_ns, 10);
}

static void the_mean_is_rounded_to_the_nearest(void **state)
{
	assert_int_equal(of_the_numbers_up_to(1000).mean_ns, 501); /* of 500.5 */
	assert_int_equal(of_the_numbers_up_to(5).mean_ns, 3);
}

static void large_samples_do_not_overflow_the_mean(void **state)
{
	struct sim_samples s = { 0 };

	for (unsigned int i = 0; i < 1000; i++)
		sim_samples_add(&s, UINT64_MAX - 2);
	assert_true(sim_samples_quantiles(&s).mean_ns == UINT64_MAX - 2);
	sim_samples_done(&s);
}

static void a_curve_goes_from_the_smallest_to_the_largest(void **state)
{
	uint64_t curve[CURVE_POINTS] = { 7 };
	struct sim_samples s = { 0 };

	sim_samples_curve(&s, curve);
	assert_int_equal(curve[0], 0);
	for (unsigned int i = 1000; i > 0; i--)
		sim_samples_add(&s, i);
	sim_samples_quantiles(&s);
	sim_samples_curve(&s, curve);
	assert_int_equal(curve[0], 1);
	assert_int_equal(curve[50], 500);
	assert_int_equal(curve[99], 990);
	assert_int_equal(curve[CURVE_POINTS - 2], 999);
	assert_int_equal(curve[CURVE_POINTS - 1], 1000);
	for (size_t i = 1; i < CURVE_POINTS; i++)
		assert_true(curve_permille(i) > curve_permille(i - 1));
	sim_samples_done(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_has_no_figures),
		cmocka_unit_test(one_sample_is_every_quantile),
		cmocka_unit_test(quantiles_are_nearest_ranks),
		cmocka_unit_test(the_mean_is_rounded_to_the_nearest),
		cmocka_unit_test(large_samples_do_not_overflow_the_mean),
		cmocka_unit_test(a_curve_goes_from_the_smallest_to_the_largest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
