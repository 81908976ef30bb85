/* SPDX-License-Identifier: MIT */
/* A process with threads that write to its memory when told to. */
#ifndef GPREEMPT_TESTS_WATCHPOINTS_ACTOR_H
#define GPREEMPT_TESTS_WATCHPOINTS_ACTOR_H

#include <stdint.h>
#include <sys/types.h>

#define ACTOR_WORDS 128
#define ACTOR_THREADS 256

/* Of each actor, in its memory: every process has its own at the same address. */
extern volatile uint64_t actor_words[ACTOR_WORDS];

struct actor {
	pid_t pid;
	int to, from;
};

void actor_start(struct actor *a);
void actor_end(struct actor *a); /* kills it */
/* Each returns when it is done. Thread 0 is the first; others are there once asked for. */
void actor_write(struct actor *a, uint32_t thread, uint32_t word, uint32_t times);
void actor_set_threads(struct actor *a, uint32_t n); /* besides the first: they come or end */
/* So many threads one after the other, each of which writes once and ends. Only begins. */
void actor_churn(struct actor *a, uint32_t word, uint32_t n);
void actor_wait(struct actor *a); /* until that is over */
void actor_exec(struct actor *a); /* another program, which waits for its end */
pid_t actor_fork(struct actor *a); /* a child of it that waits for its end */
/*
 * From now on one thread of it keeps the lock of the kernel's by which events on that thread are
 * opened, armed and closed: it reads a counter of its own into memory that nobody provides.
 * -errno: this machine does not allow that.
 */
int actor_keep_lock(struct actor *a);

#endif
