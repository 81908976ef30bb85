/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* All other calls: what the extension is, the brake, looking, and the scheduler's. */
#include <linux/capability.h>
#include <linux/ktime.h>
#include <linux/pid.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "kfd_device_queue_manager.h"
#include "kfd_gpreempt_calls.h"
#include "kfd_priv.h"

#define MAX_STATS 8192

int gp_call_version(const struct gp_caller *caller, void *data)
{
	struct kfd_gpreempt_version *v = data;

	*v = (struct kfd_gpreempt_version){
		.version = KFD_GPREEMPT_VERSION,
		.abilities = KFD_GPREEMPT_CAN_BATCH,
		.max_entries = KFD_GPREEMPT_MAX_ENTRIES,
		.max_hold_ms = KFD_GPREEMPT_MAX_HOLD_MS,
	};
	if (gp_victims_only())
		v->abilities |= KFD_GPREEMPT_CAN_VICTIMS_ONLY;
	if (capable(CAP_SYS_ADMIN))
		v->abilities |= KFD_GPREEMPT_IS_ADMIN;
	if (gp_monitor_is_on())
		v->abilities |= KFD_GPREEMPT_SCHEDULES;
	return 0;
}

/* ---- the brake, looking ---- */

int gp_call_stop(const struct gp_caller *caller, void *data)
{
	struct kfd_gpreempt_stop *args = data;
	u64 hold_ms = args->hold_ms ?: KFD_GPREEMPT_MAX_HOLD_MS;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	if (hold_ms > KFD_GPREEMPT_MAX_HOLD_MS || args->pad)
		return -EINVAL;
	gp_owner_holds(caller->file);
	return gp_stop(args->gpu_id, caller->owner, task_tgid(current),
		       ktime_get_ns() + hold_ms * NSEC_PER_MSEC, &args->stops);
}

int gp_call_start(const struct gp_caller *caller, void *data)
{
	struct kfd_gpreempt_stop *args = data;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	if (args->hold_ms || args->pad)
		return -EINVAL;
	return gp_start(args->gpu_id, caller->owner, &args->stops);
}

int gp_call_hqd(const struct gp_caller *caller, void *data)
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

int gp_call_stats(const struct gp_caller *caller, void *data)
{
	struct kfd_gpreempt_stats *args = data;
	u32 max = min_t(u32, args->n, MAX_STATS);
	struct kfd_gpreempt_queue *queues;
	struct kfd_process *p;
	int r = 0;

	p = gp_find_process(caller, args->pid, args->start_ticks);
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

/* ---- the scheduler ---- */

int gp_call_class(const struct gp_caller *caller, void *data)
{
	struct kfd_gpreempt_class *args = data;
	struct kfd_process *p = gp_find_process(caller, args->pid, args->start_ticks);
	int r;

	if (IS_ERR(p))
		return PTR_ERR(p);
	r = gp_set_class(p, args);
	kfd_unref_process(p);
	return r;
}

int gp_call_policy(const struct gp_caller *caller, void *data)
{
	struct kfd_gpreempt_policy *args = data;
	struct kfd_process *p = gp_find_process(caller, args->pid, args->start_ticks);
	int r;

	if (IS_ERR(p))
		return PTR_ERR(p);
	r = gp_set_policy(p, args);
	kfd_unref_process(p);
	return r;
}

int gp_call_hint(const struct gp_caller *caller, void *data)
{
	struct kfd_gpreempt_hint *args = data;
	struct kfd_process *p = gp_find_process(caller, args->pid, args->start_ticks);
	int r;

	if (IS_ERR(p))
		return PTR_ERR(p);
	r = gp_monitor_hint(p, args);
	kfd_unref_process(p);
	return r;
}

int gp_call_monitor(const struct gp_caller *caller, void *data)
{
	return capable(CAP_SYS_ADMIN) ? gp_monitor_set(data) : -EPERM;
}

int gp_call_reserve(const struct gp_caller *caller, void *data)
{
	return capable(CAP_SYS_ADMIN) ? gp_monitor_reserve(data) : -EPERM;
}

int gp_call_subscribe(const struct gp_caller *caller, void *data)
{
	struct kfd_gpreempt_subscribe *args = data;
	struct gp_events *events;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	if (args->on != 1 || args->pad)
		return -EINVAL;
	if (caller->file->events)
		return 0;
	events = gp_events_new(&caller->file->wait);
	if (!events)
		return -ENOMEM;
	/* Once; who comes second has it already. */
	if (cmpxchg(&caller->file->events, NULL, events))
		gp_events_free(events);
	return 0;
}
