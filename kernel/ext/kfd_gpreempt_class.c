/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Who is online, who is offline: set by people, asked for by the scheduler. */
#include <linux/capability.h>
#include <linux/spinlock.h>

#include "kfd_device_queue_manager.h"
#include "kfd_gpreempt_internal.h"
#include "kfd_priv.h"

/* What processes are; what single queues are is under the DQM lock. */
static DEFINE_SPINLOCK(lock);

struct kfd_gpreempt_class_state gp_class_of(struct kfd_process *p)
{
	struct kfd_gpreempt_class_state c;

	spin_lock(&lock);
	c = p->gpreempt;
	spin_unlock(&lock);
	return c;
}

/* Anybody may make less of himself; what an administrator said only an administrator changes. */
static bool may_set(const struct kfd_gpreempt_class_state *now, u32 class, bool admin)
{
	return admin || (class != KFD_GPREEMPT_ONLINE && !now->by_admin &&
			 now->class != KFD_GPREEMPT_ONLINE);
}

static void kick_everywhere(void)
{
	struct kfd_gpreempt_node *n;

	down_read(&gp_nodes_lock);
	list_for_each_entry(n, &gp_nodes, link) {
		dqm_lock(gp_dqm(n));
		gp_monitor_kick(n);
		dqm_unlock(gp_dqm(n));
	}
	up_read(&gp_nodes_lock);
}

static int set_process(struct kfd_process *p, const struct kfd_gpreempt_class *args, bool admin)
{
	int r = 0;

	spin_lock(&lock);
	if (may_set(&p->gpreempt, args->class, admin)) {
		p->gpreempt.class = args->class;
		p->gpreempt.critical = args->flags & KFD_GPREEMPT_CLASS_CRITICAL;
		p->gpreempt.by_admin = admin && args->class;
		p->gpreempt.priority = args->priority;
		p->gpreempt.weight = args->weight;
		p->gpreempt.target_ns = args->target_ns;
		p->gpreempt.wait_bound_ns = args->wait_bound_ns;
	} else {
		r = -EPERM;
	}
	spin_unlock(&lock);
	return r;
}

static struct queue *find_queue(struct kfd_gpreempt_node *n, struct kfd_process *p, u32 id)
{
	struct kfd_process_device *pdd = kfd_get_process_device_data(n->node, p);
	struct queue *q;

	if (!pdd)
		return NULL;
	list_for_each_entry(q, &pdd->qpd.queues_list, list) {
		if (q->properties.queue_id == id)
			return q;
	}
	return NULL;
}

/* A queue may be made less than its process, and by an administrator anything. */
static int set_queue(struct kfd_process *p, const struct kfd_gpreempt_class *args, bool admin)
{
	struct kfd_gpreempt_class_state c = gp_class_of(p);
	struct kfd_gpreempt_node *n;
	struct queue *q;
	int r = -ENOENT;

	if (!admin && (args->class == KFD_GPREEMPT_ONLINE || c.by_admin))
		return -EPERM;
	down_read(&gp_nodes_lock);
	list_for_each_entry(n, &gp_nodes, link) {
		dqm_lock(gp_dqm(n));
		q = find_queue(n, p, args->queue_id);
		if (q && !admin && q->gpreempt.class_by_admin) {
			r = -EPERM;
		} else if (q) {
			q->gpreempt.class = args->class;
			q->gpreempt.class_by_admin = admin && args->class;
			r = 0;
		}
		dqm_unlock(gp_dqm(n));
	}
	up_read(&gp_nodes_lock);
	return r;
}

static bool is_more_than_others(const struct kfd_gpreempt_class *args)
{
	return args->flags || args->priority || args->weight > 1 || args->wait_bound_ns;
}

int gp_set_class(struct kfd_process *p, const struct kfd_gpreempt_class *args)
{
	bool admin = capable(CAP_SYS_ADMIN);
	int r;

	if (args->class > KFD_GPREEMPT_OFFLINE || args->flags & ~KFD_GPREEMPT_CLASS_CRITICAL ||
	    args->priority > U8_MAX)
		return -EINVAL;
	if (!admin && is_more_than_others(args))
		return -EPERM;
	if (args->queue_id == KFD_GPREEMPT_ALL_QUEUES)
		r = set_process(p, args, admin);
	else
		r = set_queue(p, args, admin);
	if (!r)
		kick_everywhere();
	return r;
}

int gp_set_policy(struct kfd_process *p, const struct kfd_gpreempt_policy *args)
{
	const u32 known = KFD_GPREEMPT_LAZY_ACTIVATION | KFD_GPREEMPT_AUTO_DEACTIVATION |
			  KFD_GPREEMPT_PREEMPTIBLE;
	bool admin = capable(CAP_SYS_ADMIN);
	int r = 0;

	if (args->flags & ~known)
		return -EINVAL;
	spin_lock(&lock);
	/* Not to be preempted is more than others have. */
	if (!admin && (p->gpreempt.by_admin || !(args->flags & KFD_GPREEMPT_PREEMPTIBLE))) {
		r = -EPERM;
	} else {
		p->gpreempt.by_admin |= admin && p->gpreempt.class;
		p->gpreempt.lazy = args->flags & KFD_GPREEMPT_LAZY_ACTIVATION;
		p->gpreempt.auto_deactivate = args->flags & KFD_GPREEMPT_AUTO_DEACTIVATION;
		p->gpreempt.fixed = !(args->flags & KFD_GPREEMPT_PREEMPTIBLE);
	}
	spin_unlock(&lock);
	if (!r)
		kick_everywhere();
	return r;
}
