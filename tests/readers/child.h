/* SPDX-License-Identifier: MIT */
/* A real process to read from and to trace: it waits until it is told to end. */
#ifndef GPREEMPT_TESTS_READERS_CHILD_H
#define GPREEMPT_TESTS_READERS_CHILD_H

#include <sys/types.h>

struct child {
	pid_t pid;
	int said; /* what it writes */
	int hold; /* closed: it ends */
};

/* Forks; the child runs @prepare, says 'r' and then every byte it is sent. */
void child_start(struct child *c, void (*prepare)(void *arg), void *arg);
/* Sends it a byte and waits for the answer: it runs. */
void child_answers(struct child *c);
/* Lets it end and reaps it; the wait status. */
int child_end(struct child *c);

#endif
