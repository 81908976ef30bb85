/* SPDX-License-Identifier: MIT */
/*
 * The demonstration: a daemon of its own on the software device, a training and an inference job
 * on it, real processes all of them, and nothing left of it at its end, however that comes.
 */
#ifndef GPREEMPT_CMD_DEMO_H
#define GPREEMPT_CMD_DEMO_H

#include "cmd/gpreempt/daemon.h"

#define DEMO_KERNEL_US 40000u
#define DEMO_REQUEST_US 3000u
#define DEMO_EVERY_MS 150u
#define DEMO_TRAIN_QUEUES 2u
#define DEMO_MAX_TRACE 6u /* the last so many events of holds */

struct demo_child {
	pid_t pid; /* 0: none */
	int pid_fd;
	int out_fd; /* what it prints; -1: nothing */
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

/* ---- demo_daemon.c; exit statuses, an error is said ---- */

int demo_begin(struct demo *d);
void demo_end(struct demo *d); /* also of one that did not begin well */

/* ---- demo_children.c ---- */

/*
 * Starts a program that dies with us, @death being the signal. Its standard output is ret->out_fd
 * if @capture, its standard error @err_fd unless -1. -errno.
 */
struct demo_start {
	const char *program; /* a path; else looked for in PATH */
	char *const *argv;
	bool capture;
	int err_fd;
	int keep_fd; /* stays open in it; -1: none */
	int death;
};
int demo_start(struct demo *d, const struct demo_start *how, struct demo_child *ret);
/* Ends it by @sig, sooner or later by SIGKILL, unless it has ended. Its wait status. */
int demo_stop(struct demo_child *c, int sig);
/*
 * Until one of two children (each may be NULL) has ended, taking events meanwhile. An exit
 * status; a signal to us is EXIT_FAILED, and said.
 */
int demo_wait(struct demo *d, struct demo_child *a, struct demo_child *b);

void demo_take_events(struct demo *d); /* those there are */

/* ---- demo_jobs.c ---- */

struct demo_job { /* what gpreempt load --json said; 0 where that does not apply */
	uint64_t requests;
	double mean_us, p50_us, p99_us, max_us;
	uint64_t kernels, complete, unfinished, saves;
	bool in_order;
	double goodput_pct;
	pid_t pid;
};

struct demo_part {
	const char *policy;
	int train_gpu, infer_gpu;
	struct demo_job train, infer;
};

int demo_run_part(struct demo *d, unsigned int requests, struct demo_part *part);

#endif
