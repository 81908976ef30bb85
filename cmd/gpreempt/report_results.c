/* SPDX-License-Identifier: MIT */
/* What bench/h200 measured on a GPU: an online job beside others, in several modes. */
#include <string.h>

#include "cmd/gpreempt/report.h"

#define MAX_MODES 64
#define MAX_CURVES STYLES

/* Modes with the same jobs; the first is the one that names the group. */
struct group {
	char name[48];
	struct json_object *modes[MAX_CURVES];
	size_t n;
};

static const char ground_words[] =
	"Measured, on the GPU named above. Only the marked points were recorded; between them "
	"nothing is known.";

/* "fp32-4" of "fp32-4-hint-early": the rest says how. */
static void group_name(const char *key, char *ret, size_t size)
{
	const char *dash = strchr(key, '-');

	dash = dash ? strchr(dash + 1, '-') : NULL;
	snprintf(ret, size, "%.*s", dash ? (int)MIN(dash - key, 40) : 40, key);
}

static size_t make_groups(struct json_object *modes, struct group *groups)
{
	size_t n = 0, all = MIN(json_object_array_length(modes), (size_t)MAX_MODES);

	for (size_t i = 0; i < all; i++) {
		struct json_object *mode = json_object_array_get_idx(modes, i);
		char name[sizeof(groups->name)];
		size_t g = 0;

		group_name(field_text(mode, "key"), name, sizeof(name));
		while (g < n && strcmp(groups[g].name, name) != 0)
			g++;
		if (g == n) {
			groups[n] = (struct group){ .n = 0 };
			snprintf(groups[n++].name, sizeof(name), "%s", name);
		}
		if (groups[g].n < MAX_CURVES - 1)
			groups[g].modes[groups[g].n++] = mode;
	}
	return n;
}

/* How it was done, after the group's name. */
static const char *how(const struct group *g, const char *key)
{
	const char *rest = key + MIN(strlen(g->name), strlen(key));

	if (!rest[0])
		return "gpreempt";
	return strcmp(rest, "-default") == 0 ? "the driver alone" : rest + 1;
}

static enum chart_style style_of(const struct group *g, size_t i)
{
	static const enum chart_style others[] = { STYLE_SEQUENTIAL, STYLE_SEVENTH, STYLE_STREAM,
						   STYLE_EIGHTH, STYLE_SIXTH };
	const char *name = how(g, field_text(g->modes[i], "key"));

	if (strcmp(name, "gpreempt") == 0)
		return STYLE_OURS;
	return strcmp(name, "the driver alone") == 0 ? STYLE_NONE : others[i % ARRAY_SIZE(others)];
}

static void put_curves(struct page *p, const struct group *g, struct json_object *alone)
{
	static struct chart_curve curves[MAX_CURVES];
	size_t n = 0;

	for (size_t i = 0; i < g->n; i++) {
		n += chart_curve_take(&curves[n], how(g, field_text(g->modes[i], "key")),
				      style_of(g, i), NULL, field_object(g->modes[i], "request_us"),
				      "");
	}
	n += n && chart_curve_take(&curves[n], "online alone", STYLE_ALONE, NULL, alone, "");
	chart_cdf(p, "Latency of online requests", curves, n);
}

static void put_quantiles(struct page *p, struct json_object *figures)
{
	static const char *const keys[] = { "n", "min", "mean", "p50", "p99", "max" };

	html_cells(p, figures, keys, ARRAY_SIZE(keys));
}

static void put_group(struct page *p, const struct group *g, struct json_object *all_alone)
{
	static const char *const columns[] = { "",	   "requests",		"min, µs",
					       "mean, µs", "p50, µs",		"p99, µs",
					       "max, µs",  "offline goodput, %" };
	struct json_object *alone = field_object(all_alone, field_text(g->modes[0], "online"));
	struct chart_bar bars[MAX_CURVES];
	char title[96];

	snprintf(title, sizeof(title), "Latency and goodput: %s", g->name);
	html_figure(p, title,
		    "The part of online requests that took no longer; then the work of the "
		    "best-effort jobs, as a part of what one of them gets alone.");
	put_curves(p, g, alone);
	for (size_t i = 0; i < g->n; i++) {
		bars[i] = (struct chart_bar){ .name = how(g, field_text(g->modes[i], "key")),
					      .style = style_of(g, i),
					      .text = "–" };
		if (field_number(g->modes[i], "best_effort_pct", &bars[i].value))
			snprintf(bars[i].text, sizeof(bars[i].text), "%.1f %%", bars[i].value);
	}
	chart_bars(p, "Offline goodput", bars, g->n, 100);
	html_ground(p, GROUND_MEASURED, ground_words);
	html_table(p, title, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < g->n; i++) {
		html_row(p, field_text(g->modes[i], "key"), bars[i].name);
		put_quantiles(p, field_object(g->modes[i], "request_us"));
		html_cell_number(p, field(g->modes[i], "best_effort_pct"));
		html_row_end(p);
	}
	if (alone) {
		html_row(p, "alone", "online alone");
		put_quantiles(p, alone);
		html_cell(p, "");
		html_row_end(p);
	}
	html_table_end(p);
	html_figure_end(p);
}

void report_hardware(struct page *p, size_t nth, struct json_object *root)
{
	static struct group groups[MAX_MODES];
	size_t n = make_groups(field_array(root, "modes"), groups);
	const char *gpu = field_text(field_object(root, "machine"), "gpu");
	char subtitle[240];

	snprintf(subtitle, sizeof(subtitle), "%.150s%s%.40s", gpu, gpu[0] ? ", " : "",
		 field_text(root, "date"));
	html_section(p, nth, "On hardware", subtitle, GROUND_MEASURED);
	for (size_t i = 0; i < n; i++)
		put_group(p, &groups[i], field_object(root, "alone"));
	html_section_end(p);
}
