/* SPDX-License-Identifier: MIT */
/*
 * A GPU that does not do what it is told: what the call says that ran into it, and what is left of
 * the process, its debugger and the GPU after the reset that follows. Only calls that ask the
 * scheduler once: what others say depends on how far the reset has come.
 */
#include "abi/kfd_memory.h"
#include "tests/conformance/topics.h"

#define AQL KFD_IOC_QUEUE_TYPE_COMPUTE_AQL
#define HW_EXCEPTION 3u

static const char *const fault_names[] = {
	[FAULT_STUCK_QUEUE] = "a queue does not yield",
	[FAULT_RESETTABLE_QUEUE] = "a queue does not yield but can be reset",
	[FAULT_DEAD_SCHEDULER] = "the scheduler is dead",
};

struct rig {
	struct world *w;
	struct session s;
	struct kfd_ioctl_create_queue_args q;
	uint32_t event;
};

static struct rig broken_gpu(struct world *w, enum world_fault fault)
{
	struct rig r = { .w = w, .s = attached(w, 0) };
	struct kfd_ioctl_create_event_args e = { .event_type = HW_EXCEPTION };

	if (call(me(r.s.target), AMDKFD_IOC_CREATE_EVENT, &e) < 0)
		broken("%s: no event", w->case_name);
	r.event = e.event_id;
	r.q = queue_args(r.s.target, AQL);
	if (create_queue(r.s.target, &r.q) < 0)
		broken("%s: no queue", w->case_name);
	snapshot(me(r.s.debugger), r.s.target, NEW);
	dots(w);
	say(w, "%s", fault_names[fault]);
	w->ops->break_gpu(w, fault, r.s.target, r.q.queue_id);
	return r;
}

static void say_event(struct rig *r)
{
	struct kfd_event_data *d = arena(r->w, sizeof(*d));
	struct kfd_ioctl_wait_events_args a = { .events_ptr = (uintptr_t)d, .num_events = 1 };
	int ret;

	d->event_id = r->event;
	ret = call(me(r->s.target), AMDKFD_IOC_WAIT_EVENTS, &a);
	say(r->w, "its event of the reset %s result %u: type %u cause %u lost %u gpu %u",
	    text_of(ret), a.wait_result, d->hw_exception_data.reset_type,
	    d->hw_exception_data.reset_cause, d->hw_exception_data.memory_lost,
	    d->hw_exception_data.gpu_id);
}

static int update(struct rig *r, uint32_t percent)
{
	struct kfd_ioctl_update_queue_args args = {
		.ring_base_address = r->q.ring_base_address,
		.ring_size = r->q.ring_size,
		.queue_id = r->q.queue_id,
		.queue_percentage = percent,
	};

	return call(me(r->s.target), AMDKFD_IOC_UPDATE_QUEUE, &args);
}

/* Another process has what is left to itself. */
static void say_newcomer(struct rig *r)
{
	struct actor *a = actor(r->w, "newcomer");
	struct kfd_ioctl_create_queue_args q;

	say(r->w, "newcomer: open %s", text_of(open_kfd(a)));
	say(r->w, "address space %s", text_of(acquire_vm(a)));
	q = queue_args(a, AQL);
	say_active("queue", create_queue(a, &q), me(a), 1);
}

static void aftermath(struct rig *r, enum world_fault fault)
{
	struct who by = me(r->s.debugger), owner = me(r->s.target);

	if (fault != FAULT_RESETTABLE_QUEUE)
		r->w->ops->await_reset(r->w);
	say_event(r);
	say_events(r->w, "debugger", 0);
	say(r->w, "active %s", active(owner, 1));
	r->s.ids[0] = 0;
	say_ids(r->w, "suspend", suspend(by, r->s.target, r->s.ids, 1, GRACE_DEFAULT), r->s.ids, 1);
	r->s.ids[0] = 0;
	say_ids(r->w, "resume", resume(by, r->s.target, r->s.ids, 1), r->s.ids, 1);
	say(r->w, "snapshot %s", text_of(snapshot(by, r->s.target, 0)));
	say(r->w, "0 percent %s", text_of(update(r, 0)));
	say_active("disable", disable(by, r->s.target), owner, 1);
	say(r->w, "destroy %s", text_of(destroy_queue(owner, 0)));
	say_newcomer(r);
}

static void each(struct world *w, enum world_fault fault, void (*run)(struct rig *r))
{
	struct rig r = broken_gpu(w, fault);

	run(&r);
	aftermath(&r, fault);
}

/* MES knows of no reset of a queue. */
static void each_without_mes(struct world *w, enum world_fault fault, void (*run)(struct rig *r))
{
	if (is_mes(w))
		say(w, "not asked of MES");
	else
		each(w, fault, run);
}

static void suspend_it(struct rig *r)
{
	int ret = suspend(me(r->s.debugger), r->s.target, r->s.ids, 1, GRACE_DEFAULT);

	say_ids(r->w, "suspend", ret, r->s.ids, 1);
}

static void suspend_stuck(struct world *w)
{
	each(w, FAULT_STUCK_QUEUE, suspend_it);
}

static void suspend_resettable(struct world *w)
{
	each_without_mes(w, FAULT_RESETTABLE_QUEUE, suspend_it);
}

static void suspend_dead(struct world *w)
{
	each(w, FAULT_DEAD_SCHEDULER, suspend_it);
}

static void update_it(struct rig *r)
{
	say(r->w, "100 percent %s", text_of(update(r, 100)));
}

static void update_stuck(struct world *w)
{
	each(w, FAULT_STUCK_QUEUE, update_it);
}

static void update_resettable(struct world *w)
{
	each_without_mes(w, FAULT_RESETTABLE_QUEUE, update_it);
}

static void pause_it(struct rig *r)
{
	struct kfd_ioctl_criu_args c = { .op = KFD_CRIU_OP_PROCESS_INFO };

	say(r->w, "pause %s", text_of(call(me(r->s.target), AMDKFD_IOC_CRIU_OP, &c)));
}

static void pause_resettable(struct world *w)
{
	each_without_mes(w, FAULT_RESETTABLE_QUEUE, pause_it);
}

static void destroy_it(struct rig *r)
{
	say(r->w, "destroy %s", text_of(destroy_queue(me(r->s.target), 0)));
}

/* With MES the driver keeps the queue but not its memory: what it says then is chance. */
static void destroy_stuck(struct world *w)
{
	each_without_mes(w, FAULT_STUCK_QUEUE, destroy_it);
}

/* Whose queue makes the scheduler go round need not be whose queue is stuck. */
static void bystander_adds(struct rig *r)
{
	struct actor *other = kfd_actor(r->w, "bystander");
	struct kfd_ioctl_create_queue_args q;

	acquire_vm(other);
	q = queue_args(other, AQL);
	say(r->w, "another one's new queue %s", text_of(create_queue(other, &q)));
}

static void create_dead(struct world *w)
{
	each(w, FAULT_DEAD_SCHEDULER, bystander_adds);
}

const struct conformance_case fault_cases[] = {
	{ "faults/suspend_stuck", suspend_stuck },
	{ "faults/suspend_resettable", suspend_resettable },
	{ "faults/suspend_dead", suspend_dead },
	{ "faults/update_stuck", update_stuck },
	{ "faults/update_resettable", update_resettable },
	{ "faults/pause_resettable", pause_resettable },
	{ "faults/destroy_stuck", destroy_stuck },
	{ "faults/create_dead", create_dead },
	{ NULL, NULL },
};
