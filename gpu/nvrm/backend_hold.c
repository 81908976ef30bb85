/* SPDX-License-Identifier: MIT */
/* What the worker does to processes: those that are to leave a GPU at a time leave it together. */
#include <errno.h>

#include "gpu/freezer.h"
#include "gpu/nvrm/backend_internal.h"
#include "gpu/nvrm/internal.h"
#include "util/macros.h"

#define AGAIN_NS (100 * NSEC_PER_MSEC) /* after a call that failed and must not be given up */

static bool gpu_failed(const struct nvrm_failure *f)
{
	return f->why == NVRM_WHY_TIMEOUT || f->why == NVRM_WHY_GPU_LOST;
}

static bool is_held(const struct gpu_target *t)
{
	return t->all || t->held;
}

/* ---- one call for many ---- */

struct call {
	bool holds; /* else it lets go */
	uint32_t gpu, bit;
	int r;
	uint64_t began_ns, done_ns;
	struct nvrm_failure failure;
};

static void call(struct backend *b, struct call *c, struct nvrm_process *const *procs, size_t n)
{
	uint64_t off_ns = 0;

	c->failure = (struct nvrm_failure){ 0 };
	nvrm_work_enter(b);
	c->began_ns = nvrm_now_ns(b->n);
	c->r = c->holds ? nvrm_hold(procs, n, c->gpu, &off_ns, &c->failure) :
			  nvrm_let_go(procs, n, c->gpu, &c->failure);
	c->done_ns = c->r >= 0 && off_ns ? off_ns : nvrm_now_ns(b->n);
	nvrm_work_leave(b);
}

static void note(struct order *o, const struct call *c)
{
	if (!o->done.began_ns)
		o->done.began_ns = c->began_ns;
	o->done.done_ns = MAX(o->done.done_ns, c->done_ns);
	if (c->r >= 0)
		return;
	o->done.result = c->r;
	o->t->failure = c->failure;
	if (!o->t->failure.gpu)
		o->t->failure.gpu = c->gpu;
}

static bool is_concerned(const struct order *o, const struct call *c)
{
	return o->done.result == 0 && (o->t->want & c->bit);
}

static size_t gather(struct backend *b, const struct order_list *batch, const struct call *c)
{
	struct order *o;
	size_t n = 0;

	STAILQ_FOREACH(o, batch, link)
		if (is_concerned(o, c))
			b->batch[n++] = o->t->proc->p;
	return n;
}

/*
 * A context that is gone, and whose channels the driver does not know, is nobody's fault. What has
 * come in its place is looked for at once, but others do not wait for that.
 */
static void call_again(struct backend *b, struct order *o, struct call *c)
{
	struct proc *x = o->t->proc;

	nvrm_work_enter(b);
	nvrm_process_prune(x->p);
	/* What of the call was done nobody knows: to enable what is enabled does no harm. */
	if (c->holds)
		nvrm_let_go(&x->p, 1, c->gpu, &c->failure);
	nvrm_work_leave(b);
	x->look_ns = 0;
	nvrm_watch_show(x);
	call(b, c, &x->p, 1);
}

/* What the driver says to many may be the fault of one: then each is asked for by itself. */
static void call_for_all(struct backend *b, struct order_list *batch, struct call *c)
{
	size_t n = gather(b, batch, c);
	struct order *o;
	bool together;

	if (!n)
		return;
	call(b, c, b->batch, n);
	together = c->r >= 0 || gpu_failed(&c->failure);
	STAILQ_FOREACH(o, batch, link) {
		if (!is_concerned(o, c))
			continue;
		if (!together)
			call_again(b, o, c);
		note(o, c);
	}
}

/* ---- orders ---- */

/* Which GPUs an order is about: of queues that are gone, none. */
static void find_gpus(const struct order *o)
{
	const struct proc *x = o->t->proc;

	o->t->want = o->what.ids ? 0 : nvrm_proc_gpus(x);
	for (uint32_t i = 0; i < o->what.n; i++)
		o->t->want |= nvrm_proc_gpu_of(x, o->what.ids[i]);
}

static bool ended(const struct gpu_target *t)
{
	return nvrm_process_ended(t->proc->p);
}

static void refuse(struct order *o)
{
	if (o->t->proc && !ended(o->t))
		return;
	o->done.result = o->t->proc ? -ESRCH : o->t->refused;
	o->t->failure =
		o->t->proc ? (struct nvrm_failure){ .why = NVRM_WHY_EXITED } : o->t->refusal;
}

/* Nobody counts on it any more. */
static bool is_too_late(const struct order *o)
{
	return o->what.longest_ns &&
	       nvrm_now_ns(o->t->base.b->n) - o->called_ns >= o->what.longest_ns;
}

/* Only these, or, where none is named, all; with those that only copy. */
static int choose(struct order *o)
{
	struct nvrm_process *p = o->t->proc->p;

	p->spares_copies = false;
	for (size_t i = 0; i < p->n_groups; i++)
		p->groups[i].spared = o->what.ids;
	for (uint32_t i = 0; i < o->what.n; i++) {
		struct nvrm_group *g = nvrm_group_find(p, o->what.ids[i]);

		if (!g || !g->spared) {
			nvrm_fail(&o->t->failure, -EINVAL, g ? NVRM_WHY_TWICE : NVRM_WHY_NO_GROUP,
				  "choosing its groups");
			o->t->failure.group = o->what.ids[i];
			return -EINVAL;
		}
		g->spared = false;
		o->t->want |= nvrm_gpu_bit(o->t->base.b, g->gpu);
	}
	return 0;
}

/* People name what they see now. */
static void admit_exact(struct order *o)
{
	struct backend *b = o->t->base.b;

	nvrm_work_enter(b);
	o->t->proc->p->found_ns = 0; /* its descriptors, too */
	o->done.result = MIN(nvrm_process_refresh(o->t->proc->p, &o->t->failure), 0);
	nvrm_work_leave(b);
	if (o->done.result == 0)
		o->done.result = choose(o);
	if (!o->what.ids)
		o->t->want = nvrm_proc_gpus(o->t->proc);
}

static void admit(struct order *o)
{
	o->t->want = 0;
	refuse(o);
	if (o->done.result < 0)
		return;
	if (o->done.verb == GPU_SUSPEND && is_too_late(o)) {
		o->done.result = nvrm_fail(&o->t->failure, -ETIMEDOUT, NVRM_WHY_SYSTEM,
					   "its hold was over before it began");
		return;
	}
	if (o->what.exact)
		admit_exact(o);
	else
		find_gpus(o);
	o->t->off = nvrm_groups_off(o->t->proc->p, NVRM_ALL_GPUS);
}

/* Who is not held by now may still be owed an end (let_go_later), which comes no later for it. */
static void keep_until(struct gpu_target *t, const struct order *o)
{
	uint64_t at_ns;

	if (!o->what.longest_ns || __builtin_add_overflow(o->called_ns, o->what.longest_ns, &at_ns))
		at_ns = NEVER_NS;
	t->until_ns = is_held(t) ? MAX(t->until_ns, at_ns) : MIN(t->until_ns, at_ns);
}

/* Groups that were off may be gone. */
static void count_changed(struct order *o)
{
	size_t off = nvrm_groups_off(o->t->proc->p, NVRM_ALL_GPUS);
	bool suspends = o->done.verb == GPU_SUSPEND;
	size_t from = suspends ? o->t->off : off, to = suspends ? off : o->t->off;

	o->done.queues = to > from ? (uint32_t)(to - from) : 0;
}

void nvrm_hold_publish(struct gpu_target *t)
{
	const struct nvrm_process *p = t->proc ? t->proc->p : NULL;
	size_t n = p ? nvrm_groups_off(p, NVRM_ALL_GPUS) : 0, at = 0;
	uint32_t *ids = n ? calloc(n, sizeof(*ids)) : NULL, *before;

	for (size_t i = 0; ids && i < p->n_groups; i++)
		if (p->groups[i].n_off > 0 && at < n)
			ids[at++] = nvrm_group_id(p, &p->groups[i]);
	pthread_mutex_lock(&t->base.b->lock);
	before = t->off_ids;
	t->off_ids = ids;
	t->n_off = at;
	t->holds = is_held(t) || n > 0;
	pthread_mutex_unlock(&t->base.b->lock);
	free(before);
}

static void suspended(struct order *o)
{
	struct gpu_target *t = o->t;

	keep_until(t, o);
	t->all |= !o->what.ids;
	t->named = o->what.exact && o->what.ids;
	t->held |= t->want;
	count_changed(o);
}

/* What one GPU refused is not kept on the others. */
static void not_suspended(struct order *o)
{
	struct gpu_target *t = o->t;

	for (uint32_t i = 0; t->proc && !t->all && i < t->base.b->n_gpus; i++) {
		struct call c = { .gpu = t->base.b->gpus[i] };

		if ((t->want & ~t->held) >> i & 1 && nvrm_groups_off(t->proc->p, c.gpu) > 0)
			call(t->base.b, &c, &t->proc->p, 1);
	}
}

/* Nothing of it is to be off: as before any hold. */
static void forget_hold(struct gpu_target *t)
{
	struct nvrm_process *p = t->proc->p;

	t->all = t->named = false;
	t->held = 0;
	t->until_ns = NEVER_NS;
	p->spares_copies = true;
	for (size_t i = 0; i < p->n_groups; i++)
		p->groups[i].spared = false;
}

static void resumed(struct order *o)
{
	struct gpu_target *t = o->t;
	bool owed = !is_held(t) && nvrm_groups_off(t->proc->p, NVRM_ALL_GPUS) > 0;

	if (t->all)
		t->held = nvrm_proc_gpus(t->proc);
	t->all = false;
	if (!o->what.ids)
		forget_hold(t);
	t->held &= ~t->want;
	if (!is_held(t) && !owed)
		t->until_ns = NEVER_NS;
	count_changed(o);
}

/* It is to be held no more, but the driver would not have it so: that is tried again. */
static void let_go_later(struct gpu_target *t)
{
	forget_hold(t);
	t->until_ns = nvrm_now_ns(t->base.b->n) + AGAIN_NS;
}

/* Who ended meanwhile was left out. */
static void settle(struct order *o)
{
	refuse(o);
	if (o->done.verb == GPU_SUSPEND)
		(o->done.result < 0 ? not_suspended : suspended)(o);
	else if (o->done.result == 0)
		resumed(o);
	else if (!o->what.ids && o->t->proc)
		let_go_later(o->t);
	nvrm_hold_publish(o->t);
	nvrm_work_finish(o, o->done.result, &o->t->failure);
}

static void run_together(struct backend *b, struct order_list *batch)
{
	struct call c = { .holds = STAILQ_FIRST(batch)->done.verb == GPU_SUSPEND };
	struct order *o;

	STAILQ_FOREACH(o, batch, link)
		admit(o);
	for (uint32_t i = 0; i < b->n_gpus; i++) {
		c.gpu = b->gpus[i];
		c.bit = 1u << i;
		call_for_all(b, batch, &c);
	}
	while ((o = STAILQ_FIRST(batch))) {
		STAILQ_REMOVE_HEAD(batch, link);
		settle(o);
	}
}

static const uint64_t slices_us[] = {
	[GPU_SLICE_OWN] = 0,
	[GPU_SLICE_SHORT] = NVRM_SHORT_SLICE_US,
	[GPU_SLICE_LONG] = NVRM_LONG_SLICE_US,
};

static void run_slice(struct order *o)
{
	struct gpu_target *t = o->t;
	struct backend *b = t->base.b;

	refuse(o);
	if (o->done.result == 0) {
		nvrm_work_enter(b);
		o->done.began_ns = nvrm_now_ns(b->n);
		o->done.result =
			nvrm_slice(t->proc->p, NVRM_ALL_GPUS, slices_us[o->slice], &o->t->failure);
		o->done.done_ns = nvrm_now_ns(b->n);
		nvrm_work_leave(b);
	}
	if (o->done.result >= 0)
		t->slice = o->slice;
	nvrm_work_finish(o, MIN(o->done.result, 0), &o->t->failure);
}

/* ---- beginning and ending ---- */

static int take_up(struct gpu_target *t, struct proc *x, struct nvrm_failure *failure)
{
	int r;

	if (t->base.b->guard_died) {
		failure->why = NVRM_WHY_GUARD_DIED;
		return -EOWNERDEAD;
	}
	if (t->base.b->guard && freezer_check(x->pid) < 0)
		return nvrm_fail(failure, -EPERM, NVRM_WHY_FREEZER, NULL);
	nvrm_proc_number_groups(x);
	r = nvrm_entrust_to(x->p, t->base.b->guard, failure);
	if (r < 0)
		return r;
	x->t = t;
	x->look_ns = 0; /* it may have been opened long ago */
	t->proc = x;
	return 0;
}

static void attached(struct order *o, int r)
{
	struct gpu_target *t = o->t;

	t->refused = r;
	o->done.done_ns = nvrm_now_ns(t->base.b->n);
	if (t->proc)
		nvrm_watch_show(t->proc);
	nvrm_work_finish(o, r, &t->refusal);
}

/* Whoever can be attached: nobody else has it, and nothing is left of before. */
static int find_proc(struct gpu_target *t, struct proc **ret, struct nvrm_failure *failure)
{
	struct proc *x;
	int r = nvrm_proc_get(t->base.b, t->base.pid, &x);

	failure->why = r == -ESRCH ? NVRM_WHY_EXITED : NVRM_WHY_SYSTEM;
	failure->step = "opening it";
	if (r < 0)
		return r;
	if (x->owing)
		nvrm_proc_undo(x);
	if (x->t || x->attach || x->owing) {
		failure->step = x->owing ? "what was done to it before is not undone yet" :
					   "it is attached already";
		return -EBUSY;
	}
	*ret = x;
	return 0;
}

/* The order stays in the queue, so that what is ordered after it waits, too. */
static void wait_for_look(struct proc *x, struct order *o)
{
	o->t->waits = true;
	STAILQ_INSERT_HEAD(&x->b->queue, o, link);
	x->attach = o;
	x->look_ns = x->looked = 0;
}

static void run_attach(struct order *o)
{
	struct gpu_target *t = o->t;
	struct proc *x;
	int r = find_proc(t, &x, &t->refusal);

	o->done.began_ns = nvrm_now_ns(t->base.b->n);
	if (r >= 0 && !x->p) {
		wait_for_look(x, o);
		return;
	}
	if (r >= 0) {
		r = take_up(t, x, &t->refusal);
		nvrm_proc_put(x);
	}
	attached(o, r);
}

void nvrm_hold_attach(struct proc *x, int r, const struct nvrm_failure *failure)
{
	struct order *o = steal_ptr(&x->attach);

	if (!o)
		return;
	STAILQ_REMOVE(&x->b->queue, o, order, link);
	o->t->waits = false;
	o->t->refusal = *failure;
	attached(o, r < 0 ? r : take_up(o->t, x, &o->t->refusal));
}

static void run_release(struct order *o)
{
	struct gpu_target *t = o->t;
	struct proc *x = steal_ptr(&t->proc);

	o->done.began_ns = nvrm_now_ns(t->base.b->n);
	if (x) {
		x->t = NULL;
		nvrm_proc_undo(x);
		nvrm_proc_put(x);
	}
	o->done.done_ns = nvrm_now_ns(t->base.b->n);
	nvrm_work_finish(o, 0, NULL);
}

void nvrm_hold_run(struct backend *b, struct order_list *batch)
{
	struct order *o = STAILQ_FIRST(batch);

	switch (o->done.verb) {
	case GPU_ATTACH:
		run_attach(o);
		break;
	case GPU_SLICE:
		run_slice(o);
		break;
	case GPU_RELEASE:
		run_release(o);
		break;
	default:
		run_together(b, batch);
	}
}

/* ---- by itself ---- */

int nvrm_hold_again(struct proc *x, struct nvrm_failure *ret_failure)
{
	struct gpu_target *t = x->t;
	uint32_t gpus;
	int r = 0;

	if (!t || t->named)
		return 0;
	gpus = t->all ? nvrm_proc_gpus(x) : t->held;
	for (uint32_t i = 0; r >= 0 && i < x->b->n_gpus; i++) {
		struct call c = { .holds = true, .gpu = x->b->gpus[i] };

		if (!(gpus >> i & 1))
			continue;
		call(x->b, &c, &x->p, 1);
		*ret_failure = c.failure;
		r = c.r;
	}
	if (gpus)
		nvrm_hold_publish(t);
	if (r >= 0 && t->slice != GPU_SLICE_OWN) {
		nvrm_work_enter(x->b);
		r = nvrm_slice(x->p, NVRM_ALL_GPUS, slices_us[t->slice], ret_failure);
		nvrm_work_leave(x->b);
	}
	return MIN(r, 0);
}

uint64_t nvrm_hold_expire(struct backend *b)
{
	struct call c = { .gpu = NVRM_ALL_GPUS };
	uint64_t at_ns = nvrm_now_ns(b->n), next_ns = NEVER_NS;
	struct proc *x;
	size_t n = 0;
	bool each;

	LIST_FOREACH(x, &b->procs, link)
		if (x->t && x->t->until_ns <= at_ns)
			b->batch[n++] = x->p;
	if (n > 0)
		call(b, &c, b->batch, n);
	each = n > 1 && c.r < 0; /* it may be the fault of one */
	for (size_t i = 0; each && i < n; i++)
		call(b, &c, &b->batch[i], 1);
	LIST_FOREACH(x, &b->procs, link) {
		struct gpu_target *t = x->t;

		if (!t)
			continue;
		if (t->until_ns <= at_ns) { /* what the driver says may be of another */
			(nvrm_groups_off(x->p, NVRM_ALL_GPUS) ? let_go_later : forget_hold)(t);
			nvrm_hold_publish(t);
		}
		next_ns = MIN(next_ns, t->until_ns);
	}
	return next_ns;
}
