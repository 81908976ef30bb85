/* SPDX-License-Identifier: MIT */
/* What stood in the way: for programs, and as a line for people with what to do about it. */
#ifndef GPREEMPT_GPU_KFD_FAILURE_H
#define GPREEMPT_GPU_KFD_FAILURE_H

#include "gpu/kfd/kfd.h"
#include "gpu/why.h"

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
	GKFD_WHY_NO_VM, /* -EOPNOTSUPP: gpu_id has no address space of it (vms.c) */
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

/* Fills @fail and returns @error, for a chain of returns. */
int gkfd_fail(struct gkfd_failure *fail, int error, enum gkfd_why why, const char *step);

/* What an -errno means, of a call that has several. */
struct gkfd_meaning {
	int error;
	enum gkfd_why why;
	int told; /* in its place; 0: the same */
};

/* The same by the row of @error; the last row has none. One without a row is GKFD_WHY_SYSTEM. */
int gkfd_fail_by(struct gkfd_failure *fail, int error, const struct gkfd_meaning *meanings,
		 const char *step);

/*
 * @error: the -errno that came with it. Looks into /proc for names; @k NULL: does not, as that can
 * hang.
 */
void gkfd_failure_describe(struct gkfd *k, int error, pid_t pid, const struct gkfd_failure *f,
			   struct gpu_why *ret);

#endif
