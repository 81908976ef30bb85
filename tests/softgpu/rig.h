/* SPDX-License-Identifier: MIT */
/* A software GPU in a process of its own, jobs on it, and what a debugger does. */
#ifndef GPREEMPT_TESTS_SOFTGPU_RIG_H
#define GPREEMPT_TESTS_SOFTGPU_RIG_H

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "abi/kfd.h"
#include "abi/kfd_gpreempt.h"
#include "cmd/wire/device_client.h"
#include "gpu/soft/transport.h"
#include "util/macros.h"

#define STRANGER 65534
#define RIG_WRITE_PTR 56u /* in its page: where amd_queue_t has it */
#define SOON_MS 10000 /* for what must come; a test that waits so long has failed */

extern const struct gkfd_transport *const rig_transport;

struct rig {
	char dir[64], path[96];
	pid_t gpu;
	void *data; /* a transport to it */
};

struct job {
	pid_t pid;
	int go, told;
};

/* @spec: a preset. */
int rig_set_up(void **state, const char *spec);
int rig_tear_down(void **state);

/* A process with one queue, of another user where @uid is not 0. */
struct job rig_job(const struct rig *rig, uid_t uid);
void rig_end_job(struct job *j);
/* It writes into its pages as it likes: the write pointer of its queue becomes that. */
void rig_job_scribbles(struct job *j, uint64_t value);
/* It submits a piece of work: is that one, or an earlier one, done within the time? */
bool rig_job_works(struct job *j, int within_ms);

/* Runs it in a child, of another user where @uid is not 0; true: it returned true. */
bool rig_apart(uid_t uid, bool (*run)(const char *path, pid_t job), const char *path, pid_t job);

/* A debugger's calls, on this thread. */
int rig_enable(void *data, pid_t pid);
int rig_suspend_all(void *data, pid_t pid); /* seizes, enables, looks and suspends; how many */

#endif
