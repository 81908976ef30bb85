/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * How long queues with work went without any of it being done, whatever kept them from it, and for
 * how much of the time slots had a queue: the GPU's own account, for who doubts a scheduler's.
 *
 * A wait is over when a tick of work was done, not when the queue comes back onto hardware. One
 * that had nothing to do when it left counts from then.
 */
#include <linux/bitops.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "kernel/kfdsim/sim.h"

struct sim_wait {
	pid_t pid;
	u64 since_ns;
	struct longest {
		u64 ns, ended_ns;
	} now, before; /* in this period, and in the one before */
};

/* Under its doorbell; of the process that has this now. */
void sim_wait_begin(struct sim_gpu *gpu, struct sim_queue *q)
{
	pid_t pid = sim_count_proc(gpu, q->pasid)->pid;
	struct sim_wait *w = xa_load(&gpu->waits, q->doorbell);

	if (!w) {
		w = kzalloc(sizeof(*w), GFP_KERNEL);
		if (xa_err(xa_store(&gpu->waits, q->doorbell, w, GFP_KERNEL))) {
			kfree(w);
			w = NULL;
		}
	}
	if (w && w->pid != pid)
		*w = (struct sim_wait){ .pid = pid, .since_ns = ktime_get_ns() };
	q->wait = w;
}

void sim_wait_over(struct sim_queue *q, u64 now)
{
	struct sim_wait *w = q->wait;

	if (!w || now <= w->since_ns)
		return;
	if (now - w->since_ns > w->now.ns)
		w->now = (struct longest){ now - w->since_ns, now };
	w->since_ns = now;
}

/* Time since the last call was as it is now: nobody came or left meanwhile. */
void sim_count_slots(struct sim_gpu *gpu, u64 now)
{
	u64 ns = now - min(now, gpu->slots_counted_ns);
	unsigned int i;

	if (!ns)
		return;
	gpu->slots_counted_ns = now;
	gpu->count.slot_ns += hweight32(gpu->slots) * ns;
	for (i = 0; i < gpu->n_queues; i++) {
		const struct sim_queue *q = &gpu->queues[i];

		if (q->slot == SIM_NO_SLOT)
			continue;
		gpu->count.slot_taken_ns += ns;
		if (q->n_flight || q->read != q->write)
			gpu->count.slot_used_ns += ns;
	}
}

static int show(struct seq_file *s, void *unused)
{
	struct sim_gpu *gpu = s->private;
	unsigned long doorbell;
	struct sim_wait *w;
	u64 now;

	mutex_lock(&gpu->lock);
	now = ktime_get_ns();
	xa_for_each(&gpu->waits, doorbell, w)
		seq_printf(s, "pid %d doorbell %#lx waits_ns %llu longest_ns %llu ended_ns %llu\n",
			   w->pid, doorbell, now - min(now, w->since_ns), w->before.ns,
			   w->before.ended_ns);
	mutex_unlock(&gpu->lock);
	return 0;
}

static int open_waits(struct inode *inode, struct file *file)
{
	return single_open(file, show, inode->i_private);
}

/* Writing anything ends a period: what is read then is the longest of that one. */
static ssize_t end_period(struct file *file, const char __user *data, size_t size, loff_t *at)
{
	struct sim_gpu *gpu = ((struct seq_file *)file->private_data)->private;
	unsigned long doorbell;
	struct sim_wait *w;

	mutex_lock(&gpu->lock);
	xa_for_each(&gpu->waits, doorbell, w) {
		w->before = w->now;
		w->now = (struct longest){ 0 };
	}
	mutex_unlock(&gpu->lock);
	return size;
}

const struct file_operations sim_waits_fops = {
	.owner = THIS_MODULE,
	.open = open_waits,
	.read = seq_read,
	.write = end_period,
	.llseek = seq_lseek,
	.release = single_release,
};

void sim_waits_free(struct sim_gpu *gpu)
{
	unsigned long doorbell;
	struct sim_wait *w;

	xa_for_each(&gpu->waits, doorbell, w)
		kfree(w);
	xa_destroy(&gpu->waits);
}
