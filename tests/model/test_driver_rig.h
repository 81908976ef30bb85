/* SPDX-License-Identifier: MIT */
/* A model with a target, two would-be debuggers and short names for what tests do with them. */
#ifndef GPREEMPT_TESTS_MODEL_TEST_DRIVER_RIG_H
#define GPREEMPT_TESTS_MODEL_TEST_DRIVER_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gpu/model/model.h"

#define TARGET 100 /* user 1000 */
#define DAEMON 200 /* root */
#define SECOND 300 /* root */
#define OTHER 400 /* user 2000 */

#define NEW_MASK KFD_EC_MASK(EC_QUEUE_NEW)
#define RUNTIME_MASK KFD_EC_MASK(EC_PROCESS_RUNTIME)
#define DELETE_MASK KFD_EC_MASK(EC_DEVICE_QUEUE_DELETE)
#define INVALID_BIT KFD_DBG_QUEUE_INVALID_MASK
#define ERROR_BIT KFD_DBG_QUEUE_ERROR_MASK
#define BAD_POINTER 0x10ull

struct rig {
	struct model *m;
	int pipe[2]; /* non-blocking */
	struct model_task target, daemon, second;
};

/* Two GPUs, no process has opened the device yet but DAEMON and SECOND. */
int rig_setup(void **state);
int rig_setup_old_permission(void **state); /* without the debugger clause */
int rig_setup_kfd_1_11(void **state);
int rig_setup_ext(void **state); /* with the extension */
int rig_setup_victims(void **state); /* and victims-only allowed */
int rig_setup_ext_mes(void **state); /* on a chip without run lists */
int rig_setup_mi100_like(void **state); /* debugs through one VMID */
int rig_teardown(void **state);

/* DBG_TRAP by @who on @pid. */
int rig_dbg(struct rig *r, struct model_task who, pid_t pid, uint32_t op,
	    struct kfd_ioctl_dbg_trap_args *args);
int rig_enable(struct rig *r, struct model_task who, pid_t pid, uint64_t mask,
	       struct kfd_runtime_info *rinfo);
int rig_disable(struct rig *r, struct model_task who, pid_t pid);
int rig_suspend(struct rig *r, struct model_task who, pid_t pid, uint32_t *ids, uint32_t n,
		uint32_t grace);
int rig_resume(struct rig *r, struct model_task who, pid_t pid, uint32_t *ids, uint32_t n);
/* Up to 64 entries; how many there are, or -errno. */
int rig_snapshot(struct rig *r, struct model_task who, pid_t pid, uint64_t clear,
		 struct kfd_queue_snapshot_entry *entries);
int rig_send_runtime(struct rig *r, struct model_task who, pid_t pid);
int rig_ioctl(struct rig *r, struct model_task who, unsigned long request, void *arg);
int rig_runtime_disable(struct rig *r, struct model_task who);
int rig_destroy(struct rig *r, struct model_task who, uint32_t id);
int rig_update(struct rig *r, struct model_task who, uint32_t id, uint32_t percent);

/* TARGET opens the device, calls RUNTIME_ENABLE and makes @n AQL queues on GPU 0. */
void rig_target(struct rig *r, uint32_t n);
uint32_t rig_queue(struct rig *r, pid_t pid, uint32_t gpu_index, uint32_t type);
/* ... and DAEMON holds the session: seized, enabled, queues acknowledged. */
void rig_attached(struct rig *r, uint32_t n);
/* Keeps each queue busy with workgroups of 200 us on every compute unit. */
void rig_busy(struct rig *r, pid_t pid, uint32_t id);

uint64_t rig_cycles(struct rig *r, uint32_t gpu_index);
struct model_queue_stats rig_queue_stats(struct rig *r, uint32_t id);
int rig_dots(struct rig *r); /* takes what the driver wrote to the pipe */
/* The save-area header of one XCC of a queue of TARGET. */
struct kfd_context_save_area_header rig_header(struct rig *r, uint32_t id, uint32_t xcc);
char *rig_file(struct rig *r, enum gkfd_tree tree, const char *path); /* NULL: no such file */

#endif
