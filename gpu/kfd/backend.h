/* SPDX-License-Identifier: MIT */
/*
 * gpu/backend.h over the KFD driver, by whichever transport: the kernel's, or a software device's.
 *
 * What other processes control is touched by helpers only. Targets have holders (holder.h), one
 * process each; on level K3 none, and one worker for all (backend_ext.h). Who uses the driver and
 * which queues there are is read from sysfs, which is the kernel's own. Where these have their
 * pointers ("mqds", or the extension), what the pointers say (the process's memory) and who a
 * process is (/proc) is read by readers (gpu/helpers/readers.h).
 *
 * On a software device nobody can hang: there targets have threads, and all is read at once.
 */
#ifndef GPREEMPT_GPU_KFD_BACKEND_H
#define GPREEMPT_GPU_KFD_BACKEND_H

#include "gpu/backend.h"
#include "gpu/kfd/target.h"

enum gkfd_ext_use {
	GKFD_EXT_NEVER,
	GKFD_EXT_IF_PRESENT,
	GKFD_EXT_ONLY, /* -EOPNOTSUPP: it is not there */
};

struct gkfd_backend_options {
	enum gkfd_ext_use ext; /* level K3 rather than @way */
	enum gkfd_way way; /* GKFD_BY_PAUSE (K1): holds take whole processes and outlive us */
	bool by_readers; /* what processes control is read by others; else here, as on a model */
	bool by_holders; /* targets have processes of their own; else threads, as on a model */
	struct guard *guard; /* borrowed; of threads only, on a model maybe NULL */
	bool named_only; /* nobody asks who there is: pids may be those of a namespace */
	bool follows; /* it tells when somebody comes: ops->came */
	struct gpu_why *why; /* it fails, or an extension is there but of no use; may be NULL */
};

/*
 * Takes over @k in any case and opens the device; on K3 only the extension's. -EOPNOTSUPP: a pid
 * namespace of our own, where the driver's pids say nothing, or a driver without the interface.
 */
int gkfd_backend_open(struct gkfd *k, const struct gkfd_backend_options *options,
		      struct gpu_backend **ret);
/* For looking: the session of a target; NULL: it has none (level K3). */
struct gkfd_target *gkfd_backend_target(struct gpu_target *t);

#endif
