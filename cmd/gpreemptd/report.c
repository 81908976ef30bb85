/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "cmd/gpreemptd/scheduler_internal.h"
#include "wire/wire.h"

int scheduler_uid_of(struct scheduler *s, pid_t pid, uid_t *ret)
{
	const struct process *p = process_find(s, pid);

	if (p) {
		*ret = p->identity.uid;
		return 0;
	}
	return s->b ? ops(s)->owner(s->b, pid, ret) : -ESRCH;
}

const struct scheduler_figures *scheduler_figures(const struct scheduler *s)
{
	return &s->figures;
}

static struct gpreempt_latency latency(const struct histogram *h)
{
	return (struct gpreempt_latency){
		.count = h->count,
		.p50_ns = histogram_quantile_ns(h, 500),
		.p99_ns = histogram_quantile_ns(h, 990),
		.max_ns = h->max_ns,
	};
}

/* So that it can be held; an online one is tied for other reasons. */
static bool is_attached(const struct process *p)
{
	return p->tie == TIE_ATTACHED && p->tied_as == JOB_OFFLINE;
}

static void count_processes(const struct scheduler *s, struct gpreempt_daemon_status *ret)
{
	for_each_process(s, p) {
		ret->online += p->verdict.job_class == JOB_ONLINE;
		ret->offline += p->verdict.job_class == JOB_OFFLINE;
		ret->attached += is_attached(p);
		ret->held += process_is_held(p);
	}
}

void scheduler_status(struct scheduler *s, struct gpreempt_daemon_status *ret)
{
	const struct scheduler_figures *f = &s->figures;

	*ret = f->status;
	ret->size = sizeof(*ret);
	ret->paused = s->paused;
	ret->modelled = s->caps.modelled;
	ret->guarded = s->parts.guard && !s->failed;
	ret->kernel = s->handed_over;
	ret->gpus = s->n_gpus;
	ret->processes = (uint32_t)s->n_processes;
	ret->jobs = s->n_jobs;
	ret->queues = s->n_queues;
	count_processes(s, ret);
	ret->detection = latency(&f->detection);
	ret->suspend = latency(&f->suspend);
	ret->resume = latency(&f->resume);
	wire_text_set(ret->policy, sizeof(ret->policy), s->engine_config.policy->name);
	wire_text_set(ret->blind, sizeof(ret->blind), s->blind);
	wire_text_set(ret->unwatched, sizeof(ret->unwatched), pace_unwatched(s));
}

size_t scheduler_gpus(struct scheduler *s, uint64_t from, struct gpreempt_daemon_gpu *ret,
		      size_t max, uint32_t *ret_total)
{
	size_t n = 0;

	*ret_total = s->n_gpus;
	for (uint64_t i = from; i < s->n_gpus && n < max; i++) {
		const struct gpu *g = &s->gpus[i];
		struct engine_gpu_stats stats = { 0 };

		engine_gpu_stats(s->engine, g->node.gpu, &stats);
		ret[n] = (struct gpreempt_daemon_gpu){
			.gpu_id = g->node.gpu,
			.tripped = g->tripped || stats.tripped,
			.slots = g->node.slots,
			.slots_online = stats.slots_online,
			.slots_offline = stats.slots_offline,
			.slots_reserved = stats.slots_reserved,
			.cycles = stats.cycles,
			.denied_by_budget = stats.denied_by_budget,
			.denied_by_cost = stats.denied_by_cost,
			.trips = g->trips,
		};
		wire_text_set(ret[n].name, sizeof(ret[n].name), g->node.name);
		wire_text_set(ret[n].tripped_by, sizeof(ret[n].tripped_by), g->tripped_by);
		n++;
	}
	return n;
}

/* The end of a cgroup's path says more than its beginning. */
static void set_container(struct gpreempt_daemon_job *ret, const struct identity *id)
{
	const char *text = id->container[0] ? id->container : id->cgroup ? id->cgroup : "";
	size_t len = strlen(text), room = sizeof(ret->container) - 1;

	if (!id->container[0] && len > room)
		text += len - room;
	wire_text_set(ret->container, sizeof(ret->container), text);
}

static void describe_process(const struct process *p, struct gpreempt_daemon_job *ret)
{
	const struct verdict *v = &p->verdict;

	ret->pid = p->pid;
	ret->uid = p->identity.uid;
	ret->job_class = (enum gpreempt_class)v->job_class;
	ret->priority = v->priority;
	ret->critical = v->critical;
	ret->watched = p->armed;
	ret->refused = p->why[0] && p->tie != TIE_ATTACHED;
	ret->started_ns = p->seen_realtime_ns;
	ret->target_us = v->target_ns / NSEC_PER_USEC;
	ret->gang = v->gang[0] || p->n_jobs > 1 ? p->gang : 0;
	wire_text_set(ret->comm, sizeof(ret->comm), p->identity.stat.comm);
	wire_text_set(ret->source, sizeof(ret->source), v->source);
	wire_text_set(ret->why, sizeof(ret->why), p->why);
	set_container(ret, &p->identity);
}

/* Where no progress is to be seen it was only supposed: that offline jobs always have work. */
static void leave_out_work(struct gpreempt_daemon_job *ret)
{
	ret->working = ret->waiting = false;
	ret->unseen = true;
	ret->ran_ns = ret->stolen_ns = 0;
	ret->share_permille = 0;
	memset(ret->history, 0, sizeof(ret->history));
}

/* It could be seen, and is not. */
static void tell_blind(struct scheduler *s, const struct process *p,
		       struct gpreempt_daemon_job *ret)
{
	const char *why = p->watch && ops(s)->blind ? ops(s)->blind(p->watch) : NULL;

	leave_out_work(ret);
	ret->blind = true;
	if (why && !ret->why[0])
		wire_text_set(ret->why, sizeof(ret->why), why);
}

static void describe(struct scheduler *s, struct job *j, struct gpreempt_daemon_job *ret)
{
	struct engine_job_stats stats = { 0 };

	job_account(s, j);
	if (j->engine_job != NO_JOB)
		engine_job_stats(s->engine, (uint32_t)j->engine_job, &stats);
	*ret = j->sum;
	ret->gpu_id = j->gpu;
	ret->attached = is_attached(j->process);
	ret->held = j->off;
	ret->working = j->works;
	ret->waiting = stats.waits;
	ret->queues = j->queues;
	ret->preempted += stats.preempted;
	ret->made_room += stats.made_room;
	ret->ran_ns += stats.ran_ns;
	ret->longest_wait_ns = MAX(ret->longest_wait_ns, stats.longest_wait_ns);
	ret->because = j->because;
	describe_process(j->process, ret);
	if (j->process->blind_told)
		tell_blind(s, j->process, ret);
	else if (!s->caps.counts_progress)
		leave_out_work(ret);
}

/* What stands for a process that has no jobs is listed for want of those. */
static bool is_listed(const struct job *j)
{
	return j != &j->process->self || !j->process->n_jobs;
}

size_t scheduler_jobs(struct scheduler *s, uint64_t *from, uid_t of,
		      struct gpreempt_daemon_job *ret, size_t max, uint32_t *ret_total)
{
	uint64_t last = *from;
	uint32_t total = 0;
	size_t n = 0;
	struct job *j;

	scheduler_now(s);
	TAILQ_FOREACH(j, &s->jobs, link) {
		if (!is_listed(j) || (of != SCHEDULER_ANYBODY && j->process->identity.uid != of))
			continue;
		total++;
		if (j->key > *from && n < max) {
			describe(s, j, &ret[n++]);
			last = j->key;
		}
	}
	*from = last;
	*ret_total = total;
	return n;
}
