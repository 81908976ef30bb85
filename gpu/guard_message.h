/* SPDX-License-Identifier: MIT */
/*
 * What a holder tells its guard: descriptors for a slot, or none any more; or only that something
 * is armed. The answer is alike.
 */
#ifndef GPREEMPT_GPU_GUARD_MESSAGE_H
#define GPREEMPT_GPU_GUARD_MESSAGE_H

#include <stdint.h>
#include <sys/socket.h>

#define GUARD_ARMED (-1) /* for no slot */
#define GUARD_MESSAGE_FDS 2 /* what to undo on, and the target's pidfd */

struct guard_message {
	int32_t slot; /* in the answer: the same, or -errno */
};

union guard_control {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(GUARD_MESSAGE_FDS * sizeof(int))];
};

#endif
