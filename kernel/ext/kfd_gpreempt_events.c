/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What happened, for files that want to know. Who reads too slowly is told how much he missed. */
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/uaccess.h>

#include "kfd_gpreempt_internal.h"

#define CREATE_TRACE_POINTS
#include "kfd_gpreempt_trace.h"

#define ROOM 256

struct gp_events {
	struct list_head link;
	wait_queue_head_t *wait;
	struct mutex reading; /* one at a time: what is copied is taken out after that */
	u32 first, n, lost;
	struct kfd_gpreempt_event events[ROOM];
};

static LIST_HEAD(all);
static DEFINE_SPINLOCK(lock); /* all of it, but for who reads */

struct gp_events *gp_events_new(wait_queue_head_t *wait)
{
	struct gp_events *e = kvzalloc(sizeof(*e), GFP_KERNEL);

	if (!e)
		return NULL;
	e->wait = wait;
	mutex_init(&e->reading);
	spin_lock(&lock);
	list_add(&e->link, &all);
	spin_unlock(&lock);
	return e;
}

void gp_events_free(struct gp_events *e)
{
	if (!e)
		return;
	spin_lock(&lock);
	list_del(&e->link);
	spin_unlock(&lock);
	kvfree(e);
}

static void put(struct gp_events *e, const struct kfd_gpreempt_event *event)
{
	e->events[(e->first + e->n++) % ROOM] = *event;
}

/* In the place of those that are lost. */
static void put_loss(struct gp_events *e)
{
	struct kfd_gpreempt_event loss = {
		.kind = KFD_GPREEMPT_EVENT_LOST,
		.at_ns = ktime_get_ns(),
		.count = e->lost,
	};

	if (!e->lost)
		return;
	put(e, &loss);
	e->lost = 0;
}

void gp_tell(const struct kfd_gpreempt_event *event)
{
	struct gp_events *e;

	spin_lock(&lock);
	list_for_each_entry(e, &all, link) {
		if (e->n + !!e->lost >= ROOM) {
			e->lost++;
			continue;
		}
		put_loss(e);
		put(e, event);
		wake_up_all(e->wait);
	}
	spin_unlock(&lock);
}

bool gp_events_are_there(struct gp_events *e)
{
	bool there;

	spin_lock(&lock);
	there = e->n || e->lost;
	spin_unlock(&lock);
	return there;
}

static bool first(struct gp_events *e, struct kfd_gpreempt_event *ret)
{
	bool there;

	spin_lock(&lock);
	if (!e->n)
		put_loss(e);
	there = e->n;
	if (there)
		*ret = e->events[e->first];
	spin_unlock(&lock);
	return there;
}

static void drop_first(struct gp_events *e)
{
	spin_lock(&lock);
	e->first = (e->first + 1) % ROOM;
	e->n--;
	spin_unlock(&lock);
}

/* What cannot be copied stays. */
static ssize_t read_those_there(struct gp_events *e, char __user *to, size_t bytes)
{
	struct kfd_gpreempt_event event;
	size_t done = 0;

	while (bytes - done >= sizeof(event) && first(e, &event)) {
		if (copy_to_user(to + done, &event, sizeof(event)))
			return done ?: -EFAULT;
		drop_first(e);
		done += sizeof(event);
	}
	return done;
}

/* Who finds that another reader was faster waits on. */
ssize_t gp_events_read(struct gp_events *e, char __user *to, size_t bytes, bool block)
{
	ssize_t r;

	if (bytes < sizeof(struct kfd_gpreempt_event))
		return -EINVAL;
	do {
		r = block ? wait_event_interruptible(*e->wait, gp_events_are_there(e)) : 0;
		if (r || mutex_lock_interruptible(&e->reading))
			return -ERESTARTSYS;
		r = read_those_there(e, to, bytes);
		mutex_unlock(&e->reading);
	} while (!r && block);
	return r ?: -EAGAIN;
}
