/* SPDX-License-Identifier: MIT */
#include "tests/core/engine_rig.h"

/* ---- policies ---- */

static uint64_t hold_all(const void *state, const struct gpol_input *in, struct gpol_verdict *ret)
{
	for (size_t i = 0; i < in->n; i++)
		ret[i] = (struct gpol_verdict){ .hold = true, .because = GPOL_NOBODY };
	return GPOL_NEVER;
}

static uint64_t hold_none(const void *state, const struct gpol_input *in, struct gpol_verdict *ret)
{
	gpol_hold_nobody(in, ret);
	return GPOL_NEVER;
}

static uint64_t urgent_first(const void *state, const struct gpol_input *in,
			     struct gpol_verdict *ret)
{
	uint32_t because = GPOL_NOBODY;

	for (size_t i = 0; i < in->n; i++) {
		const struct gpol_job *job = &in->jobs[i];

		if (job->class == JOB_ONLINE && (job->has_work || job->announced))
			because = job->id;
	}
	for (size_t i = 0; i < in->n; i++) {
		ret[i].hold = because != GPOL_NOBODY && in->jobs[i].class == JOB_OFFLINE &&
			      in->jobs[i].has_work;
		ret[i].because = because;
	}
	return GPOL_NEVER;
}

const struct gpol_ops rig_hold_all = { .name = "all", .decide = hold_all };
const struct gpol_ops rig_urgent_first = { .name = "urgent", .decide = urgent_first };
const struct gpol_ops rig_hold_none = { .name = "nobody", .decide = hold_none };

/* ---- the rig ---- */

struct engine_config rig_config(const struct gpol_ops *policy)
{
	struct engine_config config = engine_config_default;

	config.policy = policy;
	config.min_run_ns = 0;
	config.cycles_per_s = 0;
	config.low_water = 0;
	return config;
}

void rig_open(struct rig *r, const struct engine_config *config, uint32_t gpus, uint32_t slots)
{
	const struct engine_limits limits = { .gpus = gpus, .jobs = 256, .queues = RIG_SAMPLES };

	*r = (struct rig){ .now_ns = 1000 * SEC, .max = RIG_SAMPLES };
	r->memory = malloc(engine_bytes(&limits));
	assert_non_null(r->memory);
	r->e = engine_init(r->memory, &limits, config);
	assert_non_null(r->e);
	for (uint32_t i = 0; i < gpus; i++)
		assert_int_equal(engine_add_gpu(r->e, RIG_GPU + i, slots), 0);
}

void rig_close(struct rig *r)
{
	free(r->memory);
}

uint32_t rig_add(struct rig *r, const struct engine_job_config *config, uint32_t queues)
{
	int job = engine_add_job(r->e, r->now_ns, config);

	assert_true(job >= 0);
	for (uint32_t i = 0; i < queues; i++) {
		assert_true(r->n_samples < RIG_SAMPLES);
		r->samples[r->n_samples++] =
			(struct engine_sample){ .job = (uint32_t)job, .queue = i };
	}
	return (uint32_t)job;
}

uint32_t rig_online(struct rig *r)
{
	return rig_add(r, &(struct engine_job_config){ .gpu = RIG_GPU, .class = JOB_ONLINE }, 1);
}

uint32_t rig_offline(struct rig *r)
{
	const struct engine_job_config config = {
		.gpu = RIG_GPU,
		.flags = ENGINE_JOB_PREEMPTIBLE,
	};
	uint32_t job = rig_add(r, &config, 1);

	rig_work(r, job, true);
	return job;
}

void rig_work(struct rig *r, uint32_t job, bool work)
{
	for (size_t i = 0; i < r->n_samples; i++) {
		struct engine_sample *s = &r->samples[i];

		if (s->job != job)
			continue;
		if (work)
			s->write = s->read + 1;
		else
			s->read = s->write;
	}
}

void rig_remove(struct rig *r, uint32_t job)
{
	size_t n = 0;

	assert_int_equal(engine_remove_job(r->e, job), 0);
	for (size_t i = 0; i < r->n_samples; i++) {
		if (r->samples[i].job != job)
			r->samples[n++] = r->samples[i];
	}
	r->n_samples = n;
}

void rig_report(struct rig *r, int result)
{
	for (size_t i = 0; i < r->n_actions; i++) {
		assert_int_equal(
			engine_report(r->e, r->now_ns, r->actions[i].ticket, result, 100 * US), 0);
	}
}

size_t rig_step(struct rig *r, uint64_t passes_ns)
{
	struct engine_step step = {
		.now_ns = r->now_ns += passes_ns,
		.samples = r->samples,
		.n_samples = r->n_samples,
		.complete = true,
		.actions = r->actions,
		.max = r->max,
	};

	engine_step(r->e, &step);
	r->n_actions = step.n_actions;
	r->wake_ns = step.wake_ns;
	if (!r->silent)
		rig_report(r, r->result);
	return step.n_actions;
}

void rig_run(struct rig *r, uint64_t passes_ns)
{
	uint64_t end_ns = r->now_ns + passes_ns;

	while (r->now_ns < end_ns) {
		uint64_t next_ns = r->wake_ns < end_ns ? r->wake_ns : end_ns;

		rig_step(r, next_ns > r->now_ns ? next_ns - r->now_ns : 0);
	}
}

void rig_run_until(struct rig *r, enum engine_verb verb, uint32_t job)
{
	for (int i = 0; i < 100000; i++) {
		if (rig_did(r, verb, job))
			return;
		rig_step(r, r->wake_ns - r->now_ns);
	}
	fail_msg("nothing happened to job %u for 100,000 steps", job);
}

bool rig_did(const struct rig *r, enum engine_verb verb, uint32_t job)
{
	for (size_t i = 0; i < r->n_actions; i++) {
		if (r->actions[i].verb == verb && r->actions[i].job == job)
			return true;
	}
	return false;
}

size_t rig_count(const struct rig *r, enum engine_verb verb)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n_actions; i++)
		n += r->actions[i].verb == verb;
	return n;
}

struct engine_job_stats rig_job(const struct rig *r, uint32_t job)
{
	struct engine_job_stats stats;

	assert_int_equal(engine_job_stats(r->e, job, &stats), 0);
	return stats;
}

bool rig_holds(const struct rig *r, uint32_t job)
{
	return rig_job(r, job).held;
}

struct engine_gpu_stats rig_gpu(const struct rig *r, uint32_t gpu)
{
	struct engine_gpu_stats stats;

	assert_int_equal(engine_gpu_stats(r->e, gpu, &stats), 0);
	return stats;
}
