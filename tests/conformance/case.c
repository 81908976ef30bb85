/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "tests/conformance/case.h"

/* ---- processes ---- */

static struct actor *new_actor(struct world *w, const char *name, uid_t uid)
{
	struct actor *a = &w->actors[w->n_actors];

	if (w->n_actors == MAX_ACTORS)
		broken("%s: too many processes", w->case_name);
	*a = (struct actor){ .w = w, .uid = uid };
	snprintf(a->name, sizeof(a->name), "%s", name);
	w->n_actors++;
	return a;
}

static void introduce(struct actor *a)
{
	a->alive = true;
	world_name(a->w, NAME_PID, (uint64_t)a->pid, 0, "%s", a->name);
	world_name(a->w, NAME_PID, (uint64_t)a->tids[1], 0, "%s/1", a->name);
}

struct actor *actor_of(struct world *w, const char *name, uid_t uid)
{
	struct actor *a = new_actor(w, name, uid);
	int r = w->ops->spawn(w, a);

	if (r < 0)
		broken("%s: no process: %s", w->case_name, strerror(-r));
	introduce(a);
	return a;
}

struct actor *actor(struct world *w, const char *name)
{
	return actor_of(w, name, 0);
}

struct actor *kfd_actor(struct world *w, const char *name)
{
	struct actor *a = actor(w, name);

	if (open_kfd(a) < 0)
		broken("%s: cannot open the device", w->case_name);
	return a;
}

struct actor *forked(struct actor *parent, const char *name)
{
	struct actor *a = new_actor(parent->w, name, parent->uid);
	int r = a->w->ops->fork(a->w, parent, a);

	if (r < 0)
		broken("%s: cannot fork: %s", a->w->case_name, strerror(-r));
	introduce(a);
	return a;
}

void exec_self(struct actor *a)
{
	int r = a->w->ops->exec(a->w, a);

	if (r < 0)
		broken("%s: cannot exec: %s", a->w->case_name, strerror(-r));
	memset(a->buffers, 0, sizeof(a->buffers));
}

void kill_actor(struct actor *a)
{
	a->w->ops->kill(a->w, a);
	a->alive = false;
}

void end_thread(struct actor *a)
{
	a->w->ops->end_thread(a->w, second(a));
}

struct who me(struct actor *a)
{
	return (struct who){ a, 0 };
}

struct who second(struct actor *a)
{
	return (struct who){ a, 1 };
}

int open_kfd(struct actor *a)
{
	return a->w->ops->open(a->w, me(a));
}

int seize(struct who by, struct actor *a)
{
	return a->w->ops->seize(a->w, by, a);
}

int detach(struct who by, struct actor *a)
{
	return a->w->ops->detach(a->w, by, a);
}

/* ---- calls ---- */

int call_on(struct who who, struct actor *owner, unsigned long request, void *arg)
{
	struct world *w = who.actor->w;
	size_t size = _IOC_SIZE(request);
	void *copy = arg;
	int r;

	if (!in_arena(w, arg)) {
		copy = arena(w, size);
		memcpy(copy, arg, size);
	}
	r = w->ops->ioctl(w, who, owner, request, copy);
	if (copy != arg)
		memcpy(arg, copy, size);
	return r;
}

int call(struct who who, unsigned long request, void *arg)
{
	return call_on(who, who.actor, request, arg);
}

int call_raw(struct who who, unsigned long request, void *arg)
{
	return who.actor->w->ops->ioctl(who.actor->w, who, who.actor, request, arg);
}

int later(struct who who)
{
	return who.actor->w->ops->result(who.actor->w, who);
}

void interrupt(struct who who)
{
	who.actor->w->ops->signal(who.actor->w, who);
}

const char *text_of(int r)
{
	static char ring[8][24];
	static size_t next;
	char *text = ring[next++ % ARRAY_SIZE(ring)];
	const char *name = r < 0 ? strerrorname_np(-r) : NULL;

	if (r == BLOCKED)
		snprintf(text, sizeof(ring[0]), "blocked");
	else if (name)
		snprintf(text, sizeof(ring[0]), "-%s", name);
	else
		snprintf(text, sizeof(ring[0]), "%d", r);
	return text;
}

const char *ids_text(const uint32_t *ids, size_t n)
{
	static char ring[4][512];
	static size_t next;
	char *text = ring[next++ % ARRAY_SIZE(ring)];
	size_t at = 0;

	text[0] = '\0';
	for (size_t i = 0; i < n && at < sizeof(ring[0]) - 12; i++)
		at += (size_t)snprintf(text + at, sizeof(ring[0]) - at, "%s%x", i ? " " : "",
				       ids[i]);
	return text;
}
