/* SPDX-License-Identifier: MIT */
/*
 * Does several things apart: each in a child process of its own, a few at a time, and none for
 * longer than it may take. What hangs in one of them, even beyond SIGKILL, keeps nothing else.
 *
 * For programs with one thread: the children are copies of the caller.
 */
#ifndef GPREEMPT_UTIL_APART_H
#define GPREEMPT_UTIL_APART_H

#include <stddef.h>
#include <stdint.h>

struct apart {
	size_t n;
	unsigned int at_once;
	uint64_t limit_ns; /* for each */
	uint64_t all_ns; /* for all together: what is not begun by then fails */
	/* In the child: thing @i, whose result goes to @ret (zeroed, @result_size bytes). */
	void (*run)(void *user, size_t i, void *ret);
	void *user;
	size_t result_size;
};

/*
 * @results: n of result_size bytes. @errors: n; 0: it was done; -ETIMEDOUT: it took too long, and
 * its process is left to itself; -ECHILD: it ended in another way. -errno: nothing was done.
 */
int apart_run(const struct apart *a, void *results, int *errors);

#endif
