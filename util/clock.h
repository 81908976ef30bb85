/* SPDX-License-Identifier: MIT */
#ifndef GPREEMPT_UTIL_CLOCK_H
#define GPREEMPT_UTIL_CLOCK_H

#include <time.h>

#include "util/macros.h"

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static inline uint64_t monotonic_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

#endif
