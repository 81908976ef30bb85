/* SPDX-License-Identifier: MIT */
/*
 * A transport whose driver is a script: every call is turned into one line of text, compared
 * with the line that was expected, and answered as told. A call too many, one too few or one
 * that differs fails the test. Without a script it plays a small obliging driver.
 */
#ifndef GPREEMPT_TESTS_KFD_SCRIPT_H
#define GPREEMPT_TESTS_KFD_SCRIPT_H

#include "gpu/kfd/kfd.h"

#define SCRIPT_MAX_IDS 16

struct script_step {
	/*
	 * "version", "snapshot mask=40000000 room=64", "enable", "runtime-event",
	 * "suspend grace=1 ids=3,2", "resume ids=3,2", "resume all", "disable", "query",
	 * "update 3 percent=0 priority=7 ring=1000+4096", and on a borrowed descriptor "pause",
	 * "unpause"
	 */
	const char *call;
	int ret;

	uint32_t queues; /* snapshot: how many there are */
	uint32_t ids[SCRIPT_MAX_IDS]; /* snapshot: which; suspend, resume: bits ORed in */
	uint32_t runtime_state; /* enable */
	uint64_t pending; /* query */
	uint32_t minor; /* version; 0: 17 */
};

struct script;

/* @trace NULL: nothing is traced, every seizure works. */
struct script *script_new(const struct gkfd_trace_ops *trace);
void script_play(struct script *s, const struct script_step *steps, size_t n);
#define SCRIPT_PLAY(s, ...) \
	script_play(s, (const struct script_step[]){ __VA_ARGS__ }, \
		    sizeof((const struct script_step[]){ __VA_ARGS__ }) / \
			    sizeof(struct script_step))
/* Fails the test unless every step was played. */
void script_done(struct script *s);

/* From the @n-th call on (0: the next) the process is gone: -ESRCH. */
void script_vanish_after(struct script *s, size_t n);
/* From now on the driver does not find a process by @pid, its leader, which has ended. */
void script_lose_leader(struct script *s, pid_t pid);
/* The obliging driver has so many queues, and counts. */
void script_set_queues(struct script *s, uint32_t n);
uint32_t script_suspended(struct script *s);
/* Processes have so many descriptors of the driver to borrow; at first none. */
void script_lend(struct script *s, unsigned int n);
/* How often the obliging driver has queues evicted: it counts, as the real one does. */
int script_evictions(struct script *s);
/* The next suspend blocks until @fd is readable. */
void script_block_suspend(struct script *s, int fd);
/* From now on files of other processes are not listed before @fd is readable. */
void script_block_files(struct script *s, int fd);
/* From now on every call of the driver waits for ever, as for a GPU that does not answer. */
void script_hang_driver(struct script *s);
/* From now on asking for the time does: a deadlock of whoever does so. */
void script_freeze(struct script *s);
/* Writes the byte the driver writes when an event is pending. */
void script_raise(struct script *s);

/* /proc/PID/status as it should read; for untraced scripts. */
void script_set_process(struct script *s, pid_t pid, pid_t tracer, uint64_t start);

struct gkfd *script_gkfd(struct script *s); /* owns the script from then on */

#endif
