/* SPDX-License-Identifier: MIT */
/*
 * After a daemon that ended without letting go: what its journal names, and nobody else holds now,
 * is released. Does no harm where nothing is wrong, and takes no longer than CLEAN_UP_NS.
 */
#ifndef GPREEMPT_CMD_GPREEMPTD_CLEAN_UP_H
#define GPREEMPT_CMD_GPREEMPTD_CLEAN_UP_H

#include <stdbool.h>

#include "cmd/gpreemptd/journal.h"
#include "util/macros.h"

#define CLEAN_UP_NS (10 * NSEC_PER_SEC)
#define CLEAN_UP_ONE_NS (2 * NSEC_PER_SEC) /* what a driver may take for one of them */

struct clean_up_result {
	bool torn; /* the journal was none, and was removed */
	unsigned int left; /* entries of this boot whose process lives, but for level K3 */
	unsigned int released; /* of them, still held, or (levels N) maybe so */
	unsigned int failed;
	int error; /* of the first that failed */
};

/*
 * By a child process for each, because whoever takes over a driver session can hold nothing
 * afterwards that its death would undo, and because each may hang. What a driver held that is there
 * no more is held no more. One that a driver sticks at counts as failed, and others are still seen
 * to. Empties the journal unless something failed. -EBUSY: a daemon has the journal, and is not to
 * be cleaned up after.
 */
int clean_up(const char *journal_path, struct clean_up_result *ret);

/* The same of this entry, in this process. */
void clean_up_here(const struct journal_entry *e, struct clean_up_result *ret);

#endif
