/* SPDX-License-Identifier: MIT */
/* A process on two GPUs, or with queues on one of them only. */
#include <inttypes.h>

#include "tests/conformance/topics.h"

#define AQL KFD_IOC_QUEUE_TYPE_COMPUTE_AQL

/* One queue on the first GPU, so many on the second; all acknowledged. */
static struct session on_both(struct world *w, uint32_t first, uint32_t second)
{
	struct session s = attached(w, first);

	for (uint32_t i = 0; i < second; i++)
		add_queue_on(s.target, 1, AQL);
	snapshot(me(s.debugger), s.target, NEW);
	dots(w);
	return s;
}

static void give_ids(struct session *s)
{
	for (uint32_t i = 0; i < 8; i++)
		s->ids[i] = i;
}

static void try(struct session *s, struct meter *m, const char *what, uint32_t from, uint32_t n)
{
	struct world *w = s->target->w;
	int r;

	give_ids(s);
	r = suspend(me(s->debugger), s->target, s->ids + from, n, GRACE_DEFAULT);
	say_ids(w, what, r, s->ids + from, n);
	say(w, "active %s", active(me(s->target), 4));
	say_cost(m, "suspend", 0);
}

static void lists(struct world *w)
{
	struct session s = on_both(w, 2, 2);
	struct meter m = meter(w);

	try(&s, &m, "on the first", 0, 1);
	say_cost(&m, "resume all", resume_all(me(s.debugger), s.target));
	try(&s, &m, "on the second", 2, 1);
	say_cost(&m, "resume all", resume_all(me(s.debugger), s.target));
	try(&s, &m, "one on each", 1, 2);
	give_ids(&s);
	say_cost(&m, "resume the second's", resume(me(s.debugger), s.target, s.ids + 2, 1));
	say(w, "active %s", active(me(s.target), 4));
	say_cost(&m, "resume all", resume_all(me(s.debugger), s.target));
	try(&s, &m, "all and one that is not", 0, 5);
	give_ids(&s);
	say_ids(w, "resume", resume(me(s.debugger), s.target, s.ids, 5), s.ids, 5);
	say_cost(&m, "that", 0);
	say(w, "active %s", active(me(s.target), 4));
}

static void second_only(struct world *w)
{
	struct session s = on_both(w, 0, 2);
	struct meter m = meter(w);
	struct who by = me(s.debugger);

	say_ids(w, "suspend", suspend(by, s.target, s.ids, 2, GRACE_DEFAULT), s.ids, 2);
	say_cost(&m, "that", 0);
	say_active("active", 0, me(s.target), 2);
	say_cost(&m, "disable", disable(by, s.target));
	say_cost(&m, "enable", enable(by, s.target, NEW));
	say_cost(&m, "destroy", destroy_queue(me(s.target), 0));
}

static void new_on_one(struct world *w)
{
	struct session s = on_both(w, 1, 0);

	say(w, "id %u", add_queue_on(s.target, 1, AQL));
	give_ids(&s);
	say_ids(w, "suspend", suspend(me(s.debugger), s.target, s.ids, 2, GRACE_DEFAULT), s.ids, 2);
	say(w, "active %s", active(me(s.target), 2));
}

static void session(struct world *w)
{
	struct actor *target = kfd_actor(w, "target"), *debugger = kfd_actor(w, "debugger");
	struct meter m;

	acquire_vm(target);
	runtime(me(target), 1);
	m = meter(w);
	say_cost(&m, "queue on the first", (int)add_queue_on(target, 0, AQL));
	say_cost(&m, "queue on the second", (int)add_queue_on(target, 1, AQL));
	seize(me(debugger), target);
	say_cost(&m, "enable", enable(me(debugger), target, NEW));
	say_cost(&m, "launch mode",
		 dbg_plain(me(debugger), target, KFD_IOC_DBG_TRAP_SET_WAVE_LAUNCH_MODE));
	say_cost(&m, "flags", dbg_plain(me(debugger), target, KFD_IOC_DBG_TRAP_SET_FLAGS));
	say_cost(&m, "disable", disable(me(debugger), target));
	kill_actor(target);
	say_cost(&m, "the target died", 0);
}

static void events(struct world *w)
{
	struct session s = on_both(w, 1, 0);
	struct kfd_ioctl_dbg_trap_query_debug_event_args e;
	int r;

	add_queue_on(s.target, 1, AQL);
	r = query_event(me(s.debugger), s.target, NEW, &e);
	say(w, "new %s gpu %u queue %u mask %" PRIx64, text_of(r), e.gpu_id, e.queue_id,
	    (uint64_t)e.exception_mask);
	destroy_queue(me(s.target), 1);
	r = query_event(me(s.debugger), s.target, DELETED, &e);
	say(w, "deleted %s gpu %u queue %u mask %" PRIx64, text_of(r), e.gpu_id, e.queue_id,
	    (uint64_t)e.exception_mask);
}

static void snapshots(struct world *w)
{
	struct session s = on_both(w, 1, 1);
	struct kfd_queue_snapshot_entry *q = arena(w, 4 * sizeof(*q));
	struct kfd_dbg_device_info_entry *d = arena(w, 4 * sizeof(*d));
	struct kfd_ioctl_dbg_trap_args args = {
		.queue_snapshot = {
			.snapshot_buf_ptr = (uintptr_t)q,
			.num_queues = 4,
			.entry_size = sizeof(*q),
		},
	};
	int r = dbg(me(s.debugger), s.target->pid, KFD_IOC_DBG_TRAP_GET_QUEUE_SNAPSHOT, &args);

	say(w, "queues %s: %u, gpu %u gpu %u", text_of(r), args.queue_snapshot.num_queues,
	    q[0].gpu_id, q[1].gpu_id);
	for (uint32_t n = 0; n < 4; n++) {
		args.device_snapshot = (struct kfd_ioctl_dbg_trap_device_snapshot_args){
			.snapshot_buf_ptr = (uintptr_t)d,
			.num_devices = n,
			.entry_size = sizeof(*d),
		};
		d[0].gpu_id = d[1].gpu_id = 0;
		r = dbg(me(s.debugger), s.target->pid, KFD_IOC_DBG_TRAP_GET_DEVICE_SNAPSHOT, &args);
		say(w, "devices, room for %u: %s: %u, gpu %u gpu %u", n, text_of(r),
		    args.device_snapshot.num_devices, d[0].gpu_id, d[1].gpu_id);
	}
}

static void pause_all(struct world *w)
{
	struct session s = on_both(w, 1, 1);
	struct kfd_ioctl_criu_args c = { .op = KFD_CRIU_OP_PROCESS_INFO };
	struct meter m = meter(w);

	say_cost(&m, "pause", call(me(s.target), AMDKFD_IOC_CRIU_OP, &c));
	say(w, "devices %u objects %u active %s", c.num_devices, c.num_objects,
	    active(me(s.target), 2));
	c.op = KFD_CRIU_OP_UNPAUSE;
	say_cost(&m, "unpause", call(me(s.target), AMDKFD_IOC_CRIU_OP, &c));
	say(w, "active %s", active(me(s.target), 2));
}

static void watch_points(struct world *w)
{
	struct session s = on_both(w, 1, 1);
	struct meter m = meter(w);

	for (uint32_t gpu = 0; gpu < 2; gpu++) {
		struct kfd_ioctl_dbg_trap_args args = {
			.set_node_address_watch = {
				.address = 0x10000,
				.gpu_id = w->gpu_ids[gpu],
			},
		};
		int r = dbg(me(s.debugger), s.target->pid, KFD_IOC_DBG_TRAP_SET_NODE_ADDRESS_WATCH,
			    &args);

		say(w, "gpu %u: id %u", w->gpu_ids[gpu], args.set_node_address_watch.id);
		say_cost(&m, "set", r);
	}
	say_cost(&m, "disable", disable(me(s.debugger), s.target));
}

/* The reset of one takes a process off all of them. */
static void one_is_reset(struct world *w)
{
	struct session s = on_both(w, 1, 1);

	w->ops->break_gpu(w, FAULT_STUCK_QUEUE, s.target, 0);
	give_ids(&s);
	say_ids(w, "suspend the second's",
		suspend(me(s.debugger), s.target, s.ids + 1, 1, GRACE_DEFAULT), s.ids + 1, 1);
	say_ids(w, "suspend the first's",
		suspend(me(s.debugger), s.target, s.ids, 1, GRACE_DEFAULT), s.ids, 1);
	w->ops->await_reset(w);
	say(w, "active %s", active(me(s.target), 2));
	say_active("resume all", resume_all(me(s.debugger), s.target), me(s.target), 2);
	say(w, "destroy the second's %s", text_of(destroy_queue(me(s.target), 1)));
}

const struct conformance_case two_gpu_cases[] = {
	{ "two_gpus/lists", lists },
	{ "two_gpus/second_only", second_only },
	{ "two_gpus/new_on_one", new_on_one },
	{ "two_gpus/session", session },
	{ "two_gpus/events", events },
	{ "two_gpus/snapshots", snapshots },
	{ "two_gpus/pause", pause_all },
	{ "two_gpus/watch_points", watch_points },
	{ "two_gpus/one_is_reset", one_is_reset },
	{ NULL, NULL },
};
