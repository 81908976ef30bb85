/* SPDX-License-Identifier: MIT */
/*
 * Acting by threads of this process: orders go from the owner to the target's thread, and what came
 * of them comes back. For software devices; what real jobs depend on lives in processes of its own
 * (backend_holders.c).
 */
#include "gpu/kfd/backend_internal.h"
#include "util/macros.h"

struct gpu_target {
	struct target_base base;
	struct gkfd_target *target;
};

struct posted {
	struct order order;
	struct tracer_order at_thread;
};

/* ---- on the target's thread ---- */

static void run(struct tracer_order *at_thread)
{
	struct order *o = &container_of(at_thread, struct posted, at_thread)->order;
	struct gkfd_target *target = o->t->target;

	target_run(target, &o->what, o->called_ns, &o->done);
	acting_deliver(o);
	target_settle(target);
}

static void on_ended(void *user, const struct gpu_done *done)
{
	struct gpu_target *t = user;
	struct order *o = steal_ptr(&t->base.ended);

	o->done = *done;
	acting_deliver(o);
}

static void on_gone(void *user)
{
	struct gpu_target *t = user;
	struct order *o = steal_ptr(&t->base.release);

	o->done.done_ns = gkfd_now_ns(t->base.b->k);
	acting_deliver(o);
}

static const struct target_hooks hooks = { .ended = on_ended, .gone = on_gone };

/* ---- for the owner ---- */

static int act_begin(struct gpu_target *t, const struct gpu_attach *request)
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

	return target_new(b->k, &options, &t->target);
}

static void act_end(struct gpu_target *t)
{
	target_free(t->target);
}

/* A release is done when the thread is gone, whoever asked for that. */
static int act_post(struct gpu_target *t, struct order *o)
{
	struct posted *p = (struct posted *)o;
	int r = o->done.verb == GPU_ATTACH ? tracer_launch(t->target->tracer) : 0;

	if (r < 0)
		return r;
	if (o->done.verb == GPU_RELEASE) {
		o->done.began_ns = gkfd_now_ns(t->base.b->k);
		t->base.release = o;
		target_leave(t->target);
		return 0;
	}
	p->at_thread.run = run;
	tracer_post(t->target->tracer, &p->at_thread);
	return 0;
}

/* All at once, so that the slowest counts and not the sum. */
static void act_close(struct backend *b)
{
	for_each_target(b, t) target_leave(t->target);
}

bool act_holds(struct gpu_target *t)
{
	return target_holds(t->target);
}

int act_held(struct gpu_target *t, uint32_t *ret, size_t max)
{
	return target_held(t->target, ret, max);
}

struct gkfd_target *act_target(struct gpu_target *t)
{
	return t->target;
}

const struct acting acting_by_threads = {
	.target_size = sizeof(struct gpu_target),
	.order_size = sizeof(struct posted),
	.begin = act_begin,
	.end = act_end,
	.post = act_post,
	.close = act_close,
};
