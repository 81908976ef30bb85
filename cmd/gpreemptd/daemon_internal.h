/* SPDX-License-Identifier: MIT */
/* Between daemon.c (making and ending it) and loop.c (what happens meanwhile). */
#ifndef GPREEMPT_CMD_GPREEMPTD_DAEMON_INTERNAL_H
#define GPREEMPT_CMD_GPREEMPTD_DAEMON_INTERNAL_H

#include "cmd/gpreemptd/control.h"
#include "cmd/gpreemptd/daemon.h"
#include "cmd/gpreemptd/device.h"
#include "cmd/gpreemptd/metrics.h"
#include "cmd/gpreemptd/notify.h"
#include "cmd/gpreemptd/run_dir.h"

struct daemon {
	const struct daemon_options *options;
	struct config *config;
	const char *config_file; /* it came from; NULL: only defaults */
	struct run_dir dir;
	uint64_t started_ns; /* CLOCK_REALTIME */

	sd_event *loop;
	struct notify *notify;
	struct guard *guard; /* NULL: holds nothing real */
	struct device *device;
	struct journal *journal;
	struct events *events;
	struct scheduler *scheduler;
	struct control *control;

	char *metrics_path;
	int metrics_error; /* of the last time it was written */
	sd_event_source *turn, *scheduler_ready, *metrics, *summary, *device_check;
	sd_event_source *patience, *leaving;
	uint64_t leave_by_ns; /* while the driver is waited for to forget ours; 0: it is not */
	bool paused; /* somebody said so */
	bool pause_due; /* and waits for it */
	bool ending; /* somebody said so; waits until everybody is let go */
	bool lost; /* the device went away; it is looked for */
};

/* ---- daemon.c ---- */

/* As config_read(), but that a missing default file is none; *ret is the caller's. */
int daemon_read_config(const struct daemon *d, struct config **ret, const char **ret_file,
		       struct config_mistake *ret_mistake);
void daemon_free_config(struct config *c); /* accepts NULL */

/* ---- loop.c ---- */

/* What is asked for on the control socket. */
int daemon_reload(struct daemon *d, struct config_mistake *ret_mistake);
void daemon_turn_soon(struct daemon *d); /* the scheduler wants one */
void daemon_status(const struct daemon *d, struct gpreempt_daemon_status *ret); /* its fields */
void daemon_pause(struct daemon *d); /* begins; control_let_go() tells when it is done */
int daemon_continue(struct daemon *d, const char **ret_why); /* after a pause */

int loop_begin(struct daemon *d); /* everything else is there */
void loop_end(struct daemon *d);
void loop_write_metrics(struct daemon *d);

#endif
