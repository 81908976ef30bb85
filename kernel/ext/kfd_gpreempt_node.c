/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What is kept for each GPU: when its holds end by themselves, and who stopped it. */
#include <linux/ktime.h>
#include <linux/pid.h>
#include <linux/slab.h>

#include "kfd_device_queue_manager.h"
#include "kfd_gpreempt_internal.h"
#include "kfd_priv.h"

LIST_HEAD(gp_nodes);
DECLARE_RWSEM(gp_nodes_lock);
struct workqueue_struct *gp_workqueue;
static struct workqueue_struct *expiry; /* its own: no hung GPU keeps the end of holds waiting */

static atomic64_t last_mark = ATOMIC64_INIT(0);

void gp_change_begin(struct gp_change *c, u64 began_ns, u32 grace, struct pid *by)
{
	*c = (struct gp_change){
		.mark = atomic64_inc_return(&last_mark),
		.began_ns = began_ns,
		.grace = grace,
		.by = by,
	};
}

struct device_queue_manager *gp_dqm(const struct kfd_gpreempt_node *n)
{
	return n->node->dqm;
}

struct kfd_gpreempt_node *gp_find_node(u32 gpu_id)
{
	struct kfd_gpreempt_node *n;

	lockdep_assert_held(&gp_nodes_lock);
	list_for_each_entry(n, &gp_nodes, link) {
		if (n->node->id == gpu_id)
			return n;
	}
	return NULL;
}

bool gp_is_stopped(const struct kfd_gpreempt_node *n)
{
	return !list_empty(&n->stops);
}

void gp_expire_at(struct kfd_gpreempt_node *n, u64 until_ns)
{
	u64 now = ktime_get_ns();

	if (until_ns >= n->expire_ns)
		return;
	n->expire_ns = until_ns;
	mod_delayed_work(expiry, &n->expire,
			 until_ns > now ? nsecs_to_jiffies(until_ns - now) + 1 : 0);
}

/* ---- the end of holds ---- */

static bool is_over(const struct kfd_gpreempt_hold *h, u64 owner, u64 now)
{
	return h->owner && (owner ? h->owner == owner : now >= h->until_ns);
}

static void end_hold(struct kfd_gpreempt_hold *h)
{
	*h = (struct kfd_gpreempt_hold){ 0 };
}

/* The reasons that are left of a queue's, and when the next of them ends. */
static u8 reasons_left(struct queue *q, u64 owner, u64 now, u64 *next_ns)
{
	struct kfd_gpreempt_queue_state *s = &q->gpreempt;
	u8 reasons = q->properties.gpreempt;

	if (is_over(&s->holder, owner, now)) {
		end_hold(&s->holder);
		reasons &= ~KFD_GPREEMPT_BY_HOLDER;
	}
	if (is_over(&s->itself, owner, now)) {
		end_hold(&s->itself);
		reasons &= ~KFD_GPREEMPT_BY_ITSELF;
	}
	if (is_over(&s->scheduler, owner, now)) {
		end_hold(&s->scheduler);
		reasons &= ~KFD_GPREEMPT_BY_SCHEDULER;
	}
	if (s->scheduler.owner)
		*next_ns = min(*next_ns, s->scheduler.until_ns);
	if (s->holder.owner)
		*next_ns = min(*next_ns, s->holder.until_ns);
	if (s->itself.owner)
		*next_ns = min(*next_ns, s->itself.until_ns);
	return reasons;
}

static void end_stops(struct kfd_gpreempt_node *n, u64 owner, u64 now, u64 *next_ns)
{
	struct gp_stop *s, *next;

	list_for_each_entry_safe(s, next, &n->stops, link) {
		if (owner ? s->owner == owner : now >= s->until_ns) {
			list_del(&s->link);
			kfree(s);
		} else {
			*next_ns = min(*next_ns, s->until_ns);
		}
	}
}

void gp_end_holds(struct kfd_gpreempt_node *n, u64 owner, struct gp_change *c)
{
	struct device_queue_manager *dqm = gp_dqm(n);
	u64 now = ktime_get_ns(), next_ns = U64_MAX;
	struct device_process_node *cur;
	struct queue *q;
	bool stopped;

	end_stops(n, owner, now, &next_ns);
	stopped = gp_is_stopped(n);
	list_for_each_entry(cur, &dqm->queues, list) {
		struct kfd_gpreempt_process_state *p = &qpd_to_pdd(cur->qpd)->gpreempt;

		if (is_over(&p->holder, owner, now))
			end_hold(&p->holder);
		if (is_over(&p->itself, owner, now))
			end_hold(&p->itself);
		list_for_each_entry(q, &cur->qpd->queues_list, list) {
			u8 reasons = reasons_left(q, owner, now, &next_ns);

			if (!stopped)
				reasons &= ~KFD_GPREEMPT_BY_STOP;
			/* What cannot be put on again is lost with its GPU: nothing to be done. */
			gp_set_reasons(dqm, cur->qpd, q, reasons, c);
		}
	}
	n->expire_ns = U64_MAX;
	if (next_ns != U64_MAX)
		gp_expire_at(n, next_ns);
}

void gp_end_scheduler_holds(struct kfd_gpreempt_node *n, struct gp_change *c)
{
	struct device_queue_manager *dqm = gp_dqm(n);
	struct device_process_node *cur;
	struct queue *q;

	list_for_each_entry(cur, &dqm->queues, list) {
		end_hold(&qpd_to_pdd(cur->qpd)->gpreempt.scheduler);
		list_for_each_entry(q, &cur->qpd->queues_list, list) {
			end_hold(&q->gpreempt.scheduler);
			gp_set_reasons(dqm, cur->qpd, q,
				       q->properties.gpreempt & ~KFD_GPREEMPT_BY_SCHEDULER, c);
		}
	}
}

static void end_holds_of(struct kfd_gpreempt_node *n, u64 owner)
{
	struct device_queue_manager *dqm = gp_dqm(n);
	struct gp_change c;

	gp_change_begin(&c, ktime_get_ns(), USE_DEFAULT_GRACE_PERIOD, NULL);
	dqm_lock(dqm);
	gp_end_holds(n, owner, &c);
	if (gp_change_commit(dqm, &c))
		dev_err(dqm->dev->adev->dev, "gpreempt: queues could not be mapped again\n");
	dqm_unlock(dqm);
}

static void expire(struct work_struct *work)
{
	end_holds_of(container_of(to_delayed_work(work), struct kfd_gpreempt_node, expire), 0);
}

struct ending {
	struct work_struct work;
	struct kfd_gpreempt_node *n;
	u64 owner;
};

static void end_here(struct work_struct *work)
{
	struct ending *e = container_of(work, struct ending, work);

	end_holds_of(e->n, e->owner);
}

static unsigned int count_nodes(void)
{
	struct kfd_gpreempt_node *n;
	unsigned int count = 0;

	list_for_each_entry(n, &gp_nodes, link)
		count++;
	return count;
}

/* One hung GPU must not keep the jobs of the others waiting. */
void gp_end_holds_everywhere(u64 owner)
{
	struct kfd_gpreempt_node *n;
	struct ending *endings;
	unsigned int i = 0, count;

	down_read(&gp_nodes_lock);
	count = count_nodes();
	endings = count > 1 ? kcalloc(count, sizeof(*endings), GFP_KERNEL) : NULL;
	list_for_each_entry(n, &gp_nodes, link) {
		if (!endings) {
			end_holds_of(n, owner);
			continue;
		}
		endings[i] = (struct ending){ .n = n, .owner = owner };
		INIT_WORK(&endings[i].work, end_here);
		queue_work(gp_workqueue, &endings[i++].work);
	}
	while (i)
		flush_work(&endings[--i].work);
	up_read(&gp_nodes_lock);
	kfree(endings);
}

/* ---- the brake ---- */

static struct gp_stop *find_stop(struct kfd_gpreempt_node *n, u64 owner)
{
	struct gp_stop *s;

	list_for_each_entry(s, &n->stops, link) {
		if (s->owner == owner)
			return s;
	}
	return NULL;
}

static int set_stopped(struct kfd_gpreempt_node *n, bool stopped, struct pid *by)
{
	struct device_queue_manager *dqm = gp_dqm(n);
	struct device_process_node *cur;
	struct gp_change c;
	struct queue *q;
	int r = 0, first = 0;

	gp_change_begin(&c, ktime_get_ns(), USE_DEFAULT_GRACE_PERIOD, by);
	list_for_each_entry(cur, &dqm->queues, list) {
		list_for_each_entry(q, &cur->qpd->queues_list, list) {
			u8 others = q->properties.gpreempt & ~KFD_GPREEMPT_BY_STOP;

			r = gp_set_reasons(dqm, cur->qpd, q,
					   stopped ? others | KFD_GPREEMPT_BY_STOP : others, &c);
			first = first ?: r;
		}
	}
	r = gp_change_commit(dqm, &c);
	return first ?: r;
}

static int stop_node(struct kfd_gpreempt_node *n, u64 owner, struct pid *by, u64 until_ns,
		     u32 *ret_stops)
{
	struct gp_stop *spare = kzalloc(sizeof(*spare), GFP_KERNEL), *s;
	struct device_queue_manager *dqm = gp_dqm(n);
	bool stopped;
	int r = 0;

	if (!spare)
		return -ENOMEM;
	dqm_lock(dqm);
	stopped = gp_is_stopped(n);
	s = find_stop(n, owner);
	if (!s) {
		s = spare;
		spare = NULL;
		s->owner = owner;
		list_add(&s->link, &n->stops);
	}
	s->count++;
	s->until_ns = until_ns;
	gp_expire_at(n, until_ns);
	if (!stopped)
		r = set_stopped(n, true, by);
	*ret_stops = s->count;
	dqm_unlock(dqm);
	kfree(spare);
	return r;
}

int gp_stop(u32 gpu_id, u64 owner, struct pid *by, u64 until_ns, u32 *ret_stops)
{
	struct kfd_gpreempt_node *n;
	int r;

	down_read(&gp_nodes_lock);
	n = gp_find_node(gpu_id);
	r = n ? stop_node(n, owner, by, until_ns, ret_stops) : -ENODEV;
	up_read(&gp_nodes_lock);
	return r;
}

static int start_node(struct kfd_gpreempt_node *n, u64 owner, u32 *ret_stops)
{
	struct device_queue_manager *dqm = gp_dqm(n);
	struct gp_stop *s;
	int r = 0;

	dqm_lock(dqm);
	s = find_stop(n, owner);
	if (!s) {
		dqm_unlock(dqm);
		return -EALREADY;
	}
	*ret_stops = --s->count;
	if (!s->count) {
		list_del(&s->link);
		kfree(s);
		if (!gp_is_stopped(n))
			r = set_stopped(n, false, NULL);
	}
	dqm_unlock(dqm);
	return r;
}

int gp_start(u32 gpu_id, u64 owner, u32 *ret_stops)
{
	struct kfd_gpreempt_node *n;
	int r;

	down_read(&gp_nodes_lock);
	n = gp_find_node(gpu_id);
	r = n ? start_node(n, owner, ret_stops) : -ENODEV;
	up_read(&gp_nodes_lock);
	return r;
}

void gp_get_hqd_of(struct kfd_gpreempt_node *n, struct kfd_gpreempt_hqd *ret)
{
	dqm_lock(gp_dqm(n));
	gp_fill_hqd(gp_dqm(n), ret);
	dqm_unlock(gp_dqm(n));
}

int gp_get_hqd(struct kfd_gpreempt_hqd *hqd)
{
	struct kfd_gpreempt_node *n;

	down_read(&gp_nodes_lock);
	n = gp_find_node(hqd->gpu_id);
	if (n)
		gp_get_hqd_of(n, hqd);
	up_read(&gp_nodes_lock);
	return n ? 0 : -ENODEV;
}

/* ---- nodes come and go ---- */

/* Without the memory for it a node is one that the extension does not know. */
void kfd_gpreempt_add_node(struct kfd_node *node)
{
	struct kfd_gpreempt_node *n;

	if (!gp_workqueue || node->dqm->sched_policy == KFD_SCHED_POLICY_NO_HWS)
		return;
	n = kzalloc(sizeof(*n), GFP_KERNEL);
	if (!n)
		return;
	n->node = node;
	n->expire_ns = U64_MAX;
	INIT_LIST_HEAD(&n->stops);
	INIT_DELAYED_WORK(&n->expire, expire);
	mutex_init(&n->monitor_lock);
	dqm_lock(node->dqm);
	node->dqm->gpreempt = n;
	dqm_unlock(node->dqm);
	down_write(&gp_nodes_lock);
	list_add_tail(&n->link, &gp_nodes);
	up_write(&gp_nodes_lock);
}

void kfd_gpreempt_remove_node(struct kfd_node *node)
{
	struct kfd_gpreempt_node *n = node->dqm->gpreempt;
	struct gp_stop *s, *next;

	if (!n)
		return;
	down_write(&gp_nodes_lock);
	list_del(&n->link);
	up_write(&gp_nodes_lock);
	gp_monitor_stop(n);
	flush_workqueue(gp_workqueue); /* what was begun before */
	dqm_lock(node->dqm);
	node->dqm->gpreempt = NULL;
	dqm_unlock(node->dqm);
	cancel_delayed_work_sync(&n->expire);
	list_for_each_entry_safe(s, next, &n->stops, link)
		kfree(s);
	kfree(n);
}

int gp_nodes_init(void)
{
	expiry = alloc_workqueue("kfd_gpreempt_expiry", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!expiry)
		return -ENOMEM;
	/* Not at a high priority: the driver waits for the hardware awake. */
	gp_workqueue = alloc_workqueue("kfd_gpreempt", WQ_UNBOUND, 0);
	if (!gp_workqueue)
		destroy_workqueue(expiry);
	return gp_workqueue ? 0 : -ENOMEM;
}

/* amdgpu ends the driver before its GPUs, whose turn then finds nothing to do. */
static void remove_all_nodes(void)
{
	struct kfd_gpreempt_node *n;

	while (!list_empty(&gp_nodes)) {
		n = list_first_entry(&gp_nodes, struct kfd_gpreempt_node, link);
		kfd_gpreempt_remove_node(n->node);
	}
}

void gp_nodes_exit(void)
{
	remove_all_nodes();
	destroy_workqueue(gp_workqueue);
	gp_workqueue = NULL;
	destroy_workqueue(expiry);
}
