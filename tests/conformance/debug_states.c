/* SPDX-License-Identifier: MIT */
/* Every debug operation in every state of its target. */
#include "tests/conformance/ops.h"
#include "tests/conformance/topics.h"

static struct session strangers(struct world *w)
{
	return (struct session){ .target = actor(w, "target"),
				 .debugger = kfd_actor(w, "debugger") };
}

/* A target that never opened the device. */
static void no_kfd_process(struct world *w, enum ops_how how)
{
	struct session s = strangers(w);

	say_ops(me(s.debugger), s.target, how, true, "not traced");
	say(w, "not traced: enable %s", text_of(enable_without_fd(me(s.debugger), s.target)));
	seize(me(s.debugger), s.target);
	say_ops(me(s.debugger), s.target, how, true, "traced");
	say(w, "traced: enable %s", text_of(enable_without_fd(me(s.debugger), s.target)));
	say_ops(me(s.debugger), s.target, how, true, "after that");
}

static void no_kfd_process_empty(struct world *w)
{
	no_kfd_process(w, OPS_EMPTY);
}

static void no_kfd_process_sensible(struct world *w)
{
	no_kfd_process(w, OPS_SENSIBLE);
}

/* The life of a session, with all operations at each station. */
static void stations(struct world *w, enum ops_how how)
{
	struct session s = strangers(w);
	struct who by = me(s.debugger);

	open_kfd(s.target);
	say_ops(by, s.target, how, true, "not traced");
	say(w, "not traced: enable %s", text_of(enable_without_fd(by, s.target)));
	seize(by, s.target);
	say_ops(by, s.target, how, true, "not enabled");
	say(w, "not enabled: enable %s", text_of(enable_without_fd(by, s.target)));
	say(w, "enable %s", text_of(enable(by, s.target, 0)));
	say_ops(by, s.target, how, false, "runtime off");
	say(w, "runtime off: enable %s", text_of(enable_without_fd(by, s.target)));
	send_runtime(by, s.target);
	say(w, "runtime on %s", text_of(runtime(me(s.target), 1)));
	say_ops(by, s.target, how, true, "runtime on");
	say_ops(by, s.target, how, true, "disabled");
	say(w, "disabled: enable %s", text_of(enable_without_fd(by, s.target)));
}

static void stations_empty(struct world *w)
{
	stations(w, OPS_EMPTY);
}

static void stations_sensible(struct world *w)
{
	stations(w, OPS_SENSIBLE);
}

static void with_queues(struct world *w)
{
	struct session s = attached(w, 2);

	say_ops(me(s.debugger), s.target, OPS_SENSIBLE, true, "two queues");
	say_ops(me(s.debugger), s.target, OPS_SENSIBLE, true, "disabled");
	say(w, "enable %s", text_of(enable(me(s.debugger), s.target, 0)));
	say_ops(me(s.debugger), s.target, OPS_SENSIBLE, false, "enabled again");
}

static void runtime_off_again(struct world *w)
{
	struct session s = attached(w, 1);

	send_runtime(me(s.debugger), s.target);
	say(w, "runtime off %s", text_of(runtime(me(s.target), 0)));
	say_ops(me(s.debugger), s.target, OPS_SENSIBLE, true, "off again");
}

static void one_by_itself(struct world *w)
{
	struct actor *a = kfd_actor(w, "self");

	say_ops(me(a), a, OPS_SENSIBLE, true, "not enabled");
	say(w, "enable %s", text_of(enable(me(a), a, 0)));
	say_ops(second(a), a, OPS_SENSIBLE, false, "runtime off");
	send_runtime(second(a), a);
	say(w, "runtime on %s", text_of(runtime(me(a), 1)));
	say_ops(second(a), a, OPS_SENSIBLE, true, "runtime on");
}

/* Chips that debug one process at a time say so in the second one's runtime state. */
static void second_session(struct world *w)
{
	struct session s = attached(w, 1);
	struct actor *other = kfd_actor(w, "other");
	struct kfd_runtime_info info;
	int r;

	runtime(me(other), 1);
	seize(me(s.debugger), other);
	r = enable_info(me(s.debugger), other, 0, &info);
	say(w, "enable %s state %u", text_of(r), info.runtime_state);
	say_ops(me(s.debugger), other, OPS_SENSIBLE, true, "second");
	say(w, "first: disable %s", text_of(disable(me(s.debugger), s.target)));
	r = enable_info(me(s.debugger), other, 0, &info);
	say(w, "enable %s state %u", text_of(r), info.runtime_state);
}

static void pids(struct world *w)
{
	struct actor *a = kfd_actor(w, "self");
	struct kfd_ioctl_dbg_trap_args args = { 0 };
	static const pid_t none[] = { 0, -1, 0x7fffffff, 1 };

	for (size_t i = 0; i < ARRAY_SIZE(none); i++)
		say(w, "pid %d: %s", none[i],
		    text_of(dbg(me(a), none[i], KFD_IOC_DBG_TRAP_GET_QUEUE_SNAPSHOT, &args)));
	say(w, "enable %s", text_of(enable(second(a), a, 0)));
	args.queue_snapshot.entry_size = 64;
	say(w, "named by its other thread: %s",
	    text_of(dbg(me(a), a->tids[1], KFD_IOC_DBG_TRAP_GET_QUEUE_SNAPSHOT, &args)));
}

static void op_numbers(struct world *w)
{
	static const uint32_t ops[] = { 15, 16, 0xff, 0x80000000, UINT32_MAX };
	struct session s = attached(w, 0);

	for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
		say(w, "op %u: %s", ops[i], text_of(dbg_plain(me(s.debugger), s.target, ops[i])));
}

const struct conformance_case debug_state_cases[] = {
	{ "debug_states/no_kfd_process_empty", no_kfd_process_empty },
	{ "debug_states/no_kfd_process_sensible", no_kfd_process_sensible },
	{ "debug_states/stations_empty", stations_empty },
	{ "debug_states/stations_sensible", stations_sensible },
	{ "debug_states/with_queues", with_queues },
	{ "debug_states/runtime_off_again", runtime_off_again },
	{ "debug_states/one_by_itself", one_by_itself },
	{ "debug_states/second_session", second_session },
	{ "debug_states/pids", pids },
	{ "debug_states/op_numbers", op_numbers },
	{ NULL, NULL },
};
