/* SPDX-License-Identifier: MIT */
/*
 * A process whose queues can be held off the GPU through the driver's debug interface (K2) or,
 * on request, its checkpoint interface (K1).
 *
 * Each target has a tracer thread of its own that seizes the process and makes every debug
 * call: older drivers accept them from no other thread, and one that waits for the hardware
 * must not keep the signals of another target. The seizure lasts as long as the attachment:
 * given up while queues are held, a second debugger could orphan the job for ever.
 *
 * The target's signals are passed on, its job control is left alone, nothing stops it.
 */
#ifndef GPREEMPT_GPU_KFD_TARGET_H
#define GPREEMPT_GPU_KFD_TARGET_H

#include "gpu/guard.h"
#include "gpu/kfd/kfd.h"

struct gkfd_target;

/* What stood in the way, for a message a person can act on. */
enum gkfd_why {
	GKFD_WHY_NONE,
	GKFD_WHY_SYSTEM, /* -errno says it all */
	GKFD_WHY_NO_PROCESS, /* -ESRCH */
	GKFD_WHY_NOT_A_LEADER, /* -EINVAL: a thread; other_pid is its process */
	GKFD_WHY_OWN_PROCESS, /* -EINVAL */
	GKFD_WHY_NO_KFD_PROCESS, /* -ESRCH: it runs but does not use the GPU driver */
	GKFD_WHY_NO_RIGHT, /* -EPERM: may not be traced by us */
	GKFD_WHY_TRACED, /* -EBUSY: other_pid traces it */
	GKFD_WHY_DEBUGGED, /* -EBUSY: somebody has a KFD debug session on it */
	GKFD_WHY_KFD_TOO_OLD, /* -EOPNOTSUPP: before 1.13 */
	GKFD_WHY_NO_DEBUG, /* -EOPNOTSUPP: this GPU or scheduler mode has no debug interface */
	GKFD_WHY_RUNTIME_TOO_OLD, /* -EOPNOTSUPP: it never enabled its runtime */
	GKFD_WHY_RUNTIME_BUSY, /* -EAGAIN: the driver could not activate debugging */
	GKFD_WHY_EXITED, /* -ESRCH: it ended meanwhile */
	GKFD_WHY_EXECED, /* -ESRCH: it runs another program now */
	GKFD_WHY_TAKEN, /* -EPERM: another debugger took the session over */
	GKFD_WHY_NO_SUCH_QUEUE, /* -EINVAL: queue_id */
	GKFD_WHY_DUPLICATE_QUEUE, /* -EINVAL: queue_id */
	GKFD_WHY_TOO_MANY_QUEUES, /* -EINVAL: more than the driver takes in one call */
	GKFD_WHY_RESTLESS, /* -EAGAIN: its queues came and went faster than they could be held */
	GKFD_WHY_PREEMPTION_FAILED, /* -EIO: queue_id could not be taken off the GPU */
	GKFD_WHY_ALREADY_HELD, /* -EALREADY: by us */
	GKFD_WHY_GUARD_DIED, /* -EOWNERDEAD: nothing is held without a guard */
	GKFD_WHY_LET_GO, /* -EAGAIN: it changed so that it could not be held any longer */
	GKFD_WHY_PAUSED, /* -EBUSY: somebody has paused it through the checkpoint interface */
	GKFD_WHY_NO_CRIU_RIGHT, /* -EACCES: no CAP_CHECKPOINT_RESTORE */
	GKFD_WHY_WHOLE_ONLY, /* -EINVAL: single queues were asked for, a pause takes them all */
	GKFD_WHY_NO_RING, /* -EOPNOTSUPP: without debugging its ring must be known: queue_id */
	GKFD_WHY_NO_VM, /* -EOPNOTSUPP: gpu_id has no address space of it (vms.h) */
	GKFD_WHY_TOO_LATE, /* -ETIMEDOUT: the hold would have been over before it began */
	GKFD_WHY_STAINED, /* -EUCLEAN: our death would not resume it any more (gkfd_stain) */
	GKFD_WHY_HELD, /* -EBUSY: other_pid holds it through the driver's extension */
	GKFD_WHY_FREEZER, /* -EPERM: whoever froze us would keep it held (gpu/freezer.h) */
	GKFD_WHY_LAPSED, /* -EAGAIN: nobody renewed the hold in time, and it was over (ext.h) */
};

#define GKFD_ALL_QUEUES UINT32_MAX

struct gkfd_failure {
	enum gkfd_why why;
	pid_t other_pid; /* 0: unknown */
	uint32_t queue_id; /* GKFD_ALL_QUEUES: of no one in particular */
	uint32_t gpu_id;
	const char *step; /* what was being done, for GKFD_WHY_SYSTEM; static text */
};

/* Once it has left ATTACHED a target never comes back: release it. Nothing is held then. */
enum gkfd_target_state {
	GKFD_TARGET_ATTACHED,
	GKFD_TARGET_EXITED,
	GKFD_TARGET_EXECED,
	GKFD_TARGET_TAKEN, /* by another debugger; what we held was resumed on the way out */
	GKFD_TARGET_GUARD_DIED,
	GKFD_TARGET_FAILED, /* a preemption failed: leave this GPU alone */
	GKFD_TARGET_LET_GO, /* its runtime or leader ended, or new queues could not be held */
};

enum gkfd_way {
	GKFD_BY_DEBUG,
	GKFD_BY_PAUSE, /* whole processes, needs CAP_CHECKPOINT_RESTORE; see pause.h */
};

/*
 * Attaches to @pid. @guard (borrowed, may be NULL) must be there before anything can be held;
 * it watches as long as the attachment lasts, because a target also stops when its tracer does.
 * Costs a runlist cycle on every GPU the process may use, and up to four at release.
 */
int gkfd_target_attach(struct gkfd *k, pid_t pid, struct guard *guard, struct gkfd_target **ret,
		       struct gkfd_failure *ret_failure);
/* Attaches for pausing instead: costs nothing, and needs the guard for any hold as well. */
int gkfd_target_attach_by(struct gkfd *k, pid_t pid, enum gkfd_way way, struct guard *guard,
			  struct gkfd_target **ret, struct gkfd_failure *ret_failure);
/* Resumes what is held, gives the session and the process back. Accepts NULL. */
void gkfd_target_release(struct gkfd_target *t);
void gkfd_target_releasep(struct gkfd_target **t);

pid_t gkfd_target_pid(const struct gkfd_target *t);
enum gkfd_target_state gkfd_target_state(struct gkfd_target *t);
bool gkfd_target_holds(struct gkfd_target *t); /* not any more after its longest time */
/* Which queues: how many, of which @max at most are written. */
int gkfd_target_held(struct gkfd_target *t, uint32_t *ret, size_t max);
int gkfd_target_fd(const struct gkfd_target *t); /* readable once the state has changed */

/* All queues, the driver's order (newest first), and acknowledges new ones; *ret is to be freed. */
int gkfd_target_snapshot(struct gkfd_target *t, struct kfd_queue_snapshot_entry **ret,
			 uint32_t *ret_n, struct gkfd_failure *ret_failure);

struct gkfd_hold_request {
	const uint32_t *ids; /* NULL: all queues, also those created while held */
	uint32_t n;
	uint32_t grace_kclk; /* clamped to 1..255 */
	uint64_t longest_ns; /* resumed by itself after so long; 0: no limit but the owner's */
	uint64_t since_ns; /* when that begins; 0: once held */
	/*
	 * In addition to what is held, of which nothing is asked again; all of it is resumed at
	 * the latest time any of its parts was held for. Else a second hold is refused.
	 */
	bool more;
};

struct gkfd_hold {
	uint32_t *ids; /* what this call took; borrowed until the next call */
	uint32_t n;
	uint64_t began_ns, done_ns; /* around the driver call, by the transport's clock */
};

/*
 * Takes the queues off the GPU in one batch: all of them or, with an error, none. A process
 * without queues is held with n = 0. What was held before stays held after an error, unless the
 * state has changed.
 */
int gkfd_target_hold(struct gkfd_target *t, const struct gkfd_hold_request *request,
		     struct gkfd_hold *ret, struct gkfd_failure *ret_failure);

struct gkfd_resumed {
	uint32_t n; /* queues running again; those that vanished are not counted */
	uint64_t began_ns, done_ns;
};

/* Nothing held: 0 with n = 0. On an error the session is given up, which resumes as well. */
int gkfd_target_resume(struct gkfd_target *t, struct gkfd_resumed *ret,
		       struct gkfd_failure *ret_failure);

/*
 * Ends a session whose owner is gone or was robbed of it: seizes @pid, takes the session over,
 * resumes all its queues and disables debugging. With GKFD_BY_PAUSE a pause is ended too. 1: there
 * was one; 0: there was nothing to recover. Refuses (-EBUSY) while somebody traces the process.
 */
int gkfd_target_recover(struct gkfd *k, pid_t pid, enum gkfd_way way,
			struct gkfd_failure *ret_failure);

#endif
