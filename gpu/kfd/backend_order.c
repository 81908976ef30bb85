/* SPDX-License-Identifier: MIT */
/* Targets, and the orders that go to them and come back done. */
#include <errno.h>
#include <string.h>

#include "gpu/kfd/backend_internal.h"
#include "util/macros.h"

static struct target_base *base_of(struct gpu_target *t)
{
	return (struct target_base *)t;
}

static const struct acting *acting_on(struct gpu_target *t)
{
	return base_of(t)->b->acting;
}

/* ---- orders ---- */

/* @what NULL: of a verb that needs none. */
static int order_new(struct gpu_target *t, enum gpu_verb verb, const struct gpu_hold *what,
		     uint64_t cookie, struct order **ret)
{
	size_t n = what && what->ids ? what->n : 0;
	struct order *o;

	if (n > UINT32_MAX / sizeof(*o->ids))
		return -EINVAL;
	o = calloc(1, sizeof(*o) + n * sizeof(*o->ids));
	if (!o)
		return -ENOMEM;
	o->t = t;
	o->done = (struct gpu_done){ .target = t, .verb = verb, .cookie = cookie };
	o->called_ns = gkfd_now_ns(base_of(t)->b->k);
	if (what)
		o->what = *what;
	o->what.n = n;
	if (o->what.ids)
		o->what.ids = memcpy(o->ids, what->ids, n * sizeof(*o->ids));
	*ret = o;
	return 0;
}

static int ask(struct gpu_target *t, enum gpu_verb verb, const struct gpu_hold *what,
	       uint64_t cookie)
{
	struct order *o;
	int r = order_new(t, verb, what, cookie, &o);

	if (r < 0)
		return r;
	r = acting_on(t)->post(t, o);
	if (r < 0)
		free(o);
	return r;
}

int backend_suspend(struct gpu_target *t, const struct gpu_hold *hold, uint64_t cookie)
{
	return ask(t, GPU_SUSPEND, hold, cookie);
}

int backend_resume(struct gpu_target *t, const uint32_t *ids, size_t n, uint64_t cookie)
{
	return ask(t, GPU_RESUME, &(struct gpu_hold){ ids, n }, cookie);
}

void order_deliver(struct order *o)
{
	o->done.target = o->t;
	mailbox_put(&base_of(o->t)->b->done, &o->base.mail);
}

static struct order *take_done(struct backend *b)
{
	struct mail *mail = mailbox_take(&b->done);

	return mail ? mail_of(mail, struct order, base.mail) : NULL;
}

void orders_free(struct order_list *list)
{
	struct order *o;

	while ((o = STAILQ_FIRST(list))) {
		STAILQ_REMOVE_HEAD(list, link);
		free(o);
	}
}

/* ---- targets ---- */

static void free_target(struct gpu_target *t)
{
	if (!t)
		return;
	acting_on(t)->end(t);
	free(base_of(t)->ended);
	free(base_of(t)->release);
	free(t);
}

static void free_targetp(struct gpu_target **t)
{
	free_target(*t);
}

int backend_attach(struct gpu_backend *base, const struct gpu_attach *request, uint64_t cookie,
		   struct gpu_target **ret)
{
	struct backend *b = (struct backend *)base;
	_cleanup_(free_targetp) struct gpu_target *t = calloc(1, b->acting->target_size);
	int r;

	if (!t)
		return -ENOMEM;
	*base_of(t) = (struct target_base){ .b = b, .pid = request->pid };
	r = b->acting->begin(t, request);
	if (r >= 0)
		r = order_new(t, GPU_ENDED, NULL, 0, &base_of(t)->ended);
	if (r >= 0)
		r = order_new(t, GPU_RELEASE, NULL, 0, &base_of(t)->release);
	if (r >= 0)
		r = ask(t, GPU_ATTACH, NULL, cookie);
	if (r < 0)
		return r;
	LIST_INSERT_HEAD(&b->targets, base_of(t), link);
	*ret = steal_ptr(&t);
	return 0;
}

int backend_release(struct gpu_target *t, uint64_t cookie)
{
	struct order *o = steal_ptr(&base_of(t)->release);

	if (!o)
		return -EALREADY;
	o->done.cookie = cookie;
	return acting_on(t)->post(t, o);
}

void targets_free(struct backend *b)
{
	struct target_base *t;
	struct order *o;

	while ((t = LIST_FIRST(&b->targets))) {
		LIST_REMOVE(t, link);
		free_target((struct gpu_target *)t);
	}
	while ((o = take_done(b)))
		free(o);
}

int orders_take(struct backend *b, struct gpu_done *ret)
{
	_cleanup_free_ struct order *o = take_done(b);

	if (!o)
		return 0;
	*ret = o->done;
	if (o->done.verb == GPU_RELEASE) {
		LIST_REMOVE(base_of(o->t), link);
		free_target(o->t);
	}
	return 1;
}

bool target_is_held(struct backend *b, pid_t pid)
{
	for_each_target(b, t) if (base_of(t)->pid == pid && b->base.ops->holds(t)) return true;
	return false;
}
