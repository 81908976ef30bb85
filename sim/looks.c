/* SPDX-License-Identifier: MIT */
/*
 * Who is looked at when. Where work is watched for, an idle online job tells of the first request
 * of a burst, once; from then on online jobs are looked at as often as the CPU for it allows, until
 * a look finds the job idle, which is watched again. Everybody is looked at now and then besides.
 * Where nobody is watched every step of the engine is a look at everybody: see watcher.c.
 */
#include "sim/world.h"
#include "util/macros.h"

static bool is_watching(const struct sim_world *w)
{
	return w->engine && w->s->detect <= SIM_DETECT_TRAP;
}

void sim_looks_submitted(struct sim_member *m)
{
	struct sim_world *w = m->process->world;
	const struct sim_detection *d = &w->s->detection;

	if (!is_watching(w) || !m->watched)
		return;
	m->watched = false;
	sim_at(w, &m->seen,
	       w->time.now_ns + (w->s->detect == SIM_DETECT_WATCH ? d->watch_ns : d->trap_ns));
}

static bool has_work(const struct sim_member *m)
{
	for (uint32_t i = 0; i < m->process->n_streams; i++) {
		if (m->queues[i].has_work)
			return true;
	}
	return false;
}

/* On a grid, as the daemon's: of no burst is it known when it is looked at first. */
static uint64_t next_look(const struct sim_world *w)
{
	uint64_t period_ns = sim_look_period_ns(&w->s->detection);

	return (w->time.now_ns / period_ns + 1) * period_ns;
}

void sim_looks_taken(struct sim_world *w)
{
	bool works = false;

	if (!is_watching(w) || !w->costs.counts_progress)
		return;
	for (size_t i = 0; i < w->n_jobs; i++) {
		struct sim_member *m = w->jobs[i];

		if (!m->process->job->online)
			continue;
		m->watched |= !has_work(m) && !m->seen.slot;
		works |= !m->watched;
	}
	sim_at(w, &w->look_online, works ? next_look(w) : TIMELINE_NEVER);
}

void sim_looks_told(struct sim_world *w)
{
	if (is_watching(w))
		sim_at(w, &w->look_online, w->time.now_ns);
	else
		sim_watcher_step(w);
}

static void seen(struct event *e)
{
	sim_watcher_look(container_of(e, struct sim_member, seen)->process->world, true);
}

static void look_online(struct event *e)
{
	sim_watcher_look(container_of(e, struct sim_world, look_online), false);
}

static void look(struct event *e)
{
	struct sim_world *w = container_of(e, struct sim_world, look);

	sim_at(w, &w->look, w->time.now_ns + w->config.interval_ns);
	sim_watcher_look(w, true);
}

void sim_looks_init(struct sim_world *w)
{
	for (size_t i = 0; i < w->n_jobs; i++) {
		w->jobs[i]->watched = w->costs.counts_progress && w->jobs[i]->process->job->online;
		w->jobs[i]->seen.run = seen;
	}
	w->look.run = look;
	w->look_online.run = look_online;
	if (is_watching(w))
		sim_at(w, &w->look, 0);
	else
		sim_watcher_step(w);
}
