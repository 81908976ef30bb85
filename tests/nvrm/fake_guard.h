/* SPDX-License-Identifier: MIT */
/*
 * A guard without a process: it keeps what it is entrusted with, checks it as the real one does,
 * and undoes it on the fake driver when the test says that the holder is dead.
 */
#ifndef GPREEMPT_TESTS_NVRM_FAKE_GUARD_H
#define GPREEMPT_TESTS_NVRM_FAKE_GUARD_H

#include "gpu/guard.h"
#include "tests/nvrm/fake_rm.h"

#define FAKE_GUARD_SLOTS 16

struct fake_slot {
	bool armed, late; /* late: disarmed after the holder's death */
	pid_t target;
	int fd, pidfd; /* copies; -1: nothing was entrusted */
	struct guard_undo undo;
};

struct guard {
	struct fake_rm *fake;
	struct nvrm *n;
	bool dead, frozen;
	unsigned int entrusted; /* how often */
	struct fake_slot slots[FAKE_GUARD_SLOTS];
};

struct guard *fake_guard_new(struct fake_rm *fake, struct nvrm *n);
void fake_guard_free(struct guard *g);
/* The holder dies now: what it still does reaches nobody. @guard: as a fault's arg. */
void fake_guard_freeze(void *guard);
void fake_guard_thaw(struct guard *g); /* the test goes on with what is left of it */
/* Makes the calls that are due, as if the holder had just been killed. */
void fake_guard_undo(struct guard *g);
size_t fake_guard_armed(const struct guard *g);
size_t fake_guard_due(const struct guard *g); /* calls */

#endif
