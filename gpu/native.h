/* SPDX-License-Identifier: MIT */
/*
 * A scheduler that the driver has itself, beside what gpu/backend.h tells: whoever hands over to it
 * holds nothing meanwhile. These are calls of the driver that may wait for a GPU's turn to end;
 * each returns 0, or -errno.
 */
#ifndef GPREEMPT_GPU_NATIVE_H
#define GPREEMPT_GPU_NATIVE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "abi/job_class.h"

struct gpu_backend;

struct gpu_native_config {
	const char *policy;
	uint64_t interval_ns, critical_interval_ns, turn_ns, hold_max_ns;
	uint32_t cycles_per_s;
	bool reserve; /* slots: then what follows counts */
	uint32_t online_permille, offline_permille, low_water;
};

struct gpu_native_job { /* a process, and the queues it creates */
	enum job_class job_class;
	bool critical, lazy, auto_deactivate;
	uint32_t priority, weight;
	uint64_t target_ns, wait_bound_ns;
};

struct gpu_native_ops {
	/* 1: on every GPU; 0: off on some; -ENODEV: it has gone. */
	int (*is_on)(struct gpu_backend *b);
	/* On every GPU, or set anew. -EPERM: no right to; -EOPNOTSUPP: there is none. */
	int (*turn_on)(struct gpu_backend *b, const struct gpu_native_config *config);
	int (*turn_off)(struct gpu_backend *b); /* everybody it holds runs again */
	/* -ESRCH: that process does not use the driver, or is another by now. */
	int (*set_job)(struct gpu_backend *b, pid_t pid, uint64_t start_ticks,
		       const struct gpu_native_job *job);
	int (*hint)(struct gpu_backend *b, pid_t pid, uint64_t start_ticks, uint64_t ahead_ns,
		    uint64_t for_ns);
	int (*rearm)(struct gpu_backend *b, uint32_t gpu);
};

#endif
