/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What the scheduler was told and did, with times: the last events of a GPU, some ten thousand. */
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "kernel/kfdsim/sim.h"

#define EVENTS 32768

struct event {
	u64 ns;
	u64 a, b;
	u32 pasid, doorbell;
	enum sim_event what;
};

struct sim_log {
	u64 n; /* ever */
	struct event events[EVENTS];
};

/* Names of an event and of its two numbers. */
static const char *const names[][3] = {
	[SIM_EV_SET_RESOURCES] = { "set_resources", "vmids", "queues" },
	[SIM_EV_RUNLIST] = { "runlist", "dwords", "processes" },
	[SIM_EV_MAP_PROCESS] = { "map_process", "quantum", "debug" },
	[SIM_EV_MAP_QUEUE] = { "map_queue", "mqd", "kind" },
	[SIM_EV_UNMAP] = { "unmap", "select", "reset" },
	[SIM_EV_UNMAPPED] = { "unmapped", "took_ns", "saved" },
	[SIM_EV_QUERY] = { "query", "value", NULL },
	[SIM_EV_WRITE] = { "write", "reg", "value" },
	[SIM_EV_ADD] = { "add", "mqd", "kind" },
	[SIM_EV_REMOVE] = { "remove", NULL, NULL },
	[SIM_EV_ROTATE] = { "rotate", "first", "of" },
	[SIM_EV_START] = { "start", "packet", "ticks" },
	[SIM_EV_DONE] = { "done", "packet", NULL },
	[SIM_EV_SAVE] = { "save", "waves", "left" },
	[SIM_EV_RESTORE] = { "restore", "waves", "left" },
	[SIM_EV_STUCK] = { "stuck", "slot", NULL },
	[SIM_EV_RESET] = { "reset", "slot", "queue" },
	[SIM_EV_BAD] = { "bad", "word", "where" },
};

struct sim_log *sim_log_new(void)
{
	return kvzalloc(sizeof(struct sim_log), GFP_KERNEL);
}

void sim_log_free(struct sim_log *log)
{
	kvfree(log);
}

void sim_log(struct sim_gpu *gpu, enum sim_event what, u32 pasid, u32 doorbell, u64 a, u64 b)
{
	lockdep_assert_held(&gpu->lock);
	gpu->log->events[gpu->log->n++ % EVENTS] = (struct event){
		.ns = ktime_get_ns(),
		.what = what,
		.pasid = pasid,
		.doorbell = doorbell,
		.a = a,
		.b = b,
	};
}

static void show_event(struct seq_file *s, const struct event *e)
{
	const char *const *name = names[e->what];

	seq_printf(s, "%llu.%06llu %s", e->ns / NSEC_PER_SEC, e->ns % NSEC_PER_SEC / 1000, name[0]);
	if (e->pasid)
		seq_printf(s, " pasid %#x", e->pasid);
	if (e->doorbell)
		seq_printf(s, " doorbell %#x", e->doorbell);
	if (name[1])
		seq_printf(s, " %s %#llx", name[1], e->a);
	if (name[2])
		seq_printf(s, " %s %#llx", name[2], e->b);
	seq_putc(s, '\n');
}

static int show(struct seq_file *s, void *unused)
{
	struct sim_gpu *gpu = s->private;
	struct sim_log *log = gpu->log;
	u64 i;

	mutex_lock(&gpu->lock);
	for (i = log->n > EVENTS ? log->n - EVENTS : 0; i < log->n; i++)
		show_event(s, &log->events[i % EVENTS]);
	mutex_unlock(&gpu->lock);
	return 0;
}

static int open_log(struct inode *inode, struct file *file)
{
	return single_open_size(file, show, inode->i_private, EVENTS * 96);
}

/* Writing anything forgets everything. */
static ssize_t clear_log(struct file *file, const char __user *data, size_t size, loff_t *at)
{
	struct sim_gpu *gpu = ((struct seq_file *)file->private_data)->private;

	mutex_lock(&gpu->lock);
	gpu->log->n = 0;
	mutex_unlock(&gpu->lock);
	return size;
}

const struct file_operations sim_log_fops = {
	.owner = THIS_MODULE,
	.open = open_log,
	.read = seq_read,
	.write = clear_log,
	.llseek = seq_lseek,
	.release = single_release,
};
