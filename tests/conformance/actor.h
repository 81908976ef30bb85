/* SPDX-License-Identifier: MIT */
/* The process on the other side of channels: it does what it is told, one order at a time. */
#ifndef GPREEMPT_TESTS_CONFORMANCE_ACTOR_H
#define GPREEMPT_TESTS_CONFORMANCE_ACTOR_H

#include "tests/conformance/channel.h"
#include "tests/conformance/world.h"

/* The begin of the arena has the channels of all processes there can be at a time. */
#define ACTOR_SLOTS (ARENA_FIXED / (ACTOR_THREADS * sizeof(struct channel)))
struct channel *actor_channel(int slot, int thread);

/* Each thread says its id and then serves its channel. Never returns. */
_Noreturn void actor_serve(int slot);
/* After exec: the words behind "--actor". */
_Noreturn void actor_main(char **argv);

#endif
