/* SPDX-License-Identifier: MIT */
/*
 * What the daemon hands to itself when it executes its own program anew.
 *
 * The driver counts a process as one of its own from its first open of /dev/kfd until its memory
 * is gone; closing the device does not end that (Linux 6.12 kfd_process.c: it is the release of the
 * mmu notifier that does). While it counts any, GPUs cannot be partitioned, and removing the driver
 * is not safe. execve(2) is what gives a process other memory and leaves it everything else: its
 * pid, its lock, its sockets and whoever waits at them.
 *
 * It is always the same program, whatever has taken its place on disk meanwhile: both sides agree
 * about every byte. Values come out in the order they went in.
 */
#ifndef GPREEMPT_CMD_GPREEMPTD_HANDOVER_H
#define GPREEMPT_CMD_GPREEMPTD_HANDOVER_H

#include <stddef.h>

struct handover;

/* ---- before: what goes wrong here is told by handover_exec() ---- */

int handover_new(struct handover **ret);
void handover_put(struct handover *h, const void *data, size_t len);
/* Stays open. */
void handover_put_fd(struct handover *h, int fd);
/* -errno: nothing has happened. */
int handover_exec(struct handover *h, char **argv);

/* ---- after ---- */

/* NULL: this program was not executed by handover_exec(). */
struct handover *handover_find(void);
/* -EBADMSG: there is no more. */
int handover_get(struct handover *h, void *ret, size_t len);
int handover_get_fd(struct handover *h, int *ret);

/* Descriptors that were put close on exec again. Accepts NULL. */
void handover_free(struct handover *h);

#endif
