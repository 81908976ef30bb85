/* SPDX-License-Identifier: MIT */
#include "cmd/gpreempt/job_text.h"
#include "cmd/gpreempt/status.h"

static void add_latency(struct json_object *o, const char *key, const struct gpreempt_latency *l)
{
	struct json_object *inner;

	if (l->count == 0)
		return;
	inner = json_object_new_object();
	json_add_uint(inner, "count", l->count);
	json_add(inner, "p50", json_us(l->p50_ns));
	json_add(inner, "p99", json_us(l->p99_ns));
	json_add(inner, "max", json_us(l->max_ns));
	json_add(o, key, inner);
}

static void add_flag(struct json_object *o, const char *key, bool value)
{
	json_add(o, key, json_object_new_boolean(value));
}

static struct json_object *gpu_to_json(const struct gpreempt_daemon_gpu *g, bool privileged)
{
	struct json_object *o = json_object_new_object();

	json_add_uint(o, "gpu_id", g->gpu_id);
	json_add_string(o, "name", g->name);
	add_flag(o, "tripped", g->tripped);
	json_add_uint(o, "slots", g->slots);
	if (!privileged)
		return o;
	if (g->tripped)
		json_add_string(o, "tripped_by", g->tripped_by);
	json_add_uint(o, "slots_online", g->slots_online);
	json_add_uint(o, "slots_offline", g->slots_offline);
	json_add_uint(o, "slots_reserved", g->slots_reserved);
	json_add_uint(o, "cycles", g->cycles);
	json_add_uint(o, "denied_by_budget", g->denied_by_budget);
	json_add_uint(o, "denied_by_cost", g->denied_by_cost);
	json_add_uint(o, "trips", g->trips);
	return o;
}

static void add_job_details(struct json_object *o, const struct gpreempt_daemon_job *j)
{
	json_add_uint(o, "priority", j->priority);
	json_add_string(o, "state", job_state(j));
	add_flag(o, "latency_critical", j->critical);
	add_flag(o, "attached", j->attached);
	add_flag(o, "refused", j->refused);
	add_flag(o, "blind", j->blind);
	json_add_string(o, "source", j->source);
	if (j->container[0])
		json_add_string(o, "container", j->container);
	if (j->why[0])
		json_add_string(o, "why", j->why);
	if (j->gang)
		json_add_uint(o, "gang", j->gang);
	if (j->target_us)
		json_add_uint(o, "target_us", j->target_us);
	json_add_uint(o, "preempted", j->preempted);
	json_add_uint(o, "made_room", j->made_room);
	if (j->because)
		json_add(o, "held_for_pid", json_object_new_int((int)j->because));
	json_add(o, "held_us", json_us(j->held_ns));
	if (!j->unseen) {
		json_add(o, "ran_us", json_us(j->ran_ns));
		json_add(o, "stolen_us", json_us(j->stolen_ns));
	}
	if (!j->unseen || j->longest_wait_ns)
		json_add(o, "longest_wait_us", json_us(j->longest_wait_ns));
	if (j->detect_ns)
		json_add(o, "detection_us", json_us(j->detect_ns));
	if (!j->unseen)
		json_add(o, "share_pct", json_decimal((double)j->share_permille / 10, 1));
}

static struct json_object *job_to_json(const struct gpreempt_daemon_job *j)
{
	struct json_object *o = json_object_new_object();

	json_add(o, "pid", json_object_new_int((int)j->pid));
	json_add_string(o, "comm", j->comm);
	json_add_uint(o, "uid", j->uid);
	if (j->gpu_id)
		json_add_uint(o, "gpu_id", j->gpu_id);
	json_add_string(o, "class", job_class_word(j->job_class));
	json_add_uint(o, "queues", j->queues);
	if (j->detailed)
		add_job_details(o, j);
	return o;
}

/* What only those may see who may do everything. */
static void add_figures(struct json_object *o, const struct gpreempt_daemon_status *s)
{
	json_add_uint(o, "held", s->held);
	json_add_uint(o, "attached", s->attached);
	json_add_uint(o, "preemptions", s->preemptions);
	json_add_uint(o, "inversions", s->inversions);
	json_add_uint(o, "resolved", s->resolved);
	json_add_uint(o, "trips", s->trips);
	json_add_uint(o, "hints", s->hints);
	json_add_uint(o, "hints_refused", s->hints_refused);
	json_add_uint(o, "steps", s->steps);
	add_latency(o, "detection_us", &s->detection);
	add_latency(o, "suspend_us", &s->suspend);
	add_latency(o, "resume_us", &s->resume);
	if (s->config[0])
		json_add_string(o, "config", s->config);
}

int status_print_json(struct cli *cli, const struct daemon_view *v)
{
	const struct gpreempt_daemon_status *s = &v->status;
	struct json_object *o = json_object_new_object();
	struct json_object *gpus = json_object_new_array(), *jobs = json_object_new_array();

	json_add_uint(o, "time_ns", s->now_ns);
	json_add(o, "pid", json_object_new_int((int)s->pid));
	json_add_string(o, "version", s->version);
	json_add_string(o, "policy", s->policy);
	json_add_string(o, "backend", s->backend);
	json_add_string(o, "level", s->level);
	json_add_string(o, "scheduler", s->kernel ? "kernel" : "gpreemptd");
	add_flag(o, "modelled", s->modelled);
	add_flag(o, "paused", s->paused);
	add_flag(o, "guarded", s->guarded);
	add_flag(o, "privileged", s->privileged);
	if (s->blind[0])
		json_add_string(o, "blind", s->blind);
	json_add_uint(o, "uptime_s",
		      s->now_ns > s->started_ns ? (s->now_ns - s->started_ns) / NSEC_PER_SEC : 0);
	json_add_uint(o, "processes", s->processes);
	json_add_uint(o, "queues", s->queues);
	json_add_uint(o, "online", s->online);
	json_add_uint(o, "offline", s->offline);
	if (s->privileged)
		add_figures(o, s);
	for (size_t i = 0; i < v->n_gpus; i++)
		json_object_array_add(gpus, gpu_to_json(&v->gpus[i], s->privileged));
	json_add(o, "gpus", gpus);
	for (size_t i = 0; i < v->n_jobs; i++)
		json_object_array_add(jobs, job_to_json(&v->jobs[i]));
	json_add(o, "jobs", jobs);
	return cli_print_json(cli, o);
}

const char *event_word(const struct gpreempt_event *e)
{
	return e->kind == EVENT_SUBSCRIBED ? "subscribed" : gpreempt_event_name(e->kind);
}

struct json_object *event_to_json(const struct gpreempt_event *e)
{
	struct json_object *o = json_object_new_object();

	json_add_uint(o, "time_ns", e->time_ns);
	json_add_string(o, "event", event_word(e));
	if (e->gpu_id)
		json_add_uint(o, "gpu_id", e->gpu_id);
	if (e->pid) {
		json_add(o, "pid", json_object_new_int((int)e->pid));
		json_add_uint(o, "uid", e->uid);
		json_add_string(o, "comm", e->comm);
		json_add_string(o, "class", job_class_word(e->job_class));
	}
	if (e->other_pid)
		json_add(o, "other_pid", json_object_new_int((int)e->other_pid));
	if (e->kind == GPREEMPT_EVENT_LET_GO)
		json_add(o, "duration_us", json_us(e->duration_ns));
	if (e->kind == GPREEMPT_EVENT_MISSED)
		json_add_uint(o, "count", e->count);
	json_add_string(o, "text", e->text);
	return o;
}
