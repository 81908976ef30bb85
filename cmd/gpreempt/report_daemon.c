/* SPDX-License-Identifier: MIT */
/*
 * What a daemon did: lines of `gpreempt --json events` and answers of `gpreempt --json status`,
 * in any number and mixed, as they were written to a file.
 */
#include <errno.h>
#include <string.h>

#include "cmd/gpreempt/report_daemon.h"

#include "util/array.h"

#define MAX_JOBS 4096
#define MAX_HOLDS (1u << 22)
#define MAX_SLOTS 1000000

struct daemon_record *daemon_record_new(void)
{
	return calloc(1, sizeof(struct daemon_record));
}

void daemon_record_free(struct daemon_record *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->n_jobs; i++)
		lane_done(&d->jobs[i].lane);
	for (size_t i = 0; i < d->n_gpus; i++)
		free(d->gpus[i].slots.of);
	free(d->jobs);
	free(d->holds_us);
	json_object_put(d->status);
	free(d);
}

static bool is_event(struct json_object *value)
{
	return field_text(value, "event")[0] && field(value, "time_ns");
}

static bool is_status(struct json_object *value)
{
	return field_array(value, "gpus") && field_array(value, "jobs") &&
	       field_text(value, "policy")[0] && field(value, "uptime_s");
}

bool daemon_record_is(struct json_object *value)
{
	return is_event(value) || is_status(value);
}

enum ground daemon_record_ground(const struct daemon_record *d)
{
	return d->ground;
}

static void take_ground(struct daemon_record *d, struct json_object *value)
{
	bool modelled;

	if (field_bool(value, "modelled", &modelled))
		d->ground = modelled ? GROUND_MODELLED : GROUND_MEASURED;
	if (field_text(value, "backend")[0])
		snprintf(d->backend, sizeof(d->backend), "%s", field_text(value, "backend"));
}

static bool take_time(struct daemon_record *d, struct json_object *value, uint64_t *ret)
{
	if (!field_count(value, "time_ns", ret) || *ret > (uint64_t)INT64_MAX)
		return false;
	d->first_ns = d->first_ns ? MIN(d->first_ns, *ret) : *ret;
	d->last_ns = MAX(d->last_ns, *ret);
	return true;
}

/* A number that comes again is another process; what is told of one that went is still its own. */
static int find_job(struct daemon_record *d, uint64_t pid, uint64_t gpu_id, bool comes,
		    struct daemon_job **ret)
{
	struct daemon_job *bigger;

	for (size_t i = d->n_jobs; i-- > 0;) {
		struct daemon_job *j = &d->jobs[i];

		if (j->pid == pid && comes && j->went)
			break;
		if (j->pid == pid && (j->gpu_id == gpu_id || !j->gpu_id || !gpu_id)) {
			j->gpu_id = gpu_id ? gpu_id : j->gpu_id;
			*ret = j;
			return 0;
		}
	}
	if (d->n_jobs == MAX_JOBS)
		return -E2BIG;
	bigger = reallocarray(d->jobs, d->n_jobs + 1, sizeof(*bigger));
	if (!bigger)
		return -ENOMEM;
	d->jobs = bigger;
	*ret = &d->jobs[d->n_jobs++];
	**ret = (struct daemon_job){ .pid = pid, .gpu_id = gpu_id };
	return 0;
}

static struct daemon_gpu *find_gpu(struct daemon_record *d, uint64_t id)
{
	for (size_t i = 0; i < d->n_gpus; i++) {
		if (d->gpus[i].id == id)
			return &d->gpus[i];
	}
	if (d->n_gpus == DAEMON_MAX_GPUS)
		return NULL;
	d->gpus[d->n_gpus].id = id;
	return &d->gpus[d->n_gpus++];
}

static int count_event(struct daemon_record *d, const char *name)
{
	for (size_t i = 0; i < d->n_kinds; i++) {
		if (strncmp(d->kinds[i].name, name, sizeof(d->kinds[i].name) - 1) == 0) {
			d->kinds[i].n++;
			return 0;
		}
	}
	if (d->n_kinds == DAEMON_MAX_KINDS)
		return -E2BIG;
	snprintf(d->kinds[d->n_kinds].name, sizeof(d->kinds[0].name), "%s", name);
	d->kinds[d->n_kinds++].n = 1;
	return 0;
}

static int keep_hold(struct daemon_record *d, struct daemon_job *j, uint64_t to_ns, uint64_t ns)
{
	struct lane_span span = { .from_ns = to_ns - MIN(ns, to_ns),
				  .to_ns = to_ns,
				  .kind = LANE_HELD };

	j->holds++;
	j->held_ns += ns;
	j->longest_ns = MAX(j->longest_ns, ns);
	if (array_reserve(&d->holds_us, d->n_holds + 1, &d->room_holds, sizeof(*d->holds_us)) < 0)
		return -ENOMEM;
	if (d->n_holds == MAX_HOLDS)
		return -E2BIG;
	d->holds_us[d->n_holds++] = (double)ns / 1000;
	return lane_add(&j->lane, &span);
}

static int let_go(struct daemon_record *d, struct daemon_job *j, struct json_object *e,
		  uint64_t now_ns)
{
	uint64_t ns = j->held && now_ns > j->held_since_ns ? now_ns - j->held_since_ns : 0;
	double us;

	if (field_number(e, "duration_us", &us) && us >= 0 && us < 1e15)
		ns = (uint64_t)(us * 1000 + 0.5);
	j->held = false;
	return keep_hold(d, j, now_ns, ns);
}

static int went(struct daemon_job *j, uint64_t now_ns)
{
	struct lane_span span = { .from_ns = j->there_since_ns,
				  .to_ns = now_ns,
				  .kind = LANE_THERE };

	j->went = true;
	if (!j->there)
		return 0;
	j->there = false;
	return lane_add(&j->lane, &span);
}

static void name_job(struct daemon_job *j, struct json_object *told)
{
	j->lane.online = strcmp(field_text(told, "class"), "online") == 0;
	snprintf(j->lane.name, sizeof(j->lane.name), "%.16s (%llu), %.10s",
		 field_text(told, "comm"), (unsigned long long)j->pid, field_text(told, "class"));
}

static int take_job_event(struct daemon_record *d, struct json_object *e, const char *name,
			  uint64_t now_ns)
{
	uint64_t pid, gpu_id = 0;
	struct daemon_job *j;
	int r;

	if (!field_count(e, "pid", &pid))
		return 0;
	field_count(e, "gpu_id", &gpu_id);
	r = find_job(d, pid, gpu_id, strcmp(name, "job-came") == 0, &j);
	if (r)
		return r;
	if (gpu_id && !find_gpu(d, gpu_id))
		return -E2BIG;
	name_job(j, e);
	if (!j->there && strcmp(name, "job-went") != 0) {
		j->there = true;
		j->there_since_ns = strcmp(name, "job-came") == 0 ? now_ns : d->first_ns;
	}
	if (strcmp(name, "held") == 0) {
		j->held = true;
		j->held_since_ns = now_ns;
	}
	if (strcmp(name, "let-go") == 0)
		return let_go(d, j, e, now_ns);
	return strcmp(name, "job-went") == 0 ? went(j, now_ns) : 0;
}

static int take_event(struct daemon_record *d, struct json_object *e)
{
	const char *name = field_text(e, "event");
	uint64_t now_ns;
	int r;

	if (!take_time(d, e, &now_ns))
		return -EINVAL;
	d->events++;
	take_ground(d, e);
	r = count_event(d, name);
	return r ? r : take_job_event(d, e, name, now_ns);
}

static int take_slots(struct daemon_record *d, struct json_object *gpu, uint64_t now_ns)
{
	uint64_t id, slots, online, offline;
	struct slot_sample s = { .at_ns = now_ns };
	struct daemon_gpu *found;

	if (!field_count(gpu, "gpu_id", &id))
		return -EINVAL;
	found = find_gpu(d, id);
	if (!found)
		return -E2BIG;
	snprintf(found->name, sizeof(found->name), "%s", field_text(gpu, "name"));
	if (!field_count(gpu, "slots", &slots) || !field_count(gpu, "slots_online", &online) ||
	    !field_count(gpu, "slots_offline", &offline))
		return 0; /* not for everybody to see */
	if (slots > MAX_SLOTS || online + offline > slots || online > slots || offline > slots)
		return -EINVAL;
	s.online = (uint32_t)online;
	s.offline = (uint32_t)offline;
	s.free = (uint32_t)(slots - online - offline);
	return slots_add(&found->slots, &s);
}

/* Events do not always name the GPU; statuses do. */
static int take_job(struct daemon_record *d, struct json_object *job)
{
	uint64_t pid, gpu_id;
	struct daemon_job *j;
	int r;

	if (!field_count(job, "pid", &pid) || !field_count(job, "gpu_id", &gpu_id))
		return 0;
	r = find_job(d, pid, gpu_id, false, &j);
	if (!r)
		name_job(j, job);
	return r;
}

static int take_status(struct daemon_record *d, struct json_object *status)
{
	struct json_object *gpus = field_array(status, "gpus");
	struct json_object *jobs = field_array(status, "jobs");
	uint64_t now_ns;
	int r = 0;

	if (!take_time(d, status, &now_ns))
		return -EINVAL;
	d->statuses++;
	take_ground(d, status);
	for (size_t i = 0; !r && i < json_object_array_length(gpus); i++)
		r = take_slots(d, json_object_array_get_idx(gpus, i), now_ns);
	for (size_t i = 0; !r && i < json_object_array_length(jobs); i++)
		r = take_job(d, json_object_array_get_idx(jobs, i));
	json_object_put(d->status);
	d->status = json_object_get(status);
	return r;
}

int daemon_record_add(struct daemon_record *d, struct json_object *value)
{
	return is_event(value) ? take_event(d, value) : take_status(d, value);
}

static int by_beginning(const void *a, const void *b)
{
	const struct lane_span *x = a, *y = b;

	if (x->from_ns == y->from_ns)
		return (int)x->kind - (int)y->kind;
	return x->from_ns < y->from_ns ? -1 : 1;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* What is not over when the recording ends is drawn up to there; only what ended is counted. */
int daemon_record_complete(struct daemon_record *d)
{
	for (size_t i = 0; i < d->n_jobs; i++) {
		struct daemon_job *j = &d->jobs[i];
		struct lane_span open = { .from_ns = j->held_since_ns,
					  .to_ns = d->last_ns,
					  .kind = LANE_HELD };

		if (went(j, d->last_ns) || (j->held && lane_add(&j->lane, &open)))
			return -ENOMEM;
		if (j->lane.n)
			qsort(j->lane.spans, j->lane.n, sizeof(*j->lane.spans), by_beginning);
	}
	if (d->n_holds)
		qsort(d->holds_us, d->n_holds, sizeof(*d->holds_us), by_size);
	return 0;
}
