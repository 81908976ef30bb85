/* SPDX-License-Identifier: MIT */
/*
 * A software GPU in real time, with a socket (abi/device_wire.h): processes that connect to it are
 * processes on it. Its clock is CLOCK_MONOTONIC, all its times are modelled nevertheless.
 *
 * A driver call that waits for modelled hardware is answered when that time has passed, while
 * others go on. Inside it the model has run ahead by what the call takes, and whoever comes in
 * meanwhile finds what will be at its end.
 */
#ifndef GPREEMPT_CMD_GPREEMPT_SOFTGPU_SOFTGPU_H
#define GPREEMPT_CMD_GPREEMPT_SOFTGPU_SOFTGPU_H

#include <systemd/sd-event.h>

#include "gpu/model/model.h"

struct softgpu;

/*
 * @spec as of model_new_empty(): -EINVAL and a line in *ret_why, the caller's to free, when it
 * makes no sense. @path: where the socket is made, instead of what may be there. Whose program this
 * is, is an administrator on it, as root is.
 */
int softgpu_new(const char *spec, sd_event *loop, const char *path, struct softgpu **ret,
		char **ret_why);
/* All its processes leave the device. Accepts NULL. */
void softgpu_free(struct softgpu *s);
struct model *softgpu_now(struct softgpu *s); /* as it is now */

#endif
