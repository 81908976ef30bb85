/* SPDX-License-Identifier: MIT */
/*
 * Tells systemd, or whoever else started the daemon, how it is: sd_notify(3), which waits while the
 * other side does not read. This never does: what is not taken now is sent later, in order.
 */
#ifndef GPREEMPT_CMD_GPREEMPTD_NOTIFY_H
#define GPREEMPT_CMD_GPREEMPTD_NOTIFY_H

#include <systemd/sd-event.h>

#include "util/macros.h"

struct notify;

/* Also sees to the watchdog, where there is one: systemd.service(5). */
int notify_new(sd_event *loop, struct notify **ret);
void notify_free(struct notify *n); /* accepts NULL */
/* "READY=1" and its like; whoever is not told in the end need not know. */
void notify_tell(struct notify *n, const char *fmt, ...) _printf_(2, 3);

#endif
