/* SPDX-License-Identifier: MIT */
#include "gpu/soft/wire.h"

#include <errno.h>
#include <string.h>

#include "abi/kfd.h"
#include "abi/kfd_gpreempt.h"
#include "util/macros.h"

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

static size_t bytes_of(uint32_t type, bool answer)
{
	static const struct {
		size_t request, answer;
	} bytes[] = {
		[DEVICE_HELLO] = { sizeof(struct device_header), sizeof(struct device_welcome) },
		[DEVICE_QUEUE] = { sizeof(struct device_queue), sizeof(struct device_queue) },
		[DEVICE_SUBMIT] = { sizeof(struct device_submit), sizeof(struct device_done) },
		[DEVICE_STATS] = { sizeof(struct device_stats), sizeof(struct device_stats) },
		[DEVICE_ERROR] = { 0, sizeof(struct device_error) },
	};

	if (type >= ARRAY_SIZE(bytes))
		return 0;
	return answer ? bytes[type].answer : bytes[type].request;
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
	if (!is_ours(&packet->h, len) || bytes_of(packet->h.type, false) != len)
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
	if (!is_ours(&packet->h, len) || bytes_of(packet->h.type, true) != len)
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

/* ---- what they point to ---- */

struct pointed { /* what an argument points to */
	uint64_t addr, bytes;
};

static struct pointed by_trap(const struct kfd_ioctl_dbg_trap_args *a)
{
	switch (a->op) {
	case KFD_IOC_DBG_TRAP_ENABLE:
		return (struct pointed){ a->enable.rinfo_ptr, a->enable.rinfo_size };
	case KFD_IOC_DBG_TRAP_SUSPEND_QUEUES:
		return (struct pointed){ a->suspend_queues.queue_array_ptr,
					 a->suspend_queues.num_queues * sizeof(uint32_t) };
	case KFD_IOC_DBG_TRAP_RESUME_QUEUES:
		return (struct pointed){ a->resume_queues.queue_array_ptr,
					 a->resume_queues.num_queues * sizeof(uint32_t) };
	case KFD_IOC_DBG_TRAP_QUERY_EXCEPTION_INFO:
		return (struct pointed){ a->query_exception_info.info_ptr,
					 a->query_exception_info.info_size };
	case KFD_IOC_DBG_TRAP_GET_QUEUE_SNAPSHOT:
		return (struct pointed){ a->queue_snapshot.snapshot_buf_ptr,
					 (uint64_t)a->queue_snapshot.num_queues *
						 a->queue_snapshot.entry_size };
	case KFD_IOC_DBG_TRAP_GET_DEVICE_SNAPSHOT:
		return (struct pointed){ a->device_snapshot.snapshot_buf_ptr,
					 (uint64_t)a->device_snapshot.num_devices *
						 a->device_snapshot.entry_size };
	default:
		return (struct pointed){ 0 };
	}
}

/* False: there is no such call. */
static bool find_pointed(unsigned long request, const void *arg, struct pointed *ret)
{
	const struct kfd_gpreempt_batch *batch = arg;
	const struct kfd_gpreempt_collect *collect = arg;
	const struct kfd_gpreempt_stats *stats = arg;
	size_t each = sizeof(struct kfd_gpreempt_entry);

	switch (request) {
	case AMDKFD_IOC_DBG_TRAP:
		*ret = by_trap(arg);
		return true;
	case KFD_GPREEMPT_BATCH_UNMAP_QUEUES:
	case KFD_GPREEMPT_FAST_REMAP:
	case KFD_GPREEMPT_SWITCH:
	case KFD_GPREEMPT_SELECTIVE_UNMAP:
		*ret = (struct pointed){ batch->entries,
					 ((uint64_t)batch->n_unmap + batch->n_map) * each };
		return true;
	case KFD_GPREEMPT_COLLECT:
		*ret = (struct pointed){ collect->entries, collect->n * each };
		return true;
	case KFD_GPREEMPT_GET_STATS:
		*ret = (struct pointed){ stats->queues,
					 stats->n * sizeof(struct kfd_gpreempt_queue) };
		return true;
	case AMDKFD_IOC_GET_VERSION:
	case AMDKFD_IOC_CREATE_QUEUE:
	case AMDKFD_IOC_DESTROY_QUEUE:
	case AMDKFD_IOC_UPDATE_QUEUE:
	case AMDKFD_IOC_RUNTIME_ENABLE:
	case AMDKFD_IOC_CRIU_OP:
		return true;
	default: /* the extension's others point nowhere */
		return _IOC_TYPE(request) == _IOC_TYPE(KFD_GPREEMPT_GET_VERSION) &&
		       _IOC_NR(request) >= KFD_GPREEMPT_COMMAND_START &&
		       _IOC_NR(request) < KFD_GPREEMPT_COMMAND_END;
	}
}

int device_spans(unsigned long request, const void *arg, struct device_span ret[DEVICE_IOCTL_SPANS])
{
	struct pointed p = { 0 };

	if (!find_pointed(request, arg, &p))
		return -ENOTTY;
	if (p.bytes > DEVICE_MAX_CALL_BYTES)
		return -E2BIG;
	ret[0] = (struct device_span){ (uintptr_t)arg, _IOC_SIZE(request), 0 };
	ret[1] = (struct device_span){ p.addr, (uint32_t)p.bytes, 0 };
	return p.addr && p.bytes ? 2 : 1;
}
