/* SPDX-License-Identifier: MIT */
/* A target as its own files see it: target.c (for the owner), target_watch.c, target_way.c. */
#ifndef GPREEMPT_GPU_KFD_TARGET_INTERNAL_H
#define GPREEMPT_GPU_KFD_TARGET_INTERNAL_H

#include "gpu/kfd/pause.h"
#include "gpu/kfd/procs.h"
#include "gpu/kfd/session.h"
#include "gpu/kfd/target.h"
#include "gpu/kfd/tracer.h"

/* For whoever does not wait: what happens by itself. Called on the tracer thread. */
struct target_hooks {
	void (*state)(void *user); /* it has left ATTACHED */
	void (*gone)(void *user); /* after target_leave(): the last thing the thread does */
};

struct gkfd_target {
	struct gkfd *k;
	struct gkfd_proc_ident ident;
	uint64_t start_ticks; /* of the process that is meant; 0: whichever has the pid */
	struct guard *guard;
	struct tracer *tracer;
	int state_fd;
	int state; /* enum gkfd_target_state; read by any thread */
	bool holds; /* as holding(); read by any thread */
	enum gkfd_way way;
	const struct target_hooks *hooks; /* NULL: none */
	void *hooks_user;

	/* the tracer thread's */
	struct gkfd_failure last; /* why it left ATTACHED, where that is known */
	struct gkfd_session session; /* GKFD_BY_DEBUG */
	struct gkfd_pause pause; /* GKFD_BY_PAUSE */
	int slot; /* in the guard's page, -1: none */
	uint64_t resume_at_ns; /* what is held, at the latest; UINT64_MAX: no limit */
	bool guard_gone;
	bool vms_checked; /* once it has them all it keeps them */
	bool vanished; /* the driver knew no such process at the last look */
};

/* ---- without waiting ---- */

struct target_options {
	pid_t pid;
	uint64_t start_ticks; /* as in struct gkfd_target */
	enum gkfd_way way;
	struct guard *guard;
	const struct target_hooks *hooks; /* NULL: somebody waits */
	void *user; /* the hooks' */
	/* What its tracer calls, and with what; NULL: target_tracer_ops, for the target. */
	const struct tracer_ops *tracer_ops;
	void *tracer_user;
};

/*
 * A target that nobody is attached to yet, with a tracer that has no thread yet. Its first order
 * has to be one that attaches.
 */
int target_new(struct gkfd *k, const struct target_options *options, struct gkfd_target **ret);
/* Begins what gkfd_target_release() does, which need not wait once the hook has told. */
void target_leave(struct gkfd_target *t);

/* For orders, on the tracer thread. */
int target_attach_here(struct gkfd_target *t, struct gkfd_failure *fail);
int target_hold_here(struct gkfd_target *t, const struct gkfd_hold_request *request,
		     struct gkfd_hold *ret, struct gkfd_failure *fail);
/* @ids NULL: everything. */
int target_resume_here(struct gkfd_target *t, const uint32_t *ids, uint32_t n,
		       struct gkfd_resumed *ret, struct gkfd_failure *fail);
int target_check_here(struct gkfd_target *t, struct gkfd_failure *fail); /* still attached? */

/* ---- target.c; all but the first on the tracer thread ---- */

void target_set_state(struct gkfd_target *t, enum gkfd_target_state state);
/* After a failure the state says whether there is any use in trying again. */
void target_note_failure(struct gkfd_target *t, const struct gkfd_failure *fail);
bool target_holding(const struct gkfd_target *t);
void target_publish(struct gkfd_target *t); /* after what may have begun or ended a hold */
void target_beat(struct gkfd_target *t, uint64_t allow_ns);
void target_disarm(struct gkfd_target *t);

/* ---- target_watch.c ---- */

extern const struct tracer_ops target_tracer_ops; /* their user is the target */

/* ---- target_way.c: by debug or by pause; on the tracer thread ---- */

int way_begin(struct gkfd_target *t, struct gkfd_failure *fail);
void way_end(struct gkfd_target *t);
void way_forget(struct gkfd_target *t);
int way_hold(struct gkfd_target *t, const struct gkfd_hold_request *request, struct gkfd_hold *ret,
	     struct gkfd_failure *fail);
/* @ids NULL: everything. */
int way_resume(struct gkfd_target *t, const uint32_t *ids, uint32_t n, struct gkfd_resumed *ret,
	       struct gkfd_failure *fail);
int way_snapshot(struct gkfd_target *t, struct kfd_queue_snapshot_entry **ret, uint32_t *ret_n,
		 struct gkfd_failure *fail);

#endif
