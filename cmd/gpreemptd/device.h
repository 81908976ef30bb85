/* SPDX-License-Identifier: MIT */
/*
 * Which GPUs the daemon works on, by the name given with --device: "kfd" are those of AMD's driver,
 * "nvrm" of NVIDIA's, "auto" of the first of these that is there, "soft:SOCKET" is a software GPU
 * that runs already (gpreempt-softgpu), "model[:PRESET]" one of the daemon's own: it is started
 * with its socket in the run directory, DEVICE_SOCKET, and ends with the daemon.
 */
#ifndef GPREEMPT_CMD_GPREEMPTD_DEVICE_H
#define GPREEMPT_CMD_GPREEMPTD_DEVICE_H

#include "cmd/gpreemptd/daemon.h"
#include "gpu/backend.h"

struct device;

/*
 * Opens nothing of the kernel's yet. @guard may be NULL on a software GPU. -EINVAL: no such name;
 * -ENODEV: not on this machine; in any failure *ret is there to be asked why, and to be closed.
 */
int device_new(const struct daemon_options *options, struct guard *guard, struct device **ret);
/* What failed last, a line for people. */
const char *device_why(const struct device *d);
/* The backend too, which must not be in use any more. Accepts NULL. */
void device_close(struct device *d);

/* NULL while it is let go of. */
struct gpu_backend *device_backend(struct device *d);

/*
 * Closes the backend, for a pause; whatever points at it must be gone. A software device stays, and
 * so do its jobs.
 */
void device_let_go(struct device *d);
/* Opens it, also again. As device_new(); of no effect when it is open. */
int device_take_up(struct device *d);

/*
 * AMD's driver counts a process from when it first opens the device until some time after its
 * memory is gone. Does it still count one that has ended? While it does, GPUs cannot be
 * partitioned, and removing the driver is not safe.
 */
bool device_counts_ended(struct device *d);

#endif
