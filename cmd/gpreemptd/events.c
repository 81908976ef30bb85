/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cmd/gpreemptd/events.h"
#include "util/clock.h"

struct events {
	events_sink_fn sink;
	void *user;
	uint64_t summed_since_ns; /* CLOCK_MONOTONIC; what follows is since then */
	uint64_t held, let_go; /* times */
	uint64_t held_ns, longest_ns; /* of those that were let go */
	uint64_t job_lines, left_out; /* of the log */
	uint64_t n_told;
	struct gpreempt_event past[EVENTS_KEPT]; /* a ring */
};

int events_new(struct events **ret)
{
	struct events *e = calloc(1, sizeof(*e));

	if (!e)
		return -ENOMEM;
	e->summed_since_ns = clock_ns(CLOCK_MONOTONIC);
	*ret = e;
	return 0;
}

void events_free(struct events *e)
{
	free(e);
}

void events_set_sink(struct events *e, events_sink_fn sink, void *user)
{
	e->sink = sink;
	e->user = user;
}

/* Jobs can come and go as often as they like; the log is to be read. */
#define JOB_LINES_MAX 200u

static bool is_left_out(struct events *e, const struct gpreempt_event *event)
{
	if (!event->pid || e->job_lines++ < JOB_LINES_MAX)
		return false;
	e->left_out++;
	return true;
}

/* Fields that a script can cut out, whatever the text says. */
static void log_hold(const struct gpreempt_event *e)
{
	char comm[sizeof(e->comm)];

	memcpy(comm, e->comm, sizeof(comm));
	for (char *quote = comm; (quote = strchr(quote, '"')) != NULL;)
		*quote = '?'; /* it does not end the field */
	log_line(LOG_LEVEL_DEBUG, "%s pid=%d uid=%u gpu=%u comm=\"%s\" for=%d held_us=%llu: %s",
		 wire_event_kind(e->kind)->name, e->pid, e->uid, e->gpu_id, comm, e->other_pid,
		 (unsigned long long)(e->duration_ns / NSEC_PER_USEC), e->text);
}

static void count_hold(struct events *e, const struct gpreempt_event *event)
{
	if (event->kind == GPREEMPT_EVENT_HELD) {
		e->held++;
		return;
	}
	e->let_go++;
	e->held_ns += event->duration_ns;
	e->longest_ns = MAX(e->longest_ns, event->duration_ns);
}

void events_summarise(struct events *e)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC), since_ns = e->summed_since_ns;

	if (e->held || e->let_go)
		log_line(LOG_LEVEL_INFO,
			 "in %llu s %llu jobs were taken off a GPU and %llu put back, "
			 "after %llu ms in all and %llu ms at most",
			 (unsigned long long)((now_ns - since_ns) / NSEC_PER_SEC),
			 (unsigned long long)e->held, (unsigned long long)e->let_go,
			 (unsigned long long)(e->held_ns / NSEC_PER_MSEC),
			 (unsigned long long)(e->longest_ns / NSEC_PER_MSEC));
	if (e->left_out)
		log_line(LOG_LEVEL_INFO, "%llu more lines about jobs are left out",
			 (unsigned long long)e->left_out);
	e->summed_since_ns = now_ns;
	e->held = e->let_go = e->held_ns = e->longest_ns = e->job_lines = e->left_out = 0;
}

void events_tell(struct events *e, const struct gpreempt_event *event, const char *fmt, ...)
{
	struct gpreempt_event told = *event;
	char text[2 * sizeof(told.text)];
	enum log_level level;
	va_list ap;

	told.size = sizeof(told);
	told.time_ns = clock_ns(CLOCK_REALTIME);
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	wire_text_set(told.text, sizeof(told.text), text);
	if (told.kind == GPREEMPT_EVENT_HELD || told.kind == GPREEMPT_EVENT_LET_GO) {
		count_hold(e, &told);
		log_hold(&told);
	} else {
		level = wire_event_kind(told.kind)->warns ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO;
		log_line(is_left_out(e, &told) ? LOG_LEVEL_DEBUG : level, "%s", text);
	}
	e->past[e->n_told++ % EVENTS_KEPT] = told;
	if (e->sink)
		e->sink(e->user, &told);
}

const struct gpreempt_event *events_past(const struct events *e, unsigned int back)
{
	if (back >= MIN(e->n_told, EVENTS_KEPT))
		return NULL;
	return &e->past[(e->n_told - 1 - back) % EVENTS_KEPT];
}
