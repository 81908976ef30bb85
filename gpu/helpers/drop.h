/* SPDX-License-Identifier: MIT */
/*
 * Closing descriptors whose last close may wait for somebody: by a child that has nothing to do but
 * to die. Whoever drops one never closes it last.
 *
 * One thread at a time.
 */
#ifndef GPREEMPT_GPU_HELPERS_DROP_H
#define GPREEMPT_GPU_HELPERS_DROP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define DROP_CHILDREN 64u /* that may be at it at once */

struct drops { /* zeroed before the first; in the end fds is the owner's to free */
	int *fds;
	uint32_t n_fds;
	pid_t children[DROP_CHILDREN];
	uint32_t n_children;
};

void drop_later(struct drops *d, int fd); /* with others; it is not the caller's any more */
bool drop_now(struct drops *d); /* all of them; false: they still are there */

#endif
