/* SPDX-License-Identifier: MIT */
/* How jobs are put into words, the same in all programs. */
#ifndef GPREEMPT_CMD_JOB_TEXT_H
#define GPREEMPT_CMD_JOB_TEXT_H

#include "gpreempt/daemon.h"
#include "util/text.h"

/* "held", "waiting", "working", "idle"; "-" where the caller may not know. */
const char *job_state(const struct gpreempt_daemon_job *job);
/* "online", "offline", "none" */
const char *job_class_word(enum gpreempt_class job_class);

typedef const char *(*duration_fn)(uint64_t ns, char buf[UNIT_TEXT_SIZE]);
/*
 * What a table says of a job: of the field @name, or of its "state". "-": it is not known, or not
 * for the caller to see.
 */
const char *job_cell(const struct gpreempt_daemon_job *job, const char *name, duration_fn say,
		     char buf[UNIT_TEXT_SIZE]);

#endif
