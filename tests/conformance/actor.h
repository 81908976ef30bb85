/* SPDX-License-Identifier: MIT */
/* The process on the other side of a channel: it does what it is told, one order at a time. */
#ifndef GPREEMPT_TESTS_CONFORMANCE_ACTOR_H
#define GPREEMPT_TESTS_CONFORMANCE_ACTOR_H

#include <stdint.h>
#include <sys/types.h>

#include "tests/conformance/world.h"

enum order_kind {
	ORDER_OPEN, /* the file named at @arg; answers a descriptor */
	ORDER_IOCTL, /* on @fd, of process @pid where that is not 0 */
	ORDER_MAP, /* @len bytes of the GPU's memory: @arg has the call to make */
	ORDER_PEEK, /* @len bytes at @va to @arg */
	ORDER_POKE, /* the other way */
	ORDER_RING, /* the doorbell at @va of @fd, with @arg */
	ORDER_SEIZE, /* @pid */
	ORDER_DETACH, /* @pid; it is stopped for that */
	ORDER_PASS_SIGNAL, /* to @pid, which we trace, once it stops for it */
	ORDER_REAP, /* @pid, which we trace and which dies */
	ORDER_FORK, /* answers a pid; the child listens to the spare channels */
	ORDER_EXEC,
	ORDER_END_THREAD,
};

struct order {
	enum order_kind kind;
	int fd, fd2;
	pid_t pid;
	unsigned long request;
	uint64_t arg; /* an address in the arena, for most */
	uint64_t va;
	uint64_t len;
};

struct actor_channels { /* of an actor, for its threads */
	int own[ACTOR_THREADS];
	int spare[ACTOR_THREADS]; /* of a child it may fork */
};

/* Each thread says its id and then serves its channel. Never returns. */
_Noreturn void actor_serve(const struct actor_channels *c);
/* After exec: the words behind "--actor". */
_Noreturn void actor_main(char **argv);

#endif
