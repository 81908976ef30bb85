/* SPDX-License-Identifier: MIT */
/* Records as JSON: keys and units are those of their fields (gpreempt/daemon.h). */
#include <string.h>

#include "cmd/gpreempt/daemon.h"
#include "cmd/gpreempt/job_text.h"
#include "wire/record.h"

static struct json_object *latency_to_json(const struct gpreempt_latency *l)
{
	struct json_object *o = json_object_new_object();

	json_add_uint(o, "count", l->count);
	json_add(o, "p50", json_us(l->p50_ns));
	json_add(o, "p99", json_us(l->p99_ns));
	json_add(o, "max", json_us(l->max_ns));
	return o;
}

static struct json_object *number_to_json(const struct wire_field *f, uint64_t value)
{
	const char *unit = strrchr(f->key, '_');
	bool us = f->form == WIRE_FORM_NS && unit && strcmp(unit, "_us") == 0;

	switch (f->form) {
	case WIRE_FORM_FLAG:
		return json_object_new_boolean(value != 0);
	case WIRE_FORM_SIGNED:
		return json_object_new_int((int)value);
	case WIRE_FORM_PERMILLE:
		return json_decimal((double)value / 10, 1);
	default:
		return us ? json_us(value) : json_object_new_uint64(value);
	}
}

/* Of which record, and whether the caller may see all of it. */
struct shown {
	const struct wire_record *r;
	const void *record;
	bool whole;
};

static bool is_left_out(const struct shown *s, const struct wire_field *f)
{
	bool optional = f->flags & WIRE_OPTIONAL || f->form == WIRE_FORM_LATENCY;

	return !f->key || f->form == WIRE_FORM_BYTES || (!s->whole && !(f->flags & WIRE_PUBLIC)) ||
	       (optional && wire_is_zero(f, s->record)) || wire_is_unseen(s->r, f, s->record);
}

static void add_field(struct json_object *o, const struct shown *s, const struct wire_field *f)
{
	const void *at = (const char *)s->record + f->offset;

	if (is_left_out(s, f))
		return;
	switch (f->form) {
	case WIRE_FORM_TEXT:
		json_add_string(o, f->key, at);
		break;
	case WIRE_FORM_CLASS:
		json_add_string(o, f->key, job_class_word(*(const enum gpreempt_class *)at));
		break;
	case WIRE_FORM_LATENCY:
		json_add(o, f->key, latency_to_json(at));
		break;
	default:
		json_add(o, f->key, number_to_json(f, wire_value(f, s->record)));
		break;
	}
}

static void add_fields(struct json_object *o, const struct shown *s, const char *names)
{
	const struct wire_field *f;

	while ((f = wire_pick(s->r, &names)))
		add_field(o, s, f);
}

/* Those that no list has named, in their order. */
static void add_rest(struct json_object *o, const struct shown *s)
{
	for (size_t i = 0; i < s->r->n; i++) {
		const struct wire_field *f = &s->r->fields[i];

		if (f->key && !json_object_object_get_ex(o, f->key, NULL))
			add_field(o, s, f);
	}
}

static struct json_object *trip_to_json(const char *trip)
{
	struct json_object *lines = json_object_new_array();
	char *line;

	while ((line = text_next_line(&trip))) {
		json_object_array_add(lines, json_object_new_string(line));
		free(line);
	}
	return lines;
}

static struct json_object *gpu_to_json(const struct gpreempt_daemon_gpu *g, const char *trip,
				       bool privileged)
{
	const struct shown s = { &wire_gpu_record, g, privileged };
	struct json_object *o = json_object_new_object();

	add_fields(o, &s, "gpu_id name tripped slots tripped_by");
	add_rest(o, &s);
	if (trip)
		json_add(o, "trip", trip_to_json(trip));
	return o;
}

static struct json_object *job_to_json(const struct gpreempt_daemon_job *j)
{
	const struct shown s = { &wire_job_record, j, j->detailed };
	struct json_object *o = json_object_new_object();

	add_fields(o, &s, "pid comm uid gpu_id job_class queues priority");
	if (j->detailed)
		json_add_string(o, "state", job_state(j));
	add_fields(o, &s,
		   "critical attached refused blind source container why gang target_us preempted "
		   "made_room because held_ns ran_ns stolen_ns longest_wait_ns detect_ns "
		   "share_permille");
	add_rest(o, &s);
	return o;
}

static void add_status(struct json_object *o, const struct gpreempt_daemon_status *status)
{
	const struct shown s = { &wire_status_record, status, status->privileged };
	uint64_t up_ns = status->now_ns - MIN(status->started_ns, status->now_ns);

	add_fields(o, &s, "now_ns pid version policy backend level");
	json_add_string(o, "scheduler", status->kernel ? "kernel" : "gpreemptd");
	add_fields(o, &s, "modelled paused guarded privileged blind");
	json_add_uint(o, "uptime_s", up_ns / NSEC_PER_SEC);
	add_fields(o, &s,
		   "processes queues online offline held attached preemptions inversions resolved "
		   "trips hints hints_refused steps detection suspend resume config");
}

int status_print_json(struct cli *cli, const struct snapshot *v)
{
	const struct shown s = { &wire_status_record, &v->status, v->status.privileged };
	struct json_object *o = json_object_new_object();
	struct json_object *gpus = json_object_new_array(), *jobs = json_object_new_array();

	add_status(o, &v->status);
	for (size_t i = 0; i < v->n_gpus; i++)
		json_object_array_add(gpus,
				      gpu_to_json(&v->gpus[i], v->trips[i], v->status.privileged));
	json_add(o, "gpus", gpus);
	for (size_t i = 0; i < v->n_jobs; i++)
		json_object_array_add(jobs, job_to_json(&v->jobs[i]));
	json_add(o, "jobs", jobs);
	add_rest(o, &s);
	return cli_print_json(cli, o);
}

const char *event_word(const struct gpreempt_event *e)
{
	return e->kind == EVENT_SUBSCRIBED ? "subscribed" : gpreempt_event_name(e->kind);
}

struct json_object *event_to_json(const struct gpreempt_event *e)
{
	const struct shown s = { &wire_event_record, e, true };
	struct json_object *o = json_object_new_object();

	add_fields(o, &s, "time_ns");
	json_add_string(o, "event", event_word(e));
	if (e->gpu_id)
		add_fields(o, &s, "gpu_id");
	if (e->pid)
		add_fields(o, &s, "pid uid comm job_class");
	if (e->other_pid)
		add_fields(o, &s, "other_pid");
	if (e->kind == GPREEMPT_EVENT_LET_GO)
		add_fields(o, &s, "duration_ns");
	if (e->kind == GPREEMPT_EVENT_MISSED)
		add_fields(o, &s, "count");
	add_fields(o, &s, "text");
	return o;
}
