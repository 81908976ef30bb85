/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Who may name which process. */
#include <linux/capability.h>
#include <linux/file.h>
#include <linux/pid.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "kfd_gpreempt_calls.h"
#include "kfd_priv.h"

#define MAX_BOUND 1024

/* Somebody whose descriptor of /dev/kfd the file's user could show. */
struct gp_bound {
	struct list_head link;
	struct pid *pid;
	const struct kfd_process *process; /* compared only */
	u64 exec_id;
};

static u64 start_ticks_of(const struct task_struct *task)
{
	return div_u64(task->start_boottime, NSEC_PER_SEC / USER_HZ);
}

static bool is_bound(struct gp_file *f, const struct pid *pid, const struct kfd_process *p)
{
	struct gp_bound *b;
	bool found = false;

	spin_lock(&f->lock);
	list_for_each_entry(b, &f->bound, link) {
		found = b->pid == pid && b->process == p &&
			b->exec_id == READ_ONCE(p->lead_thread->self_exec_id);
		if (found)
			break;
	}
	spin_unlock(&f->lock);
	return found;
}

static bool may_name(const struct gp_caller *caller, struct kfd_process *p)
{
	if (p->lead_thread == current->group_leader)
		return true;
	if (!caller->file)
		return false;
	return capable(CAP_SYS_ADMIN) ||
	       is_bound(caller->file, task_tgid(p->lead_thread), p);
}

/* Of a process a thread that has not ended: the first may do so long before the others. */
static struct pid *get_living_thread(u32 nr)
{
	struct task_struct *task, *t;
	struct pid *found = NULL;

	rcu_read_lock();
	task = pid_task(find_vpid(nr), PIDTYPE_PID);
	if (task) {
		for_each_thread(task, t) {
			if (found || !READ_ONCE(t->mm))
				continue;
			found = get_task_pid(t, PIDTYPE_PID);
		}
	}
	rcu_read_unlock();
	return found;
}

/* A reference to the process, or why not. */
struct kfd_process *gp_find_process(const struct gp_caller *caller, u32 nr, u64 start_ticks)
{
	bool own = !nr && caller->own;
	struct pid *pid = own ? get_task_pid(current, PIDTYPE_PID) : get_living_thread(nr);
	struct kfd_process *p = pid ? kfd_lookup_process_by_pid(pid) : NULL;

	put_pid(pid);
	if (!p)
		return ERR_PTR(-ESRCH);
	if (start_ticks && start_ticks != start_ticks_of(p->lead_thread)) {
		kfd_unref_process(p);
		return ERR_PTR(-ESRCH);
	}
	if (!may_name(caller, p)) {
		kfd_unref_process(p);
		return ERR_PTR(-EPERM);
	}
	return p;
}

static void forget_dead(struct gp_file *f)
{
	struct gp_bound *b, *next;

	list_for_each_entry_safe(b, next, &f->bound, link) {
		if (pid_task(b->pid, PIDTYPE_TGID))
			continue;
		list_del(&b->link);
		put_pid(b->pid);
		kfree(b);
		f->n_bound--;
	}
}

static int add_bound(struct gp_file *f, struct gp_bound *b)
{
	int r = 0;

	rcu_read_lock();
	spin_lock(&f->lock);
	if (f->n_bound >= MAX_BOUND)
		forget_dead(f);
	if (f->n_bound >= MAX_BOUND) {
		r = -ENOSPC;
	} else {
		list_add(&b->link, &f->bound);
		f->n_bound++;
	}
	spin_unlock(&f->lock);
	rcu_read_unlock();
	return r;
}

static int bind_process(struct gp_file *f, struct kfd_process *p, u32 *ret_pid)
{
	struct gp_bound *b;
	int r;

	if (!p->mm)
		return -ESRCH;
	/* Descriptors are also inherited, and sent. */
	if (!uid_eq(task_uid(p->lead_thread), current_uid()) && !capable(CAP_SYS_PTRACE))
		return -EPERM;
	b = kzalloc(sizeof(*b), GFP_KERNEL);
	if (!b)
		return -ENOMEM;
	b->pid = get_task_pid(p->lead_thread, PIDTYPE_TGID);
	b->process = p;
	b->exec_id = READ_ONCE(p->lead_thread->self_exec_id);
	*ret_pid = pid_vnr(b->pid);
	if (!b->pid)
		r = -ESRCH; /* it has ended just now */
	else if (is_bound(f, b->pid, p))
		r = -EEXIST;
	else
		r = add_bound(f, b);
	if (r) {
		put_pid(b->pid);
		kfree(b);
	}
	return r == -EEXIST ? 0 : r;
}

int gp_call_bind(const struct gp_caller *caller, void *data)
{
	struct kfd_gpreempt_bind *args = data;
	struct file *file;
	int r;

	file = fget(args->fd);
	if (!file)
		return -EBADF;
	r = kfd_is_kfd_file(file) ? bind_process(caller->file, file->private_data, &args->pid) :
				    -EINVAL;
	fput(file);
	return r;
}

void gp_forget_bound(struct gp_file *f)
{
	struct gp_bound *b, *next;

	list_for_each_entry_safe(b, next, &f->bound, link) {
		put_pid(b->pid);
		kfree(b);
	}
}
