/* SPDX-License-Identifier: MIT */
/* A target (gpu/kfd/target.h) for who waits for what is asked of it. */
#ifndef GPREEMPT_TESTS_KFD_TRACEE_H
#define GPREEMPT_TESTS_KFD_TRACEE_H

#include "gpu/kfd/target.h"

struct tracee;

int tracee_attach(struct gkfd *k, pid_t pid, enum gkfd_way way, struct guard *guard,
		  struct tracee **ret, struct gkfd_failure *fail);
int tracee_hold(struct tracee *t, const struct gpu_hold *what, struct gkfd_moved *ret,
		struct gkfd_failure *fail);
int tracee_resume(struct tracee *t, struct gkfd_moved *ret, struct gkfd_failure *fail);
bool tracee_holds(struct tracee *t);
/* Readable once it is no longer attached, and why that is; GKFD_WHY_NONE: it is. */
int tracee_fd(const struct tracee *t);
enum gkfd_why tracee_end(struct tracee *t);
/* The same, waiting for it to end. */
enum gkfd_why tracee_await_end(struct tracee *t);
void tracee_release(struct tracee *t); /* accepts NULL */

#endif
