/* SPDX-License-Identifier: MIT */
/* Pictures over time: who was on a GPU and who was held off it, and what its slots held. */
#include <errno.h>
#include <math.h>

#include "cmd/gpreempt/report.h"
#include "util/array.h"

#define LANE_HEIGHT 36
#define SLOTS_HEIGHT 130
#define MAX_TICKS 8 /* more than tick_ns() lets there be */
#define MAX_PIECES 1500 /* of one lane or picture; finer is not to be seen */
#define NEAR (1.0 / 3000) /* of the width: what is nearer than that is drawn as one */

static const char *const kind_classes[] = {
	[LANE_THERE] = "there",
	[LANE_ONLINE] = "online",
	[LANE_OFFLINE] = "offline",
	[LANE_HELD] = "held",
};

int lane_add(struct lane *l, const struct lane_span *span)
{
	if (array_reserve(&l->spans, l->n + 1, &l->room, sizeof(*span)) < 0)
		return -ENOMEM;
	l->spans[l->n++] = *span;
	return 0;
}

void lane_done(struct lane *l)
{
	free(l->spans);
	*l = (struct lane){ 0 };
}

int slots_add(struct slot_samples *s, const struct slot_sample *sample)
{
	if (s->n && s->of[s->n - 1].at_ns > sample->at_ns)
		return 0; /* time does not run backwards; a clock that was set does */
	if (array_reserve(&s->of, s->n + 1, &s->room, sizeof(*sample)) < 0)
		return -ENOMEM;
	s->of[s->n++] = *sample;
	return 0;
}

/* ---- the axis ---- */

static double place(const struct lane_window *w, uint64_t at_ns)
{
	if (at_ns <= w->from_ns || w->to_ns <= w->from_ns)
		return 0;
	if (at_ns >= w->to_ns)
		return 1;
	return (double)(at_ns - w->from_ns) / (double)(w->to_ns - w->from_ns);
}

/* Of 1, 2 and 5 times a power of ten, the one that makes at most five ticks. */
static double tick_ns(const struct lane_window *w)
{
	double span = (double)(w->to_ns - w->from_ns), step = 1;

	while (span / step > 5) {
		double lead = step / pow(10, floor(log10(step) + 1e-9));

		step *= lead > 1.5 && lead < 3 ? 2.5 : 2;
	}
	return step;
}

static void put_time_axis(struct page *p, const struct lane_window *w)
{
	double step = tick_ns(w), from = (double)(w->from_ns - w->zero_ns);
	double to = (double)(w->to_ns - w->zero_ns), first = ceil(from / step) * step;

	/* Counted: so late that a step is too small to be added the sum would stand still. */
	for (int i = 0; i < MAX_TICKS && first + i * step <= to; i++) {
		double at = first + i * step, x = 100 * (at - from) / fmax(to - from, 1);
		const char *anchor = x < 4 ? "start" : x > 92 ? "end" : "middle";

		html_raw(p,
			 "<line class=\"grid\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"0\" y2=\"100%%\"/>"
			 "<text x=\"%.2f%%\" y=\"100%%\" dy=\"16\" text-anchor=\"%s\">",
			 x, x, x, anchor);
		if (step >= 1e8)
			html_raw(p, "%.10g s</text>\n", at / 1e9);
		else if (step >= 1e5)
			html_raw(p, "%.10g ms</text>\n", at / 1e6);
		else
			html_raw(p, "%.10g µs</text>\n", at / 1e3);
	}
}

/* ---- who ---- */

struct piece {
	double from, to;
	uint8_t kind;
	size_t of; /* spans */
	const struct lane_span *last;
};

static void put_piece(struct page *p, const struct piece *piece, unsigned int y)
{
	bool held = piece->kind == LANE_HELD;
	char buf[UNIT_TEXT_SIZE];

	html_raw(p, "<rect class=\"%s\" x=\"%.3f%%\" y=\"%u\" width=\"%.3f%%\" height=\"13\"",
		 kind_classes[piece->kind], 100 * piece->from, y,
		 100 * fmax(piece->to - piece->from, 1.0 / 2000));
	if (!held) {
		html_raw(p, "/>\n");
		return;
	}
	html_raw(p, "><title>");
	if (piece->of > 1)
		html_raw(p, "%zu times", piece->of);
	else
		html_raw(p, "held for %s",
			 html_duration(piece->last->to_ns - piece->last->from_ns, buf));
	if (piece->of == 1 && piece->last->because)
		html_put(p, ", because of %s", piece->last->because);
	html_raw(p, "</title></rect>\n");
}

static bool outside(const struct lane_span *s, const struct lane_window *w)
{
	return s->to_ns < w->from_ns || s->from_ns > w->to_ns;
}

static void put_lane(struct page *p, const struct lane *l, const struct lane_window *w,
		     unsigned int y)
{
	struct piece piece = { .of = 0 };
	size_t pieces = 0;

	html_raw(p, "<text class=\"name\" x=\"0\" y=\"%u\">", y + 12);
	html_text(p, l->name);
	html_raw(p,
		 "</text><rect class=\"rail\" x=\"0\" y=\"%u\" width=\"100%%\" height=\"13\"/>\n",
		 y + 17);
	for (size_t i = 0; i < l->n; i++) {
		const struct lane_span *s = &l->spans[i];
		double from = place(w, s->from_ns), to = place(w, s->to_ns);

		if (outside(s, w))
			continue;
		if (piece.of && piece.kind == s->kind && from - piece.to < NEAR) {
			piece.to = fmax(piece.to, to);
			piece.of++;
			piece.last = s;
			continue;
		}
		if (piece.of)
			put_piece(p, &piece, y + 17);
		if (++pieces > MAX_PIECES)
			return;
		piece = (struct piece){ from, to, s->kind, 1, s };
	}
	if (piece.of)
		put_piece(p, &piece, y + 17);
}

static void put_key(struct page *p, const char *const names[][2], size_t n)
{
	html_raw(p, "<ul class=\"key\">");
	for (size_t i = 0; i < n; i++)
		html_raw(p,
			 "<li><svg height=\"12\" aria-hidden=\"true\"><rect class=\"%s\" x=\"1\" "
			 "y=\"1\" width=\"25\" height=\"10\"/></svg>%s</li>",
			 names[i][0], names[i][1]);
	html_raw(p, "</ul>\n");
}

void chart_lanes(struct page *p, const char *title, struct lane *const *lanes, size_t n,
		 const struct lane_window *w)
{
	static const char *const key[][2] = {
		{ "online", "online, on the GPU" },
		{ "offline", "offline, on the GPU" },
		{ "held", "held off the GPU" },
		{ "there", "there, nothing is told of its work" },
	};
	bool there = false;

	for (size_t i = 0; i < n; i++)
		there |= lanes[i]->n && lanes[i]->spans[0].kind == LANE_THERE;
	put_key(p, there ? key + 2 : key, there ? 2 : 3);
	html_raw(p, "<div class=\"lanes\">");
	html_svg(p, title,
		 "Across: time. A row for each job; how often and how long it was held "
		 "is in the table.",
		 (unsigned int)n * LANE_HEIGHT);
	put_time_axis(p, w);
	for (size_t i = 0; i < n; i++)
		put_lane(p, lanes[i], w, (unsigned int)i * LANE_HEIGHT);
	html_raw(p, "</svg></div>\n");
}

/* ---- slots ---- */

static uint32_t all_slots(const struct slot_sample *s)
{
	return s->online + s->offline + s->idle + s->free;
}

static uint32_t taken(const struct slot_sample *s)
{
	return s->online + s->offline + s->idle;
}

bool slots_taken(const struct slot_samples *s)
{
	for (size_t i = 0; i < s->n; i++) {
		if (taken(&s->of[i]))
			return true;
	}
	return false;
}

/* As an area: everything up to the given part of what is taken. */
static uint32_t level(const struct slot_sample *s, int layer)
{
	return s->online + (layer > 0 ? s->offline : 0) + (layer > 1 ? s->idle : 0);
}

static uint32_t most_slots(const struct slot_samples *s)
{
	uint32_t most = 1;

	for (size_t i = 0; i < s->n; i++)
		most = MAX(most, all_slots(&s->of[i]));
	return most;
}

static void put_area(struct page *p, const struct slot_samples *s, const struct lane_window *w,
		     int layer, uint32_t full)
{
	static const char *const classes[] = { "online", "offline", "idle" };
	uint32_t last = 0;
	size_t pieces = 0;

	html_raw(p, "<path class=\"%s\" d=\"M0 1000", classes[layer]);
	for (size_t i = 0; i < s->n && pieces < 2 * MAX_PIECES; i++) {
		uint32_t now = level(&s->of[i], layer);
		bool ended = i + 1 < s->n && s->of[i + 1].at_ns <= w->from_ns;

		if (ended || s->of[i].at_ns > w->to_ns || (now == last && pieces))
			continue;
		html_raw(p, "H%.2fV%.2f", 1000 * place(w, s->of[i].at_ns),
			 1000 - 1000.0 * now / full);
		last = now;
		pieces++;
	}
	html_raw(p, "H1000V1000Z\"/>\n");
}

void chart_slots(struct page *p, const char *title, const struct slot_samples *s,
		 const struct lane_window *w)
{
	static const char *const key[][2] = {
		{ "online", "online" },
		{ "offline", "offline" },
		{ "idle", "no work" },
		{ "there", "free" },
	};
	uint32_t full = most_slots(s);

	put_key(p, key, 4);
	html_raw(p, "<div class=\"lanes\">");
	html_svg(p, title, "Across: time. Upwards: slots of the GPU, by whose queue is in them.",
		 SLOTS_HEIGHT);
	html_raw(p, "<rect class=\"rail\" width=\"100%%\" height=\"100%%\"/>\n");
	html_raw(p,
		 "<svg viewBox=\"0 0 1000 1000\" preserveAspectRatio=\"none\" height=\"100%%\">\n");
	for (int layer = 2; layer >= 0; layer--)
		put_area(p, s, w, layer, full);
	html_raw(p, "</svg>\n");
	put_time_axis(p, w);
	html_raw(p, "<text class=\"name\" x=\"5\" y=\"15\">%u slots</text>\n</svg></div>\n", full);
}

const char *const slots_columns[] = { "GPU",	       "slots",		"online, mean",
				      "offline, mean", "no work, mean", "free, mean",
				      "most taken" };

void slots_row(struct page *p, const char *name, const struct slot_samples *s, uint64_t end_ns)
{
	double sums[4] = { 0 }, all_ns = 0;
	uint32_t most = 0;

	for (size_t i = 0; i < s->n; i++) {
		const struct slot_sample *now = &s->of[i];
		uint64_t until = i + 1 < s->n ? s->of[i + 1].at_ns : MAX(end_ns, now->at_ns);
		double ns = (double)(until - now->at_ns);

		sums[0] += ns * now->online;
		sums[1] += ns * now->offline;
		sums[2] += ns * now->idle;
		sums[3] += ns * now->free;
		all_ns += ns;
		most = MAX(most, taken(now));
	}
	html_row(p, name, name);
	html_cell_format(p, "%u", most_slots(s));
	for (size_t i = 0; i < 4; i++)
		html_cell_format(p, "%.3f", all_ns > 0 ? sums[i] / all_ns : 0);
	html_cell_format(p, "%u", most);
	html_row_end(p);
}
