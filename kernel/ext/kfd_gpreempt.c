/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * /dev/kfd_gpreempt, and the same calls on /dev/kfd for a process's own queues: who may, copying in
 * and out. The ABI and its rules: abi/kfd_gpreempt.h.
 */
#include <linux/capability.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/pid.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/xarray.h>

#include "kfd_device_queue_manager.h"
#include "kfd_gpreempt_internal.h"
#include "kfd_priv.h"

#define MAX_BOUND 1024
#define MAX_STATS 8192

static bool gpreempt_victims_only;
module_param(gpreempt_victims_only, bool, 0644);
MODULE_PARM_DESC(gpreempt_victims_only,
		 "Unmap single queues and processes (default: no, was never seen on hardware)");

/* Somebody whose descriptor of /dev/kfd the file's user could show. */
struct gp_bound {
	struct list_head link;
	struct pid *pid;
	const struct kfd_process *process; /* compared only */
	u64 exec_id;
};

struct gp_file {
	u64 owner;
	spinlock_t lock;
	struct list_head tickets; /* struct gp_batch, oldest first */
	unsigned int n_tickets;
	u64 last_ticket;
	wait_queue_head_t wait;
	struct list_head bound;
	unsigned int n_bound;
};

/* Who makes a call, through which device. */
struct gp_caller {
	struct gp_file *file; /* NULL: /dev/kfd */
	struct kfd_process *own; /* then */
	u64 owner;
};

/* ---- owners ---- */

static DEFINE_XARRAY(owners);
static atomic64_t last_owner = ATOMIC64_INIT(0);

/* Files of /dev/kfd are numbered by their addresses, far above these. */
bool gp_owner_is_alive(u64 owner)
{
	return xa_load(&owners, owner);
}

/* ---- rights ---- */

static u64 start_ticks_of(const struct task_struct *task)
{
	return div_u64(task->group_leader->start_boottime, NSEC_PER_SEC / USER_HZ);
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
static struct kfd_process *find_process_for(const struct gp_caller *caller, u32 nr, u64 start_ticks)
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

static int call_bind(const struct gp_caller *caller, void *data)
{
	struct kfd_gpreempt_bind *args = data;
	struct file *file;
	int r;

	if (!caller->file)
		return -EINVAL;
	file = fget(args->fd);
	if (!file)
		return -EBADF;
	r = kfd_is_kfd_file(file) ? bind_process(caller->file, file->private_data, &args->pid) :
				    -EINVAL;
	fput(file);
	return r;
}

/* ---- batches ---- */

static int call_version(const struct gp_caller *caller, void *data)
{
	struct kfd_gpreempt_version *v = data;

	*v = (struct kfd_gpreempt_version){
		.version = KFD_GPREEMPT_VERSION,
		.abilities = KFD_GPREEMPT_CAN_BATCH,
		.max_entries = KFD_GPREEMPT_MAX_ENTRIES,
		.max_hold_ms = KFD_GPREEMPT_MAX_HOLD_MS,
	};
	if (READ_ONCE(gpreempt_victims_only))
		v->abilities |= KFD_GPREEMPT_CAN_VICTIMS_ONLY;
	if (capable(CAP_SYS_ADMIN))
		v->abilities |= KFD_GPREEMPT_IS_ADMIN;
	return 0;
}

static int check_batch(const struct gp_caller *caller, const struct kfd_gpreempt_batch *args,
		       u32 flags)
{
	u64 n = (u64)args->n_unmap + args->n_map;

	if (!n || n > KFD_GPREEMPT_MAX_ENTRIES || args->flags & ~flags ||
	    args->hold_ms > KFD_GPREEMPT_MAX_HOLD_MS)
		return -EINVAL;
	if (args->grace != KFD_GPREEMPT_DEFAULT_GRACE && (args->grace < 1 || args->grace > 255))
		return -EINVAL;
	if (args->flags & KFD_GPREEMPT_NO_CWSR)
		return -EOPNOTSUPP;
	if (args->flags & KFD_GPREEMPT_VICTIMS_ONLY && !READ_ONCE(gpreempt_victims_only))
		return -EOPNOTSUPP;
	/* Tickets are told of by poll(), which /dev/kfd has not. */
	if (!caller->file && (args->flags & KFD_GPREEMPT_ASYNC || args->timeout_ms))
		return -EOPNOTSUPP;
	return 0;
}

static struct gp_batch *make_batch(const struct gp_caller *caller,
				   const struct kfd_gpreempt_batch *args)
{
	u64 hold_ms = args->hold_ms ?: KFD_GPREEMPT_MAX_HOLD_MS;
	struct gp_batch *b = gp_batch_new(args->n_unmap + args->n_map);

	if (!b)
		return NULL;
	b->n_unmap = args->n_unmap;
	b->reason = caller->file ? KFD_GPREEMPT_BY_HOLDER : KFD_GPREEMPT_BY_ITSELF;
	b->owner = caller->owner;
	b->by = get_pid(task_tgid(current));
	b->grace = args->grace;
	b->victims_wanted = args->flags & KFD_GPREEMPT_VICTIMS_ONLY;
	b->until_ns = ktime_get_ns() + hold_ms * NSEC_PER_MSEC;
	return b;
}

static void resolve(const struct gp_caller *caller, const struct kfd_gpreempt_entry *e,
		    struct gp_item *item)
{
	struct kfd_process *p = find_process_for(caller, e->pid, e->start_ticks);

	item->queue_id = e->queue_id;
	item->gpu_id = e->gpu_id;
	if (IS_ERR(p))
		item->result = PTR_ERR(p);
	else
		item->process = p;
}

static int resolve_all(const struct gp_caller *caller, struct gp_batch *b,
		       const struct kfd_gpreempt_entry *entries)
{
	u32 i;

	for (i = 0; i < b->n; i++) {
		if (entries[i].pad)
			return -EINVAL;
		b->items[i].map = i >= b->n_unmap;
		resolve(caller, &entries[i], &b->items[i]);
	}
	return 0;
}

/* ---- tickets ---- */

static void tell_ready(struct gp_batch *b)
{
	struct gp_file *f = b->file;

	spin_lock(&f->lock);
	b->ready = true;
	wake_up_all(&f->wait);
	spin_unlock(&f->lock); /* the last use of the file: its end waits for this lock */
}

static int add_ticket(struct gp_file *f, struct gp_batch *b, bool awaited)
{
	int r = 0;

	b->file = f;
	b->awaited = awaited;
	b->tell = tell_ready;
	spin_lock(&f->lock);
	if (f->n_tickets >= KFD_GPREEMPT_MAX_TICKETS) {
		r = -ENOSPC;
	} else {
		b->ticket = ++f->last_ticket;
		list_add_tail(&b->link, &f->tickets);
		f->n_tickets++;
	}
	spin_unlock(&f->lock);
	return r;
}

static void remove_ticket(struct gp_file *f, struct gp_batch *b)
{
	lockdep_assert_held(&f->lock);
	list_del_init(&b->link);
	f->n_tickets--;
}

/* Takes it from the list when it is done. */
static struct gp_batch *take_ticket(struct gp_file *f, u64 ticket, u32 room)
{
	struct gp_batch *b, *found = ERR_PTR(ticket ? -ENOENT : -EAGAIN);

	spin_lock(&f->lock);
	list_for_each_entry(b, &f->tickets, link) {
		if (b->awaited || (ticket ? b->ticket != ticket : !b->ready))
			continue;
		found = !b->ready ? ERR_PTR(-EAGAIN) : b->n > room ? ERR_PTR(-ENOSPC) : b;
		break;
	}
	if (!IS_ERR(found))
		remove_ticket(f, found);
	spin_unlock(&f->lock);
	return found;
}

/* True: it is done, and no longer in the list. */
static bool wait_for_ticket(struct gp_file *f, struct gp_batch *b, u32 timeout_ms)
{
	bool ready;

	wait_event_killable_timeout(f->wait, READ_ONCE(b->ready), msecs_to_jiffies(timeout_ms));
	spin_lock(&f->lock);
	ready = b->ready;
	b->awaited = false;
	if (ready)
		remove_ticket(f, b);
	spin_unlock(&f->lock);
	return ready;
}

static int copy_results(const struct gp_batch *b, struct kfd_gpreempt_entry *entries)
{
	u32 i;

	for (i = 0; i < b->n; i++) {
		entries[i].result = b->items[i].result;
		entries[i].queues = b->items[i].queues;
	}
	return gp_batch_count_done(b);
}

/* Runs the batch as the caller wants it; it is freed, or has become a ticket. */
static int run_batch(const struct gp_caller *caller, struct gp_batch *b,
		     struct kfd_gpreempt_batch *args, struct kfd_gpreempt_entry *entries)
{
	bool async = args->flags & KFD_GPREEMPT_ASYNC;
	bool waits = !async && !args->timeout_ms;
	int r;

	if (!waits) {
		r = add_ticket(caller->file, b, !async);
		if (r)
			goto out;
		args->ticket = b->ticket;
	}
	r = gp_batch_run(b, waits);
	if (r) {
		if (!waits) {
			spin_lock(&caller->file->lock);
			remove_ticket(caller->file, b);
			spin_unlock(&caller->file->lock);
		}
		goto out;
	}
	if (async)
		return 0;
	if (!waits && !wait_for_ticket(caller->file, b, args->timeout_ms))
		return -ETIME;
	args->ticket = 0;
	args->cycles = b->cycles;
	args->victims = b->victims;
	args->fence_ns = b->cycle_ns;
	args->took_ns = b->done_ns - b->began_ns;
	r = copy_results(b, entries);
out:
	gp_batch_free(b);
	return r;
}

static int do_batch(const struct gp_caller *caller, struct kfd_gpreempt_batch *args,
		    struct kfd_gpreempt_entry *entries)
{
	struct gp_batch *b = make_batch(caller, args);
	int r;

	if (!b)
		return -ENOMEM;
	r = resolve_all(caller, b, entries);
	if (r) {
		gp_batch_free(b);
		return r;
	}
	return run_batch(caller, b, args, entries);
}

static int user_batch(const struct gp_caller *caller, struct kfd_gpreempt_batch *args)
{
	void __user *user = u64_to_user_ptr(args->entries);
	size_t bytes = array_size(args->n_unmap + args->n_map, sizeof(struct kfd_gpreempt_entry));
	struct kfd_gpreempt_entry *entries = vmemdup_user(user, bytes);
	int r;

	if (IS_ERR(entries))
		return PTR_ERR(entries);
	r = do_batch(caller, args, entries);
	if (r >= 0 && !args->ticket && copy_to_user(user, entries, bytes))
		r = -EFAULT;
	kvfree(entries);
	return r;
}

#define BATCH_FLAGS (KFD_GPREEMPT_ASYNC | KFD_GPREEMPT_VICTIMS_ONLY)
#define SELECTIVE_FLAGS \
	(BATCH_FLAGS | KFD_GPREEMPT_KEEP_MQD | KFD_GPREEMPT_KEEP_STATE | KFD_GPREEMPT_NO_CWSR)

static int call_batch(const struct gp_caller *caller, struct kfd_gpreempt_batch *args, u32 flags,
		      bool unmap, bool map)
{
	int r = check_batch(caller, args, flags);

	if (r)
		return r;
	if (!!args->n_unmap != unmap || !!args->n_map != map)
		return -EINVAL;
	args->ticket = 0;
	return user_batch(caller, args);
}

static int call_unmap(const struct gp_caller *caller, void *data)
{
	return call_batch(caller, data, BATCH_FLAGS, true, false);
}

static int call_map(const struct gp_caller *caller, void *data)
{
	return call_batch(caller, data, BATCH_FLAGS, false, true);
}

static int call_switch(const struct gp_caller *caller, void *data)
{
	return call_batch(caller, data, BATCH_FLAGS, true, true);
}

static int call_selective(const struct gp_caller *caller, void *data)
{
	return call_batch(caller, data, SELECTIVE_FLAGS, true, false);
}

static int do_one(const struct gp_caller *caller, struct kfd_gpreempt_one *one, bool map)
{
	struct kfd_gpreempt_batch args = {
		.n_unmap = !map,
		.n_map = map,
		.flags = one->flags,
		.grace = one->grace,
		.hold_ms = one->hold_ms,
		.timeout_ms = one->timeout_ms,
	};
	struct kfd_gpreempt_entry entry = {
		.pid = one->pid,
		.queue_id = one->queue_id,
		.gpu_id = one->gpu_id,
		.start_ticks = one->start_ticks,
	};
	int r = check_batch(caller, &args, BATCH_FLAGS);

	if (r)
		return r;
	r = do_batch(caller, &args, &entry);
	one->ticket = args.ticket;
	return r < 0 ? r : entry.result;
}

static int call_preempt(const struct gp_caller *caller, void *data)
{
	struct kfd_gpreempt_one *one = data;

	return one->state ? -EINVAL : do_one(caller, one, false);
}

static int call_resume(const struct gp_caller *caller, void *data)
{
	struct kfd_gpreempt_one *one = data;

	return one->state ? -EINVAL : do_one(caller, one, true);
}

static int call_set_state(const struct gp_caller *caller, void *data)
{
	struct kfd_gpreempt_one *one = data;
	int r;

	if (one->state > KFD_GPREEMPT_ACTIVE)
		return -EINVAL;
	r = do_one(caller, one, one->state);
	return r == -EALREADY ? 0 : r; /* it is what it is to be */
}

static int call_collect(const struct gp_caller *caller, void *data)
{
	struct kfd_gpreempt_collect *args = data;
	struct kfd_gpreempt_entry __user *user = u64_to_user_ptr(args->entries);
	struct gp_batch *b;
	int r = 0;
	u32 i;

	if (!caller->file)
		return -EINVAL;
	b = take_ticket(caller->file, args->ticket, args->n);
	if (IS_ERR(b))
		return PTR_ERR(b);
	args->ticket = b->ticket;
	args->n = b->n;
	args->done = gp_batch_count_done(b);
	args->cycles = b->cycles;
	args->victims = b->victims;
	args->fence_ns = b->cycle_ns;
	args->took_ns = b->done_ns - b->began_ns;
	for (i = 0; i < b->n && !r; i++) {
		if (put_user(b->items[i].result, &user[i].result) ||
		    put_user(b->items[i].queues, &user[i].queues))
			r = -EFAULT;
	}
	gp_batch_free(b);
	return r;
}

/* ---- the brake, looking ---- */

static int call_stop(const struct gp_caller *caller, void *data)
{
	struct kfd_gpreempt_stop *args = data;
	u64 hold_ms = args->hold_ms ?: KFD_GPREEMPT_MAX_HOLD_MS;

	if (!caller->file || !capable(CAP_SYS_ADMIN))
		return -EPERM;
	if (hold_ms > KFD_GPREEMPT_MAX_HOLD_MS || args->pad)
		return -EINVAL;
	return gp_stop(args->gpu_id, caller->owner, task_tgid(current),
		       ktime_get_ns() + hold_ms * NSEC_PER_MSEC, &args->stops);
}

static int call_start(const struct gp_caller *caller, void *data)
{
	struct kfd_gpreempt_stop *args = data;

	if (!caller->file || !capable(CAP_SYS_ADMIN))
		return -EPERM;
	if (args->hold_ms || args->pad)
		return -EINVAL;
	return gp_start(args->gpu_id, caller->owner, &args->stops);
}

static int call_hqd(const struct gp_caller *caller, void *data)
{
	return gp_get_hqd(data);
}

static u32 list_queues(const struct gp_caller *caller, struct kfd_process *p,
		       struct kfd_gpreempt_queue *queues, u32 max)
{
	struct kfd_gpreempt_node *n;
	u32 count = 0;

	down_read(&gp_nodes_lock);
	list_for_each_entry(n, &gp_nodes, link) {
		dqm_lock(gp_dqm(n));
		gp_fill_queues(gp_dqm(n), p, caller->owner, queues, max, &count);
		dqm_unlock(gp_dqm(n));
	}
	up_read(&gp_nodes_lock);
	return count;
}

static int call_stats(const struct gp_caller *caller, void *data)
{
	struct kfd_gpreempt_stats *args = data;
	u32 max = min_t(u32, args->n, MAX_STATS);
	struct kfd_gpreempt_queue *queues;
	struct kfd_process *p;
	int r = 0;

	p = find_process_for(caller, args->pid, args->start_ticks);
	if (IS_ERR(p))
		return PTR_ERR(p);
	queues = kvcalloc(max ?: 1, sizeof(*queues), GFP_KERNEL);
	if (!queues) {
		r = -ENOMEM;
		goto out;
	}
	args->n = list_queues(caller, p, queues, max);
	if (copy_to_user(u64_to_user_ptr(args->queues), queues,
			 array_size(min(args->n, max), sizeof(*queues))))
		r = -EFAULT;
	kvfree(queues);
out:
	kfd_unref_process(p);
	return r;
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
};

#define CALL(name, function) \
	[_IOC_NR(name) - KFD_GPREEMPT_COMMAND_START] = { _IOC_SIZE(name), function }

static const struct {
	size_t bytes;
	int (*call)(const struct gp_caller *caller, void *data);
} calls[] = {
	CALL(KFD_GPREEMPT_GET_VERSION, call_version),
	CALL(KFD_GPREEMPT_BATCH_UNMAP_QUEUES, call_unmap),
	CALL(KFD_GPREEMPT_FAST_REMAP, call_map),
	CALL(KFD_GPREEMPT_SWITCH, call_switch),
	CALL(KFD_GPREEMPT_SELECTIVE_UNMAP, call_selective),
	CALL(KFD_GPREEMPT_PREEMPT_QUEUE, call_preempt),
	CALL(KFD_GPREEMPT_RESUME_QUEUE, call_resume),
	CALL(KFD_GPREEMPT_SET_QUEUE_STATE, call_set_state),
	CALL(KFD_GPREEMPT_COLLECT, call_collect),
	CALL(KFD_GPREEMPT_STOP_SCHED, call_stop),
	CALL(KFD_GPREEMPT_START_SCHED, call_start),
	CALL(KFD_GPREEMPT_GET_HQD_STATUS, call_hqd),
	CALL(KFD_GPREEMPT_GET_STATS, call_stats),
	CALL(KFD_GPREEMPT_BIND, call_bind),
};

/* Shorter arguments are completed with zeros, longer ones must end in them. */
static long do_call(const struct gp_caller *caller, unsigned int cmd, void __user *user)
{
	unsigned int nr = _IOC_NR(cmd) - KFD_GPREEMPT_COMMAND_START;
	size_t bytes = _IOC_SIZE(cmd);
	union any_args args = { 0 };
	int r;

	if (nr >= ARRAY_SIZE(calls) || !calls[nr].call)
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
	       _IOC_NR(cmd) < KFD_GPREEMPT_COMMAND_END;
}

long kfd_gpreempt_own_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct gp_caller caller = {
		.own = file->private_data,
		.owner = gp_own_owner(file),
	};

	if (caller.own->lead_thread != current->group_leader)
		return -EBADF;
	return do_call(&caller, cmd, (void __user *)arg);
}

static long gp_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct gp_caller caller = { .file = file->private_data };

	caller.owner = caller.file->owner;
	if (!kfd_gpreempt_is_command(cmd))
		return -ENOTTY;
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
	struct gp_bound *bound, *next_bound;
	struct gp_batch *b, *next;

	wait_event(f->wait, all_ready(f));
	xa_erase(&owners, f->owner);
	gp_end_holds_everywhere(f->owner);
	list_for_each_entry_safe(b, next, &f->tickets, link)
		gp_batch_free(b);
	list_for_each_entry_safe(bound, next_bound, &f->bound, link) {
		put_pid(bound->pid);
		kfree(bound);
	}
	kfree(f);
	return 0;
}

static __poll_t gp_poll(struct file *file, poll_table *table)
{
	struct gp_file *f = file->private_data;
	struct gp_batch *b;
	__poll_t mask = 0;

	poll_wait(file, &f->wait, table);
	spin_lock(&f->lock);
	list_for_each_entry(b, &f->tickets, link) {
		if (b->ready && !b->awaited)
			mask = EPOLLIN | EPOLLRDNORM;
	}
	spin_unlock(&f->lock);
	return mask;
}

static const struct file_operations gp_fops = {
	.owner = THIS_MODULE,
	.open = gp_open,
	.release = gp_release,
	.unlocked_ioctl = gp_ioctl,
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
	return r;
}

void kfd_gpreempt_exit(void)
{
	if (!gp_workqueue)
		return;
	misc_deregister(&gp_device);
	gp_nodes_exit();
}
