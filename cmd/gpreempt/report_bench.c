/* SPDX-License-Identifier: MIT */
/* What `gpreempt --json bench` answered, and the costs of our own code that `make bench` leaves. */

#include "cmd/gpreempt/report.h"

#define MAX_COSTS 100

static const struct act {
	const char *key, *curve, *name;
	enum chart_style style;
} acts[] = {
	{ "suspend_us", "suspend", "suspend", STYLE_OURS },
	{ "resume_us", "resume", "resume", STYLE_ALONE },
	{ "total_us", "total", "both", STYLE_NONE },
	{ "snapshot_us", NULL, "snapshot", STYLE_STREAM },
	{ "save_us", NULL, "save, of the suspend", STYLE_SEQUENTIAL },
};
#define DRAWN 3

static const char *ground_text(enum ground g)
{
	if (g == GROUND_MODELLED)
		return "Times of a software device: modelled, and nobody's hardware.";
	if (g == GROUND_MEASURED)
		return "Measured by the command, on the machine and GPU where it ran.";
	return "The recording does not say where its times come from.";
}

static void put_table(struct page *p, struct json_object *root)
{
	static const char *const columns[] = { "",	  "min, µs", "average, µs",
					       "p50, µs", "p99, µs", "max, µs" };
	static const char *const keys[] = { "min", "avg", "p50", "p99", "max" };

	html_table(p, "Suspend and resume", columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < ARRAY_SIZE(acts); i++) {
		struct json_object *figures = field_object(root, acts[i].key);

		if (!figures)
			continue;
		html_row(p, acts[i].key, acts[i].name);
		html_cells(p, figures, keys, ARRAY_SIZE(keys));
		html_row_end(p);
	}
	html_table_end(p);
}

static void put_once(struct page *p, struct json_object *root)
{
	static const char *const columns[] = {
		"rounds", "ok", "failed", "queues", "open, µs", "attach, µs", "saved, bytes a round"
	};
	static const char *const keys[] = { "ok",      "failed",    "queues",
					    "open_us", "attach_us", "saved_bytes" };
	struct json_object *rounds = field(root, "rounds");

	html_table(p, "The run", columns, ARRAY_SIZE(columns));
	html_row(p, "run", rounds ? json_object_get_string(rounds) : "–");
	html_cells(p, root, keys, ARRAY_SIZE(keys));
	html_row_end(p);
	html_table_end(p);
}

void report_bench(struct page *p, size_t nth, struct json_object *root)
{
	static struct chart_curve curves[DRAWN];
	enum ground g = field_ground(root);
	size_t n = 0;
	bool sparse = false;

	html_section(p, nth, "Suspend and resume",
		     "gpreempt bench: rounds of suspend, work, resume", g);
	for (size_t i = 0; i < DRAWN; i++) {
		struct json_object *cdf = field_object(field_object(root, "cdf"), acts[i].curve);

		if (chart_curve_take(&curves[n], acts[i].name, acts[i].style, cdf,
				     field_object(root, acts[i].key), ""))
			sparse |= curves[n++].sparse;
	}
	html_figure(p, "How long it takes",
		    sparse ? "The part of rounds that took no longer. The recording has the marked "
			     "points only; between them nothing is known." :
			     "The part of rounds that took no longer.");
	chart_cdf(p, "Distribution of the time to suspend and to resume", curves, n);
	html_ground(p, g, ground_text(g));
	put_table(p, root);
	html_figure_end(p);
	put_once(p, root);
	if (field_text(root, "advice")[0])
		html_put(p, "<p>Verdict: %s.</p>\n", field_text(root, "advice"));
	html_section_end(p);
}

/* ---- our own costs ---- */

static void put_costs_table(struct page *p, struct json_object *figures, size_t n)
{
	static const char *const columns[] = { "", "value", "limit", "kept", "ground" };

	html_table(p, "Costs of our own code", columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < n; i++) {
		struct json_object *f = json_object_array_get_idx(figures, i);
		bool kept;

		html_row(p, field_text(f, "name"), field_text(f, "name"));
		html_cell_number(p, field(f, "value"));
		html_cell_number(p, field(f, "limit"));
		html_cell(p, field_bool(f, "kept", &kept) ? kept ? "yes" : "NO" : "");
		html_cell(p, field_text(f, "kind"));
		html_row_end(p);
	}
	html_table_end(p);
}

void report_costs(struct page *p, size_t nth, struct json_object *root)
{
	struct json_object *figures = field_array(root, "figures");
	struct chart_bar bars[MAX_COSTS];
	size_t n = MIN(json_object_array_length(figures), (size_t)MAX_COSTS), drawn = 0;

	for (size_t i = 0; i < n; i++) {
		struct json_object *f = json_object_array_get_idx(figures, i);
		double value, limit;

		if (!field_number(f, "value", &value) || !field_number(f, "limit", &limit) ||
		    limit <= 0)
			continue;
		bars[drawn] =
			(struct chart_bar){ .name = field_text(f, "name"),
					    .style = value <= limit ? STYLE_ALONE : STYLE_NONE,
					    .value = 100 * value / limit };
		snprintf(bars[drawn++].text, sizeof(bars[0].text), "%.0f %%", 100 * value / limit);
	}
	html_section(p, nth, "Costs of our own code", "make bench: ratios within one run",
		     GROUND_UNKNOWN);
	html_figure(p, "How much of its limit each takes", "100 % is what it may cost at most.");
	if (drawn)
		chart_bars(p, "Costs as parts of their limits", bars, drawn, 100);
	html_ground(
		p, GROUND_UNKNOWN,
		"Each figure has its own ground, in the last column: measured on the machine that "
		"made the recording, counted by a software GPU, or from the software device.");
	put_costs_table(p, figures, n);
	html_figure_end(p);
	html_section_end(p);
}
