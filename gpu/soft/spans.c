/* SPDX-License-Identifier: MIT */
#include "gpu/soft/spans.h"

#include <errno.h>

#include "abi/kfd.h"
#include "abi/kfd_gpreempt.h"
#include "util/macros.h"

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

static struct pointed by_batch(const struct kfd_gpreempt_batch *a)
{
	return (struct pointed){ a->entries, ((uint64_t)a->n_unmap + a->n_map) *
						     sizeof(struct kfd_gpreempt_entry) };
}

static struct pointed by_collect(const struct kfd_gpreempt_collect *a)
{
	return (struct pointed){ a->entries, a->n * sizeof(struct kfd_gpreempt_entry) };
}

static struct pointed by_stats(const struct kfd_gpreempt_stats *a)
{
	return (struct pointed){ a->queues, a->n * sizeof(struct kfd_gpreempt_queue) };
}

/* False: there is no such call. */
static bool find_pointed(unsigned long request, const void *arg, struct pointed *ret)
{
	switch (request) {
	case AMDKFD_IOC_DBG_TRAP:
		*ret = by_trap(arg);
		return true;
	case KFD_GPREEMPT_BATCH_UNMAP_QUEUES:
	case KFD_GPREEMPT_FAST_REMAP:
	case KFD_GPREEMPT_SWITCH:
	case KFD_GPREEMPT_SELECTIVE_UNMAP:
		*ret = by_batch(arg);
		return true;
	case KFD_GPREEMPT_COLLECT:
		*ret = by_collect(arg);
		return true;
	case KFD_GPREEMPT_GET_STATS:
		*ret = by_stats(arg);
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

int soft_spans(unsigned long request, const void *arg, struct device_span ret[DEVICE_IOCTL_SPANS])
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
