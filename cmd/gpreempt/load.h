/* SPDX-License-Identifier: MIT */
/* A job on the daemon's software device: requests that come by themselves, or kernels in a row. */
#ifndef GPREEMPT_CMD_LOAD_H
#define GPREEMPT_CMD_LOAD_H

#include "cmd/gpreempt/figures.h"
#include "cmd/wire/device_client.h"

#define LOAD_MAX_REQUESTS 1000000u

struct load_plan {
	bool online; /* requests; else every queue is kept @depth kernels deep */
	uint64_t gpu, queues, priority, depth;
	uint64_t kernel_ns; /* of a request, or one in a row */
	uint64_t fill_percent; /* of the GPU's compute units it takes */
	uint64_t every_ns; /* between requests, about */
	uint64_t requests; /* 0: no end */
	uint64_t duration_ns; /* 0: no end */
};

struct load_result {
	struct figures latency; /* of requests: from when they were due until they were done */
	uint64_t elapsed_ns; /* from the first piece of work until the last was done */
	uint64_t kernels; /* done */
	uint64_t complete; /* of them: every workgroup ran, once, and for its whole time */
	uint64_t disorder; /* of them: done before an earlier one of their queue */
	uint64_t unfinished; /* given up on at the end */
	uint64_t saves; /* how often one was taken off the GPU and went on later */
	uint64_t busy_ns; /* of the GPU as a whole, spent on it */
	uint32_t cus;
	char chip[32];
};

/* Until the plan is done or a signal asks for the end. An exit status; says what is wrong. */
int load_run(struct cli *cli, const char *path, const struct load_plan *plan,
	     struct load_result *ret);

#endif
