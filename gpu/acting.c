/* SPDX-License-Identifier: MIT */
#include "gpu/acting.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>

#include "util/macros.h"

static struct target_base *base_of(struct gpu_target *t)
{
	return (struct target_base *)t;
}

static struct acting_backend *backend_of(struct gpu_target *t)
{
	return (struct acting_backend *)base_of(t)->b;
}

/* ---- orders ---- */

/* @what NULL: of a verb that needs none. */
static int order_new(struct gpu_target *t, enum gpu_verb verb, const struct gpu_hold *what,
		     uint64_t cookie, struct order **ret)
{
	struct acting_backend *b = backend_of(t);
	size_t n = what && what->ids ? what->n : 0, size = b->acting->order_size;
	struct order *o;

	if (n > UINT32_MAX / sizeof(*what->ids))
		return -EINVAL;
	o = calloc(1, size + n * sizeof(*what->ids));
	if (!o)
		return -ENOMEM;
	o->t = t;
	o->done = (struct gpu_done){ .target = t, .verb = verb, .cookie = cookie };
	o->called_ns = b->base.ops->now_ns(&b->base);
	if (what)
		o->what = *what;
	o->what.n = n;
	if (o->what.ids)
		o->what.ids = memcpy((char *)o + size, what->ids, n * sizeof(*what->ids));
	*ret = o;
	return 0;
}

/* Takes the order over. */
static int post(struct gpu_target *t, struct order *o)
{
	int r = backend_of(t)->acting->post(t, o);

	if (r < 0)
		free(o);
	return r;
}

static int ask(struct gpu_target *t, enum gpu_verb verb, const struct gpu_hold *what,
	       uint64_t cookie)
{
	struct order *o;
	int r = order_new(t, verb, what, cookie, &o);

	return r < 0 ? r : post(t, o);
}

int acting_suspend(struct gpu_target *t, const struct gpu_hold *hold, uint64_t cookie)
{
	return ask(t, GPU_SUSPEND, hold, cookie);
}

int acting_resume(struct gpu_target *t, const uint32_t *ids, size_t n, uint64_t cookie)
{
	return ask(t, GPU_RESUME, &(struct gpu_hold){ ids, n }, cookie);
}

int acting_slice(struct gpu_target *t, enum gpu_slice slice, uint64_t cookie)
{
	struct order *o;
	int r = order_new(t, GPU_SLICE, NULL, cookie, &o);

	if (r < 0)
		return r;
	o->slice = slice;
	return post(t, o);
}

void acting_deliver(struct order *o)
{
	o->done.target = o->t;
	mailbox_put(&backend_of(o->t)->done, &o->mail);
}

static struct order *take_done(struct acting_backend *b)
{
	struct mail *mail = mailbox_take(&b->done);

	return mail ? mail_of(mail, struct order, mail) : NULL;
}

void acting_forget(struct order_list *list)
{
	struct order *o;

	while ((o = STAILQ_FIRST(list))) {
		STAILQ_REMOVE_HEAD(list, link);
		free(o);
	}
}

/* ---- targets ---- */

static void target_free(struct gpu_target *t)
{
	if (!t)
		return;
	if (backend_of(t)->acting->end)
		backend_of(t)->acting->end(t);
	free(base_of(t)->ended);
	free(base_of(t)->release);
	free(t);
}

static void target_freep(struct gpu_target **t)
{
	target_free(*t);
}

int acting_attach(struct gpu_backend *base, const struct gpu_attach *request, uint64_t cookie,
		  struct gpu_target **ret)
{
	struct acting_backend *b = (struct acting_backend *)base;
	_cleanup_(target_freep) struct gpu_target *t = calloc(1, b->acting->target_size);
	int r;

	if (!t)
		return -ENOMEM;
	*base_of(t) = (struct target_base){ .b = (struct backend *)b, .pid = request->pid };
	r = b->acting->begin(t, request);
	if (r >= 0)
		r = order_new(t, GPU_ENDED, NULL, 0, &base_of(t)->ended);
	if (r >= 0)
		r = order_new(t, GPU_RELEASE, NULL, 0, &base_of(t)->release);
	if (r >= 0)
		r = ask(t, GPU_ATTACH, NULL, cookie);
	if (r < 0)
		return r;
	LIST_INSERT_HEAD(&b->targets, base_of(t), link);
	*ret = steal_ptr(&t);
	return 0;
}

int acting_release(struct gpu_target *t, uint64_t cookie)
{
	struct order *o = steal_ptr(&base_of(t)->release);

	if (!o)
		return -EALREADY;
	o->done.cookie = cookie;
	return backend_of(t)->acting->post(t, o);
}

int acting_take(struct gpu_backend *base, struct gpu_done *ret)
{
	_cleanup_free_ struct order *o = take_done((struct acting_backend *)base);

	if (!o)
		return 0;
	*ret = o->done;
	if (o->done.verb == GPU_RELEASE) {
		LIST_REMOVE(base_of(o->t), link);
		target_free(o->t);
	}
	return 1;
}

void acting_end(struct acting_backend *b)
{
	struct target_base *t;
	struct order *o;

	b->acting->close((struct backend *)b);
	while ((t = LIST_FIRST(&b->targets))) {
		LIST_REMOVE(t, link);
		target_free((struct gpu_target *)t);
	}
	while ((o = take_done(b)))
		free(o);
}

/* ---- what is read of processes, and what there is to hear ---- */

int acting_poll(const struct acting_backend *b, uint32_t part, int fd)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u32 = part };

	return epoll_ctl(b->fd, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

int acting_open(struct acting_backend *b, bool by_readers, const struct proc_source *source,
		struct gpu_why *ret_why)
{
	int r = mailbox_init(&b->done);

	b->fd = epoll_create1(EPOLL_CLOEXEC);
	if (r >= 0 && b->fd < 0)
		r = -errno;
	if (r >= 0 && by_readers)
		r = readers_new(&(struct readers_options){ 0 }, &b->readers);
	if (r == -ENOPKG)
		return gpu_why_fail(ret_why, r, "the program " READER_PROGRAM " is not installed");
	if (r >= 0)
		r = asks_new(b->readers, source, &b->asks);
	if (r >= 0)
		r = acting_poll(b, ACTING_ORDERS, b->done.fd);
	if (r >= 0 && b->readers)
		r = acting_poll(b, ACTING_READERS, readers_fd(b->readers));
	return r < 0 ? gpu_why_fail(ret_why, r, NULL) : 0;
}

void acting_done(struct acting_backend *b)
{
	asks_free(b->asks);
	readers_free(b->readers);
	closep(&b->fd);
	mailbox_destroy(&b->done);
}

int acting_fd(struct gpu_backend *base)
{
	return ((struct acting_backend *)base)->fd;
}

int acting_owner(struct gpu_backend *base, pid_t pid, uid_t *ret)
{
	return asks_owner(((struct acting_backend *)base)->asks, pid, ret);
}

int acting_ask(struct gpu_backend *base, pid_t pid, uint32_t files)
{
	return asks_ask(((struct acting_backend *)base)->asks, pid, files);
}

bool acting_answer(struct gpu_backend *base, struct proc_files *ret)
{
	return asks_answer(((struct acting_backend *)base)->asks, ret);
}

int acting_thread(pthread_t *ret, const char *name, void *(*run)(void *arg), void *arg)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(ret, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r == 0 && name)
		pthread_setname_np(*ret, name);
	return -r;
}
