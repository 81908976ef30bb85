/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * A batch: some queues off, others on, of any processes on any GPUs. What concerns one GPU is done
 * at once and costs one cycle of its run list; the GPUs are independent of each other.
 */
#include <linux/ktime.h>
#include <linux/pid.h>
#include <linux/slab.h>

#include "kfd_device_queue_manager.h"
#include "kfd_gpreempt_internal.h"
#include "kfd_priv.h"

struct gp_part {
	struct work_struct work;
	struct gp_batch *batch;
	struct kfd_gpreempt_node *n;
	bool later;
};

struct gp_batch *gp_batch_new(u32 n)
{
	struct gp_batch *b = kvzalloc(struct_size(b, items, n), GFP_KERNEL);

	if (!b)
		return NULL;
	b->n = n;
	spin_lock_init(&b->lock);
	init_completion(&b->done);
	INIT_LIST_HEAD(&b->link);
	return b;
}

static void forget_processes(struct gp_batch *b)
{
	u32 i;

	for (i = 0; i < b->n; i++) {
		if (b->items[i].process)
			kfd_unref_process(b->items[i].process);
		b->items[i].process = NULL;
	}
}

void gp_batch_free(struct gp_batch *b)
{
	if (!b)
		return;
	forget_processes(b);
	put_pid(b->by);
	kvfree(b->parts);
	kvfree(b);
}

u32 gp_batch_count_done(const struct gp_batch *b)
{
	u32 i, done = 0;

	for (i = 0; i < b->n; i++)
		done += !b->items[i].result;
	return done;
}

/* ---- one GPU ---- */

static bool is_for(const struct gp_item *item, const struct kfd_node *node)
{
	return item->process && (item->gpu_id == KFD_GPREEMPT_ANY_GPU || item->gpu_id == node->id);
}

static bool is_one_of(const struct gp_item *item, const struct queue *q)
{
	return item->queue_id == KFD_GPREEMPT_ALL_QUEUES ||
	       item->queue_id == q->properties.queue_id;
}

static struct kfd_gpreempt_hold *hold_of(const struct gp_batch *b, struct queue *q)
{
	return b->reason == KFD_GPREEMPT_BY_HOLDER ? &q->gpreempt.holder : &q->gpreempt.itself;
}

/* Somebody else's that counts. */
static bool is_taken(const struct gp_batch *b, const struct kfd_gpreempt_hold *h)
{
	return h->owner && h->owner != b->owner;
}

static int unmap_queue(struct gp_batch *b, struct device_queue_manager *dqm,
		       struct qcm_process_device *qpd, struct queue *q, struct gp_change *c)
{
	struct kfd_gpreempt_hold *h = hold_of(b, q);
	int r;

	if (is_taken(b, h))
		return -EBUSY;
	r = gp_set_reasons(dqm, qpd, q, q->properties.gpreempt | b->reason, c);
	if (r)
		return r;
	*h = (struct kfd_gpreempt_hold){ .owner = b->owner, .until_ns = b->until_ns };
	gp_expire_at(dqm->gpreempt, b->until_ns);
	return 0;
}

static int map_queue(struct gp_batch *b, struct device_queue_manager *dqm,
		     struct qcm_process_device *qpd, struct queue *q, struct gp_change *c)
{
	struct kfd_gpreempt_hold *h = hold_of(b, q);

	if (!h->owner)
		return -EALREADY;
	if (is_taken(b, h))
		return -EBUSY;
	*h = (struct kfd_gpreempt_hold){ 0 };
	return gp_set_reasons(dqm, qpd, q, q->properties.gpreempt & ~b->reason, c);
}

/* Also of queues that do not exist yet. */
static int hold_process(struct gp_batch *b, struct kfd_process_device *pdd, bool map)
{
	struct kfd_gpreempt_hold *h = b->reason == KFD_GPREEMPT_BY_HOLDER ?
					      &pdd->gpreempt.holder : &pdd->gpreempt.itself;
	bool theirs = is_taken(b, h) && ktime_get_ns() < h->until_ns &&
		      (b->reason == KFD_GPREEMPT_BY_ITSELF || gp_owner_is_alive(h->owner));

	if (theirs)
		return -EBUSY;
	*h = map ? (struct kfd_gpreempt_hold){ 0 } :
		   (struct kfd_gpreempt_hold){ .owner = b->owner, .until_ns = b->until_ns };
	return 0;
}

static void note_result(struct gp_batch *b, struct gp_item *item, bool matched, int r, u32 queues)
{
	spin_lock(&b->lock);
	item->matched |= matched;
	item->queues += queues;
	item->result = item->result ?: r;
	spin_unlock(&b->lock);
}

static void do_item(struct gp_batch *b, struct gp_item *item, struct device_queue_manager *dqm,
		    struct gp_change *c)
{
	struct kfd_process_device *pdd = kfd_get_process_device_data(dqm->dev, item->process);
	bool all = item->queue_id == KFD_GPREEMPT_ALL_QUEUES;
	u32 changed = 0;
	struct queue *q;
	int r = 0, one;

	if (!pdd)
		return;
	pdd->gpreempt.held_itself |= b->reason == KFD_GPREEMPT_BY_ITSELF;
	if (all)
		r = hold_process(b, pdd, item->map);
	if (r) {
		note_result(b, item, true, r, 0);
		return;
	}
	list_for_each_entry(q, &pdd->qpd.queues_list, list) {
		if (!is_one_of(item, q))
			continue;
		one = item->map ? map_queue(b, dqm, &pdd->qpd, q, c) :
				  unmap_queue(b, dqm, &pdd->qpd, q, c);
		if (all && one == -EALREADY)
			one = 0;
		changed += q->gpreempt.mark == c->mark;
		note_result(b, item, true, one, 0);
	}
	note_result(b, item, all, 0, changed);
}

/* After a failed cycle: everything that was to change there, or who lost a queue in a reset. */
static void note_failure(struct gp_batch *b, struct device_queue_manager *dqm,
			 const struct gp_change *c, int error)
{
	struct kfd_process_device *pdd;
	struct queue *q;
	u32 i;

	for (i = 0; i < b->n; i++) {
		struct gp_item *item = &b->items[i];

		if (!is_for(item, dqm->dev))
			continue;
		pdd = kfd_get_process_device_data(dqm->dev, item->process);
		if (!pdd || !(error || (c->queue_reset && pdd->has_reset_queue)))
			continue;
		list_for_each_entry(q, &pdd->qpd.queues_list, list) {
			if (q->gpreempt.mark == c->mark && is_one_of(item, q))
				note_result(b, item, true, error ?: -EIO, 0);
		}
	}
}

static void note_cycle(struct gp_batch *b, const struct gp_change *c)
{
	spin_lock(&b->lock);
	b->cycles += c->cycled;
	b->victims += c->victims;
	b->cycle_ns = max(b->cycle_ns, c->cycle_ns);
	spin_unlock(&b->lock);
}

static void do_node(struct gp_batch *b, struct kfd_gpreempt_node *n)
{
	struct device_queue_manager *dqm = gp_dqm(n);
	struct gp_change c;
	u32 i;
	int r;

	gp_change_begin(&c, b->began_ns, b->grace, b->by);
	c.victims_wanted = b->victims_wanted;
	dqm_lock(dqm);
	for (i = 0; i < b->n; i++) {
		if (is_for(&b->items[i], dqm->dev))
			do_item(b, &b->items[i], dqm, &c);
	}
	r = gp_change_commit(dqm, &c);
	note_failure(b, dqm, &c, r);
	dqm_unlock(dqm);
	note_cycle(b, &c);
}

/* ---- all of them ---- */

static void finish(struct gp_batch *b)
{
	u32 i;

	for (i = 0; i < b->n; i++) {
		if (b->items[i].process && !b->items[i].matched && !b->items[i].result)
			b->items[i].result = -ENOENT;
	}
	b->done_ns = ktime_get_ns();
	/* A process that dies keeps its queues while there are references: a ticket has none. */
	forget_processes(b);
	if (b->tell)
		b->tell(b);
	else
		complete(&b->done);
}

/* @b may be gone afterwards. */
static void part_done(struct gp_batch *b)
{
	if (atomic_dec_and_test(&b->parts_left))
		finish(b);
}

static void do_part(struct work_struct *work)
{
	struct gp_part *part = container_of(work, struct gp_part, work);
	struct gp_batch *b = part->batch;

	do_node(b, part->n);
	part_done(b);
}

/* Where no queue exists there is something to note and nothing to wait for. */
static bool has_queues(const struct gp_batch *b, const struct kfd_gpreempt_node *n)
{
	struct kfd_process_device *pdd;
	u32 i;

	for (i = 0; i < b->n; i++) {
		if (!is_for(&b->items[i], n->node))
			continue;
		pdd = kfd_get_process_device_data(n->node, b->items[i].process);
		if (pdd && !list_empty(&pdd->qpd.queues_list))
			return true;
	}
	return false;
}

static bool concerns(const struct gp_batch *b, const struct kfd_gpreempt_node *n)
{
	u32 i;

	for (i = 0; i < b->n; i++) {
		if (is_for(&b->items[i], n->node))
			return true;
	}
	return false;
}

static int make_parts(struct gp_batch *b)
{
	struct kfd_gpreempt_node *n;
	unsigned int count = 0;

	list_for_each_entry(n, &gp_nodes, link)
		count += concerns(b, n);
	if (!count)
		return 0;
	b->parts = kvcalloc(count, sizeof(*b->parts), GFP_KERNEL);
	if (!b->parts)
		return -ENOMEM;
	list_for_each_entry(n, &gp_nodes, link) {
		struct gp_part *part = &b->parts[b->n_parts];

		if (!concerns(b, n))
			continue;
		part->batch = b;
		part->n = n;
		INIT_WORK(&part->work, do_part);
		b->n_parts++;
	}
	return 0;
}

/*
 * A caller that waits does one of the parts itself, most batches have only one, and those that cost
 * nothing; these last: their GPU may be in trouble, which is no reason for others to wait.
 */
static void begin_parts(struct gp_batch *b, bool wait)
{
	struct gp_part *mine = NULL;
	unsigned int i;

	for (i = 0; i < b->n_parts; i++) {
		struct gp_part *part = &b->parts[i];

		part->later = wait && !has_queues(b, part->n);
		if (part->later)
			continue;
		if (wait && !mine)
			mine = part;
		else
			queue_work(gp_workqueue, &part->work);
	}
	if (mine)
		do_part(&mine->work);
	for (i = 0; i < b->n_parts; i++) {
		if (b->parts[i].later)
			do_part(&b->parts[i].work);
	}
}

int gp_batch_run(struct gp_batch *b, bool wait)
{
	int r;

	b->began_ns = ktime_get_ns();
	down_read(&gp_nodes_lock);
	r = make_parts(b);
	if (!r) {
		atomic_set(&b->parts_left, b->n_parts + 1);
		begin_parts(b, wait);
	}
	up_read(&gp_nodes_lock);
	if (r)
		return r;
	part_done(b);
	if (wait)
		wait_for_completion(&b->done);
	return 0;
}
