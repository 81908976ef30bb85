/* SPDX-License-Identifier: MIT */
/*
 * The connections of one client of a software GPU (abi/device_wire.h): one for each call that is
 * under way. A process that was forked is another client.
 */
#ifndef GPREEMPT_GPU_SOFT_LINK_H
#define GPREEMPT_GPU_SOFT_LINK_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/uio.h>
#include <sys/un.h>

#include "abi/device_wire.h"

#define SOFT_MAX_OPEN 64 /* more calls than that wait for others */

struct soft_link { /* link.c's own, but for what is to be read */
	struct sockaddr_un addr;
	pthread_mutex_t lock;
	pthread_cond_t freed;
	pid_t pid; /* whose connections they are */
	uint64_t client; /* what the device calls us; 0: not yet */
	bool invented; /* some of its processes are not the machine's; to be read */
	int n_open, n_idle;
	struct soft_idle {
		int fd;
		uint64_t since_ns;
	} idle[SOFT_MAX_OPEN]; /* those unused longest first */
};

/*
 * Connects. -ENOENT, -ECONNREFUSED: nobody is there; -EUSERS: too many are; -EOPNOTSUPP: in another
 * pid namespace; -EPROTO: something else is. @l is all zero, and to be closed in any case.
 */
int soft_link_open(struct soft_link *l, const char *path);
/* All that is held through it is let go of. */
void soft_link_close(struct soft_link *l);

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
