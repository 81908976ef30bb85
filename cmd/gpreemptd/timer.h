/* SPDX-License-Identifier: MIT */
/* Timers of the event loop, each set anew for every time it is to go off. */
#ifndef GPREEMPT_CMD_GPREEMPTD_TIMER_H
#define GPREEMPT_CMD_GPREEMPTD_TIMER_H

#include <systemd/sd-event.h>

#include "util/clock.h"

#define TIMER_ACCURACY_US 1 /* sd-event would wake up to a quarter of a second late */

/* Not set yet. */
static inline int timer_add(sd_event *loop, sd_event_time_handler_t handler, void *user,
			    sd_event_source **ret)
{
	int r = sd_event_add_time(loop, ret, CLOCK_MONOTONIC, UINT64_MAX, TIMER_ACCURACY_US,
				  handler, user);

	return r < 0 ? r : sd_event_source_set_enabled(*ret, SD_EVENT_OFF);
}

/* No sooner than at @at_ns. */
static inline void timer_set(sd_event_source *timer, uint64_t at_ns)
{
	sd_event_source_set_time(timer, at_ns / NSEC_PER_USEC + (at_ns % NSEC_PER_USEC != 0));
	sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
}

static inline void timer_set_after(sd_event_source *timer, uint64_t ns)
{
	timer_set(timer, monotonic_ns() + ns);
}

#endif
