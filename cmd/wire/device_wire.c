/* SPDX-License-Identifier: MIT */
#include "cmd/wire/device_wire.h"

#include <string.h>

struct device_header device_header(enum device_type type, size_t bytes, uint32_t seq)
{
	return (struct device_header){
		.magic = DEVICE_MAGIC,
		.version = DEVICE_VERSION,
		.type = (uint16_t)type,
		.bytes = (uint32_t)bytes,
		.seq = seq,
	};
}

static size_t request_bytes(uint32_t type)
{
	switch (type) {
	case DEVICE_HELLO:
		return sizeof(struct device_header);
	case DEVICE_QUEUE:
		return sizeof(struct device_queue);
	case DEVICE_SUBMIT:
		return sizeof(struct device_submit);
	case DEVICE_STATS:
		return sizeof(struct device_stats);
	default:
		return 0;
	}
}

static size_t answer_bytes(uint32_t type)
{
	switch (type) {
	case DEVICE_HELLO:
		return sizeof(struct device_welcome);
	case DEVICE_QUEUE:
		return sizeof(struct device_queue);
	case DEVICE_SUBMIT:
		return sizeof(struct device_done);
	case DEVICE_STATS:
		return sizeof(struct device_stats);
	case DEVICE_ERROR:
		return sizeof(struct device_error);
	default:
		return 0;
	}
}

static bool is_ours(const struct device_header *h, size_t len)
{
	return len >= sizeof(*h) && h->magic == DEVICE_MAGIC && h->version == DEVICE_VERSION &&
	       h->bytes == len;
}

static bool submit_makes_sense(const struct device_submit *s)
{
	return !(s->flags & ~DEVICE_WORK_BARRIER) && s->workgroups >= 1 &&
	       s->workgroups <= DEVICE_MAX_WORKGROUPS && s->wg_ns >= 1 &&
	       s->wg_ns <= DEVICE_MAX_WG_NS && s->per_cu <= DEVICE_MAX_PER_CU;
}

bool device_is_request(const union device_any *packet, size_t len)
{
	if (!is_ours(&packet->h, len) || request_bytes(packet->h.type) != len)
		return false;
	switch (packet->h.type) {
	case DEVICE_QUEUE:
		return packet->queue.priority <= DEVICE_MAX_PRIORITY && !packet->queue.queue &&
		       !packet->queue.gpu_id;
	case DEVICE_SUBMIT:
		return submit_makes_sense(&packet->submit);
	default:
		return true;
	}
}

bool device_is_answer(const union device_any *packet, size_t len)
{
	if (!is_ours(&packet->h, len) || answer_bytes(packet->h.type) != len)
		return false;
	if (packet->h.type == DEVICE_ERROR)
		return packet->error.error > 0 &&
		       memchr(packet->error.message, '\0', sizeof(packet->error.message));
	return packet->h.type != DEVICE_HELLO ||
	       memchr(packet->welcome.chip, '\0', sizeof(packet->welcome.chip));
}
