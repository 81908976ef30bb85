/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * From samples to jobs that have work. Counters are written by the very programs they tell of, so
 * nothing here trusts them: what makes no sense counts as work, and no value is an error.
 */
#include "core/engine/internal.h"

/* The estimate of a burst changes by one part in so many. */
#define SERVICE_PART 4

void engine_touch(struct engine *e, struct engine_job *j)
{
	if (j->touched)
		return;
	j->touched = true;
	e->touched[e->n_touched++] = index_of(e, j);
}

static uint64_t contended_ns(const struct engine *e, const struct engine_gpu *g)
{
	return g->contended_ns +
	       (g->offline_running ? gpol_elapsed(e->now_ns, g->contended_since_ns) : 0);
}

uint64_t engine_shared_ns(const struct engine *e, const struct engine_job *j)
{
	return contended_ns(e, j->gpu) - j->contended_before_ns;
}

/*
 * A burst is over. Beside offline work it had about half of the GPU, so half of that time is what
 * it would have taken alone; less where everybody stood still for part of it.
 */
static void learn_service(const struct engine *e, struct engine_job *j)
{
	uint64_t took_ns = gpol_elapsed(e->now_ns, j->work_since_ns);
	uint64_t shared_ns = engine_shared_ns(e, j);
	bool still = j->met.asked && j->met.way == WAY_AT_ONCE && e->config.costs.disturbs_all;
	uint64_t alone_ns = took_ns - gpol_min(still ? shared_ns : shared_ns / 2, took_ns);

	if (!j->service_ns)
		j->service_ns = alone_ns;
	else if (alone_ns > j->service_ns)
		j->service_ns += (alone_ns - j->service_ns) / SERVICE_PART;
	else
		j->service_ns -= (j->service_ns - alone_ns) / SERVICE_PART;
}

static void end_burst(const struct engine *e, struct engine_job *j)
{
	j->longest_wait_ns = gpol_max(j->longest_wait_ns, engine_shared_ns(e, j));
	if (e->config.costs.counts_progress)
		learn_service(e, j);
	engine_burst_ended(e, j, true);
}

void engine_settle(struct engine *e, struct engine_job *j)
{
	bool works = engine_works(e, j);

	if (works && !j->has_work)
		engine_burst_begins(e, j);
	if (works || j->moved) {
		j->ever_worked = true;
		engine_drop_hints(e, j, true);
	}
	if (works != j->has_work) {
		if (works)
			j->contended_before_ns = contended_ns(e, j->gpu);
		else if (is_online(j))
			end_burst(e, j);
		engine_move_job(e, j, works, j->place);
	} else if (j->moved && !works) {
		/* It came and went between two looks. */
		engine_burst_ended(e, j, false);
		j->work_since_ns = e->now_ns;
		j->gpu->stale = true;
	}
	/* The reserve of slots follows how many queues of online jobs are in use. */
	if (is_online(j))
		j->gpu->stale = true;
	j->moved = false;
}

/* A queue there was no room for: its work counts, in this step. */
static void note_loose(struct engine *e, const struct engine_sample *s)
{
	struct engine_job *j = engine_find_job(e, s->job);

	if (!j || (s->read == s->write && !s->busy))
		return;
	j->loose_work = true;
	e->loose = true;
	engine_touch(e, j);
}

static void forget_loose(struct engine *e)
{
	if (!e->loose)
		return;
	for (uint32_t i = 0; i < e->limits.jobs; i++) {
		if (e->jobs[i].loose_work)
			engine_touch(e, &e->jobs[i]);
		e->jobs[i].loose_work = false;
	}
	e->loose = false;
}

/* Out of line, like all that is rare: the loop below needs the registers. */
__attribute__((__noinline__)) static void note_change(struct engine *e, struct engine_queue *q,
						  bool work, bool moved)
{
	struct engine_job *j = &e->jobs[q->job & ((1u << JOB_INDEX_BITS) - 1)];

	if (work != q->work) {
		j->working += work ? 1 : -1u;
		q->work = work;
	}
	j->moved |= moved;
	engine_touch(e, j);
}

/*
 * A queue nobody can look at has no work that would be a reason for anything, but it is there, and
 * so in the way of online work. What it did meanwhile is nothing it has just done.
 */
__attribute__((__noinline__)) static void note_hidden(struct engine *e, struct engine_queue *q,
						      const struct engine_sample *s, bool counts)
{
	struct engine_job *j = &e->jobs[q->job & ((1u << JOB_INDEX_BITS) - 1)];
	bool work = !s->hidden && (s->busy || (counts && s->read != s->write));

	if (s->hidden != q->hidden) {
		j->hidden += s->hidden ? 1 : -1u;
		q->hidden = s->hidden;
		j->gpu->stale = true;
	}
	q->read = s->read;
	q->write = s->write;
	if (work != q->work)
		note_change(e, q, work, false);
}

/* Backwards is work too: whoever does that has something to hide, or a new ring. */
static bool has_work(const struct engine_sample *s, const struct engine_queue *q, bool counts)
{
	return s->busy | (counts & ((s->read != s->write) | (s->read < q->read)));
}

static bool is_of(const struct engine_queue *q, const struct engine_sample *s)
{
	return q->job == s->job && q->queue == s->queue && s->job != NO_INDEX;
}

/* The queue that was at this place last time, if it is there again; else it is looked for. */
static inline struct engine_queue *queue_of(struct engine *e, const struct engine_sample *s,
					    size_t at, uint32_t guess)
{
	struct engine_queue *q = &e->queues[guess];

	return is_of(q, s) ? q : engine_queue(e, s, at);
}

/* The one loop over all samples. Returns how many of them are of queues that are remembered. */
static size_t look(struct engine *e, const struct engine_sample *samples, size_t n)
{
	const bool counts = e->config.costs.counts_progress;
	const size_t places = e->limits.queues;
	const uint32_t *const order = e->order;
	size_t others = 0;

	for (size_t i = 0; i < n; i++) {
		const struct engine_sample *s = &samples[i];
		struct engine_queue *q;
		bool work, moved;

		q = i < places ? queue_of(e, s, i, order[i]) : engine_queue(e, s, i);
		if (!q) {
			note_loose(e, s);
			others++;
			continue;
		}
		if (s->hidden | q->hidden) {
			note_hidden(e, q, s, counts);
			continue;
		}
		work = has_work(s, q, counts);
		moved = counts & (s->write != q->write);
		q->read = s->read;
		q->write = s->write;
		if ((work != q->work) | (moved & !work))
			note_change(e, q, work, moved);
	}
	return n - others;
}

/* Queues are gone. Which, is only worth finding out when there are fewer than there were. */
static void forget_unseen(struct engine *e, const struct engine_sample *samples, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct engine_queue *q = engine_queue(e, &samples[i], i);

		if (q)
			q->seen = (uint32_t)e->step;
	}
	engine_forget_unseen_queues(e);
}

void engine_observe(struct engine *e, const struct engine_step *step)
{
	size_t seen;

	forget_loose(e);
	seen = look(e, step->samples, step->n_samples);
	if (step->complete && seen < e->n_queues)
		forget_unseen(e, step->samples, step->n_samples);
	for (uint32_t i = 0; i < e->n_touched; i++) {
		struct engine_job *j = &e->jobs[e->touched[i]];

		j->touched = false;
		if (j->used)
			engine_settle(e, j);
	}
	e->n_touched = 0;
	if (step->n_samples)
		e->looked_ns = e->now_ns;
}
