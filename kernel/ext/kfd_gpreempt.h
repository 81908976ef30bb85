/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What the extension adds to amdkfd's own structs, and what amdkfd calls. kfd_priv.h includes this
 * before it declares them; kernel/ext/hooks lists every place where amdkfd is touched.
 *
 * Locking: everything about a queue, or a process on a GPU, is under that GPU's DQM lock, as
 * is_active and is_evicted are. Order: nodes_lock, then the DQM lock; p->mutex is never taken. User
 * memory is not touched under a lock.
 */
#ifndef GPREEMPT_KERNEL_EXT_KFD_GPREEMPT_H
#define GPREEMPT_KERNEL_EXT_KFD_GPREEMPT_H

#include <linux/types.h>

struct device_queue_manager;
struct file;
struct kfd_node;
struct kfd_process;
struct kfd_process_device;
struct qcm_process_device;
struct queue;

/* Why a queue is off the run list: queue_properties.gpreempt. It is on when no bit is set. */
enum kfd_gpreempt_reason {
	KFD_GPREEMPT_BY_HOLDER = 1, /* a file of /dev/kfd_gpreempt */
	KFD_GPREEMPT_BY_ITSELF = 2, /* its process, through /dev/kfd */
	KFD_GPREEMPT_BY_STOP = 4, /* its GPU is stopped */
	KFD_GPREEMPT_BY_SCHEDULER = 8, /* ours, in the driver */
};

struct kfd_gpreempt_node; /* member "gpreempt" of struct device_queue_manager; may be NULL */

struct kfd_gpreempt_hold {
	u64 owner; /* who can end it; 0: there is no hold */
	u64 until_ns; /* ktime_get_ns() */
};

/* Member "gpreempt" of struct queue. */
struct kfd_gpreempt_queue_state {
	struct kfd_gpreempt_hold holder, itself, scheduler;
	u8 class; /* its own, KFD_GPREEMPT_NO_CLASS: its process's */
	bool class_by_admin;
	struct pid *by; /* who took it off last */
	u32 preemptions;
	u64 since_ns; /* off since; 0: on */
	u64 held_ns; /* before that */
	u64 last_latency_ns, max_latency_ns;
	u64 mark; /* of the change that it was part of last */
	bool lost; /* the driver reset it: it never runs again */
	bool retry; /* it should be on, and could not be put there */
};

/* Member "gpreempt" of struct kfd_process_device: queues created from now on are born held. */
struct kfd_gpreempt_process_state {
	struct kfd_gpreempt_hold holder, itself, scheduler;
	bool held_itself; /* ever */
};

/* Member "gpreempt" of struct kfd_process; kfd_gpreempt_class.c has its lock. */
struct kfd_gpreempt_class_state {
	u8 class; /* KFD_GPREEMPT_ONLINE, ... */
	u8 priority;
	bool critical;
	bool by_admin; /* only another one changes it */
	bool lazy, auto_deactivate, fixed;
	u32 weight;
	u64 target_ns, wait_bound_ns;
};

/* kfd_module.c: before the first node; the end may come before or after the last. */
int kfd_gpreempt_init(void);
void kfd_gpreempt_exit(void);

/* kfd_device.c: once a node can have queues, and before it cannot any more */
void kfd_gpreempt_add_node(struct kfd_node *node);
void kfd_gpreempt_remove_node(struct kfd_node *node);

/* kfd_chardev.c */
bool kfd_gpreempt_is_command(unsigned int cmd);
long kfd_gpreempt_own_ioctl(struct file *file, unsigned int cmd, unsigned long arg);
void kfd_gpreempt_own_release(struct file *file);
bool kfd_is_kfd_file(const struct file *file); /* made there */

/* kfd_device_queue_manager.c, under the DQM lock: @q is about to get its descriptor */
void kfd_gpreempt_new_queue(struct qcm_process_device *qpd, struct queue *q);
/* kfd_queue.c: nobody knows @q any more */
void kfd_gpreempt_free_queue(struct queue *q);

#endif
