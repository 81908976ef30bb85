/* SPDX-License-Identifier: MIT */
/* server.c connections and time, jobs.c processes that have work done, calls.c driver calls. */
#ifndef GPREEMPT_CMD_GPREEMPT_SOFTGPU_INTERNAL_H
#define GPREEMPT_CMD_GPREEMPT_SOFTGPU_INTERNAL_H

#include <sys/queue.h>

#include "cmd/gpreempt-softgpu/softgpu.h"
#include "gpu/helpers/drop.h"
#include "gpu/soft/wire.h"

struct client;
struct work_queue;

struct process { /* who is connected, at least once */
	LIST_ENTRY(process) link;
	struct softgpu *s;
	pid_t pid;
	uid_t uid;
	bool admin;
	bool there; /* on the device */
	bool has_job; /* one of its connections is for work */
	LIST_HEAD(, client) clients;
	uint32_t n_connections;
	uint32_t n_requests; /* for queues, granted or not */
	int pid_fd;
	int pages_fd; /* its own pages, once it has a job; -1: none */
	sd_event_source *exit;
};

struct connection {
	LIST_ENTRY(connection) link;
	struct softgpu *s;
	struct process *p;
	int fd;
	sd_event_source *io;
	struct client *client; /* or it is for work, by what came first */
	bool is_job;
	LIST_HEAD(, work_queue) queues;
	uint32_t n_queues;
	bool full; /* its socket is: a job hears more when it can be written to */
	/* An answer that is due later, and nothing else is heard until then. */
	sd_event_source *due;
	struct device_return *answer;
	int answer_fd;
};

struct softgpu {
	struct model *m;
	sd_event *loop;
	char *path;
	int fd;
	uid_t owner;
	bool invented; /* the model's own processes are there */
	sd_event_source *accept, *turn, *after;
	LIST_HEAD(, process) processes;
	LIST_HEAD(, connection) connections;
	uint32_t n_processes, n_connections, n_queues;
	struct drops ended; /* connections */
	bool crowded; /* too many of these */
	uint64_t next_client;
	TAILQ_HEAD(, work_queue) news; /* queues in which something is done */
	int64_t expected; /* pieces of work that somebody waits for */
};

/* ---- server.c ---- */

/* Somebody has opened the device: who watches its socket (inotify(7), IN_ATTRIB) is told. */
void softgpu_opened(const struct softgpu *s);
/* It is on the device from now on. -EEXIST: its pid is an invented process's. */
int process_arrive(struct process *p);
/* 0; -EAGAIN: its socket is full; other errors: it is gone. */
int connection_send(struct connection *c, const void *packet, size_t len, int fd);
void connection_end(struct connection *c);

/* ---- jobs.c: all return -errno when the connection is to be ended ---- */

/* Answers one request. */
int job_request(struct connection *c, const union device_any *request);
/* Tells of what is done and not told yet. */
int job_tell_next(struct softgpu *s, struct connection **ret); /* 0: of nobody */
void job_go_on(struct connection *c); /* once the socket can be written to again */
void job_leave(struct connection *c);

/* ---- calls.c: the same ---- */

int client_call(struct connection *c, const void *packet, size_t len);
void client_leave(struct connection *c);

#endif
