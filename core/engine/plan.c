/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * For each unit, a gang or a job by itself: may it be off, must it be on. What must be on comes
 * first, then what the policy wants, then whether there are slots.
 */
#include "core/engine/internal.h"

/* Of the budget, in permille: what is kept for online work by holds that are not for it. */
#define KEPT_FOR_URGENT 500

struct unit {
	bool holdable; /* all of it */
	bool held; /* all of it */
	bool hold; /* the policy wants one of it off */
	bool overdue, spared, too_soon; /* one of it */
	bool returning; /* one of it, and nobody knows yet whether it is there */
	bool works; /* one of it, or nobody can tell */
	uint32_t queues;
	uint64_t waited_ns; /* the longest of them */
	struct engine_job *urgent; /* for whom; NULL: nobody */
};

/* ---- for whom ---- */

static bool is_alone(const struct engine_job *j)
{
	return j->next_in_gang == j;
}

/* On a GPU before that of @m, where the gang of @m is as well; see mark_gpus. */
static bool meet_before(const struct engine *e, const struct engine_job *m,
			struct engine_job *other)
{
	bool before_it = false;

	for_each_member(e, o, other)
		before_it |= o->gpu < m->gpu && o->gpu->unit == e->units;
	return before_it;
}

static void mark_gpus(struct engine *e, struct engine_job *unit)
{
	e->units++;
	for_each_member(e, m, unit) {
		m->gpu->unit = e->units;
		m->gpu->asked_for = GPOL_NOBODY;
	}
}

/*
 * Does what the policy says of @m count for its gang? Not where it should make room for one of its
 * own. And where two gangs meet on several GPUs, each might be held for the other, by GPUs that
 * disagree about whose turn it is: the first GPU they meet on speaks for all.
 */
static bool is_meant(struct engine *e, const struct engine_job *m, struct engine_job *other)
{
	struct engine_gpu *g = m->gpu;

	if (!other || is_online(other) || is_alone(m) || is_alone(other))
		return true;
	if (g->asked_for != other->id) {
		g->asked_for = other->id;
		g->meant = other->config.gang != m->config.gang && !meet_before(e, m, other);
	}
	return g->meant;
}

/* Of several for whom a gang is to be held the one that can wait least speaks for them. */
static int urgency(const struct engine *e, const struct engine_job *j)
{
	if (!j)
		return 0;
	if (!is_online(j))
		return 1;
	return j->has_work ? 4 : engine_announced(e, j) ? 3 : 2;
}

static void find_reason(struct engine *e, struct engine_job *first, struct unit *u)
{
	mark_gpus(e, first);
	for_each_member(e, m, first) {
		struct engine_job *other = engine_find_job(e, m->because);

		if (!m->hold || !is_meant(e, m, other))
			continue;
		u->hold = true;
		if (urgency(e, other) > urgency(e, u->urgent))
			u->urgent = other;
	}
}

static struct unit look_at(struct engine *e, struct engine_job *first)
{
	struct unit u = { .holdable = true, .held = true };

	find_reason(e, first, &u);
	for_each_member(e, m, first) {
		u.holdable &= is_holdable(e, m);
		u.held &= is_held(m);
		u.overdue |= engine_overdue(e, m);
		u.spared |= engine_spared(e, m, u.urgent);
		u.too_soon |= !is_held(m) && engine_too_soon(e, m);
		u.returning |= m->place == PLACE_RETURNING;
		u.works |= m->has_work || m->hidden;
		u.queues += m->queues;
		if (is_held(m) && m->has_work)
			u.waited_ns =
				gpol_max(u.waited_ns, gpol_elapsed(e->now_ns, m->wait_since_ns));
	}
	return u;
}

void engine_set_want(struct engine *e, struct engine_job *unit, enum want want)
{
	for_each_member(e, m, unit)
		m->want = (uint8_t)want;
}

/* ---- what the policy wants ---- */

static bool is_granted(struct engine *e, struct engine_gpu *g, uint32_t spare_permille)
{
	uint64_t again_ns = engine_budget_again(e, g, 2, spare_permille);

	if (g->granted == e->step)
		return true;
	if (again_ns != GPOL_NEVER) {
		g->denied_by_budget++;
		wake_at(e, again_ns);
		return false;
	}
	g->granted = e->step;
	return true;
}

/* Whoever it is that the policy names: one who gains enough is reason enough. */
static bool is_worth_it(struct engine *e, struct engine_job *first, const struct unit *u)
{
	bool worth = false;

	if (!u->urgent || !is_online(u->urgent))
		return true;
	for_each_member(e, m, first)
		worth |= engine_is_worth_it(e, m->gpu);
	return worth;
}

static bool may_hold(struct engine *e, struct engine_job *first, const struct unit *u)
{
	struct engine_gpu *g = (u->urgent ? u->urgent : first)->gpu;
	/* Minimal runs and the like are no reason to let it wait. */
	bool urgent = u->urgent && engine_needs_room(e, u->urgent);

	if (u->returning || (u->too_soon && !urgent))
		return false;
	if (!is_worth_it(e, first, u)) {
		g->denied_by_cost += urgent;
		return false;
	}
	for_each_member(e, m, first) {
		if (!is_granted(e, m->gpu, urgent ? 0 : KEPT_FOR_URGENT)) {
			engine_spoil_bursts(e, g);
			return false;
		}
	}
	return true;
}

/* ---- what slots allow ---- */

static bool may_park(struct engine *e, struct engine_job *first, const struct unit *u)
{
	if (u->returning || u->too_soon)
		return false;
	for_each_member(e, m, first) {
		if (!m->gpu->may_park)
			return false;
	}
	return true;
}

static bool idle_for(struct engine *e, const struct engine_job *j, uint64_t duration_ns)
{
	uint64_t at_ns = gpol_after(j->work_since_ns, duration_ns);

	if (j->has_work || j->hidden)
		return false;
	wake_at(e, at_ns);
	return at_ns <= e->now_ns;
}

/*
 * Lazy ones before their first work, and those that give back what they do not use; but not where
 * their work could not be seen when it comes.
 */
static bool wants_no_slot(struct engine *e, const struct engine_job *j)
{
	if (j->has_work || j->hidden)
		return false;
	if ((j->config.flags & ENGINE_JOB_LAZY) && !j->ever_worked)
		return true;
	return (j->config.flags & ENGINE_JOB_AUTO_DEACTIVATE) &&
	       idle_for(e, j, e->config.idle_queue_ns);
}

static bool is_parked(const struct engine *e, struct engine_job *first, const struct unit *u)
{
	bool parked = false;

	for_each_member(e, m, first) {
		m->parked &= !u->works;
		parked |= m->parked;
	}
	return parked;
}

static enum want by_slots(struct engine *e, struct engine_job *first, const struct unit *u)
{
	bool idle = true, no_slot = u->queues > 0;

	if (is_parked(e, first, u) && u->held)
		return WANT_OFF;
	if (!u->held && !may_park(e, first, u))
		return WANT_ON;
	for_each_member(e, m, first) {
		idle &= idle_for(e, m, e->config.min_run_ns);
		no_slot &= wants_no_slot(e, m);
	}
	for_each_member(e, m, first)
		m->parked = no_slot;
	if (no_slot)
		return WANT_OFF;
	return idle ? WANT_SPARE_SLOT : WANT_SLOT;
}

/* ---- all of it ---- */

/* Let go by force it has a turn, but none longer than it waited. */
static uint64_t turn_of(const struct engine *e, const struct unit *u)
{
	return gpol_max(gpol_min(u->waited_ns, e->config.params.turn_ns), e->config.min_run_ns);
}

static void note_end(struct engine *e, struct engine_job *first, const struct unit *u)
{
	for_each_member(e, m, first) {
		m->overdue = u->overdue;
		m->must_go = u->overdue || !u->holdable;
		m->room_for = u->urgent ? u->urgent->id : GPOL_NOBODY;
		if (is_held(m))
			m->spared_ns = u->overdue ? turn_of(e, u) : 0;
		if (m->resume_failed)
			wake_at(e, gpol_after(e->now_ns, e->config.interval_ns));
	}
}

static void plan_unit(struct engine *e, struct engine_job *first)
{
	struct unit u = look_at(e, first);
	enum want want;

	note_end(e, first, &u);
	if (!u.holdable || u.overdue || u.spared || e->config.policy == &gpol_none)
		want = WANT_ON; /* without a policy nobody is touched, for slots neither */
	else if (u.hold)
		want = u.held || may_hold(e, first, &u) ? WANT_OFF : WANT_ON;
	else
		want = by_slots(e, first, &u);
	engine_set_want(e, first, want);
}

void engine_plan(struct engine *e)
{
	e->due_ns = GPOL_NEVER;
	for_each_gpu(e, g) {
		engine_budget_fill(e, g);
		g->may_park = engine_budget_again(e, g, 2, KEPT_FOR_URGENT) == GPOL_NEVER;
	}
	e->walk++;
	for_each_gpu(e, g) {
		for_each_job_on(e, g, j) {
			if (engine_first_visit(e, j))
				plan_unit(e, j);
		}
	}
	engine_admit(e);
}
