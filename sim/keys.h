/* SPDX-License-Identifier: MIT */
/* What can be said in a scenario, key by key: its name, its value, and where that goes. */
#ifndef GPREEMPT_SIM_KEYS_H
#define GPREEMPT_SIM_KEYS_H

#include <stddef.h>

#include "sim/scenario.h"
#include "util/units.h"

enum sim_key_kind {
	SIM_KEY_NUMBER,
	SIM_KEY_CHOICE, /* one of some words, stored as its place among them */
	SIM_KEY_ANNOUNCE, /* a number, "none" or "submission" */
	SIM_KEY_DETECT, /* "watch", "trap" or "look:5ms" */
	SIM_KEY_MODEL, /* stored as its index */
	SIM_KEY_TEXT,
	SIM_KEY_CHIP,
	SIM_KEY_POLICY,
	SIM_KEY_COSTS,
};

struct sim_key {
	const char *name;
	enum sim_key_kind kind;
	bool required;
	size_t offset, size; /* in what the section describes */
	enum unit_kind unit;
	uint64_t min, max;
	const char *const *choices; /* ends with NULL */
};

/* How requests of a trace come: at some rate, and now and then at a higher one. */
struct sim_bursts {
	uint64_t length_ns;
	uint64_t quiet_rate_mhz, burst_rate_mhz;
	uint64_t quiet_ns, burst_ns; /* how long each lasts, on average */
	uint64_t seed;
};

/* All end with a NULL name. */
extern const struct sim_key sim_scenario_keys[];
extern const struct sim_key sim_params_keys[]; /* of struct gpol_params */
extern const struct sim_key sim_job_keys[];
extern const struct sim_key sim_model_keys[];
extern const struct sim_key sim_costs_keys[];
extern const struct sim_key sim_detection_keys[];
extern const struct sim_key sim_bursts_keys[];

const struct sim_key *sim_key_find(const struct sim_key *keys, const char *name);
/* "a, b, c" */
void sim_key_list(const struct sim_key *keys, char *buf, size_t size);

/*
 * The number that stands for @text; a name's is its place in the list of valid ones, from @s.
 * -EINVAL: @mistake says why, without the place.
 */
int sim_key_parse(const struct sim_key *key, const struct sim_scenario *s, const char *text,
		  uint64_t *ret, struct inifile_mistake *mistake);
void sim_key_store(const struct sim_key *key, void *object, uint64_t value);
/* The same, and puts it into @object; names and texts as such. */
int sim_key_set(const struct sim_key *key, const struct sim_scenario *s, void *object,
		const char *text, struct inifile_mistake *mistake);

#endif
