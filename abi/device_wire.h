/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * How a real process has work done on the daemon's software device: DEVICE_SOCKET in its run
 * directory, SOCK_SEQPACKET, one struct a packet. Who connects becomes a process on the device,
 * under its real pid and user, such as a program on ROCm is one; when it goes, so does all it has
 * there. A request gets one answer with its seq; so does work, once it is done. Unused bytes are
 * zero. What makes no sense ends the connection.
 */
#ifndef GPREEMPT_ABI_DEVICE_WIRE_H
#define GPREEMPT_ABI_DEVICE_WIRE_H

#include "abi/types.h"

#define DEVICE_SOCKET "device.sock"
#define DEVICE_MAGIC 0x44504d47u /* "GMPD" */
#define DEVICE_VERSION 1
#define DEVICE_MAX_BYTES 256u

#define DEVICE_MAX_PROCESSES 512u /* in all */
#define DEVICE_MAX_PROCESS_QUEUES 256u
#define DEVICE_MAX_QUEUES 4096u /* in all */
#define DEVICE_MAX_PENDING 64u /* pieces of work in one queue that are not done and told of */
#define DEVICE_MAX_WORKGROUPS (1u << 20)
#define DEVICE_MAX_WG_NS 60000000000ull
#define DEVICE_MAX_PER_CU 32u
#define DEVICE_MAX_PRIORITY 15u

enum device_type {
	DEVICE_HELLO = 1, /* device_header -> device_welcome; first, and once */
	DEVICE_QUEUE, /* device_queue -> device_queue with its id */
	DEVICE_SUBMIT, /* device_submit -> device_done, when it is */
	DEVICE_STATS, /* device_stats of a queue -> device_stats */
	DEVICE_ERROR = 64, /* device_error, instead of any answer */
};

struct device_header {
	uint32_t magic;
	uint16_t version;
	uint16_t type; /* of the request in its answer too */
	uint32_t bytes; /* of the whole packet */
	uint32_t seq;
};

struct device_welcome {
	struct device_header h;
	uint64_t now_ns; /* CLOCK_MONOTONIC, which all times here are of */
	uint32_t gpus;
	uint32_t cus; /* of one GPU: so many workgroups, one to a unit, fill it */
	char chip[32];
};

struct device_queue {
	struct device_header h;
	uint32_t gpu; /* index */
	uint32_t priority; /* 0..DEVICE_MAX_PRIORITY */
	uint32_t queue; /* 0 in a request */
	uint32_t gpu_id; /* the driver's, in an answer */
};

#define DEVICE_WORK_BARRIER (1u << 0) /* begins when all before it in the queue is done */

struct device_submit {
	struct device_header h;
	uint32_t queue;
	uint32_t flags; /* DEVICE_WORK_* */
	uint32_t workgroups;
	uint32_t per_cu; /* how many fit on a compute unit; 0: 1 */
	uint64_t wg_ns; /* how long one runs */
};

struct device_done {
	struct device_header h;
	uint32_t queue;
	uint32_t saves; /* how often some of it was taken off the GPU and came back */
	uint64_t index; /* of the packet in its queue */
	uint64_t submitted_ns, started_ns, done_ns;
	uint64_t executed_ns; /* summed over its workgroups */
	uint32_t workgroups, finished; /* equal, unless work was lost or done twice */
};

struct device_stats {
	struct device_header h;
	uint32_t queue;
	uint32_t suspended; /* 1: off the GPU by a debugger */
	uint64_t completed;
	uint64_t resident, saved; /* workgroups on compute units, and in memory */
};

struct device_error {
	struct device_header h;
	int32_t error; /* errno, positive */
	uint32_t pad;
	char message[128];
};

ABI_SIZE(struct device_header, 16);
ABI_SIZE(struct device_welcome, 64);
ABI_SIZE(struct device_queue, 32);
ABI_SIZE(struct device_submit, 40);
ABI_SIZE(struct device_done, 72);
ABI_SIZE(struct device_stats, 48);
ABI_SIZE(struct device_error, 152);

#endif
