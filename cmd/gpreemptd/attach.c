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
#include "cmd/wire/wire.h"

#define AT_ONCE 4u /* attaches under way */
#define LINGER_NS (5 * NSEC_PER_SEC) /* attached without an online job beside it */
#define RETRY_FIRST_NS (5 * NSEC_PER_SEC)
#define RETRY_LAST_NS (300 * NSEC_PER_SEC)
#define SETTLED_NS (60 * NSEC_PER_SEC) /* attached for so long it is no longer fought over */

bool is_holdable(const struct scheduler *s, const struct process *p)
{
	return p->tie == TIE_ATTACHED && p->verdict.job_class == JOB_OFFLINE && !s->paused &&
	       !s->failed && p->free_until_ns <= s->now_ns;
}

static bool shares_with_online(const struct process *p)
{
	for_each_job(p, j) {
		if (j->on && j->on->online)
			return true;
	}
	return false;
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
		    shares_with_online(other))
			return true;
	}
	return false;
}

/* Attaching is work for every GPU the process is on, also for one that cannot do it. */
static bool is_wanted(const struct scheduler *s, const struct process *p)
{
	return p->verdict.job_class == JOB_OFFLINE && p->n_jobs && !p->left_alone &&
	       s->engine_config.policy != &gpol_none && !tripped_gpu(p) &&
	       (shares_with_online(p) || is_needed_by_gang(s, p));
}

static bool should_be_tied(const struct scheduler *s, const struct process *p)
{
	if (s->handed_over)
		return false;
	return is_wanted(s, p) || (slices_wants_tie(s, p) && !tripped_gpu(p));
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
	process_tell(s, p, &(struct wire_event){ .kind = WIRE_JOB_NOT_ATTACHED },
		     p->tied_as == JOB_ONLINE ?
			     "process %d (%s) is not given longer turns, %s: %s" :
			     "process %d (%s) is not attached and runs on, %s: %s",
		     p->pid, p->identity.comm, until, p->why);
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

/* A pid may have passed on since the last scan, and to an online job. */
static bool is_still_there(struct scheduler *s, const struct process *p)
{
	uint64_t start;
	pid_t parent;
	char comm[16];

	return process_stat(s, p->pid, &parent, &start, comm) == 0 &&
	       start == p->identity.start_ticks;
}

/* Its cgroup may be another since it was looked at last, and that of online jobs. */
static bool is_still_of_its_class(struct scheduler *s, struct process *p)
{
	enum job_class was = p->verdict.job_class;

	return process_identify(s, p) == 0 && p->verdict.job_class == was;
}

static void attach(struct scheduler *s, struct process *p)
{
	int r;

	if (!scheduler_is_guarded(s) || !is_still_of_its_class(s, p))
		return;
	p->tied_as = p->verdict.job_class;
	r = ops(s)->attach(s->b, p->pid, act_cookie(s, p), &p->target);
	if (r < 0) {
		p->target = NULL;
		attach_later(s, p, strerror(-r));
		return;
	}
	p->tie = TIE_ATTACHING;
	s->attaching++;
	s->targets++;
	s->outstanding++;
	if (!is_still_there(s, p))
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
	if (p->wanted && p->tie == TIE_NONE && !p->target && s->attaching < AT_ONCE &&
	    is_old_enough(s, p) && s->now_ns >= p->retry_ns)
		attach(s, p);
}

void attach_all(struct scheduler *s)
{
	s->attach_due = false;
	for_each_process(s, p)
		consider(s, p);
}

void attach_let_go(struct scheduler *s, struct process *p)
{
	if (p->tie != TIE_ATTACHING && p->tie != TIE_ATTACHED)
		return;
	s->attaching -= p->tie == TIE_ATTACHING;
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
		act_trip(s, p, d->gpu, d->why);
	if (d->result < 0) {
		attach_later(s, p, d->why[0] ? d->why : strerror(-d->result));
		attach_let_go(s, p);
		return;
	}
	s->attaching--;
	p->tie = TIE_ATTACHED;
	p->attached_ns = s->now_ns;
	p->told = false;
	p->why[0] = 0;
	jobs_change(s, p);
	if (p->tied_as == JOB_ONLINE)
		return;
	process_tell(s, p, &(struct wire_event){ .kind = WIRE_JOB_ATTACHED_NOW },
		     "process %d (%s) is attached: it can make room for online jobs", p->pid,
		     p->identity.comm);
}
