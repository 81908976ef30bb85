/* SPDX-License-Identifier: MIT */
/*
 * Pictures that fit any width without a script: places are percent, sizes of text are not. What
 * cannot be said in percent, curves, is in a box of 1000 by 1000 that is stretched to fit.
 */
#include <math.h>

#include "cmd/gpreempt/report.h"

#define CDF_HEIGHT 270
#define BAR_HEIGHT 36
#define MAX_TICKS 40
#define NARROW 0.5 /* decades */

struct log_axis {
	double low, high; /* of log10 */
};

/* ---- curves ---- */

static bool from_cdf(struct chart_curve *c, struct json_object *cdf)
{
	struct json_object *pct = field_array(cdf, "pct"), *us = field_array(cdf, "us");
	size_t n = pct ? json_object_array_length(pct) : 0;

	c->n = 0;
	if (!us || json_object_array_length(us) != n || n > CHART_MAX_POINTS)
		return false;
	for (size_t i = 0; i < n; i++) {
		double *x = &c->us[i], *y = &c->pct[i];

		if (!number_of(json_object_array_get_idx(pct, i), y) ||
		    !number_of(json_object_array_get_idx(us, i), x))
			return false;
		if (*x < 0 || *y < 0 || *y > 100 || (i && (*x < x[-1] || *y < y[-1])))
			return false;
	}
	c->n = n;
	return n > 0;
}

static bool from_quantiles(struct chart_curve *c, struct json_object *o, const char *ending)
{
	static const struct {
		const char *name;
		double pct;
	} points[] = {
		{ "min", 0 },  { "p50", 50 },	 { "p95", 95 },
		{ "p99", 99 }, { "p999", 99.9 }, { "max", 100 },
	};
	char key[32];

	c->n = 0;
	c->sparse = true;
	for (size_t i = 0; i < ARRAY_SIZE(points); i++) {
		double us;

		snprintf(key, sizeof(key), "%s%s", points[i].name, ending);
		if (!field_number(o, key, &us) || us < 0 || (c->n && us < c->us[c->n - 1]))
			continue;
		c->us[c->n] = us;
		c->pct[c->n++] = points[i].pct;
	}
	return c->n > 0;
}

bool chart_curve_take(struct chart_curve *c, const char *name, enum chart_style style,
		      struct json_object *cdf, struct json_object *quantiles, const char *ending)
{
	c->name = name;
	c->style = style;
	c->sparse = false;
	return from_cdf(c, cdf) || from_quantiles(c, quantiles, ending);
}

/* ---- a logarithmic axis ---- */

/* Nothing is 0 there: what took less than a nanosecond is drawn at one. */
static double log_of(double us)
{
	return log10(fmin(fmax(us, 1e-3), 1e15));
}

static struct log_axis make_axis(const struct chart_curve *curves, size_t n)
{
	struct log_axis a = { .low = 99, .high = -99 };

	for (size_t i = 0; i < n; i++) {
		a.low = fmin(a.low, log_of(curves[i].us[0]));
		a.high = fmax(a.high, log_of(curves[i].us[curves[i].n - 1]));
	}
	if (a.high - a.low < NARROW) { /* what differs little is not made to look different */
		double middle = (a.low + a.high) / 2;

		a.low = middle - NARROW / 2;
		a.high = middle + NARROW / 2;
	}
	a.low -= 0.04 + (a.high - a.low) * 0.02;
	a.high += 0.04 + (a.high - a.low) * 0.02;
	return a;
}

static double place(const struct log_axis *a, double us)
{
	return (log_of(us) - a->low) / (a->high - a->low);
}

/* Names at either end stand wholly on one side of their tick. */
static bool at_left(double x)
{
	return x < 0.04;
}

static bool at_right(double x)
{
	return x > 0.96;
}

/* Few enough names for a phone: what comes too near the one before stays without. */
static bool has_room(double x, double last)
{
	return last < 0 || x - last > 0.18 + (at_left(last) ? 0.08 : 0) + (at_right(x) ? 0.08 : 0);
}

static void put_tick(struct page *p, const struct log_axis *a, double us, bool named)
{
	double x = 100 * place(a, us);
	char text[UNIT_TEXT_SIZE];

	html_raw(p, "<line class=\"grid\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"0\" y2=\"100%%\"/>", x,
		 x);
	if (!named)
		return;
	if (us >= 1e6)
		snprintf(text, sizeof(text), "%g s", us / 1e6);
	else if (us >= 1e3)
		snprintf(text, sizeof(text), "%g ms", us / 1e3);
	else
		snprintf(text, sizeof(text), "%g µs", us);
	html_raw(p, "<text x=\"%.2f%%\" y=\"100%%\" dy=\"17\" text-anchor=\"%s\">%s</text>\n", x,
		 at_left(x / 100)  ? "start" :
		 at_right(x / 100) ? "end" :
				     "middle",
		 text);
}

static void put_log_axis(struct page *p, const struct log_axis *a)
{
	static const double fine[] = { 1, 1.5, 2, 3, 5, 7 }, medium[] = { 1, 2, 5 };
	double decades = a->high - a->low;
	const double *steps = decades < 0.8 ? fine : medium;
	size_t n = decades < 0.8 ? ARRAY_SIZE(fine) : decades < 2 ? ARRAY_SIZE(medium) : 1;
	double last = -1;
	int ticks = 0;

	for (int decade = (int)floor(a->low); decade <= ceil(a->high); decade++) {
		for (size_t i = 0; i < n && ticks < MAX_TICKS; i++) {
			double us = steps[i] * pow(10, decade), x = place(a, us);

			if (x < 0 || x > 1)
				continue;
			put_tick(p, a, us, has_room(x, last));
			last = has_room(x, last) ? x : last;
			ticks++;
		}
	}
	html_raw(p, "<line class=\"axis\" x1=\"0\" x2=\"100%%\" y1=\"100%%\" y2=\"100%%\"/>\n");
}

static void put_percent_axis(struct page *p)
{
	for (int pct = 0; pct <= 100; pct += 25)
		html_raw(p,
			 "<line class=\"grid\" x1=\"0\" x2=\"100%%\" y1=\"%d%%\" y2=\"%d%%\"/>"
			 "<text x=\"0\" dx=\"-7\" y=\"%d%%\" dy=\"4\" "
			 "text-anchor=\"end\">%d%%</text>\n",
			 100 - pct, 100 - pct, 100 - pct, pct);
}

/* ---- the distribution ---- */

static void put_key(struct page *p, const struct chart_curve *curves, size_t n)
{
	html_raw(p, "<ul class=\"key\">");
	for (size_t i = 0; i < n; i++) {
		html_raw(p,
			 "<li><svg height=\"10\" aria-hidden=\"true\"><line class=\"curve c%d\" "
			 "x1=\"0\" x2=\"28\" y1=\"5\" y2=\"5\"/></svg><bdi>",
			 curves[i].style);
		html_put(p, "%s</bdi></li>", curves[i].name);
	}
	html_raw(p, "</ul>\n");
}

/* Each point is a rank: the part that took no longer goes up there, and nowhere else. */
static void put_steps(struct page *p, const struct chart_curve *c, const struct log_axis *a)
{
	html_raw(p, "<path class=\"curve c%d\" d=\"M%.2f 1000", c->style,
		 1000 * place(a, c->us[0]));
	for (size_t i = 0; i < c->n; i++) {
		if (i + 1 < c->n && i && c->us[i + 1] == c->us[i])
			continue;
		html_raw(p, "H%.2fV%.2f", 1000 * place(a, c->us[i]), 1000 - 10 * c->pct[i]);
	}
	html_raw(p, "H1000\"/>\n");
}

static void put_guess(struct page *p, const struct chart_curve *c, const struct log_axis *a)
{
	html_raw(p, "<path class=\"curve c%d sparse\" d=\"", c->style);
	for (size_t i = 0; i < c->n; i++)
		html_raw(p, "%c%.2f %.2f", i ? 'L' : 'M', 1000 * place(a, c->us[i]),
			 1000 - 10 * c->pct[i]);
	html_raw(p, "\"/>\n");
}

static void put_points(struct page *p, const struct chart_curve *c, const struct log_axis *a,
		       double radius)
{
	for (size_t i = 0; i < c->n; i++)
		html_raw(p,
			 "<circle class=\"f%d\" r=\"%g\" cx=\"%.2f%%\" cy=\"%.2f%%\"><title>%g%%: "
			 "%.3f µs</title></circle>\n",
			 c->style, radius, 100 * place(a, c->us[i]), 100 - c->pct[i], c->pct[i],
			 c->us[i]);
}

void chart_cdf(struct page *p, const char *title, const struct chart_curve *curves, size_t n)
{
	struct log_axis axis;

	if (!n)
		return;
	axis = make_axis(curves, n);
	put_key(p, curves, n);
	html_raw(p, "<div class=\"plot\">");
	html_svg(p, title,
		 "Across: time, logarithmic. Upwards: the part that took no longer. The "
		 "numbers are in the table below.",
		 CDF_HEIGHT);
	put_percent_axis(p);
	put_log_axis(p, &axis);
	html_raw(p,
		 "<svg viewBox=\"0 0 1000 1000\" preserveAspectRatio=\"none\" height=\"100%%\">\n");
	for (size_t i = n; i-- > 0;) {
		if (curves[i].sparse)
			put_guess(p, &curves[i], &axis);
		else
			put_steps(p, &curves[i], &axis);
	}
	html_raw(p, "</svg>\n");
	for (size_t i = n; i-- > 0;) {
		if (curves[i].sparse)
			put_points(p, &curves[i], &axis, i ? 5 : 3.5);
	}
	html_raw(p, "</svg></div>\n");
}

/* ---- bars ---- */

void chart_bars(struct page *p, const char *title, const struct chart_bar *bars, size_t n,
		double mark)
{
	double full = mark;

	for (size_t i = 0; i < n; i++)
		full = fmax(full, bars[i].value);
	full = full > 0 ? full : 1;
	html_raw(p, "<div class=\"bars\">");
	html_svg(p, title, "A bar each, from 0; its figure stands above its end.",
		 (unsigned int)n * BAR_HEIGHT);
	for (size_t i = 0; i < n; i++) {
		unsigned int y = (unsigned int)i * BAR_HEIGHT;

		html_raw(p, "<text class=\"name\" x=\"0\" y=\"%u\"><tspan>", y + 13);
		html_text(p, bars[i].name);
		html_raw(p,
			 "</tspan></text><text class=\"name\" x=\"100%%\" y=\"%u\" "
			 "text-anchor=\"end\">",
			 y + 13);
		html_text(p, bars[i].text);
		html_raw(p,
			 "</text><rect class=\"rail\" x=\"0\" y=\"%u\" width=\"100%%\" "
			 "height=\"12\" rx=\"3\"/><rect class=\"f%d\" x=\"0\" y=\"%u\" "
			 "width=\"%.2f%%\" height=\"12\" rx=\"3\"/>\n",
			 y + 18, bars[i].style, y + 18, 100 * fmax(bars[i].value, 0) / full);
	}
	if (mark > 0 && mark < full)
		html_raw(p,
			 "<line class=\"mark\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"0\" "
			 "y2=\"100%%\"/>",
			 100 * mark / full, 100 * mark / full);
	html_raw(p, "</svg></div>\n");
}
