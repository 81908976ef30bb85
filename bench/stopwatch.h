/* SPDX-License-Identifier: MIT */
/* What the benchmarks share: a clock, a median, and quiet where it can be had. */
#ifndef GPREEMPT_BENCH_STOPWATCH_H
#define GPREEMPT_BENCH_STOPWATCH_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static inline uint64_t stopwatch_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline int compare_ns(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Sorts @ns. */
static inline uint64_t median_ns(uint64_t *ns, size_t n)
{
	qsort(ns, n, sizeof(*ns), compare_ns);
	return ns[n / 2];
}

/* Real-time priority, for children too; false where that is not allowed. */
static inline bool go_before_others(void)
{
	const struct sched_param lowest = { .sched_priority = 1 };

	return sched_setscheduler(0, SCHED_FIFO, &lowest) == 0;
}

#endif
