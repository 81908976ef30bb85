/* SPDX-License-Identifier: MIT */
/* Ending a connection without waiting for anything its other side has prepared. */
#ifndef GPREEMPT_GPU_HELPERS_HANG_UP_H
#define GPREEMPT_GPU_HELPERS_HANG_UP_H

#include "gpu/helpers/drop.h"

bool packet_has_files(int fd); /* the next one to be read */
void refuse_files(int fd); /* of whoever connects from now on, where the kernel can */
/*
 * Closes an accepted socket of AF_UNIX, or has it dropped: drop_now() follows when the caller has
 * time for it. What was sent and not read is dropped as well.
 */
void hang_up(struct drops *ended, int fd);

#endif
