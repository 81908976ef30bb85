/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What is spoken on the daemon's control socket: SOCK_SEQPACKET, one packet a message, between
 * programs of one machine. A request gets one answer with its seq; a subscriber also gets events
 * (seq 0) when they happen. Text is UTF-8, ended by a NUL within its field. Unused bytes are zero.
 * wire/ makes and checks packets.
 *
 * It grows without breaking. A request is a struct below, and its packet may be shorter: what is
 * missing is zero. One that is longer is refused unless the rest is zero: it asks for something
 * that this daemon would not do. Answers carry the records of gpreempt/daemon.h (wire/record.h),
 * and a reader passes over what it does not know. Each packet says which version its sender
 * speaks and since which version readers understand it.
 */
#ifndef GPREEMPT_ABI_WIRE_H
#define GPREEMPT_ABI_WIRE_H

#include "abi/types.h"

#define WIRE_MAGIC 0x54504d47u /* "GMPT" */
#define WIRE_VERSION 4
#define WIRE_VERSION_MIN 4 /* the oldest that is understood */
#define WIRE_SOCKET "/run/gpreempt/control.sock"
#define WIRE_REQUEST_MAX 512u /* bytes; a longer packet is refused unread */
#define WIRE_ANSWER_MAX 8192u

enum wire_type {
	WIRE_STATUS = 1, /* wire_request -> wire_list of one status */
	WIRE_GPUS, /* wire_request.from: an index -> wire_list */
	WIRE_JOBS, /* wire_request.from: wire_list.next of the page before -> wire_list */
	WIRE_POLICY, /* wire_policy, name empty: only ask -> wire_list of one policy */
	WIRE_CLASS, /* wire_class -> wire_answer.count: processes classed now */
	WIRE_HINT, /* wire_hint -> wire_answer */
	WIRE_HINT_PAGE, /* wire_hint -> wire_answer and a descriptor: a page of wire_hint_page, at
			 * once or, where it is waited for, when the process is online */
	WIRE_SUBSCRIBE, /* wire_request -> wire_answer, then wire_list of one event */
	WIRE_METRICS, /* wire_request.from: an offset -> wire_list of bytes of text */
	WIRE_PAUSE, /* wire_request -> wire_answer when every device is let go of */
	WIRE_CONTINUE, /* wire_request -> wire_answer */
	WIRE_REARM, /* wire_request.from: a gpu -> wire_answer */
	WIRE_RELEASE, /* wire_request.from: a pid, 0 all -> wire_answer.count: holds ended */
	WIRE_RELOAD, /* wire_request -> wire_answer */
	WIRE_TRIP, /* wire_request.from: a gpu -> wire_list of bytes of text, all of it */
	WIRE_EVENT = 64,
	WIRE_ERROR, /* wire_error, instead of any answer */
};

struct wire_header {
	uint32_t magic;
	uint8_t version; /* of the sender */
	uint8_t since; /* the oldest version that understands this packet */
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

/* The same in all versions from 3 on: everybody can be refused in words. */
struct wire_error {
	struct wire_header h;
	int32_t error; /* errno, positive */
	uint32_t kind; /* enum gpreempt_error_kind */
	char message[160];
	char hint[160];
};

/* Entries follow, each with its length before it; of text, bytes. */
struct wire_list {
	struct wire_header h;
	uint32_t n; /* in this packet */
	uint32_t total;
	uint64_t next; /* where the next page begins */
};

struct wire_policy {
	struct wire_header h;
	char name[16];
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
	uint32_t job_class; /* enum gpreempt_class */
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
	/* For a page: how long to wait until the process is known and online; 0: not at all. */
	uint64_t wait_ns;
};

/*
 * Shared with one online process. It stores the CLOCK_MONOTONIC time its work comes at (now: any
 * time that is past) into at_ns and how long it takes into for_ns (0: not known), and then adds one
 * to calls; no system call. The daemon looks at calls when it looks at the job's queues.
 */
#define WIRE_HINT_VERSION 1 /* of its own: it stays when the protocol changes */
struct wire_hint_page {
	uint32_t magic;
	uint16_t version; /* of the daemon; 0: it does not look at this page any more */
	uint16_t since; /* the oldest that may write here */
	uint64_t at_ns;
	uint32_t calls;
	uint32_t pad;
	uint64_t for_ns;
};

_Static_assert(sizeof(struct wire_header) == 16, "wire_header");
_Static_assert(sizeof(struct wire_request) == 24, "wire_request");
_Static_assert(sizeof(struct wire_error) == 344, "wire_error");
_Static_assert(sizeof(struct wire_list) == 32, "wire_list");
_Static_assert(sizeof(struct wire_class) <= WIRE_REQUEST_MAX, "wire_class");
_Static_assert(sizeof(struct wire_hint_page) == 32, "wire_hint_page");

#endif
