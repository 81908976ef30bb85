/* SPDX-License-Identifier: MIT */
/* Every debug operation by every kind of caller. */
#include "tests/conformance/ops.h"
#include "tests/conformance/topics.h"

static void self(struct world *w)
{
	struct actor *a = kfd_actor(w, "self");

	acquire_vm(a);
	runtime(me(a), 1);
	add_queues(a, 1);
	say(w, "enable %s", text_of(enable(me(a), a, NEW)));
	say_ops(me(a), a, OPS_SENSIBLE, false, "by the leader");
	say_ops(second(a), a, OPS_SENSIBLE, true, "by another thread");
}

/* The one that traces may call at once, others of its process once it has enabled. */
static void threads_of_the_tracer(struct world *w)
{
	struct actor *target = kfd_actor(w, "target");
	struct actor *debugger = kfd_actor(w, "debugger");

	runtime(me(target), 1);
	seize(me(debugger), target);
	say(w, "enable by another thread %s", text_of(enable(second(debugger), target, 0)));
	say_ops(second(debugger), target, OPS_SENSIBLE, true, "by another thread, before");
	say(w, "enable by the tracer %s", text_of(enable(me(debugger), target, 0)));
	say_ops(second(debugger), target, OPS_SENSIBLE, false, "by another thread, after");
	say(w, "enable by another thread %s", text_of(enable(second(debugger), target, 0)));
	say_ops(me(debugger), target, OPS_SENSIBLE, false, "by the tracer");
	say(w, "disable by another thread %s", text_of(disable(second(debugger), target)));
	say(w, "and then: enable by another thread %s",
	    text_of(enable(second(debugger), target, 0)));
	disable(me(debugger), target);
}

static void not_the_leader(struct world *w)
{
	struct actor *target = kfd_actor(w, "target");
	struct actor *debugger = kfd_actor(w, "debugger");

	runtime(me(target), 1);
	seize(second(debugger), target);
	say(w, "leader while another thread traces: enable %s",
	    text_of(enable(me(debugger), target, 0)));
	say(w, "the tracing thread: enable %s", text_of(enable(second(debugger), target, 0)));
	say_ops(me(debugger), target, OPS_SENSIBLE, false, "leader after that");
	say_ops(second(debugger), target, OPS_SENSIBLE, true, "the tracing thread");
}

static void after_detach(struct world *w)
{
	struct session s = attached(w, 1);

	say(w, "detach %s", text_of(detach(me(s.debugger), s.target)));
	say_ops(me(s.debugger), s.target, OPS_SENSIBLE, false, "detached");
	say_ops(second(s.debugger), s.target, OPS_SENSIBLE, false, "its other thread");
	say(w, "enable %s", text_of(enable(me(s.debugger), s.target, 0)));
	say(w, "disable %s", text_of(disable(me(s.debugger), s.target)));
	say(w, "enable %s", text_of(enable(me(s.debugger), s.target, 0)));
	say(w, "seize %s", text_of(seize(me(s.debugger), s.target)));
	say(w, "disable %s", text_of(disable(me(s.debugger), s.target)));
	say(w, "enable %s", text_of(enable(me(s.debugger), s.target, 0)));
}

static void tracer_thread_ends(struct world *w)
{
	struct actor *target = kfd_actor(w, "target");
	struct actor *debugger = kfd_actor(w, "debugger");

	runtime(me(target), 1);
	seize(second(debugger), target);
	say(w, "enable %s", text_of(enable(second(debugger), target, 0)));
	end_thread(debugger);
	say_ops(me(debugger), target, OPS_SENSIBLE, false, "what is left of it");
}

static void stranger(struct world *w)
{
	struct session s = attached(w, 1);
	struct actor *other = kfd_actor(w, "stranger");

	say_ops(me(other), s.target, OPS_SENSIBLE, true, "stranger");
	say(w, "enable %s", text_of(enable(me(other), s.target, 0)));
	say_ops(me(s.debugger), s.target, OPS_SENSIBLE, false, "debugger");
}

/* The target may always speak for itself, whoever debugs it. */
static void target_of_another(struct world *w)
{
	struct session s = attached(w, 1);

	say(w, "enable %s", text_of(enable(me(s.target), s.target, 0)));
	say_ops(me(s.target), s.target, OPS_SENSIBLE, false, "the target");
	say_ops(me(s.debugger), s.target, OPS_SENSIBLE, false, "the debugger");
	say(w, "the target: disable %s", text_of(disable(me(s.target), s.target)));
	say_ops(me(s.debugger), s.target, OPS_SENSIBLE, true, "the debugger");
}

static void debugger_without_kfd(struct world *w)
{
	struct actor *target = kfd_actor(w, "target");
	struct actor *debugger = actor(w, "debugger");

	seize(me(debugger), target);
	say(w, "open %s", text_of(open_kfd(debugger)));
	say(w, "enable %s", text_of(enable(me(debugger), target, 0)));
	say_ops(me(debugger), target, OPS_SENSIBLE, true, "debugger");
}

static void ordinary_users(struct world *w)
{
	struct actor *target = actor_of(w, "target", 1000);
	struct actor *debugger = actor_of(w, "debugger", 1000);
	struct actor *other = actor_of(w, "other", 2000);

	open_kfd(target);
	open_kfd(debugger);
	open_kfd(other);
	runtime(me(target), 1);
	say(w, "another user: seize %s", text_of(seize(me(other), target)));
	say(w, "another user: enable %s", text_of(enable(me(other), target, 0)));
	say_ops(me(other), target, OPS_SENSIBLE, true, "another user");
	say(w, "enable untraced %s", text_of(enable(me(debugger), target, 0)));
}

static void thread_id_of_the_target(struct world *w)
{
	struct session s = attached(w, 1);
	struct kfd_ioctl_dbg_trap_args args = { .queue_snapshot.entry_size = 64 };
	int r;

	runtime(second(s.target), 1);
	r = dbg(me(s.debugger), s.target->tids[1], KFD_IOC_DBG_TRAP_GET_QUEUE_SNAPSHOT, &args);
	say(w, "snapshot by the id of a thread %s queues %u", text_of(r),
	    args.queue_snapshot.num_queues);
}

const struct conformance_case debug_caller_cases[] = {
	{ "debug_callers/self", self },
	{ "debug_callers/threads_of_the_tracer", threads_of_the_tracer },
	{ "debug_callers/not_the_leader", not_the_leader },
	{ "debug_callers/after_detach", after_detach },
	{ "debug_callers/tracer_thread_ends", tracer_thread_ends },
	{ "debug_callers/stranger", stranger },
	{ "debug_callers/target_of_another", target_of_another },
	{ "debug_callers/debugger_without_kfd", debugger_without_kfd },
	{ "debug_callers/ordinary_users", ordinary_users },
	{ "debug_callers/thread_id_of_the_target", thread_id_of_the_target },
	{ NULL, NULL },
};
