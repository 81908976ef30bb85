/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The scheduler in the driver: for each GPU a thread that looks at the queues of processes with a
 * class, asks the engine (core/engine, the one gpreemptd has) and does as it says.
 *
 * A job is what one process has of one class on this GPU. The engine and its jobs are the thread's
 * alone; others leave it notes. It holds no lock while it reads memory of processes.
 *
 * Every hold has its end in the node's own book (kfd_gpreempt_node.c), so that nothing stays held
 * if this thread does not get to it.
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/pid.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>

#include "kfd_device_queue_manager.h"
#include "kfd_gpreempt_monitor.h"
#include "kfd_gpreempt_trace.h"
#include "kfd_priv.h"

#define NEVER U64_MAX
#define WAIT_FOR_SLOT_NS (NSEC_PER_SEC / 2) /* at most; as a rule it is the next look */
#define SHORTEST_NAP_NS (50 * (u64)NSEC_PER_USEC)

/* ---- jobs ---- */

static struct engine_job_config config_of(const struct gp_monitor *m, const struct gp_job *j)
{
	const struct kfd_gpreempt_class_state *s = &j->state;
	u32 flags = (s->critical ? ENGINE_JOB_CRITICAL : 0) | (s->lazy ? ENGINE_JOB_LAZY : 0) |
		    (s->auto_deactivate ? ENGINE_JOB_AUTO_DEACTIVATE : 0);

	if (j->class == KFD_GPREEMPT_OFFLINE && !s->fixed)
		flags |= ENGINE_JOB_PREEMPTIBLE;
	return (struct engine_job_config){
		.gpu = m->n->node->id,
		.gang = ENGINE_NO_GANG,
		.flags = flags,
		.class = j->class,
		.priority = s->priority,
		.weight = s->weight,
		.target_ns = s->target_ns,
		.wait_bound_ns = s->wait_bound_ns,
	};
}

static struct gp_job *find_job(struct gp_monitor *m, const struct kfd_process *p, u8 class)
{
	unsigned int i;

	for (i = 0; i < m->n_jobs; i++) {
		if (m->jobs[i].process == p && m->jobs[i].class == class)
			return &m->jobs[i];
	}
	return NULL;
}

static void forget_job(struct gp_monitor *m, struct gp_job *j)
{
	if (j->engine_id >= 0)
		engine_remove_job(m->engine, j->engine_id);
	*j = (struct gp_job){ 0 };
}

static struct gp_job *free_job(struct gp_monitor *m)
{
	struct gp_job *j = find_job(m, NULL, KFD_GPREEMPT_NO_CLASS);

	if (j)
		return j;
	return m->n_jobs < GP_MAX_JOBS ? &m->jobs[m->n_jobs++] : NULL;
}

/* Under the DQM lock: the engine hears of it later. NULL: no room. */
static struct gp_job *note_job(struct gp_monitor *m, struct kfd_process *p, u8 class,
			    const struct kfd_gpreempt_class_state *state)
{
	struct gp_job *j = find_job(m, p, class);

	/* Memory is used again, and then it is another process. */
	if (j && j->pid != p->lead_thread->pid) {
		forget_job(m, j);
		j = NULL;
	}
	if (!j) {
		j = free_job(m);
		if (!j)
			return NULL;
		*j = (struct gp_job){ .process = p, .class = class, .engine_id = -EAGAIN };
		j->pid = p->lead_thread->pid;
	}
	j->seen = true;
	if (memcmp(&j->state, state, sizeof(*state))) {
		struct engine_job_config config;

		j->state = *state;
		config = config_of(m, j);
		if (j->engine_id >= 0)
			engine_change_job(m->engine, j->engine_id, &config);
	}
	return j;
}

/* What came is added, what went is forgotten. */
static void settle_jobs(struct gp_monitor *m, u64 now)
{
	struct engine_job_config config;
	unsigned int i;

	m->online = 0;
	m->offline = 0;
	for (i = 0; i < m->n_jobs; i++) {
		struct gp_job *j = &m->jobs[i];

		if (!j->process)
			continue;
		if (!j->seen && m->complete) {
			forget_job(m, j);
			continue;
		}
		config = config_of(m, j);
		if (j->engine_id < 0)
			j->engine_id = engine_add_job(m->engine, now, &config);
		m->online += j->class == KFD_GPREEMPT_ONLINE;
		m->offline += j->class == KFD_GPREEMPT_OFFLINE;
	}
}

/* ---- looking ---- */

static void note_queue(struct gp_monitor *m, const struct queue *q, const struct gp_job *j)
{
	const struct queue_properties *p = &q->properties;

	m->queues[m->n_queues++] = (struct gp_seen){
		.job = j - m->jobs,
		.queue_id = p->queue_id,
		.aql = p->format == KFD_QUEUE_FORMAT_AQL,
		.sdma = p->type == KFD_QUEUE_TYPE_SDMA || p->type == KFD_QUEUE_TYPE_SDMA_XGMI,
		.ring = p->queue_address,
		.ring_bytes = p->queue_size,
		.read_address = (u64)(uintptr_t)p->read_ptr,
		.write_address = (u64)(uintptr_t)p->write_ptr,
	};
}

static u8 class_of(const struct queue *q, const struct kfd_gpreempt_class_state *state)
{
	return q->gpreempt.class ?: state->class;
}

static bool is_held(const struct queue *q)
{
	return q->properties.gpreempt & KFD_GPREEMPT_BY_SCHEDULER;
}

static void note_process(struct gp_monitor *m, struct qcm_process_device *qpd)
{
	struct kfd_process *p = qpd->pqm->process;
	struct kfd_gpreempt_class_state state = gp_class_of(p);
	struct process_run run = { .process = p, .first = m->n_queues };
	struct queue *q;
	struct gp_job *j;
	u8 class;

	list_for_each_entry(q, &qpd->queues_list, list) {
		class = class_of(q, &state);
		j = NULL;
		if (class != KFD_GPREEMPT_NO_CLASS && m->n_queues < GP_MAX_QUEUES)
			j = note_job(m, p, class, &state);
		if (j)
			note_queue(m, q, j);
		else
			m->complete &= class == KFD_GPREEMPT_NO_CLASS;
		m->astray |= is_held(q) != (j && j->held);
	}
	run.n = m->n_queues - run.first;
	if (run.n && m->n_processes < GP_MAX_JOBS && kref_get_unless_zero(&p->ref))
		m->processes[m->n_processes++] = run;
}

static void collect(struct gp_monitor *m)
{
	struct device_queue_manager *dqm = gp_dqm(m->n);
	struct device_process_node *cur;
	unsigned int i;

	m->n_queues = 0;
	m->n_processes = 0;
	m->complete = true;
	m->astray = false;
	for (i = 0; i < m->n_jobs; i++)
		m->jobs[i].seen = false;
	dqm_lock(dqm);
	list_for_each_entry(cur, &dqm->queues, list)
		note_process(m, cur->qpd);
	dqm_unlock(dqm);
}

/*
 * Packets are consumed before they are done, so that the end of the last one may not be seen. An
 * offline job gets the worse of it: to be held in vain costs less than to be in the way.
 */
static void take_sample(struct gp_monitor *m, struct gp_seen *s, struct engine_sample *ret)
{
	const struct gp_job *j = &m->jobs[s->job];
	enum gp_work work = gp_see_queue(s);

	*ret = (struct engine_sample){
		.job = j->engine_id,
		.queue = s->queue_id,
		.read = s->read,
		.write = work == GP_BUSY ? s->write : s->read,
		.busy = work == GP_UNKNOWN ? j->class == KFD_GPREEMPT_OFFLINE :
					     work == GP_BUSY && s->read == s->write,
	};
}

/* Its first thread may have ended. */
static struct mm_struct *mm_of(struct kfd_process *p)
{
	struct mm_struct *mm = NULL;
	struct task_struct *t;

	rcu_read_lock();
	for_each_thread(p->lead_thread, t) {
		mm = get_task_mm(t);
		if (mm)
			break;
	}
	rcu_read_unlock();
	return mm;
}

static unsigned int look_at(struct gp_monitor *m, const struct process_run *run, unsigned int n)
{
	struct mm_struct *mm = mm_of(run->process);
	unsigned int i;

	if (!mm)
		return n;
	if (mm == READ_ONCE(run->process->mm)) {
		kthread_use_mm(mm);
		for (i = run->first; i < run->first + run->n; i++) {
			if (m->jobs[m->queues[i].job].engine_id >= 0)
				take_sample(m, &m->queues[i], &m->samples[n++]);
		}
		kthread_unuse_mm(mm);
	}
	mmput_async(mm);
	return n;
}

static unsigned int look(struct gp_monitor *m)
{
	unsigned int i, n = 0;

	for (i = 0; i < m->n_processes; i++) {
		n = look_at(m, &m->processes[i], n);
		kfd_unref_process(m->processes[i].process);
	}
	return n;
}

/* ---- acting ---- */

static struct gp_job *job_of_engine(struct gp_monitor *m, u32 id)
{
	unsigned int i;

	for (i = 0; i < m->n_jobs; i++) {
		if (m->jobs[i].process && m->jobs[i].engine_id == (int)id)
			return &m->jobs[i];
	}
	return NULL;
}

/* ---- slots ---- */

static bool is_offline_and_active(const struct queue *q)
{
	struct kfd_gpreempt_class_state state = gp_class_of(q->process);

	return q->properties.is_active && q->properties.type == KFD_QUEUE_TYPE_COMPUTE &&
	       class_of(q, &state) == KFD_GPREEMPT_OFFLINE;
}

static u32 count_offline(struct device_queue_manager *dqm)
{
	struct device_process_node *cur;
	struct queue *q;
	u32 n = 0;

	list_for_each_entry(cur, &dqm->queues, list) {
		list_for_each_entry(q, &cur->qpd->queues_list, list)
			n += is_offline_and_active(q);
	}
	return n;
}

/* Of those that offline queues may have; U32_MAX: as many as they like. */
static u32 slots_for_offline(struct gp_monitor *m)
{
	u32 permille;

	spin_lock(&m->lock);
	permille = m->config.offline_permille;
	spin_unlock(&m->lock);
	return permille == 1000 ? U32_MAX : get_cp_queues_num(gp_dqm(m->n)) * permille / 1000;
}

static bool has_room(struct gp_monitor *m)
{
	u32 slots = slots_for_offline(m);

	return slots == U32_MAX || count_offline(gp_dqm(m->n)) < slots;
}

/* Born when all slots were taken: it waits until one is free, but no longer than a hold lasts. */
static bool still_waits(struct gp_monitor *m, const struct queue *q)
{
	return is_held(q) && !has_room(m) &&
	       ktime_get_ns() - q->gpreempt.since_ns < READ_ONCE(m->config.hold_max_ns);
}

/* ---- where queues are ---- */

/* All queues of a job are where it is; also those created since it was decided. */
static int enforce_process(struct gp_monitor *m, struct qcm_process_device *qpd,
			   struct gp_change *c)
{
	struct kfd_process *p = qpd->pqm->process;
	struct kfd_gpreempt_class_state state = gp_class_of(p);
	struct kfd_process_device *pdd = qpd_to_pdd(qpd);
	int first = 0, r;
	struct queue *q;

	pdd->gpreempt.scheduler = (struct kfd_gpreempt_hold){ 0 };
	list_for_each_entry(q, &qpd->queues_list, list) {
		struct gp_job *j = find_job(m, p, class_of(q, &state));
		bool held = j && j->held, waits = j && !held && still_waits(m, q);
		u8 reasons = q->properties.gpreempt & ~KFD_GPREEMPT_BY_SCHEDULER;

		q->gpreempt.scheduler = (struct kfd_gpreempt_hold){ 0 };
		if (held || waits) {
			reasons |= KFD_GPREEMPT_BY_SCHEDULER;
			q->gpreempt.scheduler = (struct kfd_gpreempt_hold){
				.owner = 1,
				.until_ns = held ? j->until_ns : ktime_get_ns() + WAIT_FOR_SLOT_NS,
			};
			gp_expire_at(m->n, q->gpreempt.scheduler.until_ns);
		}
		if (held && j->class == state.class)
			pdd->gpreempt.scheduler = q->gpreempt.scheduler;
		r = gp_set_reasons(gp_dqm(m->n), qpd, q, reasons, c);
		first = first ?: r;
	}
	return first;
}

static int enforce(struct gp_monitor *m, u64 now)
{
	struct device_queue_manager *dqm = gp_dqm(m->n);
	struct device_process_node *cur;
	struct gp_change c;
	int r, first = 0;

	gp_change_begin(&c, now, USE_DEFAULT_GRACE_PERIOD, NULL);
	c.victims_wanted = gp_victims_only();
	dqm_lock(dqm);
	list_for_each_entry(cur, &dqm->queues, list) {
		r = enforce_process(m, cur->qpd, &c);
		first = first ?: r;
	}
	r = gp_change_commit(dqm, &c);
	if (!r && c.queue_reset)
		r = -EIO;
	dqm_unlock(dqm);
	return first ?: r;
}

static void tell_action(struct gp_monitor *m, const struct gp_job *j, const struct engine_action *a,
			u64 took_ns)
{
	const struct gp_job *by = a->because == GPOL_NOBODY ? NULL : job_of_engine(m, a->because);
	bool held = a->verb == ENGINE_SUSPEND;
	struct kfd_gpreempt_event e = {
		.at_ns = ktime_get_ns(),
		.kind = held ? KFD_GPREEMPT_EVENT_HELD : KFD_GPREEMPT_EVENT_RESUMED,
		.gpu_id = m->n->node->id,
		.pid = j->pid,
		.by_pid = by ? by->pid : 0,
		.took_ns = took_ns,
	};

	trace_kfd_gpreempt_decision(e.gpu_id, e.pid, e.by_pid, held);
	gp_tell(&e);
}

static void note_outcome(struct gp_monitor *m, const struct engine_step *step, int r)
{
	struct engine_gpu_stats gpu = { 0 };
	struct kfd_gpreempt_event e = {
		.at_ns = ktime_get_ns(),
		.kind = KFD_GPREEMPT_EVENT_TRIPPED,
		.gpu_id = m->n->node->id,
	};
	unsigned int i;

	engine_gpu_stats(m->engine, m->n->node->id, &gpu);
	if (gpu.tripped && !m->figures.tripped)
		gp_tell(&e);
	spin_lock(&m->lock);
	for (i = 0; i < step->n_actions; i++) {
		m->figures.holds += step->actions[i].verb == ENGINE_SUSPEND;
		m->figures.resumes += step->actions[i].verb == ENGINE_RESUME;
	}
	m->figures.failures += r < 0;
	m->figures.tripped = gpu.tripped;
	spin_unlock(&m->lock);
}

static void act(struct gp_monitor *m, const struct engine_step *step)
{
	u64 began = ktime_get_ns(), took;
	unsigned int i;
	int r;

	for (i = 0; i < step->n_actions; i++) {
		const struct engine_action *a = &step->actions[i];
		struct gp_job *j = job_of_engine(m, a->job);

		if (!j)
			continue;
		j->held = a->verb == ENGINE_SUSPEND;
		j->until_ns = a->deadline_ns;
		if (j->held)
			j->since_ns = began;
	}
	r = enforce(m, began);
	took = ktime_get_ns() - began;
	for (i = 0; i < step->n_actions; i++) {
		const struct engine_action *a = &step->actions[i];
		struct gp_job *j = job_of_engine(m, a->job);

		engine_report(m->engine, began + took, a->ticket, r, took);
		if (j)
			tell_action(m, j, a, j->held ? took : began + took - j->since_ns);
	}
	note_outcome(m, step, r);
}

/* ---- notes ---- */

static void take_notes(struct gp_monitor *m, u64 now)
{
	struct gp_hint hints[GP_MAX_HINTS];
	struct engine_config config;
	bool configured, rearm;
	unsigned int n, i;

	spin_lock(&m->lock);
	configured = m->configured;
	config = m->config;
	rearm = m->rearm;
	n = m->n_hints;
	memcpy(hints, m->hints, n * sizeof(*hints));
	m->configured = false;
	m->rearm = false;
	m->n_hints = 0;
	spin_unlock(&m->lock);
	if (configured)
		engine_configure(m->engine, &config);
	if (rearm)
		engine_rearm(m->engine, m->n->node->id);
	for (i = 0; i < n; i++) {
		struct gp_job *j = find_job(m, hints[i].process, KFD_GPREEMPT_ONLINE);

		if (j && j->engine_id >= 0)
			engine_hint(m->engine, now, j->engine_id, hints[i].at_ns, hints[i].for_ns);
	}
}

void gp_monitor_kick(struct kfd_gpreempt_node *n)
{
	struct gp_monitor *m = n->monitor;

	if (!m)
		return;
	spin_lock(&m->lock);
	m->kicked = true;
	spin_unlock(&m->lock);
	wake_up(&m->wait);
}

/* ---- queues are born ---- */

/*
 * Until when a new queue has to wait for the scheduler to find it a slot; 0: it has not. Under the
 * DQM lock.
 */
u64 gp_monitor_keeps_waiting(struct kfd_gpreempt_node *n, struct qcm_process_device *qpd)
{
	struct kfd_gpreempt_class_state state = gp_class_of(qpd->pqm->process);

	if (!n->monitor || state.class != KFD_GPREEMPT_OFFLINE || state.fixed)
		return 0;
	if (!state.lazy && has_room(n->monitor))
		return 0;
	return ktime_get_ns() + WAIT_FOR_SLOT_NS;
}

/* ---- the thread ---- */

static void publish(struct gp_monitor *m, u64 began)
{
	unsigned int i;
	u32 held = 0;

	for (i = 0; i < m->n_jobs; i++)
		held += m->jobs[i].held;
	spin_lock(&m->lock);
	m->figures.looks++;
	m->figures.looked_queues += m->n_queues;
	m->figures.busy_ns += ktime_get_ns() - began;
	m->figures.online = m->online;
	m->figures.offline = m->offline;
	m->figures.jobs = m->online + m->offline;
	m->figures.held = held;
	spin_unlock(&m->lock);
}

/* Returns when to look again. Where nobody is offline nobody can be in the way. */
static u64 look_and_act(struct gp_monitor *m)
{
	u64 began = ktime_get_ns();
	struct engine_step step = {
		.samples = m->samples,
		.actions = m->actions,
		.max = GP_MAX_JOBS,
	};

	WRITE_ONCE(m->kicked, false); /* what is noted from now on is for the next time */
	smp_mb();
	collect(m);
	settle_jobs(m, began);
	take_notes(m, began);
	step.n_samples = look(m);
	step.complete = m->complete;
	step.now_ns = ktime_get_ns();
	engine_step(m->engine, &step);
	if (step.n_actions || m->astray)
		act(m, &step);
	publish(m, began);
	return m->offline ? step.wake_ns : NEVER;
}

static bool is_called(struct gp_monitor *m)
{
	return READ_ONCE(m->kicked) || kthread_should_stop();
}

static void nap(struct gp_monitor *m, u64 until_ns)
{
	u64 now = ktime_get_ns();

	if (until_ns == NEVER)
		wait_event_interruptible(m->wait, is_called(m));
	else
		wait_event_interruptible_hrtimeout(
			m->wait, is_called(m),
			ns_to_ktime(max(until_ns > now ? until_ns - now : 0, SHORTEST_NAP_NS)));
}

int gp_monitor_run(void *data)
{
	struct gp_monitor *m = data;

	while (!kthread_should_stop()) {
		nap(m, look_and_act(m));
		usleep_idle_range(50, 100); /* however often somebody calls */
	}
	return 0;
}
