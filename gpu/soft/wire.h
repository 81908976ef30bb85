/* SPDX-License-Identifier: MIT */
/* Packets of a software GPU's socket (abi/device_wire.h), checked. */
#ifndef GPREEMPT_GPU_SOFT_WIRE_H
#define GPREEMPT_GPU_SOFT_WIRE_H

#include "abi/device_wire.h"

union device_any { /* room for any packet, and aligned for it */
	struct device_header h;
	struct device_welcome welcome;
	struct device_queue queue;
	struct device_submit submit;
	struct device_done done;
	struct device_stats stats;
	struct device_error error;
	uint8_t bytes[DEVICE_MAX_BYTES];
};

struct device_header device_header(enum device_type type, size_t bytes, uint32_t seq);
/* Whether @len bytes are a request, or an answer: of our version, a known type and its size. */
bool device_is_request(const union device_any *packet, size_t len);
bool device_is_answer(const union device_any *packet, size_t len);

#define DEVICE_IOCTL_SPANS 2u /* an argument, and what it points to */

struct device_parts { /* of a call; all in the packet */
	const struct device_call *call;
	const struct device_span *spans;
	const uint8_t *bytes;
};

/* @packet is aligned for any struct. False: it is no call, or not one that makes sense. */
bool device_take_call(const void *packet, size_t len, struct device_parts *ret);
bool device_is_return(const struct device_return *packet, size_t len);
/*
 * The memory that an ioctl of the driver, or of its extension, is about: first the argument, then
 * what it points to; how many. -ENOTTY: no call that is known here; -E2BIG.
 */
int device_spans(unsigned long request, const void *arg,
		 struct device_span ret[DEVICE_IOCTL_SPANS]);

#endif
