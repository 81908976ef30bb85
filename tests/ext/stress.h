/* SPDX-License-Identifier: MIT */
/*
 * Everything at once: processes with queues (targets) that come and go in every way there is,
 * processes that hold them through the extension (holders), and one that sets the scheduler in the
 * driver (the owner), for the guest.
 *
 * They are children of one process and share its struct world. Who breaks a rule that all keep
 * says so and counts it: the run has failed.
 */
#ifndef GPREEMPT_TESTS_EXT_STRESS_H
#define GPREEMPT_TESTS_EXT_STRESS_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

#include "abi/kfd_gpreempt.h"

#define STRESS_TARGETS 6u
#define STRESS_MAX_GPUS 8u
#define STRESS_QUEUES 4u /* of a target, at most */
#define STRESS_DEVICE "/dev/" KFD_GPREEMPT_DEVICE

/*
 * A debugger's first call and its target's end must not meet: in Linux 6.12 kfd_create_process()
 * looks at the memory of a process that may have lost it by then, and there is none.
 */
enum stress_door { DOOR_OPEN, DOOR_DEBUGGER, DOOR_END };

/*
 * A lossy world is one in which GPUs die and are reset. Work is lost then, and calls may fail as
 * the hardware does. Two things are left out, as the driver of Linux 6.12 does not stand them:
 *
 *  - eviction as before a checkpoint: when a second GPU does not yield kfd_process_evict_queues()
 *    puts the queues of the first on again, the end of the pause does so once more, and warns;
 *  - debuggers: targets end when their calls fail, and nobody keeps the door then.
 */
struct world {
	bool lossy;
	atomic_bool calm; /* targets hold nothing of their own any more */
	atomic_bool stop; /* they finish what they have and leave */
	unsigned int n_gpus;
	uint32_t gpu_ids[STRESS_MAX_GPUS];
	atomic_uint drain_ms; /* how long a queue may stand still at the end */
	struct {
		_Atomic pid_t pid; /* 0: none just now */
		atomic_int kfd; /* its descriptor of the driver */
		atomic_int door; /* enum stress_door */
	} targets[STRESS_TARGETS];

	/* what was done */
	atomic_ulong batches, entries, taken_off, tickets, singles, stops, binds, looks;
	atomic_ulong queues, forks, execs, evictions, sessions, suspends, own_holds, packets;
	atomic_ulong settings, classes, policies, reservations, hints, events;
	atomic_ulong right; /* targets that came to their end */
	atomic_ulong broken; /* rules */
};

#define stress_broken(w, ...) \
	do { \
		fprintf(stderr, "# broken: " __VA_ARGS__); \
		fputc('\n', stderr); \
		atomic_fetch_add(&(w)->broken, 1); \
	} while (0)

static inline unsigned int stress_below(unsigned int *seed, unsigned int n)
{
	return (unsigned int)rand_r(seed) % n;
}

uint64_t stress_now_ms(void);

/* What a call may say where GPUs die. */
static inline bool stress_is_loss(const struct world *w, int error)
{
	return w->lossy && (error == EIO || error == ETIME || error == ETIMEDOUT);
}

/* Goes through the target's door as @who, if nobody else does. */
static inline bool stress_enter(struct world *w, unsigned int slot, enum stress_door who)
{
	int open = DOOR_OPEN;

	return atomic_compare_exchange_strong(&w->targets[slot].door, &open, who);
}

/* A child's whole life; @memory is the world's file, for after exec. */
_Noreturn void stress_target(struct world *w, int memory, unsigned int slot, unsigned int seed);
_Noreturn void stress_holder(struct world *w, unsigned int seed);
_Noreturn void stress_owner(struct world *w, unsigned int seed);
_Noreturn void stress_debugger(struct world *w, unsigned int seed);

#endif
