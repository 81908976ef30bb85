/* SPDX-License-Identifier: MIT */
/* What the tests of one process on the fake have in common. */
#ifndef GPREEMPT_TESTS_NVRM_RIG_H
#define GPREEMPT_TESTS_NVRM_RIG_H

#include "gpu/nvrm/process.h"
#include "tests/nvrm/fake_rm.h"

#define COMPUTE_GROUP 0x5c000015u /* of the first context */
#define SUBDEVICE 0x5c000003u
#define JOB 4711
#define OTHER 4712

struct rig {
	struct fake_rm *fake;
	struct nvrm *n;
	struct nvrm_failure failure;
	size_t fds; /* open before the test */
};

int rig_setup(void **state);
/* Also fails the test when something was not given back, or was done that must never be. */
int rig_teardown(void **state);

/* Fails the test unless the process can be opened. */
struct nvrm_process *rig_open(struct rig *r, pid_t pid);
/* Nothing of ours is left: no descriptor, nobody off, nobody's memory kept. */
void rig_nothing_left(struct rig *r);

/*
 * Runs @scene once undisturbed and then once for every call it made, on a new fake each time,
 * with @fault hitting that call; of the many that look at objects only some. After each nothing
 * may be left.
 */
struct rig_scene {
	void (*prepare)(struct rig *r);
	void (*play)(struct rig *r);
	void (*check)(struct rig *r); /* may be NULL */
};

void rig_try_all(const struct rig_scene *scene, const struct fake_fault *fault);

#endif
