/* SPDX-License-Identifier: MIT */
/* What runs inside the guard process. */
#ifndef GPREEMPT_GPU_GUARD_WATCH_H
#define GPREEMPT_GPU_GUARD_WATCH_H

#include "gpu/guard.h"

#define GUARD_LOOK_NS 50000000ull
/* While all is well it need not look as often: no deadline is nearer than GUARD_SILENCE_NS. */
#define GUARD_SELDOM_NS (5 * GUARD_LOOK_NS)
/* A holder that was killed so long ago and has not ended hangs. */
#define GUARD_STUCK_NS (4 * GUARD_LOOK_NS)
/* A guard that does not look for so long is dead. */
#define GUARD_OWN_NS 1650000000ull

/* The earliest deadline of all armed slots; 0: none is armed. */
uint64_t guard_earliest(const struct guard_page *page);

/*
 * A look at @at_ns: is it time to kill? The earliest deadline must be seen past in two looks,
 * one after the other (*late carries over): after a pause of the whole machine the guard may be
 * the first to run, and a holder that is well deserves its turn.
 */
bool guard_must_kill(uint64_t first_ns, uint64_t at_ns, bool *late);

/* What the guard knows its holder by. Descriptors: -1 where the kernel has none to give. */
struct guard_holder {
	pid_t pid;
	int pidfd;
	int stat_fd; /* its /proc/PID/stat */
	int life_fd; /* its messages; of whose other end nobody is left, it has ended */
	struct guard_rescue rescue;
};

/* How long until the next look is soon enough; @stopped: the holder was, at this one. */
uint64_t guard_next_look(uint64_t first_ns, uint64_t at_ns, bool stopped);

/* The state that @n bytes of a /proc/PID/stat tell, in the letters of proc(5); '\0': none. */
char guard_read_state(const char *stat, size_t n);

/*
 * Watches the holder, and takes what it entrusts through life_fd, until it is gone, or until
 * nobody has the other end of life_fd any more: then it runs another program, which holds
 * nothing and keeps no deadlines. What is due then is undone, and sooner where it was killed and
 * hangs. Runs in a process that shares the holder's memory but none of its threads, so: system
 * calls, no libc.
 */
_Noreturn void guard_watch(struct guard_page *page, const struct guard_holder *holder);

/* ---- guard_undo.c: what it was entrusted with, and undoing it ---- */

/*
 * What a holder tells its guard: descriptors for a slot, or none any more; or only that something
 * is armed. The answer is alike.
 */
#define GUARD_ARMED (-1) /* for no slot */
#define GUARD_MESSAGE_FDS 2 /* what to undo on, and the target's pidfd */

struct guard_message {
	int32_t slot; /* in the answer: the same, or -errno */
};

struct guard_lent { /* for one slot */
	int fd; /* of the target's, to undo on; -1: nothing was lent */
	int pidfd; /* of the target */
};

/* Takes one message of the holder's from @life_fd and answers it. */
void guard_hear(int life_fd, struct guard_lent *lent);

/*
 * The holder is gone: makes the calls that are due, for each slot in a process of its own, as long
 * as the target lives. Where it has to be traced it is seized as soon as it can be, and let go by
 * that process's end.
 */
void guard_undo_all(struct guard_page *page, struct guard_lent *lent);

#endif
