/* SPDX-License-Identifier: MIT */
/* The worker's thread: what is ordered, who ended, and what has to be renewed. */
#include <errno.h>
#include <sys/eventfd.h>

#include "gpu/kfd/backend_ext.h"
#include "gpu/kfd/failure.h"
#include "gpu/kfd/procs.h"
#include "util/array.h"
#include "util/macros.h"

/* ---- what came of it ---- */

void ext_explain(struct order *o, int r, const struct gkfd_failure *failure)
{
	o->done.result = r;
	gkfd_failure_describe(o->t->base.b->base.readers ? NULL : o->t->base.b->k, r,
			      o->t->base.pid, failure, &o->done.why);
}

void ext_finish(struct order *o)
{
	struct backend *b = o->t->base.b;

	if (!o->done.began_ns) /* the driver was not asked */
		o->done.began_ns = o->done.done_ns = gkfd_now_ns(b->k);
	o->done.holds = o->t->n_scopes > 0;
	acting_deliver(o);
}

void ext_untie(struct gpu_target *t)
{
	ext_scopes_clear(t);
	if (!t->attached)
		return;
	t->attached = false;
	LIST_REMOVE(t, tied);
	t->base.b->ext->n_tied--;
	closep(&t->pidfd);
	t->pidfd = -1;
}

void ext_lost(struct gpu_target *t, int r, const struct gkfd_failure *failure)
{
	ext_untie(t);
	t->refused = r;
	t->refusal = *failure;
	ext_explain(t->base.ended, r, failure);
	ext_finish(steal_ptr(&t->base.ended));
}

/* ---- attaching ---- */

/*
 * Who it is: the descriptor came first, so that this is about the same process, or it ended. Where
 * it is known when it has to have started, the driver compares that.
 */
static int identify(struct gpu_target *t, struct gkfd_failure *fail)
{
	struct gkfd *k = t->base.b->k;
	struct gkfd_proc_ident ident;
	int r;

	if (t->base.pid == t->base.b->own_pid)
		return gkfd_fail(fail, -EINVAL, GKFD_WHY_OWN_PROCESS, "identify");
	t->pidfd = k->transport->trace->pidfd(k->data, t->base.pid);
	if (t->pidfd == -ESRCH)
		return gkfd_fail(fail, -ESRCH, GKFD_WHY_NO_PROCESS, "identify");
	if (t->start_ticks)
		return 0;
	r = gkfd_leader_find(k, t->base.pid, &ident, fail);
	if (r >= 0)
		t->start_ticks = ident.start_ticks;
	return r;
}

/* By what was borrowed, which is not needed any more then. */
static int prove_right(struct gpu_target *t)
{
	int r = t->n_fds ? 0 : t->borrow_error;

	if (!t->base.b->ext->borrows)
		return gkfd_ext_bind(t->base.b->k, t->base.pid);
	for (uint32_t i = 0; i < t->n_fds; i++) {
		if (r == 0)
			r = gkfd_ext_bind_fd(t->base.b->k, t->base.pid, t->fds[i]);
		closep(&t->fds[i]);
	}
	t->n_fds = 0;
	if (r == 0 || r == -ENOENT)
		return -ESRCH;
	return r == -EACCES ? -EPERM : MIN(r, 0);
}

static int check_right(struct gpu_target *t, struct gkfd_failure *fail)
{
	_cleanup_free_ struct kfd_gpreempt_queue *queues = NULL;
	struct gkfd *k = t->base.b->k;
	int r = prove_right(t);

	if (r >= 0)
		r = gkfd_ext_queues(k, t->base.pid, t->start_ticks, &queues);
	if (r == -EPERM)
		return gkfd_fail(fail, r, GKFD_WHY_NO_RIGHT, "bind");
	if (r < 0)
		return gkfd_fail(fail, r, r == -ESRCH ? GKFD_WHY_NO_KFD_PROCESS : GKFD_WHY_SYSTEM,
				 "bind");
	return 0;
}

static int take_up(struct gpu_target *t, struct gkfd_failure *fail)
{
	struct ext *x = t->base.b->ext;
	int r = array_reserve(&x->polls, x->n_tied + 2, &x->room, sizeof(*x->polls));

	if (r < 0)
		return gkfd_fail(fail, r, GKFD_WHY_SYSTEM, "attach");
	r = identify(t, fail);
	return r < 0 ? r : check_right(t, fail);
}

static void run_attach(struct order *o)
{
	struct gpu_target *t = o->t;
	struct ext *x = t->base.b->ext;

	o->done.began_ns = gkfd_now_ns(t->base.b->k);
	t->refused = take_up(t, &t->refusal);
	o->done.done_ns = gkfd_now_ns(t->base.b->k);
	if (t->refused == 0) {
		t->attached = true;
		LIST_INSERT_HEAD(&x->tied, t, tied);
		x->n_tied++;
	}
	if (t->refused < 0)
		ext_explain(o, t->refused, &t->refusal);
	ext_finish(o);
}

/* ---- the thread ---- */

static void handle_ends(struct ext *x, const struct pollfd *polls)
{
	const struct gkfd_failure exited = { .why = GKFD_WHY_EXITED };
	struct gpu_target *t, *next;

	for (t = LIST_FIRST(&x->tied); t; t = next) {
		next = LIST_NEXT(t, tied);
		if (polls++->revents)
			ext_lost(t, -ESRCH, &exited);
	}
}

static void look_out(struct ext *x, uint64_t until_ns)
{
	uint64_t at_ns = gkfd_now_ns(x->b->k);
	struct pollfd *polls = x->polls;
	struct gpu_target *t;
	eventfd_t count;
	size_t n = 1;

	polls[0] = (struct pollfd){ .fd = x->wake_fd, .events = POLLIN };
	LIST_FOREACH(t, &x->tied, tied)
		polls[n++] = (struct pollfd){ .fd = t->pidfd, .events = POLLIN };
	if (until_ns != NEVER_NS)
		until_ns = until_ns > at_ns ? until_ns - at_ns : 0;
	/* A clock that others move is not moved by waiting here: they tell (ext_tick). */
	if (x->b->k->transport->made_up_time && until_ns > 0)
		until_ns = NEVER_NS;
	if (gkfd_wait(x->b->k, polls, n, until_ns) <= 0)
		return;
	if (polls[0].revents)
		eventfd_read(x->wake_fd, &count);
	handle_ends(x, polls + 1);
}

/* False: it is to end. */
static bool hear(struct ext *x, uint64_t *ret_ticks)
{
	bool stop;

	pthread_mutex_lock(&x->lock);
	STAILQ_CONCAT(&x->queue, &x->orders);
	stop = x->stop;
	*ret_ticks = x->ticks_asked;
	pthread_mutex_unlock(&x->lock);
	return !stop;
}

static void tell_tick(struct ext *x, uint64_t ticks)
{
	pthread_mutex_lock(&x->lock);
	x->ticks_done = ticks;
	pthread_cond_broadcast(&x->ticked);
	pthread_mutex_unlock(&x->lock);
}

static bool run_orders(struct ext *x)
{
	struct order_list batch = STAILQ_HEAD_INITIALIZER(batch);
	struct order *o;

	if (ext_batch_take(x, &batch)) {
		ext_batch_run(x, &batch);
		return true;
	}
	o = STAILQ_FIRST(&x->queue);
	if (!o)
		return false;
	STAILQ_REMOVE_HEAD(&x->queue, link);
	run_attach(o);
	return true;
}

static void *work(void *arg)
{
	struct ext *x = arg;
	uint64_t next_ns = NEVER_NS, ticks;

	for (;;) {
		look_out(x, next_ns);
		if (!hear(x, &ticks))
			break;
		next_ns = ext_renew(x);
		tell_tick(x, ticks);
		if (run_orders(x))
			next_ns = 0;
	}
	ext_let_all_go(x);
	return NULL;
}

int ext_work_start(struct ext *x)
{
	int r = acting_thread(&x->thread, "gpreempt-k3", work, x);

	x->started = r == 0;
	return r;
}

void ext_work_stop(struct ext *x)
{
	if (!x->started)
		return;
	pthread_mutex_lock(&x->lock);
	x->stop = true;
	pthread_mutex_unlock(&x->lock);
	ext_work_wake(x);
	pthread_join(x->thread, NULL);
	x->started = false;
}

void ext_work_wake(struct ext *x)
{
	eventfd_write(x->wake_fd, 1);
}
