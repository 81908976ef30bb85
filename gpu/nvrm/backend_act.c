/* SPDX-License-Identifier: MIT */
/* Orders to targets: from the owner to the worker, and what came of them back. */
#include <errno.h>
#include <string.h>

#include "gpu/nvrm/backend_internal.h"
#include "util/macros.h"

static uint64_t now_ns(const struct backend *b)
{
	return b->n->transport->now_ns(b->n->data);
}

/* @what NULL: all. */
static int order_new(struct gpu_target *t, enum gpu_verb verb, const struct gpu_hold *what,
		     uint64_t cookie, struct order **ret)
{
	bool all = !what || !what->ids;
	size_t n = all ? 0 : what->n;
	struct order *o;

	if (n > UINT32_MAX / sizeof(*o->ids))
		return -EINVAL;
	o = calloc(1, sizeof(*o) + n * sizeof(*o->ids));
	if (!o)
		return -ENOMEM;
	o->t = t;
	o->done = (struct gpu_done){ .target = t, .verb = verb, .cookie = cookie };
	o->all = all;
	o->n = (uint32_t)n;
	if (n > 0)
		memcpy(o->ids, what->ids, n * sizeof(*o->ids));
	if (what) {
		o->longest_ns = what->longest_ns;
		o->exact = what->exact;
	}
	*ret = o;
	return 0;
}

static void keep(struct order *o)
{
	o->called_ns = now_ns(o->t->b);
	STAILQ_INSERT_TAIL(&o->t->b->kept, o, link);
}

void nvrm_act_submit(struct gpu_backend *base)
{
	struct backend *b = (struct backend *)base;

	if (STAILQ_EMPTY(&b->kept))
		return;
	pthread_mutex_lock(&b->lock);
	STAILQ_CONCAT(&b->orders, &b->kept);
	pthread_mutex_unlock(&b->lock);
	nvrm_work_wake(b);
}

static struct order *take_done(struct backend *b)
{
	struct mail *mail = mailbox_take(&b->done);

	return mail ? mail_of(mail, struct order, mail) : NULL;
}

void nvrm_act_free_done(struct backend *b)
{
	struct order *o;

	while ((o = take_done(b)))
		free(o);
}

void nvrm_act_free_orders(struct order_list *list)
{
	struct order *o;

	while ((o = STAILQ_FIRST(list))) {
		STAILQ_REMOVE_HEAD(list, link);
		free(o);
	}
}

static void target_free(struct gpu_target *t)
{
	if (!t)
		return;
	free(t->ended);
	free(t->release);
	free(t->off_ids);
	free(t);
}

static void target_freep(struct gpu_target **t)
{
	target_free(*t);
}

void nvrm_act_free_targets(struct backend *b)
{
	struct gpu_target *t;

	while ((t = LIST_FIRST(&b->targets))) {
		LIST_REMOVE(t, link);
		target_free(t);
	}
}

int nvrm_act_attach(struct gpu_backend *base, const struct gpu_attach *request, uint64_t cookie,
		    struct gpu_target **ret)
{
	struct backend *b = (struct backend *)base;
	_cleanup_(target_freep) struct gpu_target *t = calloc(1, sizeof(*t));
	struct order *o;
	int r;

	if (!t)
		return -ENOMEM;
	t->b = b;
	t->pid = request->pid;
	t->until_ns = NEVER_NS;
	t->refused = -EINPROGRESS;
	r = order_new(t, GPU_ENDED, NULL, 0, &t->ended);
	if (r >= 0)
		r = order_new(t, GPU_RELEASE, NULL, 0, &t->release);
	if (r >= 0)
		r = order_new(t, GPU_ATTACH, NULL, cookie, &o);
	if (r < 0)
		return r;
	LIST_INSERT_HEAD(&b->targets, t, link);
	keep(o);
	*ret = steal_ptr(&t);
	return 0;
}

static int ask(struct gpu_target *t, enum gpu_verb verb, const struct gpu_hold *what,
	       uint64_t cookie)
{
	struct order *o;
	int r = order_new(t, verb, what, cookie, &o);

	if (r >= 0)
		keep(o);
	return r;
}

int nvrm_act_suspend(struct gpu_target *t, const struct gpu_hold *hold, uint64_t cookie)
{
	return ask(t, GPU_SUSPEND, hold, cookie);
}

int nvrm_act_resume(struct gpu_target *t, const uint32_t *ids, size_t n, uint64_t cookie)
{
	return ask(t, GPU_RESUME, &(struct gpu_hold){ ids, n }, cookie);
}

int nvrm_act_slice(struct gpu_target *t, enum gpu_slice slice, uint64_t cookie)
{
	struct order *o;
	int r = order_new(t, GPU_SLICE, NULL, cookie, &o);

	if (r < 0)
		return r;
	o->slice = slice;
	keep(o);
	return 0;
}

int nvrm_act_release(struct gpu_target *t, uint64_t cookie)
{
	struct order *o = steal_ptr(&t->release);

	if (!o)
		return -EALREADY;
	o->done.cookie = cookie;
	keep(o);
	return 0;
}

bool nvrm_act_holds(struct gpu_target *t)
{
	bool holds;

	pthread_mutex_lock(&t->b->lock);
	holds = t->holds;
	pthread_mutex_unlock(&t->b->lock);
	return holds;
}

int nvrm_act_held(struct gpu_target *t, uint32_t *ret, size_t max)
{
	size_t n;

	pthread_mutex_lock(&t->b->lock);
	n = t->n_off;
	if (MIN(n, max))
		memcpy(ret, t->off_ids, MIN(n, max) * sizeof(*ret));
	pthread_mutex_unlock(&t->b->lock);
	return (int)n;
}

int nvrm_act_take(struct gpu_backend *base, struct gpu_done *ret)
{
	struct backend *b = (struct backend *)base;
	_cleanup_free_ struct order *o = take_done(b);

	if (!o)
		return 0;
	*ret = o->done;
	if (o->done.verb == GPU_RELEASE) {
		LIST_REMOVE(o->t, link);
		target_free(o->t);
	}
	return 1;
}
