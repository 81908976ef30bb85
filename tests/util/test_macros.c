/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "util/macros.h"

static int later(int *calls)
{
	return ++*calls;
}

static void each_argument_is_evaluated_once(void **state)
{
	int calls = 0;

	assert_int_equal(MIN(later(&calls), 9), 1);
	assert_int_equal(calls, 1);
	assert_int_equal(MAX(9, later(&calls)), 9);
	assert_int_equal(calls, 2);
	assert_int_equal(MAX(MIN(later(&calls), 9), 2), 3);
	assert_int_equal(calls, 3);
}

static char room[MAX(3, 5)];

static void of_constants_they_are_constants(void **state)
{
	_Static_assert(MIN(3, 5) == 3 && MAX(MIN(9, 7u), 2) == 7, "constants");
	assert_int_equal(sizeof(room), 5);
}

static void they_have_the_type_of_a_choice(void **state)
{
	const uint8_t byte = 200;
	uint64_t large = 1ull << 40;
	uint32_t small = 7;
	int below = -1;

	assert_int_equal(sizeof(MIN(byte, byte)), sizeof(int));
	assert_int_equal(sizeof(MIN(small, large)), sizeof(uint64_t));
	assert_true(MAX(small, large) == large);
	assert_int_equal(MIN(below, 0), -1);
	assert_int_equal(MAX(-5L, below), -1);
	assert_true(MAX(0.25, small - 6.5) == 0.5);
	assert_true(MIN((unsigned __int128)large << 64, large) == large);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_argument_is_evaluated_once),
		cmocka_unit_test(of_constants_they_are_constants),
		cmocka_unit_test(they_have_the_type_of_a_choice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
