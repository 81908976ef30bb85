/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The ioctl interface of the amdkfd extension (kernel/ext), on two devices:
 *
 *   /dev/kfd_gpreempt  queues of any process the caller has a right to;
 *   /dev/kfd           a process's own queues: pid is 0 or its own.
 *
 * A queue that is unmapped keeps its descriptor, its waves and its place in memory. Its ring can be
 * written and its doorbell rung: nothing runs until it is mapped again, and then all of it.
 *
 * Rights: CAP_SYS_ADMIN, or KFD_GPREEMPT_BIND for each target. An unmapping is a hold and belongs
 * to the open file it was made through: when that is closed, or its last owner dies, or the hold's
 * time is over, the queues are mapped again. A queue can be held by one file of /dev/kfd_gpreempt
 * and by its own process at a time, and runs when neither holds it.
 *
 * Hardware slots have no numbers here: the firmware gives them out anew with each run list.
 */
#ifndef GPREEMPT_ABI_KFD_GPREEMPT_H
#define GPREEMPT_ABI_KFD_GPREEMPT_H

#include "abi/types.h"
#ifdef __KERNEL__
#include <linux/ioctl.h>
#else
#include <sys/ioctl.h>
#endif

#define KFD_GPREEMPT_DEVICE "kfd_gpreempt"
#define KFD_GPREEMPT_VERSION 1

#define KFD_GPREEMPT_ALL_QUEUES UINT32_MAX /* also those created while the hold lasts */
#define KFD_GPREEMPT_ANY_GPU UINT32_MAX
#define KFD_GPREEMPT_MAX_ENTRIES 1024u
#define KFD_GPREEMPT_MAX_TICKETS 64u /* not collected, of one file */
#define KFD_GPREEMPT_MAX_HOLD_MS 60000u
#define KFD_GPREEMPT_DEFAULT_GRACE UINT32_MAX

/* kfd_gpreempt_version.abilities */
#define KFD_GPREEMPT_CAN_BATCH 0x1u
#define KFD_GPREEMPT_CAN_VICTIMS_ONLY 0x2u /* the machine's owner has allowed it */
#define KFD_GPREEMPT_IS_ADMIN 0x4u /* the caller needs to bind nobody */

struct kfd_gpreempt_version {
	uint32_t version; /* out, as all of it */
	uint32_t abilities;
	uint32_t max_entries;
	uint32_t max_hold_ms;
};
ABI_SIZE(struct kfd_gpreempt_version, 16);

/*
 * Whom a descriptor of /dev/kfd belongs to may from now on be named in calls on this file. To have
 * it proves the right: pidfd_getfd(2) asks for the one to trace. The descriptor can be closed at
 * once, and should be: as long as it is open a process that ended keeps its GPU memory. Only on
 * /dev/kfd_gpreempt. -EBADF: no such descriptor; -EINVAL: not one of /dev/kfd; -ESRCH: its process
 * has ended; -ENOSPC: too many.
 */
struct kfd_gpreempt_bind {
	int32_t fd;
	uint32_t pid; /* out: as the caller names it */
};
ABI_SIZE(struct kfd_gpreempt_bind, 8);

/*
 * One queue, or all of a process. Results:
 *   0            done, or as wanted before
 *   -ESRCH       no such process, it does not use the driver, or start_ticks is another's
 *   -EPERM       no right to it
 *   -ENOENT      it has no such queue (there)
 *   -EBUSY       another file holds it
 *   -EALREADY    to be mapped, but nobody holds it
 *   -EIO, -ETIME the preemption failed, or a reset is going on: leave this GPU alone
 * Of all queues of a process the first error counts; others may be off: "queues" tells how many.
 */
struct kfd_gpreempt_entry {
	uint32_t pid; /* in the caller's namespace; any thread's will do */
	uint32_t queue_id; /* or KFD_GPREEMPT_ALL_QUEUES */
	uint32_t gpu_id; /* or KFD_GPREEMPT_ANY_GPU */
	uint32_t queues; /* out: so many of them were taken off, or put on, by this call */
	uint64_t start_ticks; /* as in /proc/PID/stat, against reused pids; 0: not checked */
	int32_t result; /* out */
	uint32_t pad;
};
ABI_SIZE(struct kfd_gpreempt_entry, 32);

/* kfd_gpreempt_batch.flags */
#define KFD_GPREEMPT_ASYNC 0x1u /* return at once with a ticket */
/*
 * Only the victims leave the GPU, where that is allowed and possible: run lists that are
 * over-subscribed, queues with global wave sync, MES and mapping need no or another way. Without
 * it every queue of the GPU stands still for a moment. Off unless amdgpu.gpreempt_victims_only=1:
 * no firmware was ever seen doing it. -EOPNOTSUPP where it is off.
 */
#define KFD_GPREEMPT_VICTIMS_ONLY 0x2u
/* Of SELECTIVE_UNMAP. The first two are always so; the third does not exist and is refused. */
#define KFD_GPREEMPT_KEEP_MQD 0x10u
#define KFD_GPREEMPT_KEEP_STATE 0x20u
#define KFD_GPREEMPT_NO_CWSR 0x40u /* -EOPNOTSUPP: no packet asks for it; idle queues save none */

/*
 * Unmaps the first n_unmap entries and maps the n_map that follow; each GPU is cycled once, all
 * GPUs at the same time. Returns how many entries have the result 0; everything else is in the
 * entries. Negative only when nothing was tried:
 *   -EINVAL  too many or no entries, of a kind the call is not for, none of a kind it is for; an
 *            unknown flag, a field that must be 0, a grace or a time out of its range
 *   -ENOSPC  too many tickets; what has a timeout may become one, too
 *   -EOPNOTSUPP  tickets on /dev/kfd, which cannot be waited for
 *   -ETIME   it is still going on after timeout_ms: now it has a ticket
 */
struct kfd_gpreempt_batch {
	uint64_t entries; /* struct kfd_gpreempt_entry[n_unmap + n_map], in and out */
	uint32_t n_unmap;
	uint32_t n_map;
	uint32_t flags;
	uint32_t grace; /* for waves to end in, in 1000 GPU clocks: 1..255, or the default */
	uint32_t hold_ms; /* mapped again after so long, counted from this call; 0: the longest */
	uint32_t timeout_ms; /* to wait for the hardware; 0: as long as the driver does */
	uint64_t ticket; /* out: ASYNC, or -ETIME */
	uint32_t cycles; /* out: GPUs on which everything had to stand still */
	uint32_t victims; /* out: GPUs on which only the victims did, as ever with MES */
	uint64_t fence_ns; /* out: waited for hardware, on the slowest GPU */
	uint64_t took_ns; /* out: the call, up to when all was done */
};
ABI_SIZE(struct kfd_gpreempt_batch, 64);

/* PREEMPT_QUEUE, RESUME_QUEUE, SET_QUEUE_STATE: a batch of one. Its result is the call's. */
struct kfd_gpreempt_one {
	uint32_t pid;
	uint32_t queue_id;
	uint32_t gpu_id;
	uint32_t flags;
	uint32_t grace;
	uint32_t hold_ms;
	uint32_t timeout_ms;
	uint32_t state; /* SET_QUEUE_STATE; else 0 */
	uint64_t start_ticks;
	uint64_t ticket; /* out */
};
ABI_SIZE(struct kfd_gpreempt_one, 48);

#define KFD_GPREEMPT_INACTIVE 0u
#define KFD_GPREEMPT_ACTIVE 1u

/*
 * What became of a ticket. poll(2) tells POLLIN while one can be collected. -ENOENT: no such
 * ticket; -EAGAIN: not done yet, or none is; -ENOSPC: n is smaller than the batch was. Whatever
 * else goes wrong, it is collected. Not on /dev/kfd, as BIND: -EINVAL.
 */
struct kfd_gpreempt_collect {
	uint64_t ticket; /* 0: the oldest that is done; out: which */
	uint64_t entries; /* of kfd_gpreempt_batch, out */
	uint32_t n; /* out: how many */
	uint32_t done; /* out: entries with the result 0 */
	uint32_t cycles, victims; /* out */
	uint64_t fence_ns, took_ns; /* out */
};
ABI_SIZE(struct kfd_gpreempt_collect, 48);

/*
 * The brake: nothing of any process runs on the GPU, nothing that is created meanwhile either,
 * until every STOP was followed by a START of the same file, its time is over or the file is
 * closed. CAP_SYS_ADMIN, and not on /dev/kfd: -EPERM. -ENODEV: no such GPU; START: -EALREADY, not
 * stopped by this file.
 */
struct kfd_gpreempt_stop {
	uint32_t gpu_id;
	uint32_t hold_ms; /* 0: the longest; each STOP sets the time anew. START: 0 */
	uint32_t stops; /* out: of this file that are not undone */
	uint32_t pad;
};
ABI_SIZE(struct kfd_gpreempt_stop, 16);

/* kfd_gpreempt_hqd.flags */
#define KFD_GPREEMPT_HQD_OVERSUBSCRIBED 0x1u
#define KFD_GPREEMPT_HQD_HALTED 0x2u
#define KFD_GPREEMPT_HQD_HANG 0x4u
#define KFD_GPREEMPT_HQD_MES 0x8u
#define KFD_GPREEMPT_HQD_STOPPED 0x10u

/* The driver's own book-keeping: which slots the firmware uses nobody is told. */
struct kfd_gpreempt_hqd {
	uint32_t gpu_id; /* in */
	uint32_t total; /* slots for compute queues, on each XCC */
	uint32_t active_compute; /* compute queues on the run list */
	uint32_t active; /* all queues on it */
	uint32_t active_sum; /* the same, counted queue by queue */
	uint32_t queues; /* that exist */
	uint32_t processes;
	uint32_t gws;
	uint32_t held; /* queues that are off through these calls */
	uint32_t flags;
};
ABI_SIZE(struct kfd_gpreempt_hqd, 40);

/* kfd_gpreempt_queue.flags */
#define KFD_GPREEMPT_QUEUE_ACTIVE 0x1u /* on the run list */
#define KFD_GPREEMPT_QUEUE_EVICTED 0x2u
#define KFD_GPREEMPT_QUEUE_SUSPENDED 0x4u /* by a debugger */
#define KFD_GPREEMPT_QUEUE_HELD 0x8u /* through /dev/kfd_gpreempt */
#define KFD_GPREEMPT_QUEUE_HELD_SELF 0x10u /* through /dev/kfd */
#define KFD_GPREEMPT_QUEUE_STOPPED 0x20u /* with its GPU */
#define KFD_GPREEMPT_QUEUE_GWS 0x40u
#define KFD_GPREEMPT_QUEUE_MINE 0x80u /* held through this file */

struct kfd_gpreempt_queue {
	uint64_t ring_base, write_ptr, read_ptr, cwsr_base; /* addresses in its process */
	uint32_t queue_id, gpu_id;
	uint32_t ring_bytes;
	uint32_t type; /* KFD_IOC_QUEUE_TYPE_* */
	uint32_t cwsr_bytes; /* of one XCC */
	uint32_t priority; /* 0..15 */
	uint32_t percent;
	uint32_t flags;
	uint32_t preemptions; /* how often holds and stops of it began */
	uint32_t preempted_by; /* pid of who did so last, in the caller's namespace; 0: nobody */
	uint64_t held_ns; /* in all, up to now */
	uint64_t last_latency_ns, max_latency_ns; /* from the call to the hardware's answer */
};
ABI_SIZE(struct kfd_gpreempt_queue, 96);

/* The queues of a process, in no order; the same rights as for holding them. */
struct kfd_gpreempt_stats {
	uint32_t pid;
	uint32_t n; /* in: room, out: how many there are */
	uint64_t queues; /* struct kfd_gpreempt_queue[n], out */
	uint64_t start_ticks;
};
ABI_SIZE(struct kfd_gpreempt_stats, 24);

/* Numbers that neither the driver nor AMD's own packages use. */
#define KFD_GPREEMPT_COMMAND_START 0xC0
#define KFD_GPREEMPT_COMMAND_END 0xD0
#define KFD_GPREEMPT_IOWR(nr, type) _IOWR('K', nr, type)

#define KFD_GPREEMPT_GET_VERSION KFD_GPREEMPT_IOWR(0xC0, struct kfd_gpreempt_version)
#define KFD_GPREEMPT_BATCH_UNMAP_QUEUES KFD_GPREEMPT_IOWR(0xC1, struct kfd_gpreempt_batch)
#define KFD_GPREEMPT_FAST_REMAP KFD_GPREEMPT_IOWR(0xC2, struct kfd_gpreempt_batch)
#define KFD_GPREEMPT_SWITCH KFD_GPREEMPT_IOWR(0xC3, struct kfd_gpreempt_batch)
#define KFD_GPREEMPT_SELECTIVE_UNMAP KFD_GPREEMPT_IOWR(0xC4, struct kfd_gpreempt_batch)
#define KFD_GPREEMPT_PREEMPT_QUEUE KFD_GPREEMPT_IOWR(0xC5, struct kfd_gpreempt_one)
#define KFD_GPREEMPT_RESUME_QUEUE KFD_GPREEMPT_IOWR(0xC6, struct kfd_gpreempt_one)
#define KFD_GPREEMPT_SET_QUEUE_STATE KFD_GPREEMPT_IOWR(0xC7, struct kfd_gpreempt_one)
#define KFD_GPREEMPT_COLLECT KFD_GPREEMPT_IOWR(0xC8, struct kfd_gpreempt_collect)
#define KFD_GPREEMPT_STOP_SCHED KFD_GPREEMPT_IOWR(0xC9, struct kfd_gpreempt_stop)
#define KFD_GPREEMPT_START_SCHED KFD_GPREEMPT_IOWR(0xCA, struct kfd_gpreempt_stop)
#define KFD_GPREEMPT_GET_HQD_STATUS KFD_GPREEMPT_IOWR(0xCB, struct kfd_gpreempt_hqd)
#define KFD_GPREEMPT_GET_STATS KFD_GPREEMPT_IOWR(0xCC, struct kfd_gpreempt_stats)
#define KFD_GPREEMPT_BIND KFD_GPREEMPT_IOWR(0xCD, struct kfd_gpreempt_bind)

#endif
