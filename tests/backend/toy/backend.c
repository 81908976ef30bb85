/* SPDX-License-Identifier: MIT */
/*
 * gpu/backend.h over the toy's driver. Every order waits for submit() and ends in the mailbox:
 * nothing is answered from within the call that asks for it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "gpu/helpers/asks.h"
#include "gpu/mailbox.h"
#include "tests/backend/toy/toy.h"
#include "util/macros.h"

struct order {
	struct mail mail; /* first among those to be done, then among what is done */
	struct gpu_done done;
	uint32_t queues; /* a bit for each */
	uint64_t until_ns;
};

struct gpu_target {
	LIST_ENTRY(gpu_target) link;
	struct backend *b;
	pid_t pid;
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
	struct gpu_backend base;
	struct toy_driver *d;
	struct proc_source source;
	struct asks *asks;
	struct mailbox done;
	STAILQ_HEAD(, mail) orders; /* not begun */
	LIST_HEAD(, gpu_target) targets; /* the newest first */
	LIST_HEAD(, gpu_watch) watches;
	struct gpu_queue queues[TOY_QUEUES]; /* everybody's look alike */
	struct gpu_sample samples[TOY_QUEUES];
};

static struct backend *of(struct gpu_backend *b)
{
	return (struct backend *)b;
}

/* ---- acting ---- */

static void refuse(struct order *o, int error)
{
	o->done.result = error;
	gpu_why_set(&o->done.why, GPU_WHY_FAILED, NULL, "%s", strerror(-error));
}

static void attach(struct gpu_target *t, struct order *o)
{
	const struct toy_proc *p = toy_find(t->b->d, t->pid);
	struct gpu_target *other;

	t->error = !p || (t->start_ticks && t->start_ticks != p->start_ticks) ? -ESRCH : 0;
	LIST_FOREACH(other, &t->b->targets, link)
		if (other != t && other->pid == t->pid && other->error == 0)
			t->error = -EBUSY;
	if (t->error < 0)
		refuse(o, t->error);
}

static bool toy_holds(struct gpu_target *t)
{
	return t->error == 0 && toy_count_off(toy_find(t->b->d, t->pid)) > 0;
}

static void move(struct gpu_target *t, struct order *o)
{
	struct toy_proc *p = toy_find(t->b->d, t->pid);
	bool more = o->done.verb == GPU_SUSPEND;
	uint32_t off = more ? p->off | o->queues : p->off & ~o->queues;
	/* The latest of all ends counts. */
	uint64_t until_ns = more && !p->off ? o->until_ns : MAX(o->until_ns, p->until_ns);
	int r = more && t->b->d->now_ns >= o->until_ns ? -ETIMEDOUT :
							 toy_move(t->b->d, t->pid, off, until_ns);

	if (r < 0)
		refuse(o, r);
	else
		o->done.queues = (uint32_t)r;
	o->done.gpu_failed = r == -EIO;
	o->done.gpu = r == -EIO ? TOY_GPU : 0;
	o->done.holds = toy_holds(t);
}

static void release(struct gpu_target *t)
{
	if (t->error == 0)
		toy_move(t->b->d, t->pid, 0, 0);
	LIST_REMOVE(t, link);
	free(t);
}

static void perform(struct order *o)
{
	struct gpu_target *t = o->done.target;
	const struct toy_driver *d = t->b->d;

	o->done.began_ns = d->now_ns;
	if (o->done.verb == GPU_ATTACH)
		attach(t, o);
	else if (o->done.verb == GPU_RELEASE)
		release(t);
	else if (t->error < 0)
		refuse(o, t->error);
	else
		move(t, o);
	o->done.done_ns = d->now_ns;
}

static void toy_submit(struct gpu_backend *b)
{
	struct mail *mail;

	while (!of(b)->d->busy && (mail = STAILQ_FIRST(&of(b)->orders))) {
		STAILQ_REMOVE_HEAD(&of(b)->orders, link);
		perform(mail_of(mail, struct order, mail));
		mailbox_put(&of(b)->done, mail);
	}
}

static int order(struct gpu_target *t, uint64_t cookie, const struct order *what)
{
	struct order *o = malloc(sizeof(*o));

	if (!o)
		return -ENOMEM;
	*o = *what;
	o->done.target = t;
	o->done.cookie = cookie;
	STAILQ_INSERT_TAIL(&t->b->orders, &o->mail, link);
	return 0;
}

static uint32_t bits(const uint32_t *ids, size_t n)
{
	uint32_t set = ids ? 0 : UINT32_MAX;

	for (size_t i = 0; ids && i < n; i++)
		set |= ids[i] < TOY_QUEUES ? 1u << ids[i] : 0;
	return set;
}

static int toy_attach(struct gpu_backend *b, const struct gpu_attach *request, uint64_t cookie,
		      struct gpu_target **ret)
{
	struct gpu_target *t = malloc(sizeof(*t));

	if (!t)
		return -ENOMEM;
	*t = (struct gpu_target){ .b = of(b), .pid = request->pid };
	t->start_ticks = request->start_ticks;
	t->error = -EAGAIN; /* until its order is performed */
	LIST_INSERT_HEAD(&of(b)->targets, t, link);
	*ret = t;
	return order(t, cookie, &(struct order){ .done.verb = GPU_ATTACH });
}

static int toy_suspend(struct gpu_target *t, const struct gpu_hold *h, uint64_t cookie)
{
	struct order o = { .done.verb = GPU_SUSPEND, .queues = bits(h->ids, h->n) };

	o.until_ns = h->longest_ns ? t->b->d->now_ns + h->longest_ns : UINT64_MAX;
	return order(t, cookie, &o);
}

static int toy_resume(struct gpu_target *t, const uint32_t *ids, size_t n, uint64_t cookie)
{
	return order(t, cookie, &(struct order){ .done.verb = GPU_RESUME, .queues = bits(ids, n) });
}

static int toy_release(struct gpu_target *t, uint64_t cookie)
{
	return order(t, cookie, &(struct order){ .done.verb = GPU_RELEASE });
}

/* The driver tells. Who is not attached yet finds out when it is tried. */
static void ended(void *user, pid_t pid)
{
	struct backend *b = user;
	struct gpu_target *t;

	LIST_FOREACH(t, &b->targets, link) {
		struct order *o = t->pid == pid && t->error == 0 ? calloc(1, sizeof(*o)) : NULL;

		if (!o)
			continue;
		t->error = -ESRCH;
		o->done = (struct gpu_done){ .target = t, .verb = GPU_ENDED };
		refuse(o, -ESRCH);
		mailbox_put(&b->done, &o->mail);
	}
}

static int toy_fd(struct gpu_backend *b)
{
	return of(b)->done.fd;
}

static int toy_take(struct gpu_backend *b, struct gpu_done *ret)
{
	struct mail *mail = mailbox_take(&of(b)->done);

	if (!mail)
		return 0;
	*ret = mail_of(mail, struct order, mail)->done;
	free(mail_of(mail, struct order, mail));
	return 1;
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

	for (size_t i = 0; i < TOY_PROCS; i++) {
		if (of(b)->d->procs[i].pid == 0)
			continue;
		if (n < max)
			ret[n] = of(b)->d->procs[i].pid;
		n++;
	}
	return (int)n;
}

static int toy_owner(struct gpu_backend *b, pid_t pid, uid_t *ret)
{
	*ret = 0;
	return toy_find(of(b)->d, pid) ? 0 : -ESRCH;
}

static int read_proc(void *user, const char *path, char **ret_text, size_t *ret_len)
{
	struct toy_proc *p = toy_find(user, (pid_t)strtol(path, NULL, 10));
	int len;

	if (!p)
		return -ENOENT;
	len = asprintf(ret_text, "%d (toy) R%s %llu 0", (int)p->pid,
		       " 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0", (unsigned long long)p->start_ticks);
	*ret_len = len < 0 ? 0 : (size_t)len;
	return len < 0 ? -ENOMEM : 0;
}

static int toy_ask(struct gpu_backend *b, pid_t pid, uint32_t files)
{
	return asks_ask(of(b)->asks, pid, files);
}

static bool toy_answer(struct gpu_backend *b, struct proc_files *ret)
{
	return asks_answer(of(b)->asks, ret);
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
	w->b = of(b);
	w->pid = pid;
	LIST_INSERT_HEAD(&of(b)->watches, w, link);
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

static const char *toy_blind(const struct gpu_watch *w)
{
	return NULL;
}

static const char *toy_problem(struct gpu_backend *b)
{
	return NULL;
}

/* ---- the whole ---- */

static void toy_close(struct gpu_backend *base)
{
	struct backend *b = of(base);
	struct gpu_done done;

	b->d->busy = false;
	toy_submit(base);
	while (!LIST_EMPTY(&b->targets))
		release(LIST_FIRST(&b->targets));
	while (!LIST_EMPTY(&b->watches))
		toy_unwatch(LIST_FIRST(&b->watches));
	while (toy_take(base, &done))
		;
	b->d->ended = NULL;
	asks_free(b->asks);
	mailbox_destroy(&b->done);
	free(b);
}

/* clang-format off */
static const struct gpu_ops toy_ops = {
	.close = toy_close, .now_ns = toy_now_ns, .nodes = toy_nodes,
	.processes = toy_processes, .owner = toy_owner, .ask = toy_ask, .answer = toy_answer,
	.pidfd = toy_pidfd, .watch = toy_watch, .unwatch = toy_unwatch, .refresh = toy_refresh,
	.queues = toy_queues, .look = toy_look, .looked = toy_looked, .blind = toy_blind,
	.problem = toy_problem, .attach = toy_attach, .suspend = toy_suspend,
	.resume = toy_resume, .release = toy_release, .submit = toy_submit,
	.holds = toy_holds, .fd = toy_fd, .take = toy_take,
};
/* clang-format on */

int toy_backend_open(struct toy_driver *d, struct gpu_backend **ret)
{
	struct backend *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	b->base.ops = &toy_ops;
	b->base.caps = (struct gpu_caps){ .name = "toy",
					  .level = "T1",
					  .modelled = true,
					  .made_up_time = true,
					  .counts_progress = true };
	b->d = d;
	b->source = (struct proc_source){ .read_file = read_proc, .user = d };
	STAILQ_INIT(&b->orders);
	for (uint32_t i = 0; i < TOY_QUEUES; i++) {
		b->queues[i] = (struct gpu_queue){ .gpu = TOY_GPU, .queue = i };
		b->samples[i] = (struct gpu_sample){ .gpu = TOY_GPU, .queue = i, .write = 1 };
		b->samples[i].state = GPU_BUSY;
	}
	if (mailbox_init(&b->done) < 0 || asks_new(NULL, &b->source, &b->asks) < 0) {
		mailbox_destroy(&b->done);
		free(b);
		return -ENOMEM;
	}
	d->ended = ended;
	d->user = b;
	*ret = &b->base;
	return 0;
}
