/* SPDX-License-Identifier: MIT */
/* What the tests of the backend stand on: the software device, with a gate before its driver. */
#ifndef GPREEMPT_TESTS_KFD_BACKEND_RIG_H
#define GPREEMPT_TESTS_KFD_BACKEND_RIG_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/kfd/backend.h"
#include "gpu/model/model.h"
#include "util/macros.h"

/* Of the preset: ten busy queues; two idle ones; none. */
#define OFFLINE 1001
#define ONLINE 1002
#define EMPTY 1003

struct rig {
	struct gkfd_transport table; /* the model's, through the gate */
	void *device;
	struct gpu_backend *b;
	pid_t blocked; /* driver calls about this process wait for the gate */
	int gate[2]; /* a pipe: once its write end is closed everybody passes */
	int at_gate[2]; /* one byte for each who has come there */
	unsigned int mqds_reads;
	bool no_mqds;
	pid_t no_stats; /* of this process; -1: of all */
	bool no_queue_files; /* queues are listed, but have no files yet */
	int mem_error; /* of every read of memory; 0: none */
	size_t mem_holes; /* so many spans of each cannot be read, the first ones */
	bool mqds_blocked; /* reading them waits for the gate */
};

extern enum gkfd_ext_use rig_ext; /* of the next one */

/* @spec as of --device model:SPEC. */
void rig_open(struct rig *rig, const char *spec);
/* The same with @way; what opening it said. */
int rig_try(struct rig *rig, const char *spec, enum gkfd_way way, struct gpu_why *why);
void rig_close(struct rig *rig);
/* The same for cmocka: *state is the rig. */
int rig_setup(void **state, const char *spec);
int rig_teardown(void **state);

struct model *rig_lock(struct rig *rig);
void rig_unlock(struct rig *rig);
void rig_advance(struct rig *rig, uint64_t ns);
bool rig_is_suspended(struct rig *rig, pid_t pid, uint32_t queue);
uint32_t rig_count_suspended(struct rig *rig, pid_t pid);

/* The next that is done, within some seconds. */
struct gpu_done rig_next(struct rig *rig);
bool rig_is_quiet(struct rig *rig); /* nothing is to be taken */
/* Attaches and waits; fails the test when that fails. */
struct gpu_target *rig_attach(struct rig *rig, pid_t pid);
void rig_expect(struct rig *rig, enum gpu_verb verb, int result, uint32_t queues);

void rig_block(struct rig *rig, pid_t pid);
void rig_await_blocked(struct rig *rig); /* somebody stands at the gate */
void rig_unblock(struct rig *rig);

static inline const struct gpu_ops *ops_of(const struct rig *rig)
{
	return rig->b->ops;
}

#endif
