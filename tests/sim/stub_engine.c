/* SPDX-License-Identifier: MIT */
/* Not an engine: it does as it is told, so that what is done with it can be looked at. */
#include <errno.h>
#include <string.h>

#include "tests/sim/sim_rig.h"

#define STUB_JOBS 32
#define STUB_ID(index) ((index) + 1000) /* ids are nobody's index */

struct stub_job {
	struct engine_job_config config;
	bool held, busy, asked, announced;
	uint64_t hint_at_ns;
};

struct engine {
	struct stub_job jobs[STUB_JOBS];
	size_t n;
	uint64_t ticket;
	struct engine_action sent[STUB_JOBS * 4];
	size_t n_sent;
	bool parked;
};

struct stub stub;

const struct engine_config engine_config_default = {
	.interval_ns = 5 * MSEC,
	.hold_max_ns = 100 * MSEC,
	.min_run_ns = 2 * MSEC,
};

void stub_reset(enum stub_way way)
{
	stub = (struct stub){
		.way = way,
		.hold_ns = 100 * MSEC,
		.interval_ns = MSEC,
	};
}

size_t engine_bytes(const struct engine_limits *limits)
{
	return sizeof(struct engine);
}

struct engine *engine_init(void *memory, const struct engine_limits *limits,
			   const struct engine_config *config)
{
	stub.config = *config;
	memset(memory, 0, sizeof(struct engine));
	return memory;
}

int engine_add_gpu(struct engine *e, uint32_t gpu, uint32_t slots)
{
	return 0;
}

int engine_add_job(struct engine *e, uint64_t now_ns, const struct engine_job_config *config)
{
	if (e->n == STUB_JOBS)
		return -ENOSPC;
	e->jobs[e->n].config = *config;
	return STUB_ID(e->n++);
}

int engine_hint(struct engine *e, uint64_t now_ns, uint32_t job, uint64_t at_ns, uint64_t for_ns)
{
	e->jobs[job - STUB_ID(0)].announced = true;
	e->jobs[job - STUB_ID(0)].hint_at_ns = at_ns;
	stub.hints++;
	stub.last_hint_at_ns = at_ns;
	return 0;
}

int engine_report(struct engine *e, uint64_t now_ns, uint64_t ticket, int result, uint64_t took_ns)
{
	stub.reports++;
	stub.last_took_ns = took_ns;
	for (size_t i = 0; i < e->n_sent; i++) {
		struct engine_action *a = &e->sent[i];

		if (a->ticket != ticket)
			continue;
		e->jobs[a->job - STUB_ID(0)].asked = false;
		if (a->verb == ENGINE_SUSPEND)
			stub.last_suspend_took_ns = took_ns;
		else
			stub.last_resume_took_ns = took_ns;
		*a = e->sent[--e->n_sent];
		return 0;
	}
	return -ENOENT;
}

static void send(struct engine *e, struct engine_step *step, size_t job, uint8_t verb,
		 uint32_t queue)
{
	struct engine_action a = {
		.ticket = ++e->ticket,
		.deadline_ns = step->now_ns + stub.hold_ns,
		.gpu = e->jobs[job].config.gpu,
		.job = STUB_ID(job),
		.queue = queue,
		.because = GPOL_NOBODY,
		.verb = verb,
	};

	step->actions[step->n_actions++] = a;
	e->sent[e->n_sent++] = a;
	e->jobs[job].asked = true;
	e->jobs[job].held = verb == ENGINE_SUSPEND && queue == ENGINE_ALL_QUEUES;
}

static void look(struct engine *e, const struct engine_step *step)
{
	for (size_t i = 0; i < e->n; i++)
		e->jobs[i].busy = false;
	stub.n_seen = MIN(step->n_samples, ARRAY_SIZE(stub.seen));
	memcpy(stub.seen, step->samples, stub.n_seen * sizeof(*stub.seen));
	for (size_t i = 0; i < step->n_samples; i++) {
		const struct engine_sample *s = &step->samples[i];
		struct stub_job *j = &e->jobs[s->job - STUB_ID(0)];

		j->busy |= s->write > s->read || s->busy;
	}
	for (size_t i = 0; i < e->n; i++) {
		struct stub_job *j = &e->jobs[i];

		if (j->announced && step->now_ns > j->hint_at_ns && !j->busy)
			j->announced = false;
	}
}

static bool urgent(const struct engine *e, uint32_t gpu)
{
	for (size_t i = 0; i < e->n; i++) {
		const struct stub_job *j = &e->jobs[i];

		if (j->config.class == JOB_ONLINE && j->config.gpu == gpu &&
		    (j->busy || j->announced))
			return true;
	}
	return false;
}

static bool wants_hold(const struct engine *e, const struct stub_job *j)
{
	if (stub.way == STUB_NEVER_LETS_GO)
		return j->held || j->busy;
	return stub.way == STUB_PREEMPTS && urgent(e, j->config.gpu);
}

void engine_step(struct engine *e, struct engine_step *step)
{
	stub.steps++;
	step->n_actions = 0;
	step->wake_ns = step->now_ns + stub.interval_ns;
	step->due_ns = UINT64_MAX;
	if (step->n_samples && stub.n_looks < ARRAY_SIZE(stub.looks))
		stub.looks[stub.n_looks++] =
			(struct stub_look){ step->now_ns, step->n_samples, step->complete };
	look(e, step);
	for (size_t i = 0; i < e->n; i++) {
		struct stub_job *j = &e->jobs[i];
		bool hold = wants_hold(e, j);

		if (stub.way == STUB_PARKS && !e->parked)
			send(e, step, i, ENGINE_SUSPEND, 1);
		else if (!j->asked && hold != j->held && j->config.class == JOB_OFFLINE &&
			 stub.way != STUB_PARKS)
			send(e, step, i, hold ? ENGINE_SUSPEND : ENGINE_RESUME, ENGINE_ALL_QUEUES);
	}
	e->parked = true;
}
