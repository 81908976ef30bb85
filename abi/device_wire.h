/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * How others reach a software GPU (gpreempt-softgpu): a socket, SOCK_SEQPACKET. Who connects
 * becomes a process on the device, under its real pid and user; when its last connection goes, or
 * it ends, so does all it has there. A connection is for one of two things, by what comes first:
 *
 *   DEVICE_HELLO  to have work done, as a program on ROCm does. One struct a packet; a request gets
 *                 one answer with its seq, and so does work, once it is done.
 *   DEVICE_CALL   to call the driver: DEVICE_OP_JOIN, then one call after the other, each of which
 *                 is answered when the driver returns. Who makes several calls at once has several
 *                 connections, all of one client: the extension's file is the client's.
 *
 * Unused bytes are zero. What makes no sense ends the connection.
 */
#ifndef GPREEMPT_ABI_DEVICE_WIRE_H
#define GPREEMPT_ABI_DEVICE_WIRE_H

#include "abi/types.h"

#define DEVICE_SOCKET "device.sock"
#define DEVICE_MAGIC 0x44504d47u /* "GMPD" */
#define DEVICE_VERSION 2
#define DEVICE_MAX_BYTES 256u

#define DEVICE_MAX_PROCESSES 512u /* in all */
#define DEVICE_MAX_CONNECTIONS 2048u /* in all */
#define DEVICE_MAX_USER_CONNECTIONS 512u /* of a user who is not root or the device's own */
#define DEVICE_KEPT 64u /* of processes and connections, for root and the device's own user */
#define DEVICE_MAX_PROCESS_CONNECTIONS 256u
#define DEVICE_MAX_PROCESS_QUEUES 256u
#define DEVICE_MAX_PROCESS_REQUESTS 1024u /* for a queue: its memory lasts as long as the process */
#define DEVICE_MAX_QUEUES 4096u /* in all */
#define DEVICE_MAX_PENDING 64u /* pieces of work in one queue that are not done and told of */
#define DEVICE_MAX_RESERVED 4096u /* that a job is ahead of what the device was told of */
#define DEVICE_MAX_WORKGROUPS (1u << 20)
#define DEVICE_MAX_WG_NS 60000000000ull
#define DEVICE_MAX_PER_CU 32u
#define DEVICE_MAX_PRIORITY 15u

/*
 * Pages of a job's own, for the pointers of its queues: a page a queue, in the order they are made.
 * With the welcome comes a file of them, which the job maps there if it can. Who looks at its
 * pointers then reads its memory, as with a real driver, and else asks the device. Such a job moves
 * a queue's write pointer on by one itself before each DEVICE_SUBMIT, as programs do before they
 * ring a doorbell; the device moves it back where it refuses the work.
 */
#define DEVICE_PAGE_BYTES 4096u
#define DEVICE_PAGES_VA 0x7e9000000000ull
#define DEVICE_PAGES_BYTES (DEVICE_MAX_PROCESS_REQUESTS * DEVICE_PAGE_BYTES)

enum device_type {
	DEVICE_HELLO = 1, /* device_header -> device_welcome and a file; first, and once */
	DEVICE_QUEUE, /* device_queue -> device_queue with its id */
	DEVICE_SUBMIT, /* device_submit -> device_done, when it is */
	DEVICE_STATS, /* device_stats of a queue -> device_stats */
	DEVICE_CALL, /* device_call -> device_return */
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
	uint32_t gpu_id; /* the driver's, in an answer, */
	uint64_t write_ptr; /* and where its write pointer is */
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

/* ---- the driver ---- */

#define DEVICE_MAX_CALL_BYTES (160u << 10) /* less than a socket's default buffer */
#define DEVICE_INLINE_BYTES 4096u /* of a file; what is longer comes as a descriptor */
#define DEVICE_MAX_SPANS 2048u /* of one call */
#define DEVICE_MAX_PATH 256u

enum device_op {
	/*
	 * @pid: one's own, as one knows it; -EOPNOTSUPP: in another pid namespace. @value: 0, or
	 * what an earlier JOIN of the same process returned, whose client this connection is for.
	 * Returns 1 where the device has invented processes, whose /proc it has too
	 */
	DEVICE_OP_JOIN = 1,
	DEVICE_OP_OPEN, /* /dev/kfd */
	/* on @pid's descriptor; spans: its argument, then what that points to; ENABLE: an inode */
	DEVICE_OP_IOCTL,
	DEVICE_OP_EXT, /* the same on the extension's device; BIND: what BORROW gave */
	DEVICE_OP_EVENTS, /* -> a pipe to be read, and its inode, by which ENABLE names it */
	DEVICE_OP_BORROW, /* @number-th of @pid -> a number, which proves the right to it */
	/* tree @number, path -> what is in it, or a descriptor, to be read to its end */
	DEVICE_OP_READ_FILE,
	DEVICE_OP_LIST_DIR, /* the same: names, each with a NUL */
	DEVICE_OP_READ_MEM, /* of @pid: spans -> a byte for each, 1: it could be read; and theirs */
	DEVICE_OP_SEIZE, /* @pid, by @tid; as the two that follow */
	DEVICE_OP_DETACH,
	DEVICE_OP_TRACEE, /* -ESRCH: @tid does not trace it */
	DEVICE_OP_TRACER, /* of @pid -> the thread, 0: none */
	DEVICE_OP_SAVE_NS, /* -> of all GPUs so far */
	DEVICE_OP_END,
};

struct device_call { /* then its spans, then bytes */
	struct device_header h;
	uint32_t op; /* DEVICE_OP_* */
	int32_t tid; /* who calls; as the pid, in the device's pid namespace */
	int32_t pid;
	uint32_t number;
	uint64_t request; /* of an ioctl */
	uint64_t value; /* of JOIN; of ENABLE and BIND, what the descriptor stands for */
	uint32_t n_spans;
	uint32_t n_bytes;
};

struct device_span { /* of the caller's memory, whose bytes follow; or of a target's */
	uint64_t addr;
	uint32_t bytes;
	uint32_t pad;
};

struct device_return { /* then bytes: those of the spans of an ioctl, as they are now */
	struct device_header h;
	int32_t result; /* what the driver returned */
	uint32_t n_bytes;
	uint64_t value; /* JOIN: the client; EVENTS: the inode; a thread... */
};

struct device_error {
	struct device_header h;
	int32_t error; /* errno, positive */
	uint32_t pad;
	char message[128];
};

ABI_SIZE(struct device_header, 16);
ABI_SIZE(struct device_welcome, 64);
ABI_SIZE(struct device_queue, 40);
ABI_SIZE(struct device_submit, 40);
ABI_SIZE(struct device_done, 72);
ABI_SIZE(struct device_stats, 48);
ABI_SIZE(struct device_call, 56);
ABI_SIZE(struct device_span, 16);
ABI_SIZE(struct device_return, 32);
ABI_SIZE(struct device_error, 152);

#endif
