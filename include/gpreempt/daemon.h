/* SPDX-License-Identifier: MIT */
/*
 * libgpreempt: talking to gpreemptd, which decides by itself who waits for whom.
 *
 * The conventions are those of gpreempt/gpreempt.h. No call waits for ever: a daemon that does
 * not answer is -ETIMEDOUT after five seconds (gpreempt_daemon_pause(): twenty). A connection may
 * be used by one thread at a time; after -ECONNRESET the daemon has gone, and a new connection is
 * needed.
 */
#ifndef GPREEMPT_DAEMON_H
#define GPREEMPT_DAEMON_H

#include "gpreempt/gpreempt.h"

#ifdef __cplusplus
extern "C" {
#endif

struct gpreempt_daemon;
struct gpreempt_hint;

/* ---- hints: two lines in a program whose work must not wait ---- */

/*
 * Once, at any time: asks the daemon for a page to share, and returns within some milliseconds,
 * with the page or without. Where the process is not known or not online yet, or there is no daemon
 * yet, the page comes by itself when it is so: the calls below see to it, one of them every few
 * milliseconds at most, and take it. Hints before that are dropped. So it is when a daemon ends and
 * another one is there. *ret_error is as of gpreempt_hint_is_active(). NULL, which the calls below
 * accept: there is no memory. @path as in gpreempt_daemon_open(). A forked child opens its own.
 * Since: 0.1
 */
struct gpreempt_hint *gpreempt_hint_open(const char *path, struct gpreempt_error *ret_error);
/* Whether hints reach a daemon; *ret_error, which may be NULL, says why not. Since: 0.1 */
bool gpreempt_hint_is_active(struct gpreempt_hint *hint, struct gpreempt_error *ret_error);
/*
 * Just before work is submitted, so that the GPU is free when it arrives. Stores to memory and,
 * once it is active, makes no system call; any thread may call it. Since: 0.1
 */
void gpreempt_hint_now(struct gpreempt_hint *hint);
/* The same for work that comes in @ahead_ns. Since: 0.1 */
void gpreempt_hint_in(struct gpreempt_hint *hint, uint64_t ahead_ns);
/*
 * The same for work that comes in @ahead_ns (0: now) and takes @for_ns, of which a second counts:
 * who made room for it comes back when it ends. Without that the end is known on GPUs only that
 * tell of progress. Since: 0.1
 */
void gpreempt_hint_for(struct gpreempt_hint *hint, uint64_t ahead_ns, uint64_t for_ns);
/* Returns NULL. Since: 0.1 */
struct gpreempt_hint *gpreempt_hint_close(struct gpreempt_hint *hint);

/* ---- connection ---- */

/*
 * @path: of the socket; NULL: what $GPREEMPT_SOCKET names, else /run/gpreempt/control.sock, and
 * where that is missing the same in $XDG_RUNTIME_DIR. -ENOENT, -ECONNREFUSED: no daemon. There is
 * nothing to ask for an error then, so *ret_error, which may be NULL, is filled. Since: 0.1
 */
int gpreempt_daemon_open(const char *path, struct gpreempt_daemon **ret,
			 struct gpreempt_error *ret_error);
/* Returns NULL, accepts NULL. Since: 0.1 */
struct gpreempt_daemon *gpreempt_daemon_close(struct gpreempt_daemon *d);
/* The last failure of a call on @d. Since: 0.1 */
void gpreempt_daemon_get_error(const struct gpreempt_daemon *d, struct gpreempt_error *ret);
/* How long an answer may take from here on; 0: as long as said above. Since: 0.1 */
void gpreempt_daemon_set_timeout(struct gpreempt_daemon *d, uint64_t timeout_ns);

/* ---- what it knows ---- */

struct gpreempt_latency { /* count 0: nothing was measured yet */
	uint64_t count;
	uint64_t p50_ns, p99_ns, max_ns;
};

/*
 * The structs that follow are also what the daemon sends, what JSON and metrics are made of and
 * what Python has: the build reads them here. A new field goes to the end of its struct. Words
 * with an @ in its comment say what its name and type do not:
 *
 *   @public        everybody may see it; other fields only those who may see details
 *   @optional      JSON leaves it out when it is zero; @optional=unseen: and work is unseen
 *   @seen          left out where the job's work cannot be seen
 *   @json=KEY      its key; else its name, with _us for _ns and _pct for _permille; -: none
 *   @gauge         a metric, named by its name and unit, with the comment as its help;
 *   @gauge=NAME    named otherwise; NAME{LABEL=VALUE}: one line of several
 *   @counter       the same for what only grows
 */

struct gpreempt_daemon_status {
	size_t size;
	pid_t pid; /* @public */
	bool paused; /* 1 while every device is let go of on request. @public @gauge */
	bool modelled; /* 1 where times are a software device's. @public @gauge */
	bool privileged; /* the caller may do everything @public */
	bool guarded; /* a guard stands beside the daemon @public */
	uint64_t started_ns; /* CLOCK_REALTIME @public @json=- */
	uint64_t now_ns; /* CLOCK_REALTIME @public @json=time_ns */
	uint32_t gpus; /* GPUs known. @public @json=- @gauge */
	uint32_t processes; /* @public */
	uint32_t jobs; /* Processes on a GPU, counted once for each GPU. @public @json=- @gauge */
	uint32_t queues; /* Queues known. @public @gauge */
	uint32_t online; /* Processes with a class on the GPUs. @public
			  * @gauge=processes{class=online} */
	uint32_t offline; /* @public @gauge=processes{class=offline} */
	uint32_t held; /* Processes kept off the GPU now. @gauge=held_processes */
	uint32_t attached; /* Offline processes that could be held now. @gauge=attached_processes */
	uint64_t preemptions; /* Jobs taken off a GPU. @counter */
	uint64_t trips; /* GPUs on which a preemption failed and no more are tried. @counter */
	uint64_t inversions; /* Times that online work was seen waiting behind offline work.
			      * @counter */
	uint64_t resolved; /* Of these, those in which the offline work was taken off.
			    * @counter=inversions_resolved */
	uint64_t hints; /* Announcements of work accepted. @counter */
	uint64_t hints_refused; /* Announcements of work from jobs not online. @counter */
	struct gpreempt_latency detection; /* from work seen, or a hint, to the decision */
	struct gpreempt_latency suspend, resume; /* from the decision until done */
	uint64_t steps; /* Decisions of the engine. @counter */
	char policy[16]; /* @public */
	char backend[16]; /* @public */
	char version[32]; /* @public */
	char config[128]; /* the file @optional */
	char level[4]; /* that it holds jobs by: "K3", "N2", ... @public */
	bool kernel; /* 1 while the scheduler inside the driver decides, and not the daemon.
		      * @public @json=- @gauge=kernel_scheduler */
	char blind[128]; /* why work of some jobs, or of all, goes unseen @public @optional */
	uint64_t seen_by_watch; /* Times online work began, by what told of it first.
				 * @counter=work_seen{by=watch} */
	uint64_t seen_by_look; /* @counter=work_seen{by=look} */
	uint64_t seen_by_hint; /* @counter=work_seen{by=hint} */
	uint64_t seen_late; /* By a rare look, though the job was watched.
			     * @counter=work_seen{by=late_look} */
	uint64_t traps; /* Traps that watched jobs paid for. @counter=watch_traps */
	char unwatched[128]; /* why some online jobs are not watched @public @optional */
};

int gpreempt_daemon_get_status(struct gpreempt_daemon *d,
			       struct gpreempt_daemon_status *ret); /* Since: 0.1 */

struct gpreempt_daemon_gpu {
	size_t size;
	uint32_t gpu_id; /* @public */
	bool tripped; /* 1: a preemption failed, no more are tried. @public @gauge */
	uint32_t slots; /* Hardware queue slots; 0: not known. @public @gauge */
	uint32_t slots_online; /* Slots with a queue. @gauge=slots_used{class=online} */
	uint32_t slots_offline; /* @gauge=slots_used{class=offline} */
	uint32_t slots_reserved; /* Slots kept for online queues. @gauge */
	uint64_t cycles; /* Times everybody on it was made to stand still. @counter */
	uint64_t denied_by_budget; /* Preemptions wanted and not made.
				    * @counter=denied{reason=budget} */
	uint64_t denied_by_cost; /* @counter=denied{reason=cost} */
	uint64_t trips; /* Preemptions that failed. @counter */
	char name[64]; /* @public */
	char tripped_by[128]; /* @optional */
};

int gpreempt_daemon_get_gpus(struct gpreempt_daemon *d, struct gpreempt_daemon_gpu *ret,
			     size_t max); /* Since: 0.1 */

/*
 * What happened when the GPU tripped, for people: what was asked, of whom, what the driver said,
 * who else was there, and the last events. *ret is the caller's to free. -ENOENT: it has not.
 * Since: 0.1
 */
int gpreempt_daemon_get_trip(struct gpreempt_daemon *d, uint32_t gpu_id, char **ret);

#define GPREEMPT_JOB_HISTORY 14

/* A process on one GPU. */
struct gpreempt_daemon_job {
	size_t size;
	pid_t pid; /* @public */
	uid_t uid; /* @public */
	uint32_t gpu_id; /* 0: it has no queues yet @public @optional */
	enum gpreempt_class job_class; /* UNKNOWN: the daemon leaves it alone @public @json=class */
	uint32_t priority; /* within the class */
	bool critical; /* room is made for it at once @json=latency_critical */
	bool attached; /* it could be held now */
	bool held; /* 1 while it is kept off. @json=- @gauge */
	bool working; /* it has work @json=- */
	bool waiting; /* 1 while it has work and does not run. @json=- @gauge @seen */
	bool refused; /* cannot be held; why says it */
	bool unseen; /* its work cannot be seen: what would be known by that is zero @json=- */
	bool blind; /* 1 while its work goes unseen though it could be seen. @gauge */
	uint32_t queues; /* Queues it has. @public @gauge */
	char comm[16]; /* @public */
	bool detailed; /* false: the caller may not see the details, which are zero @json=- */
	uint64_t started_ns; /* CLOCK_REALTIME, since when it is known @json=- */
	uint64_t preempted; /* Times it was taken off the GPU. @counter=preemptions */
	uint64_t made_room; /* Times others were taken off for it. @counter */
	uint64_t held_ns; /* Time kept off the GPU. @counter */
	uint64_t ran_ns; /* Time on the GPU with work. @counter=run_ns @seen */
	uint64_t longest_wait_ns; /* Longest time it had work and did not run, or, online, not
				   * without offline work. @gauge @optional=unseen */
	uint64_t stolen_ns; /* Of that, time in which it had work. @counter @seen */
	uint64_t detect_ns; /* How long its last request went unnoticed.
			     * @gauge=detection_ns @json=detection_us @optional */
	uint64_t target_us; /* Within which its work should be done; 0: none. @gauge @optional */
	pid_t because; /* whom it was held for last @json=held_for_pid @optional */
	uint32_t gang; /* @optional */
	uint32_t share_permille; /* Of the last second, on the GPU with work. @gauge=share @seen */
	uint8_t history[GPREEMPT_JOB_HISTORY]; /* of the seconds before, in 1/255, newest first
						* @json=- */
	char source[32]; /* what gave it its class: "rule NAME", "request", "default" */
	char container[64]; /* or the end of its cgroup @optional */
	char why[96]; /* it is not attached, or not held @optional */
	bool watched; /* 1 while it is idle and its next work would be told at once. @gauge */
};

int gpreempt_daemon_get_jobs(struct gpreempt_daemon *d, struct gpreempt_daemon_job *ret,
			     size_t max); /* Since: 0.1 */

/* Everything counted, as Prometheus text; *ret is the caller's to free. Since: 0.1 */
int gpreempt_daemon_get_metrics(struct gpreempt_daemon *d, char **ret, size_t *ret_len);

struct gpreempt_policy {
	size_t size;
	char name[16];
	char names[112]; /* all there are, with a blank between */
};

int gpreempt_daemon_get_policy(struct gpreempt_daemon *d,
			       struct gpreempt_policy *ret); /* Since: 0.1 */
/* From its next decision on; ends no hold by itself. Since: 0.1 */
int gpreempt_daemon_set_policy(struct gpreempt_daemon *d, const char *name);

/* ---- what can be asked of it: who may, gpreemptd(8) says ---- */

struct gpreempt_class_request {
	size_t size;
	enum gpreempt_class job_class;
	int priority; /* 0..255; -1: as it is */
	bool critical; /* makes room for it at once, not when it has waited */
	bool lazy; /* is attached only when somebody waits for it */
	uint64_t target_us; /* the latency it should have; 0: none */
	bool withdraw; /* forget what was asked by this selector; the rest does not count */
};

/*
 * Classes jobs, those there are and those to come. @selector: a pid (and its descendants, also
 * before it uses a GPU), "cgroup:PATH", "name:GLOB", or 12 or more leading digits of a container
 * id. How many processes were classed now. -EINVAL: the selector makes no sense. Since: 0.1
 */
int gpreempt_daemon_set_class(struct gpreempt_daemon *d, const char *selector,
			      const struct gpreempt_class_request *request);
/* Whether a selector makes sense: -EINVAL, -ENAMETOOLONG. @ret_error may be NULL. Since: 0.1 */
int gpreempt_check_selector(const char *selector, struct gpreempt_error *ret_error);
/*
 * Whether a daemon could be told at once of work that nobody announces: a hardware watchpoint is
 * tried on the caller, with no more rights to it than @daemon has, a pid, or, where that is 0, than
 * its unit gives. -errno: it could not, and *ret_error, which may be NULL, says why; -ENODATA: the
 * caller has fewer rights, and cannot tell. Since: 0.1
 */
int gpreempt_check_watch(pid_t daemon, struct gpreempt_error *ret_error);
/*
 * Work of @pid (0: of the caller) comes in @ahead_ns (0: now) and takes @for_ns (0: not known).
 * Since: 0.1
 */
int gpreempt_daemon_hint(struct gpreempt_daemon *d, pid_t pid, uint64_t ahead_ns, uint64_t for_ns);
/* Lets go of every device, and returns when that is done. Since: 0.1 */
int gpreempt_daemon_pause(struct gpreempt_daemon *d);
int gpreempt_daemon_continue(struct gpreempt_daemon *d); /* Since: 0.1 */
/* Clears what tripped a GPU. Since: 0.1 */
int gpreempt_daemon_rearm(struct gpreempt_daemon *d, uint32_t gpu_id);
/* Ends its holds on @pid (0: on all); how many there were. Since: 0.1 */
int gpreempt_daemon_release(struct gpreempt_daemon *d, pid_t pid);
/* Reads the configuration again; one with a mistake changes nothing. Since: 0.1 */
int gpreempt_daemon_reload(struct gpreempt_daemon *d);

/* ---- what happens ---- */

enum gpreempt_event_kind {
	GPREEMPT_EVENT_JOB_CAME = 1,
	GPREEMPT_EVENT_JOB_WENT = 2,
	GPREEMPT_EVENT_JOB_CLASSED = 3,
	GPREEMPT_EVENT_ATTACHED = 4,
	GPREEMPT_EVENT_NOT_ATTACHED = 5, /* refused or lost: text says why */
	GPREEMPT_EVENT_HELD = 6, /* pid, for other_pid */
	GPREEMPT_EVENT_LET_GO = 7, /* duration_ns: how long it was held */
	GPREEMPT_EVENT_TRIPPED = 8,
	GPREEMPT_EVENT_REARMED = 9,
	GPREEMPT_EVENT_POLICY_SET = 10,
	GPREEMPT_EVENT_PAUSED = 11,
	GPREEMPT_EVENT_CONTINUED = 12,
	GPREEMPT_EVENT_RELOADED = 13,
	GPREEMPT_EVENT_MISSED = 14, /* count: events the caller was too slow for */
	GPREEMPT_EVENT_HANDED_OVER = 15, /* the scheduler inside the driver decides */
	GPREEMPT_EVENT_TAKEN_BACK = 16, /* the daemon does again: text says why */
	GPREEMPT_EVENT_JOB_BLIND = 17, /* a job cannot be looked at: text says why */
	GPREEMPT_EVENT_JOB_SEEN = 18, /* it can again */
	GPREEMPT_EVENT_BLIND = 19, /* so are all, or all that are new: text says why */
	GPREEMPT_EVENT_SEES = 20, /* they can again */
};

struct gpreempt_event {
	size_t size;
	uint64_t time_ns; /* CLOCK_REALTIME @json=time_ns */
	enum gpreempt_event_kind kind; /* a later daemon may know others */
	uint32_t gpu_id; /* 0: none */
	pid_t pid, other_pid; /* 0: none */
	uid_t uid; /* of pid */
	enum gpreempt_class job_class; /* of pid @json=class */
	uint64_t duration_ns, count;
	char comm[16];
	char text[128]; /* for people */
};

/* "held"; "event" for one that is not known. Since: 0.1 */
const char *gpreempt_event_name(enum gpreempt_event_kind kind);
/* From here on the connection is for events, and other requests are -EBUSY. Since: 0.1 */
int gpreempt_daemon_subscribe(struct gpreempt_daemon *d);
/* Readable when there is something for gpreempt_daemon_next_event(). Since: 0.1 */
int gpreempt_daemon_fd(const struct gpreempt_daemon *d);
/* 1: *ret; 0: nothing now. Never waits. Since: 0.1 */
int gpreempt_daemon_next_event(struct gpreempt_daemon *d, struct gpreempt_event *ret);

#ifdef __cplusplus
}
#endif

#endif
