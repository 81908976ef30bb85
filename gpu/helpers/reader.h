/* SPDX-License-Identifier: MIT */
/*
 * Between a reader process and its owner: memory that both have, with one request of several tasks
 * and the answers to them. A byte on the socket says that there is a request, or that all its
 * answers are there. Answers are published one by one: when a reader hangs, what it had read
 * before counts, and the first task without an answer is the one it hangs at.
 */
#ifndef GPREEMPT_GPU_HELPERS_READER_H
#define GPREEMPT_GPU_HELPERS_READER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#define READER_PROGRAM "gpreempt-reader"
#define READER_TASKS 256u /* in one request */
#define READER_REQUEST_BYTES (1u << 20)
#define READER_ANSWER_BYTES (4u << 20)
#define READER_FDS 16u /* with one answer */
#define READER_FILE 5 /* of its owner's, if any */

enum reader_service {
	READER_PROC_FILES, /* gpu/helpers/proc_files.h */
	READER_BORROW, /* gpu/helpers/borrow.h */
	READER_LOOK, /* gpu/kfd/look.h */
	READER_MQDS, /* gpu/kfd/debugfs.h */
	READER_NVRM, /* gpu/nvrm/question.h */
	READER_POINTS, /* gpu/watchpoints/points.h */
	READER_SERVICES,
};

struct reader_task {
	uint32_t service;
	int32_t pid; /* whom it is about; 0: nobody in particular */
	uint32_t at, len; /* of what else it says, in the request */
};

struct reader_answer {
	int32_t result;
	uint32_t at, len; /* in the answers */
};

union reader_control { /* of a message */
	struct cmsghdr header;
	char bytes[CMSG_SPACE(READER_FDS * sizeof(int))];
};

struct reader_shared {
	uint32_t n_tasks;
	uint32_t n_answers; /* published so far; atomic */
	uint64_t spent_ns; /* processor time so far, before it says that all are there */
	struct reader_task tasks[READER_TASKS];
	struct reader_answer answers[READER_TASKS];
	uint8_t request[READER_REQUEST_BYTES] __attribute__((aligned(8)));
	uint8_t answer[READER_ANSWER_BYTES] __attribute__((aligned(8)));
};

/* ---- in the reader ---- */

/* Where a service writes its answer. */
struct reader_room {
	uint8_t *at;
	size_t len, max;
	int fds[READER_FDS]; /* for the owner; of a task that is the only one of its request */
	uint32_t n_fds;
};

int reader_put(struct reader_room *room, const void *data, size_t len); /* 0, or -ENOSPC */

struct reader_services {
	/* The result of the task: 0 or a count, or -errno. NULL: not here (-ENOSYS). */
	int (*serve[READER_SERVICES])(void *user, pid_t pid, const void *request, size_t len,
				      struct reader_room *room);
	void *user;
};

/* Serves until the owner is gone. */
int reader_serve(const struct reader_services *services);

#endif
