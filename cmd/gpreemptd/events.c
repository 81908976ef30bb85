/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cmd/gpreemptd/events.h"
#include "cmd/wire/wire.h"

struct events {
	events_sink_fn sink;
	void *user;
};

int events_new(struct events **ret)
{
	struct events *e = calloc(1, sizeof(*e));

	if (!e)
		return -ENOMEM;
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

static uint64_t realtime_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static enum log_level level_of(const struct wire_event *event)
{
	switch (event->kind) {
	case WIRE_TRIPPED:
	case WIRE_JOB_NOT_ATTACHED:
		return LOG_LEVEL_WARNING;
	default:
		return LOG_LEVEL_INFO;
	}
}

/*
 * The audit line of a hold, written when it ended: fields a script can cut out, whatever the text
 * says.
 */
static void log_hold(const struct wire_event *e)
{
	char comm[sizeof(e->comm)];

	memcpy(comm, e->comm, sizeof(comm));
	for (char *quote = comm; (quote = strchr(quote, '"')) != NULL;)
		*quote = '?'; /* it does not end the field */
	log_line(e->kind == WIRE_LET_GO ? LOG_LEVEL_INFO : LOG_LEVEL_DEBUG,
		 "%s pid=%d uid=%u gpu=%u comm=\"%s\" for=%d held_us=%llu: %s",
		 wire_event_name(e->kind), e->pid, e->uid, e->gpu, comm, e->other_pid,
		 (unsigned long long)(e->duration_ns / NSEC_PER_USEC), e->text);
}

void events_tell(struct events *e, const struct wire_event *event, const char *fmt, ...)
{
	struct wire_event told = *event;
	char text[2 * sizeof(told.text)];
	va_list ap;

	told.h = wire_header(WIRE_EVENT, sizeof(told), 0);
	told.time_ns = realtime_ns();
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	wire_text_set(told.text, sizeof(told.text), text);
	if (told.kind == WIRE_HELD || told.kind == WIRE_LET_GO)
		log_hold(&told);
	else
		log_line(level_of(&told), "%s", text);
	if (e->sink)
		e->sink(e->user, &told);
}
