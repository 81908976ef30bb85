/* SPDX-License-Identifier: MIT */
/*
 * What a daemon did: lines of `gpreempt --json events` and answers of `gpreempt --json status`,
 * in any number and mixed, as they were written to a file.
 */
#include <errno.h>
#include <string.h>

#include "cmd/gpreempt/report.h"

#define MAX_JOBS 4096
#define MAX_GPUS 64
#define MAX_HOLDS (1u << 22)
#define MAX_KINDS 32
#define MAX_SLOTS 1000000
#define DRAWN_JOBS 16
#define DRAWN_GPUS 8
#define TABLE_ROWS 200

struct daemon_job {
	uint64_t pid, gpu_id; /* gpu 0: of none that is known */
	struct lane lane;
	bool there, held;
	uint64_t there_since_ns, held_since_ns;
	uint64_t holds, held_ns, longest_ns;
};

struct daemon_gpu {
	uint64_t id;
	char name[64];
	struct slot_samples slots;
};

struct event_kind {
	char name[32];
	uint64_t n;
};

struct daemon_record {
	enum ground ground;
	char backend[24];
	uint64_t first_ns, last_ns, events, statuses;
	struct daemon_job *jobs;
	size_t n_jobs;
	struct daemon_gpu gpus[MAX_GPUS];
	size_t n_gpus;
	struct event_kind kinds[MAX_KINDS];
	size_t n_kinds;
	double *holds_us; /* how long each that ended was */
	size_t n_holds, room_holds;
	struct json_object *status; /* the last */
};

/* ---- reading ---- */

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

static int find_job(struct daemon_record *d, uint64_t pid, uint64_t gpu_id, struct daemon_job **ret)
{
	struct daemon_job *bigger;

	for (size_t i = d->n_jobs; i-- > 0;) {
		struct daemon_job *j = &d->jobs[i];

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
	if (d->n_gpus == MAX_GPUS)
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
	if (d->n_kinds == MAX_KINDS)
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
	if (d->n_holds == d->room_holds) {
		size_t room = d->room_holds ? d->room_holds * 2 : 256;
		double *bigger = reallocarray(d->holds_us, room, sizeof(*bigger));

		if (!bigger)
			return -ENOMEM;
		d->holds_us = bigger;
		d->room_holds = room;
	}
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
	r = find_job(d, pid, gpu_id, &j);
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
	r = find_job(d, pid, gpu_id, &j);
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

/* ---- the page ---- */

static const char *ground_text(const struct daemon_record *d)
{
	if (d->ground == GROUND_MODELLED)
		return "The daemon and the clock were real, the GPU was a software device: what "
		       "acting on it took is modelled.";
	if (d->ground == GROUND_MEASURED)
		return "Measured by the daemon, on the machine and GPUs where it ran.";
	return "The recording does not say what the daemon ran on.";
}

static void put_tiles(struct page *p, const struct daemon_record *d)
{
	char figure[UNIT_TEXT_SIZE], text[96];

	html_tiles(p);
	html_tile(p, "Recorded", html_duration(d->last_ns - d->first_ns, figure), "first to last");
	snprintf(figure, sizeof(figure), "%zu", d->n_holds);
	html_tile(p, "Holds that ended", figure, "a job kept off a GPU and let go again");
	if (d->n_holds) {
		html_duration((uint64_t)(d->holds_us[d->n_holds - 1] * 1000), figure);
		html_tile(p, "Longest hold", figure, "from held until let go");
	}
	snprintf(figure, sizeof(figure), "%llu", (unsigned long long)d->events);
	snprintf(text, sizeof(text), "and %llu statuses", (unsigned long long)d->statuses);
	html_tile(p, "Events", figure, text);
	html_tiles_end(p);
}

static void gpu_title(const struct daemon_gpu *gpu, char *ret, size_t size)
{
	snprintf(ret, size, "GPU %llu%s%s", (unsigned long long)gpu->id, gpu->name[0] ? ", " : "",
		 gpu->name);
}

static void put_timeline(struct page *p, const struct daemon_record *d, const struct daemon_gpu *g)
{
	const struct lane_window w = { d->first_ns, MAX(d->last_ns, d->first_ns + 1), d->first_ns };
	struct lane *lanes[DRAWN_JOBS];
	char name[96], title[120];
	size_t n = 0, all = 0;

	for (size_t i = 0; i < d->n_jobs; i++) {
		if (d->jobs[i].gpu_id != (g ? g->id : 0) || !d->jobs[i].lane.n)
			continue;
		if (all++ < DRAWN_JOBS)
			lanes[n++] = &d->jobs[i].lane;
	}
	if (!n)
		return;
	if (g)
		gpu_title(g, name, sizeof(name));
	snprintf(title, sizeof(title), "Timeline of %s",
		 g ? name : "jobs of which no event names a GPU");
	html_figure(p, title,
		    all > n ? "Who was held off the GPU when. The first jobs only." :
			      "Who was held off the GPU when.");
	chart_lanes(p, title, lanes, n, &w);
	html_ground(p, d->ground, ground_text(d));
	html_figure_end(p);
}

static void put_jobs(struct page *p, const struct daemon_record *d)
{
	static const char *const columns[] = { "job", "GPU", "times held", "held, ms",
					       "longest, ms" };

	if (!d->n_jobs)
		return;
	html_table(p, "Jobs, by the events", columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < d->n_jobs && i < TABLE_ROWS; i++) {
		const struct daemon_job *j = &d->jobs[i];
		char key[24];

		snprintf(key, sizeof(key), "%llu", (unsigned long long)j->pid);
		html_row(p, key, j->lane.name);
		if (j->gpu_id)
			html_cell_format(p, "%llu", (unsigned long long)j->gpu_id);
		else
			html_cell(p, "");
		html_cell_format(p, "%llu", (unsigned long long)j->holds);
		html_cell_format(p, "%.3f", (double)j->held_ns / 1e6);
		html_cell_format(p, "%.3f", (double)j->longest_ns / 1e6);
		html_row_end(p);
	}
	html_table_end(p);
	if (d->n_jobs > TABLE_ROWS)
		html_raw(p, "<p class=\"ground\">The first %d of %zu jobs.</p>\n", TABLE_ROWS,
			 d->n_jobs);
}

static double at_percent(const struct daemon_record *d, double pct)
{
	double rank = pct / 100 * (double)d->n_holds;
	size_t i = (size_t)rank;

	i = (double)i < rank ? i + 1 : i;
	return d->holds_us[i ? i - 1 : 0];
}

static void put_holds(struct page *p, const struct daemon_record *d)
{
	static const char *const columns[] = { "",	  "count",   "min, µs",
					       "p50, µs", "p99, µs", "max, µs" };
	static struct chart_curve c;

	if (!d->n_holds)
		return;
	c = (struct chart_curve){ .name = "holds", .style = STYLE_OURS, .n = 101 };
	for (size_t i = 0; i < c.n; i++) {
		c.pct[i] = (double)i;
		c.us[i] = at_percent(d, c.pct[i]);
	}
	html_figure(p, "How long jobs were held", "The part of holds that were no longer.");
	chart_cdf(p, "Distribution of the length of holds", &c, 1);
	html_ground(p, d->ground, ground_text(d));
	html_table(p, "Holds that ended", columns, ARRAY_SIZE(columns));
	html_row(p, "holds", "holds");
	html_cell_format(p, "%zu", d->n_holds);
	html_cell_format(p, "%.3f", d->holds_us[0]);
	html_cell_format(p, "%.3f", at_percent(d, 50));
	html_cell_format(p, "%.3f", at_percent(d, 99));
	html_cell_format(p, "%.3f", d->holds_us[d->n_holds - 1]);
	html_row_end(p);
	html_table_end(p);
	html_figure_end(p);
}

static void put_latencies(struct page *p, const struct daemon_record *d)
{
	static const char *const columns[] = { "", "count", "p50, µs", "p99, µs", "max, µs" };
	static const struct {
		const char *key, *name;
		enum chart_style style;
	} acts[] = {
		{ "detection_us", "detection: from work seen to the decision", STYLE_NONE },
		{ "suspend_us", "suspend: from the decision until done", STYLE_OURS },
		{ "resume_us", "resume: from the decision until done", STYLE_ALONE },
	};
	static struct chart_curve curves[ARRAY_SIZE(acts)];
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(acts); i++) {
		curves[n].name = acts[i].name;
		curves[n].style = acts[i].style;
		n += chart_curve_from_quantiles(&curves[n], field_object(d->status, acts[i].key),
						"");
	}
	if (!n)
		return;
	html_figure(p, "How long the daemon takes",
		    "Since it began, by its last status. The marked points are known; between them "
		    "nothing is.");
	chart_cdf(p, "Latencies of the daemon", curves, n);
	html_ground(p, d->ground, ground_text(d));
	html_table(p, "How long the daemon takes", columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < ARRAY_SIZE(acts); i++) {
		struct json_object *act = field_object(d->status, acts[i].key);

		if (!act)
			continue;
		html_row(p, acts[i].key, acts[i].name);
		html_cell_number(p, field(act, "count"));
		html_cell_number(p, field(act, "p50"));
		html_cell_number(p, field(act, "p99"));
		html_cell_number(p, field(act, "max"));
		html_row_end(p);
	}
	html_table_end(p);
	html_figure_end(p);
}

/* Of the time an offline job had work, the part in which it was not held. */
static void put_goodput(struct page *p, const struct daemon_record *d)
{
	static const char *const columns[] = { "job", "ran, µs", "held with work, µs", "times held",
					       "share of the last second, %" };
	static const char *const keys[] = { "ran_us", "stolen_us", "preempted", "share_pct" };
	struct json_object *jobs = field_array(d->status, "jobs");
	struct json_object *drawn[DRAWN_JOBS];
	struct chart_bar bars[DRAWN_JOBS];
	size_t n = 0;

	for (size_t i = 0; jobs && i < json_object_array_length(jobs) && n < DRAWN_JOBS; i++) {
		struct json_object *j = json_object_array_get_idx(jobs, i);
		double ran, stolen;

		if (strcmp(field_text(j, "class"), "offline") != 0 ||
		    !field_number(j, "ran_us", &ran) || !field_number(j, "stolen_us", &stolen) ||
		    ran < 0 || stolen < 0 || ran + stolen <= 0)
			continue;
		bars[n] = (struct chart_bar){ .name = field_text(j, "comm"),
					      .style = STYLE_ALONE,
					      .value = 100 * ran / (ran + stolen) };
		snprintf(bars[n].text, sizeof(bars[n].text), "%.1f %%", bars[n].value);
		drawn[n++] = j;
	}
	if (!n)
		return;
	html_figure(
		p, "Offline goodput",
		"Of the time that each offline job had work, the part in which it ran, by the last "
		"status in the recording.");
	chart_bars(p, "Offline goodput", bars, n, 100);
	html_ground(p, d->ground, ground_text(d));
	html_table(p, "Offline jobs, by the last status", columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < n; i++) {
		html_row(p, bars[i].name, bars[i].name);
		for (size_t k = 0; k < ARRAY_SIZE(keys); k++)
			html_cell_number(p, field(drawn[i], keys[k]));
		html_row_end(p);
	}
	html_table_end(p);
	html_figure_end(p);
}

static void put_slots(struct page *p, const struct daemon_record *d)
{
	const struct lane_window w = { d->first_ns, MAX(d->last_ns, d->first_ns + 1), d->first_ns };
	size_t with = 0;
	char title[96];

	for (size_t i = 0; i < d->n_gpus; i++)
		with += d->gpus[i].slots.n > 0;
	if (!with)
		return;
	html_figure(
		p, "HQD occupancy",
		"Hardware queue slots by whose queues are in them, at each status; between two of "
		"them it is drawn as it was at the first. Means are over that time. A GPU that "
		"nobody "
		"used is in the table only.");
	for (size_t i = 0, drawn = 0; i < d->n_gpus && drawn < DRAWN_GPUS; i++) {
		if (!slots_taken(&d->gpus[i].slots))
			continue;
		gpu_title(&d->gpus[i], title, sizeof(title));
		html_raw(p, "<p class=\"ground\">");
		html_text(p, title);
		html_raw(p, "</p>");
		chart_slots(p, title, &d->gpus[i].slots, &w);
		drawn++;
	}
	html_ground(p, d->ground, ground_text(d));
	html_table(p, "HQD occupancy", slots_columns, SLOTS_COLUMNS);
	for (size_t i = 0; i < d->n_gpus; i++) {
		gpu_title(&d->gpus[i], title, sizeof(title));
		if (d->gpus[i].slots.n)
			slots_row(p, title, &d->gpus[i].slots, d->last_ns);
	}
	html_table_end(p);
	html_figure_end(p);
}

static void put_kinds(struct page *p, const struct daemon_record *d)
{
	static const char *const columns[] = { "event", "times" };

	if (!d->n_kinds)
		return;
	html_table(p, "Events", columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < d->n_kinds; i++) {
		html_row(p, d->kinds[i].name, d->kinds[i].name);
		html_cell_format(p, "%llu", (unsigned long long)d->kinds[i].n);
		html_row_end(p);
	}
	html_table_end(p);
}

void report_daemon(struct page *p, size_t nth, const struct daemon_record *d)
{
	char subtitle[120];

	snprintf(subtitle, sizeof(subtitle), "%llu events and %llu statuses of gpreemptd%s%s",
		 (unsigned long long)d->events, (unsigned long long)d->statuses,
		 d->backend[0] ? ", backend " : "", d->backend);
	html_section(p, nth, "What the daemon did", subtitle, d->ground);
	put_tiles(p, d);
	put_holds(p, d);
	put_latencies(p, d);
	for (size_t i = 0; i < d->n_gpus && i < DRAWN_GPUS; i++)
		put_timeline(p, d, &d->gpus[i]);
	put_timeline(p, d, NULL);
	put_jobs(p, d);
	put_goodput(p, d);
	put_slots(p, d);
	put_kinds(p, d);
	html_section_end(p);
}
