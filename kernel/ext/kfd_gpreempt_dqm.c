/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Queues off the run list and on again. Included by kfd_device_queue_manager.c at its end, because
 * its counters, its run list and its calls of MES are its own.
 *
 * A change first sets what is wanted of each queue, and then asks the hardware once. What a queue
 * may run is the driver's own rule (QUEUE_IS_ACTIVE), to which ours is one more condition; so
 * eviction, debuggers and owners go on as before, and the counters stay equal to what is active.
 */
#include <linux/pid.h>

#include "kfd_gpreempt_internal.h"
#include "kfd_gpreempt_trace.h"
#include "kfd_pm4_headers_ai.h"
#include "kfd_pm4_opcodes.h"

#define GP_DOORBELLS 4 /* of one UNMAP_QUEUES */
#define GP_RETRY_NS (100 * (u64)NSEC_PER_MSEC)

static bool gp_is_mes(const struct device_queue_manager *dqm)
{
	return dqm->dev->kfd->shared_resources.enable_mes;
}

/* ---- one queue ---- */

static void gp_note_off(struct queue *q, const struct gp_change *c)
{
	struct kfd_gpreempt_queue_state *s = &q->gpreempt;

	s->since_ns = c->began_ns;
	s->preemptions++;
	put_pid(s->by);
	s->by = get_pid(c->by);
}

static void gp_note_on(struct queue *q)
{
	struct kfd_gpreempt_queue_state *s = &q->gpreempt;

	s->held_ns += ktime_get_ns() - s->since_ns;
	s->since_ns = 0;
}

/* add_queue_mes(), remove_queue_mes(): each waits for the firmware. */
static int gp_call_mes(int (*call)(struct device_queue_manager *dqm, struct queue *q,
				   struct qcm_process_device *qpd),
		       struct device_queue_manager *dqm, struct queue *q,
		       struct qcm_process_device *qpd, struct gp_change *c)
{
	u64 began = ktime_get_ns();
	int r = call(dqm, q, qpd);

	c->cycle_ns += ktime_get_ns() - began;
	return !r || r == -EIO ? r : -ETIME;
}

static int gp_off(struct device_queue_manager *dqm, struct qcm_process_device *qpd,
		  struct queue *q, struct gp_change *c)
{
	int r;

	if (!q->properties.is_active)
		return 0;
	if (gp_is_mes(dqm)) {
		r = gp_call_mes(remove_queue_mes, dqm, q, qpd, c);
		if (r)
			return r;
	}
	decrement_queue_count(dqm, qpd, q);
	q->properties.is_active = false;
	q->gpreempt.mark = c->mark;
	c->off = true;
	return 0;
}

static int gp_on(struct device_queue_manager *dqm, struct qcm_process_device *qpd, struct queue *q,
		 struct gp_change *c)
{
	int r;

	q->gpreempt.retry = false;
	if (q->properties.is_active || q->gpreempt.lost || !QUEUE_IS_ACTIVE(q->properties))
		return 0;
	if (gp_is_mes(dqm)) {
		r = gp_call_mes(add_queue_mes, dqm, q, qpd, c);
		if (r) {
			q->gpreempt.retry = dqm->gpreempt->retry = r == -EIO;
			return r;
		}
	}
	q->properties.is_active = true;
	increment_queue_count(dqm, qpd, q);
	q->gpreempt.mark = c->mark;
	c->on = true;
	return 0;
}

int gp_set_reasons(struct device_queue_manager *dqm, struct qcm_process_device *qpd,
		   struct queue *q, u8 reasons, struct gp_change *c)
{
	u8 before = q->properties.gpreempt;
	int r;

	q->properties.gpreempt = reasons;
	if (!reasons == !before)
		return 0;
	if (reasons) {
		r = gp_off(dqm, qpd, q, c);
		if (r)
			q->properties.gpreempt = before;
		else
			gp_note_off(q, c);
		return r;
	}
	gp_note_on(q);
	return gp_on(dqm, qpd, q, c);
}

/* ---- the hardware ---- */

/* -EAGAIN: somebody does not yield. */
static int gp_wait_for_fence(struct device_queue_manager *dqm)
{
	struct mqd_manager *mqd_mgr = dqm->mqd_mgrs[KFD_MQD_TYPE_HIQ];
	int r;

	*dqm->fence_addr = KFD_FENCE_INIT;
	pm_send_query_status(&dqm->packet_mgr, dqm->fence_gpu_addr, KFD_FENCE_COMPLETED);
	r = amdkfd_fence_wait_timeout(dqm, KFD_FENCE_COMPLETED, queue_preemption_timeout_ms);
	if (r) {
		kfd_hws_hang(dqm);
		return r;
	}
	/* Which queue it is can be told, by who is still there, only once all others are off. */
	if (mqd_mgr->check_preemption_failed(mqd_mgr, dqm->packet_mgr.priv_queue->queue->mqd))
		return -EAGAIN;
	return 0;
}

static int gp_send_doorbells(struct packet_manager *pm, const u32 *doorbells, unsigned int n)
{
	struct pm4_mes_unmap_queues *packet;
	int r;

	mutex_lock(&pm->lock);
	r = kq_acquire_packet_buffer(pm->priv_queue, sizeof(*packet) / sizeof(u32),
				     (unsigned int **)&packet);
	if (r)
		goto out;
	memset(packet, 0, sizeof(*packet));
	packet->header.u32All = pm_build_pm4_header(IT_UNMAP_QUEUES, sizeof(*packet));
	packet->bitfields2.action = action__mes_unmap_queues__preempt_queues;
	packet->bitfields2.queue_sel =
		queue_sel__mes_unmap_queues__perform_request_on_specified_queues;
	packet->bitfields2.engine_sel = engine_sel__mes_unmap_queues__compute;
	packet->bitfields2.num_queues = n;
	packet->bitfields3b.doorbell_offset0 = doorbells[0];
	packet->bitfields4.doorbell_offset1 = doorbells[1];
	packet->bitfields5.doorbell_offset2 = doorbells[2];
	packet->bitfields6.doorbell_offset3 = doorbells[3];
	r = kq_submit_packet(pm->priv_queue);
out:
	mutex_unlock(&pm->lock);
	return r;
}

struct gp_unmaps {
	struct packet_manager *pm;
	bool sent;
	u32 doorbells[GP_DOORBELLS];
	unsigned int n_doorbells;
};

static int gp_unmap_doorbells(struct gp_unmaps *u)
{
	int r;

	if (!u->n_doorbells)
		return 0;
	r = gp_send_doorbells(u->pm, u->doorbells, u->n_doorbells);
	memset(u->doorbells, 0, sizeof(u->doorbells));
	u->n_doorbells = 0;
	u->sent = true;
	return r;
}

static int gp_unmap_process(struct gp_unmaps *u, u32 pasid)
{
	u->sent = true;
	return pm_send_unmap_queue(u->pm, KFD_UNMAP_QUEUES_FILTER_BY_PASID, pasid, false);
}

/* By process where nothing of it is left on the run list, else queue by queue. */
static int gp_unmap_of(struct gp_unmaps *u, struct qcm_process_device *qpd, u64 mark)
{
	bool marked = false, active = false;
	struct queue *q;
	int r;

	list_for_each_entry(q, &qpd->queues_list, list) {
		marked |= q->gpreempt.mark == mark;
		active |= q->properties.is_active;
	}
	if (!marked)
		return 0;
	if (!active)
		return gp_unmap_process(u, qpd->pqm->process->pasid);
	list_for_each_entry(q, &qpd->queues_list, list) {
		if (q->gpreempt.mark != mark)
			continue;
		u->doorbells[u->n_doorbells++] = q->properties.doorbell_off;
		if (u->n_doorbells < GP_DOORBELLS)
			continue;
		r = gp_unmap_doorbells(u);
		if (r)
			return r;
	}
	return 0;
}

/* A list that is not over-subscribed has too few processes and queues to fill the ring. */
static int gp_send_unmaps(struct device_queue_manager *dqm, u64 mark)
{
	struct gp_unmaps u = { .pm = &dqm->packet_mgr };
	struct device_process_node *cur;
	int r;

	list_for_each_entry(cur, &dqm->queues, list) {
		r = gp_unmap_of(&u, cur->qpd, mark);
		if (r)
			return r;
	}
	r = gp_unmap_doorbells(&u);
	if (r || !u.sent)
		return r;
	return gp_wait_for_fence(dqm);
}

/* The run list stays as it is: those who left are not looked for in it again. */
static int gp_unmap_victims(struct device_queue_manager *dqm, const struct gp_change *c)
{
	bool graced = c->grace != USE_DEFAULT_GRACE_PERIOD;
	int r;

	if (!dqm->sched_running || !dqm->active_runlist)
		return 0;
	if (!down_read_trylock(&dqm->dev->adev->reset_domain->sem))
		return -EIO;
	r = graced ? pm_update_grace_period(&dqm->packet_mgr, c->grace) : 0;
	if (!r)
		r = gp_send_unmaps(dqm, c->mark);
	if (graced && pm_update_grace_period(&dqm->packet_mgr, USE_DEFAULT_GRACE_PERIOD))
		dev_err(dqm->dev->adev->dev, "gpreempt: the grace period could not be reset\n");
	up_read(&dqm->dev->adev->reset_domain->sem);
	return r;
}

static bool gp_is_sdma(const struct queue *q)
{
	return q->properties.type != KFD_QUEUE_TYPE_COMPUTE;
}

/* By doorbell the packet takes compute queues: of which engine another is it cannot say. */
static bool gp_needs_sdma_doorbell(struct device_queue_manager *dqm, u64 mark)
{
	struct device_process_node *cur;
	struct queue *q;

	list_for_each_entry(cur, &dqm->queues, list) {
		bool sdma = false, active = false;

		list_for_each_entry(q, &cur->qpd->queues_list, list) {
			sdma |= q->gpreempt.mark == mark && gp_is_sdma(q);
			active |= q->properties.is_active;
		}
		if (sdma && active)
			return true;
	}
	return false;
}

/*
 * Firmware that goes round a chained list would bring them back. What it does about global wave
 * sync and about packets of older chips was not looked into.
 */
static bool gp_can_take_victims_only(struct device_queue_manager *dqm, const struct gp_change *c)
{
	return c->victims_wanted && !c->on && dqm->active_runlist &&
	       !dqm->packet_mgr.is_over_subscription && !dqm->gws_queue_count &&
	       KFD_GC_VERSION(dqm->dev) >= IP_VERSION(9, 0, 1) &&
	       !gp_needs_sdma_doorbell(dqm, c->mark);
}

static void gp_note_latency(struct device_queue_manager *dqm, const struct gp_change *c)
{
	u64 ns = ktime_get_ns() - c->began_ns;
	struct device_process_node *cur;
	struct queue *q;

	list_for_each_entry(cur, &dqm->queues, list) {
		list_for_each_entry(q, &cur->qpd->queues_list, list) {
			if (q->gpreempt.mark != c->mark || !q->gpreempt.since_ns)
				continue;
			q->gpreempt.last_latency_ns = ns;
			q->gpreempt.max_latency_ns = max(q->gpreempt.max_latency_ns, ns);
		}
	}
}

static unsigned int gp_count_reset(struct device_queue_manager *dqm)
{
	struct device_process_node *cur;
	unsigned int n = 0;

	list_for_each_entry(cur, &dqm->queues, list)
		n += qpd_to_pdd(cur->qpd)->has_reset_queue;
	return n;
}

/* Where something goes wrong half-way the driver's own way puts it right. */
static int gp_ask_hws(struct device_queue_manager *dqm, struct gp_change *c)
{
	int r;

	if (gp_can_take_victims_only(dqm, c)) {
		c->victims = true;
		r = gp_unmap_victims(dqm, c);
		if (!r || r == -ETIME || r == -EIO)
			return r;
		c->victims = false;
	}
	c->cycled = true;
	return execute_queues_cpsch(dqm, KFD_UNMAP_QUEUES_FILTER_DYNAMIC_QUEUES, 0, c->grace);
}

/* What could not be put on the last time; whoever held it may be gone. */
static int gp_try_again(struct device_queue_manager *dqm, struct gp_change *c)
{
	struct device_process_node *cur;
	struct queue *q;
	int r, first = 0;

	dqm->gpreempt->retry = false;
	list_for_each_entry(cur, &dqm->queues, list) {
		list_for_each_entry(q, &cur->qpd->queues_list, list) {
			if (!q->gpreempt.retry)
				continue;
			r = gp_on(dqm, cur->qpd, q, c);
			first = first ?: r;
		}
	}
	return first;
}

/* A GPU that hangs is reset, and nothing is left to be put on; else the driver is asked again. */
static void gp_plan_retry(struct kfd_gpreempt_node *n, int error)
{
	n->retry |= error && error != -ETIME;
	if (n->retry)
		gp_expire_at(n, ktime_get_ns() + GP_RETRY_NS);
}

int gp_change_commit(struct device_queue_manager *dqm, struct gp_change *c)
{
	unsigned int n_reset = gp_count_reset(dqm);
	u64 began = ktime_get_ns();
	int r = 0;

	if (!c->off && !c->on && !dqm->gpreempt->retry)
		return 0;
	if (dqm->gpreempt->retry)
		r = gp_try_again(dqm, c);
	if (gp_is_mes(dqm))
		c->victims = true;
	else
		r = gp_ask_hws(dqm, c);
	c->cycle_ns += ktime_get_ns() - began;
	c->queue_reset = gp_count_reset(dqm) != n_reset;
	trace_kfd_gpreempt_change(dqm->dev->id, c->off, c->on, c->victims, c->cycle_ns, r);
	gp_note_latency(dqm, c);
	gp_plan_retry(dqm->gpreempt, r);
	return r;
}

/* ---- what amdkfd asks ---- */

static bool gp_hold_counts(const struct kfd_gpreempt_hold *h)
{
	return h->owner && ktime_get_ns() < h->until_ns;
}

/* With its job, or until there is a slot for it. */
static bool gp_scheduler_wants(struct kfd_gpreempt_node *n, struct qcm_process_device *qpd,
			       struct queue *q)
{
	const struct kfd_gpreempt_hold *h = &qpd_to_pdd(qpd)->gpreempt.scheduler;
	u64 until_ns = gp_hold_counts(h) ? h->until_ns : gp_monitor_keeps_waiting(n, qpd);

	if (!n->monitor || !until_ns)
		return false;
	q->gpreempt.scheduler = (struct kfd_gpreempt_hold){ .owner = 1, .until_ns = until_ns };
	gp_expire_at(n, until_ns);
	return true;
}

void kfd_gpreempt_new_queue(struct qcm_process_device *qpd, struct queue *q)
{
	const struct kfd_gpreempt_process_state *p = &qpd_to_pdd(qpd)->gpreempt;
	struct kfd_gpreempt_node *n = qpd->dqm->gpreempt;
	u8 reasons = 0;

	memset(&q->gpreempt, 0, sizeof(q->gpreempt));
	if (!n)
		return;
	if (gp_hold_counts(&p->holder) && gp_owner_is_alive(p->holder.owner)) {
		q->gpreempt.holder = p->holder;
		reasons |= KFD_GPREEMPT_BY_HOLDER;
		gp_expire_at(n, p->holder.until_ns);
	}
	if (gp_hold_counts(&p->itself)) {
		q->gpreempt.itself = p->itself;
		reasons |= KFD_GPREEMPT_BY_ITSELF;
		gp_expire_at(n, p->itself.until_ns);
	}
	if (gp_is_stopped(n))
		reasons |= KFD_GPREEMPT_BY_STOP;
	if (gp_scheduler_wants(n, qpd, q))
		reasons |= KFD_GPREEMPT_BY_SCHEDULER;
	gp_monitor_kick(n);
	if (reasons)
		q->gpreempt.since_ns = ktime_get_ns();
	q->properties.gpreempt = reasons;
}

void kfd_gpreempt_free_queue(struct queue *q)
{
	if (q) /* one that was never made is freed, too */
		put_pid(q->gpreempt.by);
}

/* ---- looking ---- */

void gp_fill_hqd(struct device_queue_manager *dqm, struct kfd_gpreempt_hqd *ret)
{
	struct device_process_node *cur;
	struct queue *q;

	ret->total = get_cp_queues_num(dqm);
	ret->active_compute = dqm->active_cp_queue_count;
	ret->active = dqm->active_queue_count;
	ret->active_sum = 0;
	ret->queues = dqm->total_queue_count;
	ret->processes = dqm->processes_count;
	ret->gws = dqm->gws_queue_count;
	ret->held = 0;
	list_for_each_entry(cur, &dqm->queues, list) {
		list_for_each_entry(q, &cur->qpd->queues_list, list) {
			ret->active_sum += q->properties.is_active;
			ret->held += !!q->properties.gpreempt;
		}
	}
	ret->flags = (gp_is_mes(dqm) ? KFD_GPREEMPT_HQD_MES : 0) |
		     (dqm->sched_halt ? KFD_GPREEMPT_HQD_HALTED : 0) |
		     (dqm->is_hws_hang ? KFD_GPREEMPT_HQD_HANG : 0) |
		     (gp_is_stopped(dqm->gpreempt) ? KFD_GPREEMPT_HQD_STOPPED : 0);
	if (!gp_is_mes(dqm) && dqm->packet_mgr.is_over_subscription)
		ret->flags |= KFD_GPREEMPT_HQD_OVERSUBSCRIBED;
}

static u32 gp_queue_flags(const struct queue *q, u64 owner)
{
	const struct queue_properties *p = &q->properties;
	const struct kfd_gpreempt_queue_state *s = &q->gpreempt;
	bool mine = ((p->gpreempt & KFD_GPREEMPT_BY_HOLDER) && s->holder.owner == owner) ||
		    ((p->gpreempt & KFD_GPREEMPT_BY_ITSELF) && s->itself.owner == owner);

	return (p->is_active ? KFD_GPREEMPT_QUEUE_ACTIVE : 0) |
	       (p->is_evicted ? KFD_GPREEMPT_QUEUE_EVICTED : 0) |
	       (p->is_suspended ? KFD_GPREEMPT_QUEUE_SUSPENDED : 0) |
	       (p->gpreempt & KFD_GPREEMPT_BY_HOLDER ? KFD_GPREEMPT_QUEUE_HELD : 0) |
	       (p->gpreempt & KFD_GPREEMPT_BY_ITSELF ? KFD_GPREEMPT_QUEUE_HELD_SELF : 0) |
	       (p->gpreempt & KFD_GPREEMPT_BY_STOP ? KFD_GPREEMPT_QUEUE_STOPPED : 0) |
	       (p->gpreempt & KFD_GPREEMPT_BY_SCHEDULER ? KFD_GPREEMPT_QUEUE_SCHEDULED : 0) |
	       (p->is_gws ? KFD_GPREEMPT_QUEUE_GWS : 0) | (mine ? KFD_GPREEMPT_QUEUE_MINE : 0);
}

/* Whoever must end for it to run; of several one, and the next when that one has ended. */
static pid_t gp_preempted_by(const struct queue *q)
{
	const struct kfd_gpreempt_node *n = q->device->dqm->gpreempt;

	if (q->properties.gpreempt & KFD_GPREEMPT_BY_HOLDER)
		return gp_owner_pid(q->gpreempt.holder.owner);
	if (n && gp_is_stopped(n))
		return gp_owner_pid(list_first_entry(&n->stops, struct gp_stop, link)->owner);
	return pid_vnr(q->gpreempt.by);
}

static void gp_fill_queue(struct queue *q, u64 owner, struct kfd_gpreempt_queue *ret)
{
	struct queue_properties *p = &q->properties;
	const struct kfd_gpreempt_queue_state *s = &q->gpreempt;

	*ret = (struct kfd_gpreempt_queue){
		.ring_base = p->queue_address,
		.write_ptr = (u64)(uintptr_t)p->write_ptr,
		.read_ptr = (u64)(uintptr_t)p->read_ptr,
		.cwsr_base = p->ctx_save_restore_area_address,
		.queue_id = p->queue_id,
		.gpu_id = q->device->id,
		.ring_bytes = p->queue_size,
		.type = set_queue_type_for_user(p),
		.cwsr_bytes = p->ctx_save_restore_area_size,
		.priority = p->priority,
		.percent = p->queue_percent,
		.flags = gp_queue_flags(q, owner),
		.preemptions = s->preemptions,
		.preempted_by = gp_preempted_by(q),
		.held_ns = s->held_ns + (s->since_ns ? ktime_get_ns() - s->since_ns : 0),
		.last_latency_ns = s->last_latency_ns,
		.max_latency_ns = s->max_latency_ns,
	};
}

void gp_fill_queues(struct device_queue_manager *dqm, struct kfd_process *p, u64 owner,
		    struct kfd_gpreempt_queue *ret, u32 max, u32 *n)
{
	struct kfd_process_device *pdd = kfd_get_process_device_data(dqm->dev, p);
	struct queue *q;

	if (!pdd)
		return;
	list_for_each_entry(q, &pdd->qpd.queues_list, list) {
		if (*n < max)
			gp_fill_queue(q, owner, &ret[*n]);
		(*n)++;
	}
}
