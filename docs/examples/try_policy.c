/* SPDX-License-Identifier: MIT */
/*
 * usage: try_policy [SCENARIO]
 *
 * Tries the policy of policy.c in the simulator, beside those that gpreempt has. Exit status 1 when
 * it leaves an offline job waiting past its bound.
 */
#include <inttypes.h>
#include <stdio.h>

#include "docs/examples/policy.h"
#include "sim/sim.h"

/* One line of the table; how many offline jobs starved, or -errno. */
static int try_one(const struct sim_scenario *s, const struct gpol_ops *policy)
{
	struct sim_options options = { .mode = SIM_ENGINE, .policy = policy, .seed = 1 };
	uint64_t least = UINT64_MAX, most = 0;
	struct sim_result r;
	int starved, err = sim_run(s, &options, &r);

	if (err < 0)
		return err;
	for (size_t i = 0; i < r.n_jobs; i++) {
		if (r.jobs[i].job->online)
			continue;
		least = r.jobs[i].gpu_ns < least ? r.jobs[i].gpu_ns : least;
		most = r.jobs[i].gpu_ns > most ? r.jobs[i].gpu_ns : most;
	}
	printf("%-10s %8" PRIu64 " %8" PRIu64 "  %5" PRIu64 " to %5" PRIu64 " %11" PRIu64 "\n",
	       policy->name, r.online.p50_ns / 1000, r.online.p99_ns / 1000,
	       least == UINT64_MAX ? 0 : least / 1000000, most / 1000000, r.preemptions);
	starved = (int)r.starved;
	sim_result_done(&r);
	return starved;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "best-effort-4";
	struct inifile_mistake mistake;
	struct sim_scenario *s;
	int starved;

	if (sim_scenario_read(name, &s, &mistake) < 0) {
		fprintf(stderr, "%s: no such scenario, or a mistake in it\n", name);
		return 2;
	}
	printf("%s, all figures modelled\n\n", s->title);
	printf("%-10s %17s  %14s\n", "", "online p50, p99", "each offline");
	printf("%-10s %8s %8s  %14s %11s\n", "policy", "us", "us", "job ran, ms", "preemptions");
	starved = try_one(s, &gpol_neediest);
	for (size_t i = 0; gpol_all[i]; i++)
		try_one(s, gpol_all[i]);
	sim_scenario_free(s);
	return starved != 0;
}
