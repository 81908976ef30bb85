/* SPDX-License-Identifier: MIT */
/* A GPU with jobs that come, work and go at random, and one that does what a policy says. */
#ifndef GPREEMPT_TESTS_CORE_WORLD_H
#define GPREEMPT_TESTS_CORE_WORLD_H

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/policy/gpol.h"

#define WORLD_JOBS 9
#define WORLD_MS 1000000ull

struct world_rules {
	uint32_t offline, online; /* at most so many of each; at least one offline */
	bool bounds; /* jobs have a bound to their wait */
	bool odd; /* figures may be anything */
	bool steady; /* offline jobs always have work */
	bool disobedient; /* not everything is done that the policy says */
};

struct world {
	const struct gpol_ops *ops;
	uint64_t seed, random;
	struct world_rules rules;
	struct gpol_params params;
	struct gpol_gpu gpu;
	uint64_t now_ns, again_ns;
	struct gpol_job jobs[WORLD_JOBS];
	uint32_t n;
	uint64_t state[GPOL_STATE_BYTES / sizeof(uint64_t)];
	struct gpol_verdict verdicts[WORLD_JOBS];
	uint64_t waiting_ns[WORLD_JOBS]; /* held with work, at a stretch */
	uint64_t on_ns[WORLD_JOBS]; /* not held, at a stretch */
};

uint64_t world_random(struct world *w, uint64_t below);
void world_init(struct world *w, const struct gpol_ops *ops, const struct world_rules *rules,
		uint64_t seed);
struct gpol_input world_input(const struct world *w);
/* Time passes until the policy wants to be asked or something happens, at most @longest_ns. */
void world_pass(struct world *w, uint64_t longest_ns);
void world_happen(struct world *w); /* something happens, or not */
void world_ask(struct world *w);
void world_obey(struct world *w);

/* It needs the GPU and may be held: beside urgent work it has to be. */
bool world_is_victim(const struct world *w, const struct gpol_job *job);

#define world_check(w, what) world_check_at(w, what, #what, __FILE__, __LINE__)
void world_check_at(const struct world *w, bool what, const char *text, const char *file, int line);

/* What @test finds is run again by the program with the seed as its argument. */
void world_seeds(uint64_t n, void (*test)(uint64_t seed));
void world_arguments(int argc, char **argv);

#endif
