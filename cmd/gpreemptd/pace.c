/* SPDX-License-Identifier: MIT */
/*
 * How often processes are looked at. Online ones that are idle are watched (gpu/backend.h, alert):
 * their next work is told at once, and looks are only a safety net. While they work their end is
 * looked for as often as a stated part of a processor allows. All others are looked at in
 * intervals.
 */
#include <string.h>
#include <time.h>

#include "cmd/gpreemptd/scheduler_internal.h"
#include "util/clock.h"

#define BUSY_LEAST_NS (50 * NSEC_PER_USEC)
#define NET_FIRST_NS (10 * NSEC_PER_MSEC)
#define NET_LAST_NS NSEC_PER_SEC
#define RARELY_NS (100 * NSEC_PER_MSEC) /* offline jobs, where nobody has waited for long, */
#define SELDOM_NS NSEC_PER_SEC /* and whoever could is watched */
#define LEARN 8 /* the cost of a look changes by one part in so many */

/* ---- in intervals ---- */

/* Somebody could be held for its work. */
static bool may_preempt(const struct scheduler *s, const struct process *p)
{
	if (p->verdict.job_class != JOB_ONLINE || s->handed_over)
		return false;
	for_each_job(p, j) {
		if (j->on && j->on->holdable)
			return true;
	}
	return false;
}

/*
 * Whether an offline job works matters only to online work, and where there is none all is looked
 * at again as soon as some shows. While one works, online work has somebody in its way and must be
 * seen in time, however long there was none. Where nobody has worked for long a look may come
 * later, each costs a wake-up, and later still where online work is told at once: how often that
 * is looked for does not depend on it.
 */
static uint64_t interval_on(const struct engine_config *c, const struct gpu *g, bool online,
			    uint64_t often_ns)
{
	if (!online && g->quiet == QUIET_LONG)
		return MAX(c->idle_interval_ns, g->untold ? RARELY_NS : SELDOM_NS);
	if (!g->holdable || (g->quiet && !online))
		return c->idle_interval_ns;
	if (g->offline_running || g->quiet < QUIET_LONG || often_ns < c->interval_ns)
		return often_ns;
	return c->idle_interval_ns;
}

/* Where nobody could be preempted, seldom or never. */
static uint64_t interval_of(const struct scheduler *s, const struct process *p)
{
	const struct engine_config *c = &s->engine_config;
	bool online = p->verdict.job_class == JOB_ONLINE;
	uint64_t often_ns = c->interval_ns, best_ns = NEVER;

	if (!s->b->caps.counts_progress)
		return p->page && p->may_preempt ? c->critical_interval_ns : NEVER;
	if (s->handed_over && online && p->page)
		return c->critical_interval_ns; /* for its hints, which are passed on */
	if (online && is_critical(p))
		often_ns = MIN(often_ns, c->critical_interval_ns);
	for_each_job(p, j) {
		if (j->on && j->on->online && j->on->offline)
			best_ns = MIN(best_ns, interval_on(c, j->on, online, often_ns));
	}
	return best_ns;
}

/* ---- told at once ---- */

/* Once for each reason there is: of many processes it is the same. */
static void tell_unwatched(struct scheduler *s, const struct process *p, const char *why)
{
	if (!strcmp(s->unwatched, why))
		return;
	wire_text_set(s->unwatched, sizeof(s->unwatched), why);
	log_line(LOG_LEVEL_WARNING,
		 "the next work of process %d (%s) is not told at once: %s; it is looked at every "
		 "%llu us instead",
		 p->pid, p->identity.stat.comm, why,
		 (unsigned long long)(p->period_ns / NSEC_PER_USEC));
}

static bool is_alert(struct scheduler *s, struct process *p)
{
	const char *why = NULL;
	int r = p->alert ? ops(s)->is_alert(p->watch, &why) : 0;

	if (r < 0 && p->unwatched != why)
		tell_unwatched(s, p, why);
	p->unwatched = r < 0 ? why : NULL;
	return r > 0;
}

const char *pace_unwatched(const struct scheduler *s)
{
	if (!s->config->watch)
		return "the configuration has [look] watch = no";
	for_each_process(s, p) {
		if (p->unwatched)
			return p->unwatched;
	}
	return "";
}

void pace_count(struct scheduler *s)
{
	for_each_process(s, p) {
		uint64_t period_ns;
		bool alert;

		p->may_preempt = p->watch && may_preempt(s, p);
		period_ns = p->watch ? interval_of(s, p) : NEVER;
		/* It costs the process a trap for each burst. */
		alert = p->may_preempt && s->config->watch && ops(s)->alert;
		if (p->period_ns != period_ns) {
			p->period_ns = period_ns;
			p->look_ns = s->struck		? pace_at_least(s, p) :
				     period_ns == NEVER ? NEVER :
							  s->now_ns;
		}
		if (p->alert != alert)
			ops(s)->alert(p->watch, alert);
		p->alert = alert;
		if (!alert)
			p->unwatched = NULL;
	}
}

/* ---- within a part of a processor ---- */

/* Where time is made up, processor time is compared with nothing. */
static uint64_t thread_ns(const struct scheduler *s)
{
	return s->caps.made_up_time ? 0 : clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* Of helpers, since the last time; what they did for one that has gone is not counted again. */
static uint64_t take_effort(struct scheduler *s)
{
	struct gpu_effort now = { 0 }, before = s->effort;

	if (s->b && ops(s)->effort)
		ops(s)->effort(s->b, &now);
	s->effort = now;
	s->figures.status.traps += now.traps - MIN(before.traps, now.traps);
	return now.helpers_ns - MIN(before.helpers_ns, now.helpers_ns);
}

/* Asking for it takes its time as well: only where somebody is to be looked at. */
void pace_begin(struct scheduler *s)
{
	s->looks_begun = 0;
	s->measured = s->b && s->next_look_ns <= ops(s)->now_ns(s->b);
	if (s->measured)
		s->turn_cpu_ns = thread_ns(s);
}

/* Of a turn in which somebody was looked at, all counts: without looks there would be none. */
void pace_end(struct scheduler *s)
{
	uint64_t cost_ns;

	if (!s->measured || !s->looks_begun || !s->b)
		return;
	cost_ns = thread_ns(s) - s->turn_cpu_ns + take_effort(s);
	if (!s->look_cost_ns)
		s->look_cost_ns = cost_ns;
	s->look_cost_ns += cost_ns / LEARN - s->look_cost_ns / LEARN;
}

static uint64_t busy_interval(const struct scheduler *s)
{
	uint64_t ns = s->look_cost_ns * 1000 / MAX(s->config->look_permille, 1u);

	return MAX(ns, BUSY_LEAST_NS);
}

static bool works(const struct process *p)
{
	for_each_job(p, j) {
		if (j->works)
			return true;
	}
	return false;
}

/* On a grid, so that all that are due are due together. */
static uint64_t on_grid(const struct scheduler *s, uint64_t period_ns)
{
	return (s->now_ns / period_ns + 1) * period_ns;
}

uint64_t pace_at_least(const struct scheduler *s, const struct process *p)
{
	return p->period_ns == NEVER ? NEVER : on_grid(s, p->period_ns);
}

uint64_t pace_next(struct scheduler *s, struct process *p)
{
	uint64_t period_ns = p->period_ns;

	if (period_ns == NEVER)
		return NEVER;
	p->armed = !works(p) && is_alert(s, p);
	if (!p->armed)
		p->net_ns = NET_FIRST_NS;
	if (p->armed && !p->page) {
		period_ns = MAX(p->net_ns, NET_FIRST_NS);
		p->net_ns = MIN(2 * period_ns, NET_LAST_NS);
	} else if (p->may_preempt && works(p) && s->look_cost_ns) {
		period_ns = MIN(period_ns, busy_interval(s));
	}
	return on_grid(s, period_ns);
}
