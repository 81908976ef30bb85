/* SPDX-License-Identifier: MIT */
/*
 * What the engine wants done becomes calls of the backend: one for all jobs of a process that leave
 * or return together. What came of a call is told to the engine, to people and to the accounts.
 */
#include <errno.h>
#include <string.h>

#include "cmd/gpreemptd/scheduler_internal.h"
#include "wire/wire.h"

#define TAKEN 0xff /* an action that is part of a call already */

uint64_t act_cookie(struct scheduler *s, const struct process *p)
{
	return (uint64_t)p->pid << 32 | ++s->calls;
}

/* ---- asking ---- */

static struct process *process_of(const struct scheduler *s, const struct engine_action *a)
{
	struct job *j = job_find(s, a->job);

	return j ? j->process : NULL;
}

static size_t queues_of(const struct scheduler *s, const struct job *j, uint32_t *ret, size_t max)
{
	const struct gpu_queue *queues;
	size_t n, count = 0;

	if (!j->process->watch)
		return 0;
	queues = ops(s)->queues(j->process->watch, &n);
	for (size_t i = 0; i < n && count < max; i++) {
		if (queues[i].gpu == j->gpu)
			ret[count++] = queues[i].queue;
	}
	return count;
}

/* One call of the backend. */
struct call {
	struct process *process;
	uint8_t verb;
	uint64_t cookie, asked_ns, deadline_ns;
	uint32_t because;
	const uint32_t *ids; /* NULL: everything the process has */
	size_t n_ids;
};

/* With these, are all jobs where the verb brings them? Else their queues are meant. */
static void choose_queues(struct scheduler *s, struct call *c, bool whole)
{
	for_each_job(c->process, j)
		whole &= j->marked || j->off == (c->verb == ENGINE_SUSPEND);
	c->ids = whole || !c->process->watch ? NULL : s->ids;
}

static void add_queues(struct scheduler *s, struct call *c, const struct engine_action *a)
{
	const struct job *j = job_find(s, a->job);

	if (a->queue != ENGINE_ALL_QUEUES && c->n_ids < SCHEDULER_MAX_QUEUES)
		s->ids[c->n_ids++] = a->queue;
	else if (a->queue == ENGINE_ALL_QUEUES && j->process->n_jobs > 1)
		c->n_ids += queues_of(s, j, s->ids + c->n_ids, SCHEDULER_MAX_QUEUES - c->n_ids);
}

/* All of these actions that are of the process and verb of the first, with their tickets. */
static struct call gather(struct scheduler *s, struct engine_action *first, size_t n)
{
	struct call c = {
		.process = process_of(s, first),
		.verb = first->verb,
		.asked_ns = ops(s)->now_ns(s->b),
		.deadline_ns = first->deadline_ns,
		.because = first->because,
	};
	bool whole = true;

	c.cookie = act_cookie(s, c.process);
	for_each_job(c.process, j)
		j->marked = false;
	for (struct engine_action *a = first; a < first + n; a++) {
		struct job *j;

		if (a->verb != c.verb || process_of(s, a) != c.process)
			continue;
		j = job_find(s, a->job);
		j->marked = true;
		j->asked[c.verb] = (struct ticket){ a->ticket, c.cookie, c.asked_ns };
		whole &= a->queue == ENGINE_ALL_QUEUES;
		add_queues(s, &c, a);
		c.deadline_ns = MIN(c.deadline_ns, a->deadline_ns);
		a->verb = TAKEN;
	}
	choose_queues(s, &c, whole);
	return c;
}

/* How long it took from when the work was seen, or a hint came, to here. */
static void note_detection(struct scheduler *s, struct job *urgent, uint64_t asked_ns)
{
	struct engine_job_stats stats = { 0 };
	uint64_t since_ns = urgent->hinted_ns;

	if (engine_job_stats(s->engine, (uint32_t)urgent->engine_job, &stats) == 0 &&
	    stats.has_work)
		since_ns = stats.detections == urgent->detections ?
				   0 :
				   s->now_ns - MIN(stats.detect_ns, s->now_ns);
	urgent->detections = stats.detections;
	urgent->hinted_ns = 0;
	if (!since_ns)
		return;
	urgent->sum.detect_ns = asked_ns - MIN(since_ns, asked_ns);
	histogram_add(&s->figures.detection, urgent->sum.detect_ns);
}

static void note_leaving(struct scheduler *s, const struct call *c)
{
	struct job *urgent = job_find(s, c->because);

	for_each_job(c->process, j) {
		if (!j->marked)
			continue;
		job_account(s, j);
		j->off = true;
		j->returning = false;
		j->off_since_ns = c->asked_ns;
		j->because = urgent ? urgent->process->pid : 0;
	}
	if (urgent)
		note_detection(s, urgent, c->asked_ns);
}

bool act_write_down(struct scheduler *s, struct process *p)
{
	if (p->journal_slot < 0)
		p->journal_slot = journal_add(s->parts.journal, p->pid,
					      p->identity.stat.start_ticks, s->b->caps.level);
	return p->journal_slot >= 0;
}

/* Something about it, not the GPU, does not work: it runs, and is left alone for a while. */
static void give_up(struct scheduler *s, struct process *p, const char *why)
{
	attach_later(s, p, why);
	attach_let_go(s, p);
	s->attach_due = true;
}

static void asked(struct scheduler *s, struct process *p, int r)
{
	if (r < 0)
		give_up(s, p, strerror(-r));
	else
		s->outstanding++;
}

/* For a dump, should it fail. */
static void remember(struct scheduler *s, const struct call *c, uint64_t longest_ns)
{
	const struct job *urgent = job_find(s, c->because);
	struct last_call *last = &c->process->last_call;

	*last = (struct last_call){
		.cookie = c->cookie,
		.asked_ns = c->asked_ns,
		.longest_ns = longest_ns,
		.because = urgent ? urgent->process->pid : 0,
		.n_ids = c->ids ? (uint32_t)c->n_ids : 0,
	};
	if (c->ids)
		memcpy(last->ids, c->ids, MIN(c->n_ids, ARRAY_SIZE(last->ids)) * sizeof(*c->ids));
}

static void ask_suspend(struct scheduler *s, const struct call *c)
{
	struct process *p = c->process;
	/* At least something: 0 would be without an end. */
	uint64_t longest_ns = MAX(c->deadline_ns, c->asked_ns + 1) - c->asked_ns;

	if (!act_write_down(s, p)) {
		give_up(s, p, "nothing more can be written down as held");
		return;
	}
	note_leaving(s, c);
	remember(s, c, longest_ns);
	asked(s, p,
	      ops(s)->suspend(p->target, &(struct gpu_hold){ c->ids, c->n_ids, longest_ns },
			      c->cookie));
}

static void ask_resume(struct scheduler *s, const struct call *c)
{
	struct process *p = c->process;

	for_each_job(p, j) {
		if (!j->marked)
			continue;
		j->returning = true;
		job_set(s, j, j->works, false);
	}
	remember(s, c, 0);
	asked(s, p, ops(s)->resume(p->target, c->ids, c->n_ids, c->cookie));
}

void act(struct scheduler *s, struct engine_action *actions, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct call c;

		if (actions[i].verb == TAKEN || !process_of(s, &actions[i]))
			continue;
		c = gather(s, &actions[i], n - i);
		(c.verb == ENGINE_SUSPEND ? ask_suspend : ask_resume)(s, &c);
	}
}

/* ---- what came of it ---- */

void act_forget_entry(struct scheduler *s, struct process *p)
{
	if (p->sliced || process_is_held(p))
		return;
	if (p->journal_slot >= 0)
		journal_remove(s->parts.journal, p->journal_slot);
	p->journal_slot = -1;
}

static void tell_let_go(struct scheduler *s, struct process *p, const struct job *j,
			uint32_t jobs, uint64_t held_ns, const char *how)
{
	const struct gpreempt_event e = {
		.kind = GPREEMPT_EVENT_LET_GO,
		.gpu_id = jobs == 1 ? j->gpu : 0,
		.other_pid = j->because,
		.duration_ns = held_ns,
		.count = jobs,
	};

	process_tell(s, p, &e, "process %d (%s) runs again after %llu us: %s", p->pid,
		     p->identity.stat.comm, (unsigned long long)(held_ns / NSEC_PER_USEC), how);
}

/* Those that are off; of them, unless @all, those that are marked. */
static void bring_back(struct scheduler *s, struct process *p, bool all, const char *how)
{
	const struct job *last = NULL;
	uint64_t held_ns = 0;
	uint32_t jobs = 0;

	for_each_job(p, j) {
		if (!j->off || !(all || j->marked))
			continue;
		job_set(s, j, j->works, false);
		job_account(s, j);
		j->off = j->returning = false;
		held_ns = s->now_ns - MIN(j->off_since_ns, s->now_ns);
		histogram_add(&s->figures.held, held_ns);
		last = j;
		jobs++;
	}
	if (last)
		tell_let_go(s, p, last, jobs, held_ns, how);
}

void act_let_go(struct scheduler *s, struct process *p, const char *how)
{
	bring_back(s, p, true, how);
	act_forget_entry(s, p);
}

void act_forget(struct scheduler *s, struct process *p)
{
	bring_back(s, p, true, "left alone from now on");
}

static void tell_held(struct scheduler *s, struct process *p, const struct job *j, uint32_t jobs)
{
	const struct process *other = j->because ? process_find(s, j->because) : NULL;
	const struct gpreempt_event e = {
		.kind = GPREEMPT_EVENT_HELD,
		.gpu_id = jobs == 1 ? j->gpu : 0,
		.other_pid = j->because,
		.count = jobs,
	};

	process_tell(s, p, &e, "process %d (%s) makes room for %d (%s), by policy %s", p->pid,
		     p->identity.stat.comm, j->because,
		     other ? other->identity.stat.comm : "nobody", s->engine_config.policy->name);
}

/* A failure on one GPU says nothing about the others of the call. */
static int result_of(const struct gpu_done *d, const struct job *j)
{
	if (d->result >= 0 || d->result == -ESRCH)
		return d->result < 0 ? d->result : 0;
	return d->gpu_failed && d->gpu && d->gpu != j->gpu ? 0 : -EIO;
}

/* Tells the engine, and marks the jobs as going. Returns one of them. */
static struct job *report(struct scheduler *s, struct process *p, const struct gpu_done *d,
			  struct histogram *h, uint32_t *ret_jobs)
{
	const enum engine_verb verb = d->verb == GPU_SUSPEND ? ENGINE_SUSPEND : ENGINE_RESUME;
	struct job *last = NULL;

	*ret_jobs = 0;
	for_each_job(p, j) {
		struct ticket *t = &j->asked[verb];
		uint64_t took_ns = d->done_ns - MIN(t->asked_ns, d->done_ns);

		j->marked = t->number && t->cookie == d->cookie;
		if (!j->marked)
			continue;
		engine_report(s->engine, s->now_ns, t->number, result_of(d, j), took_ns);
		t->number = 0;
		last = j;
		if (d->result >= 0 && ++*ret_jobs == 1)
			histogram_add(h, took_ns);
	}
	s->step_due = true;
	return last;
}

static void suspend_done(struct scheduler *s, struct process *p, const struct gpu_done *d)
{
	uint32_t jobs;
	struct job *last = report(s, p, d, &s->figures.suspend, &jobs);

	if (!last || d->result < 0)
		return;
	for_each_job(p, j) {
		if (j->marked && !j->returning)
			job_set(s, j, j->works, true);
	}
	s->figures.status.preemptions += jobs;
	tell_held(s, p, last, jobs);
}

static void resume_done(struct scheduler *s, struct process *p, const struct gpu_done *d)
{
	uint32_t jobs;

	if (!report(s, p, d, &s->figures.resume, &jobs) || d->result < 0)
		return;
	bring_back(s, p, false, "let go");
	act_forget_entry(s, p);
}

/* It is no longer ours to hold: it ended, became another program, or belongs to somebody else. */
static void lost(struct scheduler *s, struct process *p, const struct gpu_done *d)
{
	if (p->tie != TIE_ATTACHING && p->tie != TIE_ATTACHED)
		return;
	if (d->verb == GPU_ENDED)
		act_let_go(s, p, "it is no longer attached");
	if (has_ended(p->pidfd)) {
		process_gone(s, p);
		return;
	}
	give_up(s, p, d->why.message[0] ? d->why.message : "it is no longer attached");
	process_ask(s, p, true); /* it may be another program */
}

static void released(struct scheduler *s, struct process *p, const struct gpu_done *d)
{
	bool gone = process_find(s, p->pid) != p;

	if (d->gpu_failed)
		trip(s, p, d);
	p->target = NULL;
	p->tie = TIE_NONE;
	s->targets--;
	slices_forget(s, p);
	act_let_go(s, p, "released");
	s->attach_due = true;
	if (gone) {
		TAILQ_REMOVE(&s->leaving, p, link);
		process_free(s, p);
	}
}

static struct process *owner_of(const struct scheduler *s, const struct gpu_done *d)
{
	struct process *p = process_find(s, (pid_t)(d->cookie >> 32));

	if (p && p->target == d->target)
		return p;
	for_each_process(s, other) {
		if (other->target == d->target)
			return other;
	}
	TAILQ_FOREACH(p, &s->leaving, link) {
		if (p->target == d->target)
			return p;
	}
	return NULL;
}

static void take(struct scheduler *s, const struct gpu_done *d)
{
	struct process *p = d->target ? owner_of(s, d) : NULL;

	s->outstanding -= d->verb != GPU_ENDED && s->outstanding;
	if (d->result == -EUCLEAN)
		scheduler_fail(s, -EUCLEAN, "what it holds would not end with it any more");
	if (!p)
		return;
	if (d->verb == GPU_RELEASE) {
		released(s, p, d);
	} else if (d->verb == GPU_ATTACH) {
		attach_done(s, p, d);
	} else if (d->verb == GPU_SLICE) {
		slices_done(s, p, d);
	} else if (d->verb == GPU_ENDED || (d->result < 0 && !d->gpu_failed)) {
		lost(s, p, d);
	} else {
		if (d->gpu_failed)
			trip(s, p, d);
		(d->verb == GPU_SUSPEND ? suspend_done : resume_done)(s, p, d);
	}
}

void act_take_done(struct scheduler *s)
{
	struct gpu_done d;

	while (ops(s)->take(s->b, &d) == 1)
		take(s, &d);
}
