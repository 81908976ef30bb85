/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The scheduler as it is set: on and off, policy and figures, slots, hints; and what it tells. */
#include <linux/kthread.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "kfd_device_queue_manager.h"
#include "kfd_gpreempt_monitor.h"
#include "kfd_priv.h"

static const struct engine_limits limits = {
	.gpus = 1,
	.jobs = GP_MAX_JOBS,
	.queues = GP_MAX_QUEUES,
};

static const struct gpol_ops *find_policy(const char *name)
{
	const struct gpol_ops *const *p;

	if (!name[0])
		return engine_config_default.policy;
	for (p = gpol_all; *p; p++) {
		if (!strncmp((*p)->name, name, KFD_GPREEMPT_POLICY_NAME))
			return *p;
	}
	return NULL;
}

static bool is_within(u32 value, u32 least, u32 most)
{
	return !value || (value >= least && value <= most);
}

static bool is_interval(u32 us)
{
	return is_within(us, KFD_GPREEMPT_MIN_INTERVAL_US, KFD_GPREEMPT_MAX_INTERVAL_US);
}

static int make_config(const struct kfd_gpreempt_monitor *a, struct engine_config *c)
{
	*c = engine_config_default;
	c->policy = find_policy(a->policy);
	if (!c->policy || !is_interval(a->interval_us) || !is_interval(a->critical_interval_us) ||
	    !is_within(a->turn_ms, 1, KFD_GPREEMPT_MAX_HOLD_MS) ||
	    !is_within(a->hold_max_ms, 1, KFD_GPREEMPT_MAX_HOLD_MS))
		return -EINVAL;
	if (a->interval_us)
		c->interval_ns = a->interval_us * NSEC_PER_USEC;
	if (a->critical_interval_us)
		c->critical_interval_ns = a->critical_interval_us * NSEC_PER_USEC;
	if (a->turn_ms)
		c->params.turn_ns = (u64)a->turn_ms * NSEC_PER_MSEC;
	if (a->hold_max_ms)
		c->hold_max_ns = (u64)a->hold_max_ms * NSEC_PER_MSEC;
	if (a->cycles_per_s)
		c->cycles_per_s = a->cycles_per_s;
	/* Nothing is kept for anybody before somebody asks for it. */
	c->online_permille = 0;
	c->offline_permille = 1000;
	c->low_water = 0;
	c->costs.disturbs_all = !gp_victims_only();
	return 0;
}

static int start(struct kfd_gpreempt_node *n, const struct engine_config *config)
{
	struct device_queue_manager *dqm = gp_dqm(n);
	struct gp_monitor *m;
	int r;

	m = kvzalloc(struct_size(m, memory, DIV_ROUND_UP(engine_bytes(&limits), sizeof(u64))),
		     GFP_KERNEL);
	if (!m)
		return -ENOMEM;
	m->n = n;
	m->config = *config;
	spin_lock_init(&m->lock);
	init_waitqueue_head(&m->wait);
	m->engine = engine_init(m->memory, &limits, config);
	r = engine_add_gpu(m->engine, n->node->id, get_cp_queues_num(dqm));
	if (r)
		goto fail;
	m->thread = kthread_create(gp_monitor_run, m, "gpreempt/%x", n->node->id);
	if (IS_ERR(m->thread)) {
		r = PTR_ERR(m->thread);
		goto fail;
	}
	dqm_lock(dqm);
	n->monitor = m;
	dqm_unlock(dqm);
	wake_up_process(m->thread);
	return 0;
fail:
	kvfree(m);
	return r;
}

static void stop(struct kfd_gpreempt_node *n)
{
	struct device_queue_manager *dqm = gp_dqm(n);
	struct gp_monitor *m = n->monitor;
	struct gp_change c;

	if (!m)
		return;
	kthread_stop(m->thread);
	gp_change_begin(&c, ktime_get_ns(), USE_DEFAULT_GRACE_PERIOD, NULL);
	dqm_lock(dqm);
	n->monitor = NULL;
	gp_end_scheduler_holds(n, &c);
	gp_change_commit(dqm, &c);
	dqm_unlock(dqm);
	kvfree(m);
}

void gp_monitor_stop(struct kfd_gpreempt_node *n)
{
	mutex_lock(&n->monitor_lock);
	stop(n);
	mutex_unlock(&n->monitor_lock);
}

static void reconfigure(struct gp_monitor *m, const struct engine_config *config)
{
	spin_lock(&m->lock);
	m->config = *config;
	m->configured = true;
	spin_unlock(&m->lock);
}

static int set_node(struct kfd_gpreempt_node *n, const struct kfd_gpreempt_monitor *args)
{
	struct engine_config config;
	int r = make_config(args, &config);

	if (r)
		return r;
	mutex_lock(&n->monitor_lock);
	if (!(args->flags & KFD_GPREEMPT_MONITOR_ON)) {
		stop(n);
	} else if (!n->monitor) {
		r = start(n, &config);
	} else {
		/* What is kept for whom is another call's. */
		config.online_permille = n->monitor->config.online_permille;
		config.offline_permille = n->monitor->config.offline_permille;
		config.low_water = n->monitor->config.low_water;
		reconfigure(n->monitor, &config);
		dqm_lock(gp_dqm(n));
		gp_monitor_kick(n);
		dqm_unlock(gp_dqm(n));
	}
	mutex_unlock(&n->monitor_lock);
	return r;
}

static int nudge_node(struct kfd_gpreempt_node *n, bool rearm)
{
	int r = -ENOENT;

	dqm_lock(gp_dqm(n));
	if (n->monitor) {
		spin_lock(&n->monitor->lock);
		n->monitor->rearm |= rearm;
		spin_unlock(&n->monitor->lock);
		gp_monitor_kick(n);
		r = 0;
	}
	dqm_unlock(gp_dqm(n));
	return r;
}

static bool is_meant(const struct kfd_gpreempt_node *n, u32 gpu_id)
{
	return gpu_id == KFD_GPREEMPT_ANY_GPU || gpu_id == n->node->id;
}

int gp_monitor_set(const struct kfd_gpreempt_monitor *args)
{
	const u32 nudges = KFD_GPREEMPT_MONITOR_KICK | KFD_GPREEMPT_MONITOR_REARM;
	struct kfd_gpreempt_node *n;
	int r = -ENODEV;

	if (args->flags & ~(nudges | KFD_GPREEMPT_MONITOR_ON) || args->pad ||
	    (args->flags & nudges && args->flags & KFD_GPREEMPT_MONITOR_ON))
		return -EINVAL;
	down_read(&gp_nodes_lock);
	list_for_each_entry(n, &gp_nodes, link) {
		if (!is_meant(n, args->gpu_id))
			continue;
		if (args->flags & nudges)
			r = nudge_node(n, args->flags & KFD_GPREEMPT_MONITOR_REARM);
		else
			r = set_node(n, args);
		if (r)
			break;
	}
	up_read(&gp_nodes_lock);
	return r;
}

/* Who asks for no more than this must not wait for a GPU that is being cycled. */
bool gp_monitor_is_on(void)
{
	struct kfd_gpreempt_node *n;
	bool on = false;

	down_read(&gp_nodes_lock);
	list_for_each_entry(n, &gp_nodes, link)
		on |= READ_ONCE(n->monitor) != NULL;
	up_read(&gp_nodes_lock);
	return on;
}

static int reserve_node(struct kfd_gpreempt_node *n, const struct kfd_gpreempt_reservation *args)
{
	bool none = !args->online_permille && !args->offline_permille;
	struct engine_config config;
	int r = -ENOENT;

	mutex_lock(&n->monitor_lock);
	if (n->monitor) {
		config = n->monitor->config;
		config.online_permille = args->online_permille;
		config.offline_permille = none ? 1000 : args->offline_permille;
		config.low_water = args->low_water;
		reconfigure(n->monitor, &config);
		dqm_lock(gp_dqm(n));
		gp_monitor_kick(n);
		dqm_unlock(gp_dqm(n));
		r = 0;
	}
	mutex_unlock(&n->monitor_lock);
	return r;
}

int gp_monitor_reserve(const struct kfd_gpreempt_reservation *args)
{
	struct kfd_gpreempt_node *n;
	int r = -ENODEV;

	if (args->online_permille > 1000 || args->offline_permille > 1000 ||
	    args->online_permille + args->offline_permille > 1000)
		return -EINVAL;
	down_read(&gp_nodes_lock);
	list_for_each_entry(n, &gp_nodes, link) {
		if (!is_meant(n, args->gpu_id))
			continue;
		r = reserve_node(n, args);
		if (r)
			break;
	}
	up_read(&gp_nodes_lock);
	return r;
}

static void leave_hint(struct gp_monitor *m, const struct gp_hint *h)
{
	spin_lock(&m->lock);
	if (m->n_hints < GP_MAX_HINTS)
		m->hints[m->n_hints++] = *h;
	spin_unlock(&m->lock);
}

int gp_monitor_hint(struct kfd_process *p, const struct kfd_gpreempt_hint *args)
{
	struct gp_hint h = { .process = p, .at_ns = ktime_get_ns() + args->ahead_ns };
	struct kfd_gpreempt_node *n;
	int r = -ENODEV;

	if (gp_class_of(p).class != KFD_GPREEMPT_ONLINE)
		return -EPERM;
	if (args->ahead_ns > NSEC_PER_SEC || args->for_ns > 10ull * NSEC_PER_SEC)
		return -EINVAL;
	h.for_ns = args->for_ns;
	down_read(&gp_nodes_lock);
	list_for_each_entry(n, &gp_nodes, link) {
		if (!is_meant(n, args->gpu_id) || !kfd_get_process_device_data(n->node, p))
			continue;
		dqm_lock(gp_dqm(n));
		if (n->monitor) {
			leave_hint(n->monitor, &h);
			gp_monitor_kick(n);
		}
		dqm_unlock(gp_dqm(n));
		r = 0;
	}
	up_read(&gp_nodes_lock);
	return r;
}

void gp_monitor_show(struct seq_file *s, struct kfd_gpreempt_node *n)
{
	struct gp_monitor_figures f;
	struct engine_config c;

	dqm_lock(gp_dqm(n));
	if (!n->monitor) {
		dqm_unlock(gp_dqm(n));
		seq_puts(s, "scheduler off\n");
		return;
	}
	spin_lock(&n->monitor->lock);
	f = n->monitor->figures;
	c = n->monitor->config;
	spin_unlock(&n->monitor->lock);
	dqm_unlock(gp_dqm(n));
	seq_printf(s, "scheduler on\npolicy %s\ninterval_us %llu\ncritical_interval_us %llu\n",
		   c.policy->name, c.interval_ns / NSEC_PER_USEC,
		   c.critical_interval_ns / NSEC_PER_USEC);
	seq_printf(s, "turn_ms %llu\nhold_max_ms %llu\n", c.params.turn_ns / NSEC_PER_MSEC,
		   c.hold_max_ns / NSEC_PER_MSEC);
	seq_printf(s, "online_permille %u\noffline_permille %u\nlow_water %u\n", c.online_permille,
		   c.offline_permille, c.low_water);
	seq_printf(s, "looks %llu\nlooked_queues %llu\nbusy_ns %llu\n", f.looks, f.looked_queues,
		   f.busy_ns);
	seq_printf(s, "holds %llu\nresumes %llu\nfailures %llu\ntripped %d\n", f.holds, f.resumes,
		   f.failures, f.tripped);
	seq_printf(s, "online %u\noffline %u\nheld %u\n", f.online, f.offline, f.held);
}
