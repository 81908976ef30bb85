/* SPDX-License-Identifier: MIT */
/* What the files of the fake share. */
#ifndef GPREEMPT_TESTS_NVRM_FAKE_RM_STATE_H
#define GPREEMPT_TESTS_NVRM_FAKE_RM_STATE_H

#include <pthread.h>

#include "tests/nvrm/fake_rm.h"

#define FAKE_GPUS 4
#define FAKE_PROCESSES 64
#define FAKE_FILES 4096
#define FAKE_CLIENTS 512
#define FAKE_FDS 1024
#define FAKE_NUMBERS 1100 /* descriptors of a process */
#define FAKE_FIRST_PLAIN (1u << 20) /* the number of the first that is of no driver */
#define FAKE_FAULTS 8
#define FAKE_ASKED 64
#define FAKE_CALLS (1u << 20) /* that are noted */
#define FAKE_FIRST_NUMBER 3

struct fake_gpu {
	uint32_t gpu;
	char name[64];
	bool mig;
};

struct fake_number {
	char path[32]; /* empty: closed */
	int file; /* of the driver; -1: some other */
};

struct fake_process {
	pid_t pid; /* 0: none */
	pid_t parent;
	uid_t uid;
	uint64_t start;
	char comm[16];
	char exe[64];
	int exit_fd; /* an eventfd, of which pidfds are copies */
	bool ended;
	struct fake_number numbers[FAKE_NUMBERS];
	unsigned int n_numbers;
	unsigned int n_plain; /* besides these: sockets */
};

struct fake_file {
	unsigned int refs; /* 0: not open */
	pid_t pid; /* who opened it; 0: the caller */
};

struct fake_object {
	uint32_t handle, class, parent;
	uint32_t gpu; /* devices and what is below them */
	uint32_t id; /* groups: of the hardware */
	uint64_t slice_us;
	unsigned int disabled; /* channels */
};

struct fake_client {
	uint32_t handle; /* 0: none */
	int file;
	uint32_t next;
	struct fake_object *objects; /* ascending */
	size_t n, room;
};

struct fake_pending {
	struct fake_fault fault;
	unsigned int seen;
};

struct fake_rm {
	pthread_mutex_t lock;
	pthread_cond_t changed;

	char *version;
	struct fake_gpu gpus[FAKE_GPUS];
	size_t n_gpus;
	uid_t caller;
	uint64_t now_ns;
	bool real_time;

	struct fake_process processes[FAKE_PROCESSES];
	size_t n_processes;
	uint64_t next_start;
	struct fake_file files[FAKE_FILES];
	struct fake_client clients[FAKE_CLIENTS];
	uint32_t next_client, next_group;
	bool recycle;
	int fds[FAKE_FDS]; /* the caller's: which file, -1: none */

	struct fake_pending faults[FAKE_FAULTS];
	size_t n_faults;
	bool answers_later;
	int answers_fd;
	struct nvrm_question *asked[FAKE_ASKED];
	size_t n_asked;
	pid_t silent;
	bool gives_up;
	struct fake_given_up given_up;
	uint32_t blocked_cmd;
	unsigned int waiting;

	struct fake_call *calls; /* the first FAKE_CALLS of them */
	size_t n_calls, room;
	struct fake_sins sins;
};

/* A broken test, not broken code. */
void fake_must(bool condition, const char *what);

struct fake_process *fake_process(struct fake_rm *f, pid_t pid); /* NULL: has ended */
int fake_new_file(struct fake_rm *f, pid_t pid);
void fake_unref_file(struct fake_rm *f, int file);
struct fake_client *fake_client(struct fake_rm *f, uint32_t handle);
struct fake_client *fake_new_client(struct fake_rm *f, int file);
void fake_end_client(struct fake_client *c);
struct fake_object *fake_object(struct fake_client *c, uint32_t handle);
pid_t fake_client_pid(const struct fake_rm *f, const struct fake_client *c);
void fake_end_process(struct fake_rm *f, pid_t pid);

/*
 * Both with the lock. What is to happen before the call does; true: a fault hits it, which is in
 * *ret. Leaving notes the call with its result.
 */
bool fake_enter(struct fake_rm *f, const struct fake_call *call, struct fake_fault *ret);
void fake_leave(struct fake_rm *f, const struct fake_call *call);

/* fake_rm_calls.c */
int fake_rm_ioctl(void *data, int fd, unsigned long request, void *arg);
/* fake_rm_proc.c */
int fake_rm_read_proc(void *data, const char *path, char **ret_text, size_t *ret_len);
int fake_rm_list_proc(void *data, const char *path, char **ret_names);
int fake_rm_list_numbers(void *data, const char *path, uint64_t *position, uint32_t *ret,
			 size_t max);
int fake_rm_read_link(void *data, const char *path, char *ret, size_t size);
int fake_rm_owner(void *data, pid_t pid, uid_t *ret);

#endif
