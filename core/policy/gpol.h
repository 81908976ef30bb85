/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Policies: who should be on a GPU now.
 *
 * A policy looks at the jobs of one GPU and says for each whether it should be held off it. It does
 * not act, allocate, lock, log or know the time; it has no floats and no pointers to anything but
 * its arguments. What it wants is not yet done: the engine closes gangs, keeps holds within their
 * bounds, leaves alone what may not be touched and what is not worth its cost.
 *
 * The same source is built for the daemon, the simulator and the kernel.
 */
#ifndef GPREEMPT_CORE_POLICY_GPOL_H
#define GPREEMPT_CORE_POLICY_GPOL_H

#include "abi/job_class.h"
#include "abi/types.h"

#define GPOL_NEVER UINT64_MAX
#define GPOL_NOBODY UINT32_MAX
#define GPOL_STATE_BYTES 64 /* of any policy, for one GPU */

/*
 * A job on this GPU as the engine sees it now. Class and priority come from the owner of the
 * machine, never from the job. Times are absolute unless they are called a duration.
 */
struct gpol_job {
	uint32_t id; /* of the engine, the same as long as the job lives */
	uint8_t class; /* enum job_class */
	uint8_t priority; /* within its class; more is more urgent */
	bool has_work; /* something waits or runs in its queues */
	bool announced; /* a hint: work is coming, keep room for it */
	bool held; /* off the GPU, or on its way */
	bool preemptible; /* may be held at all */
	bool latency_critical;
	uint32_t weight; /* relative to other offline jobs; 0 counts as 1 */
	uint32_t min_permille; /* of the GPU's time, guaranteed to an offline job that has work */
	uint64_t work_since_ns; /* has_work: since then; else: since when it has none, 0: ever */
	uint64_t held_since_ns; /* held: since then; else: when it was let go last, or 0 */
	uint64_t ran_ns; /* duration: on the GPU with work, so far */
	uint64_t wanted_ns; /* duration: with work, on or off the GPU, so far */
	uint64_t service_ns; /* duration: what a burst of its work takes alone; 0: not known */
	uint64_t target_ns; /* duration: within which a burst should be done; 0: none */
	uint64_t wait_bound_ns; /* duration: it has work and is held no longer; 0: not known */
};

/* What the owner of the machine may set; durations. Defaults: gpol_params_default. */
struct gpol_params {
	uint64_t linger_ns; /* a job without work for so long is not just between bursts */
	uint64_t turn_ns; /* of rotate and share: how long one offline job is on */
	uint64_t ceiling_ns; /* of share: an online job waits no longer for room than this */
	uint64_t margin_ns; /* of deadline: to spare when a target is reckoned with */
};

/* What the engine has learnt of this GPU; durations. */
struct gpol_gpu {
	uint64_t suspend_ns; /* from the decision until the victims are off */
	uint64_t resume_ns; /* from the decision until they run */
};

struct gpol_input {
	uint64_t now_ns;
	const struct gpol_params *params;
	const struct gpol_gpu *gpu;
	const struct gpol_job *jobs; /* ordered by id */
	size_t n;
};

struct gpol_verdict {
	bool hold;
	uint32_t because; /* the id of the job it makes room for, or GPOL_NOBODY */
};

struct gpol_ops {
	const char *name;
	const char *summary; /* one line for people: what it promises */

	/**
	 * @observe: Takes note of what is to be seen. The only call that may change @state, which
	 * is the policy's own for this GPU, zeroed at first. Called before each decide, with the
	 * same input. May be NULL.
	 */
	void (*observe)(void *state, const struct gpol_input *in);

	/**
	 * @decide: Writes a verdict for each job. A pure function: same arguments, same answer.
	 * Verdicts on jobs that are not preemptible are ignored. Holding nobody is always safe.
	 * Returns when it wants to be asked again even if nothing changes, or GPOL_NEVER.
	 */
	uint64_t (*decide)(const void *state, const struct gpol_input *in,
			   struct gpol_verdict *ret);
};

extern const struct gpol_ops gpol_none;
extern const struct gpol_ops gpol_priority;
extern const struct gpol_ops gpol_share;
extern const struct gpol_ops gpol_rotate;
extern const struct gpol_ops gpol_deadline;

extern const struct gpol_ops *const gpol_all[]; /* ends with NULL */
extern const struct gpol_params gpol_params_default;

/* NULL: no such policy. */
const struct gpol_ops *gpol_find(const char *name);

/* What policies share (gpol.c). */

/*
 * The most urgent job that needs the GPU now: it has work, or work was announced, or it had work
 * less than linger_ns ago. Of those equally urgent the one that came first. NULL: none.
 */
const struct gpol_job *gpol_most_urgent(const struct gpol_input *in, enum job_class class);
bool gpol_needs_gpu(const struct gpol_job *job, const struct gpol_input *in);
/* When a job that had work lately no longer counts as needing the GPU, or GPOL_NEVER. */
uint64_t gpol_linger_ends(const struct gpol_job *job, const struct gpol_input *in);
/* Online before offline, then priority. */
bool gpol_more_urgent(const struct gpol_job *a, const struct gpol_job *b);
void gpol_hold_nobody(const struct gpol_input *in, struct gpol_verdict *ret);

#endif
