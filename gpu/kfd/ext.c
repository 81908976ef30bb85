/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "gpu/kfd/ext.h"
#include "util/macros.h"

#define QUEUES_AT_FIRST 32u

static int ext(struct gkfd *k, unsigned long request, void *arg)
{
	const struct gkfd_transport *t = k->transport;

	return t->ext ? t->ext(k->data, request, arg) : -ENODEV;
}

int gkfd_ext_open(struct gkfd *k, struct kfd_gpreempt_version *ret)
{
	struct kfd_gpreempt_version version = { 0 };
	int r = ext(k, KFD_GPREEMPT_GET_VERSION, &version);

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
	int r = ext(k, KFD_GPREEMPT_BIND, &bind);

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

static int batch(struct gkfd *k, unsigned long request, struct kfd_gpreempt_entry *entries,
		 struct kfd_gpreempt_batch *b)
{
	b->entries = (uintptr_t)entries;
	return ext(k, request, b);
}

int gkfd_ext_unmap(struct gkfd *k, struct kfd_gpreempt_entry *entries, uint32_t n,
		   struct kfd_gpreempt_batch *b)
{
	b->n_unmap = n;
	b->n_map = 0;
	return batch(k, KFD_GPREEMPT_BATCH_UNMAP_QUEUES, entries, b);
}

int gkfd_ext_map(struct gkfd *k, struct kfd_gpreempt_entry *entries, uint32_t n,
		 struct kfd_gpreempt_batch *b)
{
	b->n_unmap = 0;
	b->n_map = n;
	return batch(k, KFD_GPREEMPT_FAST_REMAP, entries, b);
}

int gkfd_ext_switch(struct gkfd *k, struct kfd_gpreempt_entry *entries, uint32_t n_unmap,
		    uint32_t n_map, struct kfd_gpreempt_batch *b)
{
	b->n_unmap = n_unmap;
	b->n_map = n_map;
	return batch(k, KFD_GPREEMPT_SWITCH, entries, b);
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
		r = ext(k, KFD_GPREEMPT_GET_STATS, &stats);
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

int gkfd_ext_hqd(struct gkfd *k, uint32_t gpu_id, struct kfd_gpreempt_hqd *ret)
{
	struct kfd_gpreempt_hqd hqd = { .gpu_id = gpu_id };
	int r = ext(k, KFD_GPREEMPT_GET_HQD_STATUS, &hqd);

	if (r < 0)
		return r;
	*ret = hqd;
	return 0;
}

static int brake(struct gkfd *k, unsigned long request, struct kfd_gpreempt_stop *stop,
		 uint32_t *ret_stops)
{
	int r = ext(k, request, stop);

	if (r < 0)
		return r;
	*ret_stops = stop->stops;
	return 0;
}

int gkfd_ext_stop(struct gkfd *k, uint32_t gpu_id, uint32_t hold_ms, uint32_t *ret_stops)
{
	return brake(k, KFD_GPREEMPT_STOP_SCHED,
		     &(struct kfd_gpreempt_stop){ .gpu_id = gpu_id, .hold_ms = hold_ms },
		     ret_stops);
}

int gkfd_ext_start(struct gkfd *k, uint32_t gpu_id, uint32_t *ret_stops)
{
	return brake(k, KFD_GPREEMPT_START_SCHED, &(struct kfd_gpreempt_stop){ .gpu_id = gpu_id },
		     ret_stops);
}
