/* SPDX-License-Identifier: MIT */
/*
 * A debug session on one target: the order of driver calls that is safe, and what each answer
 * means. Every call must be made on the thread that traces the target's group leader; nothing
 * here blocks but the driver.
 */
#ifndef GPREEMPT_GPU_KFD_SESSION_H
#define GPREEMPT_GPU_KFD_SESSION_H

#include "gpu/kfd/target.h"

/* What a scheduler subscribes to. No fault codes: the driver would keep them from the runtime. */
#define GKFD_SESSION_EVENTS \
	(KFD_EC_MASK(EC_PROCESS_RUNTIME) | KFD_EC_MASK(EC_QUEUE_NEW) | \
	 KFD_EC_MASK(EC_DEVICE_QUEUE_DELETE))

struct gkfd_session {
	struct gkfd *k;
	pid_t pid;
	int event_fd[2]; /* the driver writes a byte per event to [1] */
	bool enabled;
	bool touched; /* a suspend was tried since all was resumed */
	bool tried; /* ... by the last hold */
	bool holding;
	bool holds_all; /* queues created meanwhile are held too */
	uint32_t grace_kclk;
	uint32_t *held;
	uint32_t n_held;
};

/* Opens the session. Refuses a target that has one; leaves nothing behind on failure. */
int gkfd_session_begin(struct gkfd_session *s, struct gkfd *k, pid_t pid,
		       struct gkfd_failure *fail);
/*
 * DISABLE, which resumes everything. The driver finds a process by a living thread of it: where
 * the leader alone has ended, by another one's id.
 */
int gkfd_session_disable(struct gkfd_session *s);
/* Resumes and closes; errors cannot be helped any more and are passed over. */
void gkfd_session_end(struct gkfd_session *s);
/* The target is gone or runs another program: nothing to resume, only to forget. */
void gkfd_session_forget(struct gkfd_session *s);

int gkfd_session_snapshot(struct gkfd_session *s, struct kfd_queue_snapshot_entry **ret,
			  uint32_t *ret_n, struct gkfd_failure *fail);
int gkfd_session_hold(struct gkfd_session *s, const struct gkfd_hold_request *request,
		      struct gkfd_hold *ret, struct gkfd_failure *fail);
int gkfd_session_resume(struct gkfd_session *s, struct gkfd_resumed *ret,
			struct gkfd_failure *fail);
/* Only these, as far as they are held; what is created from now on is not held any more. */
int gkfd_session_resume_some(struct gkfd_session *s, const uint32_t *ids, uint32_t n,
			     struct gkfd_resumed *ret, struct gkfd_failure *fail);

bool gkfd_session_holds(const struct gkfd_session *s, uint32_t id);

/* Call when event_fd[0] is readable. An error means the hold could not be kept whole. */
int gkfd_session_service(struct gkfd_session *s, struct gkfd_failure *fail);

/* gkfd_target_recover() without the tracing. */
int gkfd_session_recover(struct gkfd *k, pid_t pid, struct gkfd_failure *fail);

/* Fills @fail and returns @error, for a chain of returns. */
int gkfd_fail(struct gkfd_failure *fail, int error, enum gkfd_why why, const char *step);

#endif
