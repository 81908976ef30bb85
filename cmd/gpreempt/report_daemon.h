/* SPDX-License-Identifier: MIT */
/* What is kept of a daemon's events and statuses: report_daemon.c reads it, the page draws it. */
#ifndef GPREEMPT_CMD_REPORT_DAEMON_H
#define GPREEMPT_CMD_REPORT_DAEMON_H

#include "cmd/gpreempt/report.h"

#define DAEMON_MAX_GPUS 64
#define DAEMON_MAX_KINDS 32

struct daemon_job {
	uint64_t pid, gpu_id; /* gpu 0: of none that is known */
	struct lane lane;
	bool there, held;
	bool went; /* who comes with this number later is another */
	uint64_t there_since_ns, held_since_ns;
	uint64_t holds, held_ns, longest_ns;
};

struct daemon_gpu {
	uint64_t id;
	char name[64];
	struct slot_samples slots;
};

struct event_kind {
	char name[32];
	uint64_t n;
};

struct daemon_record {
	enum ground ground;
	char backend[24];
	uint64_t first_ns, last_ns, events, statuses;
	struct daemon_job *jobs;
	size_t n_jobs;
	struct daemon_gpu gpus[DAEMON_MAX_GPUS];
	size_t n_gpus;
	struct event_kind kinds[DAEMON_MAX_KINDS];
	size_t n_kinds;
	double *holds_us; /* how long each that ended was */
	size_t n_holds, room_holds;
	struct json_object *status; /* the last */
};

#endif
