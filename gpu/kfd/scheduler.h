/* SPDX-License-Identifier: MIT */
/* How the scheduler inside the driver is, which the extension has (abi/kfd_gpreempt.h). */
#ifndef GPREEMPT_GPU_KFD_SCHEDULER_H
#define GPREEMPT_GPU_KFD_SCHEDULER_H

#include "abi/kfd_gpreempt.h"
#include "gpu/kfd/kfd.h"

/* What was read of a GPU: kernel/ext's debugfs file may come to tell more, or less. */
enum { /* as the library's GPREEMPT_KERNEL_* */
       GKFD_SCHEDULER_SLOTS = 1 << 0,
       GKFD_SCHEDULER_POLICY = 1 << 1,
       GKFD_SCHEDULER_INTERVALS = 1 << 2,
       GKFD_SCHEDULER_TURN = 1 << 3,
       GKFD_SCHEDULER_HOLD_MAX = 1 << 4,
       GKFD_SCHEDULER_RESERVED = 1 << 5,
       GKFD_SCHEDULER_LOOKS = 1 << 6,
       GKFD_SCHEDULER_ACTIONS = 1 << 7,
       GKFD_SCHEDULER_JOBS = 1 << 8,
};

struct gkfd_scheduled { /* of one GPU */
	uint32_t gpu_id;
	bool on; /* off: of the rest only slots and queues are known */
	uint32_t known; /* GKFD_SCHEDULER_*: all figures of a line */
	uint64_t slots, queues, held_queues;
	char policy[KFD_GPREEMPT_POLICY_NAME + 1];
	uint64_t interval_us, critical_interval_us;
	uint64_t turn_ms;
	uint64_t hold_max_ms;
	uint64_t online_permille, offline_permille;
	uint64_t looks, busy_ns;
	uint64_t holds, resumes, failures, tripped;
	uint64_t online, offline, held; /* jobs */
};

struct gkfd_schedulers {
	size_t n;
	struct gkfd_scheduled *gpus;
};

/* Root only, and absent without debugfs: -EACCES, -EPERM, -ENOENT as the file system says. */
int gkfd_schedulers_read(struct gkfd *k, struct gkfd_schedulers *ret);
/* -EBADMSG with *ret_line (from 1) set. */
int gkfd_schedulers_parse(const char *text, size_t len, struct gkfd_schedulers *ret,
			  uint32_t *ret_line);
void gkfd_schedulers_done(struct gkfd_schedulers *s);

#endif
