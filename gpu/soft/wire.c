/* SPDX-License-Identifier: MIT */
#include "gpu/soft/wire.h"

#include <linux/ioctl.h>
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

/* ---- calls of the driver ---- */

static bool is_path(const uint8_t *bytes, size_t n)
{
	return n > 0 && n <= DEVICE_MAX_PATH && memchr(bytes, '\0', n) == bytes + n - 1;
}

static bool add_spans(const struct device_span *spans, uint32_t n, uint64_t *ret_sum)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (spans[i].pad || spans[i].addr > UINT64_MAX - spans[i].bytes)
			return false;
		sum += spans[i].bytes;
	}
	*ret_sum = sum;
	return sum <= DEVICE_MAX_CALL_BYTES;
}

static bool has_its_parts(const struct device_parts *p)
{
	uint32_t n = p->call->n_spans, bytes = p->call->n_bytes;
	uint64_t sum;

	if (!add_spans(p->spans, n, &sum))
		return false;
	switch (p->call->op) {
	case DEVICE_OP_IOCTL:
	case DEVICE_OP_EXT:
		return n >= 1 && n <= DEVICE_IOCTL_SPANS && sum == bytes &&
		       p->call->request <= UINT32_MAX &&
		       p->spans[0].bytes == _IOC_SIZE((uint32_t)p->call->request);
	case DEVICE_OP_READ_MEM:
		return n >= 1 && !bytes;
	case DEVICE_OP_READ_FILE:
	case DEVICE_OP_LIST_DIR:
		return !n && is_path(p->bytes, bytes);
	default:
		return !n && !bytes;
	}
}

bool device_take_call(const void *packet, size_t len, struct device_parts *ret)
{
	const struct device_call *c = packet;

	if (!is_ours(&c->h, len) || c->h.type != DEVICE_CALL || len < sizeof(*c) ||
	    c->n_spans > DEVICE_MAX_SPANS || c->n_bytes > DEVICE_MAX_CALL_BYTES ||
	    len != sizeof(*c) + c->n_spans * sizeof(struct device_span) + c->n_bytes)
		return false;
	if (c->op < DEVICE_OP_JOIN || c->op >= DEVICE_OP_END || c->tid <= 0 || c->pid < 0)
		return false;
	*ret = (struct device_parts){ .call = c, .spans = (const struct device_span *)(c + 1) };
	ret->bytes = (const uint8_t *)(ret->spans + c->n_spans);
	return has_its_parts(ret);
}

bool device_is_return(const struct device_return *packet, size_t len)
{
	return len >= sizeof(*packet) && is_ours(&packet->h, len) &&
	       packet->h.type == DEVICE_CALL && packet->n_bytes == len - sizeof(*packet);
}
