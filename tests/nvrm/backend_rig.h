/* SPDX-License-Identifier: MIT */
/* A backend on the fake. Its clock is the machine's: the worker waits with that. */
#ifndef GPREEMPT_TESTS_NVRM_BACKEND_RIG_H
#define GPREEMPT_TESTS_NVRM_BACKEND_RIG_H

#include "gpu/nvrm/backend.h"
#include "tests/nvrm/fake_rm.h"

#define JOB 4711
#define OTHER 4712

#define GROUPS 4u /* of a context, and their channels */
#define HELD 1u /* of them: those that only copy stay on */
#define CHANNELS 20u
#define HELD_CHANNELS 8u

struct bed {
	struct fake_rm *fake;
	struct gpu_backend *b;
	struct guard *guard;
	size_t fds; /* open before */
	struct gpu_watch *watch; /* a test's own, for what it awaits of it */
};

/* With one job; @guarded: with a guard of its own. */
void bed_make(struct bed *bed, bool guarded);
void bed_make_later(struct bed *bed); /* questions about processes are answered later */
/* Fails the test if something is left, or was done that must never be. */
void bed_unmake(struct bed *bed);
int bed_setup(void **state);
int bed_setup_guarded(void **state);
int bed_setup_later(void **state);
int bed_teardown(void **state);

const struct gpu_ops *bed_ops(const struct bed *bed);
struct gpu_target *bed_attach(struct bed *bed, pid_t pid);
struct gpu_done bed_next(struct bed *bed);
bool bed_is_quiet(struct bed *bed);
void bed_expect(struct bed *bed, enum gpu_verb verb, int result, uint32_t queues);
size_t bed_disables(struct bed *bed); /* calls of the driver */

/* Until it is so; fails the test if it does not become so. */
void bed_await(struct bed *bed, bool (*is_so)(struct bed *bed, size_t what), size_t what);
bool bed_time_is(struct bed *bed, size_t at_ns);
/* Asks until that is the answer. */
void bed_await_refresh(struct bed *bed, struct gpu_watch *w, int answer);
/* As many channels of the job, of the other one, are off. */
bool bed_job_off(struct bed *bed, size_t channels);
bool bed_other_off(struct bed *bed, size_t channels);

#endif
