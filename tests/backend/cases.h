/* SPDX-License-Identifier: MIT */
/* What every backend keeps, whatever is below it. */
#ifndef GPREEMPT_TESTS_BACKEND_CASES_H
#define GPREEMPT_TESTS_BACKEND_CASES_H

#include "tests/backend/ground.h"

#define CASE(f) cmocka_unit_test_setup_teardown(f, ground_setup, ground_teardown)

extern const struct CMUnitTest cases_act[], cases_end[], cases_look[];
extern const size_t n_cases_act, n_cases_end, n_cases_look;

#endif
