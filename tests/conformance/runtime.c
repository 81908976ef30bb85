/* SPDX-License-Identifier: MIT */
/* RUNTIME_ENABLE and its handshake with a debugger. */
#include <inttypes.h>

#include "tests/conformance/topics.h"

static void alone(struct world *w)
{
	struct actor *a = kfd_actor(w, "self");

	say(w, "off %s", text_of(runtime(me(a), 0)));
	say(w, "on %s", text_of(runtime(me(a), 1)));
	say(w, "on again %s", text_of(runtime(me(a), 1)));
	say(w, "with TTMPs %s", text_of(runtime(me(a), 3)));
	say(w, "off %s", text_of(runtime(me(a), 0)));
	say(w, "off again %s", text_of(runtime(me(a), 0)));
	say(w, "on %s", text_of(runtime(me(a), 1)));
	say(w, "by another thread %s", text_of(runtime(second(a), 1)));
}

static void modes(struct world *w)
{
	static const uint32_t modes[] = { 0, 1, 2, 3, 4, 5, 0x80000000, UINT32_MAX };

	for (size_t i = 0; i < 4; i++) {
		struct actor *a = kfd_actor(w, "self");
		struct kfd_runtime_info info;
		int r = runtime(me(a), modes[i]);
		int e = enable_info(me(a), a, 0, &info);

		say(w, "mode %u: %s, enable %s state %u ttmp %u", modes[i], text_of(r), text_of(e),
		    info.runtime_state, info.ttmp_setup);
		kill_actor(a);
	}
	for (size_t i = 4; i < ARRAY_SIZE(modes); i++) {
		struct actor *a = kfd_actor(w, "self");

		say(w, "mode %x: %s", modes[i], text_of(runtime(me(a), modes[i])));
		kill_actor(a);
	}
}

static void r_debug(struct world *w)
{
	struct actor *a = kfd_actor(w, "self");
	struct kfd_ioctl_runtime_enable_args args = {
		.r_debug = 0x1122334455667788,
		.mode_mask = 1,
		.capabilities_mask = 0xabcd,
	};
	struct kfd_runtime_info info;
	int r = call(me(a), AMDKFD_IOC_RUNTIME_ENABLE, &args);

	say(w, "%s capabilities %x", text_of(r), args.capabilities_mask);
	r = enable_info(me(a), a, 0, &info);
	say(w, "enable %s r_debug %" PRIx64 " state %u", text_of(r), info.r_debug,
	    info.runtime_state);
	disable(me(a), a);
	say(w, "off %s", text_of(runtime(me(a), 0)));
	r = enable_info(me(a), a, 0, &info);
	say(w, "enable %s r_debug %" PRIx64 " state %u", text_of(r), info.r_debug,
	    info.runtime_state);
}

static void with_queues(struct world *w)
{
	struct actor *a = kfd_actor(w, "self");

	acquire_vm(a);
	add_queues(a, 1);
	say(w, "on with a queue %s", text_of(runtime(me(a), 1)));
	destroy_queue(me(a), 0);
	say(w, "on without %s", text_of(runtime(me(a), 1)));
	add_queues(a, 1);
	say(w, "off with a queue %s", text_of(runtime(me(a), 0)));
	say(w, "on with a queue %s", text_of(runtime(me(a), 1)));
}

/* ---- with a debugger ---- */

static struct session waiting(struct world *w)
{
	struct session s = { .target = kfd_actor(w, "target"),
			     .debugger = kfd_actor(w, "debugger") };

	seize(me(s.debugger), s.target);
	enable(me(s.debugger), s.target, RUNTIME);
	return s;
}

static void handshake(struct world *w)
{
	struct session s = waiting(w);

	say(w, "on %s", text_of(runtime(me(s.target), 1)));
	say_events(w, "still", later(me(s.target)));
	say(w, "send %s", text_of(send_runtime(me(s.debugger), s.target)));
	say(w, "on %s", text_of(later(me(s.target))));
	say(w, "off %s", text_of(runtime(me(s.target), 0)));
	say(w, "events %d", dots(w));
	say(w, "send %s", text_of(send_runtime(me(s.debugger), s.target)));
	say(w, "off %s", text_of(later(me(s.target))));
}

static void sent_ahead(struct world *w)
{
	struct session s = waiting(w);

	send_runtime(me(s.debugger), s.target);
	send_runtime(me(s.debugger), s.target);
	say(w, "on %s", text_of(runtime(me(s.target), 1)));
	say(w, "off %s", text_of(runtime(me(s.target), 0)));
	say(w, "on %s", text_of(runtime(me(s.target), 1)));
	say(w, "events %d", dots(w));
}

static void interrupted(struct world *w)
{
	struct session s = waiting(w);

	say(w, "on %s", text_of(runtime(me(s.target), 1)));
	interrupt(me(s.target));
	say(w, "a signal %s", text_of(later(me(s.target))));
	say_events(w, "on again", runtime(me(s.target), 1));
	send_runtime(me(s.debugger), s.target);
	say(w, "sent %s", text_of(later(me(s.target))));
	say(w, "off %s", text_of(runtime(me(s.target), 0)));
	interrupt(me(s.target));
	say(w, "a signal %s", text_of(later(me(s.target))));
	say_events(w, "off again", runtime(me(s.target), 0));
	send_runtime(me(s.debugger), s.target);
	say(w, "sent %s", text_of(later(me(s.target))));
}

static void state_while_waiting(struct world *w)
{
	struct session s = waiting(w);

	runtime(me(s.target), 1);
	say(w, "launch mode %s",
	    text_of(dbg_plain(me(s.debugger), s.target, KFD_IOC_DBG_TRAP_SET_WAVE_LAUNCH_MODE)));
	say(w, "on by another thread %s", text_of(runtime(second(s.target), 1)));
	send_runtime(me(s.debugger), s.target);
	say(w, "sent %s", text_of(later(me(s.target))));
}

static void debugger_disables(struct world *w)
{
	struct session s = waiting(w);

	say(w, "on %s", text_of(runtime(me(s.target), 1)));
	say(w, "disable %s", text_of(disable(me(s.debugger), s.target)));
	say(w, "still %s", text_of(later(me(s.target))));
	interrupt(me(s.target));
	say(w, "a signal %s", text_of(later(me(s.target))));
	say(w, "on again %s", text_of(runtime(me(s.target), 1)));
	say(w, "and again %s", text_of(runtime(me(s.target), 1)));
}

static void debugger_dies(struct world *w)
{
	struct session s = waiting(w);

	say(w, "on %s", text_of(runtime(me(s.target), 1)));
	kill_actor(s.debugger);
	say(w, "still %s", text_of(later(me(s.target))));
	interrupt(me(s.target));
	say(w, "a signal %s", text_of(later(me(s.target))));
	say(w, "on again %s", text_of(runtime(me(s.target), 1)));
	say(w, "and again %s", text_of(runtime(me(s.target), 1)));
}

static void target_dies_waiting(struct world *w)
{
	struct session s = waiting(w);

	say(w, "on %s", text_of(runtime(me(s.target), 1)));
	kill_actor(s.target);
	say(w, "send %s", text_of(send_runtime(me(s.debugger), s.target)));
}

static void debugs_itself(struct world *w)
{
	struct actor *a = kfd_actor(w, "self");

	enable(me(a), a, RUNTIME);
	say(w, "on %s", text_of(runtime(me(a), 1)));
	say(w, "send by another thread %s", text_of(send_runtime(second(a), a)));
	say(w, "on %s", text_of(later(me(a))));
}

static void off_while_held(struct world *w)
{
	struct session s = attached(w, 2);

	say_active("suspend", suspend(me(s.debugger), s.target, s.ids, 2, GRACE_DEFAULT),
		   me(s.target), 2);
	say_active("off", runtime(me(s.target), 0), second(s.target), 2);
	send_runtime(me(s.debugger), s.target);
	say_active("sent", later(me(s.target)), me(s.target), 2);
	say(w, "resume %s", text_of(resume_all(me(s.debugger), s.target)));
}

static void unsubscribed(struct world *w)
{
	struct session s = { .target = kfd_actor(w, "target"),
			     .debugger = kfd_actor(w, "debugger") };

	seize(me(s.debugger), s.target);
	enable(me(s.debugger), s.target, NEW);
	say_events(w, "on", runtime(me(s.target), 1));
	send_runtime(me(s.debugger), s.target);
	say(w, "sent %s", text_of(later(me(s.target))));
}

const struct conformance_case runtime_cases[] = {
	{ "runtime/alone", alone },
	{ "runtime/modes", modes },
	{ "runtime/r_debug", r_debug },
	{ "runtime/with_queues", with_queues },
	{ "runtime/handshake", handshake },
	{ "runtime/sent_ahead", sent_ahead },
	{ "runtime/interrupted", interrupted },
	{ "runtime/state_while_waiting", state_while_waiting },
	{ "runtime/debugger_disables", debugger_disables },
	{ "runtime/debugger_dies", debugger_dies },
	{ "runtime/target_dies_waiting", target_dies_waiting },
	{ "runtime/debugs_itself", debugs_itself },
	{ "runtime/off_while_held", off_while_held },
	{ "runtime/unsubscribed", unsubscribed },
	{ NULL, NULL },
};
