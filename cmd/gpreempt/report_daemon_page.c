/* SPDX-License-Identifier: MIT */
/* The part of the page about what a daemon did. */
#include <string.h>

#include "cmd/gpreempt/report_daemon.h"

#define DRAWN_JOBS 16
#define DRAWN_GPUS 8
#define TABLE_ROWS 200

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
	html_more(p, TABLE_ROWS, d->n_jobs, "jobs");
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
	static const char *const keys[] = { "count", "p50", "p99", "max" };
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

	for (size_t i = 0; i < ARRAY_SIZE(acts); i++)
		n += chart_curve_take(&curves[n], acts[i].name, acts[i].style, NULL,
				      field_object(d->status, acts[i].key), "");
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
		html_cells(p, act, keys, ARRAY_SIZE(keys));
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
		html_cells(p, drawn[i], keys, ARRAY_SIZE(keys));
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
		html_put(p, "<p class=\"ground\">%s</p>", title);
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
