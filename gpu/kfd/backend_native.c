/* SPDX-License-Identifier: MIT */
/* The scheduler in the driver, which its extension has. */
#include <errno.h>
#include <stdio.h>

#include "gpu/kfd/backend_ext.h"
#include "gpu/kfd/scheduler.h"
#include "util/macros.h"

_Static_assert(JOB_UNMANAGED == KFD_GPREEMPT_NO_CLASS && JOB_ONLINE == KFD_GPREEMPT_ONLINE &&
		       JOB_OFFLINE == KFD_GPREEMPT_OFFLINE,
	       "classes have the same numbers in the driver");

static struct gkfd *gkfd_of(struct gpu_backend *base)
{
	return ((struct backend *)base)->k;
}

static int call(struct gpu_backend *base, unsigned long request, void *args)
{
	return gkfd_ext_call(gkfd_of(base), request, args);
}

/* Where debugfs may not be read, one GPU on stands for all. */
static int native_is_on(struct gpu_backend *base)
{
	struct kfd_gpreempt_version version;
	struct gkfd_schedulers all;
	int r = gkfd_ext_open(gkfd_of(base), &version);

	if (r < 0)
		return -ENODEV;
	if (!(version.abilities & KFD_GPREEMPT_SCHEDULES))
		return 0;
	if (gkfd_schedulers_read(gkfd_of(base), &all) < 0)
		return 1;
	r = 1;
	for (size_t i = 0; i < all.n; i++)
		r &= all.gpus[i].on;
	gkfd_schedulers_done(&all);
	return r;
}

static uint32_t in_units(uint64_t ns, uint64_t unit_ns, uint32_t most)
{
	return (uint32_t)MIN(MAX(ns / unit_ns, 1), most);
}

static int native_turn_off(struct gpu_backend *base)
{
	struct kfd_gpreempt_monitor off = { .gpu_id = KFD_GPREEMPT_ANY_GPU };

	return call(base, KFD_GPREEMPT_SET_MONITOR, &off);
}

static int reserve(struct gpu_backend *base, const struct gpu_native_config *c)
{
	struct kfd_gpreempt_reservation args = { .gpu_id = KFD_GPREEMPT_ANY_GPU };

	if (c->reserve) {
		args.online_permille = c->online_permille;
		args.offline_permille = c->offline_permille;
		args.low_water = c->low_water;
	}
	return call(base, KFD_GPREEMPT_SET_HQD_RESERVATION, &args);
}

static int native_turn_on(struct gpu_backend *base, const struct gpu_native_config *c)
{
	struct kfd_gpreempt_monitor args = {
		.gpu_id = KFD_GPREEMPT_ANY_GPU,
		.flags = KFD_GPREEMPT_MONITOR_ON,
		.interval_us =
			in_units(c->interval_ns, NSEC_PER_USEC, KFD_GPREEMPT_MAX_INTERVAL_US),
		.critical_interval_us = in_units(c->critical_interval_ns, NSEC_PER_USEC,
						 KFD_GPREEMPT_MAX_INTERVAL_US),
		.turn_ms = in_units(c->turn_ns, NSEC_PER_MSEC, KFD_GPREEMPT_MAX_HOLD_MS),
		.hold_max_ms = in_units(c->hold_max_ns, NSEC_PER_MSEC, KFD_GPREEMPT_MAX_HOLD_MS),
		/* 0 is no limit here, and the default there. */
		.cycles_per_s = c->cycles_per_s ? c->cycles_per_s : UINT32_MAX,
	};
	int r;

	snprintf(args.policy, sizeof(args.policy), "%s", c->policy);
	r = call(base, KFD_GPREEMPT_SET_MONITOR, &args);
	if (r == -ENOTTY || r == -ENODEV)
		return -EOPNOTSUPP;
	return r < 0 ? r : reserve(base, c);
}

static int native_set_job(struct gpu_backend *base, pid_t pid, uint64_t start_ticks,
			  const struct gpu_native_job *job)
{
	struct kfd_gpreempt_class class = {
		.pid = (uint32_t)pid,
		.queue_id = KFD_GPREEMPT_ALL_QUEUES,
		.class = job->job_class,
		.flags = job->critical ? KFD_GPREEMPT_CLASS_CRITICAL : 0,
		.priority = MIN(job->priority, UINT8_MAX),
		.weight = job->weight,
		.target_ns = job->target_ns,
		.wait_bound_ns = job->wait_bound_ns,
		.start_ticks = start_ticks,
	};
	struct kfd_gpreempt_policy policy = {
		.pid = (uint32_t)pid,
		.flags = KFD_GPREEMPT_PREEMPTIBLE | (job->lazy ? KFD_GPREEMPT_LAZY_ACTIVATION : 0) |
			 (job->auto_deactivate ? KFD_GPREEMPT_AUTO_DEACTIVATION : 0),
		.start_ticks = start_ticks,
	};
	int r = call(base, KFD_GPREEMPT_SET_QUEUE_POLICY, &policy);

	return r < 0 ? r : call(base, KFD_GPREEMPT_SET_CLASS, &class);
}

static int native_hint(struct gpu_backend *base, pid_t pid, uint64_t start_ticks, uint64_t ahead_ns,
		       uint64_t for_ns)
{
	struct kfd_gpreempt_hint args = {
		.pid = (uint32_t)pid,
		.gpu_id = KFD_GPREEMPT_ANY_GPU,
		.ahead_ns = ahead_ns,
		.for_ns = for_ns,
		.start_ticks = start_ticks,
	};

	return call(base, KFD_GPREEMPT_HINT, &args);
}

static int native_rearm(struct gpu_backend *base, uint32_t gpu)
{
	struct kfd_gpreempt_monitor args = { .gpu_id = gpu, .flags = KFD_GPREEMPT_MONITOR_REARM };

	return call(base, KFD_GPREEMPT_SET_MONITOR, &args);
}

const struct gpu_native_ops ext_native_ops = {
	.is_on = native_is_on,
	.turn_on = native_turn_on,
	.turn_off = native_turn_off,
	.set_job = native_set_job,
	.hint = native_hint,
	.rearm = native_rearm,
};
