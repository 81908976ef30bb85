/* SPDX-License-Identifier: MIT */
/* The demonstration's runs: one training job and one inference service on a modelled GPU. */
#ifndef GPREEMPT_CMD_DEMO_H
#define GPREEMPT_CMD_DEMO_H

#include "cmd/gpreempt/figures.h"

#define DEMO_TRAIN_PID 1001
#define DEMO_INFER_PID 1002
#define DEMO_TRAIN_QUEUES 10u
#define DEMO_KERNELS_PER_QUEUE 20u
#define DEMO_KERNEL_NS (5 * NSEC_PER_MSEC)
#define DEMO_REQUESTS 16u
#define DEMO_REQUEST_NS (500 * NSEC_PER_USEC)
#define DEMO_REQUEST_EVERY_NS (60 * NSEC_PER_MSEC)

enum demo_kind {
	DEMO_REQUESTS_ALONE,
	DEMO_TRAINING_ALONE,
	DEMO_SHARED, /* both, and nobody interferes */
	DEMO_PREEMPTED, /* both, with the training held for each request */
};

struct demo_run {
	struct figures latency; /* of the requests */
	uint64_t trained_ns; /* until the last kernel of the training was done */
	uint32_t kernels, complete; /* of the training; complete: every workgroup ran, once */
	uint32_t saves; /* how often a kernel was interrupted and continued later */
	uint64_t saved_bytes;
};

/* On a fresh model each time. An exit status, an error is said. */
int demo_run(struct cli *cli, const char *device, enum demo_kind kind, struct demo_run *ret);

#endif
