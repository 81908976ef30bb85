/* SPDX-License-Identifier: MIT */
/*
 * Descriptors of other processes, by pidfd_getfd(2). What a descriptor stands for is its process's
 * choice, and to ask a file what it is may wait for a server of that process's choice: so readers
 * ask.
 */
#ifndef GPREEMPT_GPU_HELPERS_BORROW_H
#define GPREEMPT_GPU_HELPERS_BORROW_H

#include <sys/types.h>

#include "gpu/helpers/readers.h"

/*
 * A copy of the @nth descriptor, by its number, that the process has open on the device @rdev; the
 * caller's to close. The right to it is the right to trace the process: -EPERM, -EACCES. -ENOENT:
 * it has no more; -ESRCH: it is gone; -EAGAIN: it opens and closes them as we look; -ETIMEDOUT:
 * one of them does not say what it is.
 */
int borrow(pid_t pid, dev_t rdev, unsigned int nth);

/* The same without a reader, for whoever may hang. */
int borrow_here(pid_t pid, dev_t rdev, unsigned int nth);

#define BORROW_LINK 32 /* bytes of what a descriptor points to that are kept */
#define BORROW_END UINT64_MAX

struct borrowed {
	int fd; /* the copy */
	uint32_t number; /* what it is in the process, */
	char link[BORROW_LINK]; /* and what that points to, cut off */
};

struct borrow_place { /* how far it is */
	uint64_t position; /* 0 at first; BORROW_END: there are no more */
	unsigned int left; /* descriptors that may be looked at */
	unsigned int skip; /* of those on the device */
	bool missed; /* one was closed as we looked */
};

/* The same of several, without a reader: how many there are from that place on, up to @max. */
int borrow_some_here(pid_t pid, dev_t rdev, struct borrow_place *at, struct borrowed *ret,
		     size_t max);

/* ---- by a reader; an answer is how many, and they ---- */

struct borrow_request {
	uint64_t rdev;
	uint32_t first; /* nth */
	uint32_t most; /* descriptors that are wanted, up to READER_FDS */
};
int borrow_serve(void *user, pid_t pid, const void *request, size_t len, struct reader_room *room);

#endif
