/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * /dev/kfd_gpreempt, and the same calls on /dev/kfd for a process's own queues: who may, copying in
 * and out. The ABI and its rules: abi/kfd_gpreempt.h.
 */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/stringify.h>
#include <linux/uaccess.h>
#include <linux/xarray.h>

#include "kfd_device_queue_manager.h"
#include "kfd_gpreempt_calls.h"
#include "kfd_priv.h"

static bool gpreempt_victims_only;
module_param(gpreempt_victims_only, bool, 0644);
MODULE_PARM_DESC(gpreempt_victims_only,
		 "Unmap single queues and processes (default: no, was never seen on hardware)");

/* Whose amdgpu it is. The distribution's has none: without one, DKMS would not install ours. */
MODULE_VERSION("gpreempt-" __stringify(KFD_GPREEMPT_VERSION));

bool gp_victims_only(void)
{
	return READ_ONCE(gpreempt_victims_only);
}

/* ---- owners ---- */

static DEFINE_XARRAY(owners);
static atomic64_t last_owner = ATOMIC64_INIT(1); /* 1 is the scheduler's */

/* Files of /dev/kfd are numbered by their addresses, far above these. */
bool gp_owner_is_alive(u64 owner)
{
	return xa_load(&owners, owner);
}

void gp_owner_holds(struct gp_file *f)
{
	struct pid *before;

	if (!f)
		return;
	xa_lock(&owners);
	before = f->by;
	f->by = get_pid(task_tgid(current));
	xa_unlock(&owners);
	put_pid(before);
}

pid_t gp_owner_pid(u64 owner)
{
	struct gp_file *f;
	pid_t pid = 0;

	xa_lock(&owners);
	f = xa_load(&owners, owner);
	rcu_read_lock();
	if (f && pid_task(f->by, PIDTYPE_TGID)) /* its number may be another's by now */
		pid = pid_vnr(f->by);
	rcu_read_unlock();
	xa_unlock(&owners);
	return pid;
}

/* ---- calls ---- */

union any_args {
	struct kfd_gpreempt_version version;
	struct kfd_gpreempt_bind bind;
	struct kfd_gpreempt_batch batch;
	struct kfd_gpreempt_one one;
	struct kfd_gpreempt_collect collect;
	struct kfd_gpreempt_stop stop;
	struct kfd_gpreempt_hqd hqd;
	struct kfd_gpreempt_stats stats;
	struct kfd_gpreempt_class class;
	struct kfd_gpreempt_policy policy;
	struct kfd_gpreempt_hint hint;
	struct kfd_gpreempt_monitor monitor;
	struct kfd_gpreempt_reservation reservation;
	struct kfd_gpreempt_subscribe subscribe;
};

#define CALL(name, function) \
	[_IOC_NR(name) - KFD_GPREEMPT_COMMAND_START] = { _IOC_SIZE(name), function }

static const struct {
	size_t bytes;
	int (*call)(const struct gp_caller *caller, void *data);
} calls[] = {
	CALL(KFD_GPREEMPT_GET_VERSION, gp_call_version),
	CALL(KFD_GPREEMPT_BATCH_UNMAP_QUEUES, gp_call_unmap),
	CALL(KFD_GPREEMPT_FAST_REMAP, gp_call_map),
	CALL(KFD_GPREEMPT_SWITCH, gp_call_switch),
	CALL(KFD_GPREEMPT_SELECTIVE_UNMAP, gp_call_selective),
	CALL(KFD_GPREEMPT_PREEMPT_QUEUE, gp_call_preempt),
	CALL(KFD_GPREEMPT_RESUME_QUEUE, gp_call_resume),
	CALL(KFD_GPREEMPT_SET_QUEUE_STATE, gp_call_set_state),
	CALL(KFD_GPREEMPT_COLLECT, gp_call_collect),
	CALL(KFD_GPREEMPT_STOP_SCHED, gp_call_stop),
	CALL(KFD_GPREEMPT_START_SCHED, gp_call_start),
	CALL(KFD_GPREEMPT_GET_HQD_STATUS, gp_call_hqd),
	CALL(KFD_GPREEMPT_GET_STATS, gp_call_stats),
	CALL(KFD_GPREEMPT_BIND, gp_call_bind),
	CALL(KFD_GPREEMPT_SET_CLASS, gp_call_class),
	CALL(KFD_GPREEMPT_SET_QUEUE_POLICY, gp_call_policy),
	CALL(KFD_GPREEMPT_HINT, gp_call_hint),
	CALL(KFD_GPREEMPT_SET_MONITOR, gp_call_monitor),
	CALL(KFD_GPREEMPT_SET_HQD_RESERVATION, gp_call_reserve),
	CALL(KFD_GPREEMPT_SUBSCRIBE, gp_call_subscribe),
};

/* Shorter arguments are completed with zeros, longer ones must end in them. */
static long do_call(const struct gp_caller *caller, unsigned int cmd, void __user *user)
{
	unsigned int nr = _IOC_NR(cmd) - KFD_GPREEMPT_COMMAND_START;
	size_t bytes = _IOC_SIZE(cmd);
	union any_args args = { 0 };
	int r;

	if (_IOC_NR(cmd) < KFD_GPREEMPT_COMMAND_START || nr >= ARRAY_SIZE(calls) || !calls[nr].call)
		return -ENOTTY;
	r = copy_struct_from_user(&args, calls[nr].bytes, user, bytes);
	if (r)
		return r;
	r = calls[nr].call(caller, &args);
	/* Even then: a batch that takes too long has a ticket. */
	if (copy_to_user(user, &args, min(bytes, calls[nr].bytes)))
		return -EFAULT;
	return r;
}

bool kfd_gpreempt_is_command(unsigned int cmd)
{
	return gp_workqueue && _IOC_NR(cmd) >= KFD_GPREEMPT_COMMAND_START &&
	       _IOC_NR(cmd) < KFD_GPREEMPT_OWN_COMMAND_END;
}

long kfd_gpreempt_own_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct gp_caller caller = {
		.own = file->private_data,
		.owner = gp_own_owner(file),
	};

	/* A descriptor outlives an exec; the process it was of does not. */
	if (caller.own->lead_thread != current->group_leader || caller.own->mm != current->mm)
		return -EBADF;
	return do_call(&caller, cmd, (void __user *)arg);
}

static long gp_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct gp_caller caller = { .file = file->private_data };

	caller.owner = caller.file->owner;
	return do_call(&caller, cmd, (void __user *)arg);
}

/* ---- files ---- */

/* Of queues that do not exist yet: a process without any is in no list of a GPU's. */
static void end_own_hold(struct kfd_process_device *pdd, u64 owner)
{
	dqm_lock(pdd->dev->dqm);
	if (pdd->gpreempt.itself.owner == owner)
		pdd->gpreempt.itself = (struct kfd_gpreempt_hold){ 0 };
	dqm_unlock(pdd->dev->dqm);
}

/* Nobody else can end them: the process may be gone, but its number stands for the file. */
void kfd_gpreempt_own_release(struct file *file)
{
	struct kfd_process *p = file->private_data;
	bool any = false;
	unsigned int i;

	for (i = 0; p && i < p->n_pdds; i++) {
		if (!READ_ONCE(p->pdds[i]->gpreempt.held_itself))
			continue;
		end_own_hold(p->pdds[i], gp_own_owner(file));
		any = true;
	}
	if (any)
		gp_end_holds_everywhere(gp_own_owner(file));
}

static int gp_open(struct inode *inode, struct file *file)
{
	struct gp_file *f = kzalloc(sizeof(*f), GFP_KERNEL);
	int r;

	if (!f)
		return -ENOMEM;
	f->owner = atomic64_inc_return(&last_owner);
	spin_lock_init(&f->lock);
	INIT_LIST_HEAD(&f->tickets);
	INIT_LIST_HEAD(&f->bound);
	init_waitqueue_head(&f->wait);
	r = xa_err(xa_store(&owners, f->owner, f, GFP_KERNEL));
	if (r) {
		kfree(f);
		return r;
	}
	file->private_data = f;
	return 0;
}

static bool all_ready(struct gp_file *f)
{
	struct gp_batch *b;
	bool ready = true;

	spin_lock(&f->lock);
	list_for_each_entry(b, &f->tickets, link)
		ready &= b->ready;
	spin_unlock(&f->lock);
	return ready;
}

static int gp_release(struct inode *inode, struct file *file)
{
	struct gp_file *f = file->private_data;
	struct gp_batch *b, *next;

	wait_event(f->wait, all_ready(f));
	gp_events_free(f->events);
	xa_erase(&owners, f->owner);
	gp_end_holds_everywhere(f->owner);
	list_for_each_entry_safe(b, next, &f->tickets, link)
		gp_batch_free(b);
	gp_forget_bound(f);
	put_pid(f->by);
	kfree(f);
	return 0;
}

static __poll_t gp_poll(struct file *file, poll_table *table)
{
	struct gp_file *f = file->private_data;
	struct gp_batch *b;
	__poll_t mask = 0;

	poll_wait(file, &f->wait, table);
	if (f->events && gp_events_are_there(f->events))
		mask = EPOLLIN | EPOLLRDNORM;
	spin_lock(&f->lock);
	list_for_each_entry(b, &f->tickets, link) {
		if (b->ready && !b->awaited)
			mask = EPOLLIN | EPOLLRDNORM;
	}
	spin_unlock(&f->lock);
	return mask;
}

static ssize_t gp_read(struct file *file, char __user *to, size_t bytes, loff_t *at)
{
	struct gp_file *f = file->private_data;

	if (!f->events)
		return -EINVAL;
	return gp_events_read(f->events, to, bytes, !(file->f_flags & O_NONBLOCK));
}

static const struct file_operations gp_fops = {
	.owner = THIS_MODULE,
	.open = gp_open,
	.release = gp_release,
	.unlocked_ioctl = gp_ioctl,
	.read = gp_read,
	.compat_ioctl = compat_ptr_ioctl,
	.poll = gp_poll,
	.llseek = noop_llseek,
};

static struct miscdevice gp_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = KFD_GPREEMPT_DEVICE,
	.fops = &gp_fops,
	.mode = 0660,
};

int kfd_gpreempt_init(void)
{
	int r = gp_nodes_init();

	if (r)
		return r;
	r = misc_register(&gp_device);
	if (r)
		gp_nodes_exit();
	else
		gp_debugfs_init();
	return r;
}

void kfd_gpreempt_exit(void)
{
	if (!gp_workqueue)
		return;
	gp_debugfs_exit();
	misc_deregister(&gp_device);
	gp_nodes_exit();
}
