/* SPDX-License-Identifier: MIT */
/*
 * A thread that looks who has begun to use a GPU, and tells a backend's owner when somebody has: so
 * the owner need not wake up to find that nobody has, nor wait for what lies in /proc.
 */
#ifndef GPREEMPT_GPU_SCOUT_H
#define GPREEMPT_GPU_SCOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "util/macros.h"

struct scout;

/*
 * How often it is looked at what nothing else tells of: a dozen times a second, and twice as often
 * while something happens.
 */
#define SCOUT_CALM_NS (80 * NSEC_PER_MSEC)
#define SCOUT_BUSY_NS (40 * NSEC_PER_MSEC)
#define SCOUT_NEVER UINT64_MAX

struct scout_options {
	/*
	 * Readable when somebody may have begun, and for look() to empty; -1: none. Somebody may
	 * make that so again and again: it is heard no more often than while something happens.
	 */
	int fd;
	int answers_fd; /* the same, of helpers, which is heard at once; -1: none */
	/*
	 * Called by the thread when one of these is readable (@heard), and after the time that it
	 * told the last time, SCOUT_CALM_NS at first. True: the owner is told.
	 */
	bool (*look)(void *user, bool heard, uint64_t *ret_wait_ns);
	void *user;
};

int scout_start(const struct scout_options *options, struct scout **ret);
void scout_end(struct scout *s); /* accepts NULL */

int scout_fd(const struct scout *s); /* readable while there is something to be told */
bool scout_told(struct scout *s); /* whether there was */

#endif
