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

static struct order *order_new(struct gpu_target *t, enum gpu_verb verb, const uint32_t *ids,
			       size_t n)
{
	struct order *o = calloc(1, sizeof(*o) + n * sizeof(*ids));

	if (!o)
		return NULL;
	o->t = t;
	o->done = (struct gpu_done){ .target = t, .verb = verb };
	o->all = !ids;
	o->n = (uint32_t)n;
	if (n > 0)
		memcpy(o->ids, ids, n * sizeof(*ids));
	return o;
}

static void post(struct backend *b, struct order *o, uint64_t cookie)
{
	o->done.cookie = cookie;
	o->called_ns = now_ns(b);
	pthread_mutex_lock(&b->lock);
	STAILQ_INSERT_TAIL(&b->orders, o, link);
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

int nvrm_act_attach(struct gpu_backend *base, pid_t pid, uint64_t start_ticks, uint64_t cookie,
		    struct gpu_target **ret)
{
	struct backend *b = (struct backend *)base;
	_cleanup_(target_freep) struct gpu_target *t = calloc(1, sizeof(*t));
	struct order *o;

	if (!t)
		return -ENOMEM;
	t->b = b;
	t->pid = pid;
	t->until_ns = NEVER_NS;
	t->refused = -EINPROGRESS;
	t->ended = order_new(t, GPU_ENDED, NULL, 0);
	t->release = order_new(t, GPU_RELEASE, NULL, 0);
	o = t->ended && t->release ? order_new(t, GPU_ATTACH, NULL, 0) : NULL;
	if (!o)
		return -ENOMEM;
	LIST_INSERT_HEAD(&b->targets, t, link);
	*ret = t;
	post(b, o, cookie);
	t = NULL; /* it is the worker's, too */
	return 0;
}

static int order(struct gpu_target *t, enum gpu_verb verb, const uint32_t *ids, size_t n,
		 struct order **ret)
{
	if (n > UINT32_MAX / sizeof(*ids))
		return -EINVAL;
	*ret = order_new(t, verb, ids, ids ? n : 0);
	return *ret ? 0 : -ENOMEM;
}

int nvrm_act_suspend(struct gpu_target *t, const uint32_t *ids, size_t n, uint64_t longest_ns,
		     uint64_t cookie)
{
	struct order *o;
	int r = order(t, GPU_SUSPEND, ids, n, &o);

	if (r < 0)
		return r;
	o->longest_ns = longest_ns;
	post(t->b, o, cookie);
	return 0;
}

int nvrm_act_resume(struct gpu_target *t, const uint32_t *ids, size_t n, uint64_t cookie)
{
	struct order *o;
	int r = order(t, GPU_RESUME, ids, n, &o);

	if (r < 0)
		return r;
	post(t->b, o, cookie);
	return 0;
}

int nvrm_act_slice(struct gpu_target *t, enum gpu_slice slice, uint64_t cookie)
{
	struct order *o;
	int r = order(t, GPU_SLICE, NULL, 0, &o);

	if (r < 0)
		return r;
	o->slice = slice;
	post(t->b, o, cookie);
	return 0;
}

int nvrm_act_release(struct gpu_target *t, uint64_t cookie)
{
	if (!t->release)
		return -EALREADY;
	post(t->b, steal_ptr(&t->release), cookie);
	return 0;
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
