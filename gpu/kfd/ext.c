/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "gpu/kfd/ext.h"
#include "util/macros.h"

#define QUEUES_AT_FIRST 32u

int gkfd_ext_call(struct gkfd *k, unsigned long request, void *arg)
{
	const struct gkfd_transport *t = k->transport;

	return t->ext ? t->ext(k->data, request, arg) : -ENODEV;
}

int gkfd_ext_open(struct gkfd *k, struct kfd_gpreempt_version *ret)
{
	struct kfd_gpreempt_version version = { 0 };
	int r = gkfd_ext_call(k, KFD_GPREEMPT_GET_VERSION, &version);

	if (r == -ENOTTY || (r >= 0 && version.version != KFD_GPREEMPT_VERSION))
		return -EPROTO;
	if (r == -EPERM)
		return -EACCES;
	if (r < 0)
		return r;
	*ret = version;
	return 0;
}

int gkfd_ext_bind_fd(struct gkfd *k, pid_t pid, int fd)
{
	struct kfd_gpreempt_bind bind = { .fd = fd };
	int r = gkfd_ext_call(k, KFD_GPREEMPT_BIND, &bind);

	if (r == -ESRCH)
		return 0; /* of a parent that has ended */
	return r < 0 ? r : bind.pid == (uint32_t)pid;
}

static int bind_nth(struct gkfd *k, pid_t pid, unsigned int nth)
{
	_cleanup_close_ int fd = k->transport->borrow(k->data, pid, nth);

	return fd < 0 ? fd : gkfd_ext_bind_fd(k, pid, fd);
}

int gkfd_ext_bind(struct gkfd *k, pid_t pid)
{
	struct kfd_gpreempt_version version;
	int r = gkfd_ext_open(k, &version);

	if (r < 0)
		return r;
	if (version.abilities & KFD_GPREEMPT_IS_ADMIN)
		return 0;
	for (unsigned int nth = 0; r == 0; nth++)
		r = bind_nth(k, pid, nth);
	if (r == -ENOENT)
		return -ESRCH;
	if (r == -EACCES)
		return -EPERM;
	return MIN(r, 0);
}

struct kfd_gpreempt_entry gkfd_ext_entry(pid_t pid, uint64_t start_ticks, uint32_t queue)
{
	return (struct kfd_gpreempt_entry){
		.pid = (uint32_t)pid,
		.queue_id = queue,
		.gpu_id = KFD_GPREEMPT_ANY_GPU,
		.start_ticks = start_ticks,
	};
}

int gkfd_ext_batch(struct gkfd *k, struct kfd_gpreempt_entry *entries, uint32_t n_unmap,
		   uint32_t n_map, struct kfd_gpreempt_batch *b)
{
	unsigned long request = KFD_GPREEMPT_SWITCH;

	if (!n_map)
		request = KFD_GPREEMPT_BATCH_UNMAP_QUEUES;
	else if (!n_unmap)
		request = KFD_GPREEMPT_FAST_REMAP;
	b->entries = (uintptr_t)entries;
	b->n_unmap = n_unmap;
	b->n_map = n_map;
	return gkfd_ext_call(k, request, b);
}

static int compare_queues(const void *a, const void *b)
{
	const struct kfd_gpreempt_queue *x = a, *y = b;

	return x->queue_id > y->queue_id ? -1 : x->queue_id < y->queue_id;
}

int gkfd_ext_queues(struct gkfd *k, pid_t pid, uint64_t start_ticks,
		    struct kfd_gpreempt_queue **ret)
{
	uint32_t room = QUEUES_AT_FIRST;

	for (;;) {
		_cleanup_free_ struct kfd_gpreempt_queue *queues = calloc(room, sizeof(*queues));
		struct kfd_gpreempt_stats stats = {
			.pid = (uint32_t)pid,
			.n = room,
			.queues = (uintptr_t)queues,
			.start_ticks = start_ticks,
		};
		int r;

		if (!queues)
			return -ENOMEM;
		r = gkfd_ext_call(k, KFD_GPREEMPT_GET_STATS, &stats);
		if (r < 0)
			return r;
		if (stats.n <= room) {
			qsort(queues, stats.n, sizeof(*queues), compare_queues);
			*ret = steal_ptr(&queues);
			return (int)stats.n;
		}
		room = stats.n;
	}
}
