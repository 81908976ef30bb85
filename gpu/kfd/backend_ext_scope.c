/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "gpu/kfd/backend_ext.h"
#include "util/macros.h"

static const struct scope everything = { KFD_GPREEMPT_ALL_QUEUES, KFD_GPREEMPT_ANY_GPU };

static struct kfd_gpreempt_entry entry_of(const struct gpu_target *t, struct scope s)
{
	struct kfd_gpreempt_entry e = gkfd_ext_entry(t->base.pid, t->start_ticks, s.queue);

	e.gpu_id = s.gpu;
	return e;
}

static void set_holds(struct gpu_target *t)
{
	__atomic_store_n(&t->holds, t->n_scopes > 0, __ATOMIC_RELAXED);
}

static bool is_named(const struct gpu_hold *what, uint32_t queue)
{
	for (size_t i = 0; i < what->n; i++) {
		if (what->ids[i] == queue)
			return true;
	}
	return false;
}

/* ---- more ---- */

int ext_scopes_reserve(struct gpu_target *t, const struct gpu_hold *what, size_t max)
{
	size_t n = t->n_scopes + (what->ids ? what->n : 1);
	struct scope *scopes;

	if (n > max)
		return -E2BIG;
	scopes = reallocarray(t->scopes, n + 1, sizeof(*scopes)); /* never of size 0 */
	if (!scopes)
		return -ENOMEM;
	t->scopes = scopes;
	return 0;
}

static bool is_there(const struct gpu_target *t, uint32_t queue)
{
	for (size_t i = 0; i < t->n_scopes; i++) {
		if (t->scopes[i].queue == queue)
			return true;
	}
	return false;
}

bool ext_scopes_has(const struct gpu_target *t, uint32_t queue)
{
	return is_there(t, queue) || is_there(t, KFD_GPREEMPT_ALL_QUEUES);
}

void ext_scopes_add(struct gpu_target *t, const struct gpu_hold *what)
{
	bool whole = t->n_scopes && t->scopes[0].gpu == everything.gpu &&
		     t->scopes[0].queue == everything.queue;

	if (!what->ids) {
		t->scopes[0] = everything;
		t->n_scopes = 1;
	}
	for (size_t i = 0; !whole && i < what->n; i++) {
		if (!is_there(t, what->ids[i]))
			t->scopes[t->n_scopes++] =
				(struct scope){ what->ids[i], KFD_GPREEMPT_ANY_GPU };
	}
	set_holds(t);
}

/* ---- fewer ---- */

void ext_scopes_clear(struct gpu_target *t)
{
	t->n_scopes = 0;
	t->until_ns = t->driver_ns = t->renew_ns = NEVER_NS;
	set_holds(t);
}

struct on_gpu { /* queues of the process there */
	uint32_t all, named;
};

static struct on_gpu count_on(const struct kfd_gpreempt_queue *queues, size_t n, uint32_t gpu,
			      const struct gpu_hold *what)
{
	struct on_gpu c = { 0 };

	for (size_t i = 0; i < n; i++) {
		if (queues[i].gpu_id != gpu)
			continue;
		c.all++;
		c.named += is_named(what, queues[i].queue_id);
	}
	return c;
}

static bool is_first_of_gpu(const struct kfd_gpreempt_queue *queues, size_t i)
{
	for (size_t j = 0; j < i; j++) {
		if (queues[j].gpu_id == queues[i].gpu_id)
			return false;
	}
	return true;
}

/* With all queues of its GPU, or by its id. */
static bool is_held_as(const struct gpu_target *t, const struct kfd_gpreempt_queue *q, uint32_t as)
{
	for (size_t i = 0; i < t->n_scopes; i++) {
		const struct scope *s = &t->scopes[i];

		if (s->queue == as && (s->gpu == KFD_GPREEMPT_ANY_GPU || s->gpu == q->gpu_id))
			return true;
	}
	return false;
}

/*
 * What all was, GPU by GPU: where all queues are to run, none is held that comes later either;
 * where none is, all stay; and where some are, the others remain, by their ids. There, queues to
 * come are held until the driver's time for that is over.
 */
static int split(struct gpu_target *t, const struct gpu_hold *what,
		 const struct kfd_gpreempt_queue *queues, size_t n, struct kfd_gpreempt_entry *ret,
		 size_t max)
{
	_cleanup_free_ struct scope *rest = calloc(n + 1, sizeof(*rest));
	size_t n_rest = 0, n_ret = 0;

	if (!rest)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct kfd_gpreempt_queue *q = &queues[i];
		struct scope s = { KFD_GPREEMPT_ALL_QUEUES, q->gpu_id };
		struct on_gpu on = count_on(queues, n, q->gpu_id, what);
		bool some = on.named && on.named < on.all, named = is_named(what, q->queue_id);
		bool with_all = is_held_as(t, q, KFD_GPREEMPT_ALL_QUEUES);

		if (!with_all && !is_held_as(t, q, q->queue_id))
			continue;
		if (!with_all || some)
			s = (struct scope){ q->queue_id, KFD_GPREEMPT_ANY_GPU };
		else if (!is_first_of_gpu(queues, i))
			continue;
		if (named && n_ret == max)
			return -E2BIG;
		if (named)
			ret[n_ret++] = entry_of(t, s);
		else
			rest[n_rest++] = s;
	}
	free(t->scopes);
	t->scopes = steal_ptr(&rest);
	t->n_scopes = n_rest;
	return (int)n_ret;
}

static int remove_from_all(struct gpu_target *t, const struct gpu_hold *what,
			   struct kfd_gpreempt_entry *ret, size_t max)
{
	_cleanup_free_ struct kfd_gpreempt_queue *queues = NULL;
	int n = gkfd_ext_queues(t->base.b->k, t->base.pid, t->start_ticks, &queues);

	return n < 0 ? n : split(t, what, queues, (size_t)n, ret, max);
}

static int remove_single(struct gpu_target *t, const struct gpu_hold *what,
			 struct kfd_gpreempt_entry *ret)
{
	size_t kept = 0;
	int n = 0;

	for (size_t i = 0; i < t->n_scopes; i++) {
		if (is_named(what, t->scopes[i].queue))
			ret[n++] = entry_of(t, t->scopes[i]);
		else
			t->scopes[kept++] = t->scopes[i];
	}
	t->n_scopes = kept;
	return n;
}

int ext_scopes_remove(struct gpu_target *t, const struct gpu_hold *what,
		      struct kfd_gpreempt_entry *ret, size_t max)
{
	int n;

	if (!t->n_scopes || (what->ids && !what->n))
		return 0;
	if (!what->ids) {
		ret[0] = entry_of(t, everything);
		t->n_scopes = 0;
		n = 1;
	} else {
		n = is_there(t, KFD_GPREEMPT_ALL_QUEUES) ? remove_from_all(t, what, ret, max) :
							   remove_single(t, what, ret);
	}
	if (n >= 0 && !t->n_scopes)
		ext_scopes_clear(t);
	return n;
}

uint32_t ext_scopes_fill(const struct gpu_target *t, struct kfd_gpreempt_entry *ret)
{
	for (size_t i = 0; i < t->n_scopes; i++)
		ret[i] = entry_of(t, t->scopes[i]);
	return (uint32_t)t->n_scopes;
}
