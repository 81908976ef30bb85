/* SPDX-License-Identifier: MIT */
/* Durations of many rounds, and what they come to. */
#ifndef GPREEMPT_CMD_FIGURES_H
#define GPREEMPT_CMD_FIGURES_H

#include "cmd/gpreempt/cli.h"

struct figures {
	uint64_t *ns;
	size_t n, room;
};

struct summary { /* nanoseconds; of nothing: all 0 */
	uint64_t min, avg, p50, p99, max;
};

int figures_init(struct figures *f, size_t room); /* -ENOMEM */
void figures_add(struct figures *f, uint64_t ns); /* what finds no room is dropped */
struct summary figures_sum_up(struct figures *f); /* sorts */
void figures_done(struct figures *f);
/* Sorts. NULL, to be left out, likewise. */
struct json_object *figures_curve(struct figures *f);
/* NULL, to be left out, when there is nothing to tell. */
struct json_object *figures_to_json(struct figures *f);

#endif
