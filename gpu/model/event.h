/* SPDX-License-Identifier: MIT */
/*
 * Virtual time: a clock and what is due. Events at the same instant run in the order they were
 * set, so a run depends on nothing but its inputs.
 */
#ifndef GPREEMPT_GPU_MODEL_EVENT_H
#define GPREEMPT_GPU_MODEL_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An instant that never comes. An event set to it keeps its place, so moving it cannot fail. */
#define TIMELINE_NEVER UINT64_MAX

struct event { /* embedded in its owner; must outlive being set */
	uint64_t at_ns;
	uint64_t seq;
	size_t slot; /* in the heap, 0: not set */
	void (*run)(struct event *e);
};

struct timeline {
	uint64_t now_ns;
	uint64_t seq;
	struct event **heap; /* slots from 1 */
	size_t n, cap;
};

void timeline_init(struct timeline *t);
void timeline_done(struct timeline *t); /* whatever is still set is not set any more */
/*
 * Sets or moves; at_ns in the past means now. -ENOMEM; not when @e is set already, nor from
 * within its own run() before anything else is set.
 */
int timeline_set(struct timeline *t, struct event *e, uint64_t at_ns);
void timeline_cancel(struct timeline *t, struct event *e);
/* Runs what is due up to @until_ns and leaves the clock there, or later if an event took it on. */
void timeline_run(struct timeline *t, uint64_t until_ns);
/* Runs the events of the next instant up to @limit_ns; false: none due, clock at the limit. */
bool timeline_step(struct timeline *t, uint64_t limit_ns);
uint64_t timeline_next_ns(const struct timeline *t); /* TIMELINE_NEVER: nothing is due */

#endif
