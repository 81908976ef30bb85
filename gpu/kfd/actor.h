/* SPDX-License-Identifier: MIT */
/*
 * What is asked of one target, done on the thread that traces it, and what came of it in the terms
 * of gpu/backend.h. The thread is one of the owner's process, or a process of its own (holder.h).
 */
#ifndef GPREEMPT_GPU_KFD_ACTOR_H
#define GPREEMPT_GPU_KFD_ACTOR_H

#include "gpu/backend.h"
#include "gpu/kfd/target_internal.h"

struct actor {
	struct gkfd *k;
	pid_t pid;
	struct gkfd_target *target;
	/* It is no longer attached, by itself; told once, and after what is being done is. */
	void (*ended)(struct actor *a, const struct gpu_done *done);

	bool attached, busy, told;
	int refused; /* -errno of the attach */
	struct gkfd_failure refusal;
};

struct actor_order {
	enum gpu_verb verb; /* GPU_ATTACH, GPU_SUSPEND, GPU_RESUME */
	const uint32_t *ids; /* NULL: all */
	uint32_t n;
	uint64_t called_ns, longest_ns; /* GPU_SUSPEND, as the next */
	uint32_t grace_kclk; /* 0: the least there is */
};

/* Does it, and fills in *done all but target and cookie. actor_settle() when that is told. */
void actor_run(struct actor *a, const struct actor_order *o, struct gpu_done *done);
/* Tells of its end, if there was one meanwhile; also to be called when its state changes. */
void actor_settle(struct actor *a);

#endif
