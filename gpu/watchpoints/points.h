/* SPDX-License-Identifier: MIT */
/*
 * Hardware watchpoints on another process: when one of its threads next writes to one of these
 * addresses, the kernel sends the owner a signal. Nothing in the process changes and nobody traces
 * it; the right to ptrace it is needed, for reading.
 *
 * A watchpoint tells once. That thread is then free of it until it is armed anew, so that a burst
 * of writes costs the process one trap a thread, however long it is.
 *
 * A processor has four registers for watchpoints, which a thread shares with its debugger. Arming
 * waits for locks that the process can keep, so it is for readers (gpu/helpers/readers.h).
 */
#ifndef GPREEMPT_GPU_WATCHPOINTS_POINTS_H
#define GPREEMPT_GPU_WATCHPOINTS_POINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "gpu/helpers/reader.h"

#define POINTS_ADDRESSES 4u
#define POINTS_THREADS 512u /* of one process; what others write goes unseen, and that is told */

struct points_owner {
	pid_t tid; /* the thread that is sent the signal, */
	int32_t signal; /* whose si_fd is the number of the point */
};

/* A watchpoint: the process's address of that index, as one of its threads writes to it. */
struct point {
	int32_t number; /* of its descriptor in the reader */
	uint32_t address;
};

struct points; /* of one process */

int points_new(pid_t pid, const struct points_owner *owner, struct points **ret);
void points_free(struct points *p); /* accepts NULL */

/*
 * Arms all that are not: those of other addresses than before, of new threads, and those that have
 * told, @told being their numbers. The addresses are aligned to 8 bytes. @ret has room for @max,
 * and gets those that are new; their count is returned. *ret_unarmed: addresses, as bits, that
 * cannot be watched in some thread, of which *ret_error is the last reason.
 * -ESRCH: the process is gone.
 */
int points_arm(struct points *p, const uint64_t *addresses, size_t n, const int32_t *told,
	       size_t n_told, struct point *ret, size_t max, uint32_t *ret_unarmed, int *ret_error);

/* Whether this machine and these rights allow it at all, tried on the calling thread. -errno. */
int points_try(void);

/* ---- by a reader ---- */

struct points_request {
	uint32_t id; /* of the process, the owner's choice, below POINTS_IDS */
	uint32_t is_new; /* nothing is known of it: what there is of that id is another's */
	struct points_owner owner;
	uint32_t n; /* addresses; 0: it is not watched any more */
	uint32_t n_told; /* numbers that follow */
	uint64_t addresses[POINTS_ADDRESSES];
};

struct points_answer {
	uint64_t values[POINTS_ADDRESSES]; /* at the addresses, read after all were armed */
	uint32_t values_known; /* as bits */
	uint32_t unarmed;
	int32_t error;
	uint32_t n; /* points that follow */
};

#define POINTS_IDS 4096u

struct points_all; /* what a reader keeps */
int points_all_new(struct points_all **ret);
int points_serve(struct points_all *all, pid_t pid, const void *request, size_t len,
		 struct reader_room *room);

#endif
