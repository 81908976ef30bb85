/* SPDX-License-Identifier: MIT */
#ifndef GPREEMPT_CMD_STATUS_H
#define GPREEMPT_CMD_STATUS_H

#include "cmd/gpreempt/daemon.h"

/* Everything the daemon says of itself, read at about the same time. */
struct daemon_view {
	struct gpreempt_daemon_status status;
	struct gpreempt_daemon_gpu *gpus; /* those that tripped first */
	char **trips; /* what happened on each of them when it tripped; NULL: it is not told */
	size_t n_gpus;
	struct gpreempt_daemon_job *jobs;
	size_t n_jobs;
};

int status_print_json(struct cli *cli, const struct daemon_view *v);

/* Not of the daemon, which has none of this number. */
#define EVENT_SUBSCRIBED ((enum gpreempt_event_kind)0)
const char *event_word(const struct gpreempt_event *e);
struct json_object *event_to_json(const struct gpreempt_event *e);

#endif
