/* SPDX-License-Identifier: MIT */
/* What gpreempt doctor finds out that is no device's. */
#ifndef GPREEMPT_CMD_DOCTOR_H
#define GPREEMPT_CMD_DOCTOR_H

#include "cmd/gpreempt/cli.h"
#include "gpreempt/daemon.h"

struct doctor_watch { /* being told of work at once, by hardware watchpoints */
	bool known; /* false: reason says why not */
	bool available;
	char reason[256];
};

void doctor_watch(struct cli *cli, struct doctor_watch *ret);

#endif
