/* SPDX-License-Identifier: MIT */
/*
 * Which processes have begun. The kernel tells in one small file which pid it gave last, so this
 * can be asked many times a second: /proc is listed only behind a pid that was known before.
 */
#ifndef GPREEMPT_GPU_HELPERS_BIRTHS_H
#define GPREEMPT_GPU_HELPERS_BIRTHS_H

#include <stddef.h>
#include <sys/types.h>

struct births;

/* @proc: "/proc". -ENOSYS: it does not list processes in the way that is relied on. */
int births_new(const char *proc, struct births **ret);
void births_free(struct births *b); /* accepts NULL */

/*
 * Those that have begun since it was asked last: how many. One may be told twice, as a pid is given
 * a moment before /proc has it. -ERANGE: more than @max, or the kernel has begun anew with the
 * lowest pids; then only a list of all tells.
 */
int births_take(struct births *b, pid_t *ret, size_t max);

#endif
