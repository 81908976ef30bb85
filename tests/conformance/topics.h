/* SPDX-License-Identifier: MIT */
/* The tables of cases, by topic. */
#ifndef GPREEMPT_TESTS_CONFORMANCE_TOPICS_H
#define GPREEMPT_TESTS_CONFORMANCE_TOPICS_H

#include "tests/conformance/case.h"

extern const struct conformance_case entry_cases[];
extern const struct conformance_case debug_state_cases[];

#endif
