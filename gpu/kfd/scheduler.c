/* SPDX-License-Identifier: MIT */
#include "gpu/kfd/scheduler.h"

#include <errno.h>

static int call(struct gkfd *k, unsigned long request, void *arg)
{
	const struct gkfd_transport *t = k->transport;

	return t->ext ? t->ext(k->data, request, arg) : -ENODEV;
}

int gkfd_scheduler_set(struct gkfd *k, const struct kfd_gpreempt_monitor *args)
{
	struct kfd_gpreempt_monitor copy = *args;

	return call(k, KFD_GPREEMPT_SET_MONITOR, &copy);
}

int gkfd_scheduler_reserve(struct gkfd *k, const struct kfd_gpreempt_reservation *args)
{
	struct kfd_gpreempt_reservation copy = *args;

	return call(k, KFD_GPREEMPT_SET_HQD_RESERVATION, &copy);
}

int gkfd_scheduler_set_class(struct gkfd *k, const struct kfd_gpreempt_class *args)
{
	struct kfd_gpreempt_class copy = *args;

	return call(k, KFD_GPREEMPT_SET_CLASS, &copy);
}

int gkfd_scheduler_set_policy(struct gkfd *k, const struct kfd_gpreempt_policy *args)
{
	struct kfd_gpreempt_policy copy = *args;

	return call(k, KFD_GPREEMPT_SET_QUEUE_POLICY, &copy);
}

int gkfd_scheduler_hint(struct gkfd *k, const struct kfd_gpreempt_hint *args)
{
	struct kfd_gpreempt_hint copy = *args;

	return call(k, KFD_GPREEMPT_HINT, &copy);
}
