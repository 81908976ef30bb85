/* SPDX-License-Identifier: MIT */
/*
 * What is simulated: jobs that send requests to GPUs, as a scenario file says it.
 *
 * A scenario is an INI file; its programs are in models.ini, what acting costs in costs.ini. Each
 * number there has a source or the word "assumed".
 */
#ifndef GPREEMPT_SIM_SCENARIO_H
#define GPREEMPT_SIM_SCENARIO_H

#include "core/policy/gpol.h"
#include "util/inifile.h"

#define SIM_NAME 48
#define SIM_MAX_GPUS 8
#define SIM_NOT_ANNOUNCED UINT64_MAX

/* How it is seen that online work begins. Any other value: all are looked at so often. */
#define SIM_DETECT_WATCH 0u /* a watchpoint on what the program writes when it submits */
#define SIM_DETECT_TRAP 1u /* the driver is told of the first ring of a doorbell */

/* A program's request: kernels one after the other. */
struct sim_model {
	char name[SIM_NAME];
	uint32_t kernels;
	uint64_t kernel_ns; /* each, alone on the GPU; 0 is allowed */
	uint64_t gap_ns; /* between two: the GPU is free of it */
	uint32_t occupancy_permille; /* of the GPU that one of its kernels fills */
	uint64_t workgroup_ns; /* what a resident workgroup takes; it leaves when done or saved */
	uint32_t state_permille; /* of a full save area, when it runs alone */
};

/* What acting costs on a kind of driver; durations. */
struct sim_costs {
	char name[SIM_NAME];
	uint64_t call_ns; /* from the decision until the scheduler has it */
	uint64_t cycle_ns; /* unmap and map, without what is saved and restored */
	uint64_t trap_ns; /* into the handler that saves */
	bool disturbs_all; /* a batch saves and restores everybody on the GPU */
	bool counts_progress; /* pending work can be seen from outside */
	uint64_t save_bytes; /* of a full GPU; 0: from the chip */
	uint64_t host_bytes_per_s; /* a save area in host memory; 0: never there */
	/*
	 * change_ns 0: all share the GPU. Else processes take turns at it, each for a slice; the
	 * daemon gives an online one a long slice and what is in its way a short one.
	 */
	uint64_t change_ns, slice_ns, short_slice_ns, long_slice_ns;
};

/*
 * What seeing takes; durations. While online work is known of it is looked at as often as a share
 * of a core allows, which is how its end is seen.
 */
struct sim_detection {
	uint64_t watch_ns, trap_ns; /* from the write until the engine is told */
	uint64_t look_ns; /* of the CPU, for one look at online jobs */
	uint32_t look_permille; /* of a core */
	uint64_t look_least_ns; /* between two looks */
};

/*
 * When requests fall due. A process has one request at a time on each of its queues, as the clients
 * of DISB do: the next is sent at its time or when the last is done, whichever is later, and of
 * several that fell due meanwhile only the newest; the others are given up. So what takes longer
 * than its period runs back to back, and a latency never holds the wait behind one's own requests.
 */
enum sim_arrival {
	SIM_PERIODIC, /* those of one rate on one GPU begin one after the other */
	SIM_POISSON,
	SIM_TRACE, /* at the times of the scenario's trace, dealt in turn to such processes */
	SIM_CLOSED, /* the next when the last is done: continuous work */
};

struct sim_job {
	char name[SIM_NAME];
	uint32_t model; /* index */
	uint32_t copies; /* that many processes of the kind */
	uint32_t queues; /* of each; requests go to them in turn */
	uint32_t gpu; /* the first; copies go round all GPUs of the scenario from there */
	bool gang; /* one process on all GPUs, which stops as one */
	uint8_t online; /* 0: offline */
	uint8_t priority; /* see gpol_job */
	uint32_t weight, min_permille;
	bool latency_critical, lazy, auto_deactivate;
	enum sim_arrival arrival;
	uint64_t rate_mhz; /* requests in 1,000 s */
	uint64_t target_ns, wait_bound_ns;
	uint64_t prepare_ns; /* on the host, before a request is submitted */
	/*
	 * So long before it is submitted; 0: then; SIM_NOT_ANNOUNCED. It is prepared for at least
	 * as long. Who announces also says when it is done, and the engine looks at once.
	 */
	uint64_t announce_ns;
};

struct sim_scenario {
	char name[SIM_NAME];
	char title[128];
	char chip[SIM_NAME]; /* a preset of gpu/model */
	char policy[SIM_NAME]; /* ""; what the daemon takes at such costs */
	char costs[SIM_NAME];
	uint32_t gpus;
	uint64_t duration_ns;
	bool save_in_host_memory;
	uint64_t kernel_permille; /* kernels take so much of what models.ini says */
	uint64_t cycle_ns; /* instead of the cost table's; 0: that */
	uint64_t detect; /* SIM_DETECT_*, or a duration */
	struct sim_detection detection;
	struct gpol_params params; /* turn_ns 0: likewise */
	uint32_t online_permille, offline_permille; /* of slots */
	struct sim_job *jobs;
	size_t n_jobs;
	struct sim_model *models;
	size_t n_models;
	struct sim_costs *cost_tables;
	size_t n_cost_tables;
	uint64_t *trace_ns; /* for SIM_TRACE: ascending */
	size_t n_trace;
	/* One value of a sweep for each run; none: one run. */
	char sweep_key[SIM_NAME]; /* "job.key" or "key" */
	uint64_t *sweep;
	size_t n_sweep;
};

/*
 * @name: of a scenario that comes with the program, or a path. -EINVAL and others: see @mistake.
 * A scenario without jobs is fine. Free with sim_scenario_free.
 */
int sim_scenario_read(const char *name, struct sim_scenario **ret, struct inifile_mistake *mistake);
/* The same of text in memory; @file is what it is called. */
int sim_scenario_parse(const char *file, const char *text, size_t len, struct sim_scenario **ret,
		       struct inifile_mistake *mistake);
void sim_scenario_free(struct sim_scenario *s); /* accepts NULL */

/*
 * Sets a key of the section [scenario], or "announce" of all online jobs, as the file could have.
 * -EINVAL: see @mistake.
 */
int sim_scenario_set(struct sim_scenario *s, const char *key, const char *value,
		     struct inifile_mistake *mistake);

/* What a sweep changes: the value of run @i is put in place. -EINVAL: the jobs become too many. */
int sim_scenario_sweep(struct sim_scenario *s, size_t i);
/* "watch", "look:5ms": as in a file; @buf: at least UNIT_TEXT. */
const char *sim_detect_text(uint64_t detect, char *buf, size_t size);
/* When online jobs announce requests: "none", "submission", "100us", or "by job" if they differ. */
const char *sim_announce_text(const struct sim_scenario *s, char *buf, size_t size);
/* "100us". */
const char *sim_scenario_sweep_text(const struct sim_scenario *s, size_t i, char *buf, size_t size);

/* Names of built-in scenarios, ends with NULL; titles go with them. */
extern const char *const sim_scenario_names[];
const char *sim_scenario_title(const char *name);

#endif
