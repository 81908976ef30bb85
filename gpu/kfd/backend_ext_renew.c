/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "gpu/kfd/backend_ext.h"
#include "util/macros.h"

static uint64_t next_of(const struct gpu_target *t)
{
	return t->until_ns > t->driver_ns ? MIN(t->renew_ns, t->driver_ns) : t->driver_ns;
}

/* The driver has let go of it by now: its time is over. */
static bool is_over(const struct gpu_target *t, uint64_t now_ns)
{
	return t->n_scopes && t->until_ns <= now_ns;
}

static bool is_due(const struct gpu_target *t, uint64_t now_ns)
{
	return t->n_scopes && next_of(t) <= now_ns;
}

/* All that are due and whose holds can be for one time: those are marked with the round. */
static bool gather(struct ext *x, uint64_t now_ns, struct ext_call *c)
{
	struct gpu_target *t;
	uint64_t longest_ns = 0;

	x->round++;
	LIST_FOREACH(t, &x->tied, tied) {
		uint64_t hold_ns = ext_hold_ns(x, t->until_ns, now_ns);
		uint64_t shortest_ns = longest_ns ? MIN(c->hold_ns, hold_ns) : hold_ns;

		if (!hold_ns)
			t->renew_ns = NEVER_NS; /* the owner hangs */
		if (!is_due(t, now_ns) || !hold_ns || c->n_unmap + t->n_scopes > x->max_entries ||
		    !ext_lasts_alike(shortest_ns, MAX(longest_ns, hold_ns)))
			continue;
		t->round = x->round;
		c->n_unmap += ext_scopes_fill(t, &x->entries[c->n_unmap]);
		c->hold_ns = shortest_ns;
		longest_ns = MAX(longest_ns, hold_ns);
	}
	return c->n_unmap > 0;
}

/* The first that matters: a queue may be gone. */
static int result_of(const struct kfd_gpreempt_entry *e, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (e[i].result < 0 && e[i].result != -ENOENT)
			return e[i].result;
	}
	return 0;
}

/*
 * An id may be given to another queue, which nobody has asked to hold: what a renewal has taken off
 * by its id is another one, and is put back.
 */
static void forget_gone(struct ext *x, struct gpu_target *t, struct kfd_gpreempt_entry *e)
{
	struct kfd_gpreempt_batch back = { .grace = KFD_GPREEMPT_DEFAULT_GRACE };
	size_t kept = 0;

	for (size_t i = 0; i < t->n_scopes; i++) {
		if (t->exact && e[i].queue_id != KFD_GPREEMPT_ALL_QUEUES && e[i].queues > 0)
			gkfd_ext_batch(x->b->k, &e[i], 0, 1, &back);
		else if (e[i].result != -ENOENT)
			t->scopes[kept++] = t->scopes[i];
	}
	t->n_scopes = kept;
	if (!kept)
		ext_scopes_clear(t);
}

/* What cannot be held on is let go of, and its owner told. */
static void lose(struct ext *x, struct gpu_target *t, int r)
{
	struct kfd_gpreempt_entry e =
		gkfd_ext_entry(t->base.pid, t->start_ticks, KFD_GPREEMPT_ALL_QUEUES);
	struct ext_call c = { .n_map = 1 };
	struct gkfd_failure fail;

	if (r != -ESRCH) {
		x->entries[0] = e;
		ext_call(x, &c);
	}
	r = ext_explain_entry(t, &e, r, &fail);
	if (fail.why == GKFD_WHY_NO_KFD_PROCESS) /* it lives, without the driver */
		fail.why = GKFD_WHY_EXECED;
	ext_lost(t, r, &fail);
}

/* The driver has let go though more was wanted: we, or our owner, stood still. */
static void lose_lapsed(struct ext *x, uint64_t now_ns)
{
	const struct gkfd_failure lapsed = { .why = GKFD_WHY_LAPSED };
	struct gpu_target *t, *next;

	for (t = LIST_FIRST(&x->tied); t; t = next) {
		next = LIST_NEXT(t, tied);
		if (t->exact && t->n_scopes && t->driver_ns <= now_ns)
			ext_lost(t, -EAGAIN, &lapsed);
	}
}

static void settle(struct ext *x, const struct ext_call *c)
{
	struct kfd_gpreempt_entry *e = x->entries;
	struct gpu_target *t, *next;

	LIST_FOREACH(t, &x->tied, tied) {
		if (t->round != x->round)
			continue;
		t->refused = c->r < 0 ? c->r : result_of(e, t->n_scopes);
		e += t->n_scopes;
		ext_note_hold(t, c);
		if (t->refused == 0)
			forget_gone(x, t, e - t->n_scopes);
	}
	for (t = LIST_FIRST(&x->tied); t; t = next) {
		next = LIST_NEXT(t, tied);
		if (t->round == x->round && t->refused < 0)
			lose(x, t, t->refused);
	}
}

uint64_t ext_renew(struct ext *x)
{
	uint64_t now_ns = gkfd_now_ns(x->b->k), next_ns = NEVER_NS;
	struct gpu_target *t;

	LIST_FOREACH(t, &x->tied, tied)
		if (is_over(t, now_ns))
			ext_scopes_clear(t);
	lose_lapsed(x, now_ns);
	for (;;) {
		struct ext_call c = { 0 };

		if (!gather(x, now_ns, &c))
			break;
		ext_call(x, &c);
		settle(x, &c);
	}
	LIST_FOREACH(t, &x->tied, tied) {
		uint64_t at_ns = next_of(t);

		next_ns = MIN(next_ns, at_ns);
	}
	return next_ns;
}

void ext_let_all_go(struct ext *x)
{
	struct ext_call c = { 0 };
	struct gpu_target *t;

	LIST_FOREACH(t, &x->tied, tied) {
		if (!t->n_scopes)
			continue;
		x->entries[c.n_map++] =
			gkfd_ext_entry(t->base.pid, t->start_ticks, KFD_GPREEMPT_ALL_QUEUES);
		if (c.n_map < x->max_entries)
			continue;
		ext_call(x, &c);
		c.n_map = 0;
	}
	if (c.n_map)
		ext_call(x, &c);
}
