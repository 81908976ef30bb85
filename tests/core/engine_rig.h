/* SPDX-License-Identifier: MIT */
/* An engine with samples to change, a clock to move and reports that come at once or not. */
#ifndef GPREEMPT_TESTS_CORE_ENGINE_RIG_H
#define GPREEMPT_TESTS_CORE_ENGINE_RIG_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/engine/engine.h"

#define US 1000ull
#define MS (1000 * US)
#define SEC (1000 * MS)

#define RIG_SAMPLES 512
#define RIG_GPU 100 /* the first; others follow */

struct rig {
	void *memory;
	struct engine *e;
	uint64_t now_ns;
	struct engine_sample samples[RIG_SAMPLES];
	size_t n_samples;
	bool silent; /* no reports */
	int result; /* of reports */
	struct engine_action actions[RIG_SAMPLES];
	size_t n_actions, max;
	uint64_t wake_ns;
};

/* Hold all they are shown, and never change their mind. */
extern const struct gpol_ops rig_hold_all;
/* Holds offline jobs while an online one has work or is announced; nothing lingers. */
extern const struct gpol_ops rig_urgent_first;
/* Holds nobody, but is not none. */
extern const struct gpol_ops rig_hold_none;

/* The defaults with one of these policies, no hysteresis and no budget. */
struct engine_config rig_config(const struct gpol_ops *policy);
/* With @gpus GPUs of @slots slots each. */
void rig_open(struct rig *r, const struct engine_config *config, uint32_t gpus, uint32_t slots);
void rig_close(struct rig *r);

uint32_t rig_add(struct rig *r, const struct engine_job_config *config, uint32_t queues);
uint32_t rig_online(struct rig *r);
uint32_t rig_offline(struct rig *r); /* preemptible, one queue, with work */
/* All its queues have work, or none. */
void rig_work(struct rig *r, uint32_t job, bool work);
void rig_remove(struct rig *r, uint32_t job);

/* Time passes, then a step; reports follow it at once. Returns how many actions there were. */
size_t rig_step(struct rig *r, uint64_t passes_ns);
/* Steps whenever the engine wants to be woken. */
void rig_run(struct rig *r, uint64_t passes_ns);
/* The same, until the engine does this to the job; fails when that takes forever. */
void rig_run_until(struct rig *r, enum engine_verb verb, uint32_t job);
bool rig_did(const struct rig *r, enum engine_verb verb, uint32_t job);
size_t rig_count(const struct rig *r, enum engine_verb verb);
bool rig_holds(const struct rig *r, uint32_t job);
struct engine_job_stats rig_job(const struct rig *r, uint32_t job);
struct engine_gpu_stats rig_gpu(const struct rig *r, uint32_t gpu);
void rig_report(struct rig *r, int result);

#endif
