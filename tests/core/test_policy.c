/* SPDX-License-Identifier: MIT */
/* Runs the table of tests/core/policy_cases.h: a line for each case. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/core/policy_cases.h"

#define MAX_CASES 400

static void case_holds(void **state)
{
	static struct gpol_job jobs[POLICY_CASE_MAX_JOBS];
	static struct gpol_verdict verdicts[POLICY_CASE_MAX_JOBS];
	const struct policy_case *c = *state;
	struct policy_surprise s = policy_case_check(c, jobs, verdicts);

	if (s.what)
		fail_msg("%s, step %zu, job %zu: %s is %" PRIu64 ", expected %" PRIu64,
			 c->ops->name, s.step, s.job, s.what, s.got, s.expected);
}

static void every_policy_has_a_name_and_is_found_by_it(void **state)
{
	size_t n = 0;

	for (; gpol_all[n]; n++) {
		assert_ptr_equal(gpol_find(gpol_all[n]->name), gpol_all[n]);
		assert_true(strlen(gpol_all[n]->summary) > 10);
	}
	assert_int_equal(n, 5);
}

static void an_unknown_policy_is_not_found(void **state)
{
	assert_null(gpol_find("priorit"));
	assert_null(gpol_find("priority "));
	assert_null(gpol_find(""));
}

static void the_table_is_as_large_as_it_should_be(void **state)
{
	size_t n = 0;

	for (const struct policy_cases *const *t = policy_cases_all; *t; t++)
		n += (*t)->n;
	assert_true(n >= 60);
}

int main(void)
{
	static struct CMUnitTest tests[MAX_CASES] = {
		cmocka_unit_test(every_policy_has_a_name_and_is_found_by_it),
		cmocka_unit_test(an_unknown_policy_is_not_found),
		cmocka_unit_test(the_table_is_as_large_as_it_should_be),
	};
	size_t n = 3;

	for (const struct policy_cases *const *t = policy_cases_all; *t; t++) {
		for (size_t i = 0; i < (*t)->n && n < MAX_CASES; i++) {
			const struct policy_case *c = &(*t)->cases[i];

			tests[n++] = (struct CMUnitTest){
				.name = c->name,
				.test_func = case_holds,
				.initial_state = (void *)c,
			};
		}
	}
	return _cmocka_run_group_tests("policy", tests, n, NULL, NULL) != 0;
}
