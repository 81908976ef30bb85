/* SPDX-License-Identifier: MIT */
/*
 * What happened, told to everybody who should know: the log, the subscribers of the control socket.
 * Telling never waits and never fails.
 */
#ifndef GPREEMPT_CMD_GPREEMPTD_EVENTS_H
#define GPREEMPT_CMD_GPREEMPTD_EVENTS_H

#include <stdbool.h>

#include "wire/wire.h"
#include "util/macros.h"

struct events;

/* Where events go besides the log; called at once, must not block. */
typedef void (*events_sink_fn)(void *user, const struct gpreempt_event *event);

int events_new(struct events **ret);
void events_free(struct events *e); /* accepts NULL */
void events_set_sink(struct events *e, events_sink_fn sink, void *user);

/* Fills in the size and the time. The text is what a person reads in the log. */
void events_tell(struct events *e, const struct gpreempt_event *event, const char *fmt, ...)
	_printf_(3, 4);

/* The last one told (0), the one before it (1), and so on; NULL: it is not kept. */
#define EVENTS_KEPT 64u
const struct gpreempt_event *events_past(const struct events *e, unsigned int back);

/*
 * Holds are too many for the log: they are counted, and told together in one line, where there were
 * any since the last. To be called now and then, and at the end.
 */
#define EVENTS_SUMMARY_NS (60 * NSEC_PER_SEC)
void events_summarise(struct events *e);

/* Lines of the log, with the priority systemd reads: "<4>text" where it reads our stderr. */
enum log_level { LOG_LEVEL_ERROR = 3, LOG_LEVEL_WARNING = 4, LOG_LEVEL_INFO = 6, LOG_LEVEL_DEBUG };
void log_line(enum log_level level, const char *fmt, ...) _printf_(2, 3);
void log_set_level(enum log_level level); /* what is less important is passed over */
void log_set_verbose(void); /* nothing is, whatever level is set */

#endif
