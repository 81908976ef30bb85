/* SPDX-License-Identifier: MIT */
/*
 * The daemon's heart: processes and their jobs, looked at and acted on as the engine says.
 *
 * scheduler_internal.h says what its files do. Only scheduler.h is seen by the rest of the daemon;
 * everything here is called from the event loop's one thread.
 */
#ifndef GPREEMPT_CMD_GPREEMPTD_SCHEDULER_H
#define GPREEMPT_CMD_GPREEMPTD_SCHEDULER_H

#include "wire/wire.h"
#include "cmd/gpreemptd/config.h"
#include "cmd/gpreemptd/events.h"
#include "cmd/gpreemptd/histogram.h"
#include "cmd/gpreemptd/journal.h"
#include "gpu/backend.h"

struct scheduler;

#define SCHEDULER_MAX_PROCESSES 1024
#define SCHEDULER_MAX_LISTED 16384 /* processes that use a GPU, for those to be chosen from */
#define SCHEDULER_MAX_JOBS 4096 /* a process on one GPU */
#define SCHEDULER_MAX_QUEUES 16384

/*
 * All borrowed, and must outlive it; @guard may be NULL on a model. @backend may be NULL: it begins
 * paused then, until scheduler_set_backend() and scheduler_continue().
 */
struct scheduler_parts {
	struct gpu_backend *backend;
	struct guard *guard;
	struct journal *journal;
	struct events *events;
	const char *run_dir; /* where a trip is written down; NULL: nowhere */
	const char *cgroup_root; /* where hierarchies are mounted; NULL: nobody looks there */
};

/* @config is borrowed until scheduler_configure() brings another. */
int scheduler_new(const struct scheduler_parts *parts, const struct config *config,
		  struct scheduler **ret);
/*
 * Lets everything go; for what is still on its way back then the backend's close waits, and it
 * stays written down. Pause and wait for scheduler_is_idle() first where there is time. Accepts
 * NULL.
 */
void scheduler_free(struct scheduler *s);

/*
 * One turn: takes what the backend has done, looks for processes when it is time, looks at the
 * queues that are due, asks the engine, acts. Returns when it wants the next, absolute by the
 * backend's clock; sooner when the backend's fd is readable, or after a call that says so.
 */
uint64_t scheduler_turn(struct scheduler *s);
/* Readable when a turn is due: the backend has done something, a process ended, the guard died. */
int scheduler_fd(const struct scheduler *s);
/*
 * 0, or -EOWNERDEAD: the guard is dead, or -EUCLEAN: the driver would not resume anybody at our
 * death any more. Everything is let go of and nothing is held any more: end when
 * scheduler_is_idle(), so that whoever started the daemon starts another.
 */
int scheduler_failed(const struct scheduler *s);

/*
 * The caller may be kept by others than the GPUs, as by the machine's user database, for longer
 * than the guard would stand it; until the next turn. No hold gets longer by that.
 */
void scheduler_will_be_late(struct scheduler *s);

/* Another configuration: classes are judged anew, holds stay until the next turn judges them. */
void scheduler_configure(struct scheduler *s, const struct config *config);
void scheduler_set_policy(struct scheduler *s, const struct gpol_ops *policy);
const struct gpol_ops *scheduler_policy(const struct scheduler *s);

/* ---- what people ask for; who may, control.c has checked ---- */

struct class_request {
	struct wire_class said; /* WITHDRAW: the same one before it, and this one, are forgotten */
	uid_t only_uid; /* of that user's processes only; (uid_t)-1: of anybody's */
};

/*
 * For those there are and those to come, until they are gone or another request or reload says
 * otherwise; by cgroup, until that is gone, if it ever was there and the pattern is the path of
 * one. How many processes were classed now. -ESRCH: no such process (by pid). -EPERM: it is
 * another user's. -ENOSPC.
 */
int scheduler_class(struct scheduler *s, const struct class_request *request);

/*
 * Work comes at @at_ns (0: now) and takes @for_ns (0: not known), of which a second counts. -EPERM:
 * the job is not online; -ENOENT: it is not known; -EINVAL: that is more than a second ahead. To be
 * followed by scheduler_act() at once.
 */
int scheduler_hint(struct scheduler *s, pid_t pid, uint64_t at_ns, uint64_t for_ns);
/* A step of the engine without looking, and what follows from it: the way of a hint. */
void scheduler_act(struct scheduler *s);
/*
 * A page the process may write hints to; the descriptor is the caller's to close. -ENOENT: it is
 * not known, -EAGAIN: it has no class, which both may change; -EPERM: it is offline.
 */
int scheduler_hint_page(struct scheduler *s, pid_t pid, int *ret_fd);
/* Whose it is: for the rights of whoever asks. -ESRCH. */
int scheduler_uid_of(struct scheduler *s, pid_t pid, uid_t *ret);

/* Lets go of everybody and of the devices; scheduler_is_idle() tells when that is done. */
void scheduler_pause(struct scheduler *s);
void scheduler_continue(struct scheduler *s);
bool scheduler_is_paused(const struct scheduler *s);
bool scheduler_is_idle(const struct scheduler *s); /* nothing attached, nothing outstanding */
/*
 * Only while it is paused and idle: the backend is about to be closed (NULL), or is there again,
 * maybe another one. Without it turns, hints and questions do no harm and tell of what was.
 */
void scheduler_set_backend(struct scheduler *s, struct gpu_backend *backend);
int scheduler_rearm(struct scheduler *s, uint32_t gpu); /* -ENOENT */
/*
 * Ends holds on @pid (0: on all) and makes no new one on them for a while; how many ended. The
 * resumes are on their way when it returns. -ESRCH.
 */
int scheduler_release(struct scheduler *s, pid_t pid);

/* ---- what it knows ---- */

struct scheduler_figures { /* since the start */
	struct gpreempt_daemon_status status; /* what is counted in it, and the last backend */
	uint64_t scans;
	struct histogram detection, suspend, resume, held;
};

const struct scheduler_figures *scheduler_figures(const struct scheduler *s);
void scheduler_status(struct scheduler *s,
		      struct gpreempt_daemon_status *ret); /* its own fields of it */
/* Entries from the index @from on; how many were written. */
size_t scheduler_gpus(struct scheduler *s, uint64_t from, struct gpreempt_daemon_gpu *ret,
		      size_t max, uint32_t *ret_total);
/* What happened when it tripped, for people, a line each; NULL: it has not. */
const char *scheduler_trip(struct scheduler *s, uint32_t gpu);
#define SCHEDULER_ANYBODY ((uid_t)-1)
/* The same from where *from, which begins as 0, says; it is where the next page begins then. */
size_t scheduler_jobs(struct scheduler *s, uint64_t *from, uid_t of,
		      struct gpreempt_daemon_job *ret, size_t max, uint32_t *ret_total);

#endif
