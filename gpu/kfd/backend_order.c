/* SPDX-License-Identifier: MIT */
/* Orders, and the way back of those that are done. */
#include <errno.h>
#include <string.h>

#include "gpu/kfd/backend_internal.h"
#include "util/macros.h"

struct order *order_new(struct gpu_target *t, enum gpu_verb verb, const uint32_t *ids, size_t n)
{
	struct order *o = calloc(1, sizeof(*o) + n * sizeof(*ids));

	if (!o)
		return NULL;
	o->t = t;
	o->done = (struct gpu_done){ .target = t, .verb = verb };
	o->all = !ids;
	o->n = (uint32_t)n;
	if (n > 0)
		memcpy(o->ids, ids, n * sizeof(*ids));
	return o;
}

void order_put_done(struct backend *b, struct order *o)
{
	uint64_t one = 1;

	pthread_mutex_lock(&b->lock);
	STAILQ_INSERT_TAIL(&b->done, o, link);
	while (write(b->done_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
	pthread_mutex_unlock(&b->lock);
}

struct order *order_get_done(struct backend *b)
{
	struct order *o;
	uint64_t count;

	pthread_mutex_lock(&b->lock);
	o = STAILQ_FIRST(&b->done);
	if (o)
		STAILQ_REMOVE_HEAD(&b->done, link);
	if (o && STAILQ_EMPTY(&b->done))
		while (read(b->done_fd, &count, sizeof(count)) < 0 && errno == EINTR)
			;
	pthread_mutex_unlock(&b->lock);
	return o;
}
