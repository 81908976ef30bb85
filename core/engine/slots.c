/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Who finds a slot. Online queues always do: a part of the slots, and at least as many as they use,
 * is kept for them. Offline units stand in one line; those on the GPU keep their slots for a turn
 * while others wait, then go to the end of it. Nobody in the line is overtaken by a smaller one, so
 * a large one is not starved, and one too large for all slots there are is let in alone.
 */
#include "core/engine/internal.h"

/* ---- how many there are ---- */

static uint32_t online_in_use(struct engine *e, struct engine_gpu *g)
{
	bool counts = e->config.costs.counts_progress;
	uint32_t n = 0;

	g->online_queues = 0;
	for_each_job_on(e, g, j) {
		if (!is_online(j))
			continue;
		g->online_queues += j->queues;
		n += counts && !engine_announced(e, j) ? j->working : j->queues;
	}
	return n;
}

/* Grows at once and shrinks after a turn, so that short bursts do not make offline jobs move. */
static void reserve(struct engine *e, struct engine_gpu *g)
{
	uint32_t used = online_in_use(e, g);
	uint32_t least = (uint32_t)(((uint64_t)g->slots * e->config.online_permille + 999) / 1000);
	uint64_t shrinks_ns = gpol_after(g->online_peak_ns, e->config.slot_turn_ns);

	if (used >= g->online_peak || shrinks_ns <= e->now_ns) {
		g->online_peak = used;
		g->online_peak_ns = e->now_ns;
	} else if (g->slots) {
		wake_at(e, shrinks_ns);
	}
	g->reserved = (uint32_t)gpol_min(gpol_max(least, g->online_peak), g->slots);
	g->limit = (uint32_t)gpol_min((uint64_t)g->slots * e->config.offline_permille / 1000,
				      g->slots - g->reserved);
}

static void take_stock(struct engine *e, struct engine_gpu *g)
{
	reserve(e, g);
	g->used = 0;
	g->demand = 0;
	g->full = false;
	g->rotates = false;
	for_each_job_on(e, g, j) {
		if (is_online(j))
			continue;
		g->used += j->want == WANT_ON ? j->queues : 0;
		g->demand += j->want != WANT_OFF ? j->queues : 0;
	}
}

static bool is_short(const struct engine_gpu *g)
{
	return g->slots && g->demand > g->limit;
}

/* ---- turns ---- */

static uint64_t turn_of(struct engine *e, struct engine_job *unit)
{
	uint64_t ns = 0;

	for_each_member(e, m, unit) {
		engine_account(e, m);
		if (!is_held(m))
			ns = gpol_max(ns, m->turn_ns);
	}
	return ns;
}

static bool takes_turns(const struct engine_job *j)
{
	return j->want == WANT_SLOT && !is_held(j);
}

static void find_ended_turns(struct engine *e, struct engine_gpu *g)
{
	for_each_job_on(e, g, j) {
		uint64_t turn_ns;

		if (!takes_turns(j))
			continue;
		turn_ns = turn_of(e, j);
		g->rotates |= turn_ns >= e->config.slot_turn_ns;
		wake_at(e, gpol_after(e->now_ns, gpol_elapsed(e->config.slot_turn_ns, turn_ns)));
	}
}

/* Where one turn is over, half a turn is enough for the others: moves come in batches. */
static void find_ended_with_it(struct engine *e, struct engine_gpu *g)
{
	for_each_job_on(e, g, j) {
		if (!takes_turns(j) || turn_of(e, j) < e->config.slot_turn_ns / 2)
			continue;
		for_each_member(e, m, j)
			m->turn_over = true;
	}
}

/* To the end of the line, in the order they stood in it. */
static void end_turns(struct engine *e)
{
	struct engine_job *last = e->line_last, *next = e->line_first, *j;

	do {
		j = next;
		if (!j)
			return;
		next = j->line_next;
		if (!j->turn_over)
			continue;
		j->turn_over = false;
		j->admitted = false;
		j->turn_ns = 0;
		engine_line_up(e, j);
	} while (j != last);
}

/* ---- who gets in ---- */

static uint32_t queues_on(struct engine *e, struct engine_job *unit, const struct engine_gpu *g)
{
	uint32_t n = 0;

	for_each_member(e, m, unit)
		n += m->gpu == g ? m->queues : 0;
	return n;
}

static bool fits_on(struct engine *e, struct engine_job *unit, const struct engine_gpu *g)
{
	uint32_t n = queues_on(e, unit, g);

	if (!g->slots || !n)
		return true;
	return !g->full && (g->used + n <= g->limit || !g->used);
}

static bool fits(struct engine *e, struct engine_job *unit)
{
	for_each_member(e, m, unit) {
		if (!fits_on(e, unit, m->gpu))
			return false;
	}
	return true;
}

static void let_in(struct engine *e, struct engine_job *unit)
{
	for_each_member(e, m, unit) {
		m->gpu->used += m->queues;
		m->admitted = true;
	}
}

/* A gang finds its slots on all its GPUs at once, so it has them kept where there are some. */
static void turn_away(struct engine *e, struct engine_job *unit)
{
	for_each_member(e, m, unit) {
		m->gpu->full |= m->queues != 0;
		m->admitted = false;
	}
	engine_set_want(e, unit, WANT_OFF);
}

/*
 * In the middle of a turn; what the reserve takes from them they get back by standing in line. Who
 * is new is on the GPU too, but has no right to it.
 */
static void keep_turns(struct engine *e)
{
	for_each_in_line(e, j) {
		if (takes_turns(j) && j->admitted && fits(e, j)) {
			let_in(e, j);
			engine_set_want(e, j, WANT_ON);
		}
	}
}

static void let_in_by_line(struct engine *e)
{
	for_each_in_line(e, j) {
		if (j->want != WANT_SLOT)
			continue;
		if (fits(e, j)) {
			let_in(e, j);
			engine_set_want(e, j, WANT_ON);
		} else {
			turn_away(e, j);
		}
	}
}

/* They keep their want, so that cleaning up still knows them. */
static void let_in_spare(struct engine *e)
{
	e->walk++;
	for_each_in_line(e, j) {
		if (j->want != WANT_SPARE_SLOT || !engine_first_visit(e, j))
			continue;
		if (fits(e, j))
			let_in(e, j);
		else
			engine_set_want(e, j, WANT_OFF);
	}
}

/* ---- low water ---- */

static uint64_t idle_since(struct engine *e, struct engine_job *unit)
{
	uint64_t ns = 0;

	for_each_member(e, m, unit)
		ns = gpol_max(ns, m->work_since_ns);
	return ns;
}

static struct engine_job *longest_idle(struct engine *e, struct engine_gpu *g)
{
	struct engine_job *best = NULL;

	for_each_job_on(e, g, j) {
		if (j->want == WANT_SPARE_SLOT && j->queues &&
		    (!best || idle_since(e, j) < idle_since(e, best)))
			best = j;
	}
	return best;
}

static void clean_up(struct engine *e, struct engine_gpu *g)
{
	while (g->slots && g->online_queues + g->used + e->config.low_water > g->slots) {
		struct engine_job *unit = longest_idle(e, g);

		if (!unit)
			return;
		engine_set_want(e, unit, WANT_OFF);
		for_each_member(e, m, unit) {
			m->parked = true;
			m->gpu->used -= m->queues;
		}
	}
}

void engine_admit(struct engine *e)
{
	for_each_gpu(e, g)
		take_stock(e, g);
	for_each_gpu(e, g) {
		if (is_short(g))
			find_ended_turns(e, g);
	}
	for_each_gpu(e, g) {
		if (g->rotates)
			find_ended_with_it(e, g);
	}
	end_turns(e);
	keep_turns(e);
	let_in_by_line(e);
	let_in_spare(e);
	for_each_gpu(e, g)
		clean_up(e, g);
	for_each_in_line(e, j) {
		if (j->want == WANT_SPARE_SLOT)
			j->want = WANT_ON;
	}
}
