/* SPDX-License-Identifier: MIT */
/* What the commands that talk to the daemon share. */
#ifndef GPREEMPT_CMD_DAEMON_H
#define GPREEMPT_CMD_DAEMON_H

#include "cmd/gpreempt/cli.h"
#include "gpreempt/daemon.h"

/* An exit status; says what is wrong, as all below. */
int daemon_connect(struct cli *cli, struct gpreempt_daemon **ret);
int daemon_begin(struct cli *cli, int argc, char **argv, struct gpreempt_daemon **ret);
int daemon_failed(struct cli *cli, const struct gpreempt_daemon *d); /* its last failure */

/* All entries, sized as they come; the caller's to free. */
int daemon_read_gpus(struct cli *cli, struct gpreempt_daemon *d, struct gpreempt_daemon_gpu **ret,
		     size_t *ret_n);
int daemon_read_jobs(struct cli *cli, struct gpreempt_daemon *d, struct gpreempt_daemon_job **ret,
		     size_t *ret_n);

/* The options of run and class that say how a job is to be treated. */
#define TARGET_MAX_US (3600ull * 1000 * 1000)
/* clang-format off */
#define CLASS_OPTIONS(request) \
	{ "priority", 0, option_u32, &(request)->priority, 0, 255 }, \
	{ "latency-critical", 0, NULL, &(request)->critical }, \
	{ "target-us", 0, option_number, &(request)->target_us, 1, TARGET_MAX_US }, \
	{ "lazy", 0, NULL, &(request)->lazy }
/* clang-format on */

static inline void daemon_closep(struct gpreempt_daemon **d)
{
	gpreempt_daemon_close(*d);
}
#define _cleanup_daemon_ _cleanup_(daemon_closep)

#endif
