/* SPDX-License-Identifier: MIT */
/*
 * What the tests of the backend on level K3 stand on: the software device's processes and files,
 * and in place of its driver's extension a script. Each call of that becomes a line of text:
 *
 *   "unmap 1001:all 1002:3 for 1500"   process:queue, in ms
 *   "map 1001:all@7"                   on one GPU
 *   "switch 1001:all | 1002:all for 200"
 *   "stats 1001"
 *
 * The clock stands still unless a test moves it.
 */
#ifndef GPREEMPT_TESTS_KFD_EXT_RIG_H
#define GPREEMPT_TESTS_KFD_EXT_RIG_H

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/kfd/backend.h"
#include "gpu/kfd/ext.h"
#include "gpu/model/model.h"
#include "util/macros.h"

/* Of the preset: ten busy queues on the first GPU; two idle ones; none. */
#define OFFLINE 1001
#define ONLINE 1002
#define EMPTY 1003

#define EXT_CALLS 64
#define EXT_LINE 256

struct ext_rig {
	struct gkfd_transport table;
	struct gkfd_trace_ops trace;
	struct gpu_backend *b;
	uint32_t gpus[2];

	/* what the extension says; to be set before it is asked */
	struct kfd_gpreempt_version version;
	int version_result;
	pid_t failing; /* batches about this process end with failure; 0: none does */
	int failure;
	pid_t unknown; /* GET_STATS does */
	int unknown_result;
	int call_failure; /* of any batch as a whole */
	uint32_t hanging_gpu; /* of GET_HQD_STATUS */
	const struct kfd_gpreempt_queue *queues; /* of GET_STATS */
	uint32_t n_queues;
	bool gate_shut; /* batches wait until the gate is opened */

	int exits[2]; /* a pipe: OFFLINE ends when its write end is closed */
	int gate[2]; /* the same for the gate */
	int tick; /* an eventfd: the worker's time is over */
	uint64_t now_ns;
	uint64_t asked_ns; /* how long the worker last wanted to wait */

	pthread_mutex_t lock;
	pthread_cond_t changed;
	char lines[EXT_CALLS][EXT_LINE];
	size_t n_lines, n_read;
	bool closed;
};

/* @rig is to be zero but for what the extension says. What opening said. */
int ext_rig_open(struct ext_rig *rig, enum gkfd_ext_use use, struct gpu_why *why);
void ext_rig_close(struct ext_rig *rig);
void ext_rig_close_backend(struct ext_rig *rig);
int ext_rig_setup(void **state); /* for cmocka */
int ext_rig_teardown(void **state);

/* The next call must be this one. */
void ext_rig_expect_call(struct ext_rig *rig, const char *line);
void ext_rig_expect_no_call(struct ext_rig *rig); /* so far */
struct gpu_done ext_rig_next(struct ext_rig *rig);
void ext_rig_expect(struct ext_rig *rig, enum gpu_verb verb, int result, uint32_t queues);
struct gpu_target *ext_rig_attach(struct ext_rig *rig, pid_t pid);
void ext_rig_move_clock(struct ext_rig *rig, uint64_t ns); /* and the worker sees it */
void ext_rig_open_gate(struct ext_rig *rig);

#endif
