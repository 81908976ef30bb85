/* SPDX-License-Identifier: MIT */
#include "gpu/kfd/backend_ext.h"

#include <errno.h>
#include <sys/eventfd.h>

#include "util/array.h"
#include "util/macros.h"

/* ---- the right to a process, by a descriptor of its own ---- */

static struct gpu_target *target_of(struct readers_task *task)
{
	return (struct gpu_target *)((char *)task - offsetof(struct gpu_target, borrow));
}

static void borrowed(struct readers_task *task, struct readers_answer *answer)
{
	struct gpu_target *t = target_of(task);

	t->borrow_error = MIN(answer->result, 0);
	for (uint32_t i = 0; i < answer->n_fds; i++)
		t->fds[t->n_fds++] = steal_fd(&answer->fds[i]);
	STAILQ_CONCAT(&t->base.b->ext->kept, &t->early);
}

static int begin_borrow(struct gpu_target *t)
{
	int r;

	if (!t->base.b->ext->borrows)
		return 0;
	t->borrow = (struct readers_task){
		.service = READER_BORROW,
		.pid = t->base.pid,
		.wants_fds = true,
		.request = &t->base.b->ext->wanted,
		.len = sizeof(t->base.b->ext->wanted),
		.done = borrowed,
	};
	r = readers_user_of(t->base.pid, &t->borrow.user);
	if (r >= 0)
		readers_post(t->base.b->base.readers, &t->borrow);
	return r;
}

/* ---- for the owner ---- */

static int ext_begin(struct gpu_target *t, const struct gpu_attach *request)
{
	STAILQ_INIT(&t->early);
	t->pidfd = -1;
	t->start_ticks = request->start_ticks;
	t->until_ns = t->driver_ns = t->renew_ns = NEVER_NS;
	return begin_borrow(t);
}

static void ext_end(struct gpu_target *t)
{
	if (t->base.b->base.readers)
		readers_cancel(t->base.b->base.readers, &t->borrow);
	acting_forget(&t->early);
	for (uint32_t i = 0; i < t->n_fds; i++)
		closep(&t->fds[i]);
	closep(&t->pidfd);
	free(t->scopes);
}

/* Behind what is on its way already. */
static int ext_post(struct gpu_target *t, struct order *o)
{
	if (t->borrow.crew)
		STAILQ_INSERT_TAIL(&t->early, o, link);
	else
		STAILQ_INSERT_TAIL(&t->base.b->ext->kept, o, link);
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

bool ext_holds(struct gpu_target *t)
{
	return __atomic_load_n(&t->holds, __ATOMIC_RELAXED);
}

int ext_held(struct gpu_target *t, uint32_t *ret, size_t max)
{
	_cleanup_free_ struct kfd_gpreempt_queue *queues = NULL;
	size_t n = 0;
	int all = ext_holds(t) ?
			  gkfd_ext_queues(t->base.b->k, t->base.pid, t->start_ticks, &queues) :
			  0;

	for (int i = all - 1; i >= 0; i--) {
		if (!(queues[i].flags & KFD_GPREEMPT_QUEUE_MINE))
			continue;
		if (n < max)
			ret[n] = queues[i].queue_id;
		n++;
	}
	return (int)n;
}

void ext_promise(struct gpu_backend *base, uint64_t until_ns)
{
	struct ext *x = ((struct backend *)base)->ext;

	__atomic_store_n(&x->owner_ns, until_ns, __ATOMIC_RELEASE);
}

/* Between two looks at the clock the worker has renewed whatever was due. */
void ext_tick(struct gpu_backend *base)
{
	struct ext *x = ((struct backend *)base)->ext;
	uint64_t mine;

	pthread_mutex_lock(&x->lock);
	mine = ++x->ticks_asked;
	ext_work_wake(x);
	while (x->ticks_done < mine)
		pthread_cond_wait(&x->ticked, &x->lock);
	pthread_mutex_unlock(&x->lock);
}

/* ---- beginning and ending ---- */

static void ext_close(struct backend *b)
{
	ext_work_stop(b->ext);
}

const struct acting acting_by_ext = {
	.target_size = sizeof(struct gpu_target),
	.order_size = sizeof(struct order),
	.begin = ext_begin,
	.end = ext_end,
	.post = ext_post,
	.close = ext_close,
};

void ext_free(struct ext *x)
{
	if (!x)
		return;
	ext_work_stop(x);
	acting_forget(&x->kept);
	acting_forget(&x->orders);
	acting_forget(&x->queue);
	closep(&x->wake_fd);
	pthread_cond_destroy(&x->ticked);
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
	dev_t device = 0;
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
	x->owner_ns = NEVER_NS;
	pthread_mutex_init(&x->lock, NULL);
	pthread_cond_init(&x->ticked, NULL);
	x->max_entries = version.max_entries;
	if (version.abilities & KFD_GPREEMPT_CAN_VICTIMS_ONLY)
		x->flags = KFD_GPREEMPT_VICTIMS_ONLY;
	x->borrows = b->base.readers && !(version.abilities & KFD_GPREEMPT_IS_ADMIN);
	r = x->borrows ? gkfd_syscall_device(b->k->data, &device) : 0;
	if (r < 0)
		return r;
	x->wanted = (struct borrow_request){ .rdev = device, .most = READER_FDS };
	STAILQ_INIT(&x->kept);
	STAILQ_INIT(&x->orders);
	STAILQ_INIT(&x->queue);
	x->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (x->wake_fd < 0)
		return -errno;
	x->entries = calloc(x->max_entries, sizeof(*x->entries));
	if (!x->entries || array_reserve(&x->polls, 1, &x->room, sizeof(*x->polls)) < 0)
		return -ENOMEM;
	r = ext_work_start(x);
	if (r < 0)
		return r;
	*ret = steal_ptr(&x);
	return 0;
}
