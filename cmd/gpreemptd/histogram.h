/* SPDX-License-Identifier: MIT */
/* How often something took how long: fixed buckets, no allocation. */
#ifndef GPREEMPT_CMD_GPREEMPTD_HISTOGRAM_H
#define GPREEMPT_CMD_GPREEMPTD_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

#define HISTOGRAM_BUCKETS 23 /* 1, 2, 5, 10 us ... 10 s, and what is longer */

struct histogram {
	uint64_t counts[HISTOGRAM_BUCKETS];
	uint64_t count, sum_ns, max_ns;
};

void histogram_add(struct histogram *h, uint64_t ns);
/* The upper bound of a bucket, inclusive; UINT64_MAX of the last. */
uint64_t histogram_bound_ns(size_t bucket);
/* An upper bound of the quantile, no more than max_ns; 0 when empty. */
uint64_t histogram_quantile_ns(const struct histogram *h, unsigned int permille);

#endif
