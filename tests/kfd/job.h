/* SPDX-License-Identifier: MIT */
/*
 * A real process to be traced, and its parent that tells what it sees of it: "S" stopped,
 * "C" continued, "E" and the exit status, "K" and the signal that killed it. The job itself
 * says "r" when ready, "u" for each SIGUSR1.
 */
#ifndef GPREEMPT_TESTS_KFD_JOB_H
#define GPREEMPT_TESTS_KFD_JOB_H

#include <sys/types.h>

struct job {
	pid_t pid;
	pid_t parent;
	int to_job; /* 'q' exit 7, 'x' exec, 't' exec from a thread, 'l' only the leader ends */
	int from_job;
	int from_parent;
};

void job_start(struct job *j);
void job_end(struct job *j); /* kills what is left */
void job_tell(const struct job *j, char command);
/* One byte, or 0 after five seconds of silence. */
char job_hear(int fd);
char job_state(pid_t pid); /* as in /proc/PID/status: 'S', 'Z'...; 0: no such process */
int job_tracer(pid_t pid); /* TracerPid of /proc/PID/status; -1: no such process */

#endif
