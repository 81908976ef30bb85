/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The engine: from what was observed to what is to be done.
 *
 * One step takes samples of queues and the time and gives actions and the time of the next step.
 * Between the policy, which says who should be on a GPU, and the actions stand the rules that hold
 * for every policy:
 *
 * - Only offline jobs that may be preempted are held, whatever they or the policy say.
 * - Every hold has an owner and a deadline. At the deadline the job is let go, whoever still wants
 *   it held, and has a turn: turn_ns, but no longer than it waited, and at least min_run_ns. A
 *   wait is over when it ran for min_run_ns or had nothing to do, not when it is on for a moment.
 * - Jobs of a gang are held together and let go together. One is not held for another, and where
 *   gangs meet on several GPUs, the first of these says which makes room for which.
 * - With the policy none nothing is done to anybody, for slots neither.
 * - One failed preemption trips its GPU: all holds there are let go, and there are no more until
 *   engine_rearm().
 * - No more scheduler cycles in a second than the budget of a GPU; no hold that is expected to cost
 *   all on the GPU more than it gives the waiting job, and no end of one for a gap in urgent work
 *   that is too short to be worth it. What either is worth is learnt from what bursts, gaps and
 *   acts take.
 * - An action is not repeated while its result is outstanding (engine_report).
 *
 * It never allocates after engine_init, never reads a clock and never calls back. Freestanding.
 */
#ifndef GPREEMPT_CORE_ENGINE_ENGINE_H
#define GPREEMPT_CORE_ENGINE_ENGINE_H

#include "core/policy/gpol.h"

#define ENGINE_ALL_QUEUES UINT32_MAX
#define ENGINE_NO_GANG 0u

struct engine;

struct engine_limits {
	uint32_t gpus, jobs, queues; /* a job is a process on one GPU */
};

/* What an act costs on this backend; durations. */
struct engine_costs {
	uint64_t suspend_ns; /* a batch, before anything was measured */
	uint64_t resume_ns;
	uint64_t cycle_ns; /* the part of each during which everybody on the GPU stands still */
	bool disturbs_all; /* a batch cycles everybody, not only its victims */
	bool counts_progress; /* samples have read and write; else only hints tell of work */
	bool suspends_first; /* who changes places must not be on together, not even for a moment */
};

/* The policy, the intervals and hold_max_ns must be set; others may be 0. */
struct engine_config {
	const struct gpol_ops *policy;
	struct gpol_params params;
	struct engine_costs costs;
	uint64_t interval_ns; /* between observations: while an offline job could be preempted */
	uint64_t critical_interval_ns; /* the same, where a latency-critical job is on the GPU */
	uint64_t idle_interval_ns; /* where nothing could be preempted */
	uint64_t hint_ns; /* a hint of unknown length without work to show for it is over after */
	uint64_t hold_max_ns; /* a hold's deadline */
	uint64_t min_run_ns; /* a job let go is left on for so long; not where urgent work waits */
	uint32_t cycles_per_s; /* budget of one GPU; 0: none */
	uint32_t online_permille; /* of a GPU's slots kept for online queues */
	uint32_t offline_permille; /* of them at most for offline queues */
	uint32_t low_water; /* free slots below which idle offline queues are parked */
	uint64_t slot_turn_ns; /* how long a job keeps its slots while others wait for them */
	uint64_t idle_queue_ns; /* AUTO_DEACTIVATION: idle for so long gives the slot back */
};

extern const struct engine_config engine_config_default; /* policy: priority */

/* Bytes engine_init needs; 0: the limits are too large. */
size_t engine_bytes(const struct engine_limits *limits);
/* @memory is the caller's, aligned as for uint64_t; the engine lives in it. NULL: bad limits. */
struct engine *engine_init(void *memory, const struct engine_limits *limits,
			   const struct engine_config *config);
/* A change of policy or figures; holds stay until the next step judges them. */
void engine_configure(struct engine *e, const struct engine_config *config);

/* ---- what there is ---- */

/* @slots 0: not known; queues are then not rationed. -ENOSPC, -EEXIST. */
int engine_add_gpu(struct engine *e, uint32_t gpu, uint32_t slots);

#define ENGINE_JOB_PREEMPTIBLE (1u << 0) /* may be held; without it nothing is done to the job */
#define ENGINE_JOB_CRITICAL (1u << 1) /* latency-critical: looked at more often */
#define ENGINE_JOB_LAZY (1u << 2) /* its queues get no slot before they have work */
#define ENGINE_JOB_AUTO_DEACTIVATE (1u << 3) /* and none while they are idle */

struct engine_job_config {
	uint32_t gpu;
	uint32_t gang; /* jobs with the same number stop together; ENGINE_NO_GANG: by itself */
	uint32_t flags; /* ENGINE_JOB_* */
	uint8_t class; /* enum job_class */
	uint8_t priority;
	uint32_t weight; /* 0 counts as 1 */
	uint32_t min_permille;
	uint64_t target_ns;
	uint64_t wait_bound_ns; /* 0: hold_max_ns */
};

/* Returns the job's id; -ENOSPC, -ENODEV (no such GPU). */
int engine_add_job(struct engine *e, uint64_t now_ns, const struct engine_job_config *config);
/*
 * Another class or figures; a job that may no longer be preempted is let go. -ENOENT; -EINVAL:
 * another GPU.
 */
int engine_change_job(struct engine *e, uint32_t job, const struct engine_job_config *config);
/* It is gone, and with it what was to be done to it. -ENOENT. */
int engine_remove_job(struct engine *e, uint32_t job);

/*
 * Work is coming at @at_ns (now or later) and takes @for_ns (0: not known). Only online jobs may
 * say so. It counts until work shows up and ends; where none does, until @at_ns + @for_ns, or
 * hint_ns after @at_ns. -EPERM: an offline job; -ENOENT.
 */
int engine_hint(struct engine *e, uint64_t now_ns, uint32_t job, uint64_t at_ns, uint64_t for_ns);

/* ---- one step ---- */

/* One queue as it was seen, once in a step. What belongs to jobs nobody added is ignored. */
struct engine_sample {
	uint32_t job;
	uint32_t queue; /* the backend's, unique within the job */
	uint64_t read, write; /* counters that only grow, in one unit; write - read is pending */
	bool busy; /* something runs though nothing is pending: packets are consumed before done */
	bool hidden; /* nobody can tell what it does: the three before say nothing */
};

enum engine_verb { ENGINE_SUSPEND, ENGINE_RESUME };

/*
 * Entries of one step for one GPU and one verb are meant as one batch; those of a gang on several
 * GPUs follow each other. Resumes come before suspends, or after them (suspends_first).
 */
struct engine_action {
	uint64_t ticket; /* for engine_report */
	uint64_t deadline_ns; /* a suspend ends by then, whatever happens to us */
	uint32_t gpu, job;
	uint32_t queue; /* or ENGINE_ALL_QUEUES */
	uint32_t because; /* the job it makes room for, or GPOL_NOBODY */
	uint8_t verb; /* enum engine_verb */
};

struct engine_step {
	uint64_t now_ns; /* never less than before */
	const struct engine_sample *samples;
	size_t n_samples;
	bool complete; /* samples of all queues of all jobs; else absence means nothing */
	struct engine_action *actions; /* room for @max, written */
	size_t max;
	/* results */
	size_t n_actions;
	uint64_t wake_ns; /* absolute: the next step, at the latest */
	uint64_t due_ns; /* the same for who looks at a pace of his own: no less than wake_ns */
};

void engine_step(struct engine *e, struct engine_step *step);

/*
 * What became of an action: @result 0 or -errno, @took_ns from asking until done. What failed
 * trips its GPU; a failed suspend may have been done in part and is followed by a resume, which
 * must do no harm, and a failed resume by another one in each step. -ESRCH as result: the job is
 * gone, which is no fault of the GPU. Without a report nothing more is done to a job, but that its
 * hold ends in time. -ENOENT: no such ticket outstanding.
 */
int engine_report(struct engine *e, uint64_t now_ns, uint64_t ticket, int result, uint64_t took_ns);
/* Lets preemptions happen again on a GPU that tripped. -ENOENT. */
int engine_rearm(struct engine *e, uint32_t gpu);

/* ---- what it knows ---- */

struct engine_job_stats {
	bool held;
	bool has_work;
	bool waits; /* has work and is not on the GPU */
	uint64_t preempted; /* times */
	uint64_t ran_ns; /* a duration */
	/* offline: with work, but off the GPU; online: in one burst, beside offline work */
	uint64_t longest_wait_ns;
	uint64_t made_room; /* as the urgent one: how often others were held for it */
	uint64_t detections; /* bursts of online work for which somebody had to make room at once */
	uint64_t detect_ns; /* of the last: from work seen first until the decision */
};

struct engine_gpu_stats {
	uint32_t slots_online, slots_offline; /* held by queues now */
	uint32_t slots_reserved;
	uint64_t cycles; /* that our actions cost */
	uint64_t denied_by_budget, denied_by_cost;
	uint64_t suspend_ns, resume_ns; /* what a batch takes by now */
	bool tripped;
};

/* Both: -ENOENT. */
int engine_job_stats(const struct engine *e, uint32_t job, struct engine_job_stats *ret);
int engine_gpu_stats(const struct engine *e, uint32_t gpu, struct engine_gpu_stats *ret);

#endif
