/* SPDX-License-Identifier: MIT */
#ifndef GPREEMPT_CMD_PROCESSES_H
#define GPREEMPT_CMD_PROCESSES_H

#include "cmd/gpreempt/cli.h"

struct processes {
	struct gpreempt_process_info *list; /* to be freed */
	size_t n;
};

int processes_read(struct cli *cli, struct processes *ret); /* an exit status */
/* Classes as a daemon has them, where one runs. */
void processes_ask_daemon(struct cli *cli, struct processes *ps);

#endif
