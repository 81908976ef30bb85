/* SPDX-License-Identifier: MIT */
/*
 * The demonstration: a daemon of its own on the software device, a training and an inference job
 * on it, real processes all of them, and nothing left of it at its end, however that comes.
 */
#ifndef GPREEMPT_CMD_DEMO_H
#define GPREEMPT_CMD_DEMO_H

#include "cmd/gpreempt/daemon.h"

#define DEMO_MAX_TRACE 6u /* the last so many events of holds */

struct demo_child {
	pid_t pid; /* 0: none */
	int pid_fd;
	int out_fd; /* what it has printed so far, from its beginning */
};

struct demo {
	struct cli *cli;
	const char *device; /* model[:PRESET] */
	char dir[88]; /* the daemon's run directory */
	char control[104]; /* and its socket there */
	struct demo_child daemon;
	pid_t janitor; /* removes dir when we and the daemon are gone */
	int alive_fd; /* it waits for the end of this */
	struct gpreempt_daemon *asking, *listening;
	struct gpreempt_event trace[DEMO_MAX_TRACE]; /* a ring */
	size_t n_trace; /* in all */
};

int demo_begin(struct demo *d); /* an exit status, an error is said */
void demo_end(struct demo *d); /* also of one that did not begin well */

/* A program that dies with us. */
struct demo_start {
	const char *program; /* a path; else looked for in PATH */
	char **argv;
	int output; /* what it prints there is kept: STDOUT_FILENO, STDERR_FILENO */
	int keep_fd; /* stays open in it; 0: none */
	int death; /* by which signal */
};
int demo_start(struct demo *d, const struct demo_start *how, struct demo_child *ret); /* -errno */
/* Ends it by @sig, sooner or later by SIGKILL, unless it has ended. */
void demo_stop(struct demo_child *c, int sig);
/*
 * Until one of two children has ended, taking events meanwhile. An exit status; a signal to us is
 * EXIT_FAILED, and said.
 */
int demo_wait(struct demo *d, const struct demo_child *a, const struct demo_child *b);
void demo_take_events(struct demo *d); /* those there are */

#endif
