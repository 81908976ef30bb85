/* SPDX-License-Identifier: MIT */
/* Figures and text as the commands print them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cmd/gpreempt/figures.h"

static void percentiles_are_values_that_occurred(void **state)
{
	struct figures f;
	struct summary s;

	assert_int_equal(figures_init(&f, 200), 0);
	for (uint64_t i = 200; i > 0; i--)
		figures_add(&f, i * 10);
	s = figures_sum_up(&f);
	assert_int_equal(s.min, 10);
	assert_int_equal(s.p50, 1000);
	assert_int_equal(s.p99, 1980);
	assert_int_equal(s.max, 2000);
	assert_int_equal(s.avg, 1005);
	figures_done(&f);
}

static void a_few_values_have_a_99th_percentile_too(void **state)
{
	struct figures f;
	struct summary s;

	assert_int_equal(figures_init(&f, 2), 0);
	figures_add(&f, 7);
	s = figures_sum_up(&f);
	assert_int_equal(s.p50, 7);
	assert_int_equal(s.p99, 7);
	figures_add(&f, 9);
	figures_add(&f, 1000); /* no room */
	s = figures_sum_up(&f);
	assert_int_equal(s.p50, 7);
	assert_int_equal(s.p99, 9);
	assert_int_equal(f.n, 2);
	figures_done(&f);
}

static void of_nothing_there_is_nothing_to_tell(void **state)
{
	struct figures f;

	assert_int_equal(figures_init(&f, 0), 0);
	assert_null(figures_to_json(&f));
	assert_int_equal(figures_sum_up(&f).max, 0);
	figures_done(&f);
}

static void durations_have_three_figures_and_a_unit(void **state)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} cases[] = {
		{ 0, "0.00 us" },	  { 1234, "1.23 us" },	     { 12345, "12.3 us" },
		{ 123456, "123 us" },	  { 999999, "1.00 ms" },     { 50500000, "50.5 ms" },
		{ 1000000000, "1.00 s" }, { 100000000000, "100 s" }, { 9999000000000, "9999 s" },
	};
	char buf[UNIT_TEXT_SIZE];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(text_duration(cases[i].ns, buf), cases[i].text);
	assert_string_equal(text_bytes(4096, buf), "4.00 KiB");
	assert_string_equal(text_bytes(48857088, buf), "46.6 MiB");
}

static void text_of_others_becomes_one_line_of_utf8(void **state)
{
	static const char *const cases[][2] = {
		{ "plain", "plain" },
		{ "a\nb\tc\x7f", "a?b?c?" },
		{ "\xc3\xa9t\xc3\xa9", "\xc3\xa9t\xc3\xa9" },
		{ "cut\xc3", "cut?" },
		{ "\xff\xfe", "??" },
		{ "\xc0\xaf", "??" }, /* overlong */
		{ "\xed\xa0\x80", "???" }, /* a surrogate */
		{ "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80" },
		{ "\xf4\x90\x80\x80", "????" }, /* beyond the last one */
		{ "\xe2\x82", "??" },
		{ "a\xc2\x9b"
		  "2J\xc2\xa0",
		  "a??2J\xc2\xa0" }, /* moves a cursor, too */
	};
	char buf[32];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		snprintf(buf, sizeof(buf), "%s", cases[i][0]);
		text_clean(buf);
		assert_string_equal(buf, cases[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(percentiles_are_values_that_occurred),
		cmocka_unit_test(a_few_values_have_a_99th_percentile_too),
		cmocka_unit_test(of_nothing_there_is_nothing_to_tell),
		cmocka_unit_test(durations_have_three_figures_and_a_unit),
		cmocka_unit_test(text_of_others_becomes_one_line_of_utf8),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
