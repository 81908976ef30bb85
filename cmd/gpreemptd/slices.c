/* SPDX-License-Identifier: MIT */
/*
 * Turns as the GPU itself gives them, where it can be told how long they are: online contexts keep
 * it until they are done, an offline one leaves as soon as they have work. Nothing is done at a
 * request, and nothing stays as it was made when there is nobody left to make it for.
 */
#include <errno.h>
#include <string.h>

#include "cmd/gpreemptd/scheduler_internal.h"

/*
 * Does nobody else of its class run beside the process? Short turns are for one against online
 * jobs: with another offline job, which leaves as soon or not at all, the GPU would do nothing but
 * change between them.
 */
static bool runs_alone(const struct scheduler *s, const struct process *p)
{
	bool turns = s->engine_config.policy == &gpol_rotate;

	for_each_job(p, j) {
		const struct gpu *g = j->on;

		if (g && g->offline > 1 && !(turns && g->holdable == g->offline))
			return false;
	}
	return true;
}

/* Long turns are against offline jobs; another online one would wait for their end as well. */
static bool serves_alone(const struct process *p)
{
	for_each_job(p, j) {
		if (j->on && j->on->online > 1)
			return false;
	}
	return true;
}

bool slices_meet(const struct process *p, enum job_class other)
{
	for_each_job(p, j) {
		if (j->on && (other == JOB_ONLINE ? j->on->online : j->on->tied))
			return true;
	}
	return false;
}

static enum gpu_slice wanted(const struct scheduler *s, const struct process *p)
{
	if (!p->wanted || s->engine_config.policy == &gpol_none)
		return GPU_SLICE_OWN;
	if (p->tied_as == JOB_ONLINE)
		return slices_meet(p, JOB_OFFLINE) ? GPU_SLICE_LONG : GPU_SLICE_OWN;
	return slices_meet(p, JOB_ONLINE) && runs_alone(s, p) ? GPU_SLICE_SHORT : GPU_SLICE_OWN;
}

static void tell_failure(struct process *p, const char *why)
{
	if (p->slice_told)
		return;
	p->slice_told = true;
	log_line(LOG_LEVEL_WARNING, "process %d (%s) keeps the turns it has on the GPU: %s", p->pid,
		 p->identity.stat.comm, why);
}

static void ask(struct scheduler *s, struct process *p, enum gpu_slice slice)
{
	int r;

	p->slice = slice;
	if (s->b->caps.outlives_owner && !act_write_down(s, p)) {
		tell_failure(p, "nothing more can be written down");
		return;
	}
	p->sliced = true;
	p->slice_cookie = act_cookie(s, p);
	r = ops(s)->slice(p->target, slice, p->slice_cookie);
	if (r < 0)
		tell_failure(p, strerror(-r));
	else
		s->outstanding++;
}

void slices_follow(struct scheduler *s)
{
	s->slices_due = false;
	for_each_process(s, p) {
		enum gpu_slice slice;

		if (p->tie != TIE_ATTACHED)
			continue;
		slice = wanted(s, p);
		if (slice != p->slice)
			ask(s, p, slice);
	}
}

bool slices_wants_tie(const struct scheduler *s, const struct process *p)
{
	return s->b->caps.slices && p->verdict.job_class == JOB_ONLINE && serves_alone(p) &&
	       slices_meet(p, JOB_OFFLINE);
}

/* Of several that are under way the last one says what is in force. */
void slices_done(struct scheduler *s, struct process *p, const struct gpu_done *d)
{
	if (d->gpu_failed)
		trip(s, p, d);
	if (d->result < 0 && d->result != -ESRCH)
		tell_failure(p, d->why.message[0] ? d->why.message : strerror(-d->result));
	else if (d->result == 0 && p->slice == GPU_SLICE_OWN && d->cookie == p->slice_cookie)
		slices_forget(s, p);
}

void slices_forget(struct scheduler *s, struct process *p)
{
	p->slice = GPU_SLICE_OWN;
	p->sliced = false;
	act_forget_entry(s, p);
}
