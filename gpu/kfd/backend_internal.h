/* SPDX-License-Identifier: MIT */
/* The backend as its own files see it: backend.c and backend_*.c. */
#ifndef GPREEMPT_GPU_KFD_BACKEND_INTERNAL_H
#define GPREEMPT_GPU_KFD_BACKEND_INTERNAL_H

#include <pthread.h>
#include <sys/queue.h>

#include "gpu/kfd/backend.h"
#include "gpu/kfd/debugfs.h"
#include "gpu/kfd/progress.h"
#include "gpu/kfd/tracer.h"
#include "gpu/mailbox.h"

/* So many queues are followed at a time, and so many packets of each: the first decide. */
#define LOOK_QUEUES 64
#define LOOK_PACKETS 8

/* One order and what came of it; travels to the thread that runs it and back. */
struct order {
	struct tracer_order base; /* on its way to a target's thread */
	STAILQ_ENTRY(order) link; /* on its way to the worker (backend_ext.h) */
	struct mail mail; /* and back */
	struct gpu_target *t;
	struct gpu_done done;
	uint64_t called_ns, longest_ns;
	uint32_t entry, n_entries; /* its part of the worker's call */
	bool all;
	uint32_t n;
	uint32_t ids[];
};

STAILQ_HEAD(order_list, order);

struct backend {
	struct gpu_backend base;
	struct gkfd *k;
	enum gkfd_way way;
	struct ext *ext; /* level K3, and no way; NULL: not */
	struct guard *guard;
	pid_t own_pid; /* as the device knows this process */
	LIST_HEAD(, gpu_target) targets;
	LIST_HEAD(, gpu_watch) watches;

	struct mailbox done; /* orders */

	/* looking */
	struct mqds_reader *mqds_reader; /* NULL until it is needed */
	uint64_t patience_ns;
	struct gkfd_mqds mqds; /* as read at mqds_ns */
	uint64_t mqds_ns;
	bool mqds_read;
	struct gkfd_progress_room *room;
	struct gkfd_queue_addr followed[LOOK_QUEUES];
	struct gkfd_progress progress[LOOK_QUEUES];
};

/* Pointers no further apart are read as one; ROCm has them in one struct, 72 bytes apart. */
#define NEAR_BYTES 128

struct seen { /* of one queue whose pointers are known, at the last look */
	uint32_t gpu, queue;
	uint64_t read, write;
	uint64_t now_read, now_write; /* as they are being looked at */
	uint32_t span, n_spans; /* of the watch's: two, or one where they lie together */
	bool settled; /* idle, and stays so until a pointer moves */
	uint32_t trust; /* so many looks it may stay busy without a pointer moving */
	uint64_t together[NEAR_BYTES / sizeof(uint64_t)]; /* both and what is between */
};

struct gpu_watch {
	LIST_ENTRY(gpu_watch) link;
	struct backend *b;
	pid_t pid;
	char *names; /* of its queues, as sysfs lists them */
	struct gpu_queue *queues;
	size_t n;
	bool stale; /* some pointers are not known, or not where they were */
	uint64_t retry_ns, retry_at_ns; /* when to look for them again */

	/* the known of them */
	struct gkfd_queue_addr *addrs;
	struct seen *seen; /* after them, of the unseen ones, only who they are */
	struct gkfd_span *spans;
	size_t n_known, n_unseen;
	struct gkfd_mem mem;
};

/* ---- backend_mqds.c ---- */

/* "mqds" holds every process's queues and is long: within this time one reading is for all. */
#define MQDS_FRESH_NS (50 * NSEC_PER_MSEC)
#define MQDS_PATIENCE_NS (100 * NSEC_PER_MSEC) /* a few are enough while nothing is wrong */

/* With the extension, that is asked. */
int mqds_reader_new(const struct backend *b, struct mqds_reader **ret);
void mqds_reader_free(struct mqds_reader *r); /* waits for the driver; accepts NULL */
/* *ret becomes what is read now; false: that takes longer, and it is empty. */
bool mqds_reader_get(struct mqds_reader *r, uint64_t patience_ns, struct gkfd_mqds *ret);

/* ---- backend_order.c ---- */

/* NULL: no memory. @ids NULL: all. */
struct order *order_new(struct gpu_target *t, enum gpu_verb verb, const uint32_t *ids, size_t n);
struct order *order_take_done(struct backend *b); /* NULL: nothing */

/* ---- backend_act.c ---- */

int act_attach(struct gpu_backend *base, pid_t pid, uint64_t cookie, struct gpu_target **ret);
int act_suspend(struct gpu_target *t, const uint32_t *ids, size_t n, uint64_t longest_ns,
		uint64_t cookie);
int act_resume(struct gpu_target *t, const uint32_t *ids, size_t n, uint64_t cookie);
int act_release(struct gpu_target *t, uint64_t cookie);
int act_take(struct gpu_backend *base, struct gpu_done *ret);
void act_close(struct backend *b); /* releases all targets and waits for it */
bool act_holds(struct backend *b, pid_t pid); /* something of it is off the GPU, through us */

/* ---- backend_watch.c ---- */

int watch_new(struct gpu_backend *base, pid_t pid, struct gpu_watch **ret);
void watch_free(struct gpu_watch *w);
int watch_refresh(struct gpu_watch *w);
const struct gpu_queue *watch_queues(const struct gpu_watch *w, size_t *ret_n);

/* ---- backend_look.c ---- */

int watch_look(struct gpu_watch *w, struct gpu_sample *ret, size_t max);

#endif
