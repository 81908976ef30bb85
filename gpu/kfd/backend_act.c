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
	struct target_base base;
	struct actor actor; /* the tracer thread's */
};

static struct gpu_target *target_of(struct actor *a)
{
	return (struct gpu_target *)((char *)a - offsetof(struct gpu_target, actor));
}

/* ---- on the target's thread ---- */

static void on_ended(struct actor *a, const struct gpu_done *done)
{
	struct gpu_target *t = target_of(a);
	struct order *o = steal_ptr(&t->base.ended);

	o->done = *done;
	o->done.target = t;
	mailbox_put(&t->base.b->done, &o->mail);
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
		.grace_kclk = o->grace_kclk,
	};

	actor_run(a, &order, &o->done);
	mailbox_put(&o->t->base.b->done, &o->mail);
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
	struct order *o = steal_ptr(&t->base.release);

	o->done.done_ns = gkfd_now_ns(t->base.b->k);
	mailbox_put(&t->base.b->done, &o->mail);
}

static const struct target_hooks hooks = { .state = on_state, .gone = on_gone };

/* ---- for the owner ---- */

void act_free(struct gpu_target *t)
{
	if (!t)
		return;
	gkfd_target_release(t->actor.target);
	target_done(t);
	free(t);
}

static void target_freep(struct gpu_target **t)
{
	act_free(*t);
}

static int launch(struct gpu_target *t, const struct gpu_attach *request)
{
	struct backend *b = t->base.b;
	const struct target_options options = {
		.pid = request->pid,
		.start_ticks = request->start_ticks,
		.way = b->way,
		.guard = b->guard,
		.hooks = &hooks,
		.user = t,
	};
	int r = target_new(b->k, &options, &t->actor.target);

	return r < 0 ? r : tracer_launch(t->actor.target->tracer);
}

static void post(struct gpu_target *t, struct order *o)
{
	o->base.run = run;
	tracer_post(t->actor.target->tracer, &o->base);
}

int act_attach(struct gpu_backend *base, const struct gpu_attach *request, uint64_t cookie,
	       struct gpu_target **ret)
{
	struct backend *b = (struct backend *)base;
	_cleanup_(target_freep) struct gpu_target *t = calloc(1, sizeof(*t));
	_cleanup_free_ struct order *o = NULL;
	int r = t ? target_init(t, b, request->pid, cookie, &o) : -ENOMEM;

	if (r < 0)
		return r;
	t->actor = (struct actor){ .k = b->k, .pid = request->pid, .ended = on_ended };
	r = launch(t, request);
	if (r < 0)
		return r;
	post(t, steal_ptr(&o));
	LIST_INSERT_HEAD(&b->targets, &t->base, link);
	*ret = steal_ptr(&t);
	return 0;
}

static int ask(struct gpu_target *t, enum gpu_verb verb, const struct gpu_hold *what,
	       uint64_t cookie)
{
	struct order *o;
	int r = order_new(t, verb, what, cookie, &o);

	if (r >= 0)
		post(t, o);
	return r;
}

int act_suspend(struct gpu_target *t, const struct gpu_hold *hold, uint64_t cookie)
{
	return ask(t, GPU_SUSPEND, hold, cookie);
}

int act_resume(struct gpu_target *t, const uint32_t *ids, size_t n, uint64_t cookie)
{
	return ask(t, GPU_RESUME, &(struct gpu_hold){ ids, n }, cookie);
}

int act_release(struct gpu_target *t, uint64_t cookie)
{
	t->base.release->done.cookie = cookie;
	t->base.release->done.began_ns = gkfd_now_ns(t->base.b->k);
	target_leave(t->actor.target);
	return 0;
}

bool act_holds(struct gpu_target *t)
{
	return gkfd_target_holds(t->actor.target);
}

int act_held(struct gpu_target *t, uint32_t *ret, size_t max)
{
	return gkfd_target_held(t->actor.target, ret, max);
}

struct gkfd_target *act_target(struct gpu_target *t)
{
	return t->actor.target;
}

/* All at once, so that the slowest counts and not the sum. */
void act_close(struct backend *b)
{
	struct gpu_target *t;
	struct order *o;

	for_each_target(b, each) target_leave(each->actor.target);
	while ((t = (struct gpu_target *)LIST_FIRST(&b->targets))) {
		LIST_REMOVE(&t->base, link);
		act_free(t); /* whose orders are run before */
	}
	while ((o = order_take_done(b)))
		free(o);
}
