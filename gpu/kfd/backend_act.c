/* SPDX-License-Identifier: MIT */
/*
 * Acting by threads of this process: orders go from the owner to the target's thread, and what came
 * of them comes back. For software devices; what real jobs depend on lives in processes of its own
 * (backend_holders.c).
 */
#include <errno.h>

#include "gpu/kfd/actor.h"
#include "gpu/kfd/backend_internal.h"
#include "util/macros.h"

struct gpu_target {
	LIST_ENTRY(gpu_target) link;
	struct backend *b;
	struct actor actor; /* the tracer thread's */
	/* There from the beginning: they cannot fail. */
	struct order *ended, *release; /* the first is NULL once it is told */
};

static struct gpu_target *target_of(struct actor *a)
{
	return (struct gpu_target *)((char *)a - offsetof(struct gpu_target, actor));
}

/* ---- on the target's thread ---- */

static void on_ended(struct actor *a, const struct gpu_done *done)
{
	struct gpu_target *t = target_of(a);
	struct order *o = steal_ptr(&t->ended);

	o->done = *done;
	o->done.target = t;
	mailbox_put(&t->b->done, &o->mail);
}

static void run(struct tracer_order *base)
{
	struct order *o = (struct order *)base;
	struct actor *a = &o->t->actor;
	const struct actor_order order = {
		.verb = o->done.verb,
		.ids = o->all ? NULL : o->ids,
		.n = o->n,
		.called_ns = o->called_ns,
		.longest_ns = o->longest_ns,
	};

	actor_run(a, &order, &o->done);
	mailbox_put(&o->t->b->done, &o->mail);
	actor_settle(a);
}

static void on_state(void *user)
{
	struct gpu_target *t = user;

	if (!t->actor.busy)
		actor_settle(&t->actor);
}

static void on_gone(void *user)
{
	struct gpu_target *t = user;

	t->release->done.done_ns = gkfd_now_ns(t->b->k);
	mailbox_put(&t->b->done, &t->release->mail);
}

static const struct target_hooks hooks = { .state = on_state, .gone = on_gone };

/* ---- for the owner ---- */

/* Once its thread has nothing more to do. */
static void target_free(struct gpu_target *t)
{
	if (!t)
		return;
	gkfd_target_release(t->actor.target);
	free(t->ended);
	free(t->release);
	free(t);
}

static void target_freep(struct gpu_target **t)
{
	target_free(*t);
}

static int launch(struct gpu_target *t, uint64_t start_ticks)
{
	const struct target_options options = {
		.pid = t->actor.pid,
		.start_ticks = start_ticks,
		.way = t->b->way,
		.guard = t->b->guard,
		.hooks = &hooks,
		.user = t,
	};
	int r = target_new(t->b->k, &options, &t->actor.target);

	return r < 0 ? r : tracer_launch(t->actor.target->tracer);
}

int act_attach(struct gpu_backend *base, pid_t pid, uint64_t start_ticks, uint64_t cookie,
	       struct gpu_target **ret)
{
	struct backend *b = (struct backend *)base;
	_cleanup_(target_freep) struct gpu_target *t = calloc(1, sizeof(*t));
	_cleanup_free_ struct order *o = NULL;
	int r;

	if (!t)
		return -ENOMEM;
	t->b = b;
	t->actor = (struct actor){ .k = b->k, .pid = pid, .ended = on_ended };
	t->ended = order_new(t, GPU_ENDED, NULL, 0);
	t->release = order_new(t, GPU_RELEASE, NULL, 0);
	o = order_new(t, GPU_ATTACH, NULL, 0);
	if (!t->ended || !t->release || !o)
		return -ENOMEM;
	r = launch(t, start_ticks);
	if (r < 0)
		return r;
	o->done.cookie = cookie;
	o->base.run = run;
	tracer_post(t->actor.target->tracer, &steal_ptr(&o)->base);
	LIST_INSERT_HEAD(&b->targets, t, link);
	*ret = steal_ptr(&t);
	return 0;
}

static int post(struct gpu_target *t, enum gpu_verb verb, const uint32_t *ids, size_t n,
		uint64_t longest_ns, uint64_t cookie)
{
	struct order *o;

	if (n > UINT32_MAX / sizeof(*ids))
		return -EINVAL;
	o = order_new(t, verb, ids, n);
	if (!o)
		return -ENOMEM;
	o->called_ns = gkfd_now_ns(t->b->k);
	o->longest_ns = longest_ns;
	o->done.cookie = cookie;
	o->base.run = run;
	tracer_post(t->actor.target->tracer, &o->base);
	return 0;
}

int act_suspend(struct gpu_target *t, const uint32_t *ids, size_t n, uint64_t longest_ns,
		uint64_t cookie)
{
	return post(t, GPU_SUSPEND, ids, ids ? n : 0, longest_ns, cookie);
}

int act_resume(struct gpu_target *t, const uint32_t *ids, size_t n, uint64_t cookie)
{
	return post(t, GPU_RESUME, ids, ids ? n : 0, 0, cookie);
}

int act_release(struct gpu_target *t, uint64_t cookie)
{
	t->release->done.cookie = cookie;
	t->release->done.began_ns = gkfd_now_ns(t->b->k);
	target_leave(t->actor.target);
	return 0;
}

int act_take(struct gpu_backend *base, struct gpu_done *ret)
{
	struct backend *b = (struct backend *)base;
	struct order *o = order_take_done(b);
	struct gpu_target *t;

	if (!o)
		return 0;
	*ret = o->done;
	if (o->done.verb != GPU_RELEASE) {
		free(o);
		return 1;
	}
	t = o->t; /* and with it its order */
	LIST_REMOVE(t, link);
	target_free(t);
	return 1;
}

bool act_holds(struct backend *b, pid_t pid)
{
	struct gpu_target *t;

	LIST_FOREACH(t, &b->targets, link)
	if (t->actor.pid == pid && gkfd_target_holds(t->actor.target))
		return true;
	return false;
}

/* All at once, so that the slowest counts and not the sum. */
void act_close(struct backend *b)
{
	struct gpu_target *t;
	struct order *o;

	LIST_FOREACH(t, &b->targets, link)
	target_leave(t->actor.target);
	while (!LIST_EMPTY(&b->targets)) {
		t = LIST_FIRST(&b->targets);
		LIST_REMOVE(t, link);
		gkfd_target_release(t->actor.target); /* whose orders are run before */
		t->actor.target = NULL;
		t->release = NULL; /* it is among the done */
		target_free(t);
	}
	while ((o = order_take_done(b)))
		free(o);
}
