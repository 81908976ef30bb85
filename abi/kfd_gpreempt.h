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
#define KFD_GPREEMPT_SCHEDULES 0x8u /* the scheduler in the driver is on, on some GPU */

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
 * else goes wrong, it is collected.
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
 * closed. CAP_SYS_ADMIN. -ENODEV: no such GPU; START: -EALREADY, not stopped by this file.
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
#define KFD_GPREEMPT_QUEUE_SCHEDULED 0x100u /* held by the scheduler in the driver */

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
	uint32_t preempted_by; /* pid of who holds or stopped it, else of who did last; 0: nobody */
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

/*
 * ---- the scheduler in the driver ----
 *
 * It does for a GPU what gpreemptd does, with the same policies: looks at the queues of processes
 * that have a class, and holds offline ones while online ones need the GPU. What it holds ends by
 * itself after hold_max_ms, whatever becomes of it. Processes without a class it leaves alone.
 */

/* As enum job_class. */
#define KFD_GPREEMPT_NO_CLASS 0u
#define KFD_GPREEMPT_ONLINE 1u
#define KFD_GPREEMPT_OFFLINE 2u

/* kfd_gpreempt_class.flags */
#define KFD_GPREEMPT_CLASS_CRITICAL 0x1u /* latency-critical: looked at more often */

/*
 * The class of a process and of queues it creates later, or of one queue. ONLINE, any figure that
 * is more than others have, and what an administrator has set before need CAP_SYS_ADMIN: -EPERM.
 * -ENOENT: no such queue.
 */
struct kfd_gpreempt_class {
	uint32_t pid;
	uint32_t queue_id; /* or KFD_GPREEMPT_ALL_QUEUES */
	uint32_t class;
	uint32_t flags;
	uint32_t priority; /* within its class, 0..255; more is more urgent */
	uint32_t weight; /* of an offline process under the policy "share"; 0 counts as 1 */
	uint64_t target_ns; /* within which a burst should be done; 0: none */
	uint64_t wait_bound_ns; /* it has work and is held no longer; 0: hold_max_ms */
	uint64_t start_ticks;
};
ABI_SIZE(struct kfd_gpreempt_class, 48);

/* kfd_gpreempt_policy.flags */
#define KFD_GPREEMPT_LAZY_ACTIVATION 0x1u /* no slot before there is work */
#define KFD_GPREEMPT_AUTO_DEACTIVATION 0x2u /* and none while there is none */
#define KFD_GPREEMPT_PREEMPTIBLE 0x4u /* the default of offline processes */

/* Of a process as a whole: to have some of its queues on and others off could make it wait for
 * itself. The same rights as for its class.
 */
struct kfd_gpreempt_policy {
	uint32_t pid;
	uint32_t flags;
	uint64_t start_ticks;
};
ABI_SIZE(struct kfd_gpreempt_policy, 16);

/* Work of an online process is about to come; as its class allows. -EPERM: it is not online. */
struct kfd_gpreempt_hint {
	uint32_t pid;
	uint32_t gpu_id; /* or KFD_GPREEMPT_ANY_GPU */
	uint64_t ahead_ns; /* in so long */
	uint64_t for_ns; /* it takes; 0: not known */
	uint64_t start_ticks;
};
ABI_SIZE(struct kfd_gpreempt_hint, 32);

/* kfd_gpreempt_monitor.flags */
#define KFD_GPREEMPT_MONITOR_ON 0x1u
#define KFD_GPREEMPT_MONITOR_KICK 0x2u /* look now; nothing else is changed */
#define KFD_GPREEMPT_MONITOR_REARM 0x4u /* after a failed preemption; nothing else is changed */

#define KFD_GPREEMPT_POLICY_NAME 16
#define KFD_GPREEMPT_MIN_INTERVAL_US 100u
#define KFD_GPREEMPT_MAX_INTERVAL_US 1000000u

/*
 * The scheduler of a GPU: CAP_SYS_ADMIN. Stays as it is set until it is set anew or the module
 * goes. 0 in a figure: its default. -ENODEV; -EINVAL: no such policy, a figure out of its range;
 * -ENOENT: KICK or REARM of one that is off. Of several GPUs the first error ends it.
 */
struct kfd_gpreempt_monitor {
	uint32_t gpu_id; /* or KFD_GPREEMPT_ANY_GPU: all */
	uint32_t flags;
	char policy[KFD_GPREEMPT_POLICY_NAME]; /* "priority", ...; "": the default */
	uint32_t interval_us; /* between looks, while something could be preempted: 100..1000000 */
	uint32_t critical_interval_us; /* where a latency-critical process is */
	uint32_t turn_ms; /* of the policies that take turns */
	uint32_t hold_max_ms; /* 1..60000 */
	uint32_t cycles_per_s; /* of the run list, at most */
	uint32_t pad;
};
ABI_SIZE(struct kfd_gpreempt_monitor, 48);

/*
 * Slots kept for online queues, and how many offline ones may have at most: processes beyond that
 * wait for their turn. CAP_SYS_ADMIN. Both 0: nothing is kept, nobody waits. -ENOENT: the scheduler
 * is off; else as SET_MONITOR.
 */
struct kfd_gpreempt_reservation {
	uint32_t gpu_id; /* or KFD_GPREEMPT_ANY_GPU */
	uint32_t online_permille;
	uint32_t offline_permille;
	uint32_t low_water; /* free slots below which idle offline processes lose theirs */
};
ABI_SIZE(struct kfd_gpreempt_reservation, 16);

/* What read(2) of /dev/kfd_gpreempt gives after SUBSCRIBE, whole ones only; CAP_SYS_ADMIN. */
enum kfd_gpreempt_event_kind {
	KFD_GPREEMPT_EVENT_LOST, /* count: so many before this one found no room */
	KFD_GPREEMPT_EVENT_HELD, /* pid was taken off, for by_pid; took_ns */
	KFD_GPREEMPT_EVENT_RESUMED, /* pid was put on; took_ns: was off for so long */
	KFD_GPREEMPT_EVENT_TRIPPED, /* a preemption failed: the scheduler leaves this GPU alone */
};

struct kfd_gpreempt_event {
	uint64_t at_ns; /* CLOCK_MONOTONIC */
	uint32_t kind;
	uint32_t gpu_id;
	uint32_t pid, by_pid; /* as seen from the first pid namespace */
	uint32_t count;
	uint32_t pad;
	uint64_t took_ns;
};
ABI_SIZE(struct kfd_gpreempt_event, 40);

struct kfd_gpreempt_subscribe {
	uint32_t on;
	uint32_t pad;
};
ABI_SIZE(struct kfd_gpreempt_subscribe, 8);

/* Numbers that neither the driver nor AMD's own packages use; /dev/kfd has those up to 0xCF. */
#define KFD_GPREEMPT_COMMAND_START 0xC0
#define KFD_GPREEMPT_OWN_COMMAND_END 0xD0
#define KFD_GPREEMPT_COMMAND_END 0xE0
#define KFD_GPREEMPT_IOWR(nr, type) _IOWR('K', nr, type)

#define KFD_GPREEMPT_GET_VERSION KFD_GPREEMPT_IOWR(0xC0, struct kfd_gpreempt_version)
#define KFD_GPREEMPT_BATCH_UNMAP_QUEUES KFD_GPREEMPT_IOWR(0xC1, struct kfd_gpreempt_batch)
#define KFD_GPREEMPT_FAST_REMAP KFD_GPREEMPT_IOWR(0xC2, struct kfd_gpreempt_batch)
#define KFD_GPREEMPT_SWITCH KFD_GPREEMPT_IOWR(0xC3, struct kfd_gpreempt_batch)
#define KFD_GPREEMPT_SELECTIVE_UNMAP KFD_GPREEMPT_IOWR(0xC4, struct kfd_gpreempt_batch)
#define KFD_GPREEMPT_PREEMPT_QUEUE KFD_GPREEMPT_IOWR(0xC5, struct kfd_gpreempt_one)
#define KFD_GPREEMPT_RESUME_QUEUE KFD_GPREEMPT_IOWR(0xC6, struct kfd_gpreempt_one)
#define KFD_GPREEMPT_SET_QUEUE_STATE KFD_GPREEMPT_IOWR(0xC7, struct kfd_gpreempt_one)
#define KFD_GPREEMPT_GET_HQD_STATUS KFD_GPREEMPT_IOWR(0xC8, struct kfd_gpreempt_hqd)
#define KFD_GPREEMPT_GET_STATS KFD_GPREEMPT_IOWR(0xC9, struct kfd_gpreempt_stats)
#define KFD_GPREEMPT_SET_CLASS KFD_GPREEMPT_IOWR(0xCA, struct kfd_gpreempt_class)
#define KFD_GPREEMPT_SET_QUEUE_POLICY KFD_GPREEMPT_IOWR(0xCB, struct kfd_gpreempt_policy)
#define KFD_GPREEMPT_HINT KFD_GPREEMPT_IOWR(0xCC, struct kfd_gpreempt_hint)

#define KFD_GPREEMPT_BIND KFD_GPREEMPT_IOWR(0xD0, struct kfd_gpreempt_bind)
#define KFD_GPREEMPT_COLLECT KFD_GPREEMPT_IOWR(0xD1, struct kfd_gpreempt_collect)
#define KFD_GPREEMPT_STOP_SCHED KFD_GPREEMPT_IOWR(0xD2, struct kfd_gpreempt_stop)
#define KFD_GPREEMPT_START_SCHED KFD_GPREEMPT_IOWR(0xD3, struct kfd_gpreempt_stop)
#define KFD_GPREEMPT_SET_MONITOR KFD_GPREEMPT_IOWR(0xD4, struct kfd_gpreempt_monitor)
#define KFD_GPREEMPT_SET_HQD_RESERVATION KFD_GPREEMPT_IOWR(0xD5, struct kfd_gpreempt_reservation)
#define KFD_GPREEMPT_SUBSCRIBE KFD_GPREEMPT_IOWR(0xD6, struct kfd_gpreempt_subscribe)

#endif
