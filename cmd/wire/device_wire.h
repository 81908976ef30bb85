/* SPDX-License-Identifier: MIT */
/* Packets of the software device's socket (abi/device_wire.h), checked. */
#ifndef GPREEMPT_CMD_WIRE_DEVICE_WIRE_H
#define GPREEMPT_CMD_WIRE_DEVICE_WIRE_H

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

#endif
