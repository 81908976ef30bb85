/* SPDX-License-Identifier: MIT */
/*
 * Closing descriptors whose last close may wait for somebody: by a child that has nothing to do but
 * to die. Whoever drops one never closes it last.
 *
 * Each descriptor is one of some user's doing, and a child drops those of one user. Who has many
 * children hang has later ones wait until there are many for the next child, and nobody else does.
 *
 * One thread at a time.
 */
#ifndef GPREEMPT_GPU_HELPERS_DROP_H
#define GPREEMPT_GPU_HELPERS_DROP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define DROP_CHILDREN 1024u /* that may be at it at once */

struct drop {
	int fd;
	uid_t user; /* who may make its close wait */
};

struct drop_child {
	pid_t pid;
	uid_t user;
};

struct drops { /* zeroed before the first; in the end all is the owner's to free */
	struct drop *all; /* by user */
	uint32_t n;
	struct drop_child children[DROP_CHILDREN];
	uint32_t n_children;
};

/* With others; it is not the caller's any more. */
void drop_later(struct drops *d, int fd, uid_t user);
void drop_now(struct drops *d); /* whatever has a child; the rest stays */
uint32_t drop_count(const struct drops *d, uid_t user); /* that stay */

#endif
