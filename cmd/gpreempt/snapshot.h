/* SPDX-License-Identifier: MIT */
/* What the daemon said at one moment, and whether it still says something. */
#ifndef GPREEMPT_CMD_SNAPSHOT_H
#define GPREEMPT_CMD_SNAPSHOT_H

#include "gpreempt/daemon.h"

struct snapshot {
	bool seen; /* what follows was read at least once */
	struct gpreempt_daemon_status status;
	struct gpreempt_daemon_gpu *gpus;
	char **trips; /* who reads them: what happened on each that tripped, or NULL */
	size_t n_gpus;
	struct gpreempt_daemon_job *jobs;
	size_t n_jobs;
	struct gpreempt_error error; /* why it is not of now; kind NONE: it is */
	uint64_t lost_s; /* for so long */
};

/*
 * Reads anew from *@d, and connects first where that is NULL. When that fails the old figures
 * stay, the error says why, and *@d is NULL.
 */
int snapshot_read(struct snapshot *s, const char *socket, struct gpreempt_daemon **d);
void snapshot_done(struct snapshot *s);

/* How many, or -errno; *ret is the caller's to free. */
int read_daemon_jobs(struct gpreempt_daemon *d, struct gpreempt_daemon_job **ret);

#endif
