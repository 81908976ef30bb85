/* SPDX-License-Identifier: MIT */
#include "gpu/kfd/backend_ext.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>

#include "gpu/helpers/borrow.h"
#include "util/macros.h"

static void free_orders(struct order_list *list)
{
	struct order *o;

	while ((o = STAILQ_FIRST(list))) {
		STAILQ_REMOVE_HEAD(list, link);
		free(o);
	}
}

static void target_free(struct gpu_target *t)
{
	if (!t)
		return;
	if (t->b->readers)
		readers_cancel(t->b->readers, &t->borrow);
	free_orders(&t->early);
	for (uint32_t i = 0; i < t->n_fds; i++)
		closep(&t->fds[i]);
	closep(&t->pidfd);
	free(t->scopes);
	free(t->ended);
	free(t->release);
	free(t);
}

static void target_freep(struct gpu_target **t)
{
	target_free(*t);
}

/* ---- orders ---- */

/* Behind what is on its way already. */
static void keep(struct order *o, uint64_t cookie)
{
	struct backend *b = o->t->b;

	o->done.cookie = cookie;
	o->called_ns = gkfd_now_ns(b->k);
	if (o->t->borrow.crew)
		STAILQ_INSERT_TAIL(&o->t->early, o, link);
	else
		STAILQ_INSERT_TAIL(&b->ext->kept, o, link);
}

/* ---- the right to a process, by a descriptor of its own ---- */

static struct gpu_target *target_of(struct readers_task *task)
{
	return (struct gpu_target *)((char *)task - offsetof(struct gpu_target, borrow));
}

static size_t write_borrow(struct readers_task *task, uint32_t reader, void *to, size_t max)
{
	const struct borrow_request request = { .rdev = target_of(task)->b->ext->device,
						.most = READER_FDS };

	if (max < sizeof(request))
		return SIZE_MAX;
	memcpy(to, &request, sizeof(request));
	return sizeof(request);
}

static void borrowed(struct readers_task *task, struct readers_answer *answer)
{
	struct gpu_target *t = target_of(task);

	t->borrow_error = MIN(answer->result, 0);
	for (uint32_t i = 0; i < answer->n_fds; i++)
		t->fds[t->n_fds++] = steal_fd(&answer->fds[i]);
	STAILQ_CONCAT(&t->b->ext->kept, &t->early);
}

static int begin_borrow(struct gpu_target *t)
{
	int r;

	if (!t->b->ext->borrows)
		return 0;
	t->borrow = (struct readers_task){
		.service = READER_BORROW,
		.pid = t->pid,
		.wants_fds = true,
		.write = write_borrow,
		.done = borrowed,
	};
	r = readers_user_of(t->pid, &t->borrow.user);
	if (r >= 0)
		readers_post(t->b->readers, &t->borrow);
	return r;
}

/* ---- for the owner ---- */

int ext_attach(struct gpu_backend *base, pid_t pid, uint64_t start_ticks, uint64_t cookie,
	       struct gpu_target **ret)
{
	struct backend *b = (struct backend *)base;
	_cleanup_(target_freep) struct gpu_target *t = calloc(1, sizeof(*t));
	struct order *o;
	int r;

	if (!t)
		return -ENOMEM;
	STAILQ_INIT(&t->early);
	t->b = b;
	t->pid = pid;
	t->start_ticks = start_ticks;
	t->pidfd = -1;
	t->until_ns = t->driver_ns = t->renew_ns = NEVER_NS;
	t->ended = order_new(t, GPU_ENDED, NULL, 0);
	t->release = order_new(t, GPU_RELEASE, NULL, 0);
	o = t->ended && t->release ? order_new(t, GPU_ATTACH, NULL, 0) : NULL;
	if (!o)
		return -ENOMEM;
	r = begin_borrow(t);
	if (r < 0) {
		free(o);
		return r;
	}
	LIST_INSERT_HEAD(&b->targets, t, link);
	keep(o, cookie);
	*ret = steal_ptr(&t);
	return 0;
}

static int order(struct gpu_target *t, enum gpu_verb verb, const uint32_t *ids, size_t n,
		 struct order **ret)
{
	if (n > UINT32_MAX / sizeof(*ids))
		return -EINVAL;
	*ret = order_new(t, verb, ids, ids ? n : 0);
	return *ret ? 0 : -ENOMEM;
}

int ext_suspend(struct gpu_target *t, const uint32_t *ids, size_t n, uint64_t longest_ns,
		uint64_t cookie)
{
	struct order *o;
	int r = order(t, GPU_SUSPEND, ids, n, &o);

	if (r < 0)
		return r;
	o->longest_ns = longest_ns;
	keep(o, cookie);
	return 0;
}

int ext_resume(struct gpu_target *t, const uint32_t *ids, size_t n, uint64_t cookie)
{
	struct order *o;
	int r = order(t, GPU_RESUME, ids, n, &o);

	if (r < 0)
		return r;
	keep(o, cookie);
	return 0;
}

int ext_release(struct gpu_target *t, uint64_t cookie)
{
	if (!t->release)
		return -EALREADY;
	keep(steal_ptr(&t->release), cookie);
	return 0;
}

void ext_submit(struct gpu_backend *base)
{
	struct backend *b = (struct backend *)base;
	struct ext *x = b->ext;

	if (STAILQ_EMPTY(&x->kept))
		return;
	pthread_mutex_lock(&x->lock);
	STAILQ_CONCAT(&x->orders, &x->kept);
	pthread_mutex_unlock(&x->lock);
	ext_work_wake(x);
}

int ext_take(struct gpu_backend *base, struct gpu_done *ret)
{
	struct backend *b = (struct backend *)base;
	_cleanup_free_ struct order *o = order_take_done(b);

	if (!o)
		return 0;
	*ret = o->done;
	if (o->done.verb == GPU_RELEASE) {
		LIST_REMOVE(o->t, link);
		target_free(o->t);
	}
	return 1;
}

bool ext_holds(struct backend *b, pid_t pid)
{
	struct gpu_target *t;

	LIST_FOREACH(t, &b->targets, link)
		if (t->pid == pid && __atomic_load_n(&t->holds, __ATOMIC_RELAXED))
			return true;
	return false;
}

/* ---- beginning and ending ---- */

void ext_free(struct ext *x)
{
	struct gpu_target *t;
	struct order *o;

	if (!x)
		return;
	ext_work_stop(x);
	free_orders(&x->kept);
	free_orders(&x->orders);
	free_orders(&x->queue);
	while ((o = order_take_done(x->b)))
		free(o);
	while ((t = LIST_FIRST(&x->b->targets))) {
		LIST_REMOVE(t, link);
		target_free(t);
	}
	closep(&x->wake_fd);
	pthread_mutex_destroy(&x->lock);
	free(x->polls);
	free(x->entries);
	free(x);
}

static void ext_freep(struct ext **x)
{
	ext_free(*x);
}

bool ext_spares_others(const struct ext *x)
{
	return x->flags & KFD_GPREEMPT_VICTIMS_ONLY;
}

int ext_new(struct backend *b, struct ext **ret)
{
	_cleanup_(ext_freep) struct ext *x = NULL;
	struct kfd_gpreempt_version version;
	int r = gkfd_ext_open(b->k, &version);

	if (r < 0)
		return r;
	if (!version.max_entries)
		return -EPROTO;
	x = calloc(1, sizeof(*x));
	if (!x)
		return -ENOMEM;
	x->b = b;
	x->wake_fd = -1;
	pthread_mutex_init(&x->lock, NULL);
	x->max_entries = version.max_entries;
	if (version.abilities & KFD_GPREEMPT_CAN_VICTIMS_ONLY)
		x->flags = KFD_GPREEMPT_VICTIMS_ONLY;
	x->borrows = b->readers && !(version.abilities & KFD_GPREEMPT_IS_ADMIN);
	r = x->borrows ? gkfd_syscall_device(b->k->data, &x->device) : 0;
	if (r < 0)
		return r;
	STAILQ_INIT(&x->kept);
	STAILQ_INIT(&x->orders);
	STAILQ_INIT(&x->queue);
	x->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (x->wake_fd < 0)
		return -errno;
	x->entries = calloc(x->max_entries, sizeof(*x->entries));
	if (!x->entries)
		return -ENOMEM;
	r = ext_work_start(x);
	if (r < 0)
		return r;
	*ret = steal_ptr(&x);
	return 0;
}
