/* SPDX-License-Identifier: MIT */
/* A simulator's trace (sim --trace): who was on which GPU when, and the slots of each. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "cmd/gpreempt/report.h"

#define MAX_ROWS (1u << 17) /* they are numbered throughout the file */
#define MAX_GPUS 64
#define MAX_NAMES 4096
#define MAX_TIME_US 1e15
#define MAX_SLOTS 1000000
#define DRAWN_LANES 12 /* of one GPU */
#define DRAWN_GPUS 8
#define DRAWN_HOLDS 6 /* of a job */
#define TABLE_ROWS 200

struct trace_row {
	bool known; /* it has a name, and is not one of requests */
	uint32_t gpu; /* number in gpus */
	struct lane lane;
	uint64_t work_ns, held_ns, longest_ns;
	size_t works, holds;
};

struct trace_gpu {
	uint64_t pid;
	char name[40];
	struct slot_samples slots;
};

struct trace {
	char scenario[80], policy[80], chip[40], assumes[300];
	enum ground ground;
	uint64_t duration_ns, last_ns;
	struct trace_row *rows; /* by their number */
	size_t n_rows;
	struct trace_gpu gpus[MAX_GPUS];
	size_t n_gpus;
	char *names[MAX_NAMES];
	size_t n_names;
};

/* ---- reading ---- */

struct trace *trace_new(struct json_object *head)
{
	struct json_object *other = field_object(head, "otherData");
	struct trace *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	snprintf(t->scenario, sizeof(t->scenario), "%s", field_text(other, "scenario"));
	snprintf(t->policy, sizeof(t->policy), "%s", field_text(other, "policy"));
	snprintf(t->chip, sizeof(t->chip), "%s", field_text(other, "chip"));
	snprintf(t->assumes, sizeof(t->assumes), "%s", field_text(other, "assumes"));
	t->ground = field_ground(other);
	field_count(other, "duration_ns", &t->duration_ns);
	t->duration_ns = MIN(t->duration_ns, (uint64_t)MAX_TIME_US * 1000);
	return t;
}

void trace_free(struct trace *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->n_rows; i++)
		lane_done(&t->rows[i].lane);
	for (size_t i = 0; i < t->n_gpus; i++)
		free(t->gpus[i].slots.of);
	for (size_t i = 0; i < t->n_names; i++)
		free(t->names[i]);
	free(t->rows);
	free(t);
}

/* One copy of each name; NULL: there are too many, or no memory, and it is not told. */
static const char *keep_name(struct trace *t, const char *name)
{
	for (size_t i = t->n_names; i-- > 0;) {
		if (strncmp(t->names[i], name, 79) == 0)
			return t->names[i];
	}
	if (!name[0] || t->n_names == MAX_NAMES)
		return NULL;
	t->names[t->n_names] = strndup(name, 79);
	return t->names[t->n_names] ? t->names[t->n_names++] : NULL;
}

static int find_gpu(struct trace *t, uint64_t pid, uint32_t *ret)
{
	for (size_t i = 0; i < t->n_gpus; i++) {
		if (t->gpus[i].pid == pid) {
			*ret = (uint32_t)i;
			return 0;
		}
	}
	if (t->n_gpus == MAX_GPUS)
		return -E2BIG;
	*ret = (uint32_t)t->n_gpus;
	t->gpus[t->n_gpus].pid = pid;
	snprintf(t->gpus[t->n_gpus].name, sizeof(t->gpus[0].name), "process %llu",
		 (unsigned long long)pid);
	t->n_gpus++;
	return 0;
}

static int find_row(struct trace *t, uint64_t number, struct trace_row **ret)
{
	if (number >= MAX_ROWS)
		return -E2BIG;
	if (number >= t->n_rows) {
		size_t n = MAX(number + 1, t->n_rows * 2);
		struct trace_row *bigger = reallocarray(t->rows, n, sizeof(*bigger));

		if (!bigger)
			return -ENOMEM;
		memset(bigger + t->n_rows, 0, (n - t->n_rows) * sizeof(*bigger));
		t->rows = bigger;
		t->n_rows = n;
	}
	*ret = &t->rows[number];
	return 0;
}

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && strcmp(text + n - m, end) == 0;
}

static int take_name(struct trace *t, struct json_object *e, uint64_t pid, uint64_t tid)
{
	struct json_object *args = field_object(e, "args");
	const char *what = field_text(e, "name"), *name = field_text(args, "name");
	struct trace_row *row;
	uint32_t gpu;
	int r;

	if (strcmp(what, "process_name") == 0 && pid > 0) {
		r = find_gpu(t, pid, &gpu);
		if (!r)
			snprintf(t->gpus[gpu].name, sizeof(t->gpus[gpu].name), "%s", name);
		return r;
	}
	if (strcmp(what, "thread_name") != 0 || ends_with(name, " requests"))
		return 0;
	r = find_row(t, tid, &row);
	if (!r)
		r = find_gpu(t, pid, &row->gpu);
	if (r)
		return r;
	row->known = true;
	row->lane.online = strcmp(field_text(args, "class"), "online") == 0;
	snprintf(row->lane.name, sizeof(row->lane.name), "%s", name);
	return 0;
}

static bool take_time(struct json_object *e, const char *key, uint64_t *ret_ns)
{
	double us;

	if (!field_number(e, key, &us) || us < 0 || us > MAX_TIME_US)
		return false;
	*ret_ns = (uint64_t)llround(us * 1000);
	return true;
}

static int take_slice(struct trace *t, struct json_object *e, uint64_t tid)
{
	const char *category = field_text(e, "cat");
	bool held = strcmp(category, "preemption") == 0;
	struct lane_span span = { 0 };
	struct trace_row *row;
	uint64_t ns;
	int r;

	if (!held && strcmp(category, "work") != 0)
		return 0;
	r = find_row(t, tid, &row);
	if (r)
		return r;
	if (!row->known || !take_time(e, "ts", &span.from_ns) || !take_time(e, "dur", &ns))
		return -EINVAL;
	span.to_ns = span.from_ns + ns;
	span.kind = held ? LANE_HELD : row->lane.online ? LANE_ONLINE : LANE_OFFLINE;
	if (held)
		span.because = keep_name(t, field_text(field_object(e, "args"), "because"));
	*(held ? &row->held_ns : &row->work_ns) += ns;
	*(held ? &row->holds : &row->works) += 1;
	if (held)
		row->longest_ns = MAX(row->longest_ns, ns);
	t->last_ns = MAX(t->last_ns, span.to_ns);
	return lane_add(&row->lane, &span);
}

static bool take_slot_count(struct json_object *args, const char *key, uint32_t *ret)
{
	uint64_t n;

	if (!field_count(args, key, &n) || n > MAX_SLOTS)
		return false;
	*ret = (uint32_t)n;
	return true;
}

static int take_slots(struct trace *t, struct json_object *e, uint64_t pid)
{
	struct json_object *args = field_object(e, "args");
	struct slot_sample s;
	uint32_t gpu;
	int r;

	if (strcmp(field_text(e, "name"), "HQD slots") != 0)
		return 0;
	if (!take_time(e, "ts", &s.at_ns) || !take_slot_count(args, "online", &s.online) ||
	    !take_slot_count(args, "offline", &s.offline) ||
	    !take_slot_count(args, "idle", &s.idle) || !take_slot_count(args, "free", &s.free))
		return -EINVAL;
	r = find_gpu(t, pid, &gpu);
	return r ? r : slots_add(&t->gpus[gpu].slots, &s);
}

int trace_add(struct trace *t, struct json_object *e)
{
	const char *phase = field_text(e, "ph");
	uint64_t pid = 0, tid = 0;

	if (!phase[0])
		return -EINVAL;
	if (!field_count(e, "pid", &pid) || !field_count(e, "tid", &tid))
		return phase[0] == 'X' || phase[0] == 'M' ? -EINVAL : 0;
	switch (phase[0]) {
	case 'M':
		return take_name(t, e, pid, tid);
	case 'X':
		return take_slice(t, e, tid);
	case 'C':
		return take_slots(t, e, pid);
	default:
		return 0;
	}
}

static int by_beginning(const void *a, const void *b)
{
	const struct lane_span *x = a, *y = b;

	return (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

int trace_complete(struct trace *t)
{
	t->duration_ns = MAX(t->duration_ns, t->last_ns);
	for (size_t i = 0; i < t->n_rows; i++) {
		struct lane *l = &t->rows[i].lane;

		if (l->n)
			qsort(l->spans, l->n, sizeof(*l->spans), by_beginning);
	}
	return 0;
}

enum ground trace_ground(const struct trace *t)
{
	return t->ground;
}

/* ---- what is drawn ---- */

/* Where the first holds of a job are, and how many of them there are. */
static size_t first_holds(const struct lane *l, uint64_t *ret_from_ns, uint64_t *ret_to_ns)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n && n < DRAWN_HOLDS; i++) {
		if (l->spans[i].kind != LANE_HELD)
			continue;
		if (n++ == 0)
			*ret_from_ns = l->spans[i].from_ns;
		*ret_to_ns = l->spans[i].to_ns;
	}
	return n;
}

/* The first holds, with a little around them; all of it, where there are none. */
static struct lane_window choose_window(const struct trace *t)
{
	struct lane_window w = { .from_ns = UINT64_MAX };
	uint64_t soonest_ns = UINT64_MAX, margin;

	for (size_t i = 0; i < t->n_rows; i++) {
		uint64_t from_ns = 0, to_ns = 0;
		size_t n = first_holds(&t->rows[i].lane, &from_ns, &to_ns);

		if (!n)
			continue;
		w.from_ns = MIN(w.from_ns, from_ns);
		w.to_ns = MAX(w.to_ns, to_ns);
		if (n == DRAWN_HOLDS)
			soonest_ns = MIN(soonest_ns, to_ns);
	}
	w.to_ns = MIN(w.to_ns, soonest_ns);
	if (w.to_ns <= w.from_ns)
		return (struct lane_window){ .to_ns = MAX(t->duration_ns, 1u) };
	margin = (w.to_ns - w.from_ns) / 12;
	w.from_ns -= MIN(w.from_ns, margin);
	w.to_ns = MIN(w.to_ns + margin, MAX(t->duration_ns, w.to_ns));
	return w;
}

static size_t lanes_of(const struct trace *t, size_t gpu, struct lane **ret, size_t *ret_all)
{
	size_t n = 0;

	*ret_all = 0;
	for (size_t i = 0; i < t->n_rows; i++) {
		if (!t->rows[i].known || t->rows[i].gpu != gpu)
			continue;
		(*ret_all)++;
		if (n < DRAWN_LANES)
			ret[n++] = &t->rows[i].lane;
	}
	return n;
}

static void put_row(struct page *p, const struct trace *t, const struct trace_row *row)
{
	html_row(p, row->lane.name, row->lane.name);
	html_cell(p, row->lane.online ? "online" : "offline");
	html_cell_format(p, "%.3f", (double)row->work_ns / 1e6);
	html_cell_format(p, "%.2f",
			 t->duration_ns ? 100.0 * (double)row->work_ns / (double)t->duration_ns :
					  0);
	html_cell_format(p, "%zu", row->holds);
	html_cell_format(p, "%.3f", (double)row->held_ns / 1e6);
	html_cell_format(p, "%.3f", (double)row->longest_ns / 1e6);
	html_row_end(p);
}

static void put_jobs(struct page *p, const struct trace *t, size_t gpu)
{
	static const char *const columns[] = {
		"job",	      "class",	  "on the GPU, ms", "of the time, %",
		"times held", "held, ms", "longest, ms"
	};
	size_t n = 0;

	html_table(p, "The whole recording, job by job", columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < t->n_rows; i++) {
		const struct trace_row *row = &t->rows[i];

		if (row->known && row->gpu == gpu && n++ < TABLE_ROWS)
			put_row(p, t, row);
	}
	html_table_end(p);
	html_more(p, TABLE_ROWS, n, "jobs");
}

static void put_timeline(struct page *p, const struct trace *t, size_t gpu,
			 const struct lane_window *w)
{
	struct lane *lanes[DRAWN_LANES];
	char title[96], text[240], length[UNIT_TEXT_SIZE], all[UNIT_TEXT_SIZE];
	size_t n, of;

	n = lanes_of(t, gpu, lanes, &of);
	if (!n)
		return;
	snprintf(title, sizeof(title), "Timeline of %s", t->gpus[gpu].name);
	snprintf(text, sizeof(text), "%s of %s%s%s", html_duration(w->to_ns - w->from_ns, length),
		 html_duration(t->duration_ns, all),
		 w->to_ns - w->from_ns < t->duration_ns ? ", around the first preemptions" : "",
		 n < of ? "; the first jobs only, the table has all" : "");
	html_figure(p, title, text);
	chart_lanes(p, title, lanes, n, w);
	html_ground(p, t->ground, "Times are the simulator's, in virtual time.");
	put_jobs(p, t, gpu);
	html_figure_end(p);
}

static void put_slots(struct page *p, const struct trace *t, const struct lane_window *w)
{
	size_t drawn = 0, with = 0;

	for (size_t i = 0; i < t->n_gpus; i++)
		with += t->gpus[i].slots.n > 0;
	if (!with)
		return;
	html_figure(
		p, "Hardware queue slots",
		"Whose queues were in the slots (HQDs), over the same time as above. The table is "
		"about the whole recording; means are over time.");
	for (size_t i = 0; i < t->n_gpus && drawn < DRAWN_GPUS; i++) {
		const struct trace_gpu *gpu = &t->gpus[i];

		if (!gpu->slots.n)
			continue;
		if (with > 1)
			html_put(p, "<p class=\"ground\">%s</p>", gpu->name);
		chart_slots(p, gpu->name, &gpu->slots, w);
		drawn++;
	}
	html_ground(p, t->ground, "Slots of the modelled chip.");
	html_table(p, "Hardware queue slots", slots_columns, SLOTS_COLUMNS);
	for (size_t i = 0; i < t->n_gpus; i++) {
		if (t->gpus[i].slots.n)
			slots_row(p, t->gpus[i].name, &t->gpus[i].slots, t->duration_ns);
	}
	html_table_end(p);
	html_figure_end(p);
}

void report_trace(struct page *p, size_t nth, const struct trace *t)
{
	struct lane_window w = choose_window(t);
	char title[200], subtitle[560];

	snprintf(title, sizeof(title), "%s, over time", t->scenario[0] ? t->scenario : "a trace");
	snprintf(subtitle, sizeof(subtitle), "%s%s%s%s%s%s", t->policy[0] ? "policy " : "",
		 t->policy, t->chip[0] ? ", a model of " : "", t->chip,
		 t->assumes[0] ? ". Assumed: " : "", t->assumes);
	html_section(p, nth, title, subtitle, t->ground);
	for (size_t i = 0; i < t->n_gpus && i < DRAWN_GPUS; i++)
		put_timeline(p, t, i, &w);
	html_more(p, DRAWN_GPUS, t->n_gpus, "GPUs are drawn");
	put_slots(p, t, &w);
	html_section_end(p);
}
