/* SPDX-License-Identifier: MIT */
/* A gkfd_failure as a line for people, and what to do about it. */
#ifndef GPREEMPT_GPU_KFD_FAILURE_TEXT_H
#define GPREEMPT_GPU_KFD_FAILURE_TEXT_H

#include "gpu/kfd/target.h"

enum gkfd_failure_kind {
	GKFD_FAILED_USAGE, /* the caller asked for what cannot be */
	GKFD_FAILED_ABSENT, /* no such process or queue */
	GKFD_FAILED_REFUSED, /* no right, or not possible here */
	GKFD_FAILED_OTHERWISE,
};

struct gkfd_failure_text {
	enum gkfd_failure_kind kind;
	char message[256];
	char hint[256]; /* may be empty */
};

/*
 * @error: the -errno that came with it. Looks into /proc for names; @k NULL: does not, as that can
 * hang.
 */
void gkfd_failure_describe(struct gkfd *k, int error, pid_t pid, const struct gkfd_failure *f,
			   struct gkfd_failure_text *ret);

#endif
