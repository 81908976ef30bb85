/* SPDX-License-Identifier: MIT */
/* What `gpreempt --json sim` answered. */

#include "cmd/gpreempt/report.h"

#define MAX_RUNS 64 /* of a sweep */
#define MAX_JOBS 200

static const struct mode {
	const char *key, *name;
	enum chart_style style;
} modes[] = {
	{ "gpreempt", "gpreempt", STYLE_OURS },
	{ "alone", "online alone", STYLE_ALONE },
	{ "none", "no preemption", STYLE_NONE },
	{ "stream_priority", "stream priority", STYLE_STREAM },
	{ "sequential", "sequential", STYLE_SEQUENTIAL },
};

static const char ground_text[] =
	"All of it is modelled: virtual time on a model of GPU and driver. No time here was taken "
	"on a GPU.";

/* What was recorded of a mode: the run itself, or one of its baselines. */
static struct json_object *of_mode(struct json_object *run, const struct mode *mode)
{
	if (mode == &modes[0])
		return run;
	return field_object(field_object(run, "baselines"), mode->key);
}

static const char *duration_text(struct json_object *o, const char *key, char *buf)
{
	double us;

	if (!field_number(o, key, &us) || us < 0 || us > 1e15)
		return "–";
	return html_duration((uint64_t)(us * 1000 + 0.5), buf);
}

static const char *percent_text(struct json_object *o, const char *key, char *buf, size_t size)
{
	double pct;

	if (!field_number(o, key, &pct))
		return "–";
	snprintf(buf, size, "%.1f %%", pct);
	return buf;
}

/* ---- in short ---- */

static void put_tiles(struct page *p, struct json_object *run)
{
	struct json_object *online = field_object(run, "online");
	struct json_object *none = field_object(of_mode(run, &modes[2]), "online");
	struct json_object *held = field_object(run, "preemptions");
	char buf[3][UNIT_TEXT_SIZE], text[128], percent[32];
	uint64_t count;

	html_tiles(p);
	snprintf(text, sizeof(text), "alone %s, without preemption %s",
		 duration_text(online, "alone_p99_us", buf[1]),
		 duration_text(none, "p99_us", buf[2]));
	html_tile(p, "99 % of online requests within", duration_text(online, "p99_us", buf[0]),
		  text);
	html_tile(
		p, "Offline work kept",
		percent_text(field_object(run, "offline"), "goodput_pct", percent, sizeof(percent)),
		"of what gets done without preemption");
	snprintf(percent, sizeof(percent), "–");
	if (field_count(held, "count", &count))
		snprintf(percent, sizeof(percent), "%llu", (unsigned long long)count);
	snprintf(text, sizeof(text), "half of them off the GPU within %s",
		 duration_text(field_object(held, "latency_us"), "p50", buf[0]));
	html_tile(p, "Preemptions", percent, text);
	if (field_count(run, "starved", &count)) {
		snprintf(percent, sizeof(percent), "%llu", (unsigned long long)count);
		html_tile(p, "Offline jobs starved", percent, "waited past their bound");
	}
	html_tiles_end(p);
}

/* ---- latency ---- */

static void put_latency_table(struct page *p, struct json_object *run)
{
	static const char *const columns[] = { "",	    "requests", "mean, µs",
					       "p50, µs",   "p95, µs",	"p99, µs",
					       "p99.9, µs", "max, µs",	"over alone, %" };
	static const char *const keys[] = { "requests", "mean_us", "p50_us", "p95_us",
					    "p99_us",	"p999_us", "max_us", "over_alone_pct" };

	html_table(p, "Latency of online requests", columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		struct json_object *online = field_object(of_mode(run, &modes[i]), "online");

		if (!online)
			continue;
		html_row(p, modes[i].key, modes[i].name);
		html_cells(p, online, keys, ARRAY_SIZE(keys));
		html_row_end(p);
	}
	html_table_end(p);
}

static void put_latency(struct page *p, struct json_object *run)
{
	static struct chart_curve curves[ARRAY_SIZE(modes)];
	size_t n = 0;
	bool sparse = false;

	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		struct json_object *online = field_object(of_mode(run, &modes[i]), "online");

		if (chart_curve_take(&curves[n], modes[i].name, modes[i].style,
				     field_object(online, "cdf"), online, "_us"))
			sparse |= curves[n++].sparse;
	}
	html_figure(
		p, "Latency of online requests",
		sparse ? "The part of requests that took no longer. The recording has the marked "
			 "points only; between them nothing is known." :
			 "The part of requests that took no longer, from submission until done, "
			 "with "
			 "the same requests in each. Further left is better.");
	chart_cdf(p, "Distribution of the latency of online requests", curves, n);
	html_ground(p, GROUND_MODELLED, ground_text);
	put_latency_table(p, run);
	html_figure_end(p);
}

/* ---- what gets done ---- */

static void put_work_table(struct page *p, struct json_object *run)
{
	static const char *const columns[] = { "", "offline goodput, %", "all requests, %",
					       "all work, %", "overloaded" };

	html_table(p, "What gets done", columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		struct json_object *mode = of_mode(run, &modes[i]);
		bool overloaded;

		if (!mode)
			continue;
		html_row(p, modes[i].key, modes[i].name);
		html_cell_number(p, field(field_object(mode, "offline"), "goodput_pct"));
		html_cell_number(p, field(mode, "total_throughput_pct"));
		html_cell_number(p, field(mode, "total_work_pct"));
		html_cell(p, field_bool(mode, "overloaded", &overloaded) ?
				     overloaded ? "yes" : "no" :
				     "");
		html_row_end(p);
	}
	html_table_end(p);
}

static void put_work(struct page *p, struct json_object *run)
{
	struct chart_bar bars[ARRAY_SIZE(modes)];
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		struct json_object *offline = field_object(of_mode(run, &modes[i]), "offline");
		double pct;

		if (!field_number(offline, "goodput_pct", &pct))
			continue;
		bars[n] = (struct chart_bar){ .name = modes[i].name,
					      .style = modes[i].style,
					      .value = pct };
		snprintf(bars[n++].text, sizeof(bars[0].text), "%.1f %%", pct);
	}
	html_figure(p, "Offline goodput",
		    "Offline work that gets done, as a part of what gets done without preemption.");
	if (n)
		chart_bars(p, "Offline goodput", bars, n, 100);
	html_ground(p, GROUND_MODELLED, ground_text);
	put_work_table(p, run);
	html_figure_end(p);
}

/* ---- preemptions and slots ---- */

static void put_acts(struct page *p, struct json_object *run)
{
	static const char *const columns[] = { "",	  "count",   "min, µs", "mean, µs",
					       "p50, µs", "p99, µs", "max, µs" };
	static const char *const keys[] = { "min", "mean", "p50", "p99", "max" };
	static const char *const acts[][2] = { { "preemptions", "preemptions" },
					       { "inversions", "inversions" } };
	static struct chart_curve curves[ARRAY_SIZE(acts)];
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(acts); i++) {
		struct json_object *act = field_object(run, acts[i][0]);

		n += chart_curve_take(&curves[n], acts[i][1], i ? STYLE_NONE : STYLE_OURS, NULL,
				      field_object(act, "latency_us"), "");
	}
	if (!n)
		return;
	html_figure(
		p, "Preemptions and inversions",
		"How long it takes from the decision until the offline job is off the GPU, and how "
		"long urgent work was slowed by lesser work. The recording has the marked points "
		"only; between them nothing is known.");
	chart_cdf(p, "Latency of preemptions and length of inversions", curves, n);
	html_ground(p, GROUND_MODELLED, ground_text);
	html_table(p, "Preemptions and inversions", columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < ARRAY_SIZE(acts); i++) {
		struct json_object *act = field_object(run, acts[i][0]);

		html_row(p, acts[i][0], acts[i][1]);
		html_cell_number(p, field(act, "count"));
		html_cells(p, field_object(act, "latency_us"), keys, ARRAY_SIZE(keys));
		html_row_end(p);
	}
	html_table_end(p);
	html_figure_end(p);
}

static void put_slots(struct page *p, struct json_object *run)
{
	static const char *const columns[] = { "", "used, %",
					       "longest wait of an online queue, µs" };
	struct json_object *slots = field_object(run, "slots");
	struct chart_bar bar = { .name = "with a queue that has work", .style = STYLE_OURS };

	if (!field_number(slots, "used_pct", &bar.value))
		return;
	snprintf(bar.text, sizeof(bar.text), "%.2f %%", bar.value);
	html_figure(
		p, "HQD occupancy",
		"Hardware queue slots with a queue that had work, of all there are, over the whole "
		"run. A recording with --trace has them over time.");
	chart_bars(p, "HQD occupancy", &bar, 1, 100);
	html_ground(p, GROUND_MODELLED, ground_text);
	html_table(p, "HQD occupancy", columns, ARRAY_SIZE(columns));
	html_row(p, "slots", "all slots");
	html_cell_number(p, field(slots, "used_pct"));
	html_cell_number(p, field(slots, "online_wait_max_us"));
	html_row_end(p);
	html_table_end(p);
	html_figure_end(p);
}

/* ---- jobs and sweeps ---- */

static void put_jobs(struct page *p, struct json_object *run)
{
	static const char *const columns[] = { "job",  "class",	  "processes", "submitted",
					       "done", "backlog", "preempted", "longest wait, µs" };
	static const char *const keys[] = { "processes", "submitted", "done",
					    "backlog",	 "preempted", "longest_wait_us" };
	struct json_object *jobs = field_array(run, "jobs");
	size_t n = jobs ? json_object_array_length(jobs) : 0;

	if (!n)
		return;
	html_table(p, "Jobs, under gpreempt", columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < MIN(n, (size_t)MAX_JOBS); i++) {
		struct json_object *job = json_object_array_get_idx(jobs, i);

		html_row(p, field_text(job, "name"), field_text(job, "name"));
		html_cell(p, field_text(job, "class"));
		html_cells(p, job, keys, ARRAY_SIZE(keys));
		html_row_end(p);
	}
	html_table_end(p);
	html_more(p, MAX_JOBS, n, "jobs");
}

static void put_sweep_table(struct page *p, struct json_object *runs, size_t n, const char *key)
{
	static const char *const keys[] = { "mean_us", "p99_us", "over_alone_pct" };
	const char *columns[] = {
		key, "mean, µs", "p99, µs", "over alone, %", "offline goodput, %", "preemptions"
	};

	html_table(p, "For each value", columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < n; i++) {
		struct json_object *run = json_object_array_get_idx(runs, i);

		html_row(p, field_text(run, "value"), field_text(run, "value"));
		html_cells(p, field_object(run, "online"), keys, ARRAY_SIZE(keys));
		html_cell_number(p, field(field_object(run, "offline"), "goodput_pct"));
		html_cell_number(p, field(field_object(run, "preemptions"), "count"));
		html_row_end(p);
	}
	html_table_end(p);
}

static void put_sweep(struct page *p, struct json_object *root)
{
	struct json_object *runs = field_array(root, "runs");
	size_t n = MIN(runs ? json_object_array_length(runs) : 0, (size_t)MAX_RUNS);
	struct chart_bar bars[MAX_RUNS];
	char text[160];

	if (!n)
		return;
	for (size_t i = 0; i < n; i++) {
		struct json_object *run = json_object_array_get_idx(runs, i);
		struct json_object *online = field_object(run, "online");
		char buf[UNIT_TEXT_SIZE];

		bars[i] = (struct chart_bar){ .name = field_text(run, "value") };
		field_number(online, "mean_us", &bars[i].value);
		snprintf(bars[i].text, sizeof(bars[i].text), "%s",
			 duration_text(online, "mean_us", buf));
	}
	snprintf(text, sizeof(text),
		 "Mean latency of online requests under gpreempt, for each value "
		 "of %.60s.",
		 field_text(json_object_array_get_idx(runs, 0), "key"));
	html_figure(p, "The sweep", text);
	chart_bars(p, "Mean latency by value", bars, n, 0);
	html_ground(p, GROUND_MODELLED, ground_text);
	put_sweep_table(p, runs, n, field_text(json_object_array_get_idx(runs, 0), "key"));
	html_figure_end(p);
}

void report_sim(struct page *p, size_t nth, struct json_object *root)
{
	struct json_object *settings = field_object(root, "settings");
	char title[240], subtitle[640];
	double seconds;
	uint64_t gpus, seed;
	int n;

	snprintf(title, sizeof(title), "%.200s",
		 field_text(root, "title")[0] ? field_text(root, "title") :
						field_text(root, "scenario"));
	n = snprintf(subtitle, sizeof(subtitle), "Simulated: scenario %.60s, policy %.40s",
		     field_text(root, "scenario"), field_text(root, "policy"));
	if (field_count(settings, "gpus", &gpus))
		n += snprintf(subtitle + n, sizeof(subtitle) - (size_t)n, ", %llu × %.40s",
			      (unsigned long long)gpus, field_text(settings, "chip"));
	if (field_number(settings, "duration_s", &seconds))
		n += snprintf(subtitle + n, sizeof(subtitle) - (size_t)n, ", %g s", seconds);
	if (field_count(root, "seed", &seed))
		n += snprintf(subtitle + n, sizeof(subtitle) - (size_t)n, ", seed %llu",
			      (unsigned long long)seed);
	if (field_text(settings, "assumes")[0])
		snprintf(subtitle + n, sizeof(subtitle) - (size_t)n, ". Assumed: %.300s",
			 field_text(settings, "assumes"));
	html_section(p, nth, title, subtitle, GROUND_MODELLED);
	put_tiles(p, root);
	put_latency(p, root);
	put_work(p, root);
	put_acts(p, root);
	put_slots(p, root);
	put_jobs(p, root);
	put_sweep(p, root);
	html_section_end(p);
}
