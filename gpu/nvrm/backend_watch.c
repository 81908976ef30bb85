/* SPDX-License-Identifier: MIT */
/* Which groups a process has: looked at by the worker, shown to the owner as a copy. */
#include <errno.h>

#include "gpu/nvrm/backend_internal.h"
#include "util/macros.h"

/* A young process still makes its contexts; one that has not changed is looked at more seldom. */
#define LOOK_FIRST_NS (20 * NSEC_PER_MSEC)
#define LOOK_LAST_NS (2 * NSEC_PER_SEC)
#define LOOK_ATTACHED_NS (250 * NSEC_PER_MSEC) /* what it creates is to be held, too */

#define PAY_LAST_NS (30 * NSEC_PER_SEC) /* calls of a GPU in trouble may take seconds */

/* ---- the owner's side ---- */

int nvrm_watch_new(struct gpu_backend *base, pid_t pid, struct gpu_watch **ret)
{
	struct backend *b = (struct backend *)base;
	struct gpu_watch *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->b = b;
	w->pid = pid;
	pthread_mutex_lock(&b->lock);
	LIST_INSERT_HEAD(&b->watches, w, link);
	b->watches_changed = true;
	pthread_mutex_unlock(&b->lock);
	nvrm_work_wake(b);
	*ret = w;
	return 0;
}

void nvrm_watch_leave(struct gpu_watch *w)
{
	struct backend *b;

	if (!w)
		return;
	b = w->b;
	pthread_mutex_lock(&b->lock);
	w->left = true;
	b->watches_changed = true;
	pthread_mutex_unlock(&b->lock);
	nvrm_work_wake(b);
}

static void watch_free(struct gpu_watch *w)
{
	LIST_REMOVE(w, link);
	free(w->queues);
	free(w->fresh);
	free(w);
}

void nvrm_watch_free_all(struct backend *b)
{
	while (!LIST_EMPTY(&b->watches))
		watch_free(LIST_FIRST(&b->watches));
}

static bool is_same(const struct gpu_watch *w)
{
	if (w->n != w->n_fresh)
		return false;
	for (size_t i = 0; i < w->n; i++)
		if (w->queues[i].gpu != w->fresh[i].gpu || w->queues[i].queue != w->fresh[i].queue)
			return false;
	return true;
}

int nvrm_watch_refresh(struct gpu_watch *w)
{
	int r = 0;

	pthread_mutex_lock(&w->b->lock);
	if (w->ended) {
		r = -ESRCH;
	} else if (w->news) {
		r = !is_same(w);
		free(w->queues);
		w->queues = steal_ptr(&w->fresh);
		w->n = w->n_fresh;
		w->news = false;
	}
	pthread_mutex_unlock(&w->b->lock);
	return r;
}

const struct gpu_queue *nvrm_watch_queues(const struct gpu_watch *w, size_t *ret_n)
{
	*ret_n = w->n;
	return w->queues;
}

/* Nobody can see what waits on these GPUs. */
void nvrm_watch_look(struct gpu_backend *base, struct gpu_watch *const *watches, size_t n)
{
}

int nvrm_watch_looked(struct gpu_watch *w, const struct gpu_sample **ret)
{
	return 0;
}

const char *nvrm_watch_blind(const struct gpu_watch *w)
{
	int unanswered;

	pthread_mutex_lock(&w->b->lock);
	unanswered = w->unanswered;
	pthread_mutex_unlock(&w->b->lock);
	return unanswered ? readers_why(unanswered) : NULL;
}

/* ---- the worker's ---- */

static void show(struct proc *x, struct gpu_watch *w)
{
	size_t n = x->p ? x->p->n_groups : 0;
	struct gpu_queue *fresh = calloc(n + 1, sizeof(*fresh));

	w->ended = x->ended;
	w->unanswered = x->unanswered;
	if (!fresh)
		return; /* it keeps what it has, until something changes again */
	for (size_t i = 0; i < n; i++)
		fresh[i] = (struct gpu_queue){ x->p->groups[i].gpu, x->p->groups[i].number, false };
	free(w->fresh);
	w->fresh = fresh;
	w->n_fresh = n;
	w->news = true;
}

void nvrm_watch_show(struct proc *x)
{
	struct gpu_watch *w;

	pthread_mutex_lock(&x->b->lock);
	LIST_FOREACH(w, &x->b->watches, link)
		if (w->proc == x)
			show(x, w);
	pthread_mutex_unlock(&x->b->lock);
}

static void begin(struct gpu_watch *w)
{
	int r = nvrm_proc_get(w->b, w->pid, &w->proc);

	if (r < 0) {
		w->proc = NULL;
		w->ended = true; /* or cannot be followed, which the owner asks for anew */
		return;
	}
	w->proc->n_watches++;
	if (w->proc->p || w->proc->unanswered)
		show(w->proc, w);
}

void nvrm_watch_sweep(struct backend *b)
{
	struct gpu_watch *w, *next_w;
	struct proc *x, *next_x;

	pthread_mutex_lock(&b->lock);
	for (w = LIST_FIRST(&b->watches); w; w = next_w) {
		next_w = LIST_NEXT(w, link);
		if (w->left && w->proc)
			w->proc->n_watches--;
		if (w->left)
			watch_free(w);
		else if (!w->proc && !w->ended)
			begin(w);
	}
	pthread_mutex_unlock(&b->lock);
	/* What is freed may have to be closed, and the owner does not wait for that. */
	for (x = LIST_FIRST(&b->procs); x; x = next_x) {
		next_x = LIST_NEXT(x, link);
		nvrm_proc_put(x);
	}
}

static int follow(struct proc *x, struct nvrm_failure *ret_failure)
{
	int r;

	nvrm_proc_number_groups(x);
	r = nvrm_hold_again(x, ret_failure);
	nvrm_watch_show(x);
	return r;
}

static void fail(struct proc *x, int r, const struct nvrm_failure *failure)
{
	bool was_open = x->p != NULL;

	if (was_open && nvrm_process_ended(x->p))
		return; /* which is told by its pidfd */
	nvrm_proc_undo(x);
	if (!x->owing)
		nvrm_proc_close(x);
	if (x->t)
		nvrm_work_lost(x->t, r, failure);
	if (was_open)
		nvrm_watch_show(x);
}

/* Groups that are gone owe nothing. */
static void pay(struct proc *x)
{
	struct nvrm_failure failure;

	if (nvrm_proc_look(x, &failure) == -EINPROGRESS)
		return;
	nvrm_proc_undo(x);
	nvrm_watch_show(x);
	x->look_after_ns = MIN(2 * MAX(x->look_after_ns, LOOK_FIRST_NS), PAY_LAST_NS);
	x->look_ns = nvrm_now_ns(x->b->n) + x->look_after_ns;
	nvrm_proc_put(x);
}

/* It goes on when others have had their turn. */
static void look_longer(struct proc *x)
{
	const struct nvrm_failure failure = { .why = NVRM_WHY_SYSTEM,
					      .step = "looking for its contexts takes too long" };

	if (x->steps < LONG_STEPS)
		return;
	nvrm_hold_attach(x, -EAGAIN, &failure);
	nvrm_proc_put(x);
}

static void look_at(struct proc *x)
{
	uint64_t last_ns = x->t ? LOOK_ATTACHED_NS : LOOK_LAST_NS;
	struct nvrm_failure failure = { 0 };
	int was_unanswered = x->unanswered;
	int r = nvrm_proc_look(x, &failure);
	bool changed = r == 1;

	if (r == -EINPROGRESS) {
		look_longer(x);
		return;
	}
	if (changed)
		r = follow(x, &failure);
	else if (x->unanswered != was_unanswered)
		nvrm_watch_show(x);
	if (r < 0)
		fail(x, r, &failure);
	x->look_after_ns = changed ? LOOK_FIRST_NS : MIN(2 * x->look_after_ns, last_ns);
	x->look_after_ns = MAX(x->look_after_ns, LOOK_FIRST_NS);
	x->look_ns = nvrm_now_ns(x->b->n) + x->look_after_ns;
	nvrm_hold_attach(x, r, &failure);
	nvrm_proc_put(x);
}

/* The one who has waited longest of the user who has. */
static bool goes_first(const struct proc *x, const struct proc *y)
{
	if (x->user != y->user)
		return x->user->looked < y->user->looked;
	return x->looked < y->looked;
}

uint64_t nvrm_watch_look_around(struct backend *b)
{
	uint64_t now_ns = nvrm_now_ns(b->n), next_ns = NEVER_NS;
	struct proc *x, *due = NULL;

	LIST_FOREACH(x, &b->procs, link)
		if (!x->ended && !x->asks && x->look_ns <= now_ns && (!due || goes_first(x, due)))
			due = x;
	if (due) {
		due->looked = due->user->looked = ++b->steps;
		(due->owing ? pay : look_at)(due);
	}
	LIST_FOREACH(x, &b->procs, link)
		if (!x->ended && !x->asks)
			next_ns = MIN(next_ns, x->look_ns);
	return next_ns;
}
