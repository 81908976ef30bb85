/* SPDX-License-Identifier: MIT */
/*
 * The freezer of cgroup v1. A process that is frozen by it cannot even be killed: a holder in such
 * a group would keep its job off the GPU for as long as whoever froze it likes, and its guard,
 * frozen with it, could not help. (In cgroup v2 who is frozen can be killed, and its timer does.)
 *
 * So who is in such a group holds only processes that are frozen with it.
 */
#ifndef GPREEMPT_GPU_FREEZER_H
#define GPREEMPT_GPU_FREEZER_H

#include <stdbool.h>
#include <sys/types.h>

#define FREEZER_PATH_SIZE 256

/* The group this process could be frozen by. False: there is none. */
bool freezer_group(char ret[FREEZER_PATH_SIZE]);
/* May this process hold that one? -EPERM: not, for the reason above. */
int freezer_check(pid_t pid);
/* Leaves it for the root of the hierarchy, where that is allowed. */
void freezer_leave(void);

/* ---- of texts, for these ---- */

/* The path in a /proc/PID/cgroup. False: there is no such hierarchy, or no room for it. */
bool freezer_parse_group(const char *text, char ret[FREEZER_PATH_SIZE]);
/* Where /proc/self/mountinfo says that it is mounted. The same. */
bool freezer_parse_mount(const char *text, char ret[FREEZER_PATH_SIZE]);
/* Is who is in @theirs frozen with @ours? */
bool freezer_covers(const char *ours, const char *theirs);

#endif
