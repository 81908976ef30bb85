/* SPDX-License-Identifier: MIT */
/* The software device's socket: real processes become processes on it (abi/device_wire.h). */
#ifndef GPREEMPT_CMD_GPREEMPTD_DEVICE_JOBS_H
#define GPREEMPT_CMD_GPREEMPTD_DEVICE_JOBS_H

#include <systemd/sd-event.h>

#include "gpu/model/live.h"

struct device_jobs;

/* A socket at @path, instead of what may be there. @live is borrowed. */
int device_jobs_new(struct live *live, sd_event *loop, const char *path, struct device_jobs **ret);
/* All its processes leave the device. Accepts NULL. */
void device_jobs_free(struct device_jobs *s);

#endif
