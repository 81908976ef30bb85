/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "tests/model/test_ext_rig.h"
#include "util/macros.h"

uint64_t ext_open(struct rig *r, struct model_task who)
{
	uint64_t file = 0;

	assert_int_equal(model_ext_open(r->m, who, &file), 0);
	return file;
}

uint64_t ext_rig(struct rig *r, uint32_t n)
{
	rig_target(r, n);
	return ext_open(r, r->daemon);
}

int ext_ioctl(struct rig *r, uint64_t file, unsigned long request, void *arg)
{
	return model_ext_ioctl(r->m, r->daemon, file, request, arg);
}

struct kfd_gpreempt_entry ext_entry(pid_t pid, uint32_t queue_id)
{
	return (struct kfd_gpreempt_entry){
		.pid = (uint32_t)pid,
		.queue_id = queue_id,
		.gpu_id = KFD_GPREEMPT_ANY_GPU,
	};
}

struct kfd_gpreempt_batch ext_batch(struct kfd_gpreempt_entry *entries, uint32_t n_unmap,
				    uint32_t n_map)
{
	return (struct kfd_gpreempt_batch){
		.entries = (uintptr_t)entries,
		.n_unmap = n_unmap,
		.n_map = n_map,
		.grace = KFD_GPREEMPT_DEFAULT_GRACE,
	};
}

struct kfd_gpreempt_one ext_one(pid_t pid, uint32_t queue_id)
{
	return (struct kfd_gpreempt_one){
		.pid = (uint32_t)pid,
		.queue_id = queue_id,
		.gpu_id = KFD_GPREEMPT_ANY_GPU,
		.grace = KFD_GPREEMPT_DEFAULT_GRACE,
	};
}

int ext_unmap(struct rig *r, uint64_t file, pid_t pid, uint32_t queue_id, uint32_t *ret_queues)
{
	struct kfd_gpreempt_entry e = ext_entry(pid, queue_id);
	struct kfd_gpreempt_batch b = ext_batch(&e, 1, 0);
	int n = ext_ioctl(r, file, KFD_GPREEMPT_BATCH_UNMAP_QUEUES, &b);

	if (ret_queues)
		*ret_queues = e.queues;
	return n < 0 ? n : e.result;
}

int ext_map(struct rig *r, uint64_t file, pid_t pid, uint32_t queue_id, uint32_t *ret_queues)
{
	struct kfd_gpreempt_entry e = ext_entry(pid, queue_id);
	struct kfd_gpreempt_batch b = ext_batch(&e, 0, 1);
	int n = ext_ioctl(r, file, KFD_GPREEMPT_FAST_REMAP, &b);

	if (ret_queues)
		*ret_queues = e.queues;
	return n < 0 ? n : e.result;
}

int ext_hold_ms(struct rig *r, uint64_t file, pid_t pid, uint32_t queue_id, uint32_t hold_ms)
{
	struct kfd_gpreempt_entry e = ext_entry(pid, queue_id);
	struct kfd_gpreempt_batch b = ext_batch(&e, 1, 0);
	int n;

	b.hold_ms = hold_ms;
	n = ext_ioctl(r, file, KFD_GPREEMPT_BATCH_UNMAP_QUEUES, &b);
	return n < 0 ? n : e.result;
}

static int own(struct rig *r, pid_t pid, uint32_t queue_id, unsigned long request)
{
	struct kfd_gpreempt_one one = ext_one(0, queue_id);

	return rig_ioctl(r, (struct model_task){ pid, pid }, request, &one);
}

int ext_own_unmap(struct rig *r, pid_t pid, uint32_t queue_id)
{
	return own(r, pid, queue_id, KFD_GPREEMPT_PREEMPT_QUEUE);
}

int ext_own_map(struct rig *r, pid_t pid, uint32_t queue_id)
{
	return own(r, pid, queue_id, KFD_GPREEMPT_RESUME_QUEUE);
}

struct kfd_gpreempt_queue ext_stats(struct rig *r, uint64_t file, pid_t pid, uint32_t queue_id)
{
	struct kfd_gpreempt_queue queues[64];
	struct kfd_gpreempt_stats a = {
		.pid = (uint32_t)pid,
		.n = ARRAY_SIZE(queues),
		.queues = (uintptr_t)queues,
	};

	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_GET_STATS, &a), 0);
	for (uint32_t i = 0; i < a.n; i++)
		if (queues[i].queue_id == queue_id)
			return queues[i];
	fail_msg("no queue %u of %d", queue_id, pid);
	return queues[0];
}

struct kfd_gpreempt_hqd ext_hqd(struct rig *r, uint64_t file, uint32_t gpu_index)
{
	struct kfd_gpreempt_hqd a = { .gpu_id = model_gpu_id(r->m, gpu_index) };

	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_GET_HQD_STATUS, &a), 0);
	return a;
}
