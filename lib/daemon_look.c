/* SPDX-License-Identifier: MIT */
/* What the daemon knows. Lists come in pages; nothing it says about their length is believed. */
#include <errno.h>
#include <string.h>

#include "lib/daemon_internal.h"
#include "lib/internal.h"

#define MOST_ENTRIES 65536u /* more than any daemon has: one that never ends is none */
#define MOST_TEXT (16u << 20)
#define TEXT_TRIES 8 /* the text changed between two pages */

static struct gpreempt_latency latency_of(const struct wire_latency *l)
{
	return (struct gpreempt_latency){ l->count, l->p50_ns, l->p99_ns, l->max_ns };
}

static void describe_status(struct gpreempt_daemon_status *s, const struct wire_status *w)
{
	*s = (struct gpreempt_daemon_status){
		.size = sizeof(*s),
		.pid = w->pid,
		.paused = w->flags & WIRE_STATUS_PAUSED,
		.modelled = w->flags & WIRE_STATUS_MODELLED,
		.privileged = w->flags & WIRE_STATUS_PRIVILEGED,
		.guarded = w->flags & WIRE_STATUS_GUARDED,
		.started_ns = w->started_ns,
		.now_ns = w->now_ns,
		.gpus = w->gpus,
		.processes = w->processes,
		.jobs = w->jobs,
		.queues = w->queues,
		.online = w->online,
		.offline = w->offline,
		.held = w->held,
		.attached = w->attached,
		.preemptions = w->preemptions,
		.trips = w->trips,
		.inversions = w->inversions,
		.resolved = w->resolved,
		.hints = w->hints,
		.hints_refused = w->hints_refused,
		.detection = latency_of(&w->detection),
		.suspend = latency_of(&w->suspend),
		.resume = latency_of(&w->resume),
		.steps = w->steps,
		.kernel = w->flags & WIRE_STATUS_HANDED_OVER,
	};
	DAEMON_TEXT(s->policy, w->policy);
	DAEMON_TEXT(s->backend, w->backend);
	DAEMON_TEXT(s->level, w->level);
	DAEMON_TEXT(s->version, w->version);
	DAEMON_TEXT(s->config, w->config);
	DAEMON_TEXT(s->blind, w->blind);
}

EXPORT int gpreempt_daemon_get_status(struct gpreempt_daemon *d, struct gpreempt_daemon_status *ret)
{
	struct wire_request request = { 0 };
	struct gpreempt_daemon_status status;
	union daemon_packet answer;
	int r = out_check(ret, UP_TO(struct gpreempt_daemon_status, kernel));

	if (r < 0)
		return daemon_fail_size(d, r);
	r = daemon_ask(d, WIRE_STATUS, &request, sizeof(request), &answer, sizeof(answer.status),
		       NULL);
	if (r < 0)
		return r;
	describe_status(&status, &answer.status);
	out_struct(ret, &status);
	return 0;
}

/* ---- lists ---- */

static void describe_gpu(struct gpreempt_daemon_gpu *g, const struct wire_gpu *w)
{
	*g = (struct gpreempt_daemon_gpu){
		.size = sizeof(*g),
		.gpu_id = w->gpu,
		.tripped = w->flags & WIRE_GPU_TRIPPED,
		.slots = w->slots,
		.slots_online = w->slots_online,
		.slots_offline = w->slots_offline,
		.slots_reserved = w->slots_reserved,
		.cycles = w->cycles,
		.denied_by_budget = w->denied_by_budget,
		.denied_by_cost = w->denied_by_cost,
		.trips = w->trips,
	};
	DAEMON_TEXT(g->name, w->name);
	DAEMON_TEXT(g->tripped_by, w->tripped_by);
}

static void describe_job(struct gpreempt_daemon_job *j, const struct wire_job *w)
{
	_Static_assert(sizeof(j->history) == sizeof(w->history), "history");

	*j = (struct gpreempt_daemon_job){
		.size = sizeof(*j),
		.pid = w->pid,
		.uid = w->uid,
		.gpu_id = w->gpu,
		.job_class = daemon_class(w->job_class),
		.priority = w->priority,
		.critical = w->flags & WIRE_JOB_CRITICAL,
		.attached = w->flags & WIRE_JOB_ATTACHED,
		.held = w->flags & WIRE_JOB_HELD,
		.working = w->flags & WIRE_JOB_WORKING,
		.waiting = w->flags & WIRE_JOB_WAITING,
		.refused = w->flags & WIRE_JOB_REFUSED,
		.unseen = w->flags & WIRE_JOB_UNSEEN,
		.blind = w->flags & WIRE_JOB_BLIND,
		.queues = w->queues,
		.detailed = w->flags & WIRE_JOB_FULL,
	};
	DAEMON_TEXT(j->comm, w->comm);
	if (!j->detailed)
		return;
	j->started_ns = w->started_ns;
	j->preempted = w->preempted;
	j->made_room = w->made_room;
	j->held_ns = w->held_ns;
	j->ran_ns = w->ran_ns;
	j->longest_wait_ns = w->longest_wait_ns;
	j->stolen_ns = w->stolen_ns;
	j->detect_ns = w->detect_ns;
	j->target_us = w->target_us;
	j->because = w->because;
	j->gang = w->gang;
	j->share_permille = MIN(w->share_permille, 1000u);
	memcpy(j->history, w->history, sizeof(j->history));
	DAEMON_TEXT(j->source, w->source);
	DAEMON_TEXT(j->container, w->container);
	DAEMON_TEXT(j->why, w->why);
}

/* A page of a list: how many entries, where the next page begins, how many there are in all. */
struct page {
	uint32_t n, total;
	uint64_t next;
};

typedef int (*page_fn)(struct gpreempt_daemon *d, uint64_t from, struct out_array *out,
		       struct page *ret);

static int page_of_gpus(struct gpreempt_daemon *d, uint64_t from, struct out_array *out,
			struct page *ret)
{
	struct wire_request request = { .from = from };
	struct gpreempt_daemon_gpu gpu;
	union daemon_packet p;
	int r = daemon_ask(d, WIRE_GPUS, &request, sizeof(request), &p,
			   offsetof(struct wire_gpus, gpus), NULL);

	if (r < 0)
		return r;
	if (p.gpus.n > WIRE_GPUS_MAX ||
	    (size_t)r < offsetof(struct wire_gpus, gpus) + p.gpus.n * sizeof(p.gpus.gpus[0]))
		return daemon_fail_nonsense(d);
	for (uint32_t i = 0; i < p.gpus.n; i++) {
		describe_gpu(&gpu, &p.gpus.gpus[i]);
		out_array_add(out, &gpu);
	}
	*ret = (struct page){ p.gpus.n, p.gpus.total, from + p.gpus.n };
	return 0;
}

static int page_of_jobs(struct gpreempt_daemon *d, uint64_t from, struct out_array *out,
			struct page *ret)
{
	struct wire_request request = { .from = from };
	struct gpreempt_daemon_job job;
	union daemon_packet p;
	int r = daemon_ask(d, WIRE_JOBS, &request, sizeof(request), &p,
			   offsetof(struct wire_jobs, jobs), NULL);

	if (r < 0)
		return r;
	if (p.jobs.n > WIRE_JOBS_MAX ||
	    (size_t)r < offsetof(struct wire_jobs, jobs) + p.jobs.n * sizeof(p.jobs.jobs[0]))
		return daemon_fail_nonsense(d);
	for (uint32_t i = 0; i < p.jobs.n; i++) {
		if (p.jobs.jobs[i].key <= from)
			return daemon_fail_nonsense(d); /* it would never end */
		from = p.jobs.jobs[i].key;
		describe_job(&job, &p.jobs.jobs[i]);
		out_array_add(out, &job);
	}
	*ret = (struct page){ p.jobs.n, p.jobs.total, from };
	return 0;
}

static int read_list(struct gpreempt_daemon *d, page_fn read_page, void *ret, size_t max,
		     size_t first)
{
	struct page page = { 0 };
	struct out_array out;
	int r;

	r = out_array_begin(&out, ret, max, first);
	if (r < 0)
		return daemon_fail_size(d, r);
	do {
		r = read_page(d, page.next, &out, &page);
		if (r < 0)
			return r;
		/* What does not fit is only counted, and the daemon has counted it. */
		if (out.n >= max && page.total > out.n)
			return (int)MIN(page.total, MOST_ENTRIES);
	} while (page.n > 0 && out.n < page.total && out.n < MOST_ENTRIES);
	return (int)out.n;
}

EXPORT int gpreempt_daemon_get_gpus(struct gpreempt_daemon *d, struct gpreempt_daemon_gpu *ret,
				    size_t max)
{
	return read_list(d, page_of_gpus, ret, max, UP_TO(struct gpreempt_daemon_gpu, tripped_by));
}

EXPORT int gpreempt_daemon_get_jobs(struct gpreempt_daemon *d, struct gpreempt_daemon_job *ret,
				    size_t max)
{
	return read_list(d, page_of_jobs, ret, max, UP_TO(struct gpreempt_daemon_job, why));
}

/* ---- text ---- */

/* The next piece of the text at @at: how long it is; -EAGAIN: it is another text by now. */
static int read_piece(struct gpreempt_daemon *d, size_t at, char **text, size_t *total)
{
	struct wire_request request = { .from = at };
	union daemon_packet p;
	int r = daemon_ask(d, WIRE_METRICS, &request, sizeof(request), &p,
			   offsetof(struct wire_text, text), NULL);

	if (r < 0)
		return r;
	if (p.text.n > WIRE_TEXT_MAX || p.text.total > MOST_TEXT ||
	    (size_t)r < offsetof(struct wire_text, text) + p.text.n)
		return daemon_fail_nonsense(d);
	if (at == 0) {
		*text = calloc(1, (size_t)p.text.total + 1);
		*total = p.text.total;
	}
	if (!*text)
		return daemon_fail(d, -ENOMEM, GPREEMPT_ERROR_FAILED, "free some memory",
				   "out of memory");
	if (p.text.total != *total)
		return -EAGAIN;
	if (p.text.n > *total - at || (p.text.n == 0 && at < *total))
		return daemon_fail_nonsense(d);
	memcpy(*text + at, p.text.text, p.text.n);
	return (int)p.text.n;
}

static int read_text(struct gpreempt_daemon *d, char **ret, size_t *ret_len)
{
	_cleanup_free_ char *text = NULL;
	size_t at = 0, total = 0;

	do {
		int r = read_piece(d, at, &text, &total);

		if (r < 0)
			return r;
		at += (size_t)r;
	} while (at < total);
	*ret = steal_ptr(&text);
	*ret_len = total;
	return 0;
}

EXPORT int gpreempt_daemon_get_metrics(struct gpreempt_daemon *d, char **ret, size_t *ret_len)
{
	for (int i = 0; i < TEXT_TRIES; i++) {
		int r = read_text(d, ret, ret_len);

		if (r != -EAGAIN)
			return r;
	}
	return daemon_fail(d, -EAGAIN, GPREEMPT_ERROR_FAILED, "try again",
			   "the metrics change faster than they can be read");
}

/* ---- policies ---- */

static int ask_policy(struct gpreempt_daemon *d, struct wire_policy *request,
		      union daemon_packet *ret)
{
	return daemon_ask(d, WIRE_POLICY, request, sizeof(*request), ret, sizeof(ret->policy),
			  NULL);
}

EXPORT int gpreempt_daemon_get_policy(struct gpreempt_daemon *d, struct gpreempt_policy *ret)
{
	struct gpreempt_policy policy = { .size = sizeof(policy) };
	struct wire_policy request = { 0 };
	union daemon_packet answer;
	int r = out_check(ret, UP_TO(struct gpreempt_policy, names));

	if (r < 0)
		return daemon_fail_size(d, r);
	r = ask_policy(d, &request, &answer);
	if (r < 0)
		return r;
	DAEMON_TEXT(policy.name, answer.policy.name);
	DAEMON_TEXT(policy.names, answer.policy.names);
	out_struct(ret, &policy);
	return 0;
}

EXPORT int gpreempt_daemon_set_policy(struct gpreempt_daemon *d, const char *name)
{
	struct wire_policy request = { 0 };
	union daemon_packet answer;
	size_t n = strlen(name);
	int r;

	if (n == 0 || n >= sizeof(request.name))
		return daemon_fail(d, -EINVAL, GPREEMPT_ERROR_USAGE, "see them: gpreempt policy",
				   "there is no policy '%.32s'", name);
	memcpy(request.name, name, n);
	r = ask_policy(d, &request, &answer);
	return r < 0 ? r : 0;
}
