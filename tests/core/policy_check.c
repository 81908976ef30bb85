/* SPDX-License-Identifier: MIT */
#include "tests/core/policy_cases.h"

const struct gpol_params policy_case_params = {
	.linger_ns = MS(1),
	.turn_ns = MS(100),
	.ceiling_ns = MS(10),
	.margin_ns = MS(1),
};
const struct gpol_gpu policy_case_gpu = { .suspend_ns = MS(1), .resume_ns = MS(1) };

const struct policy_cases *const policy_cases_all[] = {
	&policy_cases_priority,
	&policy_cases_rotate,
	&policy_cases_share,
	&policy_cases_deadline,
	NULL,
};

static size_t listed(const struct policy_step *step)
{
	size_t n = 0;

	while (step->verdicts[n])
		n++;
	return n;
}

/* The jobs of a step, with the crowd the last of them stands for. */
static size_t fill(const struct policy_case *c, const struct policy_step *step,
		   struct gpol_job *jobs)
{
	size_t n = listed(step), last = n - 1;

	for (size_t i = 0; i < n; i++)
		jobs[i] = step->jobs[i];
	for (uint32_t k = 1; n && k < c->crowd; k++) {
		jobs[last + k] = jobs[last];
		jobs[last + k].id += k;
		n++;
	}
	return n;
}

static struct policy_surprise compare(const struct policy_step *step, size_t n,
				      const struct gpol_verdict *verdicts, uint64_t again_ns)
{
	size_t last = listed(step) - 1;

	for (size_t i = 0; i < n; i++) {
		char c = step->verdicts[i < last ? i : last];
		uint32_t because = c == '-' ? GPOL_NOBODY : (uint32_t)(c - '0');

		if (verdicts[i].hold != (c != '-'))
			return (struct policy_surprise){ .what = "hold",
							 .job = i,
							 .got = verdicts[i].hold,
							 .expected = c != '-' };
		if (verdicts[i].because != because)
			return (struct policy_surprise){ .what = "because",
							 .job = i,
							 .got = verdicts[i].because,
							 .expected = because };
	}
	if (again_ns != step->again_ns)
		return (struct policy_surprise){ .what = "again",
						 .got = again_ns,
						 .expected = step->again_ns };
	return (struct policy_surprise){ .what = NULL };
}

struct policy_surprise policy_case_check(const struct policy_case *c, struct gpol_job *jobs,
					 struct gpol_verdict *verdicts)
{
	uint64_t state[GPOL_STATE_BYTES / sizeof(uint64_t)] = { 0 };
	struct policy_surprise s = { .what = NULL };

	for (size_t i = 0; i < POLICY_CASE_STEPS && c->steps[i].verdicts && !s.what; i++) {
		const struct policy_step *step = &c->steps[i];
		struct gpol_input in = {
			.now_ns = step->now_ns,
			.params = c->params ? c->params : &policy_case_params,
			.gpu = c->gpu ? c->gpu : &policy_case_gpu,
			.jobs = jobs,
			.n = fill(c, step, jobs),
		};

		if (c->ops->observe)
			c->ops->observe(state, &in);
		s = compare(step, in.n, verdicts, c->ops->decide(state, &in, verdicts));
		s.step = i;
	}
	return s;
}
