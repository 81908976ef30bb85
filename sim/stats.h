/* SPDX-License-Identifier: MIT */
/* Durations one by one, and what is said of them at the end. */
#ifndef GPREEMPT_SIM_STATS_H
#define GPREEMPT_SIM_STATS_H

#include "sim/sim.h"

struct sim_samples {
	uint64_t *ns;
	size_t n, cap;
};

int sim_samples_add(struct sim_samples *s, uint64_t ns); /* -ENOMEM */
void sim_samples_done(struct sim_samples *s);

/*
 * Exact, by the nearest rank: the smallest sample that at least the given share does not exceed.
 * The mean is rounded to the nearest nanosecond. Sorts the samples. None: all figures are 0.
 */
struct sim_quantiles sim_samples_quantiles(struct sim_samples *s);
/* Of sorted samples, at the points of util/curve.h. None: all 0. */
void sim_samples_curve(const struct sim_samples *s, uint64_t ret_ns[CURVE_POINTS]);

#endif
