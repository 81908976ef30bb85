/* SPDX-License-Identifier: MIT */
/*
 * When the requests of a process fall due. A function of the scenario, the seed and the place of
 * the process in the scenario alone: all modes see the same.
 */
#ifndef GPREEMPT_SIM_ARRIVAL_H
#define GPREEMPT_SIM_ARRIVAL_H

#include "sim/scenario.h"

/*
 * Assumed: what a program needs at least to learn that a request is done and to send another. No
 * process sends more often than that on one queue, and none has requests fall due more often.
 */
#define SIM_HOST_TURN_NS 10000u

/* How late a sleeping thread may wake up: the timer slack Linux gives by default. */
#define SIM_TIMER_SLACK_NS 50000u

struct sim_arrivals {
	enum sim_arrival kind;
	uint64_t key; /* of this process, for what is random */
	uint64_t interval_ns; /* on average */
	uint64_t phase_ns;
	uint64_t taken; /* requests before the next one */
	uint64_t next_ns; /* when that falls due; UINT64_MAX: there is none */
	const uint64_t *trace_ns;
	size_t n_trace, trace_step; /* the trace is dealt out: every so many-th time is ours */
};

/* Where a process stands among those that must agree on who sends when. */
struct sim_place_in_line {
	uint64_t phase_ns; /* SIM_PERIODIC: where in its period the first request is */
	size_t nth, of; /* SIM_TRACE: which of how many processes */
};

/* A random number: the same for the same arguments, unrelated for others. */
uint64_t sim_random(uint64_t seed, uint64_t stream, uint64_t n);

/* @key: sim_random() of the seed and the process. */
void sim_arrivals_init(struct sim_arrivals *a, const struct sim_scenario *s,
		       const struct sim_job *job, uint64_t key,
		       const struct sim_place_in_line *line);
/* The mean time between two; 0: the job has none that fall due by themselves. */
uint64_t sim_arrivals_interval_ns(const struct sim_job *job);
/* Takes what is due by @now_ns; how many. Time does not go back. */
uint64_t sim_arrivals_take(struct sim_arrivals *a, uint64_t now_ns);

#endif
