/* SPDX-License-Identifier: MIT */
/*
 * The queues of this very process (K0). It may debug itself without being traced, which suspends
 * any number of queues in one cycle; where the debug interface is not there (an old driver or
 * GPU, a runtime that never announced itself) the queues are updated one by one, a cycle each.
 * The process's end ends its queues: no guard is needed.
 */
#ifndef GPREEMPT_GPU_KFD_OWN_H
#define GPREEMPT_GPU_KFD_OWN_H

#include "gpu/kfd/session.h"

struct gkfd_own_queue {
	uint32_t id;
	uint32_t priority; /* 0..15; this and the ring are what an update would overwrite */
	uint64_t ring_base;
	uint32_t ring_bytes; /* 0: not known, so it cannot be updated */
};

struct gkfd_own {
	struct gkfd_session session;
	struct gkfd_own_queue *updated;
	uint32_t n_updated;
	bool holding;
};

/*
 * Takes @queues off the GPU, all or none; NULL: all there are, by the debug interface only.
 * @self: this process as the device knows it.
 */
int gkfd_own_hold(struct gkfd_own *own, struct gkfd *k, pid_t self,
		  const struct gkfd_own_queue *queues, uint32_t n, uint32_t grace_kclk,
		  struct gkfd_moved *ret, struct gkfd_failure *fail);
/* Nothing held: 0 with n = 0. */
int gkfd_own_resume(struct gkfd_own *own, struct gkfd *k, struct gkfd_moved *ret,
		    struct gkfd_failure *fail);

#endif
