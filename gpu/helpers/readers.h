/* SPDX-License-Identifier: MIT */
/*
 * Readers: processes that read what other processes control (their memory, their files in /proc,
 * descriptors, and files of the driver for which it waits for them). Such a read can be made to
 * wait for ever, beyond the reach of SIGKILL, by a mapping of a file whose server does not answer.
 * So a reader has nothing that anybody depends on, and one that hangs is abandoned.
 *
 * Every user has readers of his own: one, and one apart for what the kernel knows of his processes.
 * When one hangs, the process it hangs at is left alone for a while, and his other processes get
 * another reader, as long as not too many hang already.
 *
 * Nothing here waits, except readers_wait().
 */
#ifndef GPREEMPT_GPU_HELPERS_READERS_H
#define GPREEMPT_GPU_HELPERS_READERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "gpu/helpers/drop.h"
#include "gpu/helpers/reader.h"

/* The reader of what is no process's in particular. */
#define READERS_SYSTEM ((uid_t)-1)

struct readers;
struct readers_task;

struct readers_options {
	uint64_t patience_ns; /* for one task; 0: the usual */
	unsigned int most_hung; /* readers of one user; 0: the usual */
	unsigned int most; /* readers at a time, whosever; 0: the usual */
	/*
	 * Readers keep something for their owner: one that has nothing to do stays until
	 * readers_let_end(). This is told of each that is gone, by its number.
	 */
	void (*ended)(void *user, uint32_t reader);
	void *user;
	int file; /* that each finds at READER_FILE; 0: none. There until readers_free() */
};

struct readers_answer {
	int result; /* the service's, or one of those below */
	const void *bytes;
	size_t len;
	int *fds; /* those that are not taken (steal_fd) are closed */
	uint32_t n_fds;
};

/*
 * Results that are not the service's:
 * -ETIMEDOUT   the reader hangs at this process, or did so a short time ago
 * -EUSERS      too many readers of this user hang, or all that there may be are at work
 * -EIO         the reader ended over it
 * -ENOBUFS     it does not fit into a request
 */
struct readers_task {
	uint32_t service;
	pid_t pid;
	uid_t user; /* whose reader: readers_user_of(), or READERS_SYSTEM */
	bool apart; /* by a second reader of the user's, who waits for no memory */
	bool wants_fds; /* goes alone */
	const void *request; /* what else is to be said to the reader; there until it is done */
	size_t len;
	/*
	 * Or writes that, where it depends on the reader, and returns its length, or SIZE_MAX: @max
	 * is too little. @reader is another number for another reader. NULL: the request is said.
	 */
	size_t (*write)(struct readers_task *t, uint32_t reader, void *to, size_t max);
	/* It is not under way any more, and may be posted again or freed. */
	void (*done)(struct readers_task *t, struct readers_answer *answer);

	/* the readers' */
	TAILQ_ENTRY(readers_task) link;
	struct crew *crew; /* NULL: not under way */
	bool sent;
};

/* Such a result, or what kept a reader from beginning, for people. */
const char *readers_why(int result);

/* -ENOPKG: the program is not installed. */
int readers_new(const struct readers_options *options, struct readers **ret);
/* What is under way is forgotten: its done() is not called. Accepts NULL. */
void readers_free(struct readers *r);

int readers_fd(const struct readers *r); /* readable when there is something for readers_run() */

/* Whose process it is: its effective user. -ESRCH. */
int readers_user_of(pid_t pid, uid_t *ret);

/* Begins @t, which must not be under way. It is sent with others by the next readers_run(). */
void readers_post(struct readers *r, struct readers_task *t);
void readers_cancel(struct readers *r, struct readers_task *t); /* done() is not called any more */
/* What this user's readers keep is not needed any more, unless something is asked of them. */
void readers_let_end(struct readers *r, uid_t user);

/*
 * Takes what came back, abandons who hangs, sends what waits. To be called when readers_fd() is
 * readable, after readers_post(), and a few times a second.
 */
void readers_run(struct readers *r);
void readers_see(struct readers *r); /* the same where readers_fd() is not readable: cheaper */
/* The same for at most @ns, until *@left is 0, which some done() counts down; NULL: while busy. */
void readers_wait(struct readers *r, uint64_t ns, const unsigned int *left);
/* The same, but no longer than until @other is readable. */
void readers_wait_unless(struct readers *r, uint64_t ns, const unsigned int *left, int other);
/* One of them is at something, which may be cancelled by now, or is waited for. */
bool readers_are_busy(const struct readers *r);
uint64_t readers_spent_ns(const struct readers *r); /* processor time of all so far */
/* For descriptors that came with answers, whose last close may wait for somebody. */
struct drops *readers_drops(struct readers *r);

/* One task, by readers of its own, waiting for at most @ns. -errno: its done() was not called. */
int readers_once(struct readers_task *t, uint64_t patience_ns, uint64_t ns);

#endif
