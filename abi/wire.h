/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What is spoken on the daemon's control socket: SOCK_SEQPACKET, one struct a packet, little more
 * than memory laid out alike on both sides of one machine. A request gets one answer with its seq;
 * a subscriber also gets events (seq 0) when they happen. Text is UTF-8, ended by a NUL within its
 * field. Unused bytes are zero. wire/ checks what arrives.
 */
#ifndef GPREEMPT_ABI_WIRE_H
#define GPREEMPT_ABI_WIRE_H

#include "abi/types.h"

#define WIRE_MAGIC 0x54504d47u /* "GMPT" */
#define WIRE_VERSION 3
#define WIRE_SOCKET "/run/gpreempt/control.sock"
#define WIRE_REQUEST_MAX 512u /* bytes; a longer packet is refused unread */
#define WIRE_ANSWER_MAX 8192u

enum wire_type {
	WIRE_STATUS = 1, /* wire_request -> wire_status */
	WIRE_GPUS, /* wire_request.from: an index -> wire_gpus */
	WIRE_JOBS, /* wire_request.from: keys above it -> wire_jobs */
	WIRE_POLICY, /* wire_policy, name empty: only ask -> wire_policy */
	WIRE_CLASS, /* wire_class -> wire_answer.count: processes classed now */
	WIRE_HINT, /* wire_hint -> wire_answer */
	WIRE_HINT_PAGE, /* wire_hint -> wire_answer and a descriptor: a page of wire_hint_page */
	WIRE_SUBSCRIBE, /* wire_request -> wire_answer, then wire_event */
	WIRE_METRICS, /* wire_request.from: an offset -> wire_text */
	WIRE_PAUSE, /* wire_request -> wire_answer when every device is let go of */
	WIRE_CONTINUE, /* wire_request -> wire_answer */
	WIRE_REARM, /* wire_request.from: a gpu -> wire_answer */
	WIRE_RELEASE, /* wire_request.from: a pid, 0 all -> wire_answer.count: holds ended */
	WIRE_RELOAD, /* wire_request -> wire_answer */
	WIRE_EVENT = 64,
	WIRE_ERROR, /* wire_error, instead of any answer */
};

struct wire_header {
	uint32_t magic;
	uint16_t version;
	uint16_t type; /* of the request in its answer too */
	uint32_t bytes; /* of the whole packet */
	uint32_t seq;
};

struct wire_request {
	struct wire_header h;
	uint64_t from;
};

struct wire_answer {
	struct wire_header h;
	uint64_t count;
};

struct wire_error {
	struct wire_header h;
	int32_t error; /* errno, positive */
	uint32_t kind; /* enum gpreempt_error_kind */
	char message[160];
	char hint[160];
};

enum wire_class_value { WIRE_CLASS_NONE, WIRE_CLASS_OFFLINE, WIRE_CLASS_ONLINE };

/* ---- status ---- */

#define WIRE_STATUS_PAUSED (1u << 0)
#define WIRE_STATUS_MODELLED (1u << 1)
#define WIRE_STATUS_PRIVILEGED (1u << 2) /* the asker may do everything */
#define WIRE_STATUS_GUARDED (1u << 3) /* a guard stands beside the daemon */
#define WIRE_STATUS_HANDED_OVER (1u << 4) /* the scheduler inside the driver decides */

struct wire_latency { /* what was measured so far; count 0: nothing */
	uint64_t count;
	uint64_t p50_ns, p99_ns, max_ns;
};

struct wire_status {
	struct wire_header h;
	uint32_t flags;
	int32_t pid;
	uint64_t started_ns; /* CLOCK_REALTIME */
	uint64_t now_ns;
	uint32_t gpus, processes, jobs, queues;
	uint32_t online, offline, held, attached; /* processes */
	uint64_t preemptions, inversions, resolved, trips;
	uint64_t hints, hints_refused;
	struct wire_latency detection; /* from work seen first, or a hint, to the decision */
	struct wire_latency suspend, resume; /* from the decision until done */
	uint64_t steps; /* of the engine */
	char policy[16];
	char backend[12];
	char level[4]; /* that holds are made by: "K3", "N2", ... */
	char version[32];
	char config[128];
	char blind[128]; /* why work of some, or of all, goes unseen; empty: none does */
};

struct wire_gpu {
	uint32_t gpu;
	uint32_t flags; /* WIRE_GPU_* */
	uint32_t slots, slots_online, slots_offline, slots_reserved;
	uint64_t cycles, denied_by_budget, denied_by_cost;
	uint64_t trips;
	char name[64];
	char tripped_by[128]; /* why, while it is tripped */
};
#define WIRE_GPU_TRIPPED (1u << 0)

#define WIRE_GPUS_MAX 24u
struct wire_gpus {
	struct wire_header h;
	uint32_t n, total;
	struct wire_gpu gpus[WIRE_GPUS_MAX];
};

#define WIRE_JOB_CRITICAL (1u << 0)
#define WIRE_JOB_ATTACHED (1u << 1)
#define WIRE_JOB_HELD (1u << 2)
#define WIRE_JOB_WORKING (1u << 3) /* has work */
#define WIRE_JOB_WAITING (1u << 4) /* has work and is off the GPU, or waits behind others */
#define WIRE_JOB_REFUSED (1u << 5) /* cannot be held; why says it */
#define WIRE_JOB_FULL (1u << 6) /* the asker may see what follows comm; else it is zero */
/* The device tells nobody of work: what would be known by it is zero. */
#define WIRE_JOB_UNSEEN (1u << 7)
/* The same of one whose work could be seen but cannot: why says it. */
#define WIRE_JOB_BLIND (1u << 8)

/* A process on one GPU. */
struct wire_job {
	uint64_t key; /* ascends; for the next request */
	int32_t pid;
	uint32_t gpu;
	uint32_t uid;
	uint16_t job_class; /* enum wire_class_value */
	uint16_t priority;
	uint32_t flags; /* WIRE_JOB_* */
	uint32_t queues;
	char comm[16];
	/* only with WIRE_JOB_FULL */
	uint64_t started_ns; /* CLOCK_REALTIME, since when it is known */
	uint64_t preempted, made_room; /* times */
	uint64_t held_ns, ran_ns;
	uint64_t longest_wait_ns; /* offline: held with work; online: beside offline work */
	uint64_t stolen_ns; /* held while it had work */
	uint64_t detect_ns; /* the last time */
	uint64_t target_us;
	int32_t because; /* pid of whom it was held for last, 0: nobody */
	uint32_t gang; /* 0: none */
	uint16_t share_permille; /* of the last second it was on the GPU with work */
	uint8_t history[14]; /* the same per second before that, in 1/255, newest first */
	char source[32]; /* what gave it its class: "rule NAME", "request", "default" */
	char container[64]; /* or the end of its cgroup */
	char why[96]; /* why it is not attached, or is not held */
};

#define WIRE_JOBS_MAX 16u
struct wire_jobs {
	struct wire_header h;
	uint32_t n, total;
	struct wire_job jobs[WIRE_JOBS_MAX];
};

struct wire_policy {
	struct wire_header h;
	char name[16];
	char names[112]; /* all there are, with a blank between */
};

/* ---- asking for a class ---- */

enum wire_selector { WIRE_BY_PID = 1, WIRE_BY_CGROUP, WIRE_BY_NAME, WIRE_BY_CONTAINER };

#define WIRE_KEEP UINT32_MAX /* leave as it is */
#define WIRE_CLASS_CRITICAL (1u << 0)
#define WIRE_CLASS_LAZY (1u << 1)
#define WIRE_CLASS_WITHDRAW (1u << 2) /* what was asked by this selector is forgotten; all else 0 */

struct wire_class {
	struct wire_header h;
	uint32_t selector; /* enum wire_selector */
	int32_t pid; /* it and its descendants, also before it uses a GPU */
	uint32_t job_class;
	uint32_t priority; /* 0..255, or WIRE_KEEP */
	uint32_t flags; /* WIRE_CLASS_* */
	uint32_t pad;
	uint64_t target_us; /* 0: none */
	char pattern[192]; /* the path, glob or id; not by pid */
};

/* ---- hints ---- */

struct wire_hint {
	struct wire_header h;
	int32_t pid; /* 0: the asker */
	uint32_t pad;
	uint64_t ahead_ns; /* work comes in so long; 0: now */
	uint64_t for_ns; /* and takes so long; 0: not known */
};

/*
 * Shared with one online process. It stores the CLOCK_MONOTONIC time its work comes at (now: any
 * time that is past) into at_ns and how long it takes into for_ns (0: not known), and then adds one
 * to calls; no system call. The daemon looks at calls when it looks at the job's queues.
 */
struct wire_hint_page {
	uint32_t magic;
	uint32_t version;
	uint64_t at_ns;
	uint32_t calls;
	uint32_t pad;
	uint64_t for_ns;
};

/* ---- what happened ---- */

enum wire_event_kind {
	WIRE_JOB_CAME = 1,
	WIRE_JOB_WENT,
	WIRE_JOB_CLASSED,
	WIRE_JOB_ATTACHED_NOW,
	WIRE_JOB_NOT_ATTACHED, /* refused or lost: text says why */
	WIRE_HELD, /* pid, for other_pid */
	WIRE_LET_GO, /* duration_ns: how long it was held */
	WIRE_TRIPPED,
	WIRE_REARMED,
	WIRE_POLICY_SET,
	WIRE_PAUSED,
	WIRE_CONTINUED,
	WIRE_RELOADED,
	WIRE_MISSED, /* count: events this subscriber was too slow for */
	WIRE_HANDED_OVER, /* the scheduler inside the driver decides */
	WIRE_TAKEN_BACK, /* the daemon does again: text says why */
	WIRE_JOB_BLIND_NOW, /* it cannot be looked at: text says why */
	WIRE_JOB_SEEN, /* it can again */
	WIRE_BLIND, /* so are all, or all that are new: text says why */
	WIRE_SEES, /* they can again */
	WIRE_EVENT_KINDS /* none of them */
};

struct wire_event {
	struct wire_header h;
	uint64_t time_ns; /* CLOCK_REALTIME */
	uint32_t kind; /* enum wire_event_kind */
	uint32_t gpu; /* 0: none */
	int32_t pid, other_pid; /* 0: none */
	uint32_t uid; /* of pid */
	uint16_t job_class;
	uint16_t pad;
	uint64_t duration_ns, count;
	char comm[16];
	char text[128]; /* for people */
};

#define WIRE_TEXT_MAX 8160u
struct wire_text {
	struct wire_header h;
	uint32_t n, total;
	char text[WIRE_TEXT_MAX];
};

_Static_assert(sizeof(struct wire_header) == 16, "wire_header");
_Static_assert(sizeof(struct wire_request) == 24, "wire_request");
_Static_assert(sizeof(struct wire_class) <= WIRE_REQUEST_MAX, "wire_class");
_Static_assert(sizeof(struct wire_gpus) <= WIRE_ANSWER_MAX, "wire_gpus");
_Static_assert(sizeof(struct wire_jobs) <= WIRE_ANSWER_MAX, "wire_jobs");
_Static_assert(sizeof(struct wire_text) <= WIRE_ANSWER_MAX, "wire_text");

#endif
