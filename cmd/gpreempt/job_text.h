/* SPDX-License-Identifier: MIT */
/* How jobs and times are put into words, the same in all programs. */
#ifndef GPREEMPT_CMD_JOB_TEXT_H
#define GPREEMPT_CMD_JOB_TEXT_H

#include "gpreempt/daemon.h"

/* "held", "waiting", "working", "idle"; "-" where the caller may not know. */
const char *job_state(const struct gpreempt_daemon_job *job);
/* "online", "offline", "none" */
const char *job_class_word(enum gpreempt_class job_class);

#define AGE_TEXT_SIZE 32
/* "45 s", "3 min", "5 h 12 min", "12 days" */
const char *text_age(uint64_t seconds, char buf[AGE_TEXT_SIZE]);

#endif
