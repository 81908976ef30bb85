/* SPDX-License-Identifier: MIT */
/* CRIU_OP: the pause of a whole process, and what else of it answers. */
#include <inttypes.h>

#include "tests/conformance/topics.h"

static int op_on(struct who who, struct actor *owner, uint32_t op)
{
	struct kfd_ioctl_criu_args args = { .op = op };

	return call_on(who, owner, AMDKFD_IOC_CRIU_OP, &args);
}

static int pause_all(struct actor *a)
{
	return op_on(me(a), a, KFD_CRIU_OP_PROCESS_INFO);
}

static int unpause_all(struct actor *a)
{
	return op_on(me(a), a, KFD_CRIU_OP_UNPAUSE);
}

static struct actor *with_queues(struct world *w, uint32_t n)
{
	struct actor *a = kfd_actor(w, "self");

	acquire_vm(a);
	add_queues(a, n);
	return a;
}

static void once(struct world *w)
{
	struct actor *a = with_queues(w, 2);

	say(w, "unpause before %s", text_of(unpause_all(a)));
	say_active("pause", pause_all(a), me(a), 2);
	say_active("unpause", unpause_all(a), me(a), 2);
	say(w, "unpause again %s", text_of(unpause_all(a)));
	say_active("pause", pause_all(a), me(a), 2);
	say_active("unpause", unpause_all(a), me(a), 2);
}

/* Evictions nest, the flag does not. */
static void twice(struct world *w)
{
	struct actor *a = with_queues(w, 2);

	say_active("pause", pause_all(a), me(a), 2);
	say_active("pause again", pause_all(a), me(a), 2);
	say_active("unpause", unpause_all(a), me(a), 2);
	say_active("unpause again", unpause_all(a), me(a), 2);
	say_active("pause", pause_all(a), me(a), 2);
	say_active("unpause", unpause_all(a), me(a), 2);
}

static void without_queues(struct world *w)
{
	struct actor *a = kfd_actor(w, "self");

	say(w, "pause %s", text_of(pause_all(a)));
	acquire_vm(a);
	add_queues(a, 1);
	say_active("made while paused:", 0, me(a), 1);
	say_active("unpause", unpause_all(a), me(a), 1);
}

static void made_while_paused(struct world *w)
{
	struct actor *a = with_queues(w, 1);

	pause_all(a);
	add_queues(a, 1);
	say_active("made while paused:", 0, me(a), 2);
	say_active("unpause", unpause_all(a), me(a), 2);
}

static void process_info(struct world *w)
{
	struct actor *a = with_queues(w, 3);
	struct kfd_ioctl_criu_args args = {
		.op = KFD_CRIU_OP_PROCESS_INFO,
		.num_bos = 99,
		.pid = 99,
		.num_devices = 99,
		.num_objects = 99,
	};
	int r = call(me(a), AMDKFD_IOC_CRIU_OP, &args);

	say(w, "%s pid %u devices %u objects %u", text_of(r), args.pid, args.num_devices,
	    args.num_objects);
}

static void by_the_tracer(struct world *w)
{
	struct actor *a = with_queues(w, 2);
	struct actor *other = kfd_actor(w, "other");

	say(w, "by a stranger %s", text_of(op_on(me(other), a, KFD_CRIU_OP_PROCESS_INFO)));
	seize(me(other), a);
	say_active("by the tracer", op_on(me(other), a, KFD_CRIU_OP_PROCESS_INFO), me(a), 2);
	say(w, "by its other thread %s", text_of(op_on(second(other), a, KFD_CRIU_OP_UNPAUSE)));
	detach(me(other), a);
	say(w, "after detaching %s", text_of(op_on(me(other), a, KFD_CRIU_OP_UNPAUSE)));
	say_active("by itself", unpause_all(a), me(a), 2);
}

static void tracer_dies(struct world *w)
{
	struct actor *a = with_queues(w, 2);
	struct actor *other = kfd_actor(w, "other");

	seize(me(other), a);
	say_active("pause", op_on(me(other), a, KFD_CRIU_OP_PROCESS_INFO), me(a), 2);
	kill_actor(other);
	say_active("the tracer died:", 0, me(a), 2);
	say_active("unpause", unpause_all(a), me(a), 2);
}

static void ordinary_user(struct world *w)
{
	struct actor *a = actor_of(w, "self", 1000);

	open_kfd(a);
	for (uint32_t op = 0; op < 6; op++)
		say(w, "op %u: %s", op, text_of(op_on(me(a), a, op)));
}

static void empty_ops(struct world *w)
{
	static const uint32_t ops[] = { KFD_CRIU_OP_CHECKPOINT, KFD_CRIU_OP_RESTORE,
					KFD_CRIU_OP_RESUME, 5, UINT32_MAX };
	struct actor *a = with_queues(w, 1);

	for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
		say(w, "op %u: %s", ops[i], text_of(op_on(me(a), a, ops[i])));
	pause_all(a);
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
		say(w, "paused, op %u: %s", ops[i], text_of(op_on(me(a), a, ops[i])));
	say_active("unpause", unpause_all(a), me(a), 1);
}

static void resume_pids(struct world *w)
{
	struct actor *a = kfd_actor(w, "self");
	struct actor *bare = actor(w, "bare");
	struct kfd_ioctl_criu_args args = { .op = KFD_CRIU_OP_RESUME };

	args.pid = 0x7fffffff;
	say(w, "nobody %s", text_of(call(me(a), AMDKFD_IOC_CRIU_OP, &args)));
	args.pid = (uint32_t)bare->pid;
	say(w, "no KFD process %s", text_of(call(me(a), AMDKFD_IOC_CRIU_OP, &args)));
}

static void debugged(struct world *w)
{
	struct session s = attached(w, 2);

	say_active("suspend", suspend(me(s.debugger), s.target, s.ids, 2, GRACE_DEFAULT),
		   me(s.target), 2);
	say_active("pause", pause_all(s.target), me(s.target), 2);
	say_active("unpause", unpause_all(s.target), me(s.target), 2);
	say_active("resume", resume_all(me(s.debugger), s.target), me(s.target), 2);
	say_active("pause", pause_all(s.target), me(s.target), 2);
	say_active("disable", disable(me(s.debugger), s.target), me(s.target), 2);
	say_active("unpause", unpause_all(s.target), me(s.target), 2);
}

const struct conformance_case criu_cases[] = {
	{ "criu/once", once },
	{ "criu/twice", twice },
	{ "criu/without_queues", without_queues },
	{ "criu/made_while_paused", made_while_paused },
	{ "criu/process_info", process_info },
	{ "criu/by_the_tracer", by_the_tracer },
	{ "criu/tracer_dies", tracer_dies },
	{ "criu/ordinary_user", ordinary_user },
	{ "criu/empty_ops", empty_ops },
	{ "criu/resume_pids", resume_pids },
	{ "criu/debugged", debugged },
	{ NULL, NULL },
};
