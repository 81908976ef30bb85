/* SPDX-License-Identifier: MIT */
/*
 * What a best-effort job shares with those who measure it: a file, mapped by all. The Python side
 * of it is job.py.
 */
#ifndef GPREEMPT_BENCH_H200_JOB_H
#define GPREEMPT_BENCH_H200_JOB_H

#include <stdint.h>

#define JOB_BYTES 16384
#define JOB_PROGRESS 4096
#define JOB_BEATS 8192
#define JOB_N_BEATS 4
#define JOB_BEAT_STRIDE 16 /* words: a cache line each */

struct job {
	volatile uint64_t ready; /* what follows is true, and it works */
	volatile uint64_t stop; /* set by others */
	volatile uint64_t pid;
	volatile uint64_t iterations;
	volatile uint64_t checks, wrong; /* results compared, and not the same bit for bit */
	volatile uint64_t units; /* of progress in an iteration */
};

#endif
