/* SPDX-License-Identifier: MIT */
/*
 * Who processes are, asked without waiting: by readers, or, of a software device whose processes
 * are made up, of the device.
 */
#ifndef GPREEMPT_GPU_HELPERS_ASKS_H
#define GPREEMPT_GPU_HELPERS_ASKS_H

#include "gpu/helpers/proc_files.h"
#include "gpu/helpers/readers.h"

struct asks;

/* Both borrowed. @readers NULL: everything is read at once, from @source. */
int asks_new(struct readers *readers, const struct proc_source *source, struct asks **ret);
void asks_free(struct asks *a); /* what is under way is forgotten; accepts NULL */

/*
 * Asks for the files of @bits. What is under way of that process is not asked again: -EALREADY.
 * What lies in its memory is read apart, and may be missing in the answer (proc_files.unread).
 */
int asks_ask(struct asks *a, pid_t pid, uint32_t bits);
/* The next answer, the caller's to end; false: none is there. */
bool asks_answer(struct asks *a, struct proc_files *ret);
int asks_owner(const struct asks *a, pid_t pid, uid_t *ret); /* the effective user; -ESRCH */

#endif
