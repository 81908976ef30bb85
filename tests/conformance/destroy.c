/* SPDX-License-Identifier: MIT */
/* DESTROY_QUEUE, and that of a queue somebody holds. */
#include "tests/conformance/topics.h"

static void ids(struct world *w)
{
	struct actor *a = kfd_actor(w, "self");
	struct actor *other = kfd_actor(w, "other");

	say(w, "none %s", text_of(destroy_queue(me(a), 0)));
	acquire_vm(a);
	add_queues(a, 2);
	say(w, "no such %s", text_of(destroy_queue(me(a), NO_ID)));
	say(w, "2^32-1 %s", text_of(destroy_queue(me(a), UINT32_MAX)));
	say(w, "of another process %s", text_of(destroy_queue(me(other), 0)));
	say(w, "by another thread %s", text_of(destroy_queue(second(a), 0)));
	say(w, "twice %s", text_of(destroy_queue(me(a), 0)));
	say_active("the other one", destroy_queue(me(a), NO_ID), me(a), 2);
}

static void hold(struct session *s)
{
	for (uint32_t i = 0; i < 2; i++)
		s->ids[i] = i;
	suspend(me(s->debugger), s->target, s->ids, 2, GRACE_DEFAULT);
}

static void held(struct world *w)
{
	struct session s = attached(w, 2);

	hold(&s);
	say(w, "destroy %s", text_of(destroy_queue(me(s.target), 0)));
	say(w, "again by another thread %s", text_of(destroy_queue(second(s.target), 0)));
	say(w, "snapshot %s", text_of(snapshot(me(s.debugger), s.target, 0)));
	say_active("still", later(me(s.target)), second(s.target), 2);
	say(w, "resume %s", text_of(resume_all(me(s.debugger), s.target)));
	say_active("destroy", later(me(s.target)), me(s.target), 2);
	say_events(w, "snapshot", snapshot(me(s.debugger), s.target, 0));
}

static void other_queue_resumed(struct world *w)
{
	struct session s = attached(w, 2);

	hold(&s);
	say(w, "destroy %s", text_of(destroy_queue(me(s.target), 0)));
	say(w, "resume the other %s", text_of(resume(me(s.debugger), s.target, &s.ids[1], 1)));
	say(w, "still %s", text_of(later(me(s.target))));
	s.ids[0] = 0;
	say(w, "resume it %s", text_of(resume(me(s.debugger), s.target, s.ids, 1)));
	say(w, "destroy %s", text_of(later(me(s.target))));
}

static void interrupted(struct world *w)
{
	struct session s = attached(w, 2);

	hold(&s);
	say(w, "destroy %s", text_of(destroy_queue(me(s.target), 0)));
	interrupt(me(s.target));
	say_active("a signal", later(me(s.target)), me(s.target), 2);
	say_ids(w, "suspend", suspend(me(s.debugger), s.target, s.ids, 2, GRACE_DEFAULT), s.ids, 2);
	say(w, "destroy %s", text_of(destroy_queue(me(s.target), 0)));
	resume_all(me(s.debugger), s.target);
	say(w, "destroy %s", text_of(later(me(s.target))));
}

static void suspended_again_meanwhile(struct world *w)
{
	struct session s = attached(w, 2);

	hold(&s);
	destroy_queue(me(s.target), 0);
	say_ids(w, "suspend", suspend(me(s.debugger), s.target, s.ids, 2, GRACE_DEFAULT), s.ids, 2);
	say(w, "resume %s", text_of(resume_all(me(s.debugger), s.target)));
	say(w, "destroy %s", text_of(later(me(s.target))));
}

static void session_disabled(struct world *w)
{
	struct session s = attached(w, 2);

	hold(&s);
	say(w, "destroy %s", text_of(destroy_queue(me(s.target), 0)));
	say(w, "disable %s", text_of(disable(me(s.debugger), s.target)));
	say_active("destroy", later(me(s.target)), me(s.target), 2);
}

static void debugger_dies(struct world *w)
{
	struct session s = attached(w, 2);

	hold(&s);
	say(w, "destroy %s", text_of(destroy_queue(me(s.target), 0)));
	kill_actor(s.debugger);
	say_active("destroy", later(me(s.target)), me(s.target), 2);
}

static void target_dies(struct world *w)
{
	struct session s = attached(w, 2);

	hold(&s);
	say(w, "destroy %s", text_of(destroy_queue(me(s.target), 0)));
	kill_actor(s.target);
	say(w, "resume %s", text_of(resume_all(me(s.debugger), s.target)));
}

static void two_waiting(struct world *w)
{
	struct session s = attached(w, 2);

	hold(&s);
	say(w, "first %s", text_of(destroy_queue(me(s.target), 0)));
	say(w, "second %s", text_of(destroy_queue(second(s.target), 1)));
	say(w, "resume %s", text_of(resume_all(me(s.debugger), s.target)));
	say(w, "first %s", text_of(later(me(s.target))));
	say(w, "second %s", text_of(later(second(s.target))));
	say(w, "queues %s", text_of(snapshot(me(s.debugger), s.target, 0)));
}

static void held_by_itself(struct world *w)
{
	struct actor *a = kfd_actor(w, "self");
	uint32_t *ids_of = arena(w, 64);

	acquire_vm(a);
	runtime(me(a), 1);
	add_queues(a, 1);
	enable(me(a), a, 0);
	snapshot(me(a), a, NEW);
	say_ids(w, "suspend", suspend(me(a), a, ids_of, 1, GRACE_DEFAULT), ids_of, 1);
	say(w, "destroy %s", text_of(destroy_queue(me(a), 0)));
	say(w, "resume by another thread %s", text_of(resume_all(second(a), a)));
	say(w, "destroy %s", text_of(later(me(a))));
}

static void paused(struct world *w)
{
	struct actor *a = kfd_actor(w, "self");
	struct kfd_ioctl_criu_args c = { .op = KFD_CRIU_OP_PROCESS_INFO };

	acquire_vm(a);
	add_queues(a, 2);
	say_active("pause", call(me(a), AMDKFD_IOC_CRIU_OP, &c), me(a), 2);
	say_active("destroy", destroy_queue(me(a), 0), me(a), 2);
	c.op = KFD_CRIU_OP_UNPAUSE;
	say_active("unpause", call(me(a), AMDKFD_IOC_CRIU_OP, &c), me(a), 2);
}

const struct conformance_case destroy_cases[] = {
	{ "destroy/ids", ids },
	{ "destroy/held", held },
	{ "destroy/other_queue_resumed", other_queue_resumed },
	{ "destroy/interrupted", interrupted },
	{ "destroy/suspended_again_meanwhile", suspended_again_meanwhile },
	{ "destroy/session_disabled", session_disabled },
	{ "destroy/debugger_dies", debugger_dies },
	{ "destroy/target_dies", target_dies },
	{ "destroy/two_waiting", two_waiting },
	{ "destroy/held_by_itself", held_by_itself },
	{ "destroy/paused", paused },
	{ NULL, NULL },
};
