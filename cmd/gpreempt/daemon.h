/* SPDX-License-Identifier: MIT */
/* What the commands that talk to the daemon share. */
#ifndef GPREEMPT_CMD_DAEMON_H
#define GPREEMPT_CMD_DAEMON_H

#include "cmd/gpreempt/cli.h"
#include "gpreempt/daemon.h"

/* An exit status; says what is wrong, as all below. */
int daemon_connect(struct cli *cli, struct gpreempt_daemon **ret);
int daemon_begin(struct cli *cli, int argc, char **argv, int min, int max,
		 struct gpreempt_daemon **ret); /* after take_arguments() */
int daemon_failed(struct cli *cli, const struct gpreempt_daemon *d); /* its last failure */

/* All entries, sized as they come; the caller's to free. */
int daemon_read_gpus(struct cli *cli, struct gpreempt_daemon *d, struct gpreempt_daemon_gpu **ret,
		     size_t *ret_n);
int daemon_read_jobs(struct cli *cli, struct gpreempt_daemon *d, struct gpreempt_daemon_job **ret,
		     size_t *ret_n);

/* The options of run and class that say how a job is to be treated. */
enum { OPTION_PRIORITY = 2101, OPTION_CRITICAL, OPTION_TARGET, OPTION_LAZY };
/* clang-format off */
#define CLASS_OPTIONS \
	{ "priority", required_argument, NULL, OPTION_PRIORITY }, \
	{ "latency-critical", no_argument, NULL, OPTION_CRITICAL }, \
	{ "target-us", required_argument, NULL, OPTION_TARGET }, \
	{ "lazy", no_argument, NULL, OPTION_LAZY }
/* clang-format on */
int take_class_option(struct cli *cli, int c, struct gpreempt_class_request *request);

static inline void daemon_closep(struct gpreempt_daemon **d)
{
	gpreempt_daemon_close(*d);
}
#define _cleanup_daemon_ _cleanup_(daemon_closep)

#endif
