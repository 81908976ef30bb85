/* SPDX-License-Identifier: MIT */
/*
 * Between control.c (the socket), clients.c (connections), requests.c (answers) and rights.c (who).
 */
#ifndef GPREEMPT_CMD_GPREEMPTD_CONTROL_INTERNAL_H
#define GPREEMPT_CMD_GPREEMPTD_CONTROL_INTERNAL_H

#include <sys/queue.h>

#include "cmd/gpreemptd/control.h"
#include "cmd/gpreemptd/timer.h"
#include "gpu/helpers/hang_up.h"
#include "wire/wire.h"

#define USERS_MAX 1024u /* whom tokens are counted for; whoever comes then is refused */
#define REFILL_NS (50 * NSEC_PER_MSEC) /* who ran out of tokens is looked at no more often */
#define PAUSE_WAIT_NS (15 * NSEC_PER_SEC) /* longer than the driver waits for its hardware */
#define PAGE_WAIT_MAX_NS (3600 * NSEC_PER_SEC) /* for a process to be online */
#define ANSWER_BUFFER 65536 /* bytes of a client's socket; what it may leave unread */
#define ENDED_MAX 2048u /* connections still to be dropped; nobody new is let in then */

/* Tokens of one user: one a connection and one a request, as many a second as configured. */
struct user {
	struct user *next;
	uid_t uid;
	uint32_t clients;
	uint64_t tokens_ns; /* in time: a request costs as long as one takes to come back */
	uint64_t filled_ns; /* CLOCK_MONOTONIC */
};

struct client {
	struct control *control;
	LIST_ENTRY(client) link;
	sd_event_source *source;
	struct user *user;
	int fd;
	pid_t pid; /* who connected; 0: not in a pid namespace of ours */
	gid_t gid;
	bool privileged;
	bool in_group; /* of the configured group */
	bool subscribed;
	bool warned; /* that it asks too much; it is told once */
	bool unread; /* until its user has tokens again */
	bool waits; /* for a pause to be done */
	uint32_t waits_seq;
	uint64_t waits_until_ns;
	pid_t page_pid; /* whose page of hints it waits for; 0: nobody's */
	uint32_t page_seq;
	uint64_t page_until_ns;
	uint64_t missed; /* events since its buffer was full */
	char *metrics; /* what it reads page by page */
	size_t metrics_len;
};

struct control {
	struct control_parts parts;
	struct control_figures figures;
	sd_event_source *listener, *refill, *patience;
	LIST_HEAD(, client) clients;
	struct user *users;
	struct drops ended; /* connections */
	int fd, spare_fd; /* the spare lets us turn people away when descriptors run out */
	char *path; /* to be unlinked; NULL: systemd's */
	const struct config *config;
	uint64_t token_ns; /* a request's price */
	bool has_group;
	gid_t group;
};

#define for_each_client(c, m) \
	for (struct client *m = LIST_FIRST(&(c)->clients); m; m = LIST_NEXT(m, link))

/* ---- control.c ---- */

void control_refill_later(struct control *c); /* looks again at who ran out of tokens */
void control_be_patient(struct control *c); /* until somebody has waited too long */

/* ---- clients.c ---- */

bool user_can_pay(struct control *c, struct user *user); /* a few requests, not just one */
void users_free(struct control *c);
/* Takes over @fd, also when it fails or is turned away. */
void client_new(struct control *c, int fd);
void client_free(struct client *client);
/* Answers never wait. An error: the connection is of no more use. */
int client_send(struct client *client, const void *packet, size_t len);
int client_send_fd(struct client *client, const void *packet, size_t len, int fd);
void client_read_again(struct client *client); /* its user has tokens */
void client_send_event(struct client *client, const struct gpreempt_event *event);

/* ---- rights.c ---- */

void rights_set_group(struct control *c); /* as configured */
void rights_find(struct client *client); /* sets what depends on the group, by its socket */
uid_t rights_sees_whose(const struct client *client); /* that they are there at all */
bool rights_sees_event(const struct client *client, const struct gpreempt_event *event);
bool rights_owns(const struct client *client, pid_t pid); /* or may do everything */
void rights_reduce_status(const struct client *client, struct gpreempt_daemon_status *status);
void rights_reduce_gpu(const struct client *client, struct gpreempt_daemon_gpu *gpu);
void rights_reduce_job(const struct client *client, struct gpreempt_daemon_job *job);
/*
 * Whether it may ask for this at all. -EPERM: why not and what to do in *ret_error, as an answer.
 */
int rights_check(const struct client *client, const union wire_any_request *request,
		 struct wire_error *ret_error);

/* ---- requests.c ---- */

/* Does it and answers. An error: the connection is of no more use. */
int request_answer(struct client *client, const union wire_any_request *request);
/* As control_let_go(); -ETIMEDOUT. */
void request_end_wait(struct client *client, int error);
/* Whose page it waits for may be online now, or offline; or it has waited for too long. */
void request_page_again(struct client *client, uint64_t now_ns);

#endif
