/* SPDX-License-Identifier: MIT */
/*
 * The connections of one client of a software GPU (abi/device_wire.h): one for each call that is
 * under way. A process that was forked is another client.
 */
#ifndef GPREEMPT_GPU_SOFT_LINK_H
#define GPREEMPT_GPU_SOFT_LINK_H

#include <stdbool.h>
#include <sys/uio.h>

#include "abi/device_wire.h"

struct soft_link;

/*
 * Connects. -ENOENT, -ECONNREFUSED: nobody is there; -EUSERS: too many are; -EOPNOTSUPP: in another
 * pid namespace; -EPROTO: something else is.
 */
int soft_link_new(const char *path, struct soft_link **ret);
/* All that is held through it is let go of. Accepts NULL. */
void soft_link_free(struct soft_link *l);
bool soft_link_invented(
	const struct soft_link *l); /* some of its processes are not the machine's */

struct soft_call {
	struct device_call call; /* but for its header and the thread */
	struct iovec out[4]; /* spans and bytes */
	int n_out;
	struct iovec in[3]; /* where the answer's bytes go, which are @n_in at most */
	int n_in;
	struct device_return answer;
	int fd; /* that came with it, the caller's to close; -1: none */
};

/* What the driver returned; -ENODEV: the device is gone, or does not answer. */
int soft_call(struct soft_link *l, struct soft_call *c);

#endif
