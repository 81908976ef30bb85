/* SPDX-License-Identifier: MIT */
/* The table of jobs: which columns fit, and what stands in them. */
#include "cmd/gpreempt-top/jobs.h"

#include "cmd/gpreempt/job_text.h"

#define NOTE_MIN 12

/* In the order of the screen; those of a lower rank go first when it is narrow. */
static const struct table_column {
	const char *name;
	unsigned int width, rank;
	bool right;
	const char *field; /* for job_cell(); NULL: the history */
} columns[] = {
	{ "PID", 7, 11, true, "pid" },
	{ "COMMAND", 15, 10, false, "comm" },
	{ "CLASS", 7, 8, false, "job_class" },
	{ "PRIO", 4, 1, true, "priority" },
	{ "STATE", 7, 9, false, "state" },
	{ "QUEUES", 6, 2, true, "queues" },
	{ "PREEMPTED", 9, 6, true, "preempted" },
	{ "HELD", 7, 3, true, "held_ns" },
	{ "MAX WAIT", 8, 5, true, "longest_wait_ns" },
	{ "SHARE", 5, 7, true, "share_permille" },
	{ "LAST 15 SECONDS", JOBS_HISTORY, 4, false, NULL },
};

void jobs_layout(unsigned int width, struct jobs_layout *ret)
{
	unsigned int all = 0;

	_Static_assert(ARRAY_SIZE(columns) <= JOBS_COLUMNS, "room for all columns");
	*ret = (struct jobs_layout){ 0 };
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++) {
		unsigned int needed = 0; /* by it and those that are more important */

		for (size_t k = 0; k < ARRAY_SIZE(columns); k++)
			if (columns[k].rank >= columns[i].rank)
				needed += columns[k].width + (needed > 0);
		ret->shown[i] = needed <= width || needed == columns[i].width;
		all = MAX(all, needed);
	}
	if (width >= all + 1 + NOTE_MIN)
		ret->note = width - all - 1;
}

/* Oldest first, this second last. */
static void add_history(struct lines *l, const struct gpreempt_daemon_job *j, bool utf8)
{
	for (size_t i = GPREEMPT_JOB_HISTORY; i > 0; i--)
		line_bar(l, j->history[i - 1], 255, utf8);
	line_bar(l, j->share_permille, 1000, utf8);
}

static enum view_look look_of(const struct gpreempt_daemon_job *j)
{
	if (j->held)
		return VIEW_HELD;
	if (j->job_class == GPREEMPT_CLASS_ONLINE)
		return VIEW_ONLINE;
	return j->detailed ? VIEW_PLAIN : VIEW_DIM;
}

/* Of the heading, where @j is NULL. */
static void add_cells(struct lines *l, const struct jobs_layout *layout,
		      const struct gpreempt_daemon_job *j, bool utf8)
{
	const char *gap = "";

	for (size_t i = 0; i < ARRAY_SIZE(columns); i++) {
		const char *text = columns[i].name;
		char buf[UNIT_TEXT_SIZE];

		if (!layout->shown[i])
			continue;
		line_add(l, "%s", gap);
		gap = " ";
		if (j && !columns[i].field && j->detailed && !j->unseen) {
			add_history(l, j, utf8);
			continue;
		}
		if (j)
			text = columns[i].field ?
				       job_cell(j, columns[i].field, short_duration, buf) :
				       "-";
		line_cell(l, text, columns[i].width, columns[i].right);
	}
}

void jobs_heading(struct lines *l, const struct jobs_layout *layout)
{
	line_begin(l, VIEW_HEADING);
	add_cells(l, layout, NULL, false);
	if (layout->note)
		line_add(l, " NOTE");
	line_fill(l);
}

void jobs_line(struct lines *l, const struct jobs_layout *layout,
	       const struct gpreempt_daemon_job *j, bool utf8)
{
	line_begin(l, look_of(j));
	add_cells(l, layout, j, utf8);
	if (!layout->note || !j->detailed)
		return;
	if (j->why[0])
		line_add(l, " %s", j->why);
	else if (j->held && j->because)
		line_add(l, " for %d", (int)j->because);
	else
		line_add(l, " %s%s%s", j->source, j->container[0] ? ", " : "", j->container);
}

/* ---- order ---- */

static int compare_numbers(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int compare_by(const struct gpreempt_daemon_job *a, const struct gpreempt_daemon_job *b,
		      enum view_sort sort)
{
	switch (sort) {
	case SORT_CLASS:
		/* online, offline, and then those of none, which is 0 */
		return compare_numbers(a->job_class - 1u, b->job_class - 1u);
	case SORT_SHARE:
		return compare_numbers(b->share_permille, a->share_permille);
	case SORT_WAIT:
		return compare_numbers(b->longest_wait_ns, a->longest_wait_ns);
	case SORT_PREEMPTED:
		return compare_numbers(b->preempted, a->preempted);
	default:
		return 0;
	}
}

static int compare_jobs(const void *x, const void *y, void *sort)
{
	const struct gpreempt_daemon_job *a = *(const struct gpreempt_daemon_job *const *)x;
	const struct gpreempt_daemon_job *b = *(const struct gpreempt_daemon_job *const *)y;
	int c = compare_numbers(a->gpu_id, b->gpu_id);

	if (c == 0)
		c = compare_by(a, b, *(const enum view_sort *)sort);
	return c ? c : (a->pid > b->pid) - (a->pid < b->pid);
}

const struct gpreempt_daemon_job **jobs_sort(const struct snapshot *s, enum view_sort sort)
{
	const struct gpreempt_daemon_job **sorted = calloc(s->n_jobs + 1, sizeof(*sorted));

	for (size_t i = 0; sorted && i < s->n_jobs; i++)
		sorted[i] = &s->jobs[i];
	if (sorted)
		qsort_r(sorted, s->n_jobs, sizeof(*sorted), compare_jobs, &sort);
	return sorted;
}
