/* SPDX-License-Identifier: MIT */
/* A context of the library on a played NVIDIA driver, with one job. */
#ifndef GPREEMPT_TESTS_LIB_NVRM_RIG_H
#define GPREEMPT_TESTS_LIB_NVRM_RIG_H

#include "lib/internal.h"
#include "tests/nvrm/fake_rm.h"

#define JOB 4711
#define OTHER 4712
#define COMPUTE_GROUP 0x5c000015u /* of the job */
#define COMPUTE 0x15u /* as the library calls it */

struct lib_rig {
	struct fake_rm *fake;
	struct gpreempt_ctx *ctx;
	uint32_t job; /* its client */
	size_t fds; /* open before the test */
};

int lib_rig_setup(void **state);
/* Also fails the test when something was not given back, or was done that must never be. */
int lib_rig_teardown(void **state);
/* Fails the test unless it can be attached. */
struct gpreempt_process *lib_rig_attach(struct lib_rig *r, pid_t pid, unsigned int flags);
enum gpreempt_error_kind lib_rig_kind(const struct lib_rig *r); /* of the last failure */
void lib_rig_cannot(const struct lib_rig *r, int result); /* -EOPNOTSUPP, with a line and a hint */

/* Until it is so; for ever is told by the test's end. */
#define LIB_RIG_WAIT(r, condition) \
	while (!(condition)) \
	gpreempt_wait((r)->ctx, NULL, 0, NSEC_PER_MSEC)

#endif
