/* SPDX-License-Identifier: MIT */
/*
 * Runs a scenario in virtual time: the engine of core/ on GPUs that share themselves among queues
 * as the model of gpu/model does, kernel by kernel, only quicker: rates instead of workgroups. A
 * test keeps the two within sight of each other. All figures are modelled. Same scenario, options
 * and seed: the same answer, byte for byte.
 */
#ifndef GPREEMPT_SIM_SIM_H
#define GPREEMPT_SIM_SIM_H

#include "sim/scenario.h"
#include "util/curve.h"

/* How the GPU is shared. */
enum sim_mode {
	SIM_ENGINE, /* ours */
	SIM_ALONE, /* only the online jobs, same arrivals */
	SIM_NONE, /* everybody at once, no preemption */
	SIM_STREAM_PRIORITY, /* what waits of online jobs starts first; nobody is displaced */
	SIM_SEQUENTIAL, /* one request at a time, online first, each to its end */
};

struct sim_options {
	enum sim_mode mode;
	const struct gpol_ops *policy; /* SIM_ENGINE; NULL: the scenario's */
	uint64_t seed;
	struct sim_trace *trace; /* or NULL */
};

/* Between two looks at online jobs that have work, where the begin of it is told. */
uint64_t sim_look_period_ns(const struct sim_detection *d);

/* What a scenario assumes of seeing work; durations. */
struct sim_sight {
	bool any; /* else only announcements tell of it */
	uint64_t begin_ns; /* until its begin is known; with looks only, at most */
	uint64_t look_ns; /* between two looks while there is some */
};
struct sim_sight sim_sight(const struct sim_scenario *s);
/* "costs of kfd-stock; work seen after 20us (watch), ...; nothing announced" */
#define SIM_ASSUMES 320
const char *sim_assumes(const struct sim_scenario *s, char buf[SIM_ASSUMES]);

struct sim_quantiles {
	uint64_t n;
	uint64_t min_ns, mean_ns, p50_ns, p95_ns, p99_ns, p999_ns, max_ns;
};

struct sim_job_result {
	const struct sim_job *job; /* of the scenario, as it is by now */
	uint64_t announce_ns; /* as it was in the run */
	uint64_t submitted, done; /* requests */
	uint64_t backlog; /* fell due by the end and are not done: given up, waiting, under way */
	uint64_t longest_wait_ns; /* offline: held with work, and on too briefly in between */
	uint64_t gpu_ns; /* what its work so far would have taken alone */
	uint64_t preempted;
	bool starved; /* waited past its bound, and what looking and acting takes */
	bool overloaded; /* its requests come faster than they are done: it is never idle */
};

struct sim_result {
	struct sim_quantiles online; /* from submission (after preparation) until done */
	uint64_t online_curve_ns[CURVE_POINTS]; /* the same; all 0 where there was none */
	struct sim_quantiles preemption; /* from the decision until the victims are off */
	struct sim_quantiles inversion; /* urgent work waits while lesser work runs */
	uint64_t suspend_ns; /* what one takes, by the costs, of who has most to save */
	uint64_t preemptions, cycles, engine_steps;
	uint64_t work_ns; /* what was done of all requests, as it takes alone */
	uint64_t offline_work_ns;
	/* Slots times time, and of it with a queue that had work; both 0: processes take turns. */
	uint64_t slot_ns, slot_used_ns;
	uint64_t online_slot_wait_max_ns; /* an online queue with work and no slot */
	bool overloaded; /* one of the jobs is */
	uint32_t starved; /* offline jobs past their bound */
	struct sim_job_result *jobs; /* one a process */
	size_t n_jobs;
};

/* NULL: the scenario names no such table. */
const struct sim_costs *sim_costs_of(const struct sim_scenario *s);
/* Who gets the GPU unless options say otherwise. NULL: no such policy. */
const struct gpol_ops *sim_scenario_policy(const struct sim_scenario *s);

/* -ENOMEM, -EINVAL: the scenario names no such chip, costs or policy. */
int sim_run(const struct sim_scenario *s, const struct sim_options *options,
	    struct sim_result *ret);
void sim_result_done(struct sim_result *r);

/* ---- traces ---- */

struct sim_trace;

/* A file in the Trace Event format. NULL: errno. */
struct sim_trace *sim_trace_open(const char *path, const struct sim_scenario *s);
/* 0 or -errno of the first write that failed. */
int sim_trace_close(struct sim_trace *t);

/* For the run: @process names a track, numbered from 0 in the order of sim_result.jobs. */
void sim_trace_work(struct sim_trace *t, uint32_t gpu, uint32_t process, uint64_t from_ns,
		    uint64_t to_ns, uint64_t request);
void sim_trace_preemption(struct sim_trace *t, uint32_t gpu, uint32_t victim, uint32_t because,
			  uint64_t from_ns, uint64_t to_ns);
void sim_trace_request(struct sim_trace *t, uint32_t gpu, uint32_t process, uint64_t request,
		       uint64_t submitted_ns, uint64_t started_ns, uint64_t done_ns);
/* The slots of a GPU, from now on. */
struct sim_slots {
	uint32_t online, offline; /* of queues with work */
	uint32_t idle; /* of queues without */
	uint32_t free;
};
void sim_trace_slots(struct sim_trace *t, uint32_t gpu, uint64_t at_ns,
		     const struct sim_slots *slots);

#endif
