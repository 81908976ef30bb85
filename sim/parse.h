/* SPDX-License-Identifier: MIT */
/* Between the files that read scenarios. */
#ifndef GPREEMPT_SIM_PARSE_H
#define GPREEMPT_SIM_PARSE_H

#include "util/inifile.h"
#include "sim/keys.h"

/*
 * Adds what @text says to @s. @only_tables: models and costs; the rest is not looked at.
 * -EINVAL: see @mistake.
 */
int sim_parse_text(struct sim_scenario *s, const char *file, const char *text, size_t len,
		   bool only_tables, struct inifile_mistake *mistake);

/* job.c: what follows from what was said. @seen: keys, by place in sim_job_keys. */
int sim_job_settle(struct sim_job *job, uint64_t seen, struct inifile *ini, unsigned int line);

/* assumes.c */
#define SIM_LOOK "look:"
void sim_announce_time_text(uint64_t announce_ns, char *buf, size_t size);

/* sweep.c */
extern const struct sim_key sim_sweep_keys[];
int sim_sweep_take(struct sim_scenario *s, struct inifile *ini, const char *key, const char *value);
void sim_sweep_apply(struct sim_scenario *s, size_t i);

#endif
