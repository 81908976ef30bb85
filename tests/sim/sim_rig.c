/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "tests/sim/sim_rig.h"

void sim_rig_init(struct sim_rig *rig)
{
	*rig = (struct sim_rig){
		.s = {
			.name = "rig",
			.chip = "mi100",
			.policy = "priority",
			.costs = "extension",
			.gpus = 1,
			.duration_ns = SEC,
			.detect = 5 * MSEC,
			.detection = {
				.watch_ns = 20 * USEC,
				.trap_ns = 10 * USEC,
				.look_ns = 20 * USEC,
				.look_permille = 100,
				.look_least_ns = 50 * USEC,
			},
			.params = gpol_params_default,
			.n_cost_tables = 1,
		},
		.costs = {
			.name = "extension",
			.call_ns = 5 * USEC,
			.cycle_ns = 20 * USEC,
			.trap_ns = 2 * USEC,
			.counts_progress = true,
			.host_bytes_per_s = 64 * SEC,
		},
	};
	rig->s.jobs = rig->jobs;
	rig->s.models = rig->models;
	rig->s.cost_tables = &rig->costs;
}

struct sim_job *sim_rig_job(struct sim_rig *rig, enum job_class class, uint32_t kernels,
			    uint64_t kernel_ns)
{
	size_t i = rig->s.n_jobs++;

	assert_true(i < RIG_JOBS);
	rig->s.n_models = rig->s.n_jobs;
	rig->models[i] = (struct sim_model){
		.name = "model",
		.kernels = kernels,
		.kernel_ns = kernel_ns,
		.occupancy_permille = 1000,
		.workgroup_ns = 10 * USEC,
		.state_permille = 1000,
	};
	rig->jobs[i] = (struct sim_job){
		.name = "job",
		.model = i,
		.copies = 1,
		.queues = 1,
		.online = class == JOB_ONLINE,
		.weight = 1,
		.arrival = SIM_CLOSED,
		.announce_ns = SIM_NOT_ANNOUNCED,
	};
	return &rig->jobs[i];
}

struct sim_model *sim_rig_model(struct sim_rig *rig, const struct sim_job *job)
{
	return &rig->models[job->model];
}

struct sim_result sim_rig_run(const struct sim_rig *rig, enum sim_mode mode, uint64_t seed)
{
	struct sim_options options = {
		.mode = mode,
		.policy = &gpol_priority,
		.seed = seed,
	};
	struct sim_result r;

	assert_int_equal(sim_run(&rig->s, &options, &r), 0);
	return r;
}
