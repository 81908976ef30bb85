/* SPDX-License-Identifier: MIT */
/* Short names for what tests do with the extension, all through DAEMON's file unless told. */
#ifndef GPREEMPT_TESTS_MODEL_TEST_EXT_RIG_H
#define GPREEMPT_TESTS_MODEL_TEST_EXT_RIG_H

#include "abi/kfd_gpreempt.h"
#include "tests/model/test_driver_rig.h"

#define ALL KFD_GPREEMPT_ALL_QUEUES

/* TARGET with @n queues on GPU 0, and a file of DAEMON. */
uint64_t ext_rig(struct rig *r, uint32_t n);
uint64_t ext_open(struct rig *r, struct model_task who);
int ext_ioctl(struct rig *r, uint64_t file, unsigned long request, void *arg);

struct kfd_gpreempt_entry ext_entry(pid_t pid, uint32_t queue_id);
struct kfd_gpreempt_batch ext_batch(struct kfd_gpreempt_entry *entries, uint32_t n_unmap,
				    uint32_t n_map);
struct kfd_gpreempt_one ext_one(pid_t pid, uint32_t queue_id);

/* One entry on any GPU: the result, or -errno of the call. *ret_queues may be NULL. */
int ext_unmap(struct rig *r, uint64_t file, pid_t pid, uint32_t queue_id, uint32_t *ret_queues);
int ext_map(struct rig *r, uint64_t file, pid_t pid, uint32_t queue_id, uint32_t *ret_queues);
int ext_hold_ms(struct rig *r, uint64_t file, pid_t pid, uint32_t queue_id, uint32_t hold_ms);
/* On @pid's own descriptor of /dev/kfd. */
int ext_own_unmap(struct rig *r, pid_t pid, uint32_t queue_id);
int ext_own_map(struct rig *r, pid_t pid, uint32_t queue_id);

struct kfd_gpreempt_queue ext_stats(struct rig *r, uint64_t file, pid_t pid, uint32_t queue_id);
struct kfd_gpreempt_hqd ext_hqd(struct rig *r, uint64_t file, uint32_t gpu_index);

#endif
