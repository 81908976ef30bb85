/* SPDX-License-Identifier: MIT */
/* Arming watchpoints for an owner that must not wait: what a reader does. */
#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "gpu/watchpoints/points.h"
#include "util/macros.h"

struct points_all {
	struct points *of[POINTS_IDS]; /* by id; NULL: not watched */
};

int points_all_new(struct points_all **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

/* What a device mapped there cannot be read so: then it is not known. */
static void read_values(pid_t pid, const struct points_request *q, struct points_answer *a)
{
	for (uint32_t i = 0; i < q->n; i++) {
		struct iovec local = { &a->values[i], sizeof(a->values[i]) };
		struct iovec remote = { (void *)(uintptr_t)q->addresses[i], local.iov_len };

		if (process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)local.iov_len)
			a->values_known |= 1u << i;
	}
}

static int arm(struct points *p, pid_t pid, const struct points_request *q,
	       struct reader_room *room)
{
	struct points_answer *a = (void *)room->at;
	struct point *points = (void *)(a + 1);
	int r;

	if (room->max < sizeof(*a))
		return -ENOSPC;
	*a = (struct points_answer){ 0 };
	r = points_arm(p, q->addresses, q->n, (const int32_t *)(const void *)(q + 1), q->n_told,
		       points, (room->max - sizeof(*a)) / sizeof(*points), &a->unarmed, &a->error);
	if (r < 0)
		return r;
	a->n = (uint32_t)r;
	read_values(pid, q, a);
	room->len = sizeof(*a) + a->n * sizeof(*points);
	return 0;
}

int points_serve(struct points_all *all, pid_t pid, const void *request, size_t len,
		 struct reader_room *room)
{
	const struct points_request *q = request;
	struct points **p;
	int r = 0;

	if (len < sizeof(*q) || q->id >= POINTS_IDS || q->n > POINTS_ADDRESSES ||
	    (len - sizeof(*q)) / sizeof(int32_t) < q->n_told)
		return -EINVAL;
	p = &all->of[q->id];
	if (q->is_new || !q->n)
		points_free(steal_ptr(p));
	if (!q->n)
		return 0;
	if (q->is_new)
		r = points_new(pid, &q->owner, p);
	if (r < 0)
		return r;
	return *p ? arm(*p, pid, q, room) : -ENOENT;
}
