/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#include "core/engine/internal.h"

/* ---- actions ---- */

static bool is_leaving(const struct engine *e, struct engine_job *unit)
{
	bool leaving = false;

	for_each_member(e, m, unit)
		leaving |= m->place == PLACE_LEAVING;
	return leaving;
}

/* An overdue resume does not wait for news of the suspend: the order of the two is enough. */
static bool needs_resume(const struct engine_job *j)
{
	return j->want == WANT_ON && (j->place == PLACE_OFF || (is_held(j) && j->overdue));
}

static bool needs_suspend(const struct engine_job *j)
{
	return j->want == WANT_OFF && j->place == PLACE_ON;
}

static void write_resumes(struct engine *e, struct engine_step *step, struct engine_job *unit)
{
	if (is_leaving(e, unit) && !unit->must_go)
		return;
	for_each_member(e, m, unit) {
		if (!needs_resume(m))
			continue;
		if (step->n_actions < step->max)
			engine_resume(e, m, &step->actions[step->n_actions++]);
		else
			e->plan_stale = true;
	}
}

/* All of a unit ends when the first of it has to. */
static uint64_t deadline(const struct engine *e, struct engine_job *unit)
{
	uint64_t longest_ns = e->config.hold_max_ns;

	for_each_member(e, m, unit) {
		if (m->has_work)
			longest_ns = gpol_min(longest_ns, wait_bound(e, m));
	}
	return gpol_after(e->now_ns, longest_ns);
}

static void write_suspends(struct engine *e, struct engine_step *step, struct engine_job *unit)
{
	uint64_t deadline_ns = deadline(e, unit);
	size_t n = 0;

	for_each_member(e, m, unit)
		n += needs_suspend(m);
	/* A gang is not torn apart for lack of room, unless it could never be written whole. */
	if (n && n <= step->max && n > step->max - step->n_actions) {
		e->plan_stale = true;
		return;
	}
	for_each_member(e, m, unit) {
		if (!needs_suspend(m))
			continue;
		if (step->n_actions < step->max)
			engine_suspend(e, m, deadline_ns, &step->actions[step->n_actions++]);
		else
			e->plan_stale = true;
	}
}

static void write_actions(struct engine *e, struct engine_step *step,
			  void (*write)(struct engine *, struct engine_step *, struct engine_job *))
{
	e->walk++;
	for_each_gpu(e, g) {
		for_each_job_on(e, g, j) {
			if (engine_first_visit(e, j))
				write(e, step, j);
		}
	}
}

/* ---- time ---- */

static uint64_t cadence_of(struct engine *e, struct engine_gpu *g)
{
	bool critical = false, holdable = false;

	for_each_job_on(e, g, j) {
		critical |= j->config.flags & ENGINE_JOB_CRITICAL;
		holdable |= is_holdable(e, j);
	}
	if (!holdable)
		return e->config.idle_interval_ns;
	return critical ? gpol_min(e->config.critical_interval_ns, e->config.interval_ns) :
			  e->config.interval_ns;
}

static uint64_t next_due(const struct engine *e)
{
	uint64_t due_ns = e->due_ns;

	if (e->plan_stale)
		return e->now_ns;
	for_each_gpu(e, g)
		due_ns = gpol_min(due_ns, g->judge_ns);
	return due_ns;
}

static uint64_t next_look(struct engine *e)
{
	if (!e->cadence_ns) {
		e->cadence_ns = e->config.idle_interval_ns;
		for_each_gpu(e, g)
			e->cadence_ns = gpol_min(e->cadence_ns, cadence_of(e, g));
	}
	return gpol_after(e->now_ns, e->cadence_ns);
}

void engine_step(struct engine *e, struct engine_step *step)
{
	bool judged = false;

	ENGINE_ASSERT(step->samples || !step->n_samples);
	ENGINE_ASSERT(step->actions || !step->max);
	e->now_ns = gpol_max(e->now_ns, step->now_ns);
	e->step++;
	step->n_actions = 0;
	engine_observe(e, step);
	e->walk++;
	for_each_gpu(e, g)
		judged |= engine_judge(e, g);
	if (judged || e->plan_stale || e->due_ns <= e->now_ns) {
		e->plan_stale = false;
		engine_plan(e);
		if (e->config.costs.suspends_first)
			write_actions(e, step, write_suspends);
		write_actions(e, step, write_resumes);
		if (!e->config.costs.suspends_first)
			write_actions(e, step, write_suspends);
	}
	step->due_ns = next_due(e);
	step->wake_ns = gpol_min(step->due_ns, next_look(e));
}
