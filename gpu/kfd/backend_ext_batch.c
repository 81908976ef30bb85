/* SPDX-License-Identifier: MIT */
/* Who is to leave the GPUs and who is to come back, in one call. */
#include <errno.h>

#include "gpu/kfd/backend_ext.h"
#include "util/macros.h"

/* ---- one call ---- */

uint64_t ext_hold_ns(const struct ext *x, uint64_t until_ns, uint64_t now_ns)
{
	until_ns = MIN(until_ns, __atomic_load_n(&x->owner_ns, __ATOMIC_ACQUIRE));
	return until_ns > now_ns ? MIN(until_ns - now_ns, HOLD_NS) : 0;
}

bool ext_lasts_alike(uint64_t a_ns, uint64_t b_ns)
{
	return MAX(a_ns, b_ns) / 2 <= MIN(a_ns, b_ns);
}

static uint32_t to_ms(uint64_t ns)
{
	return (uint32_t)((ns + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC);
}

void ext_call(struct ext *x, struct ext_call *c)
{
	struct gkfd *k = x->b->k;
	struct kfd_gpreempt_batch batch = {
		.flags = x->flags,
		.grace = MAX(c->grace_kclk, KFD_GRACE_KCLK_MIN),
		.hold_ms = c->n_unmap ? to_ms(c->hold_ns) : 0,
	};

	c->began_ns = gkfd_now_ns(k);
	c->r = gkfd_ext_batch(k, x->entries, c->n_unmap, c->n_map, &batch);
	c->done_ns = gkfd_now_ns(k);
	c->took_ns = batch.took_ns;
}

void ext_note_hold(struct gpu_target *t, const struct ext_call *c)
{
	t->driver_ns = c->began_ns + to_ms(c->hold_ns) * NSEC_PER_MSEC;
	t->renew_ns = c->began_ns + c->hold_ns / 2;
}

/* ---- which orders ---- */

static uint64_t until(const struct order *o)
{
	const struct gpu_target *t = o->t;
	uint64_t at_ns;

	if (!o->what.longest_ns || __builtin_add_overflow(o->called_ns, o->what.longest_ns, &at_ns))
		return NEVER_NS;
	return t->n_scopes ? MAX(t->until_ns, at_ns) : at_ns;
}

struct batch_size {
	uint32_t entries;
	uint64_t shortest_ns, longest_ns; /* of holds; 0: there is none */
};

static bool fits(const struct ext *x, const struct order *o, struct batch_size *size)
{
	struct batch_size more = *size;
	uint64_t now_ns = gkfd_now_ns(x->b->k), until_ns = until(o), hold_ns;

	more.entries += o->what.ids ? (uint32_t)o->what.n : 1;
	if (o->done.verb == GPU_SUSPEND && until_ns > now_ns) {
		hold_ns = ext_hold_ns(x, until_ns, now_ns);
		more.shortest_ns = size->longest_ns ? MIN(size->shortest_ns, hold_ns) : hold_ns;
		more.longest_ns = MAX(size->longest_ns, hold_ns);
	}
	if (size->entries && (more.entries > x->max_entries ||
			      !ext_lasts_alike(more.shortest_ns, more.longest_ns)))
		return false;
	*size = more;
	return true;
}

/* Of each target only the first one is looked at: they are done in their order. */
static bool is_first(struct ext *x, struct order *o)
{
	bool first = o->t->round != x->round;

	o->t->round = x->round;
	return first;
}

bool ext_batch_take(struct ext *x, struct order_list *ret)
{
	struct order_list rest = STAILQ_HEAD_INITIALIZER(rest);
	struct batch_size size = { 0 };
	struct order *o;

	x->round++;
	while ((o = STAILQ_FIRST(&x->queue))) {
		bool first = is_first(x, o);

		STAILQ_REMOVE_HEAD(&x->queue, link);
		if (first && o->done.verb != GPU_ATTACH && fits(x, o, &size))
			STAILQ_INSERT_TAIL(ret, o, link);
		else
			STAILQ_INSERT_TAIL(&rest, o, link);
	}
	STAILQ_CONCAT(&x->queue, &rest);
	return !STAILQ_EMPTY(ret);
}

/* ---- their entries ---- */

/* It is none of the call. */
static void refuse(struct order *o, int error, enum gkfd_why why, const char *step)
{
	struct gkfd_failure fail;

	gkfd_fail(&fail, error, why, step);
	o->t->n_entries = 0;
	ext_explain(o, error, &fail);
}

static void fill_suspend(struct ext *x, struct order *o, struct ext_call *c)
{
	struct gpu_target *t = o->t;
	uint64_t hold_ns = ext_hold_ns(x, until(o), gkfd_now_ns(x->b->k));
	int r;

	o->t->entry = c->n_unmap;
	if (hold_ns == 0) {
		refuse(o, -ETIMEDOUT, GKFD_WHY_TOO_LATE, "hold");
		return;
	}
	r = ext_scopes_reserve(t, &o->what, x->max_entries);
	if (r < 0) {
		refuse(o, r == -E2BIG ? -EINVAL : r,
		       r == -E2BIG ? GKFD_WHY_TOO_MANY_QUEUES : GKFD_WHY_SYSTEM, "hold");
		return;
	}
	o->t->n_entries = o->what.ids ? (uint32_t)o->what.n : 1;
	for (uint32_t i = 0; i < o->t->n_entries; i++)
		x->entries[o->t->entry + i] =
			gkfd_ext_entry(t->base.pid, t->start_ticks,
				       o->what.ids ? o->what.ids[i] : KFD_GPREEMPT_ALL_QUEUES);
	c->n_unmap += o->t->n_entries;
	c->hold_ns = c->hold_ns ? MIN(c->hold_ns, hold_ns) : hold_ns;
	c->grace_kclk = MAX(c->grace_kclk, o->what.grace_kclk);
}

static void fill_resume(struct ext *x, struct order *o, struct ext_call *c)
{
	int n;

	o->t->entry = c->n_unmap + c->n_map;
	n = ext_scopes_remove(o->t, &o->what, &x->entries[o->t->entry],
			      x->max_entries - o->t->entry);
	if (n < 0) {
		refuse(o, n, n == -ESRCH ? GKFD_WHY_EXITED : GKFD_WHY_SYSTEM, "resume");
		return;
	}
	o->t->n_entries = (uint32_t)n;
	c->n_map += o->t->n_entries;
}

static bool is_refused(struct order *o)
{
	if (o->t->attached)
		return false;
	o->t->n_entries = 0;
	if (o->done.verb != GPU_RELEASE)
		ext_explain(o, o->t->refused, &o->t->refusal);
	return true;
}

/* Those that leave come first. */
static void fill(struct ext *x, struct order_list *batch, struct ext_call *c)
{
	struct order *o;

	STAILQ_FOREACH(o, batch, link)
		if (o->done.verb == GPU_SUSPEND && !is_refused(o))
			fill_suspend(x, o, c);
	STAILQ_FOREACH(o, batch, link)
		if (o->done.verb != GPU_SUSPEND && !is_refused(o))
			fill_resume(x, o, c);
}

/* ---- what became of them ---- */

/* The entry may be for several: then the one of them that the driver has given up. */
static uint32_t failed_gpu(const struct gpu_target *t, const struct kfd_gpreempt_entry *e)
{
	_cleanup_free_ struct kfd_gpreempt_queue *queues = NULL;
	int n;

	if (e->gpu_id != KFD_GPREEMPT_ANY_GPU)
		return e->gpu_id;
	n = gkfd_ext_queues(t->base.b->k, t->base.pid, t->start_ticks, &queues);
	for (int i = 0; i < n; i++) {
		struct kfd_gpreempt_hqd hqd = { .gpu_id = queues[i].gpu_id };

		if (e->queue_id == queues[i].queue_id)
			return queues[i].gpu_id;
		if (e->queue_id == KFD_GPREEMPT_ALL_QUEUES &&
		    gkfd_ext_call(t->base.b->k, KFD_GPREEMPT_GET_HQD_STATUS, &hqd) == 0 &&
		    hqd.flags & (KFD_GPREEMPT_HQD_HANG | KFD_GPREEMPT_HQD_HALTED))
			return queues[i].gpu_id;
	}
	return 0;
}

static void explain_preemption(struct order *o, int r, const struct kfd_gpreempt_entry *e)
{
	struct gpu_done *d = &o->done;
	const char *what = d->verb == GPU_SUSPEND ? "taken off" : "put back on";
	char gpu[32] = "the GPU";

	d->result = r;
	d->gpu_failed = true;
	d->gpu = failed_gpu(o->t, e);
	if (d->gpu)
		snprintf(gpu, sizeof(gpu), "GPU %u", d->gpu);
	gpu_why_set(&d->why, GPU_WHY_FAILED,
		    "nothing is held; the driver may reset that GPU: look at dmesg",
		    "process %d could not be %s %s", (int)o->t->base.pid, what, gpu);
}

/* Readers alone may look at who ended, and at who holds it. */
int ext_explain_entry(struct gpu_target *t, const struct kfd_gpreempt_entry *e, int r,
		      struct gkfd_failure *fail)
{
	if (!t->base.b->base.readers)
		return gkfd_ext_explain(t->base.b->k, e, r, fail);
	if (r == -ESRCH)
		return gkfd_fail(fail, r, GKFD_WHY_EXITED, "call");
	if (r == -EPERM)
		return gkfd_fail(fail, r, GKFD_WHY_NO_RIGHT, "call");
	return gkfd_fail(fail, r, GKFD_WHY_SYSTEM,
			 r == -EBUSY ? "another program holds it" : "the extension");
}

/* @e NULL: nothing was tried. */
static void explain(struct ext *x, struct order *o, int r, const struct kfd_gpreempt_entry *e)
{
	struct gkfd_failure fail;

	if (e && (r == -EIO || r == -ETIME)) {
		explain_preemption(o, -EIO, e);
		return;
	}
	r = ext_explain_entry(o->t, e ? e : &x->entries[o->t->entry], r, &fail);
	ext_explain(o, r, &fail);
}

/* A queue that is gone is as good as off, or on, unless somebody wants just that one. */
static int entry_result(const struct order *o, const struct kfd_gpreempt_entry *e)
{
	bool back = o->done.verb != GPU_SUSPEND;

	if (e->result == -ENOENT && (back || !o->what.exact))
		return 0;
	return back && e->result == -EALREADY ? 0 : e->result;
}

static void judge(struct ext *x, struct order *o, const struct ext_call *c)
{
	const struct kfd_gpreempt_entry *e = NULL;
	int r = MIN(c->r, 0);

	if (!o->t->n_entries)
		return;
	o->done.began_ns = c->began_ns;
	o->done.done_ns = c->done_ns;
	o->done.took_ns = c->took_ns;
	for (uint32_t i = 0; r == 0 && i < o->t->n_entries; i++) {
		e = &x->entries[o->t->entry + i];
		o->done.queues += e->queues;
		r = entry_result(o, e);
	}
	if (r == 0)
		return;
	o->done.queues = 0;
	explain(x, o, r, e);
}

static void held(struct order *o, const struct ext_call *c)
{
	struct gpu_target *t = o->t;
	uint64_t until_ns = until(o), driver_ns = t->driver_ns, renew_ns = t->renew_ns;

	if (!o->t->n_entries)
		return;
	ext_scopes_add(t, &o->what);
	t->exact = o->what.exact;
	t->until_ns = until_ns;
	ext_note_hold(t, c);
	if (o->what.ids) { /* what was held before may end earlier */
		t->driver_ns = MIN(t->driver_ns, driver_ns);
		t->renew_ns = MIN(t->renew_ns, renew_ns);
	}
}

/* What one GPU refused is not kept on the others. What was held before stays, but with all. */
static void undo(struct ext *x, struct order *o)
{
	struct gpu_target *t = o->t;
	struct ext_call c = { 0 };

	if (!o->what.ids) {
		ext_scopes_clear(t);
		x->entries[c.n_map++] =
			gkfd_ext_entry(t->base.pid, t->start_ticks, KFD_GPREEMPT_ALL_QUEUES);
	}
	for (size_t i = 0; i < o->what.n; i++) {
		if (!ext_scopes_has(t, o->what.ids[i]))
			x->entries[c.n_map++] =
				gkfd_ext_entry(t->base.pid, t->start_ticks, o->what.ids[i]);
	}
	if (c.n_map)
		ext_call(x, &c);
}

static void settle(struct ext *x, struct order *o, const struct ext_call *c)
{
	const struct gkfd_failure exited = { .why = GKFD_WHY_EXITED };
	struct gpu_target *t = o->t;
	int r = o->done.result;

	if (o->done.verb == GPU_SUSPEND && r == 0)
		held(o, c);
	else if (o->done.verb == GPU_SUSPEND && o->t->n_entries && r != -ESRCH)
		undo(x, o);
	if (o->done.verb == GPU_RELEASE) {
		ext_untie(t);
		if (r == -ESRCH)
			o->done.result = o->done.why.message[0] = 0;
		ext_finish(o);
		return;
	}
	ext_finish(o);
	if (r == -ESRCH && t->attached)
		ext_lost(t, r, &exited);
}

void ext_batch_run(struct ext *x, struct order_list *batch)
{
	struct ext_call c = { 0 };
	struct order *o;

	fill(x, batch, &c);
	if (c.n_unmap || c.n_map)
		ext_call(x, &c);
	STAILQ_FOREACH(o, batch, link)
		judge(x, o, &c);
	while ((o = STAILQ_FIRST(batch))) {
		STAILQ_REMOVE_HEAD(batch, link);
		settle(x, o, &c);
	}
}
