/* SPDX-License-Identifier: MIT */
/*
 * "Tell me when this process next writes here": watchpoints (points.h), armed by readers of their
 * own, one for each user. Whoever owns alerts only reads signals, and waits for nothing.
 *
 * An alert is armed while the process is idle and tells once. Then, and where it cannot be armed,
 * the process has to be looked at.
 *
 * All calls come from one thread, which has these signals blocked from alerts_new() on.
 */
#ifndef GPREEMPT_GPU_WATCHPOINTS_ALERTS_H
#define GPREEMPT_GPU_WATCHPOINTS_ALERTS_H

#include <sys/queue.h>

#include "gpu/helpers/readers.h"
#include "gpu/watchpoints/points.h"

struct alerts;

enum alert_state {
	ALERT_OFF, /* not asked for, over, or impossible: error says why */
	ALERT_ARMING,
	ALERT_ARMED, /* what is written there will be told */
};

struct alert { /* of one process; the owner embeds it and may read what is above the line */
	pid_t pid;
	enum alert_state state;
	uint32_t written; /* addresses that were, as bits; until alerts_next() */
	uint64_t addresses[POINTS_ADDRESSES];
	uint32_t n;
	int error; /* why it could not be armed the last time; 0: it could */
	/* ---- */
	LIST_ENTRY(alert) link;
	TAILQ_ENTRY(alert) hit;
	bool is_hit;
	struct alerts *all;
	struct readers_task task;
	uint32_t id;
	uint32_t reader; /* that has its points; 0: none has */
	uint64_t request; /* the last to it, as all of them are counted */
	bool compares;
	uint64_t expected[POINTS_ADDRESSES];
	int32_t *told;
	size_t n_told, told_room;
	uint64_t again_ns, again_after_ns; /* when it may be tried again, after an error */
};

/* -ENOPKG: the program is not installed. */
int alerts_new(struct alerts **ret);
void alerts_free(struct alerts *all); /* all have ended; accepts NULL */

int alert_begin(struct alerts *all, struct alert *a, pid_t pid); /* -ESRCH, -ENOSPC */
void alert_end(struct alert *a);

/*
 * Arms it, which the next alerts_see() begins. @expected: what is there as long as nobody has
 * written, where the owner knows; a difference counts as written. NULL: nothing does. False: it is
 * armed so, is just being armed or disarmed, or was refused a short time ago.
 */
bool alert_arm(struct alert *a, const uint64_t *addresses, const uint64_t *expected, size_t n);
void alert_disarm(struct alert *a);

/* It is armed, and nothing that was written by now has been told. */
bool alert_is_silent(struct alert *a);

/* What was written: readable when alerts_next() has one. */
int alerts_fd(const struct alerts *all);
/* The next one that has something written, which is taken from it; NULL: there is none. */
struct alert *alerts_next(struct alerts *all, uint32_t *ret_written);
/* The readers that arm: readable when there is something for alerts_run(). */
int alerts_readers_fd(const struct alerts *all);
void alerts_run(struct alerts *all);
void alerts_see(struct alerts *all); /* the same where it is not readable, and after arming */

uint64_t alerts_spent_ns(const struct alerts *all); /* processor time of readers */
uint64_t alerts_traps(const struct alerts *all); /* signals so far: what processes paid */
/* Why there are no alerts where it says so, for people. */
const char *alert_why(int error);

#endif
