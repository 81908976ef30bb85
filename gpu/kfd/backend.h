/* SPDX-License-Identifier: MIT */
/*
 * gpu/backend.h over the KFD driver, by whichever transport: the kernel's, or a software device's.
 *
 * Every target has its tracer thread; what is asked of it is put into that thread's queue and
 * nothing of one target waits for another. What came of it goes into one queue for the owner. On
 * level K3 there are no tracers, and one worker for all (backend_ext.h).
 * Looking happens on the owner's thread: from sysfs which queues there are, from debugfs "mqds" or
 * the extension where their pointers are, from the process's memory what these say. The second is a
 * thread's of its own, as that may wait for the GPU: until it has, pointers are not known.
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
	struct guard *guard; /* borrowed; NULL only on a model or on K3: nothing outlives us */
	uint64_t patience_ns; /* how long looking may wait for "mqds"; 0: the usual */
	/*
	 * GPU_WHY_SIZE bytes for one line when it fails, or when an extension is there but of no
	 * use; may be NULL
	 */
	char *why;
};

/*
 * Takes over @k in any case and opens the device; on K3 only the extension's. -EOPNOTSUPP: a pid
 * namespace of our own, where the driver's pids say nothing, or a driver without the interface.
 */
int gkfd_backend_open(struct gkfd *k, const struct gkfd_backend_options *options,
		      struct gpu_backend **ret);
int gkfd_backend_new(struct gkfd *k, struct guard *guard, struct gpu_backend **ret); /* K2 */

#endif
