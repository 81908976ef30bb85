/* SPDX-License-Identifier: MIT */
/* Orders to targets: from the owner to the target's thread, and what came of them back. */
#include <errno.h>

#include "gpu/kfd/backend_internal.h"
#include "gpu/kfd/failure_text.h"
#include "gpu/kfd/target_internal.h"
#include "util/macros.h"

#define GRACE_KCLK 1 /* the least there is: an online job waits */

struct gpu_target {
	LIST_ENTRY(gpu_target) link;
	struct backend *b;
	pid_t pid;
	struct gkfd_target *target;
	struct order *release; /* there from the beginning: it cannot fail */

	/* the tracer thread's */
	struct order *ended; /* the same; NULL once it is told */
	bool attached;
	bool in_order; /* whose answer has to come first */
	struct gkfd_failure refusal; /* of the attach */
	int refused; /* -errno of it */
};

/* ---- on the target's thread ---- */

static void explain(struct order *o, int r, const struct gkfd_failure *fail)
{
	struct gkfd_failure_text text;

	o->done.result = r;
	o->done.gpu_failed = fail->why == GKFD_WHY_PREEMPTION_FAILED;
	o->done.gpu = fail->gpu_id;
	gkfd_failure_describe(o->t->b->k, r, o->t->pid, fail, &text);
	snprintf(o->done.why, sizeof(o->done.why), "%.*s", GPU_WHY_SIZE - 1, text.message);
}

static void tell_end(struct gpu_target *t)
{
	struct order *o = t->ended;
	struct gkfd_failure fail;
	int r;

	if (!o || !t->attached || t->in_order)
		return;
	r = target_check_here(t->target, &fail);
	if (r >= 0)
		return;
	t->ended = NULL;
	o->done.began_ns = o->done.done_ns = gkfd_now_ns(t->b->k);
	explain(o, r, &fail);
	mailbox_put(&t->b->done, &o->mail);
}

static int run_attach(struct order *o, struct gkfd_failure *fail)
{
	struct gpu_target *t = o->t;
	int r;

	o->done.began_ns = gkfd_now_ns(t->b->k);
	r = target_attach_here(t->target, fail);
	o->done.done_ns = gkfd_now_ns(t->b->k);
	t->attached = r >= 0;
	t->refused = r;
	t->refusal = *fail;
	return r;
}

static int run_suspend(struct order *o, struct gkfd_failure *fail)
{
	struct gkfd_hold_request request = {
		.ids = o->all ? NULL : o->ids,
		.n = o->n,
		.grace_kclk = GRACE_KCLK,
		.longest_ns = o->longest_ns,
		.since_ns = o->called_ns,
		.more = true,
	};
	struct gkfd_hold hold = { 0 };
	int r = target_hold_here(o->t->target, &request, &hold, fail);

	o->done.began_ns = hold.began_ns;
	o->done.done_ns = hold.done_ns;
	o->done.queues = hold.n;
	return r;
}

static int run_resume(struct order *o, struct gkfd_failure *fail)
{
	struct gkfd_resumed resumed = { 0 };
	int r = target_resume_here(o->t->target, o->all ? NULL : o->ids, o->n, &resumed, fail);

	o->done.began_ns = resumed.began_ns;
	o->done.done_ns = resumed.done_ns;
	o->done.queues = resumed.n;
	return r;
}

static int dispatch(struct order *o, struct gkfd_failure *fail)
{
	struct gpu_target *t = o->t;

	if (o->done.verb == GPU_ATTACH)
		return run_attach(o, fail);
	if (!t->attached) {
		*fail = t->refusal;
		return t->refused;
	}
	return o->done.verb == GPU_SUSPEND ? run_suspend(o, fail) : run_resume(o, fail);
}

static void run(struct tracer_order *base)
{
	struct order *o = (struct order *)base;
	struct gpu_target *t = o->t;
	struct gkfd_failure fail = { 0 };
	int r;

	t->in_order = true;
	r = dispatch(o, &fail);
	if (!o->done.began_ns) /* the driver was not asked, or did not say */
		o->done.began_ns = o->done.done_ns = gkfd_now_ns(t->b->k);
	if (r < 0)
		explain(o, r, &fail);
	mailbox_put(&t->b->done, &o->mail);
	t->in_order = false;
	tell_end(t);
}

static void on_state(void *user)
{
	tell_end(user);
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
	gkfd_target_release(t->target);
	free(t->ended);
	free(t->release);
	free(t);
}

static void target_freep(struct gpu_target **t)
{
	target_free(*t);
}

int act_attach(struct gpu_backend *base, pid_t pid, uint64_t cookie, struct gpu_target **ret)
{
	struct backend *b = (struct backend *)base;
	_cleanup_(target_freep) struct gpu_target *t = calloc(1, sizeof(*t));
	_cleanup_free_ struct order *o = NULL;
	int r;

	if (!t)
		return -ENOMEM;
	t->b = b;
	t->pid = pid;
	t->ended = order_new(t, GPU_ENDED, NULL, 0);
	t->release = order_new(t, GPU_RELEASE, NULL, 0);
	o = order_new(t, GPU_ATTACH, NULL, 0);
	if (!t->ended || !t->release || !o)
		return -ENOMEM;
	r = target_launch(b->k, pid, b->way, b->guard, &hooks, t, &t->target);
	if (r < 0)
		return r;
	o->done.cookie = cookie;
	o->base.run = run;
	tracer_post(t->target->tracer, &steal_ptr(&o)->base);
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
	tracer_post(t->target->tracer, &o->base);
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
	target_leave(t->target);
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
		if (t->pid == pid && gkfd_target_holds(t->target))
			return true;
	return false;
}

/* All at once, so that the slowest counts and not the sum. */
void act_close(struct backend *b)
{
	struct gpu_target *t;
	struct order *o;

	LIST_FOREACH(t, &b->targets, link)
		target_leave(t->target);
	while (!LIST_EMPTY(&b->targets)) {
		t = LIST_FIRST(&b->targets);
		LIST_REMOVE(t, link);
		gkfd_target_release(t->target); /* whose orders are run before */
		t->target = NULL;
		t->release = NULL; /* it is among the done */
		target_free(t);
	}
	while ((o = order_take_done(b)))
		free(o);
}
