/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "tests/conformance/normalise.h"
#include "util/macros.h"

static const struct name names[] = {
	{ NAME_PID, 1234, 0, "target" },
	{ NAME_PID, 40, 0, "debugger" },
	{ NAME_GPU, 0x2d1b, 0, "gpu" },
	{ NAME_PASID, 0x8001, 0, "pasid" },
	{ NAME_ADDRESS, 0x7f0000001000, 0x1000, "ring" },
};

static void expect(const char *line, const char *expected)
{
	_cleanup_free_ char *got = normalise(names, ARRAY_SIZE(names), line);

	assert_non_null(got);
	assert_string_equal(got, expected);
}

static void pids_of_the_case_get_their_names(void **state)
{
	(void)state;
	expect("Process 1234 PASID 0x8001:", "Process <target> PASID <pasid>:");
	expect("1234", "<target>");
	expect("pid=1234,40", "pid=<target>,<debugger>");
	expect("proc/1234/queues", "proc/<target>/queues");
}

static void numbers_that_only_contain_a_pid_stay(void **state)
{
	(void)state;
	expect("12345 412 1234x x1234 0x1234 40k", "12345 412 1234x x1234 0x1234 40k");
	expect("1_1234", "1_1234");
}

static void a_gpu_is_known_in_decimal_and_hexadecimal(void **state)
{
	(void)state;
	expect("11547", "<gpu>");
	expect("device 2d1b", "device <gpu>");
	expect("device 2d1c", "device 2d1c");
	expect("stats_11547", "stats_11547");
}

static void addresses_keep_their_offset(void **state)
{
	(void)state;
	expect("ring 0x7f0000001000", "ring <ring>");
	expect("0x7f0000001038", "<ring+0x38>");
	expect("0x7f0000001fff", "<ring+0xfff>");
}

static void addresses_outside_stay(void **state)
{
	(void)state;
	expect("0x7f0000002000", "0x7f0000002000");
	expect("0x7f0000000fff", "0x7f0000000fff");
	expect("7f0000001000", "7f0000001000");
	expect("139637976731648", "139637976731648");
}

static void times_need_a_unit(void **state)
{
	(void)state;
	expect("took 15ms, 3us and 7ns", "took <time>, <time> and <time>");
	expect("15 ms 15s 15m xms 15mss", "15 ms 15s 15m xms 15mss");
}

/* Each of these is another answer and must be told from its neighbour. */
static void answers_stay_different(void **state)
{
	static const char *const answers[] = {
		"0",
		"1",
		"-1",
		"-EINVAL",
		"-EPERM",
		"-EBUSY",
		"blocked",
		"80000000",
		"40000000",
		"c0000000",
		"0x80000000",
		"0x40000000",
		"800000000000",
		"0x800000000000",
		"41",
		"1235",
		"0x8000",
		"32769 0",
		"ids 0 1",
		"ids 1 0",
		"active 10",
		"active 01",
		"2d1c",
		"",
		" ",
		"0 1",
		"0  1",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
		for (size_t k = 0; k < i; k++) {
			_cleanup_free_ char *a = normalise(names, ARRAY_SIZE(names), answers[i]);
			_cleanup_free_ char *b = normalise(names, ARRAY_SIZE(names), answers[k]);

			assert_non_null(a);
			assert_non_null(b);
			assert_string_not_equal(a, b);
		}
	}
}

/* 0x8001 is a process to the hardware only when it is written as one. */
static void a_pasid_is_not_every_number_like_it(void **state)
{
	(void)state;
	expect("32769", "<pasid>");
	expect("8001", "8001");
	expect("0x8002", "0x8002");
}

static void without_names_only_times_go(void **state)
{
	_cleanup_free_ char *got = normalise(NULL, 0, "1234 0x7f0000001000 5ms");

	(void)state;
	assert_string_equal(got, "1234 0x7f0000001000 <time>");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pids_of_the_case_get_their_names),
		cmocka_unit_test(numbers_that_only_contain_a_pid_stay),
		cmocka_unit_test(a_gpu_is_known_in_decimal_and_hexadecimal),
		cmocka_unit_test(addresses_keep_their_offset),
		cmocka_unit_test(addresses_outside_stay),
		cmocka_unit_test(times_need_a_unit),
		cmocka_unit_test(answers_stay_different),
		cmocka_unit_test(a_pasid_is_not_every_number_like_it),
		cmocka_unit_test(without_names_only_times_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
