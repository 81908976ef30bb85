/* SPDX-License-Identifier: MIT */
/*
 * Nodes of GPUs, wherever they lie, and who is told when one is opened: inotify(7), which tells of
 * an inode. A container may have nodes of its own, and those are others. Only who may hang looks
 * for them there: a path below another process's root leads where that process likes.
 */
#ifndef GPREEMPT_GPU_NVRM_NODES_H
#define GPREEMPT_GPU_NVRM_NODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* "nvidia0" and the like, and "nvidiactl", without which nobody can use one. */
bool nodes_is_name(const char *name);

/*
 * Has @inotify tell of openings of the nodes that lie in @dev and are of the driver of @device: the
 * numbers of those, up to @max; how many. *@ret_error: 0, or why it does not of others: -ENOSPC,
 * the user may watch no more; -EACCES. -ENOENT: there is no such folder.
 */
int nodes_watch(int inotify, const char *dev, dev_t device, uint32_t *ret, size_t max,
		int *ret_error);

/* In place of a number: any of them may have been opened. */
#define NODES_ANY UINT32_MAX
/* With a number: there is no such node any more. */
#define NODES_GONE (1u << 31)

/* What was told since, each once, up to @max; how many. Does not wait, and is not kept busy. */
int nodes_opened(int inotify, uint32_t *ret, size_t max);

#endif
