/* SPDX-License-Identifier: MIT */
/*
 * gpu/backend.h over the toy's driver, and gpu/driver.h over both. Targets and their orders are
 * those of gpu/acting.h: every order waits for submit(), which is where a thread would do it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/acting.h"
#include "tests/backend/toy/toy.h"
#include "util/macros.h"

struct gpu_target {
	struct target_base base;
	uint64_t start_ticks;
	int error; /* 0: attached; why nothing can be done with it */
};

struct gpu_watch {
	LIST_ENTRY(gpu_watch) link;
	struct backend *b;
	pid_t pid;
	uint32_t n; /* queues, of those of struct backend */
	int looked; /* samples, or -errno */
};

struct backend {
	struct acting_backend base;
	struct toy *d;
	struct proc_source source;
	struct order_list orders; /* not begun */
	LIST_HEAD(, gpu_watch) watches;
	struct gpu_queue queues[TOY_QUEUES]; /* everybody's look alike */
	struct gpu_sample samples[TOY_QUEUES];
};

static struct backend *of(struct gpu_backend *b)
{
	return (struct backend *)b;
}

/* ---- acting ---- */

static struct toy *driver_of(const struct gpu_target *t)
{
	return t->base.b->d;
}

static int said(struct order *o, int r)
{
	return r < 0 ? gpu_why_fail(&o->done.why, r, NULL) : 0;
}

static void attach(struct gpu_target *t, struct order *o)
{
	const struct toy_proc *p = toy_find(driver_of(t), t->base.pid);
	struct target_base *other;

	t->error = !p || (t->start_ticks && t->start_ticks != p->start_ticks) ? -ESRCH : 0;
	LIST_FOREACH(other, &t->base.b->base.targets, link)
		if (other != &t->base && other->pid == t->base.pid &&
		    ((struct gpu_target *)other)->error == 0)
			t->error = -EBUSY;
	o->done.result = said(o, t->error);
}

static bool toy_holds(struct gpu_target *t)
{
	return t->error == 0 && toy_count_off(toy_find(driver_of(t), t->base.pid)) > 0;
}

static int toy_held(struct gpu_target *t, uint32_t *ret, size_t max)
{
	const struct toy_proc *p = t->error ? NULL : toy_find(driver_of(t), t->base.pid);
	size_t n = 0;

	for (uint32_t i = 0; p && i < p->n; i++)
		if (p->off & 1u << i && n++ < max)
			ret[n - 1] = i;
	return (int)n;
}

static uint32_t bits(const struct order *o)
{
	uint32_t set = o->what.ids ? 0 : UINT32_MAX;

	for (size_t i = 0; i < o->what.n; i++)
		set |= o->what.ids[i] < TOY_QUEUES ? 1u << o->what.ids[i] : 0;
	return set;
}

static int suspend(struct gpu_target *t, const struct order *o)
{
	struct toy *d = driver_of(t);
	struct toy_proc *p = toy_find(d, t->base.pid);
	uint64_t until_ns = o->what.longest_ns ? o->called_ns + o->what.longest_ns : UINT64_MAX;

	if (d->now_ns >= until_ns)
		return -ETIMEDOUT;
	/* The latest of all ends counts. */
	return toy_move(d, p->pid, p->off | bits(o),
			p->off ? MAX(until_ns, p->until_ns) : until_ns);
}

static int resume(struct gpu_target *t, const struct order *o)
{
	struct toy_proc *p = toy_find(driver_of(t), t->base.pid);

	return toy_move(driver_of(t), p->pid, p->off & ~bits(o), p->until_ns);
}

static void let_go(struct gpu_target *t)
{
	if (t->error == 0)
		toy_move(driver_of(t), t->base.pid, 0, 0);
	t->error = -ESRCH;
}

static void move(struct gpu_target *t, struct order *o)
{
	int r = t->error;

	if (r == 0)
		r = o->done.verb == GPU_SUSPEND ? suspend(t, o) : resume(t, o);
	o->done.queues = (uint32_t)MAX(r, 0);
	o->done.result = said(o, r);
	o->done.gpu_failed = r == -EIO;
	o->done.gpu = r == -EIO ? TOY_GPU : 0;
	o->done.holds = toy_holds(t);
}

static void perform(struct order *o)
{
	uint64_t *now_ns = &driver_of(o->t)->now_ns;

	o->done.began_ns = *now_ns;
	if (o->done.verb == GPU_ATTACH)
		attach(o->t, o);
	else if (o->done.verb == GPU_RELEASE)
		let_go(o->t);
	else
		move(o->t, o);
	o->done.done_ns = *now_ns;
}

static void toy_submit(struct gpu_backend *b)
{
	struct order *o;

	while (!of(b)->d->busy && (o = STAILQ_FIRST(&of(b)->orders))) {
		STAILQ_REMOVE_HEAD(&of(b)->orders, link);
		perform(o);
		acting_deliver(o);
	}
}

static int begin_target(struct gpu_target *t, const struct gpu_attach *request)
{
	t->start_ticks = request->start_ticks;
	t->error = -EAGAIN; /* until its order is performed */
	return 0;
}

static int post(struct gpu_target *t, struct order *o)
{
	STAILQ_INSERT_TAIL(&t->base.b->orders, o, link);
	return 0;
}

static void let_all_go(struct backend *b)
{
	struct target_base *t;

	LIST_FOREACH(t, &b->base.targets, link)
		let_go((struct gpu_target *)t);
	acting_forget(&b->orders);
}

static const struct acting acting = {
	.target_size = sizeof(struct gpu_target),
	.order_size = sizeof(struct order),
	.begin = begin_target,
	.post = post,
	.close = let_all_go,
};

/* The driver tells. Who is not attached yet finds out when it is tried. */
static void ended(void *user, pid_t pid)
{
	struct target_base *base;

	LIST_FOREACH(base, &((struct backend *)user)->base.targets, link) {
		struct gpu_target *t = (struct gpu_target *)base;

		if (base->pid != pid || t->error < 0)
			continue;
		t->error = base->ended->done.result = said(base->ended, -ESRCH);
		acting_deliver(steal_ptr(&base->ended));
	}
}

/* ---- looking ---- */

static uint64_t toy_now_ns(struct gpu_backend *b)
{
	return of(b)->d->now_ns;
}

static int toy_nodes(struct gpu_backend *b, struct gpu_node *ret, size_t max)
{
	if (max > 0)
		*ret = (struct gpu_node){ .gpu = TOY_GPU, .slots = TOY_QUEUES, .name = "toy" };
	return 1;
}

static int toy_processes(struct gpu_backend *b, pid_t *ret, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < TOY_PROCS; i++)
		if (of(b)->d->procs[i].pid != 0 && n++ < max)
			ret[n - 1] = of(b)->d->procs[i].pid;
	return (int)n;
}

static int read_proc(void *user, const char *path, char **ret_text, size_t *ret_len)
{
	struct toy_proc *p = toy_find(user, (pid_t)strtol(path, NULL, 10));
	int len;

	if (!p)
		return -ENOENT;
	if (strstr(path, "/status"))
		len = asprintf(ret_text, "Name:\ttoy\nTgid:\t%d\nTracerPid:\t0\nUid:\t0\t0\n",
			       (int)p->pid);
	else
		len = asprintf(ret_text, "%d (toy) R%s %llu 0", (int)p->pid,
			       " 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0",
			       (unsigned long long)p->start_ticks);
	*ret_len = len < 0 ? 0 : (size_t)len;
	return len < 0 ? -ENOMEM : 0;
}

static int toy_pidfd(struct gpu_backend *b, pid_t pid)
{
	return -ENOSYS;
}

static int toy_refresh(struct gpu_watch *w)
{
	const struct toy_proc *p = toy_find(w->b->d, w->pid);
	uint32_t before = w->n;

	w->looked = p ? -ECANCELED : -ESRCH;
	if (!p)
		return -ESRCH;
	w->n = p->n;
	return w->n != before;
}

static int toy_watch(struct gpu_backend *b, pid_t pid, struct gpu_watch **ret)
{
	struct gpu_watch *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	*w = (struct gpu_watch){ .b = of(b), .pid = pid };
	LIST_INSERT_HEAD(&w->b->watches, w, link);
	(void)toy_refresh(w); /* who is not there is told of by the next one */
	*ret = w;
	return 0;
}

static void toy_unwatch(struct gpu_watch *w)
{
	if (w)
		LIST_REMOVE(w, link);
	free(w);
}

static const struct gpu_queue *toy_queues(const struct gpu_watch *w, size_t *ret_n)
{
	*ret_n = w->n;
	return w->b->queues;
}

static void toy_look(struct gpu_backend *b, struct gpu_watch *const *watches, size_t n)
{
	for (size_t i = 0; i < n; i++)
		watches[i]->looked =
			toy_find(of(b)->d, watches[i]->pid) ? (int)watches[i]->n : -ESRCH;
}

static int toy_looked(struct gpu_watch *w, const struct gpu_sample **ret)
{
	int n = w->looked;

	*ret = w->b->samples;
	if (n != -ESRCH)
		w->looked = -ECANCELED; /* it is told once */
	return n;
}

/* ---- the whole ---- */

static void toy_close(struct gpu_backend *base)
{
	struct backend *b = of(base);

	while (!LIST_EMPTY(&b->watches))
		toy_unwatch(LIST_FIRST(&b->watches));
	acting_end(&b->base);
	acting_done(&b->base);
	b->d->ended = NULL;
	free(b);
}

/* clang-format off */
static const struct gpu_ops toy_ops = {
	.close = toy_close, .now_ns = toy_now_ns, .nodes = toy_nodes,
	.processes = toy_processes, .owner = acting_owner, .ask = acting_ask,
	.answer = acting_answer, .pidfd = toy_pidfd, .watch = toy_watch, .unwatch = toy_unwatch,
	.refresh = toy_refresh, .queues = toy_queues, .look = toy_look, .looked = toy_looked,
	.attach = acting_attach, .suspend = acting_suspend, .resume = acting_resume,
	.release = acting_release, .submit = toy_submit, .holds = toy_holds, .held = toy_held,
	.fd = acting_fd, .take = acting_take,
};
/* clang-format on */

static const struct gpu_caps caps = {
	.name = "toy",
	.level = "T1",
	.modelled = true,
	.made_up_time = true,
	.counts_progress = true,
};

int toy_backend_open(struct toy *d, struct gpu_backend **ret)
{
	struct backend *b = calloc(1, sizeof(*b));
	int r;

	if (!b)
		return -ENOMEM;
	*b = (struct backend){ .base.base = { &toy_ops, caps }, .base.acting = &acting, .d = d };
	b->source = (struct proc_source){ .read_file = read_proc, .user = d };
	STAILQ_INIT(&b->orders);
	for (uint32_t i = 0; i < TOY_QUEUES; i++) {
		b->queues[i] = (struct gpu_queue){ .gpu = TOY_GPU, .queue = i };
		b->samples[i] = (struct gpu_sample){ TOY_GPU, i, .write = 1, .state = GPU_BUSY };
	}
	r = acting_open(&b->base, false, &b->source, NULL);
	if (r < 0) {
		acting_done(&b->base);
		free(b);
		return r;
	}
	d->ended = ended;
	d->user = b;
	*ret = &b->base.base;
	return 0;
}

/* ---- by its name ---- */

static int driver_open(const char *argument, void **ret, struct gpu_why *ret_why)
{
	*ret = toy_machine;
	return toy_machine ? 0 : gpu_why_fail(ret_why, -ENODEV, "no toy on this machine");
}

static void driver_close(void *data)
{
}

static int driver_act(void *data, const struct gpu_way *way, struct gpu_backend **ret,
		      struct gpu_why *ret_why)
{
	int r = toy_backend_open(data, ret);

	return r < 0 ? gpu_why_fail(ret_why, r, NULL) : 0;
}

static int driver_undo(void *data, const struct gpu_leftover *left)
{
	const struct toy_proc *p = toy_find(data, left->pid);

	if (!p || p->start_ticks != left->start_ticks)
		return -ESRCH;
	return toy_move(data, left->pid, 0, 0) > 0;
}

const struct gpu_driver toy_driver = {
	.name = "toy",
	.argument = "",
	.whose = "the toy's",
	.node = "toy",
	.module = "toy",
	.levels = "T1",
	.open = driver_open,
	.close = driver_close,
	.act = driver_act,
	.undo = driver_undo,
};
