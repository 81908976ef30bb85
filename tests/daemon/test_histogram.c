/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above first */
#include <cmocka.h>

#include "cmd/gpreemptd/histogram.h"
#include "util/macros.h"

static void bounds_are_1_2_5_from_a_microsecond_to_ten_seconds(void **state)
{
	assert_int_equal(histogram_bound_ns(0), NSEC_PER_USEC);
	assert_int_equal(histogram_bound_ns(1), 2 * NSEC_PER_USEC);
	assert_int_equal(histogram_bound_ns(2), 5 * NSEC_PER_USEC);
	assert_int_equal(histogram_bound_ns(3), 10 * NSEC_PER_USEC);
	assert_int_equal(histogram_bound_ns(9), NSEC_PER_MSEC);
	assert_int_equal(histogram_bound_ns(HISTOGRAM_BUCKETS - 2), 10 * NSEC_PER_SEC);
	assert_true(histogram_bound_ns(HISTOGRAM_BUCKETS - 1) == UINT64_MAX);
	for (size_t i = 1; i < HISTOGRAM_BUCKETS; i++)
		assert_true(histogram_bound_ns(i) > histogram_bound_ns(i - 1));
}

static void a_bound_belongs_to_its_own_bucket(void **state)
{
	struct histogram h = { 0 };

	histogram_add(&h, 0);
	histogram_add(&h, NSEC_PER_USEC);
	histogram_add(&h, NSEC_PER_USEC + 1);
	histogram_add(&h, UINT64_MAX);
	assert_int_equal(h.counts[0], 2);
	assert_int_equal(h.counts[1], 1);
	assert_int_equal(h.counts[HISTOGRAM_BUCKETS - 1], 1);
	assert_int_equal(h.count, 4);
	assert_true(h.max_ns == UINT64_MAX);
}

static void nothing_added_has_no_quantile(void **state)
{
	struct histogram h = { 0 };

	assert_int_equal(histogram_quantile_ns(&h, 500), 0);
	assert_int_equal(histogram_quantile_ns(&h, 1000), 0);
}

static void a_quantile_is_the_bound_of_its_bucket(void **state)
{
	struct histogram h = { 0 };

	for (int i = 0; i < 98; i++)
		histogram_add(&h, 3 * NSEC_PER_USEC);
	histogram_add(&h, 15 * NSEC_PER_USEC);
	histogram_add(&h, 70 * NSEC_PER_USEC);
	assert_int_equal(histogram_quantile_ns(&h, 0), 5 * NSEC_PER_USEC);
	assert_int_equal(histogram_quantile_ns(&h, 500), 5 * NSEC_PER_USEC);
	assert_int_equal(histogram_quantile_ns(&h, 980), 5 * NSEC_PER_USEC);
	assert_int_equal(histogram_quantile_ns(&h, 981), 20 * NSEC_PER_USEC);
	assert_int_equal(histogram_quantile_ns(&h, 990), 20 * NSEC_PER_USEC);
	assert_int_equal(h.sum_ns, (98 * 3 + 15 + 70) * NSEC_PER_USEC);
}

static void no_quantile_is_above_what_was_seen(void **state)
{
	struct histogram h = { 0 };

	histogram_add(&h, 70 * NSEC_PER_USEC);
	assert_int_equal(histogram_quantile_ns(&h, 1000), 70 * NSEC_PER_USEC);
	histogram_add(&h, 30 * NSEC_PER_SEC);
	assert_int_equal(histogram_quantile_ns(&h, 1000), 30 * NSEC_PER_SEC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bounds_are_1_2_5_from_a_microsecond_to_ten_seconds),
		cmocka_unit_test(a_bound_belongs_to_its_own_bucket),
		cmocka_unit_test(nothing_added_has_no_quantile),
		cmocka_unit_test(a_quantile_is_the_bound_of_its_bucket),
		cmocka_unit_test(no_quantile_is_above_what_was_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
