/* SPDX-License-Identifier: MIT */
/* Targets, and the orders that go to them and come back done. */
#include <errno.h>
#include <string.h>

#include "gpu/kfd/backend_internal.h"
#include "util/macros.h"

static struct target_base *base_of(struct gpu_target *t)
{
	return (struct target_base *)t;
}

int order_new(struct gpu_target *t, enum gpu_verb verb, const struct gpu_hold *what,
	      uint64_t cookie, struct order **ret)
{
	bool all = !what || !what->ids;
	size_t n = all ? 0 : what->n;
	struct order *o;

	if (n > UINT32_MAX / sizeof(*o->ids))
		return -EINVAL;
	o = calloc(1, sizeof(*o) + n * sizeof(*o->ids));
	if (!o)
		return -ENOMEM;
	o->t = t;
	o->done = (struct gpu_done){ .target = t, .verb = verb, .cookie = cookie };
	o->called_ns = gkfd_now_ns(base_of(t)->b->k);
	o->all = all;
	o->n = (uint32_t)n;
	if (n > 0)
		memcpy(o->ids, what->ids, n * sizeof(*o->ids));
	if (what) {
		o->longest_ns = what->longest_ns;
		o->grace_kclk = what->grace_kclk;
		o->exact = what->exact;
	}
	*ret = o;
	return 0;
}

struct order *order_take_done(struct backend *b)
{
	struct mail *mail = mailbox_take(&b->done);

	return mail ? mail_of(mail, struct order, mail) : NULL;
}

void orders_free(struct order_list *list)
{
	struct order *o;

	while ((o = STAILQ_FIRST(list))) {
		STAILQ_REMOVE_HEAD(list, link);
		free(o);
	}
}

int orders_take(struct backend *b, struct gpu_done *ret)
{
	_cleanup_free_ struct order *o = order_take_done(b);

	if (!o)
		return 0;
	*ret = o->done;
	if (o->done.verb == GPU_RELEASE) {
		LIST_REMOVE(base_of(o->t), link);
		b->free_target(o->t);
	}
	return 1;
}

int target_init(struct gpu_target *t, struct backend *b, pid_t pid, uint64_t cookie,
		struct order **ret_attach)
{
	struct target_base *base = base_of(t);
	int r;

	*base = (struct target_base){ .b = b, .pid = pid };
	r = order_new(t, GPU_ENDED, NULL, 0, &base->ended);
	if (r >= 0)
		r = order_new(t, GPU_RELEASE, NULL, 0, &base->release);
	return r < 0 ? r : order_new(t, GPU_ATTACH, NULL, cookie, ret_attach);
}

void target_done(struct gpu_target *t)
{
	free(base_of(t)->ended);
	free(base_of(t)->release);
}

bool target_is_held(struct backend *b, pid_t pid)
{
	for_each_target(b, t) if (base_of(t)->pid == pid && b->base.ops->holds(t)) return true;
	return false;
}
