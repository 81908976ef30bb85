/* SPDX-License-Identifier: MIT */
/* Inside the software device's service: device_jobs.c connections, device_work.c their work. */
#ifndef GPREEMPT_CMD_GPREEMPTD_DEVICE_JOBS_INTERNAL_H
#define GPREEMPT_CMD_GPREEMPTD_DEVICE_JOBS_INTERNAL_H

#include <sys/queue.h>

#include "cmd/gpreemptd/device_jobs.h"
#include "cmd/wire/device_wire.h"

struct work_queue {
	TAILQ_ENTRY(work_queue) link; /* in the service's news, under the device's lock */
	bool has_news; /* the same */
	uint64_t completed; /* packets; the same */
	struct device_job *job;
	uint32_t id;
	uint64_t submitted, told; /* packets; all before @told are told of */
	uint64_t told_mask; /* of those from @told on, bit 0 the first: done out of order */
	uint32_t seqs[DEVICE_MAX_PENDING]; /* by index modulo their number */
};

struct device_job {
	LIST_ENTRY(device_job) link;
	struct device_jobs *service;
	pid_t pid;
	uid_t uid;
	int fd, pid_fd;
	sd_event_source *io, *exit;
	bool there; /* on the device */
	bool full; /* its socket is: more when it can be written to */
	struct work_queue *queues[DEVICE_MAX_PROCESS_QUEUES];
	uint32_t n_queues;
};

struct device_jobs {
	struct live *live;
	sd_event *loop;
	char *path;
	int fd;
	sd_event_source *accept, *turn;
	LIST_HEAD(, device_job) jobs;
	uint32_t n_jobs, n_queues;
	TAILQ_HEAD(, work_queue) news; /* under the device's lock */
};

/* ---- device_work.c ---- */

/* Answers one request. -errno: the connection is to be ended. */
int work_request(struct device_job *job, const union device_any *request);
/* Tells of what is done and not told yet, of one queue; -errno as above. */
int work_tell(struct work_queue *q);
/* Its process leaves the device. */
void work_leave(struct device_job *job);
/* Once the socket can be written to again. */
void work_go_on(struct device_job *job);

/* ---- device_jobs.c ---- */

/* 0; -EAGAIN: its socket is full; other errors: it is gone. */
int job_send(struct device_job *job, const void *packet, size_t len);
void job_want_room(struct device_job *job); /* to be told when it is not full any more */

#endif
