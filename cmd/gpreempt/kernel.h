/* SPDX-License-Identifier: MIT */
/* What the commands that talk to the scheduler inside the driver share. */
#ifndef GPREEMPT_CMD_KERNEL_H
#define GPREEMPT_CMD_KERNEL_H

#include "cmd/gpreempt/daemon.h"
#include "gpreempt/kernel.h"

/*
 * Whoever schedules: the daemon, or, where none answers, the scheduler inside the driver when it is
 * on: then *ret is NULL and cli->ctx is open. An exit status; says what is wrong.
 */
int scheduler_connect(struct cli *cli, struct gpreempt_daemon **ret);

#endif
