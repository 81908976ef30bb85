/* SPDX-License-Identifier: MIT */
#ifndef GPREEMPT_CMD_STATUS_H
#define GPREEMPT_CMD_STATUS_H

#include "cmd/gpreempt/daemon.h"
#include "cmd/gpreempt/snapshot.h"

int status_print_json(struct cli *cli, const struct snapshot *v);

/* Not of the daemon, which has none of this number. */
#define EVENT_SUBSCRIBED ((enum gpreempt_event_kind)0)
const char *event_word(const struct gpreempt_event *e);
struct json_object *event_to_json(const struct gpreempt_event *e);

#endif
