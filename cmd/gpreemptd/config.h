/* SPDX-License-Identifier: MIT */
/*
 * /etc/gpreempt.conf, read whole and checked whole: a file with a mistake in it changes nothing.
 * What each key means, what its bounds are and why, stands in gpreempt.conf(5) and in the example.
 */
#ifndef GPREEMPT_CMD_GPREEMPTD_CONFIG_H
#define GPREEMPT_CMD_GPREEMPTD_CONFIG_H

#include <stdint.h>

#include "cmd/gpreemptd/events.h"
#include "cmd/gpreemptd/rules.h"
#include "core/engine/engine.h"

#define CONFIG_FILE "/etc/gpreempt.conf"

struct config {
	struct engine_config engine; /* policy, intervals, bounds; costs are the backend's */
	bool policy_named, turn_named; /* else the backend may have better ones than these */
	struct rules rules;
	bool ration_slots; /* the engine may park queues for want of slots */
	bool kernel_scheduler; /* hand over to the one inside the driver, where it is there */
	uint64_t scan_ns; /* between looks for new processes */
	bool watch; /* idle online jobs, so that their next work is told at once */
	uint32_t look_permille; /* of a processor, for looking at online jobs that work */
	uint64_t attach_age_ns; /* an offline job is attached no sooner after it was seen first */
	uint64_t metrics_ns; /* between writes of the metrics file */
	enum log_level log_level;
	uint32_t clients, clients_per_uid; /* connections at once */
	uint32_t requests_per_s; /* of one user */
	bool show_others; /* to everybody, that other users' jobs are there and their names */
	char group[64]; /* whose members may do everything; besides root */
};

/* Where a file is wrong: for one line to people. */
struct config_mistake {
	int line; /* 0: the file itself */
	char text[160];
	char hint[160]; /* may be empty */
};

/* @path NULL: only the defaults. -errno of the file; -EINVAL: *ret_mistake. */
int config_read(const char *path, struct config *ret, struct config_mistake *ret_mistake);
void config_done(struct config *c);

/* The names of all policies there are. */
void config_policies(char *ret, size_t size, const char *between);

#define CONFIG_PLACE_SIZE 24
/* "line 7: ", or nothing where it is the file itself. */
const char *config_place(const struct config_mistake *m, char buf[CONFIG_PLACE_SIZE]);

#endif
