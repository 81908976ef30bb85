/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What a preemption is worth.
 *
 * It costs everybody. The online job waits until the others are off, and where the driver takes all
 * off to take one off, it and every other online job stand still meanwhile; the others do nothing
 * until they have returned. What it gains is the time that the online job would have taken longer
 * beside them, and that cannot be seen from outside: they may take half of the GPU from it, all of
 * it, or nothing. So both ways to meet a burst are tried: to hold others for it at once, and only
 * when it takes much longer than such bursts do beside others. How long bursts took is remembered
 * for each way; the better one is the usual one, and the other is tried so seldom that it hardly
 * shows.
 */
#include "core/engine/internal.h"

#define OFF_COUNTS 32 /* a nanosecond in which offline work is off is one part in so many online */
#define ACT_COUNTS 8 /* likewise of an act: whoever comes while it lasts has to wait for its end */
#define TRY_FIRST 2 /* times what a burst takes: when acts have cost that, the other way is tried */
#define TRY_AGAIN 128 /* bursts between two that are met in the other way, at least */
#define LOST_BY_TRYING 1024 /* of the time of bursts one part in so many, at most */
#define TAIL 128 /* one burst in so many is not to be overlooked */
#define LATE_ALL (1u << 20)
#define SURE 16 /* bursts; each further one changes the mean by one part in so many */
#define OUTLIER 8 /* a burst that took so many times what they take counts as that */
#define LONG_NS (1ull << 40) /* what costs more counts as this */

/* What all pay for one act and its undoing, in time. */
static uint64_t cost_of(const struct engine *e, const struct engine_gpu *g)
{
	const struct engine_costs *c = &e->config.costs;
	uint64_t cost_ns = gpol_after(g->learnt.suspend_ns, g->learnt.resume_ns);

	if (c->disturbs_all)
		cost_ns = gpol_after(cost_ns, gpol_after(c->cycle_ns, c->cycle_ns));
	return gpol_min(cost_ns, LONG_NS);
}

/* Other online jobs that work would stand still for @j. */
static uint64_t bystanders_ns(const struct engine *e, const struct engine_job *j)
{
	uint64_t others = j->gpu->online_working - j->has_work;

	return e->config.costs.disturbs_all ? gpol_min(e->config.costs.cycle_ns, LONG_NS) * others :
					      0;
}

/* ---- the ways ---- */

/* How it is met where others are not held at once. */
static enum way later(const struct engine_job *j)
{
	return j->met.others ? WAY_LATER : WAY_LATER_OF_IDLE;
}

static enum way other_than(const struct engine_job *j, enum way way)
{
	return way == WAY_AT_ONCE ? later(j) : WAY_AT_ONCE;
}

/*
 * How long a burst waits before others are held for it: until it is clear that it takes longer than
 * such bursts do beside others, which at first is thought to be twice as long as alone.
 */
static uint64_t patience(const struct engine *e, const struct engine_job *j)
{
	const struct engine_met *met = &j->met;
	uint64_t cost_ns = cost_of(e, j->gpu);

	if (met->way == WAY_AT_ONCE)
		return 0;
	if (met->n[met->way])
		return gpol_after(met->took_ns[met->way], cost_ns);
	return gpol_max(gpol_after(j->service_ns, j->service_ns), cost_ns);
}

/*
 * Before both were tried: beside others a burst is thought to get half of the GPU, so it gains as
 * much as it takes alone. For a job of which nothing is known room is made.
 */
static enum way guess(const struct engine *e, const struct engine_job *j)
{
	return j->service_ns && cost_of(e, j->gpu) > j->service_ns ? later(j) : WAY_AT_ONCE;
}

/* A burst as it is met so, and others who work now. */
static uint64_t score(const struct engine *e, const struct engine_job *j, enum way way)
{
	uint64_t ns = j->met.took_ns[way];

	return way == WAY_AT_ONCE ? gpol_after(ns, bystanders_ns(e, j)) : ns;
}

/* Where so many come while others return, it is they who tell what the worst of all bursts take. */
static bool has_tail(const struct engine_job *j)
{
	return j->met.late_part >= LATE_ALL / TAIL && j->met.late_ns > j->met.took_ns[later(j)];
}

/* The one thought to be, unless the other is better by more than bursts differ anyway. */
static enum way better_of(const struct engine *e, const struct engine_job *j)
{
	const struct engine_met *met = &j->met;
	enum way way = guess(e, j), other = other_than(j, way);
	uint64_t noise_ns = gpol_max(met->off_ns[way], met->off_ns[other]);

	if (!met->n[way] || !met->n[other])
		return way;
	if (has_tail(j))
		return later(j);
	return gpol_after(score(e, j, other), noise_ns) < score(e, j, way) ? other : way;
}

/* By what it lost the last times, if there were any; and not where room would come too late. */
static bool is_worth_trying(const struct engine *e, const struct engine_job *j, enum way way)
{
	const struct engine_met *met = &j->met;
	enum way other = other_than(j, way);
	uint64_t lost_ns = gpol_elapsed(score(e, j, other), score(e, j, way));

	if (!met->n[way] || cost_of(e, j->gpu) * met->bursts / TRY_FIRST < met->took_ns[way])
		return false;
	if (other == WAY_AT_ONCE && met->took_ns[way] <= j->gpu->learnt.suspend_ns)
		return false;
	if (!met->n[other] && !met->tried[other])
		return true;
	return met->bursts == TRY_AGAIN && met->since_ns / LOST_BY_TRYING >= lost_ns;
}

static enum way choose(const struct engine *e, struct engine_job *j)
{
	enum way way = better_of(e, j);

	/* Nothing is tried at the expense of a job that people said is not to wait. */
	if (j->met.late || j->met.spoilt || (j->config.flags & ENGINE_JOB_CRITICAL) ||
	    !is_worth_trying(e, j, way))
		return way;
	way = other_than(j, way);
	j->met.tried[way] = true;
	j->met.bursts = 0;
	j->met.since_ns = 0;
	return way;
}

/* ---- bursts ---- */

/* What is announced begins when that says, whenever it is seen. */
static void begin(const struct engine *e, struct engine_job *j)
{
	struct engine_met *met = &j->met;
	uint64_t work_ns = j->has_work ? j->work_since_ns : GPOL_NEVER;

	met->asked = true;
	met->asked_ns = e->now_ns;
	met->began_ns = gpol_min(work_ns, engine_announced_for(e, j));
	met->late = met->began_ns < e->now_ns && met->began_ns <= j->gpu->returned_ns;
	/* Else others came later, or had a right to be there. */
	met->spoilt = met->began_ns < e->now_ns && !met->late;
	met->others = j->gpu->offline_running > 0;
	met->way = (uint8_t)choose(e, j);
}

static bool is_worth_it_for(struct engine *e, struct engine_job *j)
{
	uint64_t wait_ns;

	if (!j->met.asked)
		begin(e, j);
	wait_ns = patience(e, j);
	if (!wait_ns || gpol_after(j->met.began_ns, wait_ns) <= e->now_ns)
		return true;
	wake_at(e, gpol_after(j->met.began_ns, wait_ns));
	return false;
}

bool engine_is_worth_it(struct engine *e, struct engine_gpu *g)
{
	if (g->weighed == e->step)
		return g->worth;
	g->weighed = e->step;
	g->online_working = 0;
	for_each_job_on(e, g, j)
		g->online_working += is_online(j) && j->has_work;
	g->worth = false;
	for_each_job_on(e, g, j)
		g->worth |= engine_needs_room(e, j) && is_worth_it_for(e, j);
	return g->worth;
}

void engine_spoil_bursts(const struct engine *e, struct engine_gpu *g)
{
	if (g->spoilt == e->step)
		return;
	g->spoilt = e->step;
	for_each_job_on(e, g, j)
		j->met.spoilt |= is_online(j) && j->has_work;
}

/* What others paid for the burst that ends, if they were held for it. */
static uint64_t price(const struct engine *e, const struct engine_job *j)
{
	const struct engine_gpu *g = j->gpu;
	uint64_t off_ns = gpol_elapsed(e->now_ns, gpol_max(g->suspended_ns, j->met.began_ns));

	if (g->suspended_ns < j->met.asked_ns)
		return 0;
	return cost_of(e, g) / ACT_COUNTS + off_ns / OFF_COUNTS;
}

/* It ended at any time since the last look. */
static void learn(const struct engine *e, struct engine_met *met, uint64_t ns)
{
	uint64_t *mean_ns = &met->took_ns[met->way];
	uint64_t off_ns = gpol_elapsed(e->now_ns, e->looked_ns) / 4;
	uint8_t *n = &met->n[met->way];

	if (*n) {
		ns = gpol_min(ns, OUTLIER * *mean_ns);
		off_ns = gpol_max(off_ns, gpol_max(ns, *mean_ns) - gpol_min(ns, *mean_ns));
	}
	engine_draw_near(&met->off_ns[met->way], off_ns, *n ? *n : 1);
	*n = (uint8_t)gpol_min(*n + 1u, SURE);
	engine_draw_near(mean_ns, ns, *n);
	met->bursts = (uint8_t)gpol_min(met->bursts + 1u, TRY_AGAIN);
	met->since_ns = gpol_after(met->since_ns, ns);
}

static void learn_burst(const struct engine *e, struct engine_job *j)
{
	struct engine_met *met = &j->met;
	uint64_t took_ns = gpol_elapsed(e->now_ns, met->began_ns);
	bool at_once = met->way == WAY_AT_ONCE;

	/* Where nobody is held nobody returns: that so many come late is forgotten slowly. */
	engine_draw_near(&met->late_part, at_once && met->late ? LATE_ALL : 0,
			 at_once ? 2 * TAIL : 16 * TAIL);
	if (!met->late)
		learn(e, met, gpol_after(took_ns, price(e, j)));
	else if (at_once)
		engine_draw_near(&met->late_ns, took_ns, met->late_ns ? SURE : 1);
}

void engine_burst_begins(const struct engine *e, struct engine_job *j)
{
	/* What was announced before and never came is another one. */
	j->met.asked &= engine_announced(e, j);
}

void engine_burst_ended(const struct engine *e, struct engine_job *j, bool seen)
{
	if (j->met.asked && !j->met.spoilt && seen)
		learn_burst(e, j);
	j->met.asked = false;
	j->met.spoilt = false;
}

void engine_others_changed(const struct engine *e, struct engine_gpu *g)
{
	for_each_job_on(e, g, j) {
		struct engine_met *met = &j->met;

		met->n[WAY_AT_ONCE] = met->n[WAY_AT_ONCE] != 0;
		for (enum way way = WAY_LATER; way < WAYS; way++) {
			met->n[way] = 0;
			met->tried[way] = false;
			met->took_ns[way] = met->off_ns[way] = 0;
		}
		met->bursts = 0;
		met->since_ns = met->late_part = 0;
		met->spoilt = true;
	}
}
