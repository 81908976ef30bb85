/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cmd/gpreemptd/scheduler_internal.h"

#define BLIND_NS NSEC_PER_SEC
#define BLIND_AGAIN_NS (10 * NSEC_PER_SEC) /* between two events: a job may come and go */

/*
 * Packets are consumed before they are done, so that the end of the last one may not be seen. An
 * offline job gets the worse of it: to be held in vain costs less than to be in the way.
 */
static bool is_busy(const struct gpu_sample *g, bool online)
{
	if (g->state == GPU_UNKNOWN)
		return !online;
	return g->state == GPU_BUSY && g->read == g->write;
}

/* Online work begins: who told of it first? */
static void count_seen(struct scheduler *s, const struct process *p, struct job *j)
{
	struct gpreempt_daemon_status *status = &s->figures.status;

	if (j->announced_until_ns > s->now_ns)
		status->seen_by_hint++;
	else if (p->struck)
		status->seen_by_watch++;
	else if (p->armed)
		status->seen_late++;
	else
		status->seen_by_look++;
	j->announced_until_ns = 0;
}

static size_t convert(struct scheduler *s, struct process *p, const struct gpu_sample *samples,
		      size_t n, struct engine_sample *ret)
{
	bool online = p->verdict.job_class == JOB_ONLINE;
	struct job *j = NULL;
	size_t written = 0;

	/* Where nothing is to be seen, offline jobs work as long as they are there. */
	for_each_job(p, each)
		each->marked = !online && !s->b->caps.counts_progress;
	for (size_t i = 0; i < n; i++) {
		const struct gpu_sample *g = &samples[i];
		bool busy = is_busy(g, online);

		if (!j || j->gpu != g->gpu)
			j = job_on(p, g->gpu);
		if (!j || j->engine_job == NO_JOB)
			continue;
		j->marked |= busy || g->read != g->write;
		ret[written++] = (struct engine_sample){
			.job = (uint32_t)j->engine_job,
			.queue = g->queue,
			.read = g->read,
			.write = g->write,
			.busy = busy,
			.hidden = g->state == GPU_UNSEEN,
		};
	}
	for_each_job(p, each) {
		if (online && each->marked && !each->works)
			count_seen(s, p, each);
		if (each->marked)
			each->hinted_ns = 0;
		job_set(s, each, each->marked, each->away);
		each->marked = false;
	}
	return written;
}

/* ---- what cannot be seen is told ---- */

/* What keeps it from seeing anybody, or anybody who is new. */
static const char *problem_of(const struct scheduler *s, int listed, char *buf, size_t size)
{
	if (listed < 0) {
		snprintf(buf, size, "processes that use a GPU cannot be listed: %s",
			 strerror(-listed));
		return buf;
	}
	if (ops(s)->problem && ops(s)->problem(s->b))
		return ops(s)->problem(s->b);
	if (shares_problem(s, buf, size))
		return buf;
	return newcomers_problem(s, buf, size);
}

/* Or not yet to be told. */
static bool sight_is_told(const struct scheduler *s)
{
	if (strcmp(s->blind, s->blind_told) == 0)
		return true;
	if (!s->blind[0])
		return s->now_ns - s->blind_ns < BLIND_NS;
	return s->blind_told_ns && s->now_ns - s->blind_told_ns < BLIND_AGAIN_NS;
}

void observe_sight(struct scheduler *s, int listed)
{
	char buf[sizeof(s->blind)];
	const char *why = problem_of(s, listed, buf, sizeof(buf));

	snprintf(s->blind, sizeof(s->blind), "%s", why ? why : "");
	if (why)
		s->blind_ns = s->now_ns;
	if (sight_is_told(s))
		return;
	snprintf(s->blind_told, sizeof(s->blind_told), "%s", s->blind);
	if (why) {
		s->blind_told_ns = s->now_ns;
		events_tell(s->parts.events,
			    &(struct gpreempt_event){ .kind = GPREEMPT_EVENT_BLIND },
			    "work goes unseen: %s", why);
	} else {
		tell(s, GPREEMPT_EVENT_SEES, 0, "work is seen again");
	}
}

/*
 * A queue that is new is not known yet: nothing to tell of, unless it stays so. What is so of all
 * is not told of each.
 */
static void note_blind(struct scheduler *s, struct process *p)
{
	const char *why = ops(s)->blind ? ops(s)->blind(p->watch) : NULL;

	if (!why) {
		if (p->blind_told)
			process_say(s, p, GPREEMPT_EVENT_JOB_SEEN, "is seen again");
		p->blind_ns = 0;
		p->blind_told = false;
		return;
	}
	if (!p->blind_ns)
		p->blind_ns = s->now_ns;
	if (p->blind_told || s->now_ns - p->blind_ns < BLIND_NS)
		return;
	p->blind_told = true;
	if (s->blind[0])
		return;
	process_say(s, p, GPREEMPT_EVENT_JOB_BLIND, "cannot be looked at: %s", why);
}

/* ---- looks ---- */

/* From @at samples on; how many there are. -EAGAIN: it has not told yet; -ECANCELED: never. */
static int take_look(struct scheduler *s, struct process *p, size_t at)
{
	const struct gpu_sample *samples = NULL;
	int n = ops(s)->looked(p->watch, &samples);

	if (n == -EAGAIN)
		return n;
	p->looking = false;
	if (n == -ECANCELED)
		return n;
	/* Queues came or went: that is asked about soon, but only once for each such change. */
	if (n != p->n_looked && p->n_looked != NOT_LOOKED) {
		p->stale = true;
		s->scan_ns = MIN(s->scan_ns, s->now_ns + s->engine_config.idle_interval_ns);
	}
	p->n_looked = n;
	note_blind(s, p);
	n = MIN(n, (int)(SCHEDULER_MAX_QUEUES - at));
	if (n >= 0)
		n = (int)convert(s, p, samples, (size_t)n, &s->samples[at]);
	p->struck = false;
	p->look_ns = pace_next(s, p);
	return n;
}

static void drop_lost(struct scheduler *s)
{
	for (size_t i = s->n_processes; i-- > 0;) {
		if (s->table[i]->lost)
			process_gone(s, s->table[i]);
	}
}

/* Between scans only at what may have changed. */
static void begin_look(struct scheduler *s, struct process *p, bool all, size_t *n)
{
	p->looked_ns = s->now_ns;
	p->look_ns = pace_at_least(s, p);
	hint_page_look(s, p);
	if (p->looking || (!s->b->caps.counts_progress && !all))
		return;
	p->looking = true;
	s->looks_begun++;
	s->watches[(*n)++] = p->watch;
}

/* From @n samples on; how many there are then. */
static size_t take_looks(struct scheduler *s, size_t n, bool *complete)
{
	for_each_process(s, p)
	{
		int r;

		if (!p->looking)
			continue;
		r = take_look(s, p, n);
		p->lost = r == -ESRCH;
		s->lost |= p->lost;
		if (r < 0 && !p->lost)
			*complete = false;
		n += r < 0 ? 0 : (size_t)r;
	}
	return n;
}

/* Those whose work was told at once: looked() says so, also where a look is under way. */
static void take_alerts(struct scheduler *s)
{
	pid_t pid;

	s->struck = false;

	while (ops(s)->alerted && (pid = ops(s)->alerted(s->b))) {
		struct process *p = process_find(s, pid);

		if (p && p->watch)
			p->looking = p->struck = s->struck = true;
	}
}

/* At those that are due, and @again: at nobody twice. From @n samples on, as above. */
static size_t look(struct scheduler *s, bool all, bool again, size_t n, bool *complete)
{
	size_t n_watches = 0;

	for_each_process(s, p) {
		if (p->watch && (all || p->look_ns <= s->now_ns) &&
		    !(again && p->looked_ns == s->now_ns))
			begin_look(s, p, all, &n_watches);
	}
	if (n_watches)
		ops(s)->look(s->b, s->watches, n_watches);
	take_alerts(s);
	return take_looks(s, n, complete);
}

size_t observe_alerts(struct scheduler *s)
{
	bool complete;
	size_t n;

	s->lost = false;
	take_alerts(s);
	n = take_looks(s, 0, &complete);
	if (s->lost)
		drop_lost(s);
	return n;
}

size_t observe(struct scheduler *s, bool all, bool *ret_complete)
{
	size_t n;

	s->lost = false;
	*ret_complete = all;
	n = look(s, all, false, 0, ret_complete);
	/*
	 * Online work where it was quiet: what those in its way do is known no longer. Work that
	 * was told at once is acted on first, and they are looked at in the next turn.
	 */
	if (s->gpus_due && !all && !s->struck) {
		gpus_count(s);
		n = look(s, false, true, n, ret_complete);
	}
	if (s->lost)
		drop_lost(s);
	return n;
}

uint64_t observe_next(const struct scheduler *s)
{
	uint64_t next_ns = NEVER;

	for_each_process(s, p)
		next_ns = MIN(next_ns, p->look_ns);
	return next_ns;
}
