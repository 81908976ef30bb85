/* SPDX-License-Identifier: MIT */
/*
 * How an actor's thread and who directs it speak: a line of shared memory with the order, the
 * answer, and whose turn it is. Cheaper than anything with a descriptor, and there are thousands.
 */
#ifndef GPREEMPT_TESTS_CONFORMANCE_CHANNEL_H
#define GPREEMPT_TESTS_CONFORMANCE_CHANNEL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

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
	ORDER_FORK, /* answers a pid; the child listens in slot @fd */
	ORDER_EXEC, /* @fd: the arena's */
	ORDER_BECOME, /* user and group @arg */
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

enum turn { TURN_ACTOR, TURN_DIRECTOR };

struct channel {
	uint32_t turn;
	struct order order;
	int64_t answer;
};

/* To begin with it is the actor's turn: it says its thread's id. Who listened before shall end. */
void channel_reset(struct channel *c);
/* What was written before is seen by the other side. */
void channel_pass(struct channel *c, enum turn next);
/* False: not @whose turn after @timeout_ms. */
bool channel_await(struct channel *c, enum turn whose, int timeout_ms);

#endif
