/* SPDX-License-Identifier: MIT */
/* What the commands that talk to the daemon share. */
#ifndef GPREEMPT_CMD_DAEMON_H
#define GPREEMPT_CMD_DAEMON_H

#include "cmd/gpreempt/cli.h"
#include "cmd/gpreempt/snapshot.h"

/* Exit statuses; they say what is wrong. */
int daemon_connect(struct cli *cli, struct gpreempt_daemon **ret);
int daemon_begin(struct cli *cli, int argc, char **argv); /* takes options, and connects */
/*
 * Whoever schedules: the daemon, or, where none answers, the scheduler inside the driver when it is
 * on: then cli->daemon is NULL and cli->ctx is open.
 */
int scheduler_connect(struct cli *cli);
int daemon_failed(struct cli *cli, const struct gpreempt_daemon *d); /* its last failure */
int daemon_fail_error(struct cli *cli, struct gpreempt_error *e);

/* The options of run and class that say how a job is to be treated. */
#define TARGET_MAX_US (3600ull * 1000 * 1000)
/* clang-format off */
#define CLASS_OPTIONS(request) \
	{ "priority", 0, option_u32, &(request)->priority, 0, 255 }, \
	{ "latency-critical", 0, NULL, &(request)->critical }, \
	{ "target-us", 0, option_number, &(request)->target_us, 1, TARGET_MAX_US }, \
	{ "lazy", 0, NULL, &(request)->lazy }
/* clang-format on */

/* ---- status_json.c ---- */

int status_print_json(struct cli *cli, const struct snapshot *v);

/* Not of the daemon, which has none of this number. */
#define EVENT_SUBSCRIBED ((enum gpreempt_event_kind)0)
const char *event_word(const struct gpreempt_event *e);
struct json_object *event_to_json(const struct gpreempt_event *e);

#endif
