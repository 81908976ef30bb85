/* SPDX-License-Identifier: MIT */
/*
 * What the driver of a test's holder knows, and what it is told: memory that the test shares with
 * it, by the pid of the target.
 */
#ifndef GPREEMPT_TESTS_KFD_HOLDER_BOARD_H
#define GPREEMPT_TESTS_KFD_HOLDER_BOARD_H

#include <sys/types.h>

struct board {
	int suspended; /* queues */
	int rescued; /* pid that a guard had rescued */
	int suspends; /* calls */
	int hangs; /* from now on calls do not come back */
};

struct board *board_of(pid_t target); /* makes it, too */
void board_remove(pid_t target);

#endif
