/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#include "core/policy/common.h"

const struct gpol_ops *const gpol_all[] = {
	&gpol_none, &gpol_priority, &gpol_share, &gpol_rotate, &gpol_deadline, NULL,
};

/*
 * linger: about what a suspend and a resume cost together; waiting longer for work that may not
 * come costs more than being wrong.
 */
const struct gpol_params gpol_params_default = {
	.linger_ns = 200 * 1000,
	.turn_ns = 100 * 1000 * 1000,
	.ceiling_ns = 10 * 1000 * 1000,
	.margin_ns = 1000 * 1000,
};

static bool same_name(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

const struct gpol_ops *gpol_find(const char *name)
{
	for (const struct gpol_ops *const *ops = gpol_all; *ops; ops++) {
		if (same_name((*ops)->name, name))
			return *ops;
	}
	return NULL;
}

void gpol_hold_nobody(const struct gpol_input *in, struct gpol_verdict *ret)
{
	for (size_t i = 0; i < in->n; i++)
		ret[i] = (struct gpol_verdict){ .hold = false, .because = GPOL_NOBODY };
}

/* ---- who needs the GPU ---- */

bool gpol_more_urgent(const struct gpol_job *a, const struct gpol_job *b)
{
	return a->class != b->class ? a->class == JOB_ONLINE : a->priority > b->priority;
}

static bool lingers(const struct gpol_job *job, const struct gpol_input *in)
{
	return !job->has_work && job->work_since_ns &&
	       gpol_elapsed(in->now_ns, job->work_since_ns) < in->params->linger_ns;
}

bool gpol_needs_gpu(const struct gpol_job *job, const struct gpol_input *in)
{
	return job->has_work || job->announced || lingers(job, in);
}

uint64_t gpol_linger_ends(const struct gpol_job *job, const struct gpol_input *in)
{
	if (job->announced || !lingers(job, in))
		return GPOL_NEVER;
	return gpol_after(job->work_since_ns, in->params->linger_ns);
}

/* A total order, so that the order of the array decides nothing. */
static bool comes_before(const struct gpol_job *a, const struct gpol_job *b)
{
	if (gpol_more_urgent(a, b) || gpol_more_urgent(b, a))
		return gpol_more_urgent(a, b);
	if (a->has_work != b->has_work)
		return a->has_work;
	if (a->announced != b->announced)
		return a->announced;
	if (a->work_since_ns != b->work_since_ns)
		return a->has_work ? a->work_since_ns < b->work_since_ns :
				     a->work_since_ns > b->work_since_ns;
	return a->id < b->id;
}

const struct gpol_job *gpol_most_urgent(const struct gpol_input *in, enum job_class class)
{
	const struct gpol_job *best = NULL;

	for (size_t i = 0; i < in->n; i++) {
		const struct gpol_job *job = &in->jobs[i];

		if (job->class == class && gpol_needs_gpu(job, in) &&
		    (!best || comes_before(job, best)))
			best = job;
	}
	return best;
}

/* ---- a bounded wait ---- */

static bool waits(const struct gpol_job *job)
{
	return job->held && job->has_work && job->preemptible && job->wait_bound_ns;
}

static uint64_t wait_ends(const struct gpol_job *job)
{
	return gpol_after(gpol_max(job->held_since_ns, job->work_since_ns), job->wait_bound_ns);
}

static bool is_due(const struct gpol_job *job, const struct gpol_input *in)
{
	return waits(job) && in->now_ns >= wait_ends(job);
}

void gpol_relief_observe(void *state, const struct gpol_input *in)
{
	struct gpol_relief *relief = state;

	for (size_t i = 0; i < in->n; i++) {
		if (!is_due(&in->jobs[i], in))
			continue;
		if (in->now_ns >= relief->until_ns)
			relief->from_ns = in->now_ns;
		relief->until_ns = gpol_after(in->now_ns, in->params->turn_ns);
	}
}

static uint64_t relief_ends(const struct gpol_relief *relief, const struct gpol_job *job,
			    const struct gpol_input *in)
{
	if (job->held || !job->held_since_ns || job->held_since_ns < relief->from_ns)
		return 0;
	return gpol_min(gpol_after(job->held_since_ns, in->params->turn_ns), relief->until_ns);
}

/* It waited for as long as its bound says, or was let go for that less than a turn ago. */
static bool is_spared(const struct gpol_relief *relief, const struct gpol_job *job,
		      const struct gpol_input *in)
{
	return is_due(job, in) || in->now_ns < relief_ends(relief, job, in);
}

bool gpol_can_be_held(const struct gpol_relief *relief, const struct gpol_job *job,
		      const struct gpol_input *in)
{
	return job->preemptible && (job->held || gpol_needs_gpu(job, in)) &&
	       !is_spared(relief, job, in);
}

uint64_t gpol_holding_changes(const struct gpol_relief *relief, const struct gpol_job *job,
			      const struct gpol_input *in)
{
	uint64_t at = waits(job) ? wait_ends(job) : relief_ends(relief, job, in);

	at = at > in->now_ns ? at : GPOL_NEVER;
	return job->held ? at : gpol_min(at, gpol_linger_ends(job, in));
}

uint64_t gpol_hold_lesser(const struct gpol_relief *relief, const struct gpol_input *in,
			  const struct gpol_job *top, struct gpol_verdict *ret)
{
	uint64_t again = gpol_linger_ends(top, in);

	gpol_hold_nobody(in, ret);
	for (size_t i = 0; i < in->n; i++) {
		const struct gpol_job *job = &in->jobs[i];

		if (!gpol_more_urgent(top, job) || job->class != JOB_OFFLINE)
			continue;
		again = gpol_min(again, gpol_holding_changes(relief, job, in));
		if (gpol_can_be_held(relief, job, in))
			ret[i] = (struct gpol_verdict){ .hold = true, .because = top->id };
	}
	return again;
}
