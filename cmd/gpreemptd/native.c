/* SPDX-License-Identifier: MIT */
/*
 * Handing over to the scheduler that the driver has itself, and taking back. While it is handed
 * over nothing is attached and nothing held from here: jobs are found, identified and classed as
 * ever, and the driver is told what they are. It goes on by itself, whatever becomes of us, and
 * ends its own holds.
 *
 * Whoever turns it off, or takes the driver away, gives the work back to us; it is not fought over:
 * the next try comes with the next configuration, or after a pause.
 *
 * It outlives a daemon that is killed. The journal tells the next one that it is ours to turn off,
 * written before it is on and erased after it is off.
 */
#include <errno.h>
#include <string.h>

#include "cmd/gpreemptd/scheduler_internal.h"

#define CHECK_NS NSEC_PER_SEC /* whether it is still on */
#define AGAIN "gpreemptd schedules itself again: "

static const struct gpu_native_ops *native(const struct scheduler *s)
{
	return s->b && s->b->caps.schedules ? ops(s)->native : NULL;
}

static struct gpu_native_config config_of(const struct scheduler *s)
{
	const struct engine_config *c = &s->engine_config;

	return (struct gpu_native_config){
		.policy = c->policy->name,
		.interval_ns = c->interval_ns,
		.critical_interval_ns = c->critical_interval_ns,
		.turn_ns = c->params.turn_ns,
		.hold_max_ns = c->hold_max_ns,
		.cycles_per_s = c->cycles_per_s,
		.reserve = s->config->ration_slots,
		.online_permille = c->online_permille,
		.offline_permille = c->offline_permille,
		.low_water = c->low_water,
	};
}

/* ---- jobs ---- */

static struct gpu_native_job job_of(const struct scheduler *s, const struct process *p)
{
	const struct verdict *v = &p->verdict;
	bool online = v->job_class == JOB_ONLINE;
	struct gpu_native_job job;

	memset(&job, 0, sizeof(job)); /* it is compared as a whole */
	if (v->job_class == JOB_UNMANAGED || p->left_alone || p->free_until_ns > s->now_ns)
		return job;
	job.job_class = v->job_class;
	job.critical = online && is_critical(p);
	job.lazy = v->lazy;
	job.auto_deactivate = v->auto_deactivate;
	job.priority = v->priority;
	job.weight = v->weight;
	job.target_ns = v->target_ns;
	job.wait_bound_ns = v->wait_bound_ns;
	return job;
}

void native_tell_job(struct scheduler *s, struct process *p)
{
	struct gpu_native_job job;
	int r;

	if (!s->handed_over)
		return;
	job = job_of(s, p);
	if (p->native_told && !memcmp(&job, &p->native_job, sizeof(job)))
		return;
	r = native(s)->set_job(s->b, p->pid, p->identity.stat.start_ticks, &job);
	if (r == -ESRCH)
		return; /* gone, or another program: the next scan knows */
	/* What it took it is not told again and again; what it did not, with every scan. */
	if (r < 0 && r != p->native_error)
		log_line(LOG_LEVEL_WARNING,
			 "the kernel's scheduler does not take the class of process %d (%s): %s",
			 p->pid, p->identity.stat.comm, strerror(-r));
	p->native_error = r;
	p->native_told = r >= 0;
	p->native_job = job;
}

int native_hint(struct scheduler *s, struct process *p, uint64_t at_ns, uint64_t for_ns)
{
	uint64_t ahead_ns = at_ns > s->now_ns ? at_ns - s->now_ns : 0;

	native_tell_job(s, p); /* it may be online only now */
	return native(s)->hint(s->b, p->pid, p->identity.stat.start_ticks, ahead_ns, for_ns);
}

int native_rearm(struct scheduler *s, uint32_t gpu)
{
	return s->handed_over ? native(s)->rearm(s->b, gpu) : 0;
}

/* ---- there and back ---- */

static void refuse(struct scheduler *s, int error)
{
	s->native_refused = true;
	log_line(LOG_LEVEL_WARNING,
		 "cannot hand over to the kernel's scheduler: %s; gpreemptd schedules itself%s",
		 error == -EOPNOTSUPP ? "there is none here" : strerror(-error),
		 error == -EPERM ? " (it needs CAP_SYS_ADMIN for that)" : "");
}

/* Off, or gone: what it held runs. */
static int turn_off(struct scheduler *s)
{
	int r = native(s)->turn_off(s->b);

	if (r >= 0 || r == -ENODEV || r == -EOPNOTSUPP)
		journal_set_turned_on(s->parts.journal, false);
	return r;
}

static int turn_on(struct scheduler *s)
{
	struct gpu_native_config config = config_of(s);
	struct journal *j = s->parts.journal;
	bool ours = journal_turned_on(j);
	int r;

	s->native_was_on = !ours && native(s)->is_on(s->b) == 1;
	journal_set_turned_on(j, !s->native_was_on);
	r = native(s)->turn_on(s->b, &config);
	if (r == -EPERM || r == -EOPNOTSUPP)
		journal_set_turned_on(j, ours); /* nothing happened */
	else if (r < 0 && !s->native_was_on)
		turn_off(s); /* it may be half on */
	return r;
}

static void hand_over(struct scheduler *s)
{
	int r;

	if (!native(s)) {
		refuse(s, -EOPNOTSUPP);
		return;
	}
	scheduler_will_be_late(s);
	r = turn_on(s);
	if (r < 0) {
		refuse(s, r);
		return;
	}
	s->handed_over = true;
	s->native_check_ns = s->now_ns + CHECK_NS;
	s->native_due = false;
	for_each_process(s, p)
	{
		scheduler_will_be_late(s);
		attach_let_go(s, p);
		p->native_told = false;
		native_tell_job(s, p);
	}
	s->gpus_due = s->attach_due = true;
	tell(s, GPREEMPT_EVENT_HANDED_OVER, 0, "the kernel's scheduler decides from here on");
}

/* With @off nobody else decides any more: what it holds runs. */
static void take_back(struct scheduler *s, const char *text, bool off)
{
	if (off)
		turn_off(s);
	s->handed_over = false;
	s->gpus_due = s->attach_due = s->step_due = true;
	tell(s, GPREEMPT_EVENT_TAKEN_BACK, 0, text);
}

static void set_anew(struct scheduler *s)
{
	struct gpu_native_config config = config_of(s);
	int r = native(s)->turn_on(s->b, &config);

	s->native_due = false;
	if (r >= 0)
		return;
	s->native_refused = true;
	take_back(s, AGAIN "the kernel's scheduler does not take the configuration", true);
}

static void check(struct scheduler *s)
{
	int on = native(s)->is_on(s->b);

	s->native_check_ns = s->now_ns + CHECK_NS;
	if (on == 1)
		return;
	s->native_refused = true;
	take_back(s,
		  on < 0 ? AGAIN "the kernel's scheduler has gone" :
			   AGAIN "somebody turned the kernel's scheduler off",
		  true); /* where it is on still, on other GPUs, it would be in our way */
}

/* Not wanted, and yet on: two that decide. Once, not at every turn. */
static void look_for_another(struct scheduler *s)
{
	bool ours = journal_turned_on(s->parts.journal);

	s->native_looked = true;
	if (!ours && (!native(s) || native(s)->is_on(s->b) != 1))
		return;
	if (!ours)
		log_line(LOG_LEVEL_WARNING,
			 "the kernel's scheduler is on, and holds jobs besides gpreemptd: "
			 "gpreempt kernel off, or scheduler = yes in [kernel]");
	else if (!native(s) || turn_off(s) < 0)
		log_line(LOG_LEVEL_WARNING,
			 "cannot turn off the kernel's scheduler, which an earlier gpreemptd "
			 "turned on: gpreempt kernel off");
	else
		tell(s, GPREEMPT_EVENT_TAKEN_BACK, 0, AGAIN "the configuration says so");
}

void native_follow(struct scheduler *s)
{
	bool wanted = s->config->kernel_scheduler && !s->native_refused;

	if (!s->handed_over && wanted)
		hand_over(s);
	else if (!s->handed_over && !s->native_looked)
		look_for_another(s);
	else if (s->handed_over && !s->config->kernel_scheduler)
		take_back(s, AGAIN "the configuration says so", true);
	else if (s->handed_over && s->native_due)
		set_anew(s);
	else if (s->handed_over && s->now_ns >= s->native_check_ns)
		check(s);
}

void native_end(struct scheduler *s)
{
	if (s->handed_over)
		take_back(s,
			  s->native_was_on ? "the kernel's scheduler goes on, as set by gpreemptd" :
					     "the kernel's scheduler is turned off",
			  !s->native_was_on);
	else if (native(s) && journal_turned_on(s->parts.journal))
		turn_off(s);
	s->native_refused = s->native_looked = false;
}
