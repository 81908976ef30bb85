/* SPDX-License-Identifier: MIT */
/* The tables of cases, by topic. */
#ifndef GPREEMPT_TESTS_CONFORMANCE_TOPICS_H
#define GPREEMPT_TESTS_CONFORMANCE_TOPICS_H

#include "tests/conformance/case.h"

extern const struct conformance_case entry_cases[];
extern const struct conformance_case debug_state_cases[];
extern const struct conformance_case debug_caller_cases[];
extern const struct conformance_case runtime_cases[];
extern const struct conformance_case new_rule_cases[];
extern const struct conformance_case suspend_cases[];
extern const struct conformance_case resume_cases[];
extern const struct conformance_case snapshot_cases[];
extern const struct conformance_case events_cases[];
extern const struct conformance_case user_event_cases[];
extern const struct conformance_case create_queue_cases[];
extern const struct conformance_case update_queue_cases[];
extern const struct conformance_case destroy_cases[];
extern const struct conformance_case criu_cases[];
extern const struct conformance_case gws_cumask_cases[];
extern const struct conformance_case lifetime_cases[];
extern const struct conformance_case hijack_cases[];
extern const struct conformance_case files_cases[];
extern const struct conformance_case costs_cases[];
extern const struct conformance_case work_cases[];
extern const struct conformance_case fault_cases[];
extern const struct conformance_case two_gpu_cases[];

#endif
