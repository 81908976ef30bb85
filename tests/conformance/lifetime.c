/* SPDX-License-Identifier: MIT */
/* What is left of a session when one side goes away or becomes another. */
#include "tests/conformance/topics.h"

static struct session holding(struct world *w)
{
	struct session s = attached(w, 2);

	say_active("suspend", suspend(me(s.debugger), s.target, s.ids, 2, GRACE_DEFAULT),
		   me(s.target), 2);
	return s;
}

static void say_session(struct session *s, const char *what)
{
	say(s->target->w, "%s: snapshot %s", what,
	    text_of(snapshot(me(s->debugger), s->target, 0)));
}

static void tracer_detaches(struct world *w)
{
	struct session s = holding(w);

	say_active("detach", detach(me(s.debugger), s.target), me(s.target), 2);
	say_session(&s, "detached");
	say_active("seize", seize(me(s.debugger), s.target), me(s.target), 2);
	say_active("resume", resume_all(me(s.debugger), s.target), me(s.target), 2);
}

static void tracer_thread_ends(struct world *w)
{
	struct actor *target = kfd_actor(w, "target");
	struct actor *debugger = kfd_actor(w, "debugger");
	uint32_t *ids = arena(w, 64);

	acquire_vm(target);
	runtime(me(target), 1);
	add_queues(target, 1);
	seize(second(debugger), target);
	enable(second(debugger), target, 0);
	snapshot(second(debugger), target, NEW);
	suspend(second(debugger), target, ids, 1, GRACE_DEFAULT);
	end_thread(debugger);
	say_active("the thread ended:", 0, me(target), 1);
	say_active("resume", resume_all(me(debugger), target), me(target), 1);
}

static void debugger_dies(struct world *w)
{
	struct session s = holding(w);
	struct actor *next = kfd_actor(w, "next");

	kill_actor(s.debugger);
	say_active("the debugger died:", 0, me(s.target), 2);
	seize(me(next), s.target);
	say(w, "next: disable %s", text_of(disable(me(next), s.target)));
	say(w, "next: enable %s", text_of(enable(me(next), s.target, NEW)));
	say_ids(w, "next: suspend", suspend(me(next), s.target, s.ids, 2, GRACE_DEFAULT), s.ids, 2);
}

static void debugger_of_two_dies(struct world *w)
{
	struct session s = holding(w);
	struct actor *other = kfd_actor(w, "other");

	seize(me(s.debugger), other);
	say(w, "enable %s", text_of(enable(me(s.debugger), other, 0)));
	kill_actor(s.debugger);
	say_active("the debugger died:", 0, me(s.target), 2);
	say(w, "target: enable %s", text_of(enable(me(s.target), s.target, 0)));
	say(w, "other: enable %s", text_of(enable(me(other), other, 0)));
}

static void debugger_execs(struct world *w)
{
	struct session s = holding(w);

	exec_self(s.debugger);
	say_active("the debugger is another program:", 0, me(s.target), 2);
	say(w, "open %s", text_of(open_kfd(s.debugger)));
	say_session(&s, "it still traces");
	say(w, "enable %s", text_of(enable(me(s.debugger), s.target, 0)));
	say_session(&s, "enabled");
}

static void target_dies(struct world *w)
{
	struct session s = holding(w);
	struct actor *next = kfd_actor(w, "next");

	kill_actor(s.target);
	say_session(&s, "dead");
	say(w, "disable %s", text_of(disable(me(s.debugger), s.target)));
	say(w, "enable %s", text_of(enable(me(s.debugger), s.target, 0)));
	acquire_vm(next);
	add_queues(next, 2);
	say_active("queues of another:", 0, me(next), 2);
}

static void target_execs(struct world *w)
{
	struct session s = holding(w);

	exec_self(s.target);
	say_session(&s, "another program");
	say(w, "disable %s", text_of(disable(me(s.debugger), s.target)));
	say(w, "target: open %s", text_of(open_kfd(s.target)));
	say_session(&s, "opened");
	say(w, "target: runtime on %s", text_of(runtime(me(s.target), 1)));
	say(w, "enable %s", text_of(enable(me(s.debugger), s.target, NEW)));
	acquire_vm(s.target);
	add_queues(s.target, 1);
	say_session(&s, "enabled");
}

static void enable_after_exec(struct world *w)
{
	struct session s = attached(w, 1);

	exec_self(s.target);
	say(w, "enable %s", text_of(enable(me(s.debugger), s.target, 0)));
	say_session(&s, "enabled before it opened");
	send_runtime(me(s.debugger), s.target);
	say(w, "target: open %s", text_of(open_kfd(s.target)));
	say(w, "target: runtime on %s", text_of(runtime(me(s.target), 1)));
}

static void target_forks(struct world *w)
{
	struct session s = holding(w);
	struct actor *child = forked(s.target, "child");

	say(w, "child: snapshot %s", text_of(snapshot(me(s.debugger), child, 0)));
	say(w, "child: enable %s", text_of(enable(me(s.debugger), child, 0)));
	say(w, "child: open %s", text_of(open_kfd(child)));
	say(w, "child: snapshot %s", text_of(snapshot(me(s.debugger), child, 0)));
	say_active("the target:", 0, me(s.target), 2);
	say_active("resume", resume_all(me(s.debugger), s.target), me(s.target), 2);
}

static void debugger_forks(struct world *w)
{
	struct session s = holding(w);
	struct actor *child = forked(s.debugger, "child");

	say(w, "child: open %s", text_of(open_kfd(child)));
	say(w, "child: snapshot %s", text_of(snapshot(me(child), s.target, 0)));
	kill_actor(child);
	say_active("the child died:", 0, me(s.target), 2);
	say_session(&s, "the debugger");
}

static void session_ends_by_itself(struct world *w)
{
	struct session s = holding(w);

	say_active("disable", disable(me(s.debugger), s.target), me(s.target), 2);
	say_session(&s, "disabled");
	say_active("enable", enable(me(s.debugger), s.target, 0), me(s.target), 2);
}

static void self_debugger_execs(struct world *w)
{
	struct actor *a = kfd_actor(w, "self");

	enable(me(a), a, 0);
	exec_self(a);
	say(w, "open %s", text_of(open_kfd(a)));
	say(w, "enable %s", text_of(enable(me(a), a, 0)));
}

static void target_never_opened(struct world *w)
{
	struct actor *target = actor(w, "target");
	struct actor *debugger = kfd_actor(w, "debugger");
	struct kfd_runtime_info info;
	int r;

	seize(me(debugger), target);
	r = enable_info(me(debugger), target, RUNTIME, &info);
	say(w, "enable %s state %u", text_of(r), info.runtime_state);
	say(w, "snapshot %s", text_of(snapshot(me(debugger), target, 0)));
	say(w, "target: open %s", text_of(open_kfd(target)));
	say_events(w, "target: runtime on", runtime(me(target), 1));
	send_runtime(me(debugger), target);
	say(w, "sent %s", text_of(later(me(target))));
	say(w, "disable %s", text_of(disable(me(debugger), target)));
}

static void queue_made_during_a_hold(struct world *w)
{
	struct session s = holding(w);

	add_queues(s.target, 1);
	say_active("made:", 0, me(s.target), 3);
	say_active("resume", resume_all(me(s.debugger), s.target), me(s.target), 3);
}

const struct conformance_case lifetime_cases[] = {
	{ "lifetime/tracer_detaches", tracer_detaches },
	{ "lifetime/tracer_thread_ends", tracer_thread_ends },
	{ "lifetime/debugger_dies", debugger_dies },
	{ "lifetime/debugger_of_two_dies", debugger_of_two_dies },
	{ "lifetime/debugger_execs", debugger_execs },
	{ "lifetime/target_dies", target_dies },
	{ "lifetime/target_execs", target_execs },
	{ "lifetime/enable_after_exec", enable_after_exec },
	{ "lifetime/target_forks", target_forks },
	{ "lifetime/debugger_forks", debugger_forks },
	{ "lifetime/session_ends_by_itself", session_ends_by_itself },
	{ "lifetime/self_debugger_execs", self_debugger_execs },
	{ "lifetime/target_never_opened", target_never_opened },
	{ "lifetime/queue_made_during_a_hold", queue_made_during_a_hold },
	{ NULL, NULL },
};
