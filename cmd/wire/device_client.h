/* SPDX-License-Identifier: MIT */
/* The other end of the software device's socket: being a process on it. */
#ifndef GPREEMPT_CMD_WIRE_DEVICE_CLIENT_H
#define GPREEMPT_CMD_WIRE_DEVICE_CLIENT_H

#include "gpu/soft/wire.h"

/*
 * Connects and says hello; *ret_fd is the caller's to close, which ends everything it has on the
 * device. -EEXIST: this process is on it already; -EUSERS: the device is full; -EBADMSG: this is
 * not what is spoken there.
 */
int device_connect(const char *path, int *ret_fd, struct device_welcome *ret);
/* Before any work is submitted: it takes what comes next for its answer. */
int device_create_queue(int fd, uint32_t gpu, uint32_t priority, uint32_t *ret_queue);
/* *work but its header. */
int device_submit(int fd, uint32_t seq, const struct device_submit *work);
/*
 * The next packet, for which it waits (who must not, polls first). -ECONNRESET: the device is gone;
 * -EBADMSG.
 */
int device_receive(int fd, union device_any *ret);

#endif
