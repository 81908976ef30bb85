/* SPDX-License-Identifier: MIT */
/* What runs inside the guard process. */
#ifndef GPREEMPT_GPU_GUARD_WATCH_H
#define GPREEMPT_GPU_GUARD_WATCH_H

#include "gpu/guard.h"

#define GUARD_LOOK_NS 100000000ull

/* The earliest deadline of all armed slots; 0: none is armed. */
uint64_t guard_earliest(const struct guard_page *page);

/*
 * A look at @at_ns: is it time to kill? The earliest deadline must be seen past in two looks,
 * one after the other (*late carries over): after a pause of the whole machine the guard may be
 * the first to run, and a holder that is well deserves its turn.
 */
bool guard_must_kill(uint64_t first_ns, uint64_t at_ns, bool *late);

/*
 * Watches the holder, and takes what it entrusts through @life_fd, until it is gone, or until
 * nobody has the other end of @life_fd any more: then it runs another program, which holds
 * nothing and keeps no deadlines. What is due then is undone. Runs in a process that shares the
 * holder's memory only in name (its pages are copies, its threads are not there), so: system
 * calls, no libc.
 */
_Noreturn void guard_watch(struct guard_page *page, pid_t holder, int holder_fd, int life_fd);

#endif
