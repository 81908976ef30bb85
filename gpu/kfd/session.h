/* SPDX-License-Identifier: MIT */
/*
 * A session with one target, by the driver's debug interface or its checkpoint interface: the
 * order of driver calls that is safe, and what each answer means. Every call must be made on the
 * thread that traces the target's group leader; nothing here blocks but the driver.
 */
#ifndef GPREEMPT_GPU_KFD_SESSION_H
#define GPREEMPT_GPU_KFD_SESSION_H

#include "gpu/backend.h"
#include "gpu/kfd/failure.h"

/* What a scheduler subscribes to. No fault codes: the driver would keep them from the runtime. */
#define GKFD_SESSION_EVENTS \
	(KFD_EC_MASK(EC_PROCESS_RUNTIME) | KFD_EC_MASK(EC_QUEUE_NEW) | \
	 KFD_EC_MASK(EC_DEVICE_QUEUE_DELETE))

struct gkfd_session {
	struct gkfd *k;
	pid_t pid;
	bool holding;
	uint32_t *held;
	uint32_t n_held;

	/* by the debug interface */
	int event_fd[2]; /* the driver writes a byte per event to [1] */
	bool enabled;
	bool touched; /* a suspend was tried since all was resumed */
	bool tried; /* ... by the last hold */
	bool holds_all; /* queues created meanwhile are held too */
	uint32_t grace_kclk;

	/* by the checkpoint interface */
	int fd; /* borrowed from the target; -1: none */
};
#define GKFD_SESSION_NONE ((struct gkfd_session){ .event_fd = { -1, -1 }, .fd = -1 })

struct gkfd_moved { /* by a hold, or back by a resume */
	uint32_t n; /* queues; those that vanished are not counted */
	uint64_t began_ns, done_ns; /* around the driver call, by the transport's clock */
};

struct gkfd_session_ops {
	/* Opens one. Refuses a target that has one; leaves nothing behind on failure. */
	int (*begin)(struct gkfd_session *s, struct gkfd *k, pid_t pid, struct gkfd_failure *fail);
	/* Resumes and closes; errors cannot be helped any more and are passed over. */
	void (*end)(struct gkfd_session *s);
	/* Where the driver does not tell, the queues as sysfs has them. *ret is to be freed. */
	int (*snapshot)(struct gkfd_session *s, struct kfd_queue_snapshot_entry **ret,
			uint32_t *ret_n, struct gkfd_failure *fail);
	/*
	 * Takes the queues off the GPU in one batch, besides those that are: all of them or, with
	 * an error, none. The grace is clamped to 1..255.
	 */
	int (*hold)(struct gkfd_session *s, const struct gpu_hold *what, struct gkfd_moved *ret,
		    struct gkfd_failure *fail);
	/*
	 * Only @ids, as far as they are held, and what is created from now on is not held any more;
	 * NULL: everything. Nothing held: 0 with n = 0.
	 */
	int (*resume)(struct gkfd_session *s, const uint32_t *ids, uint32_t n,
		      struct gkfd_moved *ret, struct gkfd_failure *fail);
};

extern const struct gkfd_session_ops gkfd_session_by_debug, gkfd_session_by_pause;

/* The target is gone or runs another program: nothing to resume, only to forget. */
void gkfd_session_forget(struct gkfd_session *s);

/* ---- by the debug interface ---- */

/* -EOPNOTSUPP: not @pid, which has no address space (vms.c) on the GPU of @fail. */
int gkfd_vms_check(struct gkfd *k, pid_t pid, struct gkfd_failure *fail);
int gkfd_session_begin(struct gkfd_session *s, struct gkfd *k, pid_t pid,
		       struct gkfd_failure *fail);
/*
 * DISABLE, which resumes everything. The driver finds a process by a living thread of it: where
 * the leader alone has ended, by another one's id.
 */
int gkfd_session_disable(struct gkfd_session *s);
void gkfd_session_end(struct gkfd_session *s);
int gkfd_session_snapshot(struct gkfd_session *s, struct kfd_queue_snapshot_entry **ret,
			  uint32_t *ret_n, struct gkfd_failure *fail);
int gkfd_session_hold(struct gkfd_session *s, const struct gpu_hold *what, struct gkfd_moved *ret,
		      struct gkfd_failure *fail);
int gkfd_session_resume(struct gkfd_session *s, const uint32_t *ids, uint32_t n,
			struct gkfd_moved *ret, struct gkfd_failure *fail);

bool gkfd_session_holds(const struct gkfd_session *s, uint32_t id);
void gkfd_session_forget_held(struct gkfd_session *s); /* all of it runs */
/* Call when event_fd[0] is readable. An error means the hold could not be kept whole. */
int gkfd_session_service(struct gkfd_session *s, struct gkfd_failure *fail);
/* gkfd_target_recover() without the tracing. */
int gkfd_session_recover(struct gkfd *k, pid_t pid, struct gkfd_failure *fail);

/* ---- by the checkpoint interface ---- */

/* What a guard has to do on the session's descriptor when the holder dies. */
void gkfd_pause_undo(struct guard_undo *ret);
/* Ends a pause whose maker is gone. 1: there was one; 0: none, or no right to know. */
int gkfd_pause_recover(struct gkfd *k, pid_t pid, struct gkfd_failure *fail);

#endif
