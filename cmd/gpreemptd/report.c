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

static struct wire_latency latency(const struct histogram *h)
{
	return (struct wire_latency){
		.count = h->count,
		.p50_ns = histogram_quantile_ns(h, 500),
		.p99_ns = histogram_quantile_ns(h, 990),
		.max_ns = h->max_ns,
	};
}

static bool is_held(const struct process *p)
{
	for_each_job(p, j) {
		if (j->off)
			return true;
	}
	return false;
}

/* So that it can be held; an online one is tied for other reasons. */
static bool is_attached(const struct process *p)
{
	return p->tie == TIE_ATTACHED && p->tied_as == JOB_OFFLINE;
}

static void count_processes(const struct scheduler *s, struct wire_status *ret)
{
	ret->online = ret->offline = ret->held = ret->attached = 0;
	for_each_process(s, p) {
		ret->online += p->verdict.job_class == JOB_ONLINE;
		ret->offline += p->verdict.job_class == JOB_OFFLINE;
		ret->attached += is_attached(p);
		ret->held += is_held(p);
	}
}

void scheduler_status(struct scheduler *s, struct wire_status *ret)
{
	const struct scheduler_figures *f = &s->figures;

	ret->flags |= (s->paused ? WIRE_STATUS_PAUSED : 0) |
		      (s->caps.modelled ? WIRE_STATUS_MODELLED : 0) |
		      (s->parts.guard && !s->failed ? WIRE_STATUS_GUARDED : 0) |
		      (s->handed_over ? WIRE_STATUS_HANDED_OVER : 0);
	ret->gpus = s->n_gpus;
	ret->processes = (uint32_t)s->n_processes;
	ret->jobs = s->n_jobs;
	ret->queues = s->n_queues;
	count_processes(s, ret);
	ret->preemptions = f->preemptions;
	ret->inversions = f->inversions;
	ret->resolved = f->resolved;
	ret->trips = f->trips;
	ret->hints = f->hints;
	ret->hints_refused = f->hints_refused;
	ret->detection = latency(&f->detection);
	ret->suspend = latency(&f->suspend);
	ret->resume = latency(&f->resume);
	ret->steps = f->steps;
	wire_text_set(ret->policy, sizeof(ret->policy), s->engine_config.policy->name);
	wire_text_set(ret->backend, sizeof(ret->backend), s->backend_name);
	wire_text_set(ret->level, sizeof(ret->level), s->level);
	wire_text_set(ret->blind, sizeof(ret->blind), s->blind);
}

size_t scheduler_gpus(struct scheduler *s, uint64_t from, struct wire_gpu *ret, size_t max,
		      uint32_t *ret_total)
{
	size_t n = 0;

	*ret_total = s->n_gpus;
	for (uint64_t i = from; i < s->n_gpus && n < max; i++) {
		const struct gpu *g = &s->gpus[i];
		struct engine_gpu_stats stats = { 0 };

		engine_gpu_stats(s->engine, g->node.gpu, &stats);
		ret[n] = (struct wire_gpu){
			.gpu = g->node.gpu,
			.flags = g->tripped || stats.tripped ? WIRE_GPU_TRIPPED : 0,
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

static uint32_t flags_of(const struct job *j, const struct engine_job_stats *stats)
{
	const struct process *p = j->process;
	bool refused = p->why[0] && p->tie != TIE_ATTACHED;

	return (p->verdict.critical ? WIRE_JOB_CRITICAL : 0) |
	       (is_attached(p) ? WIRE_JOB_ATTACHED : 0) | (j->off ? WIRE_JOB_HELD : 0) |
	       (j->works ? WIRE_JOB_WORKING : 0) | (stats->waits ? WIRE_JOB_WAITING : 0) |
	       (refused ? WIRE_JOB_REFUSED : 0);
}

/* The end of a cgroup's path says more than its beginning. */
static void set_container(struct wire_job *ret, const struct identity *id)
{
	const char *text = id->container[0] ? id->container : id->cgroup ? id->cgroup : "";
	size_t len = strlen(text), room = sizeof(ret->container) - 1;

	if (!id->container[0] && len > room)
		text += len - room;
	wire_text_set(ret->container, sizeof(ret->container), text);
}

static void describe_process(const struct process *p, struct wire_job *ret)
{
	const struct verdict *v = &p->verdict;

	ret->pid = p->pid;
	ret->uid = p->identity.uid;
	ret->job_class = (uint16_t)v->job_class;
	ret->priority = v->priority;
	ret->started_ns = p->seen_realtime_ns;
	ret->target_us = v->target_ns / NSEC_PER_USEC;
	ret->gang = v->gang[0] || p->n_jobs > 1 ? p->gang : 0;
	wire_text_set(ret->comm, sizeof(ret->comm), p->identity.comm);
	wire_text_set(ret->source, sizeof(ret->source), v->source);
	wire_text_set(ret->why, sizeof(ret->why), p->why);
	set_container(ret, &p->identity);
}

/* Where no progress is to be seen it was only supposed: that offline jobs always have work. */
static void leave_out_work(struct wire_job *ret)
{
	ret->flags &= ~(WIRE_JOB_WORKING | WIRE_JOB_WAITING);
	ret->flags |= WIRE_JOB_UNSEEN;
	ret->ran_ns = ret->stolen_ns = 0;
	ret->share_permille = 0;
	memset(ret->history, 0, sizeof(ret->history));
}

/* It could be seen, and is not. */
static void tell_blind(struct scheduler *s, const struct process *p, struct wire_job *ret)
{
	const char *why = p->watch ? ops(s)->blind(p->watch) : NULL;

	leave_out_work(ret);
	ret->flags |= WIRE_JOB_BLIND;
	if (why && !ret->why[0])
		wire_text_set(ret->why, sizeof(ret->why), why);
}

static void describe(struct scheduler *s, struct job *j, struct wire_job *ret)
{
	struct engine_job_stats stats = { 0 };

	job_account(s, j);
	if (j->engine_job != NO_JOB)
		engine_job_stats(s->engine, (uint32_t)j->engine_job, &stats);
	*ret = (struct wire_job){
		.key = j->key,
		.gpu = j->gpu,
		.flags = flags_of(j, &stats),
		.queues = j->queues,
		.preempted = j->preempted + stats.preempted,
		.made_room = j->made_room + stats.made_room,
		.held_ns = j->held_ns,
		.ran_ns = j->ran_ns + stats.ran_ns,
		.longest_wait_ns = MAX(j->longest_wait_ns, stats.longest_wait_ns),
		.stolen_ns = j->stolen_ns,
		.detect_ns = j->detect_ns,
		.because = j->because,
		.share_permille = j->share_permille,
	};
	memcpy(ret->history, j->history, sizeof(ret->history));
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

size_t scheduler_jobs(struct scheduler *s, uint64_t from, uid_t of, struct wire_job *ret,
		      size_t max, uint32_t *ret_total)
{
	uint32_t total = 0;
	size_t n = 0;
	struct job *j;

	scheduler_now(s);
	TAILQ_FOREACH(j, &s->jobs, link) {
		if (!is_listed(j) || (of != SCHEDULER_ANYBODY && j->process->identity.uid != of))
			continue;
		total++;
		if (j->key > from && n < max)
			describe(s, j, &ret[n++]);
	}
	*ret_total = total;
	return n;
}
