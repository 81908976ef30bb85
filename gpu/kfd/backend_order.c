/* SPDX-License-Identifier: MIT */
/* Orders, and the way back of those that are done. */
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

struct order *order_take_done(struct backend *b)
{
	struct mail *mail = mailbox_take(&b->done);

	return mail ? mail_of(mail, struct order, mail) : NULL;
}
