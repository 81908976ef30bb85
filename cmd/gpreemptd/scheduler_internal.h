/* SPDX-License-Identifier: MIT */
/*
 * What the files of the scheduler share.
 *
 *   processes.c       who there is: found, identified, classed, gone
 *   newcomers.c       who was found and is not identified yet
 *   shares.c          room for them, shared between users
 *   jobs.c            a process on one GPU, as the engine knows it, and its accounts
 *   class_requests.c  what people asked processes to be
 *   attach.c          whom to attach, and letting go
 *   slices.c          how long turns on the GPU are, where it can be told
 *   observe.c         what waits in the queues
 *   pace.c            how often they are looked at
 *   hint_pages.c      hints without a system call
 *   act.c             what the engine wants done, and what came of it
 *   trip.c            what happened when a preemption failed
 *   native.c          handing over to a scheduler inside the driver, and taking back
 *   report.c          all of it for people
 *   scheduler.c       the turns, and what binds these together
 */
#ifndef GPREEMPT_CMD_GPREEMPTD_SCHEDULER_INTERNAL_H
#define GPREEMPT_CMD_GPREEMPTD_SCHEDULER_INTERNAL_H

#include <limits.h>
#include <poll.h>
#include <sys/queue.h>

#include "cmd/gpreemptd/scheduler.h"
#include "util/macros.h"

#define NO_JOB (-1)
#define NOT_LOOKED INT_MIN
#define NEVER UINT64_MAX
#define CLASS_REQUESTS_MAX 256u
#define CLASS_REQUESTS_PER_USER 16u
#define HINT_AHEAD_MAX_NS NSEC_PER_SEC
#define QUIET_LONG 8u

struct process;
struct gpu;

/* An action of the engine, and the call it is part of. */
struct ticket {
	uint64_t number; /* 0: none is outstanding */
	uint64_t cookie, asked_ns;
};

/* A process on one GPU. */
struct job {
	struct process *process;
	uint32_t gpu; /* 0: the process has no queues anywhere, or is left alone */
	uint64_t key;
	TAILQ_ENTRY(job) link; /* all, by key */
	SLIST_ENTRY(job) sibling; /* of the process */
	int engine_job; /* or NO_JOB */
	uint32_t queues;
	uint64_t since_ns;

	struct gpu *on; /* NULL: gpu is 0, or not known */
	bool works; /* at the last look */
	bool off; /* from asking for a suspend until its resume is done */
	bool away; /* from when the suspend is done until a resume is asked for */
	bool returning; /* a resume was asked for after the last suspend */
	bool marked; /* scratch of one walk over the jobs of a process */
	struct ticket asked[2]; /* by verb */
	uint64_t off_since_ns;
	pid_t because; /* whom it was held for last; 0: nobody */
	uint64_t hinted_ns; /* when a hint came that no work followed yet; 0: none */
	uint64_t announced_until_ns; /* work that begins by then was announced */

	uint64_t detections; /* that the engine had counted at the last */
	uint64_t ran_before_ns; /* at the last tick */
	uint64_t accounted_ns;
	/* Accounts, as of then; what the engine counts of earlier lives in it; the rest is 0. */
	struct gpreempt_daemon_job sum;
};

TAILQ_HEAD(jobs, job);
SLIST_HEAD(siblings, job);

/* What was asked of a process, remembered by it: a request by pid may be gone before it. */
struct asked {
	uint64_t number; /* of the request; 0: nothing */
	struct wire_class said;
};

/* What was asked of a process last. */
struct last_call {
	uint64_t cookie, asked_ns, longest_ns;
	pid_t because; /* 0: nobody */
	uint32_t n_ids; /* of which the first are here; 0: all queues */
	uint32_t ids[16];
};

enum tie { TIE_NONE, TIE_ATTACHING, TIE_ATTACHED, TIE_RELEASING };

/* A process that uses a GPU; who it is was asked. */
struct newcomer {
	TAILQ_ENTRY(newcomer) link;
	pid_t pid;
	uid_t uid; /* when it was found */
	int pidfd; /* -1: none; else it was opened before anything was asked */
	bool listed; /* in this scan */
	bool unread; /* it does not let itself be read */
	uint64_t retry_ns, retry_after_ns; /* not asked again before; the next interval */
};

TAILQ_HEAD(newcomers, newcomer);

struct process {
	pid_t pid;
	struct identity identity;
	struct verdict verdict;
	struct asked by_root, by_user;
	uint64_t seen_ns, identified_ns, checked_ns;
	uint64_t seen_realtime_ns;
	bool listed; /* in this scan */
	bool left_alone; /* past a limit */
	bool lost; /* a look found nobody */
	int pidfd; /* while that is not readable, pid is its */
	bool polled; /* it wakes the scheduler */

	struct gpu_watch *watch;
	bool looking; /* a look has begun, and has not told yet */
	bool blind_told; /* that it cannot be looked at */
	uint64_t blind_ns; /* since when; 0: it can be */
	bool stale; /* its queues are not those that are known */
	uint64_t look_ns, period_ns; /* when it is to be looked at, and how often; or NEVER */
	uint64_t looked_ns;
	bool may_preempt; /* somebody could be held for its work */
	bool alert; /* its next work is to be told at once; */
	bool armed; /* it would be, at the last look, */
	bool struck; /* it was told, and not taken yet */
	const char *unwatched; /* why it cannot be; NULL: it can, or need not */
	uint64_t net_ns; /* the next interval while it is */
	struct job self; /* stands for it while it has no jobs */
	struct siblings jobs;
	uint32_t n_jobs, n_queues;
	int n_looked; /* what the last look came to, or NOT_LOOKED */
	uint32_t gang; /* 0: none */

	struct gpu_target *target;
	enum tie tie;
	enum job_class tied_as; /* online: only so that its turns can be made longer */
	bool wanted; /* shares a GPU with an online job, or its gang does */
	uint64_t wanted_ns; /* when that was so last */
	uint64_t retry_ns, retry_after_ns; /* not attached before; the next interval */
	uint64_t attaching_ns, attached_ns; /* since when */
	uint64_t free_until_ns; /* no holds on it before: somebody said so */
	bool told; /* that it is not attached, and why */
	char why[sizeof(((struct gpreempt_daemon_job *)0)->why)];
	enum gpu_slice slice; /* asked for last */
	uint64_t slice_cookie; /* of that call */
	bool sliced; /* something other than its own may be in force */
	bool slice_told; /* that it could not be given what it should have */
	int journal_slot; /* -1: none */
	struct last_call last_call;

	struct gpu_native_job native_job; /* as the driver's scheduler was told, */
	bool native_told; /* once it was */
	int native_error; /* of the last time; 0: it was taken */

	struct wire_hint_page *page; /* NULL: none */
	int page_fd;
	uint32_t page_calls;

	TAILQ_ENTRY(process) link; /* gone, but its target is not released yet */
};

TAILQ_HEAD(processes, process);

struct gpu {
	struct gpu_node node;
	uint32_t online, offline; /* jobs */
	uint32_t untold; /* of the online ones, whose next work is not told at once */
	uint32_t tied; /* of the offline ones, attached */
	uint32_t holdable; /* offline jobs that could be preempted now */
	uint32_t critical; /* online jobs that are looked at more often */
	uint32_t online_working, offline_running;
	bool stirred; /* since the last scan online work was seen or announced, or somebody held */
	uint32_t quiet; /* scans in a row without that, up to QUIET_LONG */
	bool inverted;
	bool tripped;
	uint64_t trips;
	char tripped_by[sizeof(((struct gpreempt_daemon_gpu *)0)->tripped_by)];
	char *trip; /* what happened then; NULL: it has not tripped, or there was no memory */
};

struct refused { /* processes for which there is no room; of the last scan, and of this one */
	pid_t pids[2][SCHEDULER_MAX_LISTED]; /* ascending */
	unsigned int now; /* which of the two */
	size_t n_before, n;
	size_t at; /* in the former, as this scan goes on */
	size_t from; /* those from here on are asked about again */
	size_t asked; /* others in this scan */
	size_t most; /* processes that one user has; 0: not counted yet */
	uid_t most_uid;
};

struct class_entry {
	struct class_request request;
	uint64_t number; /* ascends: the later counts */
	uint64_t start_ticks; /* by pid: which process of that pid; 0: not known yet */
	int pidfd; /* of that; -1: none */
	bool was_there; /* by cgroup: at one look at least */
};

struct scheduler {
	struct scheduler_parts parts;
	struct gpu_backend *b;
	struct gpu_caps caps; /* of the last one: what it measured stays what it was */
	const struct config *config;
	struct engine_config engine_config;
	struct engine *engine;
	void *engine_memory;
	uint64_t now_ns; /* never goes back */
	int epoll;
	int failed;
	bool paused;

	bool handed_over; /* the driver's own scheduler decides; nothing is held from here */
	bool native_was_on; /* before that, by others than us */
	bool native_refused; /* it cannot, or does not any more: not tried again for now */
	bool native_looked; /* whether it is on though it should not be */
	bool native_due; /* other settings */
	uint64_t native_check_ns;

	struct gpu gpus[GPU_NODES_MAX];
	uint32_t n_gpus;
	struct process *table[SCHEDULER_MAX_PROCESSES]; /* by pid, ascending */
	size_t n_processes;
	struct newcomers newcomers;
	struct processes leaving;
	struct jobs jobs;
	struct job *by_index[SCHEDULER_MAX_JOBS]; /* of an engine job */
	uint32_t n_jobs, n_queues;
	uint64_t keys;
	uint32_t gangs;
	bool told_limit;

	struct class_entry requests[CLASS_REQUESTS_MAX];
	size_t n_requests;
	uint64_t request_numbers;

	uint64_t scan_ns, tick_ns; /* when, and when it was last */
	bool deaf; /* nobody tells when somebody comes */
	bool deaf_told;
	uint64_t cgroups_ns; /* when it is to be seen which of those of requests are gone */
	uint64_t wake_ns; /* of the engine */
	char blind[sizeof(
		((struct gpreempt_daemon_status *)0)->blind)]; /* why work goes unseen, or "" */
	char blind_told[sizeof(
		((struct gpreempt_daemon_status *)0)->blind)]; /* the same in the last event */
	uint64_t blind_ns, blind_told_ns; /* the last time it was so, was told to be so */
	size_t looks_begun; /* in this turn */
	bool struck; /* work was told at once in this turn */
	bool measured; /* what this turn costs */
	uint64_t turn_cpu_ns; /* processor time before it */
	uint64_t next_look_ns; /* at anybody, */
	uint64_t looks_from_ns; /* but not before this */
	uint64_t quick_until_ns; /* turns may be; 0: the last one was whole */
	struct gpu_effort effort; /* of the backend, when it was asked last */
	uint64_t look_cost_ns; /* processor time of a turn with looks; 0: not known yet */
	char unwatched[128]; /* why work of somebody is not told at once: told last */
	bool attach_due, gpus_due, step_due, slices_due; /* something changed they judge by */
	bool lost; /* a look found nobody */
	uint32_t targets; /* not yet released */
	uint32_t outstanding; /* calls */
	uint32_t calls;
	int guard_slot; /* -1: not armed */
	bool guard_polled, guard_ended;

	pid_t pids[SCHEDULER_MAX_LISTED]; /* of a scan */
	struct refused refused;
	struct gpu_watch *watches[SCHEDULER_MAX_PROCESSES]; /* that are looked at together */
	struct engine_sample samples[SCHEDULER_MAX_QUEUES];
	struct engine_action actions[SCHEDULER_MAX_JOBS];
	uint32_t ids[SCHEDULER_MAX_QUEUES];

	struct scheduler_figures figures;
};

static inline const struct gpu_ops *ops(const struct scheduler *s)
{
	return s->b->ops;
}

/* As far as that is known. */
static inline bool has_ended(int pidfd)
{
	struct pollfd end = { .fd = pidfd, .events = POLLIN };

	return pidfd >= 0 && poll(&end, 1, 0) > 0;
}

#define for_each_process(s, p) \
	for (struct process *const *p##_at = (s)->table, *p; \
	     p##_at < (s)->table + (s)->n_processes && (p = *p##_at); p##_at++)
#define for_each_job(p, j) \
	for (struct job *j = SLIST_FIRST(&(p)->jobs); j; j = SLIST_NEXT(j, sibling))

/* The backend's clock, kept from going back. */
uint64_t scheduler_now(struct scheduler *s);
/* Is there a guard that will act on our silence, or is nothing real held? */
bool scheduler_is_guarded(struct scheduler *s);

/* Alive and at work: for what may take long though each part of it does not. */
void scheduler_beat(struct scheduler *s);
void tell(struct scheduler *s, uint32_t kind, uint32_t gpu, const char *text);
/* Lets go of everybody for good. */
void scheduler_fail(struct scheduler *s, int error, const char *why);

/* ---- processes.c ---- */

struct process *process_find(const struct scheduler *s, pid_t pid);
void processes_scan(struct scheduler *s);
/* Between two scans: only those who are new. */
void processes_meet(struct scheduler *s);
/* Class and figures anew, after a request or another configuration. */
void process_judge(struct scheduler *s, struct process *p);
void processes_judge(struct scheduler *s);
void process_gone(struct scheduler *s, struct process *p);
/* The same without a word: it is let go of and forgotten. */
void process_drop(struct scheduler *s, struct process *p);
/* Neither its queues nor its end are looked at, until the next scan. */
void process_look_away(struct scheduler *s, struct process *p);
void process_free(struct scheduler *s, struct process *p);
bool process_is_held(const struct process *p); /* one job of it at least */
/* Asks who it is, all of it or only whether it is still the same; an answer follows. */
void process_ask(struct scheduler *s, struct process *p, bool all);
/* One of whom all is known now. */
void process_came(struct scheduler *s, pid_t pid, int pidfd, struct identity *identity);
/* What has been answered by now, of anybody. */
void processes_take_answers(struct scheduler *s);
void process_tell(struct scheduler *s, const struct process *p, const struct gpreempt_event *event,
		  const char *fmt, ...) _printf_(4, 5);
/* The same where there is no more to tell than a line, which begins with who it is. */
#define process_say(s, p, event_kind, fmt, ...) \
	process_tell(s, p, &(struct gpreempt_event){ .kind = event_kind }, "process %d (%s) " fmt, \
		     (p)->pid, (p)->identity.stat.comm, ##__VA_ARGS__)

/* ---- newcomers.c ---- */

struct newcomer *newcomer_find(const struct scheduler *s, pid_t pid);
void newcomer_came(struct scheduler *s, pid_t pid, uid_t uid);
void newcomer_meet(struct scheduler *s, struct newcomer *c); /* a scan has found it */
void newcomer_answered(struct scheduler *s, struct newcomer *c, const struct proc_files *files);
/* One of those who do not let themselves be read, for people; NULL: there is none. */
const char *newcomers_problem(const struct scheduler *s, char *buf, size_t size);
void newcomers_forget(struct scheduler *s, bool all); /* or those that the scan has not found */

/* ---- shares.c ---- */

void shares_begin(struct scheduler *s); /* a scan, in which pids ascend */
/* May this process, which is nobody's that is known, be asked who it is? Whose it is now. */
bool shares_admit(struct scheduler *s, pid_t pid, uid_t *ret_uid);
bool shares_admit_between(struct scheduler *s, pid_t pid, uid_t *ret_uid); /* two scans */
/* For one more process of that user; false: it has its share. */
bool shares_make_room(struct scheduler *s, uid_t uid);
/* For @n queues of that process instead of those it has. */
bool shares_make_room_for_queues(struct scheduler *s, const struct process *p, size_t n);
/* Who found no room, for people; NULL: there is enough. */
const char *shares_problem(const struct scheduler *s, char *buf, size_t size);

/* ---- jobs.c ---- */

void jobs_leave_alone(struct scheduler *s, struct process *p); /* there is no room for it */

struct job *job_find(const struct scheduler *s, uint32_t engine_job);
struct gpu *gpu_find(struct scheduler *s, uint32_t gpu);
void gpus_read(struct scheduler *s);
/* Counts who is on which GPU, and when each process is to be looked at. */
void gpus_count(struct scheduler *s);
/* Online work shows there, or is announced. */
void gpu_stir(struct scheduler *s, struct gpu *g);
/* At every scan: which GPUs have been quiet since the last one. */
void gpus_settle(struct scheduler *s);
struct job *job_on(const struct process *p, uint32_t gpu); /* NULL: it has none there */
void job_init(struct scheduler *s, struct process *p, uint32_t gpu, struct job *j);
bool is_critical(const struct process *p); /* as an online one */
/* Jobs follow the queues the watch knows. */
void jobs_follow(struct scheduler *s, struct process *p);
/* The engine is told what they are now. */
void jobs_change(struct scheduler *s, struct process *p);
/* The engine forgets what it did to them: they are on the GPU, and no longer ours to hold. */
void jobs_start_over(struct scheduler *s, struct process *p);
void jobs_remove(struct scheduler *s, struct process *p);
void job_account(struct scheduler *s, struct job *j);
void job_set(struct scheduler *s, struct job *j, bool works, bool away);
void jobs_tick(struct scheduler *s);

/* ---- class_requests.c ---- */

/* Writes down in @p what is asked of it. @fresh: by the request made just now, or 0. */
void class_requests_match(struct scheduler *s, struct process *p, uint64_t fresh);
void class_requests_forget_dead(struct scheduler *s);
/* A process was asked about: it may be that of a request. @start_ticks 0: there is none. */
void class_requests_answered(struct scheduler *s, pid_t pid, uint64_t start_ticks);
void class_requests_done(struct scheduler *s);

/* ---- attach.c ---- */

bool is_holdable(const struct scheduler *s, const struct process *p);
void attach_all(struct scheduler *s);
/* Resumes and releases the process if it is attached; its jobs begin anew. */
void attach_let_go(struct scheduler *s, struct process *p);
/* Not before long: it was refused, or lost. */
void attach_later(struct scheduler *s, struct process *p, const char *why);
/* What stood in the way is gone. */
void attach_at_once(struct scheduler *s, struct process *p);
void attach_done(struct scheduler *s, struct process *p, const struct gpu_done *d);

/* ---- slices.c ---- */

/* After gpus_count(): everybody who is tied is given the turns he should have. */
void slices_follow(struct scheduler *s);
/* Is somebody on a GPU with it who is online, or is offline and attached? */
bool slices_meet(const struct process *p, enum job_class other);
/* Is the process an online one whose turns should be longer? */
bool slices_wants_tie(const struct scheduler *s, const struct process *p);
void slices_done(struct scheduler *s, struct process *p, const struct gpu_done *d);
/* It has its own turns again. */
void slices_forget(struct scheduler *s, struct process *p);

/* ---- observe.c ---- */

/* One look at those that are due; how many samples there are for the engine. */
size_t observe(struct scheduler *s, bool all, bool *ret_complete);
/* The same of those whose work was told at once, and of looks that have told meanwhile. */
size_t observe_alerts(struct scheduler *s);
/* Tells when it begins or ends that work goes unseen. @listed: of ops->processes(). */
void observe_sight(struct scheduler *s, int listed);
uint64_t observe_next(const struct scheduler *s);

/* ---- pace.c ---- */

/* After gpus_count() has counted: how often each is looked at, and whose next work is told. */
void pace_count(struct scheduler *s);
/* When it is to be looked at next: where a look tells nothing, and after one that did. */
uint64_t pace_at_least(const struct scheduler *s, const struct process *p);
uint64_t pace_next(struct scheduler *s, struct process *p);
/* Why work of some online job is not told at once, or would not be; empty: it is. */
const char *pace_unwatched(const struct scheduler *s);
void pace_begin(struct scheduler *s); /* a turn */
void pace_end(struct scheduler *s);

/* ---- hint_pages.c ---- */

void hint_page_look(struct scheduler *s, struct process *p);
void hint_page_close(struct process *p);

/* ---- trip.c ---- */

/* @d failed in a way that the GPUs it was about are left alone from now on. */
void trip(struct scheduler *s, struct process *p, const struct gpu_done *d);
void trip_forget(struct gpu *g);

/* ---- native.c ---- */

/* Hands over where the configuration says so, and takes back where the other has gone. */
void native_follow(struct scheduler *s);
/* What became of the process, if that is another than it was told. */
void native_tell_job(struct scheduler *s, struct process *p);
/* Only while it is handed over, as told in gpu/native.h. */
int native_hint(struct scheduler *s, struct process *p, uint64_t at_ns, uint64_t for_ns);
int native_rearm(struct scheduler *s, uint32_t gpu); /* otherwise nothing: 0 */
/* It is as it was before; the next turn may hand over anew. */
void native_end(struct scheduler *s);

/* ---- act.c ---- */

void act(struct scheduler *s, struct engine_action *actions, size_t n);
void act_take_done(struct scheduler *s);
uint64_t act_cookie(struct scheduler *s, const struct process *p);
/* What it was held of it is back, or nobody's any more. */
void act_let_go(struct scheduler *s, struct process *p, const char *how);
/* Its release is under way, and its jobs are forgotten before that is done: it is told. */
void act_forget(struct scheduler *s, struct process *p);
/* Before something is done to it that our death would not undo. False: there is no more room. */
bool act_write_down(struct scheduler *s, struct process *p);
/* Unless something still is done to it. */
void act_forget_entry(struct scheduler *s, struct process *p);

#endif
