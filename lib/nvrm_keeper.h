/* SPDX-License-Identifier: MIT */
/*
 * The thread beside a context's attachments to processes on NVIDIA GPUs. It keeps the guard's
 * deadlines pushed on while this process is well; closes what was borrowed of a process as soon as
 * that has ended, because its GPU memory stays until then; lets go when the guard has died or the
 * time of a hold is over; and takes the contexts off that a held process creates meanwhile.
 */
#ifndef GPREEMPT_LIB_NVRM_KEEPER_H
#define GPREEMPT_LIB_NVRM_KEEPER_H

#include "lib/nvrm.h"

/* Everything but the descriptor is to be touched between keeper_enter() and keeper_leave(). */
struct nv_attached {
	LIST_ENTRY(nv_attached) link;
	struct nvrm_process *process; /* NULL: it is over, and error and failure say why */
	int error;
	struct nvrm_failure failure;
	int over_fd; /* readable when it is over */
	bool whole; /* all its groups are held, those to come too */
	uint64_t resume_at_ns; /* UINT64_MAX: never by itself */
};

int keeper_new(struct nvrm *n, struct nv_keeper **ret);
/* Nothing may be attached any more. Accepts NULL. */
void keeper_free(struct nv_keeper *k);

/* Around every call of the driver that concerns attached processes. */
void keeper_enter(struct nv_keeper *k);
void keeper_leave(struct nv_keeper *k);

/* Between those two. */
int keeper_add(struct nv_keeper *k, struct nv_attached *a);
void keeper_remove(struct nv_keeper *k, struct nv_attached *a); /* and closes its process */
/* Also if nobody has noticed yet that the process has ended. 0, or why it is over. */
int keeper_check(struct nv_keeper *k, struct nv_attached *a);
/* A hold was given an end. */
void keeper_wake(struct nv_keeper *k);
/* Gives it up: lets go of the process, and closes it. */
void keeper_give_up(struct nv_keeper *k, struct nv_attached *a, int error,
		    const struct nvrm_failure *failure);

#endif
