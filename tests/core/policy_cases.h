/* SPDX-License-Identifier: MIT */
/*
 * Policies by example. The table and what checks it need nothing but abi/ and core/, so that the
 * kernel can be asked the same questions as user space.
 */
#ifndef GPREEMPT_TESTS_CORE_POLICY_CASES_H
#define GPREEMPT_TESTS_CORE_POLICY_CASES_H

#include "core/policy/gpol.h"

#define POLICY_CASE_JOBS 4
#define POLICY_CASE_STEPS 4

struct policy_step {
	uint64_t now_ns;
	uint64_t again_ns; /* expected */
	/*
	 * Expected, one character a job: '-' is on, a digit is held for the job of that id.
	 * NULL: there are no more steps.
	 */
	const char *verdicts;
	struct gpol_job jobs[POLICY_CASE_JOBS];
};

struct policy_case {
	const char *name;
	const struct gpol_ops *ops;
	const struct gpol_params *params; /* NULL: policy_case_params */
	const struct gpol_gpu *gpu; /* NULL: policy_case_gpu */
	uint32_t crowd; /* the last job is there so many times, with ids that follow; 0: once */
	struct policy_step steps[POLICY_CASE_STEPS];
};

struct policy_cases {
	const struct policy_case *cases;
	size_t n;
};

extern const struct policy_cases policy_cases_priority, policy_cases_rotate, policy_cases_share,
	policy_cases_deadline;
extern const struct policy_cases *const policy_cases_all[]; /* ends with NULL */
/* In milliseconds: lingering 1, a turn 100, the ceiling 10, the margin 1; suspend and resume 1. */
extern const struct gpol_params policy_case_params;
extern const struct gpol_gpu policy_case_gpu;

/* The first thing that was not as expected. */
struct policy_surprise {
	const char *what; /* NULL: none */
	size_t step, job;
	uint64_t got, expected;
};

#define POLICY_CASE_MAX_JOBS 1001 /* room for this many jobs and verdicts is the caller's */

struct policy_surprise policy_case_check(const struct policy_case *c, struct gpol_job *jobs,
					 struct gpol_verdict *verdicts);

/* ---- how cases are written: times in milliseconds ---- */

#define MS(ms) ((uint64_t)((ms)*1000000ll))
#define AT(ms) .now_ns = MS(ms)
#define AGAIN(ms) .again_ns = MS(ms)
#define NEVER .again_ns = GPOL_NEVER
#define JOBS(...) .jobs = { __VA_ARGS__ }

/* clang-format off */
#define ONLINE(i, ...) { .id = (i), .class = JOB_ONLINE, __VA_ARGS__ }
#define OFFLINE(i, ...) { .id = (i), .class = JOB_OFFLINE, .preemptible = true, __VA_ARGS__ }
#define FIXED(i, ...) { .id = (i), .class = JOB_OFFLINE, __VA_ARGS__ }
/* clang-format on */
#define WORK(since) .has_work = true, .work_since_ns = MS(since)
#define IDLE(since) .work_since_ns = MS(since)
#define HELD(since) .held = true, .held_since_ns = MS(since)
#define LET_GO(at) .held_since_ns = MS(at)
#define PRIO(p) .priority = (p)
#define BOUND(ms) .wait_bound_ns = MS(ms)
#define RAN(ms) .ran_ns = MS(ms)
#define WEIGHT(w) .weight = (w)
#define LEAST(permille) .min_permille = (permille)
#define TARGET(ms) .target_ns = MS(ms)
#define SERVICE(ms) .service_ns = MS(ms)
#define ANNOUNCED .announced = true

#endif
