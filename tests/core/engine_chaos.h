/* SPDX-License-Identifier: MIT */
/*
 * A world where anything happens to an engine: jobs come, go and change, counters say what they
 * like, reports come late, never or with errors, steps come early and late, and the policy may be
 * any, or mad. It keeps its own books of what the engine did.
 */
#ifndef GPREEMPT_TESTS_CORE_ENGINE_CHAOS_H
#define GPREEMPT_TESTS_CORE_ENGINE_CHAOS_H

#include <inttypes.h>

#include "tests/core/engine_rig.h"

#define CHAOS_JOBS 12
#define CHAOS_GPUS 3
#define CHAOS_QUEUES 4
#define CHAOS_BATCHES 4096

struct chaos_ticket {
	uint64_t number; /* 0: none outstanding */
	uint64_t comes_ns; /* GPOL_NEVER: never */
	uint64_t took_ns;
};

struct chaos_job {
	bool alive, gone;
	uint32_t id;
	struct engine_job_config config;
	struct engine_sample queues[CHAOS_QUEUES];
	uint32_t n_queues;
	bool held; /* the last that was asked for is a suspend */
	bool waits; /* held with work */
	uint64_t held_since_ns, deadline_ns, wait_since_ns;
	struct chaos_ticket suspend, resume;
};

struct chaos_gpu {
	uint32_t slots;
	bool tripped;
	uint64_t batch_ns[CHAOS_BATCHES]; /* of suspends */
	size_t batches;
};

struct chaos {
	uint64_t seed, random;
	struct engine_config config;
	uint32_t gpus;
	struct chaos_gpu gpu[CHAOS_GPUS];
	struct chaos_job jobs[CHAOS_JOBS];
	uint64_t fails_permille, lost_permille;
	void *memory;
	struct engine *e;
	uint64_t now_ns;
	struct engine_action actions[64];
	struct engine_step step; /* the last */
	uint64_t suspends, resumes;
};

void chaos_open(struct chaos *c, uint64_t seed);
void chaos_close(struct chaos *c);
/* Something happens, then there is a step; the books are not yet changed by it. */
void chaos_go_on(struct chaos *c);
struct chaos_job *chaos_find(struct chaos *c, uint32_t id);
uint64_t chaos_random(struct chaos *c, uint64_t below);

#endif
