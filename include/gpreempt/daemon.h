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
 * Once, when the process uses the GPU: a page shared with the daemon. NULL when there is none to
 * be had (no daemon, or the process is not of the class online), which the calls below accept;
 * *ret_error, which may be NULL, says why. @path as in gpreempt_daemon_open(). A daemon started
 * anew does not know the pages of the one before. Since: 0.1
 */
struct gpreempt_hint *gpreempt_hint_open(const char *path, struct gpreempt_error *ret_error);
/*
 * Just before work is submitted, so that the GPU is free when it arrives. Stores to memory and
 * makes no system call; any thread may call it. Since: 0.1
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

struct gpreempt_daemon_status {
	size_t size;
	pid_t pid;
	bool paused;
	bool modelled; /* times come from a model and must be shown as such */
	bool privileged; /* the caller may do everything */
	bool guarded; /* a guard stands beside the daemon */
	uint64_t started_ns, now_ns; /* CLOCK_REALTIME */
	uint32_t gpus, processes, jobs, queues;
	uint32_t online, offline, held, attached; /* processes */
	uint64_t preemptions, trips;
	uint64_t inversions, resolved; /* online work that waited for offline; and then did not */
	uint64_t hints, hints_refused;
	struct gpreempt_latency detection; /* from work seen, or a hint, to the decision */
	struct gpreempt_latency suspend, resume; /* from the decision until done */
	uint64_t steps; /* decisions looked for */
	char policy[16];
	char backend[16];
	char version[32];
	char config[128]; /* the file; may be empty */
	char level[4]; /* that it holds jobs by: "K3", "N2", ... */
	bool kernel; /* it has handed over to the scheduler inside the driver, which decides */
	char blind[128]; /* why work of some jobs, or of all, goes unseen; empty: none does */
};

int gpreempt_daemon_get_status(struct gpreempt_daemon *d,
			       struct gpreempt_daemon_status *ret); /* Since: 0.1 */

struct gpreempt_daemon_gpu {
	size_t size;
	uint32_t gpu_id;
	bool tripped; /* a preemption failed: nothing is held on it until it is rearmed */
	uint32_t slots, slots_online, slots_offline, slots_reserved;
	uint64_t cycles; /* of the runlist, caused by the daemon */
	uint64_t denied_by_budget, denied_by_cost; /* preemptions not made */
	uint64_t trips;
	char name[64];
	char tripped_by[128];
};

int gpreempt_daemon_get_gpus(struct gpreempt_daemon *d, struct gpreempt_daemon_gpu *ret,
			     size_t max); /* Since: 0.1 */

#define GPREEMPT_JOB_HISTORY 14

/* A process on one GPU. */
struct gpreempt_daemon_job {
	size_t size;
	pid_t pid;
	uid_t uid;
	uint32_t gpu_id; /* 0: it has no queues yet */
	enum gpreempt_class job_class; /* UNKNOWN: the daemon leaves it alone */
	uint32_t priority; /* within the class */
	bool critical, attached, held, working;
	bool waiting; /* has work and is off the GPU, or waits behind others */
	bool refused; /* cannot be held; why says it */
	bool unseen; /* its work cannot be seen: what would be known by that is zero */
	bool blind; /* though others' on such a GPU can; why says it */
	uint32_t queues;
	char comm[16];
	bool detailed; /* false: what follows is not for the caller to see, and is zero */
	uint64_t started_ns; /* CLOCK_REALTIME, since when it is known */
	uint64_t preempted, made_room; /* times it was held; times others were for it */
	uint64_t held_ns, ran_ns, longest_wait_ns;
	uint64_t stolen_ns; /* held while it had work */
	uint64_t detect_ns; /* the last time */
	uint64_t target_us; /* 0: none */
	pid_t because; /* whom it was held for last; 0: nobody */
	uint32_t gang; /* 0: none */
	uint32_t share_permille; /* of the last second: on the GPU with work */
	uint8_t history[GPREEMPT_JOB_HISTORY]; /* the seconds before, in 1/255, newest first */
	char source[32]; /* what gave it its class: "rule NAME", "request", "default" */
	char container[64]; /* or the end of its cgroup */
	char why[96]; /* it is not attached, or not held */
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
	uint64_t time_ns; /* CLOCK_REALTIME */
	enum gpreempt_event_kind kind; /* a later daemon may know others */
	uint32_t gpu_id; /* 0: none */
	pid_t pid, other_pid; /* 0: none */
	uid_t uid; /* of pid */
	enum gpreempt_class job_class;
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
