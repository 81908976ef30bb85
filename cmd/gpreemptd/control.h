/* SPDX-License-Identifier: MIT */
/*
 * The control socket: who asks, whether they may, how often, and the answer.
 *
 * Nothing a client does costs the others: connections are counted per user and in all, requests
 * per user and second, packets are of bounded sizes, and an answer that does not fit its socket's
 * buffer ends the connection.
 */
#ifndef GPREEMPT_CMD_GPREEMPTD_CONTROL_H
#define GPREEMPT_CMD_GPREEMPTD_CONTROL_H

#include <systemd/sd-event.h>

#include "cmd/gpreemptd/config.h"
#include "cmd/gpreemptd/events.h"
#include "cmd/gpreemptd/scheduler.h"

struct control;
struct daemon;

struct control_parts {
	sd_event *loop;
	struct scheduler *scheduler;
	struct events *events;
	struct daemon *daemon; /* for what is not the scheduler's */
};

/* @fd: a listening socket (of systemd), or -1: makes one at @path, mode 0666. Owns it. */
int control_new(const struct control_parts *parts, const struct config *config, const char *path,
		int fd, struct control **ret);
void control_free(struct control *c); /* accepts NULL */

/* @config is borrowed, as in control_new(). Needs the one before once more. */
void control_configure(struct control *c, const struct config *config);
/*
 * Whoever asked for a pause has its answer. 0: every device is let go of; -EBUSY: but the driver
 * still counts processes of ours; -ECANCELED: somebody continued.
 */
void control_let_go(struct control *c, int error);

struct control_figures {
	uint64_t connections, refused, requests, limited, garbage;
	uint32_t clients;
};
const struct control_figures *control_figures(const struct control *c);

#endif
