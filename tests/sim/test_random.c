/* SPDX-License-Identifier: MIT */
/*
 * Scenarios nobody thought of, one a seed: what must hold in each of them, with the real engine.
 *
 *   test_sim_random [COUNT [FIRST]]
 */
#include <stdlib.h>
#include <string.h>

#include "sim/arrival.h"
#include "tests/sim/sim_rig.h"

static uint64_t first_seed = 1, n_seeds = 1000;

struct rolled {
	struct sim_rig rig;
	const struct gpol_ops *policy;
	uint64_t seed, n;
};

static uint64_t roll(struct rolled *r, uint64_t low, uint64_t high)
{
	return low + sim_random(r->seed, 77, r->n++) % (high - low + 1);
}

static void roll_job(struct rolled *r, enum job_class class)
{
	struct sim_job *job = sim_rig_job(&r->rig, class, roll(r, 1, 40), roll(r, 0, 200 * USEC));
	struct sim_model *model = sim_rig_model(&r->rig, job);

	model->gap_ns = roll(r, 0, 1) * roll(r, 0, 20 * USEC);
	model->occupancy_permille = roll(r, 0, 1) ? 1000 : roll(r, 1, 1000);
	model->state_permille = model->occupancy_permille;
	model->workgroup_ns = roll(r, 1, 100 * USEC);
	job->copies = roll(r, 1, 3);
	job->queues = roll(r, 1, 3);
	job->gpu = roll(r, 0, r->rig.s.gpus - 1);
	job->gang = class == JOB_OFFLINE && !roll(r, 0, 9);
	job->priority = roll(r, 0, 3);
	job->latency_critical = class == JOB_ONLINE && roll(r, 0, 1);
	job->lazy = !roll(r, 0, 4);
	job->auto_deactivate = !roll(r, 0, 4);
	job->arrival = class == JOB_ONLINE ? roll(r, SIM_PERIODIC, SIM_POISSON) :
					     roll(r, SIM_PERIODIC, SIM_CLOSED);
	job->rate_mhz = roll(r, 1, 300) * 1000;
	job->prepare_ns = roll(r, 0, 300 * USEC);
	job->wait_bound_ns = roll(r, 5 * MSEC, 60 * MSEC);
	if (roll(r, 0, 2))
		job->announce_ns = roll(r, 0, 200 * USEC);
}

/* How work is seen, and whether processes take turns at the GPU. */
static void roll_driver(struct rolled *r)
{
	struct sim_costs *c = &r->rig.costs;

	if (roll(r, 0, 2))
		r->rig.s.detect = roll(r, SIM_DETECT_WATCH, SIM_DETECT_TRAP);
	r->rig.s.detection.look_permille = roll(r, 10, 500);
	c->disturbs_all = roll(r, 0, 1);
	c->counts_progress = roll(r, 0, 3);
	if (roll(r, 0, 4))
		return;
	c->change_ns = roll(r, 1, 300 * USEC);
	c->slice_ns = roll(r, 0, 3 * MSEC);
	c->short_slice_ns = roll(r, 0, 10 * USEC);
	c->long_slice_ns = roll(r, 0, 60 * MSEC);
}

static void roll_scenario(struct rolled *r, uint64_t seed)
{
	size_t n_policies = 0;

	*r = (struct rolled){ .seed = seed };
	sim_rig_init(&r->rig);
	while (gpol_all[n_policies])
		n_policies++;
	r->policy = gpol_all[roll(r, 0, n_policies - 1)];
	r->rig.s.duration_ns = roll(r, 50 * MSEC, 250 * MSEC);
	r->rig.s.gpus = roll(r, 0, 4) ? 1 : roll(r, 2, 4);
	r->rig.s.cycle_ns = roll(r, 20 * USEC, 500 * USEC);
	r->rig.s.kernel_permille = roll(r, 500, 2000);
	r->rig.s.save_in_host_memory = !roll(r, 0, 3);
	roll_driver(r);
	for (uint64_t i = roll(r, 0, 2); i--;)
		roll_job(r, JOB_ONLINE);
	for (uint64_t i = roll(r, 0, 3); i--;)
		roll_job(r, JOB_OFFLINE);
}

static uint64_t alone_ns(const struct rolled *r, const struct sim_job *job)
{
	const struct sim_model *m = &r->rig.models[job->model];
	uint64_t kernel_ns = m->kernel_ns * r->rig.s.kernel_permille / 1000;
	uint64_t ns = kernel_ns * m->kernels + m->gap_ns * (m->kernels - 1);

	return ns ? ns : 1;
}

static struct sim_result run(const struct rolled *r, enum sim_mode mode)
{
	struct sim_options options = { .mode = mode, .policy = r->policy, .seed = r->seed };
	struct sim_result result;

	assert_int_equal(sim_run(&r->rig.s, &options, &result), 0);
	return result;
}

/* ---- what must hold ---- */

static void check_same_bytes(const struct rolled *r, enum sim_mode mode,
			     const struct sim_result *before)
{
	struct sim_result again = run(r, mode);

	assert_memory_equal(again.jobs, before->jobs, again.n_jobs * sizeof(*again.jobs));
	free(again.jobs);
	again.jobs = before->jobs;
	assert_memory_equal(&again, before, sizeof(again));
}

/* No request is done sooner than it could be alone, and no queue does two at once. */
static void check_times(const struct rolled *r, const struct sim_result *result)
{
	uint64_t least = UINT64_MAX;

	for (size_t i = 0; i < result->n_jobs; i++) {
		const struct sim_job_result *j = &result->jobs[i];
		uint64_t members = j->job->gang ? r->rig.s.gpus : 1;

		assert_in_range(j->gpu_ns, j->done * alone_ns(r, j->job) * members,
				(j->done + j->job->queues) * alone_ns(r, j->job) * members);
		assert_true(j->gpu_ns <= r->rig.s.duration_ns * j->job->queues * members);
		assert_true(j->done <= j->submitted && j->submitted - j->done <= j->job->queues);
		if (j->job->online && j->done)
			least = MIN(least, alone_ns(r, j->job));
	}
	if (result->online.n)
		assert_true(result->online.min_ns >= least);
}

/* All that was done fits on the GPUs. */
static void check_room(const struct rolled *r, const struct sim_result *result)
{
	unsigned __int128 used = 0;

	for (size_t i = 0; i < result->n_jobs; i++) {
		const struct sim_job_result *j = &result->jobs[i];
		const struct sim_model *m = &r->rig.models[j->job->model];
		uint64_t busy_ns = m->kernels * (m->kernel_ns * r->rig.s.kernel_permille / 1000);

		used += (unsigned __int128)j->done * busy_ns * m->occupancy_permille *
			(j->job->gang ? r->rig.s.gpus : 1);
	}
	/* Rounding down lets at most a part in a thousand of a small kernel go by unseen. */
	assert_true(used / 1000 <=
		    (unsigned __int128)r->rig.s.duration_ns * r->rig.s.gpus * 1001 / 1000);
}

static void check_slots(const struct sim_result *result)
{
	assert_true(result->slot_used_ns <= result->slot_ns);
}

/* With one online queue it cannot be quicker than alone; several are in each other's way. */
static void check_against_alone(const struct sim_result *alone, const struct sim_result *result)
{
	size_t online = 0;

	for (size_t i = 0; i < alone->n_jobs; i++) {
		if (alone->jobs[i].job->online)
			online += alone->jobs[i].job->queues;
	}
	if (online == 1 && alone->online.n && result->online.n)
		assert_true(alone->online.mean_ns <= result->online.mean_ns);
}

static void check_holds(const struct sim_result *result)
{
	for (size_t i = 0; i < result->n_jobs; i++) {
		const struct sim_job_result *j = &result->jobs[i];

		if (j->starved)
			fail_msg("process %zu waited %lu us, its bound is %lu us", i,
				 (unsigned long)(j->longest_wait_ns / USEC),
				 (unsigned long)(j->job->wait_bound_ns / USEC));
		if (j->job->online)
			assert_int_equal(j->preempted, 0);
	}
}

static void check_seed(uint64_t seed)
{
	struct sim_result alone;
	struct rolled r;

	roll_scenario(&r, seed);
	alone = run(&r, SIM_ALONE);
	for (unsigned int mode = SIM_ENGINE; mode <= SIM_SEQUENTIAL; mode++) {
		struct sim_result result = run(&r, mode);

		check_times(&r, &result);
		check_room(&r, &result);
		check_slots(&result);
		/* Streams of one process take no turns. */
		if (!r.rig.costs.change_ns || mode <= SIM_NONE)
			check_against_alone(&alone, &result);
		check_holds(&result);
		if (seed % 4 == 0)
			check_same_bytes(&r, mode, &result);
		sim_result_done(&result);
	}
	sim_result_done(&alone);
}

/* ---- inversions ---- */

/* Online work worth a preemption, offline work without an end and without a bound of its own. */
static void roll_contest(struct rolled *r, uint64_t seed)
{
	*r = (struct rolled){ .seed = seed, .policy = &gpol_priority };
	sim_rig_init(&r->rig);
	r->rig.s.duration_ns = 300 * MSEC;
	r->rig.s.cycle_ns = roll(r, 20 * USEC, 100 * USEC);
	for (uint64_t i = roll(r, 1, 2); i--;) {
		struct sim_job *job = sim_rig_job(&r->rig, JOB_ONLINE, roll(r, 20, 60),
						  roll(r, 100 * USEC, 150 * USEC));

		job->arrival = roll(r, SIM_PERIODIC, SIM_POISSON);
		job->rate_mhz = roll(r, 5, 50) * 1000;
		job->latency_critical = roll(r, 0, 1);
	}
	for (uint64_t i = roll(r, 1, 3); i--;)
		sim_rig_job(&r->rig, JOB_OFFLINE, roll(r, 1, 100), roll(r, 1, 300 * USEC));
}

static void check_inversions(uint64_t seed)
{
	uint64_t detection = engine_config_default.interval_ns;
	struct sim_result result;
	struct rolled r;

	roll_contest(&r, seed);
	for (size_t i = 0; i < r.rig.s.n_jobs; i++) {
		if (r.rig.jobs[i].latency_critical)
			detection = engine_config_default.critical_interval_ns;
	}
	result = run(&r, SIM_ENGINE);
	if (result.online.n)
		assert_true(result.inversion.n > 0);
	if (result.inversion.max_ns > detection + result.preemption.max_ns)
		fail_msg("an inversion of %lu us", (unsigned long)(result.inversion.max_ns / USEC));
	sim_result_done(&result);
}

static uint64_t current_seed;

static int tell_seed(void **state)
{
	if (current_seed)
		print_message("# seed %lu; again: test_sim_random 1 %lu\n",
			      (unsigned long)current_seed, (unsigned long)current_seed);
	return 0;
}

static void what_must_hold_holds_for_every_seed(void **state)
{
	for (uint64_t i = 0; i < n_seeds; i++) {
		current_seed = first_seed + i;
		check_seed(current_seed);
	}
	current_seed = 0;
}

static void no_inversion_outlasts_detection_and_preemption(void **state)
{
	for (uint64_t i = 0; i < n_seeds; i++) {
		current_seed = first_seed + i;
		check_inversions(current_seed);
	}
	current_seed = 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(what_must_hold_holds_for_every_seed, tell_seed),
		cmocka_unit_test_teardown(no_inversion_outlasts_detection_and_preemption,
					  tell_seed),
	};

	if (argc > 1)
		n_seeds = strtoull(argv[1], NULL, 0);
	if (argc > 2)
		first_seed = strtoull(argv[2], NULL, 0);
	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
