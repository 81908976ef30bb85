/* SPDX-License-Identifier: MIT */
/*
 * The daemon as a whole: its parts are made in order, run by one event loop in one thread, in which
 * nothing may block, and let go of everything in the end.
 */
#ifndef GPREEMPT_CMD_GPREEMPTD_DAEMON_H
#define GPREEMPT_CMD_GPREEMPTD_DAEMON_H

#include <stdbool.h>

enum status { /* of the program, as gpreempt(1) has them */
	      STATUS_DONE,
	      STATUS_FAILED,
	      STATUS_USAGE,
	      STATUS_ABSENT,
	      STATUS_REFUSED,
};

struct daemon_options {
	const char *device;
	const char *level; /* "K2" or "K3", of AMD's driver; NULL: the highest it has */
	const char *config_file; /* NULL: the default one, which need not be there */
	const char *run_dir;
};

/* Until it is asked to end. */
enum status daemon_run(const struct daemon_options *options);
/* Whether the file makes sense. */
enum status daemon_check_config(const char *path);
/* After a daemon that is no more: nothing it held stays held. */
enum status daemon_clean_up(const struct daemon_options *options);

#endif
