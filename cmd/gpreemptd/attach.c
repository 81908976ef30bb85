/* SPDX-License-Identifier: MIT */
/*
 * Whom to attach. Attaching may stop everybody on a GPU for a moment, so it is done only to offline
 * jobs that have lived for a while and share a GPU with an online one, and never to online jobs;
 * but where a GPU can be told how long turns are (slices.c), nobody is stopped by it, and online
 * jobs beside attached ones are tied for that alone.
 */
#include <errno.h>
#include <string.h>

#include "cmd/gpreemptd/scheduler_internal.h"
#include "wire/wire.h"

#define AT_ONCE 4u /* attaches under way */
#define USUAL_NS (500 * NSEC_PER_MSEC) /* that one takes at most */
#define KNOWN_NS (250 * NSEC_PER_MSEC) /* for so long a process is believed to be who it was */
#define LINGER_NS (5 * NSEC_PER_SEC) /* attached without an online job beside it */
#define RETRY_FIRST_NS (5 * NSEC_PER_SEC)
#define RETRY_LAST_NS (300 * NSEC_PER_SEC)
#define SETTLED_NS (60 * NSEC_PER_SEC) /* attached for so long it is no longer fought over */

bool is_holdable(const struct scheduler *s, const struct process *p)
{
	return p->tie == TIE_ATTACHED && p->verdict.job_class == JOB_OFFLINE && !s->paused &&
	       !s->failed && p->free_until_ns <= s->now_ns;
}

/* NULL: it has nothing to do with one. */
static const struct gpu *tripped_gpu(const struct process *p)
{
	for_each_job(p, j) {
		if (j->on && j->on->tripped)
			return j->on;
	}
	return NULL;
}

/* One of its gang is wanted: they stop together or not at all. */
static bool is_needed_by_gang(const struct scheduler *s, const struct process *p)
{
	if (!p->verdict.gang[0])
		return false;
	for_each_process(s, other) {
		if (other->gang == p->gang && other->verdict.job_class == JOB_OFFLINE &&
		    slices_meet(other, JOB_ONLINE))
			return true;
	}
	return false;
}

/* Attaching is work for every GPU the process is on, also for one that cannot do it. */
static bool should_be_tied(const struct scheduler *s, const struct process *p)
{
	if (s->handed_over || !p->n_jobs || p->left_alone || tripped_gpu(p) ||
	    s->engine_config.policy == &gpol_none)
		return false;
	if (p->verdict.job_class == JOB_OFFLINE)
		return slices_meet(p, JOB_ONLINE) || is_needed_by_gang(s, p);
	return slices_wants_tie(s, p);
}

static void tell_why(struct scheduler *s, struct process *p)
{
	const struct gpu *g = tripped_gpu(p);
	char until[48];

	if (p->told)
		return;
	p->told = true;
	if (g)
		snprintf(until, sizeof(until), "left alone until gpreempt rearm %u", g->node.gpu);
	else
		snprintf(until, sizeof(until), "trying again in %llu s",
			 (unsigned long long)((p->retry_ns - s->now_ns) / NSEC_PER_SEC));
	process_say(s, p, GPREEMPT_EVENT_NOT_ATTACHED, "is not %s, %s: %s",
		    p->tied_as == JOB_ONLINE ? "given longer turns" : "attached and runs on", until,
		    p->why);
}

void attach_at_once(struct scheduler *s, struct process *p)
{
	p->told = false;
	p->retry_ns = p->retry_after_ns = 0;
	s->attach_due = true;
}

void attach_later(struct scheduler *s, struct process *p, const char *why)
{
	bool settled = p->attached_ns && s->now_ns - p->attached_ns >= SETTLED_NS;
	uint64_t after_ns = p->retry_after_ns && !settled ? p->retry_after_ns : RETRY_FIRST_NS;

	p->attached_ns = 0;
	p->retry_ns = s->now_ns + after_ns;
	p->retry_after_ns = MIN(2 * after_ns, RETRY_LAST_NS);
	wire_text_set(p->why, sizeof(p->why), why);
	tell_why(s, p);
}

static void attach(struct scheduler *s, struct process *p)
{
	int r;

	p->tied_as = p->verdict.job_class;
	r = ops(s)->attach(s->b, &(struct gpu_attach){ p->pid, p->identity.stat.start_ticks },
			   act_cookie(s, p), &p->target);
	if (r < 0) {
		p->target = NULL;
		attach_later(s, p,
			     r == -EUSERS ? "too many processes of its user do not let "
					    "themselves be held" :
					    strerror(-r));
		return;
	}
	p->tie = TIE_ATTACHING;
	p->attaching_ns = s->now_ns;
	s->targets++;
	s->outstanding++;
	if (has_ended(p->pidfd))
		attach_let_go(s, p); /* whoever it is that was asked for */
}

static bool is_old_enough(const struct scheduler *s, const struct process *p)
{
	return s->b->caps.attach_is_free || s->now_ns - p->seen_ns >= s->config->attach_age_ns;
}

static void consider(struct scheduler *s, struct process *p)
{
	if (p->free_until_ns && p->free_until_ns <= s->now_ns) {
		p->free_until_ns = 0;
		jobs_change(s, p);
	}
	native_tell_job(s, p);
	p->wanted = should_be_tied(s, p);
	if (p->wanted)
		p->wanted_ns = s->now_ns;
	else if (s->now_ns - p->wanted_ns >= LINGER_NS)
		attach_let_go(s, p);
}

static bool is_due(const struct scheduler *s, const struct process *p)
{
	return p->wanted && p->tie == TIE_NONE && !p->target && is_old_enough(s, p) &&
	       s->now_ns >= p->retry_ns;
}

/* Its cgroup may be another since it was looked at last, and that of online jobs. */
static bool is_known(const struct scheduler *s, const struct process *p)
{
	return s->now_ns - p->identified_ns <= KNOWN_NS;
}

/* After it was asked who it is. */
static bool is_still_due(struct scheduler *s, struct process *p)
{
	if (!is_due(s, p) || !is_known(s, p))
		return false;
	p->wanted = should_be_tied(s, p);
	return p->wanted && scheduler_is_guarded(s);
}

/* One that takes long hangs, and keeps nobody else from being attached. */
static unsigned int count_attaching(const struct scheduler *s)
{
	unsigned int n = 0;

	for_each_process(s, p) n +=
		p->tie == TIE_ATTACHING && s->now_ns - p->attaching_ns < USUAL_NS;
	return n;
}

void attach_all(struct scheduler *s)
{
	unsigned int attaching;

	s->attach_due = false;
	for_each_process(s, p)
	{
		consider(s, p);
		if (is_due(s, p) && !is_known(s, p))
			process_ask(s, p, true);
	}
	processes_take_answers(s);
	attaching = count_attaching(s);
	for_each_process(s, p)
	{
		if (attaching >= AT_ONCE)
			return;
		if (is_still_due(s, p))
			attach(s, p);
		attaching += p->tie == TIE_ATTACHING && p->attaching_ns == s->now_ns;
	}
}

void attach_let_go(struct scheduler *s, struct process *p)
{
	if (p->tie != TIE_ATTACHING && p->tie != TIE_ATTACHED)
		return;
	p->tie = TIE_RELEASING;
	if (p->tied_as == JOB_OFFLINE)
		jobs_start_over(s, p);
	if (ops(s)->release(p->target, act_cookie(s, p)) == 0) {
		s->outstanding++;
		return;
	}
	p->tie = TIE_NONE;
	p->target = NULL;
	s->targets--;
	slices_forget(s, p);
	act_let_go(s, p, "released");
}

void attach_done(struct scheduler *s, struct process *p, const struct gpu_done *d)
{
	if (p->tie != TIE_ATTACHING)
		return;
	s->attach_due = true;
	if (d->gpu_failed)
		trip(s, p, d);
	if (d->result < 0) {
		attach_later(s, p, d->why.message[0] ? d->why.message : strerror(-d->result));
		attach_let_go(s, p);
		return;
	}
	if (has_ended(p->pidfd)) { /* whoever it is that was attached */
		attach_let_go(s, p);
		return;
	}
	p->tie = TIE_ATTACHED;
	p->attached_ns = s->now_ns;
	p->told = false;
	p->why[0] = 0;
	jobs_change(s, p);
	if (p->tied_as == JOB_ONLINE)
		return;
	process_say(s, p, GPREEMPT_EVENT_ATTACHED, "is attached: it can make room for online jobs");
}
