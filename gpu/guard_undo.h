/* SPDX-License-Identifier: MIT */
/* Inside the guard process: what it was entrusted with, and undoing it. */
#ifndef GPREEMPT_GPU_GUARD_UNDO_H
#define GPREEMPT_GPU_GUARD_UNDO_H

#include "gpu/guard.h"

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
