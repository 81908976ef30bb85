/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The extension as its own files see it:
 *
 *   kfd_gpreempt.c        the device and its files
 *   kfd_gpreempt_calls.*  the calls; _unmap.c those that take queues off and put them on
 *   kfd_gpreempt_rights.c who may name whom
 *   kfd_gpreempt_batch.c  a batch: which processes, which GPUs, all of them at the same time
 *   kfd_gpreempt_node.c   what is kept for each GPU: holds that end by themselves, the brake
 *   kfd_gpreempt_class.c  who is online, who is offline
 *   kfd_gpreempt_monitor.c  the scheduler: a thread for each GPU, with core/engine in it
 *   kfd_gpreempt_settings.c  the scheduler, as it is set
 *   kfd_gpreempt_see.c    what waits and runs in a queue, from its process's memory
 *   kfd_gpreempt_events.c telling files what happened
 *   kfd_gpreempt_debugfs.c, kfd_gpreempt_trace.h
 *   kfd_gpreempt_dqm.c    queues off the run list and on; part of kfd_device_queue_manager.c,
 *                         whose functions it needs
 */
#ifndef GPREEMPT_KERNEL_EXT_INTERNAL_H
#define GPREEMPT_KERNEL_EXT_INTERNAL_H

#include <linux/completion.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rwsem.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "abi/kfd_gpreempt.h"
#include "kfd_gpreempt.h"

struct gp_file;
struct seq_file;

/* ---- one change of one GPU's run list ---- */

struct gp_change {
	u64 mark; /* no other change has it */
	u64 began_ns; /* of the call it is for */
	u32 grace; /* or USE_DEFAULT_GRACE_PERIOD */
	bool victims_wanted; /* leave others alone where that is possible */
	struct pid *by; /* borrowed; NULL: nobody takes anything off */

	bool off, on; /* some queue left the run list; some came onto it */
	bool victims; /* others were left alone */
	bool cycled;
	bool queue_reset; /* some process lost a queue that would not yield */
	u64 cycle_ns;
};

void gp_change_begin(struct gp_change *c, u64 began_ns, u32 grace, struct pid *by);

/* ---- kfd_gpreempt_dqm.c; under the DQM lock ---- */

/*
 * Gives @q the bits of enum kfd_gpreempt_reason. On MES that is all; else gp_change_commit() makes
 * it true, once for all queues of a change. A queue that cannot be taken off stays on; one that
 * cannot be put on is put on later, by the node itself.
 */
int gp_set_reasons(struct device_queue_manager *dqm, struct qcm_process_device *qpd,
		   struct queue *q, u8 reasons, struct gp_change *c);
/* After an error queues to be off stay off for the driver: whether they are nobody knows. */
int gp_change_commit(struct device_queue_manager *dqm, struct gp_change *c);

void gp_fill_hqd(struct device_queue_manager *dqm, struct kfd_gpreempt_hqd *ret);
/* Appends the queues of @p to *@n others, as far as @max goes. */
void gp_fill_queues(struct device_queue_manager *dqm, struct kfd_process *p, u64 owner,
		    struct kfd_gpreempt_queue *ret, u32 max, u32 *n);

/* ---- kfd_gpreempt_node.c ---- */

struct kfd_gpreempt_node {
	struct list_head link; /* in gp_nodes */
	struct kfd_node *node;
	struct delayed_work expire;
	u64 expire_ns; /* when that runs; U64_MAX: not */
	bool retry; /* something could not be put on: the driver is asked again */
	struct list_head stops; /* struct gp_stop, of different owners */
	struct mutex monitor_lock; /* starting and ending it; before the DQM lock */
	struct gp_monitor *monitor; /* changes under both; NULL: off */
};

struct gp_stop {
	struct list_head link;
	u64 owner, until_ns;
	u32 count;
};

extern struct list_head gp_nodes; /* under gp_nodes_lock */
extern struct rw_semaphore gp_nodes_lock;
extern struct workqueue_struct *gp_workqueue;

struct device_queue_manager *gp_dqm(const struct kfd_gpreempt_node *n);
struct kfd_gpreempt_node *gp_find_node(u32 gpu_id); /* NULL: none */
bool gp_is_stopped(const struct kfd_gpreempt_node *n); /* under the DQM lock, as the next three */
void gp_expire_at(struct kfd_gpreempt_node *n, u64 until_ns); /* the earliest counts */
/* Everything of @owner, or, with 0, everything whose time is over; the caller commits. */
void gp_end_holds(struct kfd_gpreempt_node *n, u64 owner, struct gp_change *c);

void gp_end_scheduler_holds(struct kfd_gpreempt_node *n, struct gp_change *c);

void gp_end_holds_everywhere(u64 owner); /* all GPUs at the same time; waits */
int gp_stop(u32 gpu_id, u64 owner, struct pid *by, u64 until_ns, u32 *ret_stops);
int gp_start(u32 gpu_id, u64 owner, u32 *ret_stops);
int gp_get_hqd(struct kfd_gpreempt_hqd *hqd);
void gp_get_hqd_of(struct kfd_gpreempt_node *n, struct kfd_gpreempt_hqd *ret);

int gp_nodes_init(void);
void gp_nodes_exit(void);

/* ---- kfd_gpreempt_class.c ---- */

struct kfd_gpreempt_class_state gp_class_of(struct kfd_process *p);
/* The caller's right to name @p at all is known. */
int gp_set_class(struct kfd_process *p, const struct kfd_gpreempt_class *args);
int gp_set_policy(struct kfd_process *p, const struct kfd_gpreempt_policy *args);

/* ---- kfd_gpreempt_see.c ---- */

enum gp_work { GP_IDLE, GP_BUSY, GP_UNKNOWN };

/* A queue as it was copied under the DQM lock, and as its process's memory shows it. */
struct gp_seen {
	u32 job; /* index */
	u32 queue_id;
	bool aql, sdma;
	u64 ring, ring_bytes;
	u64 read_address, write_address;
	u64 read, write;
};

enum gp_work gp_see_queue(struct gp_seen *s);

/* ---- kfd_gpreempt_monitor.c ---- */

bool gp_monitor_is_on(void); /* of some GPU; waits for none */
/* All: -ENODEV. */
int gp_monitor_set(const struct kfd_gpreempt_monitor *args);
int gp_monitor_reserve(const struct kfd_gpreempt_reservation *args);
int gp_monitor_hint(struct kfd_process *p, const struct kfd_gpreempt_hint *args);
void gp_monitor_kick(struct kfd_gpreempt_node *n); /* under the DQM lock */
u64 gp_monitor_keeps_waiting(struct kfd_gpreempt_node *n, struct qcm_process_device *qpd);
void gp_monitor_stop(struct kfd_gpreempt_node *n); /* and lets everybody go */
void gp_monitor_show(struct seq_file *m, struct kfd_gpreempt_node *n);

/* ---- kfd_gpreempt_events.c ---- */

struct gp_events; /* of one file */

struct gp_events *gp_events_new(wait_queue_head_t *wait); /* NULL: no memory */
void gp_events_free(struct gp_events *e); /* accepts NULL */
bool gp_events_are_there(struct gp_events *e);
ssize_t gp_events_read(struct gp_events *e, char __user *to, size_t bytes, bool block);
void gp_tell(const struct kfd_gpreempt_event *event); /* under any lock */

/* ---- kfd_gpreempt_debugfs.c ---- */

void gp_debugfs_init(void);
void gp_debugfs_exit(void);

/* ---- owners: kfd_gpreempt.c ---- */

bool gp_victims_only(void); /* is allowed */

/* Numbers are never used twice; a hold whose owner is not alive does not count any more. */
bool gp_owner_is_alive(u64 owner);
/* The caller takes something off through @f; accepts NULL. His pid, whose end ends that; or 0. */
void gp_owner_holds(struct gp_file *f);
pid_t gp_owner_pid(u64 owner);

/* A file of /dev/kfd belongs to one process, and nothing else is told by its number. */
static inline u64 gp_own_owner(const struct file *file)
{
	return (u64)(uintptr_t)file;
}

/* ---- kfd_gpreempt_batch.c ---- */

struct gp_item {
	struct kfd_process *process; /* a reference; NULL: the result is there */
	u32 queue_id, gpu_id;
	bool map;
	bool matched;
	int result;
	u32 queues;
};

struct gp_batch {
	struct list_head link; /* in the file's tickets */
	u64 ticket;
	enum kfd_gpreempt_reason reason;
	u64 owner;
	struct pid *by; /* a reference */
	u64 began_ns, until_ns, done_ns;
	u32 grace;
	bool victims_wanted;

	spinlock_t lock; /* results */
	u32 cycles, victims;
	u64 cycle_ns;

	struct completion done;
	void (*tell)(struct gp_batch *b); /* instead, once it is done: last use of it here */
	struct gp_file *file; /* for that */
	bool ready;
	bool awaited; /* by its caller: nobody else may collect it */
	unsigned int n_parts;
	atomic_t parts_left;
	struct gp_part *parts; /* one for each GPU */

	u32 n_unmap, n;
	struct gp_item items[] __counted_by(n);
};

struct gp_batch *gp_batch_new(u32 n); /* NULL: no memory */
void gp_batch_free(struct gp_batch *b); /* one that is done, or was never begun; accepts NULL */
/* Does everything, or, with @wait false, begins it; then there must be somebody to tell. */
int gp_batch_run(struct gp_batch *b, bool wait);
u32 gp_batch_count_done(const struct gp_batch *b);

#endif
