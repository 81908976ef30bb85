/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/internal.h"

static void add(struct analysis *a, const uint32_t *ids, size_t n)
{
	struct gpreempt_queue queues[16] = { 0 };

	for (size_t i = 0; i < n; i++) {
		queues[i].queue_id = ids[i];
		queues[i].gpu_id = 100 + ids[i] % 2;
		queues[i].type = GPREEMPT_QUEUE_COMPUTE_AQL;
	}
	assert_int_equal(analysis_add(a, queues, n), 0);
}

#define ADD(a, ...) \
	add(a, (const uint32_t[]){ __VA_ARGS__ }, \
	    sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))

static void nothing_was_ever_seen(void **state)
{
	struct analysis a = { 0 };
	struct gpreempt_stats s;

	add(&a, NULL, 0);
	add(&a, NULL, 0);
	analysis_stats(&a, &s);
	assert_int_equal(s.samples, 2);
	assert_int_equal(s.max, 0);
	assert_int_equal(s.n_ids, 0);
	assert_true(s.stable);
	assert_non_null(strstr(s.advice, "no queue"));
	analysis_done(&a);
}

static void one_sample_proves_nothing(void **state)
{
	struct analysis a = { 0 };
	struct gpreempt_stats s;

	ADD(&a, 3, 1, 2);
	analysis_stats(&a, &s);
	assert_int_equal(s.n_ids, 3);
	assert_non_null(strstr(s.advice, "sample for longer"));
	analysis_done(&a);
}

static void the_same_ids_in_any_order_are_stable(void **state)
{
	struct analysis a = { 0 };
	struct gpreempt_stats s;

	ADD(&a, 3, 1, 2);
	ADD(&a, 1, 2, 3);
	analysis_stats(&a, &s);
	assert_true(s.stable);
	assert_int_equal(s.min, 3);
	assert_int_equal(s.max, 3);
	assert_true(s.avg > 2.99 && s.avg < 3.01);
	for (size_t i = 0; i < s.n_ids; i++) {
		assert_int_equal(s.ids[i].key, i + 1);
		assert_int_equal(s.ids[i].count, 2);
	}
	assert_non_null(strstr(s.advice, "same 3 queues"));
	analysis_done(&a);
}

static void ids_that_come_and_go_are_counted(void **state)
{
	static const struct gpreempt_count expected[] = {
		{ 0, 1 }, { 2, 3 }, { 5, 1 }, { 7, 2 }, { 9, 1 },
	};
	struct analysis a = { 0 };
	struct gpreempt_stats s;

	ADD(&a, 7, 2);
	ADD(&a, 2, 9, 0);
	ADD(&a, 5, 7, 2);
	analysis_stats(&a, &s);
	assert_false(s.stable);
	assert_int_equal(s.min, 2);
	assert_int_equal(s.max, 3);
	assert_int_equal(s.n_ids, ARRAY_SIZE(expected));
	for (size_t i = 0; i < s.n_ids; i++) {
		assert_int_equal(s.ids[i].key, expected[i].key);
		assert_int_equal(s.ids[i].count, expected[i].count);
	}
	assert_non_null(strstr(s.advice, "1 of 5 ids"));
	analysis_done(&a);
}

static void the_same_number_of_other_queues_is_not_stable(void **state)
{
	struct analysis a = { 0 };
	struct gpreempt_stats s;

	ADD(&a, 1, 2);
	ADD(&a, 3, 4);
	analysis_stats(&a, &s);
	assert_false(s.stable);
	assert_int_equal(s.min, s.max);
	analysis_done(&a);
}

static void gpus_and_types_are_summed_over_samples(void **state)
{
	struct analysis a = { 0 };
	struct gpreempt_stats s;

	ADD(&a, 0, 1, 2);
	ADD(&a, 0, 1, 2);
	analysis_stats(&a, &s);
	assert_int_equal(s.n_gpus, 2);
	assert_int_equal(s.gpus[0].key, 100);
	assert_int_equal(s.gpus[0].count, 4);
	assert_int_equal(s.gpus[1].count, 2);
	assert_int_equal(s.n_types, 1);
	assert_int_equal(s.types[0].key, GPREEMPT_QUEUE_COMPUTE_AQL);
	assert_int_equal(s.types[0].count, 6);
	analysis_done(&a);
}

static void a_late_empty_sample_ends_stability(void **state)
{
	struct analysis a = { 0 };
	struct gpreempt_stats s;

	ADD(&a, 4);
	add(&a, NULL, 0);
	analysis_stats(&a, &s);
	assert_false(s.stable);
	assert_int_equal(s.min, 0);
	analysis_done(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_was_ever_seen),
		cmocka_unit_test(one_sample_proves_nothing),
		cmocka_unit_test(the_same_ids_in_any_order_are_stable),
		cmocka_unit_test(ids_that_come_and_go_are_counted),
		cmocka_unit_test(the_same_number_of_other_queues_is_not_stable),
		cmocka_unit_test(gpus_and_types_are_summed_over_samples),
		cmocka_unit_test(a_late_empty_sample_ends_stability),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
