/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Queues off and on: batches as callers ask for them, and tickets for those nobody waits for. */
#include <linux/ktime.h>
#include <linux/pid.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "kfd_gpreempt_calls.h"
#include "kfd_priv.h"

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
	if (args->flags & KFD_GPREEMPT_VICTIMS_ONLY && !gp_victims_only())
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
	if (args->n_unmap)
		gp_owner_holds(caller->file);
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
	struct kfd_process *p = gp_find_process(caller, e->pid, e->start_ticks);

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

int gp_call_unmap(const struct gp_caller *caller, void *data)
{
	return call_batch(caller, data, BATCH_FLAGS, true, false);
}

int gp_call_map(const struct gp_caller *caller, void *data)
{
	return call_batch(caller, data, BATCH_FLAGS, false, true);
}

int gp_call_switch(const struct gp_caller *caller, void *data)
{
	return call_batch(caller, data, BATCH_FLAGS, true, true);
}

int gp_call_selective(const struct gp_caller *caller, void *data)
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

int gp_call_preempt(const struct gp_caller *caller, void *data)
{
	struct kfd_gpreempt_one *one = data;

	return one->state ? -EINVAL : do_one(caller, one, false);
}

int gp_call_resume(const struct gp_caller *caller, void *data)
{
	struct kfd_gpreempt_one *one = data;

	return one->state ? -EINVAL : do_one(caller, one, true);
}

int gp_call_set_state(const struct gp_caller *caller, void *data)
{
	struct kfd_gpreempt_one *one = data;
	int r;

	if (one->state > KFD_GPREEMPT_ACTIVE)
		return -EINVAL;
	r = do_one(caller, one, one->state);
	return r == -EALREADY ? 0 : r; /* it is what it is to be */
}

int gp_call_collect(const struct gp_caller *caller, void *data)
{
	struct kfd_gpreempt_collect *args = data;
	struct kfd_gpreempt_entry __user *user = u64_to_user_ptr(args->entries);
	struct gp_batch *b;
	int r = 0;
	u32 i;

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
