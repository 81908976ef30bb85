/* SPDX-License-Identifier: MIT */
/*
 * A whole vendor in little; docs/add-a-vendor.md walks through it. Its driver is a table of
 * processes and queues and a clock that moves when told. It keeps the ends of holds itself.
 */
#ifndef GPREEMPT_TESTS_BACKEND_TOY_TOY_H
#define GPREEMPT_TESTS_BACKEND_TOY_TOY_H

#include "gpu/driver.h"

#define TOY_PROCS 4
#define TOY_QUEUES 16
#define TOY_GPU 7

struct toy_proc {
	pid_t pid; /* 0: none */
	uint64_t start_ticks;
	uint32_t n; /* queues, numbered from 0, each with work */
	uint32_t off; /* a bit for each that is off the GPU, or, of all, would be */
	uint64_t until_ns; /* then they come back by themselves */
};

struct toy {
	struct toy_proc procs[TOY_PROCS]; /* by pid */
	uint64_t now_ns;
	uint64_t calls; /* that moved queues */
	bool stuck; /* the GPU does not let go */
	bool busy; /* it takes no orders now */
	void (*ended)(void *user, pid_t pid);
	void *user;
};

struct toy_proc *toy_find(struct toy *d, pid_t pid); /* NULL: none */
void toy_exit(struct toy *d, pid_t pid);
void toy_advance(struct toy *d, uint64_t ns);
uint32_t toy_count_off(const struct toy_proc *p);
/*
 * Makes @off those that are off, until then. How many were moved; -ESRCH; -EIO: the GPU did not let
 * go, and all are on.
 */
int toy_move(struct toy *d, pid_t pid, uint32_t off, uint64_t until_ns);

/* @d is borrowed. */
int toy_backend_open(struct toy *d, struct gpu_backend **ret);

extern struct toy *toy_machine; /* that toy_driver finds; NULL: there is none */
extern const struct gpu_driver toy_driver;

#endif
