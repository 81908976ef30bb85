/* SPDX-License-Identifier: MIT */
/*
 * A second debugger. Its ENABLE is refused, and makes it the target's debugger all the same.
 *
 * The driver then keeps a pointer to whoever called last, alive or not: each case leaves it at a
 * process that lives until the target is gone.
 */
#include "tests/conformance/topics.h"

static struct session holding(struct world *w)
{
	struct session s = attached(w, 2);

	suspend(me(s.debugger), s.target, s.ids, 2, GRACE_DEFAULT);
	return s;
}

static void say_both(struct session *s, struct actor *other, const char *what)
{
	int first = snapshot(me(s->debugger), s->target, 0);
	int next = snapshot(me(other), s->target, 0);

	say(s->target->w, "%s: first %s second %s", what, text_of(first), text_of(next));
}

static void while_seized(struct world *w)
{
	struct session s = holding(w);
	struct actor *other = kfd_actor(w, "second");

	say(w, "seize %s", text_of(seize(me(other), s.target)));
	say(w, "enable %s", text_of(enable(me(other), s.target, 0)));
	say_both(&s, other, "then");
	kill_actor(other);
	say_active("the second died:", 0, me(s.target), 2);
	kill_actor(s.debugger);
	say_active("the first died:", 0, me(s.target), 2);
}

static void after_detach(struct world *w)
{
	struct session s = holding(w);
	struct actor *other = kfd_actor(w, "second");

	detach(me(s.debugger), s.target);
	say(w, "seize %s", text_of(seize(me(other), s.target)));
	say(w, "enable %s", text_of(enable(me(other), s.target, 0)));
	say_both(&s, other, "then");
	say_active("the second resumes:", resume_all(me(other), s.target), me(s.target), 2);
	say(w, "the second disables: %s", text_of(disable(me(other), s.target)));
	say_both(&s, other, "then");
}

static void first_dies(struct world *w)
{
	struct session s = holding(w);
	struct actor *other = kfd_actor(w, "second");

	detach(me(s.debugger), s.target);
	seize(me(other), s.target);
	enable(me(other), s.target, 0);
	kill_actor(s.debugger);
	say_active("the first died:", 0, me(s.target), 2);
	say(w, "the second: snapshot %s", text_of(snapshot(me(other), s.target, 0)));
	say_active("the second disables:", disable(me(other), s.target), me(s.target), 2);
}

/* Neither death ends the session: the queues stay off until somebody comes back for them. */
static void both_die(struct world *w)
{
	struct actor *rescuer = kfd_actor(w, "rescuer");
	struct session s = holding(w);
	struct actor *other = kfd_actor(w, "second");

	detach(me(s.debugger), s.target);
	seize(me(other), s.target);
	enable(me(other), s.target, 0);
	kill_actor(other);
	say_active("the second died:", 0, me(s.target), 2);
	say(w, "the first: snapshot %s", text_of(snapshot(me(s.debugger), s.target, 0)));
	kill_actor(s.debugger);
	say_active("both died:", 0, me(s.target), 2);
	say(w, "rescuer: snapshot %s", text_of(snapshot(me(rescuer), s.target, 0)));
	say(w, "rescuer: seize %s", text_of(seize(me(rescuer), s.target)));
	say(w, "rescuer: enable %s", text_of(enable(me(rescuer), s.target, 0)));
	say_active("rescuer: resume", resume_all(me(rescuer), s.target), me(s.target), 2);
	say_active("rescuer: disable", disable(me(rescuer), s.target), me(s.target), 2);
	say(w, "rescuer: enable %s", text_of(enable(me(rescuer), s.target, 0)));
}

static void by_the_target(struct world *w)
{
	struct session s = holding(w);

	say(w, "the target: enable %s", text_of(enable(me(s.target), s.target, 0)));
	say(w, "first: snapshot %s", text_of(snapshot(me(s.debugger), s.target, 0)));
	kill_actor(s.debugger);
	say_active("the first died:", 0, me(s.target), 2);
}

static void first_comes_back(struct world *w)
{
	struct session s = holding(w);
	struct actor *other = kfd_actor(w, "second");

	detach(me(s.debugger), s.target);
	seize(me(other), s.target);
	enable(me(other), s.target, 0);
	detach(me(other), s.target);
	seize(me(s.debugger), s.target);
	say_both(&s, other, "seized by the first again");
	say(w, "first: enable %s", text_of(enable(me(s.debugger), s.target, 0)));
	say_both(&s, other, "enabled by the first again");
	kill_actor(s.debugger);
	say_active("the first died:", 0, me(s.target), 2);
}

const struct conformance_case hijack_cases[] = {
	{ "hijack/while_seized", while_seized },
	{ "hijack/after_detach", after_detach },
	{ "hijack/first_dies", first_dies },
	{ "hijack/both_die", both_die },
	{ "hijack/by_the_target", by_the_target },
	{ "hijack/first_comes_back", first_comes_back },
	{ NULL, NULL },
};
