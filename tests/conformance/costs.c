/* SPDX-License-Identifier: MIT */
/*
 * What each call makes the scheduler do: how often everything was taken off the GPU or, with MES,
 * how many queues were added and removed.
 */
#include "tests/conformance/topics.h"

static int update(struct actor *a, const struct kfd_ioctl_create_queue_args *q, uint32_t percent)
{
	struct kfd_ioctl_update_queue_args args = {
		.ring_base_address = q->ring_base_address,
		.ring_size = q->ring_size,
		.queue_id = q->queue_id,
		.queue_percentage = percent,
	};

	return call(me(a), AMDKFD_IOC_UPDATE_QUEUE, &args);
}

static void owner(struct world *w)
{
	struct actor *a = actor(w, "self");
	struct kfd_ioctl_create_queue_args q;
	struct meter m = meter(w);
	uint32_t *mask = arena(w, 64);

	say_cost(&m, "open", open_kfd(a));
	say_cost(&m, "address space", acquire_vm(a));
	say_cost(&m, "runtime on", runtime(me(a), 1));
	q = queue_args(a, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	say_cost(&m, "first queue", create_queue(a, &q));
	q = queue_args(a, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	say_cost(&m, "second queue", create_queue(a, &q));
	say_cost(&m, "nothing new", update(a, &q, 100));
	say_cost(&m, "0 percent", update(a, &q, 0));
	say_cost(&m, "0 percent again", update(a, &q, 0));
	say_cost(&m, "100 percent", update(a, &q, 100));
	say_cost(&m, "no such queue", destroy_queue(me(a), NO_ID));
	mask[0] = UINT32_MAX;
	say_cost(&m, "CU mask",
		 call(me(a), AMDKFD_IOC_SET_CU_MASK,
		      &(struct kfd_ioctl_set_cu_mask_args){ .num_cu_mask = 32,
							    .cu_mask_ptr = (uintptr_t)mask }));
	say_cost(&m, "destroy", destroy_queue(me(a), 0));
	update(a, &q, 0);
	say_cost(&m, "an inactive one: 0 percent", 0);
	say_cost(&m, "destroy it", destroy_queue(me(a), 1));
	q = queue_args(a, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	q.queue_percentage = 0;
	say_cost(&m, "inactive queue", create_queue(a, &q));
	say_cost(&m, "runtime off", runtime(me(a), 0));
}

static void session(struct world *w)
{
	struct actor *target = kfd_actor(w, "target");
	struct actor *debugger = kfd_actor(w, "debugger");
	struct who by = me(debugger);
	uint32_t *ids = arena(w, 64);
	struct meter m;

	acquire_vm(target);
	runtime(me(target), 1);
	add_queues(target, 3);
	m = meter(w);
	say_cost(&m, "seize", seize(by, target));
	say_cost(&m, "enable", enable(by, target, NEW));
	ids[1] = 1;
	say_cost(&m, "suspend new ones", suspend(by, target, ids, 2, 1));
	say_cost(&m, "snapshot", snapshot(by, target, NEW));
	ids[0] = NO_ID;
	say_cost(&m, "suspend none", suspend(by, target, ids, 1, 1));
	ids[0] = 0;
	say_cost(&m, "suspend one", suspend(by, target, ids, 1, 1));
	say_cost(&m, "suspend it again", suspend(by, target, ids, 1, GRACE_DEFAULT));
	ids[1] = 1;
	say_cost(&m, "suspend two", suspend(by, target, ids, 2, 255));
	say_cost(&m, "resume one", resume(by, target, ids, 1));
	say_cost(&m, "resume it again", resume(by, target, ids, 1));
	say_cost(&m, "resume all", resume_all(by, target));
	say_cost(&m, "launch mode", dbg_plain(by, target, KFD_IOC_DBG_TRAP_SET_WAVE_LAUNCH_MODE));
	say_cost(&m, "override", dbg_plain(by, target, KFD_IOC_DBG_TRAP_SET_WAVE_LAUNCH_OVERRIDE));
	say_cost(&m, "flags", dbg_plain(by, target, KFD_IOC_DBG_TRAP_SET_FLAGS));
	say_cost(&m, "disable", disable(by, target));
}

static void watch_points(struct world *w)
{
	struct session s = attached(w, 1);
	struct kfd_ioctl_dbg_trap_args args = { .set_node_address_watch.gpu_id = gpu_id(w) };
	struct meter m = meter(w);
	int r;

	for (uint32_t i = 0; i < 5; i++) {
		r = dbg(me(s.debugger), s.target->pid, KFD_IOC_DBG_TRAP_SET_NODE_ADDRESS_WATCH,
			&args);
		say(w, "watch point %d", (int)args.set_node_address_watch.id);
		say_cost(&m, "set", r);
	}
	args.clear_node_address_watch.gpu_id = gpu_id(w);
	args.clear_node_address_watch.id = 2;
	for (uint32_t i = 0; i < 2; i++) {
		r = dbg(me(s.debugger), s.target->pid, KFD_IOC_DBG_TRAP_CLEAR_NODE_ADDRESS_WATCH,
			&args);
		say_cost(&m, "clear", r);
	}
	say_cost(&m, "disable", disable(me(s.debugger), s.target));
}

static void ends(struct world *w)
{
	struct session s = attached(w, 2);
	struct actor *bystander = kfd_actor(w, "bystander");
	struct meter m;

	acquire_vm(bystander);
	add_queues(bystander, 1);
	suspend(me(s.debugger), s.target, s.ids, 1, GRACE_DEFAULT);
	m = meter(w);
	kill_actor(s.debugger);
	say_cost(&m, "the debugger died:", 0);
	kill_actor(s.target);
	say_cost(&m, "the target died:", 0);
}

static void held_to_disable(struct world *w)
{
	struct session s = attached(w, 2);
	struct meter m;

	suspend(me(s.debugger), s.target, s.ids, 2, GRACE_DEFAULT);
	m = meter(w);
	say_cost(&m, "disable", disable(me(s.debugger), s.target));
}

static void no_queues(struct world *w)
{
	struct session s = attached(w, 0);
	struct meter m = meter(w);

	say_cost(&m, "disable", disable(me(s.debugger), s.target));
	say_cost(&m, "enable", enable(me(s.debugger), s.target, 0));
}

static void pause_all(struct world *w)
{
	struct actor *a = kfd_actor(w, "self");
	struct actor *b = kfd_actor(w, "bystander");
	struct kfd_ioctl_criu_args c = { .op = KFD_CRIU_OP_PROCESS_INFO };
	struct meter m;

	acquire_vm(a);
	acquire_vm(b);
	add_queues(a, 3);
	add_queues(b, 1);
	m = meter(w);
	say_cost(&m, "pause", call(me(a), AMDKFD_IOC_CRIU_OP, &c));
	say_cost(&m, "pause again", call(me(a), AMDKFD_IOC_CRIU_OP, &c));
	c.op = KFD_CRIU_OP_UNPAUSE;
	say_cost(&m, "unpause", call(me(a), AMDKFD_IOC_CRIU_OP, &c));
	c.op = KFD_CRIU_OP_PROCESS_INFO;
	say_cost(&m, "pause of the other", call(me(b), AMDKFD_IOC_CRIU_OP, &c));
	c.op = KFD_CRIU_OP_UNPAUSE;
	say_cost(&m, "unpause of the other", call(me(b), AMDKFD_IOC_CRIU_OP, &c));
}

const struct conformance_case costs_cases[] = {
	{ "costs/owner", owner },
	{ "costs/session", session },
	{ "costs/watch_points", watch_points },
	{ "costs/ends", ends },
	{ "costs/held_to_disable", held_to_disable },
	{ "costs/no_queues", no_queues },
	{ "costs/pause", pause_all },
	{ NULL, NULL },
};
