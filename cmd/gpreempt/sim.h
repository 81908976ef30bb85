/* SPDX-License-Identifier: MIT */
/* Inside `gpreempt sim`: what was run, and how it is told. */
#ifndef GPREEMPT_CMD_SIM_H
#define GPREEMPT_CMD_SIM_H

#include "cmd/gpreempt/cli.h"
#include "sim/sim.h"

#define SIM_MODES (SIM_SEQUENTIAL + 1)

/* One scenario in every mode, by enum sim_mode. */
struct sim_outcome {
	struct sim_result of[SIM_MODES];
};

/* All that was run. The first outcome is the scenario as it is written, then one a swept value. */
struct sim_report {
	struct sim_scenario *s;
	struct sim_scenario written; /* its values before the sweep; owns nothing */
	const struct gpol_ops *policy;
	uint64_t seed;
	struct sim_outcome *outcomes;
	size_t n;
};

/* "none", "stream_priority": the key of a mode; and the words for people. */
const char *sim_mode_key(enum sim_mode mode);
const char *sim_mode_text(enum sim_mode mode);

/* Percent; below 0: not to be told, for there is nothing to compare with. */
double sim_over_alone(const struct sim_outcome *o, enum sim_mode mode); /* mean, added */
bool sim_has_over_alone(const struct sim_outcome *o, enum sim_mode mode);
/* As parts of what no preemption gets done: offline work, requests of all, work of all. */
double sim_goodput(const struct sim_outcome *o, enum sim_mode mode);
double sim_throughput(const struct sim_outcome *o, enum sim_mode mode);
double sim_work(const struct sim_outcome *o, enum sim_mode mode);
double sim_slots_used(const struct sim_result *r);

/* A scenario in the modes of @modes (bits by enum sim_mode); an exit status. */
int sim_run_modes(struct cli *cli, const struct sim_scenario *s, struct sim_options options,
		  unsigned int modes, struct sim_outcome *ret);
void sim_outcome_done(struct sim_outcome *o);
/* What is wrong with a scenario or an option. */
int sim_fail(struct cli *cli, int error, const struct inifile_mistake *mistake);

int sim_report_json(struct cli *cli, const struct sim_report *report);
int sim_report_text(struct cli *cli, const struct sim_report *report);
int sim_list(struct cli *cli);
int sim_calibrate(struct cli *cli, uint64_t seed);

/* "online" of a mode in JSON. */
struct json_object *sim_online_json(const struct sim_outcome *o, enum sim_mode mode);
void sim_add_percent(struct json_object *object, const char *key, double percent);

#endif
