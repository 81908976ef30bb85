/* SPDX-License-Identifier: MIT */
/*
 * Inside `gpreempt report`: recordings in, one page out.
 *
 *   report.c          the command: which recordings, where the page goes
 *   report_page.c     all of them on one page
 *   report_input.c    files into recordings; whatever they hold, nothing else gets further
 *   report_trace.c    a simulator's trace and report_daemon.c a daemon's events and statuses,
 *                     each reduced to what is drawn while it is read
 *   report_sim.c, report_bench.c, report_results.c
 *                     the parts of the page about the other kinds
 *   report_html.c     the page: text, tables, the frame of a picture
 *   report_chart.c    pictures of figures; report_lanes.c: pictures over time
 *   report_json.c     fields of recordings that may be anything
 *
 * Recordings are anybody's: all text goes through html_text(), all numbers are finite, and what is
 * kept and drawn is bounded. The same recordings make the same bytes.
 */
#ifndef GPREEMPT_CMD_REPORT_H
#define GPREEMPT_CMD_REPORT_H

#include "cmd/gpreempt/cli.h"

#define REPORT_MAX_FILES 64
#define REPORT_FILE_MAX (256u << 20) /* bytes */
#define REPORT_VALUE_MAX (8u << 20) /* of one JSON value; a trace is read event by event */
#define REPORT_DEPTH_MAX 24

/* Where figures come from. */
enum ground { GROUND_UNKNOWN, GROUND_MODELLED, GROUND_MEASURED };

/* ---- recordings ---- */

enum recording_kind {
	RECORDING_SIM,
	RECORDING_TRACE,
	RECORDING_BENCH,
	RECORDING_COSTS, /* of make bench */
	RECORDING_HARDWARE, /* of bench/h200 */
	RECORDING_DAEMON,
};

struct recording {
	const char *file;
	enum recording_kind kind;
	struct json_object *root; /* not of a trace or a daemon */
	struct trace *trace;
	struct daemon_record *daemon;
};

struct recordings {
	struct recording *of;
	size_t n;
};

/* Adds all that a file holds. An exit status; what is wrong is said. */
int recordings_read(struct cli *cli, struct recordings *r, const char *file);
/* Likewise, of text that ends with a 0 after @len bytes. */
int recordings_parse(struct cli *cli, struct recordings *r, const char *file, char *text,
		     size_t len);
void recordings_done(struct recordings *r);
const char *recording_word(const struct recording *r);
enum ground recording_ground(const struct recording *r);

/* ---- fields; all are NULL or false where there is none of that kind ---- */

struct json_object *field(struct json_object *o, const char *key);
struct json_object *field_object(struct json_object *o, const char *key);
struct json_object *field_array(struct json_object *o, const char *key);
const char *field_text(struct json_object *o, const char *key); /* "": none */
bool field_number(struct json_object *o, const char *key, double *ret); /* finite */
bool field_count(struct json_object *o, const char *key, uint64_t *ret); /* whole, not below 0 */
bool field_bool(struct json_object *o, const char *key, bool *ret);
bool number_of(struct json_object *value, double *ret);
enum ground field_ground(struct json_object *o); /* of "modelled" */

/* ---- html ---- */

struct page {
	FILE *out;
	unsigned int ids; /* given out */
};

void html_begin(struct page *p, const struct recordings *r);
void html_end(struct page *p);
void html_raw(struct page *p, const char *fmt, ...) _printf_(2, 3); /* ours */
void html_text(struct page *p, const char *text); /* anybody's */
/* Ours, with anybody's texts in the place of each %s; nothing else in it is a format. */
void html_put(struct page *p, const char *markup, ...) _printf_(2, 3);
const char *html_duration(uint64_t ns, char buf[UNIT_TEXT_SIZE]); /* "1.5 µs" */
const char *ground_word(enum ground g);

/* Part @nth of the page, from 0. */
void html_section(struct page *p, size_t nth, const char *title, const char *subtitle,
		  enum ground g);
void html_section_end(struct page *p);

/* A picture: what it shows, then the picture, then figure_ground(), then its numbers. */
void html_figure(struct page *p, const char *title, const char *text);
/* Begins the picture itself; the caller ends it with </svg></div>. */
void html_svg(struct page *p, const char *title, const char *desc, unsigned int height);
void html_ground(struct page *p, enum ground g, const char *text);
void html_figure_end(struct page *p);

void html_tiles(struct page *p);
void html_tile(struct page *p, const char *what, const char *figure, const char *text);
void html_tiles_end(struct page *p);

/* The first column names the row. */
void html_table(struct page *p, const char *caption, const char *const *columns, size_t n);
void html_row(struct page *p, const char *key, const char *name);
void html_cell(struct page *p, const char *text);
void html_cell_number(struct page *p, struct json_object *value); /* as it was recorded */
/* A cell for each key of @o. */
void html_cells(struct page *p, struct json_object *o, const char *const *keys, size_t n);
void html_cell_format(struct page *p, const char *fmt, ...) _printf_(2, 3); /* ours */
void html_row_end(struct page *p);
void html_table_end(struct page *p);
/* Says so, where not all of them were shown. */
void html_more(struct page *p, size_t shown, size_t all, const char *of);

/* ---- pictures of figures ---- */

/* Colour and dashes. */
enum chart_style {
	STYLE_OURS,
	STYLE_ALONE,
	STYLE_NONE,
	STYLE_STREAM,
	STYLE_SEQUENTIAL,
	STYLE_SIXTH,
	STYLE_SEVENTH,
	STYLE_EIGHTH,
	STYLES,
};

#define CHART_MAX_POINTS 512

struct chart_curve {
	const char *name;
	enum chart_style style;
	bool sparse; /* a few quantiles only: nothing is known between them */
	size_t n;
	double us[CHART_MAX_POINTS], pct[CHART_MAX_POINTS]; /* neither decreases */
};

/* Latencies, logarithmic, against the part that took no longer. */
void chart_cdf(struct page *p, const char *title, const struct chart_curve *curves, size_t n);
/*
 * From @cdf, {"pct":[],"us":[]}; where it is none, from "min", "p50" and the like of @quantiles,
 * with that ending. False: neither has any.
 */
bool chart_curve_take(struct chart_curve *c, const char *name, enum chart_style style,
		      struct json_object *cdf, struct json_object *quantiles, const char *ending);

struct chart_bar {
	const char *name;
	enum chart_style style;
	double value;
	char text[32]; /* shown beside it */
};

/* @mark: a line there, 0: none. */
void chart_bars(struct page *p, const char *title, const struct chart_bar *bars, size_t n,
		double mark);

/* ---- pictures over time ---- */

struct lane_span {
	uint64_t from_ns, to_ns;
	uint8_t kind; /* enum lane_kind */
	const char *because; /* or NULL */
};

enum lane_kind { LANE_THERE, LANE_ONLINE, LANE_OFFLINE, LANE_HELD };

struct lane {
	char name[80];
	bool online;
	struct lane_span *spans;
	size_t n, room;
};

int lane_add(struct lane *l, const struct lane_span *span); /* -ENOMEM */
void lane_done(struct lane *l);

struct lane_window {
	uint64_t from_ns, to_ns;
	uint64_t zero_ns; /* what the axis counts from */
};

void chart_lanes(struct page *p, const char *title, struct lane *const *lanes, size_t n,
		 const struct lane_window *w);

/* Slots of a GPU, from @at_ns on. */
struct slot_sample {
	uint64_t at_ns;
	uint32_t online, offline, idle, free;
};

struct slot_samples {
	struct slot_sample *of;
	size_t n, room;
};

int slots_add(struct slot_samples *s, const struct slot_sample *sample); /* -ENOMEM */
bool slots_taken(const struct slot_samples *s); /* any, ever */
void chart_slots(struct page *p, const char *title, const struct slot_samples *s,
		 const struct lane_window *w);
/* A row: name, means over time of the four, all there are, the most that were taken. */
void slots_row(struct page *p, const char *name, const struct slot_samples *s, uint64_t end_ns);
extern const char *const slots_columns[];
#define SLOTS_COLUMNS 7

/* ---- the page ---- */

/* *ret_text is the caller's to free, also on failure. -ENOMEM. */
int report_page(const struct recordings *r, char **ret_text, size_t *ret_len);

/* Its parts. */
void report_sim(struct page *p, size_t nth, struct json_object *root);
void report_bench(struct page *p, size_t nth, struct json_object *root);
void report_costs(struct page *p, size_t nth, struct json_object *root);
void report_hardware(struct page *p, size_t nth, struct json_object *root);

/* @head: what comes beside the events. */
struct trace *trace_new(struct json_object *head);
int trace_add(struct trace *t, struct json_object *event); /* -ENOMEM, -E2BIG; -EINVAL: not one */
int trace_complete(struct trace *t); /* all events are there; -ENOMEM */
void trace_free(struct trace *t);
enum ground trace_ground(const struct trace *t);
void report_trace(struct page *p, size_t nth, const struct trace *t);

struct daemon_record *daemon_record_new(void);
bool daemon_record_is(struct json_object *value);
int daemon_record_add(struct daemon_record *d, struct json_object *value); /* as trace_add() */
int daemon_record_complete(struct daemon_record *d); /* -ENOMEM */
void daemon_record_free(struct daemon_record *d);
enum ground daemon_record_ground(const struct daemon_record *d);
void report_daemon(struct page *p, size_t nth, const struct daemon_record *d);

#endif
