/* SPDX-License-Identifier: MIT */
/*
 * The calls of the scheduler in the driver: who may say what, what is refused, and the file that
 * tells what was set. The scheduler itself is not modelled, only how it is spoken to: nobody is
 * held, and its figures stay 0. What schedules on a model is gpreemptd or the simulator.
 */
#include <errno.h>
#include <string.h>

#include "gpu/model/driver.h"

/* As the policies are called that the driver has of core/policy; the first is its default. */
const char *const model_ext_policies[] = {
	"priority", "none", "rotate", "share", "deadline", NULL
};

#define DEFAULT_INTERVAL_US 5000u
#define DEFAULT_CRITICAL_US 1000u
#define DEFAULT_TURN_MS 100u
#define DEFAULT_HOLD_MAX_MS 10000u
#define MAX_AHEAD_NS NSEC_PER_SEC
#define MAX_FOR_NS (10 * NSEC_PER_SEC)

/* ---- on and off ---- */

static const char *find_policy(const char *name)
{
	if (!name[0])
		return model_ext_policies[0];
	for (size_t i = 0; model_ext_policies[i]; i++)
		if (!strncmp(model_ext_policies[i], name, KFD_GPREEMPT_POLICY_NAME))
			return model_ext_policies[i];
	return NULL;
}

static bool is_within(uint32_t value, uint32_t least, uint32_t most)
{
	return !value || (value >= least && value <= most);
}

static bool is_interval(uint32_t us)
{
	return is_within(us, KFD_GPREEMPT_MIN_INTERVAL_US, KFD_GPREEMPT_MAX_INTERVAL_US);
}

static int make_settings(const struct kfd_gpreempt_monitor *a, struct ext_scheduler *ret)
{
	*ret = (struct ext_scheduler){
		.on = true,
		.policy = find_policy(a->policy),
		.interval_us = a->interval_us ? a->interval_us : DEFAULT_INTERVAL_US,
		.critical_interval_us =
			a->critical_interval_us ? a->critical_interval_us : DEFAULT_CRITICAL_US,
		.turn_ms = a->turn_ms ? a->turn_ms : DEFAULT_TURN_MS,
		.hold_max_ms = a->hold_max_ms ? a->hold_max_ms : DEFAULT_HOLD_MAX_MS,
		.offline_permille = 1000,
	};
	if (!ret->policy || !is_interval(a->interval_us) || !is_interval(a->critical_interval_us) ||
	    !is_within(a->turn_ms, 1, KFD_GPREEMPT_MAX_HOLD_MS) ||
	    !is_within(a->hold_max_ms, 1, KFD_GPREEMPT_MAX_HOLD_MS))
		return -EINVAL;
	return 0;
}

static int set_gpu(struct model_gpu *gpu, const struct kfd_gpreempt_monitor *a)
{
	struct ext_scheduler *s = &gpu->scheduler, next;
	int r = make_settings(a, &next);

	if (r < 0)
		return r;
	if (!(a->flags & KFD_GPREEMPT_MONITOR_ON))
		next = (struct ext_scheduler){ 0 };
	if (next.on && s->on) {
		next.online_permille = s->online_permille;
		next.offline_permille = s->offline_permille;
		next.low_water = s->low_water;
	}
	*s = next;
	return 0;
}

static bool is_meant(const struct model_gpu *gpu, uint32_t gpu_id)
{
	return gpu_id == KFD_GPREEMPT_ANY_GPU || gpu_id == gpu->id;
}

int model_ext_monitor(struct ext_call *c, void *data)
{
	const uint32_t nudges = KFD_GPREEMPT_MONITOR_KICK | KFD_GPREEMPT_MONITOR_REARM;
	const struct kfd_gpreempt_monitor *a = data;
	int r = -ENODEV;

	if (!c->caller->admin)
		return -EPERM;
	if (a->flags & ~(nudges | KFD_GPREEMPT_MONITOR_ON) || a->pad ||
	    (a->flags & nudges && a->flags & KFD_GPREEMPT_MONITOR_ON))
		return -EINVAL;
	for (uint32_t i = 0; i < c->m->config.n_gpus; i++) {
		struct model_gpu *gpu = &c->m->gpus[i];

		if (!is_meant(gpu, a->gpu_id))
			continue;
		if (a->flags & nudges)
			r = gpu->scheduler.on ? 0 : -ENOENT;
		else
			r = set_gpu(gpu, a);
		if (r < 0)
			return r;
	}
	return r;
}

int model_ext_reserve(struct ext_call *c, void *data)
{
	const struct kfd_gpreempt_reservation *a = data;
	bool none = !a->online_permille && !a->offline_permille;
	int r = -ENODEV;

	if (!c->caller->admin)
		return -EPERM;
	if (a->online_permille > 1000 || a->offline_permille > 1000 ||
	    a->online_permille + a->offline_permille > 1000)
		return -EINVAL;
	for (uint32_t i = 0; i < c->m->config.n_gpus; i++) {
		struct ext_scheduler *s = &c->m->gpus[i].scheduler;

		if (!is_meant(&c->m->gpus[i], a->gpu_id))
			continue;
		if (!s->on)
			return -ENOENT;
		s->online_permille = a->online_permille;
		s->offline_permille = none ? 1000 : a->offline_permille;
		s->low_water = a->low_water;
		r = 0;
	}
	return r;
}

bool model_ext_schedules(const struct model *m)
{
	for (uint32_t i = 0; i < m->config.n_gpus; i++)
		if (m->gpus[i].scheduler.on)
			return true;
	return false;
}

void model_ext_scheduler_on(struct model *m)
{
	const struct kfd_gpreempt_monitor defaults = { .flags = KFD_GPREEMPT_MONITOR_ON };

	for (uint32_t i = 0; i < m->config.n_gpus; i++)
		set_gpu(&m->gpus[i], &defaults);
}

/* ---- who is who ---- */

static bool may_set(const struct ext_class *now, uint32_t class, bool admin)
{
	return admin || (class != KFD_GPREEMPT_ONLINE && !now->by_admin &&
			 now->class != KFD_GPREEMPT_ONLINE);
}

static int set_process(struct ext_class *now, const struct kfd_gpreempt_class *a, bool admin)
{
	if (!may_set(now, a->class, admin))
		return -EPERM;
	now->class = a->class;
	now->by_admin = admin && a->class;
	return 0;
}

static int set_queue(struct model_kproc *k, const struct kfd_gpreempt_class *a, bool admin)
{
	if (!admin && (a->class == KFD_GPREEMPT_ONLINE || k->ext.by_admin))
		return -EPERM;
	for (struct model_queue *q = k->queues; q; q = q->next) {
		if (q->id != a->queue_id)
			continue;
		if (!admin && q->ext.class_by_admin)
			return -EPERM;
		q->ext.class = a->class;
		q->ext.class_by_admin = admin && a->class;
		return 0;
	}
	return -ENOENT;
}

static bool is_more_than_others(const struct kfd_gpreempt_class *a)
{
	return a->flags || a->priority || a->weight > 1 || a->wait_bound_ns;
}

int model_ext_class(struct ext_call *c, void *data)
{
	const struct kfd_gpreempt_class *a = data;
	bool admin = c->caller->admin;
	struct model_kproc *k = c->target;

	if (a->class > KFD_GPREEMPT_OFFLINE || a->flags & ~KFD_GPREEMPT_CLASS_CRITICAL ||
	    a->priority > UINT8_MAX)
		return -EINVAL;
	if (!admin && is_more_than_others(a))
		return -EPERM;
	if (a->queue_id == KFD_GPREEMPT_ALL_QUEUES)
		return set_process(&k->ext, a, admin);
	return set_queue(k, a, admin);
}

int model_ext_policy(struct ext_call *c, void *data)
{
	const uint32_t known = KFD_GPREEMPT_LAZY_ACTIVATION | KFD_GPREEMPT_AUTO_DEACTIVATION |
			       KFD_GPREEMPT_PREEMPTIBLE;
	const struct kfd_gpreempt_policy *a = data;
	bool admin = c->caller->admin;
	struct model_kproc *k = c->target;

	if (a->flags & ~known)
		return -EINVAL;
	/* Not to be preempted is more than others have. */
	if (!admin && (k->ext.by_admin || !(a->flags & KFD_GPREEMPT_PREEMPTIBLE)))
		return -EPERM;
	k->ext.by_admin |= admin && k->ext.class;
	return 0;
}

int model_ext_hint(struct ext_call *c, void *data)
{
	const struct kfd_gpreempt_hint *a = data;

	if (c->target->ext.class != KFD_GPREEMPT_ONLINE)
		return -EPERM;
	if (a->ahead_ns > MAX_AHEAD_NS || a->for_ns > MAX_FOR_NS)
		return -EINVAL;
	if (a->gpu_id == KFD_GPREEMPT_ANY_GPU)
		return c->m->config.n_gpus ? 0 : -ENODEV;
	return model_gpu_by_id(c->m, a->gpu_id) ? 0 : -ENODEV;
}

/* ---- the file ---- */

/* By class; a process may have queues of several. */
static void count_jobs(const struct model_gpu *gpu, unsigned int ret[KFD_GPREEMPT_OFFLINE + 1])
{
	for (const struct model_kproc *k = gpu->m->kprocs; k; k = k->next) {
		bool has[KFD_GPREEMPT_OFFLINE + 1] = { false };

		for (const struct model_queue *q = k->queues; q; q = q->next)
			has[q->ext.class ? q->ext.class : k->ext.class] |= q->gpu == gpu;
		for (uint32_t i = 0; i < ARRAY_SIZE(has); i++)
			ret[i] += has[i];
	}
}

static void print_scheduler(const struct model_gpu *gpu, FILE *out)
{
	const struct ext_scheduler *s = &gpu->scheduler;
	unsigned int jobs[KFD_GPREEMPT_OFFLINE + 1] = { 0 };

	if (!s->on) {
		fputs("scheduler off\n", out);
		return;
	}
	fprintf(out, "scheduler on\npolicy %s\ninterval_us %u\ncritical_interval_us %u\n",
		s->policy, s->interval_us, s->critical_interval_us);
	fprintf(out, "turn_ms %u\nhold_max_ms %u\n", s->turn_ms, s->hold_max_ms);
	fprintf(out, "online_permille %u\noffline_permille %u\nlow_water %u\n", s->online_permille,
		s->offline_permille, s->low_water);
	fputs("looks 0\nlooked_queues 0\nbusy_ns 0\n", out);
	fputs("holds 0\nresumes 0\nfailures 0\ntripped 0\n", out);
	count_jobs(gpu, jobs);
	fprintf(out, "online %u\noffline %u\nheld 0\n", jobs[KFD_GPREEMPT_ONLINE],
		jobs[KFD_GPREEMPT_OFFLINE]);
}

void model_ext_print_state(const struct model *m, FILE *out)
{
	for (uint32_t i = 0; i < m->config.n_gpus; i++) {
		struct kfd_gpreempt_hqd hqd;

		model_ext_fill_hqd(&m->gpus[i], &hqd);
		fprintf(out, "gpu %u\nslots %u\nactive %u\nactive_sum %u\nqueues %u\nheld %u\n",
			hqd.gpu_id, hqd.total, hqd.active, hqd.active_sum, hqd.queues, hqd.held);
		fprintf(out, "flags %#x\n", hqd.flags);
		print_scheduler(&m->gpus[i], out);
	}
}
