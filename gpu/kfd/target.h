/* SPDX-License-Identifier: MIT */
/*
 * A process whose queues can be held off the GPU through the driver's debug interface (K2) or,
 * on request, its checkpoint interface (K1).
 *
 * Each target has a tracer thread of its own that seizes the process and makes every debug
 * call: older drivers accept them from no other thread, and one that waits for the hardware
 * must not keep the signals of another target. The seizure lasts as long as the attachment:
 * given up while queues are held, a second debugger could orphan the job for ever. The thread is
 * one of the owner's process, or a process of its own (holder.h).
 *
 * The target's signals are passed on, its job control is left alone, nothing stops it.
 */
#ifndef GPREEMPT_GPU_KFD_TARGET_H
#define GPREEMPT_GPU_KFD_TARGET_H

#include "gpu/guard.h"
#include "gpu/kfd/procs.h"
#include "gpu/kfd/session.h"
#include "gpu/kfd/tracer.h"

enum gkfd_way {
	GKFD_BY_DEBUG,
	GKFD_BY_PAUSE, /* whole processes, needs CAP_CHECKPOINT_RESTORE; see pause.c */
};

/* For whoever it belongs to; called on the tracer thread. */
struct target_hooks {
	/* It is no longer attached, by itself; told once, and after what is being done is. */
	void (*ended)(void *user, const struct gpu_done *done);
	void (*gone)(void *user); /* after target_leave(): the last thing the thread does */

	/* Descriptors to watch, besides the target's own; both may be NULL. */
	size_t (*watch)(void *user, struct pollfd *fds);
	void (*turn)(void *user, const struct pollfd *fds);
};

struct target_options {
	pid_t pid;
	uint64_t start_ticks; /* of the process that is meant; 0: whichever has the pid */
	enum gkfd_way way;
	/*
	 * Borrowed, may be NULL. It must be there before anything can be held; it watches as long
	 * as the attachment lasts, because a target also stops when its tracer does.
	 */
	struct guard *guard;
	const struct target_hooks *hooks;
	void *user; /* the hooks' */
};

struct gkfd_target {
	struct gkfd *k;
	struct target_options with;
	const struct gkfd_session_ops *ops;
	struct tracer *tracer;
	bool holds; /* as the session; read by any thread */

	/* the tracer thread's */
	struct gkfd_proc_ident ident;
	bool attached; /* it was, whatever has become of it */
	int error; /* why it is not, or not any more; 0: it is */
	struct gkfd_failure failure; /* the same */
	bool busy, told; /* of its end */
	struct gkfd_session session;
	int slot; /* in the guard's page, -1: none */
	uint64_t resume_at_ns; /* what is held, at the latest; UINT64_MAX: no limit */
	bool guard_gone;
	bool vms_checked; /* once it has them all it keeps them */
	bool vanished; /* the driver knew no such process at the last look */
};

/*
 * A target that nobody is attached to yet, with a tracer that has no thread yet. Its first order
 * has to be one that attaches.
 */
int target_new(struct gkfd *k, const struct target_options *options, struct gkfd_target **ret);
/* Begins what target_free() does, which need not wait once the hook has told. */
void target_leave(struct gkfd_target *t);
/* Resumes what is held, gives the session and the process back. Accepts NULL. */
void target_free(struct gkfd_target *t);

bool target_holds(struct gkfd_target *t); /* not any more after its longest time */
/* Which queues: how many, of which @max at most are written. Waits for the tracer, as the next. */
int target_held(struct gkfd_target *t, uint32_t *ret, size_t max);
/* All queues, the driver's order (newest first), and acknowledges new ones; *ret is to be freed. */
int gkfd_target_snapshot(struct gkfd_target *t, struct kfd_queue_snapshot_entry **ret,
			 uint32_t *ret_n, struct gkfd_failure *ret_failure);

/*
 * Ends a session whose owner is gone or was robbed of it: seizes @pid, takes the session over,
 * resumes all its queues and disables debugging. With GKFD_BY_PAUSE a pause is ended too. 1: there
 * was one; 0: there was nothing to recover. Refuses (-EBUSY) while somebody traces the process.
 */
int gkfd_target_recover(struct gkfd *k, pid_t pid, enum gkfd_way way,
			struct gkfd_failure *ret_failure);

/* ---- orders; on the tracer thread, as all that follows ---- */

/*
 * Does what @done has the verb of, and fills in *done all but target and cookie. @what: of
 * GPU_SUSPEND and GPU_RESUME. target_settle() when that is told.
 */
void target_run(struct gkfd_target *t, const struct gpu_hold *what, uint64_t called_ns,
		struct gpu_done *done);
/* Tells of its end, if there was one meanwhile. */
void target_settle(struct gkfd_target *t);

/* By debug: a runlist cycle on every GPU the process may use, and up to four at release. */
int target_attach_here(struct gkfd_target *t, struct gkfd_failure *fail);
/*
 * In addition to what is held, of which nothing is asked again; all of it is resumed at the latest
 * time any of its parts was held for. What was held before stays held after an error, unless the
 * target has ended. A process without queues is held with n = 0.
 */
int target_hold_here(struct gkfd_target *t, const struct gpu_hold *what, uint64_t called_ns,
		     struct gkfd_moved *ret, struct gkfd_failure *fail);
/* @ids NULL: everything. On an error the session is given up, which resumes as well. */
int target_resume_here(struct gkfd_target *t, const uint32_t *ids, uint32_t n,
		       struct gkfd_moved *ret, struct gkfd_failure *fail);

/* ---- find.c ---- */

/* Checks that @pid is a process, and no thread of one. */
int gkfd_leader_find(struct gkfd *k, pid_t pid, struct gkfd_proc_ident *ret,
		     struct gkfd_failure *fail);
/* Checks that @pid is a process we could attach to, and opens the device, which must have @cap. */
int gkfd_target_find(struct gkfd *k, pid_t pid, enum gkfd_cap cap, struct gkfd_proc_ident *ret,
		     struct gkfd_failure *fail);
/* ptrace(2) says -EPERM for no right and for "already traced"; /proc knows which. */
int gkfd_seize_failed(struct gkfd *k, pid_t pid, int error, struct gkfd_failure *fail);

/* ---- between target.c and target_watch.c ---- */

/* It is no longer attached, for a reason that lasts. */
void target_end(struct gkfd_target *t, enum gkfd_why why);
/* The same, if this is such a reason: is there any use in trying again? */
void target_note_failure(struct gkfd_target *t, const struct gkfd_failure *fail);
void target_publish(struct gkfd_target *t); /* after what may have begun or ended a hold */
void target_beat(struct gkfd_target *t, uint64_t allow_ns);
void target_disarm(struct gkfd_target *t);

extern const struct tracer_ops target_tracer_ops; /* their user is the target */

#endif
