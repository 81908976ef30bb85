/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What happened, for files that want to know. Who reads too slowly is told how much he missed. */
#include <linux/list.h>
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
	u32 first, n, lost;
	struct kfd_gpreempt_event events[ROOM];
};

static LIST_HEAD(all);
static DEFINE_SPINLOCK(lock); /* all of it */

struct gp_events *gp_events_new(wait_queue_head_t *wait)
{
	struct gp_events *e = kvzalloc(sizeof(*e), GFP_KERNEL);

	if (!e)
		return NULL;
	e->wait = wait;
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

void gp_tell(const struct kfd_gpreempt_event *event)
{
	struct gp_events *e;

	spin_lock(&lock);
	list_for_each_entry(e, &all, link) {
		if (e->n == ROOM) {
			e->lost++;
			continue;
		}
		e->events[(e->first + e->n++) % ROOM] = *event;
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

/* After those that there was room for. */
static bool take(struct gp_events *e, struct kfd_gpreempt_event *ret)
{
	bool taken = true;

	spin_lock(&lock);
	if (e->n) {
		*ret = e->events[e->first];
		e->first = (e->first + 1) % ROOM;
		e->n--;
	} else if (e->lost) {
		*ret = (struct kfd_gpreempt_event){ .kind = KFD_GPREEMPT_EVENT_LOST };
		ret->at_ns = ktime_get_ns();
		ret->count = e->lost;
		e->lost = 0;
	} else {
		taken = false;
	}
	spin_unlock(&lock);
	return taken;
}

ssize_t gp_events_read(struct gp_events *e, char __user *to, size_t bytes, bool block)
{
	struct kfd_gpreempt_event event;
	size_t done = 0;
	int r;

	if (bytes < sizeof(event))
		return -EINVAL;
	if (!block && !gp_events_are_there(e))
		return -EAGAIN;
	r = block ? wait_event_interruptible(*e->wait, gp_events_are_there(e)) : 0;
	if (r)
		return r;
	while (bytes - done >= sizeof(event) && take(e, &event)) {
		if (copy_to_user(to + done, &event, sizeof(event)))
			return -EFAULT;
		done += sizeof(event);
	}
	return done ?: -EAGAIN;
}
