/* SPDX-License-Identifier: MIT */
#ifndef GPREEMPT_SIM_BURSTS_H
#define GPREEMPT_SIM_BURSTS_H

#include "sim/keys.h"

#define SIM_MAX_TRACE 1000000

/*
 * The times of a trace that is made up: requests come at random at one rate, and at random times,
 * for a while, at another. Stretches of either kind last between half and one and a half times
 * their mean, evenly spread; the first is a quiet one. Within a stretch arrivals are Poisson. All
 * follows from the seed in @b. Appends to the trace of @s. -ENOMEM, -E2BIG.
 */
int sim_bursts_make(const struct sim_bursts *b, struct sim_scenario *s);
/* One more time. -ENOMEM, -E2BIG. */
int sim_trace_add(struct sim_scenario *s, uint64_t at_ns);

#endif
