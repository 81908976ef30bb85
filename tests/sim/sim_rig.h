/* SPDX-License-Identifier: MIT */
/* Scenarios made in code, a stand-in for the engine and one for the trace. */
#ifndef GPREEMPT_TESTS_SIM_SIM_RIG_H
#define GPREEMPT_TESTS_SIM_SIM_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/engine/engine.h"
#include "sim/sim.h"
#include "util/macros.h"

#define USEC NSEC_PER_USEC
#define MSEC NSEC_PER_MSEC
#define SEC NSEC_PER_SEC
#define RIG_JOBS 8

/* One model a job, numbered alike. */
struct sim_rig {
	struct sim_scenario s;
	struct sim_job jobs[RIG_JOBS];
	struct sim_model models[RIG_JOBS];
	struct sim_costs costs;
};

/* An empty scenario of one second on one MI100, at the costs of an extension; looks every 5 ms. */
void sim_rig_init(struct sim_rig *rig);
/*
 * A process whose request is @kernels kernels of @kernel_ns that fill the GPU, one workgroup
 * after the other; continuous. What is to be different is for the caller to set.
 */
struct sim_job *sim_rig_job(struct sim_rig *rig, enum job_class class, uint32_t kernels,
			    uint64_t kernel_ns);
struct sim_model *sim_rig_model(struct sim_rig *rig, const struct sim_job *job);
/* Runs it; asserts that it could. */
struct sim_result sim_rig_run(const struct sim_rig *rig, enum sim_mode mode, uint64_t seed);

/* ---- the stand-in for the engine (stub_engine.c) ---- */

enum stub_way {
	STUB_PREEMPTS, /* holds offline jobs while an online one has work or announced it */
	STUB_NEVER_LETS_GO, /* holds every offline job that has work, for ever */
	STUB_PARKS, /* suspends queue 1 of every job at first sight */
	STUB_IDLE,
};

struct stub_look {
	uint64_t at_ns;
	size_t n;
	bool all;
};

struct stub {
	enum stub_way way;
	uint64_t hold_ns; /* deadline of its holds */
	uint64_t interval_ns;
	/* what it was told */
	uint64_t hints, last_hint_at_ns;
	uint64_t reports, last_took_ns, last_suspend_took_ns, last_resume_took_ns;
	uint64_t steps;
	struct engine_config config;
	struct engine_sample seen[64]; /* of the last step */
	size_t n_seen;
	struct stub_look looks[8192];
	size_t n_looks;
};

extern struct stub stub;
void stub_reset(enum stub_way way);

/* ---- the stand-in for the trace (stub_trace.c) ---- */

enum heard_kind { HEARD_WORK, HEARD_PREEMPTION, HEARD_REQUEST };

struct heard {
	enum heard_kind kind;
	uint32_t gpu, process, because;
	uint64_t request, from_ns, started_ns, to_ns;
};

extern struct heard heard[4096];
extern size_t n_heard;

#endif
