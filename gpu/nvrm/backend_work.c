/* SPDX-License-Identifier: MIT */
/*
 * The worker: one thread that owns everything borrowed from processes, does what is ordered, and
 * looks by itself after what must not be forgotten: ends of processes, holds whose time is over,
 * contexts that come later, the guard.
 */
#include <errno.h>
#include <sys/eventfd.h>
#include <time.h>

#include "gpu/nvrm/backend_internal.h"
#include "util/macros.h"

/* ---- the guard ---- */

void nvrm_work_enter(struct backend *b)
{
	if (b->slot >= 0)
		guard_beat(b->guard, b->slot, GUARD_DRIVER_CALL_NS);
}

void nvrm_work_leave(struct backend *b)
{
	if (b->slot >= 0)
		guard_beat(b->guard, b->slot, GUARD_SILENCE_NS);
}

static bool anybody_attached(const struct backend *b)
{
	const struct proc *x;

	LIST_FOREACH(x, &b->procs, link)
		if (x->t || x->owing)
			return true;
	return false;
}

static void follow_slot(struct backend *b)
{
	bool needed = b->guard && !b->guard_died && anybody_attached(b);

	if (needed && b->slot < 0)
		b->slot = guard_arm(b->guard, 0, GUARD_SILENCE_NS);
	else if (!needed && b->slot >= 0)
		guard_disarm(b->guard, b->slot);
	if (!needed)
		b->slot = -1;
	else
		nvrm_work_leave(b);
}

static void lose_all(struct backend *b)
{
	const struct nvrm_failure failure = { .why = NVRM_WHY_GUARD_DIED };
	struct proc *x, *next;

	b->guard_died = true;
	for (x = LIST_FIRST(&b->procs); x; x = next) {
		next = LIST_NEXT(x, link);
		if (!x->t)
			continue;
		nvrm_proc_undo(x);
		nvrm_work_lost(x->t, -EOWNERDEAD, &failure);
		nvrm_proc_put(x);
	}
}

/* ---- what came of it ---- */

void nvrm_work_finish(struct order *o, int r, const struct nvrm_failure *failure)
{
	struct gpu_done *d = &o->done;

	d->result = r;
	if (!d->began_ns) /* the driver was not asked */
		d->began_ns = d->done_ns = nvrm_now_ns(o->t->base.b->n);
	if (r < 0) {
		d->gpu_failed = failure->why == NVRM_WHY_TIMEOUT ||
				failure->why == NVRM_WHY_GPU_LOST;
		d->gpu = failure->gpu;
		nvrm_failure_describe(r, o->t->base.pid, failure, &d->why);
	}
	d->holds = o->t->all || o->t->held;
	acting_deliver(o);
}

void nvrm_work_lost(struct gpu_target *t, int r, const struct nvrm_failure *failure)
{
	t->proc->t = NULL;
	t->proc = NULL;
	t->all = false;
	t->held = 0;
	nvrm_hold_publish(t);
	t->refused = r;
	t->refusal = *failure;
	nvrm_work_finish(steal_ptr(&t->base.ended), r, failure);
}

/* ---- ends ---- */

/* Its descriptors first: with them goes its memory on the GPU. */
static void process_ended(struct proc *x)
{
	const struct nvrm_failure failure = { .why = NVRM_WHY_EXITED };

	x->ended = true;
	nvrm_proc_close(x);
	if (x->t)
		nvrm_work_lost(x->t, -ESRCH, &failure);
	nvrm_hold_attach(x, -ESRCH, &failure);
	nvrm_watch_show(x);
	nvrm_proc_put(x);
}

/* In the order they were put there. */
static void handle_ends(struct backend *b, const struct pollfd *polls)
{
	struct proc *x, *next;

	for (x = LIST_FIRST(&b->procs); x; x = next) {
		next = LIST_NEXT(x, link);
		if (!x->ended && polls++->revents)
			process_ended(x);
	}
}

/* ---- waiting ---- */

static size_t fill_polls(struct backend *b, struct pollfd *ret)
{
	struct proc *x;
	size_t n = 0;

	LIST_FOREACH(x, &b->procs, link)
		if (!x->ended)
			ret[n++] = (struct pollfd){ .fd = x->pidfd, .events = POLLIN };
	return n;
}

static void wait_for(struct backend *b, struct pollfd *polls, size_t n, uint64_t until_ns)
{
	uint64_t at_ns = nvrm_now_ns(b->n), left_ns = until_ns > at_ns ? until_ns - at_ns : 0;
	struct timespec left = { .tv_sec = (time_t)(left_ns / NSEC_PER_SEC),
				 .tv_nsec = (long)(left_ns % NSEC_PER_SEC) };
	eventfd_t count;

	if (ppoll(polls, n, until_ns == NEVER_NS ? NULL : &left, NULL) <= 0) {
		for (size_t i = 0; i < n; i++)
			polls[i].revents = 0;
		return;
	}
	if (polls[0].revents)
		eventfd_read(b->wake_fd, &count);
}

static int guard_end_fd(const struct backend *b)
{
	return b->guard && !b->guard_died ? guard_fd(b->guard) : -1;
}

/* Waits until @until_ns or until something happened, and sees to who ended. */
static void look_out(struct backend *b, uint64_t until_ns)
{
	struct pollfd none[OWN_POLLS], *polls = b->polls ? b->polls : none;
	uint64_t beat_ns = nvrm_now_ns(b->n) + GUARD_BEAT_NS;
	size_t n;

	polls[0] = (struct pollfd){ .fd = b->wake_fd, .events = POLLIN };
	polls[1] = (struct pollfd){ .fd = guard_end_fd(b), .events = POLLIN };
	polls[2] = (struct pollfd){ .fd = nvrm_answers_fd(b->n), .events = POLLIN };
	n = OWN_POLLS + fill_polls(b, polls + OWN_POLLS);
	until_ns = MIN(until_ns, b->hear_ns);
	wait_for(b, polls, n, b->slot >= 0 ? MIN(until_ns, beat_ns) : until_ns);
	handle_ends(b, polls + OWN_POLLS);
	if (polls[1].revents)
		lose_all(b);
}

/* ---- orders ---- */

static const unsigned int ranks[] = {
	[GPU_SUSPEND] = 0, /* somebody waits for the GPU */
	[GPU_RESUME] = 1,  [GPU_SLICE] = 2, [GPU_RELEASE] = 3, [GPU_ATTACH] = 4,
};

/* Of each target only the first one is looked at: they are done in their order. */
static bool is_first(struct backend *b, struct order *o)
{
	bool first = o->t->round != b->round;

	o->t->round = b->round;
	return first;
}

static struct order *most_urgent(struct backend *b)
{
	struct order *o, *best = NULL;

	b->round++;
	STAILQ_FOREACH(o, &b->queue, link)
		if (is_first(b, o) && !o->t->waits &&
		    (!best || ranks[o->done.verb] < ranks[best->done.verb]))
			best = o;
	return best;
}

/* The most urgent one and, of suspends and of resumes, all that can go with it. */
static void take_batch(struct backend *b, struct order *best, struct order_list *ret)
{
	enum gpu_verb verb = best->done.verb;
	bool together = verb == GPU_SUSPEND || verb == GPU_RESUME;
	struct order_list rest = STAILQ_HEAD_INITIALIZER(rest);
	struct order *o;

	b->round++;
	while ((o = STAILQ_FIRST(&b->queue))) {
		bool first = is_first(b, o);

		STAILQ_REMOVE_HEAD(&b->queue, link);
		if (o == best || (together && first && o->done.verb == verb))
			STAILQ_INSERT_TAIL(ret, o, link);
		else
			STAILQ_INSERT_TAIL(&rest, o, link);
	}
	STAILQ_CONCAT(&b->queue, &rest);
}

static bool run_orders(struct backend *b)
{
	struct order_list batch = STAILQ_HEAD_INITIALIZER(batch);
	struct order *best = most_urgent(b);

	if (!best)
		return false;
	take_batch(b, best, &batch);
	nvrm_hold_run(b, &batch);
	return true;
}

/* ---- the thread ---- */

/* False: it is to end. */
static bool hear(struct backend *b)
{
	bool changed, stop;

	pthread_mutex_lock(&b->lock);
	STAILQ_CONCAT(&b->queue, &b->orders);
	changed = b->watches_changed;
	b->watches_changed = false;
	stop = b->stop;
	pthread_mutex_unlock(&b->lock);
	if (changed && !stop)
		nvrm_watch_sweep(b);
	return !stop;
}

/* All at once, so that everybody runs after one call and not after the sum. */
static void undo_all(struct backend *b)
{
	struct nvrm_failure failure;
	struct proc *x;
	size_t n = 0;

	LIST_FOREACH(x, &b->procs, link)
		if (x->t)
			b->batch[n++] = x->p;
	nvrm_work_enter(b);
	if (n > 0)
		nvrm_let_go(b->batch, n, NVRM_ALL_GPUS, &failure);
	nvrm_work_leave(b);
	while ((x = LIST_FIRST(&b->procs))) {
		x->t = NULL;
		x->attach = NULL;
		x->n_watches = 0;
		x->owing = false;
		nvrm_proc_put(x);
	}
	follow_slot(b);
}

/* True: there is an answer that somebody has waited for. */
static bool hear_answers(struct backend *b)
{
	const struct nvrm_transport *t = b->n->transport;
	uint64_t in_ns = t->hear ? t->hear(b->n->data) : NEVER_NS;

	b->hear_ns = in_ns == NEVER_NS ? NEVER_NS : nvrm_now_ns(b->n) + in_ns;
	return nvrm_proc_go_on(b);
}

static void *work(void *arg)
{
	struct backend *b = arg;
	uint64_t next_ns = 0;

	for (;;) {
		uint64_t expire_ns;

		look_out(b, next_ns);
		if (!hear(b))
			break;
		expire_ns = nvrm_hold_expire(b);
		next_ns = run_orders(b) ? 0 : nvrm_watch_look_around(b);
		next_ns = hear_answers(b) ? 0 : MIN(next_ns, expire_ns);
		follow_slot(b);
	}
	undo_all(b);
	return NULL;
}

int nvrm_work_start(struct backend *b)
{
	int r = acting_thread(&b->thread, "gpreempt-nvrm", work, b);

	b->started = r == 0;
	return r;
}

void nvrm_work_stop(struct backend *b)
{
	if (!b->started)
		return;
	pthread_mutex_lock(&b->lock);
	b->stop = true;
	pthread_mutex_unlock(&b->lock);
	nvrm_work_wake(b);
	pthread_join(b->thread, NULL);
	acting_forget(&b->queue);
	free(b->polls);
	free(b->batch);
}

void nvrm_work_wake(struct backend *b)
{
	eventfd_write(b->wake_fd, 1);
}
