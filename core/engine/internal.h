/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What the files of the engine share. A step goes through them in this order:
 *
 *   observe.c  samples change what is known of queues (queues.c) and jobs (jobs.c)
 *   judge.c    the policy is asked about each GPU where something changed or the time came; over
 *              short gaps online work counts as announced (gaps.c)
 *   plan.c     for each unit, a gang or a job by itself: must it go on, may it be off (holds.c),
 *              is it worth it (worth.c)
 *   slots.c    of those that may be on, who finds a slot
 *   step.c     the difference between that and where jobs are becomes actions
 *
 * Nothing is reckoned twice: a step in which no job's state changed and no time came costs one
 * look at each sample.
 */
#ifndef GPREEMPT_CORE_ENGINE_INTERNAL_H
#define GPREEMPT_CORE_ENGINE_INTERNAL_H

#include "core/engine/engine.h"
#include "core/policy/common.h"

/* For errors of the programmer; on in every build. */
#define ENGINE_ASSERT(condition) \
	do { \
		if (!(condition)) \
			__builtin_trap(); \
	} while (0)

#define NO_INDEX UINT32_MAX
#define JOB_INDEX_BITS 16 /* of an id; the rest is the generation, 15 bits: ids are ints */
#define HINTS 8 /* of one job that are remembered */
#define TOKEN 1000000000ll /* a cycle of the budget */

/* Where a job is. Its queues may still run while it leaves, and run late while it returns. */
enum place { PLACE_ON, PLACE_LEAVING, PLACE_OFF, PLACE_RETURNING };

/* Where it should be. */
enum want {
	WANT_ON,
	WANT_OFF,
	WANT_SLOT, /* on, if there is a slot for each of its queues */
	WANT_SPARE_SLOT, /* the same, after all that have work */
};

/* Small: two fit a cache line, and a step looks at all of them. */
struct engine_queue {
	uint32_t job, queue; /* the key; job NO_INDEX: not in use */
	uint64_t read, write; /* not in use: read is the index of the next such */
	uint32_t seen; /* a step it was seen in; see forget_unseen */
	bool work, hidden;
};
static_assert(sizeof(struct engine_queue) == 32, "a queue has grown");

/* Announced work. */
struct engine_hint {
	uint64_t at_ns;
	uint64_t end_ns; /* of keeping room; what is learnt later changes nothing of it */
};

/* How a burst of online work is met: see worth.c. */
enum way {
	WAY_AT_ONCE, /* others are held as soon as it is seen or announced */
	WAY_LATER, /* when it takes longer than such bursts do beside others */
	WAY_LATER_OF_IDLE, /* the same, and others looked idle when it began */
	WAYS,
};

struct engine_met {
	uint64_t took_ns[WAYS]; /* a burst, and what others paid for it, on average */
	uint64_t off_ns[WAYS]; /* how far one is from that, on average */
	uint8_t n[WAYS]; /* bursts of which that is known */
	bool tried[WAYS]; /* whether or not anything came of it */
	uint8_t bursts; /* since the other way was tried */
	uint64_t since_ns; /* what they took */
	uint64_t late_ns; /* a burst that came while others returned, on average */
	uint64_t late_part; /* how many do */
	/* the burst under way */
	uint64_t asked_ns, began_ns;
	uint8_t way; /* enum way */
	bool asked; /* somebody is or was in its way */
	bool others; /* and had work */
	bool late; /* or was returning */
	bool spoilt; /* it says nothing about the way */
};

struct engine_job {
	uint32_t id;
	bool used;
	bool gone; /* the backend knows no such job: nothing is done to it any more */
	uint8_t place, want; /* enum place, enum want */
	struct engine_job_config config;
	struct engine_gpu *gpu;
	struct engine_job *next_on_gpu; /* by id */
	struct engine_job *next_in_gang; /* a ring; itself when alone */
	struct engine_job *line_prev, *line_next; /* offline jobs in line for slots */
	uint64_t visited; /* by which walk over units */

	/* what was seen */
	uint32_t queues, working; /* working: those with work */
	uint32_t hidden; /* those of which nobody can tell */
	bool loose_work; /* in queues there was no room to remember */
	bool touched, moved; /* in this step */
	bool has_work, ever_worked;
	uint64_t work_since_ns; /* as in gpol_job */
	struct engine_hint hint[HINTS]; /* ascending by when it comes */
	uint32_t hints;
	uint64_t announced_ns; /* what is announced for no later than this has been acted on */
	uint64_t service_ns;
	struct engine_met met;
	uint64_t contended_before_ns; /* the GPU's, when the burst began */

	/* what the policy says */
	bool gang_works; /* one of it, when the policy was asked */
	bool hold;
	uint32_t because;

	/* the hold */
	uint32_t room_for; /* the job it is or would be held for, or GPOL_NOBODY */
	bool parked; /* for being idle; until it has work */
	bool overdue, must_go; /* in this step; of a gang all or none */
	bool resume_failed;
	uint64_t suspend_ticket, resume_ticket; /* outstanding, or 0 */
	uint64_t held_since_ns, let_go_ns; /* let_go_ns 0: never held */
	uint64_t deadline_ns;
	uint64_t spared_ns, spared_until_ns; /* after a forced end: a duration, and its end */

	/* accounts, as of accounted_ns */
	uint64_t accounted_ns;
	uint64_t ran_ns, wanted_ns;
	uint64_t turn_ns; /* on the GPU since it came to its slots */
	bool admitted; /* has its slots by right */
	bool turn_over; /* in this step */
	bool unserved; /* a wait that is not over, though it may be on for a moment */
	uint64_t wait_since_ns, wait_ran_ns; /* when that wait began, and what it had run then */
	uint64_t longest_wait_ns;
	uint64_t preempted, made_room;
	uint64_t detections, detect_ns, detected_ns; /* the last: of work since then */
};

#define GAPS 12 /* classes of gaps in online work: see gaps.c */

struct engine_gaps {
	uint64_t mean_ns[GAPS];
	uint32_t n[GAPS], all;
	uint32_t job; /* the last that needed room */
	bool needed; /* some does */
	uint64_t ended_ns, kept_until_ns; /* else: since when not, and how long it is kept */
};

struct engine_gpu {
	uint32_t id;
	uint32_t slots; /* 0: not known */
	struct engine_job *first_job;
	bool tripped;
	bool stale; /* the policy must be asked again */
	uint64_t unit; /* the last one looked at that is on it */
	uint32_t asked_for; /* whether what is said here for this job counts for that unit: */
	bool meant;
	uint64_t judge_ns; /* when it must be asked anyway */
	uint64_t policy_state[GPOL_STATE_BYTES / 8];
	struct gpol_gpu learnt;
	struct engine_gaps gaps;
	uint64_t suspended_ns; /* when somebody was told to leave last */
	uint64_t returned_ns; /* when somebody was back last */
	uint64_t weighed; /* the step in which it was found out: */
	bool worth; /* somebody gains more by a hold than that costs */
	uint32_t online_working; /* online jobs with work */
	uint64_t spoilt; /* the step in which what bursts take came to mean nothing */

	/* budget, in parts of a TOKEN; below 0 after resumes, which are never denied */
	int64_t tokens;
	uint64_t tokens_ns;
	uint64_t granted; /* the step in which suspends were allowed */
	uint64_t batch[2]; /* by verb: the step whose cycle is paid */
	uint64_t cycles, denied_by_budget, denied_by_cost;

	/* time with offline work on it */
	uint32_t offline_running;
	uint64_t contended_ns, contended_since_ns;

	/* slots; the lower ones only within a step */
	uint32_t reserved;
	uint32_t online_peak;
	uint64_t online_peak_ns;
	uint32_t online_queues, limit, used, demand;
	bool full; /* somebody in line did not fit: nobody overtakes */
	bool may_park; /* the budget allows it */
	bool rotates; /* a turn is over */
};

struct engine {
	struct engine_limits limits;
	struct engine_config config;
	uint64_t now_ns;
	uint64_t looked_ns; /* the last step before this one that had samples */
	uint64_t step; /* number */
	uint32_t tickets;
	uint64_t walk; /* number of walks over units */
	uint64_t units; /* number of units looked at */
	uint32_t n_gpus, next_job;
	struct engine_job *line_first, *line_last;
	struct engine_gpu *gpus;
	struct engine_job *jobs;

	/* queues */
	struct engine_queue *queues;
	uint32_t *table; /* open addressing: index + 1 into queues */
	uint32_t table_mask;
	uint32_t *order; /* the queue that was at this place in the last samples */
	uint32_t n_queues, queues_high, free_queue;
	bool loose; /* there are jobs with loose_work */

	/* one step's */
	struct gpol_job *input;
	struct gpol_verdict *verdicts;
	uint32_t *touched;
	uint32_t n_touched;

	uint64_t due_ns; /* when a plan must be made anyway */
	bool plan_stale;
	uint64_t cadence_ns; /* between observations; 0: to be reckoned */
};

/* ---- gpus.c ---- */

struct engine_gpu *engine_find_gpu(const struct engine *e, uint32_t gpu);
void engine_trip(struct engine *e, struct engine_gpu *g);
void engine_budget_fill(const struct engine *e, struct engine_gpu *g);
/*
 * When there will be tokens for @cycles and as much again as @spare_permille of a full budget;
 * GPOL_NEVER: there are.
 */
uint64_t engine_budget_again(const struct engine *e, const struct engine_gpu *g, int64_t cycles,
			     uint32_t spare_permille);
/* An action of @verb is written in this step: pays for the batch, once. */
void engine_pay(struct engine *e, struct engine_gpu *g, enum engine_verb verb);
void engine_learn(uint64_t *ns, uint64_t sample_ns);
/* A mean of which one part in @part is new. */
void engine_draw_near(uint64_t *mean_ns, uint64_t ns, uint64_t part);

/* ---- jobs.c ---- */

/* NULL: no such job. */
struct engine_job *engine_find_job(const struct engine *e, uint32_t id);
/* What it is and where changes: keeps the accounts up to @now_ns. */
void engine_move_job(struct engine *e, struct engine_job *j, bool has_work, enum place place);
void engine_account(struct engine *e, struct engine_job *j);
/* Has it work, by all that is known? */
bool engine_works(const struct engine *e, const struct engine_job *j);
void engine_line_up(struct engine *e, struct engine_job *j); /* at the end */
/* The same for all of the unit; see for_each_member. */
bool engine_first_visit(struct engine *e, struct engine_job *j);

static inline uint32_t index_of(const struct engine *e, const struct engine_job *j)
{
	return (uint32_t)(j - e->jobs);
}

static inline struct engine_job *next_member(const struct engine_job *m,
					     const struct engine_job *first)
{
	return m->next_in_gang == first ? NULL : m->next_in_gang;
}

#define for_each_job_on(e, g, j) for (struct engine_job *j = (g)->first_job; j; j = j->next_on_gpu)
#define for_each_in_line(e, j) for (struct engine_job *j = (e)->line_first; j; j = j->line_next)
#define for_each_member(e, m, j) for (struct engine_job *m = (j); m; m = next_member(m, j))
#define for_each_gpu(e, g) \
	for (struct engine_gpu *g = (e)->gpus; g < (e)->gpus + (e)->n_gpus; g++)

static inline bool is_online(const struct engine_job *j)
{
	return j->config.class == JOB_ONLINE;
}

/* On its way off or there, and nothing done about it yet. */
static inline bool is_held(const struct engine_job *j)
{
	return j->place == PLACE_LEAVING || j->place == PLACE_OFF;
}

static inline bool is_holdable(const struct engine *e, const struct engine_job *j)
{
	return !is_online(j) && (j->config.flags & ENGINE_JOB_PREEMPTIBLE) && !j->gone &&
	       !j->gpu->tripped;
}

static inline uint64_t wait_bound(const struct engine *e, const struct engine_job *j)
{
	return j->config.wait_bound_ns ? j->config.wait_bound_ns : e->config.hold_max_ns;
}

/* Time before @at_ns. */
static inline uint64_t before(uint64_t at_ns, uint64_t duration_ns)
{
	return at_ns > duration_ns ? at_ns - duration_ns : 0;
}

/* A plan is due at @at_ns, unless that has passed. */
static inline void wake_at(struct engine *e, uint64_t at_ns)
{
	if (at_ns > e->now_ns)
		e->due_ns = gpol_min(e->due_ns, at_ns);
}

/* ---- queues.c ---- */

void engine_queues_init(struct engine *e);
/* The queue of a sample, made if need be. NULL: no such job, or no room to remember it. */
struct engine_queue *engine_queue(struct engine *e, const struct engine_sample *s, size_t at);
void engine_forget_queues_of(struct engine *e, const struct engine_job *j);
/* Those whose seen is not this step. */
void engine_forget_unseen_queues(struct engine *e);
void engine_touch(struct engine *e, struct engine_job *j);

/* ---- observe.c ---- */

void engine_observe(struct engine *e, const struct engine_step *step);
/* How long, of the burst it has now, an online job was on the GPU beside offline work. */
uint64_t engine_shared_ns(const struct engine *e, const struct engine_job *j);
/* Has it work now: from what is known of its queues. */
void engine_settle(struct engine *e, struct engine_job *j);

/* ---- hints.c ---- */

/* Work of the job is so near that room should be made now. */
bool engine_announced(const struct engine *e, const struct engine_job *j);
/* It is online, and has work or is about to. */
bool engine_needs_room(const struct engine *e, const struct engine_job *j);
/* When what is announced comes; of what is near, and GPOL_NEVER if that is nothing. */
uint64_t engine_announced_for(const struct engine *e, const struct engine_job *j);
/* Room is being made: that goes on until the work came or is overdue, however fast it was made. */
void engine_note_announced(const struct engine *e, struct engine_job *j);
/* When that changes. */
uint64_t engine_announcement_changes(const struct engine *e, const struct engine_job *j);
/* Of what is over, or, when work showed up: of what was announced for earlier and so has @come. */
void engine_drop_hints(const struct engine *e, struct engine_job *j, bool come);

/* ---- judge.c ---- */

/* Asks the policy about the GPU, if that is due. Returns whether it did. */
bool engine_judge(struct engine *e, struct engine_gpu *g);

/* ---- holds.c ---- */

/* It waited, or was held, for as long as it may be. Says when that will be so. */
bool engine_overdue(struct engine *e, const struct engine_job *j);
/* Let go by force it has a right to stay; @urgent: the job that wants it off, or NULL. */
bool engine_spared(struct engine *e, const struct engine_job *j, const struct engine_job *urgent);
/* Let go so lately that holding it again would be all cost. */
bool engine_too_soon(struct engine *e, const struct engine_job *j);
/* The job leaves or returns; fills in the action. */
void engine_suspend(struct engine *e, struct engine_job *j, uint64_t deadline_ns,
		    struct engine_action *ret);
void engine_resume(struct engine *e, struct engine_job *j, struct engine_action *ret);

/* ---- worth.c ---- */

/*
 * Does an online job of the GPU that needs room gain more than it costs all to hold others for it
 * now? Says when one will, if that is only a matter of time.
 */
bool engine_is_worth_it(struct engine *e, struct engine_gpu *g);
/* What the bursts under way on the GPU take says nothing of how they were met. */
void engine_spoil_bursts(const struct engine *e, struct engine_gpu *g);
/* Work of an online job is seen; before what was announced of it is forgotten. */
void engine_burst_begins(const struct engine *e, struct engine_job *j);
/* @seen: its end, not only that it came and went. */
void engine_burst_ended(const struct engine *e, struct engine_job *j, bool seen);
/* Jobs came or went or are of another class: what bursts take beside them is not known. */
void engine_others_changed(const struct engine *e, struct engine_gpu *g);

/* ---- gaps.c ---- */

/* @j needs room on its GPU; NULL: nobody does. */
void engine_note_need(const struct engine *e, struct engine_gpu *g, const struct engine_job *j);
/* It does not need room now, but will so soon that others are not let go. */
bool engine_is_kept_for(const struct engine *e, const struct engine_job *j);
uint64_t engine_keeping_changes(const struct engine *e, const struct engine_gpu *g);

/* ---- plan.c, slots.c ---- */

/* Says for each job where it should be. */
void engine_plan(struct engine *e);
void engine_set_want(struct engine *e, struct engine_job *unit, enum want want);
/* Turns WANT_SLOT and WANT_SPARE_SLOT into on or off. */
void engine_admit(struct engine *e);

#endif
