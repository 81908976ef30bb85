/* SPDX-License-Identifier: MIT */
/*
 * Between a holder and its owner. A holder is a process that traces one target, has the driver's
 * debug session with it, and keeps its queues off the GPU. Whatever that target does to it (it can
 * keep the lock that every debug call waits for, for as long as it likes) happens to this one
 * process: others' holders, and the owner, have nothing to do with it.
 *
 * It lets the target go when its owner is gone, when it is told to by SIGTERM, and by itself when a
 * hold's longest time is over. It has a guard of its own. Its owner's end it sees by a pidfd, too
 * (HELPER_FILE): others, who outlive that, may have copies of the other end of its socket.
 */
#ifndef GPREEMPT_GPU_KFD_HOLDER_H
#define GPREEMPT_GPU_KFD_HOLDER_H

#include "abi/kfd.h"
#include "gpu/kfd/target.h"

#define HOLDER_PROGRAM "gpreempt-holder"
#define HOLDER_IDS_MAX 1024u /* KFD_MAX_NUM_OF_QUEUES_PER_PROCESS of Linux 6.12 */
/* In place of a verb: is the driver there, and new enough? gpu_done.queues is its version. */
#define HOLDER_PROBE 100u
#define HOLDER_VERSION(major, minor) ((major) << 16 | (minor))

/* One packet, cut off behind its last id. Each is answered by a struct gpu_done, in order. */
struct holder_order {
	uint32_t verb; /* enum gpu_verb */
	uint32_t n; /* GPU_ALL_QUEUES: all of them, and no ids follow */
	uint32_t grace_kclk;
	int32_t pid; /* GPU_ATTACH, as the next */
	uint64_t start_ticks;
	uint64_t cookie;
	uint64_t called_ns, longest_ns; /* by CLOCK_MONOTONIC */
	uint32_t ids[HOLDER_IDS_MAX];
};

/* The holder itself: serves its owner until the target is let go. */
int holder_serve(struct gkfd *k);
/*
 * What its guard runs when it is gone: HOLDER_PROGRAM "rescue" PID START_TICKS. Ends the session,
 * unless the driver has.
 */
#define HOLDER_RESCUE "rescue"
int holder_rescue(struct gkfd *k, pid_t pid, uint64_t start_ticks);

#endif
