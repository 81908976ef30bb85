/* SPDX-License-Identifier: MIT */
/* Whose a queue is and how long, holds that end by themselves, the brake, and making it true. */
#include <errno.h>

#include "gpu/model/driver.h"

/*
 * ---- off the run list and on again ----
 *
 * A change first sets what is wanted of each queue, and then the hardware is asked once on each
 * GPU, on all of them at the same time.
 */

void model_ext_changes(struct model *m, struct ext_change changes[MODEL_MAX_GPUS], pid_t by)
{
	uint64_t mark = ++m->ext.next_mark;

	for (uint32_t i = 0; i < m->config.n_gpus; i++) {
		changes[i] = (struct ext_change){
			.gpu = &m->gpus[i],
			.mark = mark,
			.began_ns = model_now_ns(m),
			.grace = KFD_GRACE_KEEP_DEFAULT,
			.by = by,
		};
	}
}

/* ---- one queue ---- */

static void take_off(struct model_queue *q, struct ext_change *c)
{
	if (q->is_active) {
		q->is_active = false;
		q->ext.mark = c->mark;
		c->off = true;
	}
	q->ext.since_ns = c->began_ns;
	q->ext.preemptions++;
	q->ext.by = c->by;
}

static void put_on(struct model_queue *q, struct ext_change *c)
{
	q->ext.held_ns += model_now_ns(q->gpu->m) - q->ext.since_ns;
	q->ext.since_ns = 0;
	if (q->is_active || !model_queue_wants_run(q))
		return;
	q->is_active = true;
	q->ext.mark = c->mark;
	c->on = true;
}

/* What is wanted of a queue; model_ext_commit() makes it true. */
static void set_reasons(struct model_queue *q, uint32_t reasons, struct ext_change *c)
{
	uint32_t before = q->ext.reasons;

	q->ext.reasons = reasons;
	if (!reasons == !before)
		return;
	if (reasons)
		take_off(q, c);
	else
		put_on(q, c);
}

/* ---- the hardware ---- */

static void note_latency(const struct ext_change *c)
{
	uint64_t ns = model_now_ns(c->gpu->m) - c->began_ns;

	for (struct model_queue *q = NULL; (q = model_next_on(c->gpu, q));) {
		if (q->ext.mark != c->mark || !q->ext.since_ns)
			continue;
		q->ext.last_latency_ns = ns;
		q->ext.max_latency_ns = MAX(q->ext.max_latency_ns, ns);
	}
}

/* Once nothing that is to leave is on the hardware any more. */
static int bring_back(struct ext_change *c)
{
	if (model_is_mes(c->gpu))
		return model_mes_sync(c->gpu);
	return c->victims ? 0 : model_map_queues(c->gpu);
}

static void finish(struct ext_change *c, int r)
{
	c->result = r < 0 ? r : bring_back(c);
	c->cycle_ns = model_now_ns(c->gpu->m) - c->asked_ns;
	note_latency(c);
}

static void over(struct hw_unmap_part *part)
{
	struct ext_change *c = part->user;
	int r = part->result;

	if (part->some)
		r = model_unmap_end(c->gpu, &part->op, r);
	else
		r = model_unmap_all_end(c->gpu, &part->op, r);
	finish(c, r);
}

/* MES never touches others. */
static bool takes_victims_only(const struct ext_change *c)
{
	struct gpu_counts n = model_gpu_count(c->gpu);

	if (model_is_mes(c->gpu))
		return true;
	return c->victims_wanted && !c->on && !c->gpu->oversubscribed && !n.gws;
}

/* Those of the change that are on the hardware and may not be. */
static int choose_leaving(struct ext_change *c, struct hw_unmap_part *part)
{
	c->leaving = calloc(model_gpu_count(c->gpu).queues + 1, sizeof(struct hw_queue *));
	if (!c->leaving)
		return -ENOMEM;
	for (struct model_queue *q = NULL; (q = model_next_on(c->gpu, q));)
		if (q->ext.mark == c->mark && !q->is_active && hw_see(q->hw)->mapped)
			c->leaving[part->n_some++] = q->hw;
	part->some = c->leaving;
	part->one_by_one = model_is_mes(c->gpu);
	return 0;
}

/* Whether there is something to wait for; else it is done. */
static bool ask(struct ext_change *c, struct hw_unmap_part *part)
{
	struct model_gpu *gpu = c->gpu;
	int r = gpu->reset_pending ? -EIO : 0;

	*part = (struct hw_unmap_part){ .gpu = gpu->hw, .over = over, .user = c };
	c->asked_ns = model_now_ns(gpu->m);
	c->victims = takes_victims_only(c);
	c->cycled = !c->victims;
	if (r == 0 && c->victims)
		r = choose_leaving(c, part);
	if (r < 0 || (c->victims ? !part->n_some : !gpu->active_runlist)) {
		finish(c, r);
		return false;
	}
	part->op = model_unmap_begin(gpu, c->grace);
	return true;
}

void model_ext_commit(struct model *m, struct ext_change changes[MODEL_MAX_GPUS])
{
	struct hw_unmap_part parts[MODEL_MAX_GPUS];
	size_t n = 0;

	for (uint32_t i = 0; i < m->config.n_gpus; i++)
		if (changes[i].off || changes[i].on)
			n += ask(&changes[i], &parts[n]);
	m->ext.waits++;
	hw_unmap_parts(parts, n);
	m->ext.waits--;
	for (uint32_t i = 0; i < m->config.n_gpus; i++)
		free(changes[i].leaving);
}

/* ---- a batch on one GPU ---- */

/* Of a queue, or of a process's queues that do not exist yet. */
static int set_hold(const struct ext_batch *b, struct ext_hold *h, bool map)
{
	if (h->owner && h->owner != b->owner)
		return -EBUSY;
	*h = (struct ext_hold){ 0 };
	if (!map)
		*h = (struct ext_hold){ .owner = b->owner, .until_ns = b->until_ns };
	return 0;
}

static int set_queue(const struct ext_batch *b, struct model_queue *q, bool map,
		     struct ext_change *c)
{
	uint32_t others = q->ext.reasons & ~EXT_BY(b->holder);
	struct ext_hold *h = &q->ext.holds[b->holder];
	int r = map && !h->owner ? -EALREADY : set_hold(b, h, map);

	if (r == 0)
		set_reasons(q, map ? others : others | EXT_BY(b->holder), c);
	return r;
}

static void note_result(struct ext_item *item, int r)
{
	item->matched = true;
	item->e.result = item->e.result ? item->e.result : r;
}

static void apply_item(const struct ext_batch *b, struct ext_item *item, struct ext_change *c)
{
	struct model_pdd *pdd = &item->process->pdds[c->gpu->index];
	bool all = item->e.queue_id == KFD_GPREEMPT_ALL_QUEUES;
	int r = all ? set_hold(b, &pdd->holds[b->holder], item->map) : 0;

	if (all)
		note_result(item, r);
	if (r < 0)
		return;
	for (struct model_queue *q = item->process->queues; q; q = q->next) {
		if (q->pdd != pdd || (!all && q->id != item->e.queue_id))
			continue;
		r = set_queue(b, q, item->map, c);
		note_result(item, all && r == -EALREADY ? 0 : r);
		item->e.queues += q->ext.mark == c->mark;
	}
}

void model_ext_apply(struct ext_batch *b, struct ext_change *c)
{
	for (uint32_t i = 0; i < b->n; i++) {
		struct ext_item *item = &b->items[i];

		if (item->process &&
		    (item->e.gpu_id == KFD_GPREEMPT_ANY_GPU || item->e.gpu_id == c->gpu->id))
			apply_item(b, item, c);
	}
}

/* ---- the end of holds ---- */

/* The reasons that are none any more. */
static uint32_t end_holds(struct ext_hold holds[EXT_N_HOLDERS], uint64_t owner, uint64_t now_ns)
{
	uint32_t ended = 0;

	for (uint32_t i = 0; i < EXT_N_HOLDERS; i++) {
		if (!holds[i].owner ||
		    (owner ? holds[i].owner != owner : now_ns < holds[i].until_ns))
			continue;
		holds[i] = (struct ext_hold){ 0 };
		ended |= EXT_BY(i);
	}
	return ended;
}

static void end_stops(struct model *m, uint64_t owner)
{
	for (struct ext_file *f = m->ext.files; f; f = f->next)
		for (uint32_t i = 0; i < m->config.n_gpus; i++)
			if (owner ? f->id == owner : model_now_ns(m) >= f->stops[i].until_ns)
				f->stops[i] = (struct ext_stop){ 0 };
}

static uint64_t next_of(const struct ext_hold holds[EXT_N_HOLDERS])
{
	uint64_t next = TIMELINE_NEVER;

	for (uint32_t i = 0; i < EXT_N_HOLDERS; i++)
		next = holds[i].owner ? MIN(next, holds[i].until_ns) : next;
	return next;
}

/* The next instant at which something is over. */
static uint64_t next_end_ns(const struct model *m)
{
	uint64_t next = TIMELINE_NEVER;

	for (const struct ext_file *f = m->ext.files; f; f = f->next)
		for (uint32_t i = 0; i < m->config.n_gpus; i++)
			if (f->stops[i].count)
				next = MIN(next, f->stops[i].until_ns);
	for (const struct model_kproc *k = m->kprocs; k; k = k->next) {
		for (uint32_t i = 0; i < m->config.n_gpus; i++)
			next = MIN(next, next_of(k->pdds[i].holds));
		for (const struct model_queue *q = k->queues; q; q = q->next)
			next = MIN(next, next_of(q->ext.holds));
	}
	return next;
}

static void run_expire(struct event *e)
{
	struct model *m = container_of(e, struct model, ext.expire);

	m->ext.expired = true;
	model_ext_expire(m);
}

void model_ext_end_holds(struct model *m, uint64_t owner)
{
	struct ext_change changes[MODEL_MAX_GPUS];
	uint64_t now_ns = model_now_ns(m);

	model_ext_changes(m, changes, 0);
	end_stops(m, owner);
	for (struct model_kproc *k = m->kprocs; k; k = k->next) {
		for (uint32_t i = 0; i < m->config.n_gpus; i++)
			end_holds(k->pdds[i].holds, owner, now_ns);
		for (struct model_queue *q = k->queues; q; q = q->next) {
			uint32_t reasons = q->ext.reasons;

			reasons &= ~end_holds(q->ext.holds, owner, now_ns);
			if (!model_ext_is_stopped(q->gpu))
				reasons &= ~EXT_BY_STOP;
			set_reasons(q, reasons, &changes[q->gpu->index]);
		}
	}
	model_ext_commit(m, changes);
}

void model_ext_expire(struct model *m)
{
	if (!m->config.ext || m->ext.waits)
		return;
	while (m->ext.expired) {
		m->ext.expired = false;
		model_ext_end_holds(m, 0);
	}
	m->ext.expire.run = run_expire;
	/* A model that has no memory for the event ends holds at the next call. */
	m->ext.expired = timeline_set(&m->time, &m->ext.expire, next_end_ns(m)) < 0;
}

/* ---- the brake ---- */

bool model_ext_is_stopped(const struct model_gpu *gpu)
{
	for (const struct ext_file *f = gpu->m->ext.files; f; f = f->next)
		if (f->stops[gpu->index].count)
			return true;
	return false;
}

static int set_stopped(struct model_gpu *gpu, bool stopped, pid_t by)
{
	struct ext_change changes[MODEL_MAX_GPUS];
	struct ext_change *c = &changes[gpu->index];

	model_ext_changes(gpu->m, changes, by);
	for (struct model_queue *q = NULL; (q = model_next_on(gpu, q));) {
		uint32_t others = q->ext.reasons & ~EXT_BY_STOP;

		set_reasons(q, others | (stopped ? EXT_BY_STOP : 0), c);
	}
	model_ext_commit(gpu->m, changes);
	return c->result;
}

int model_ext_stop(struct ext_call *c, void *data)
{
	bool start = c->nr == _IOC_NR(KFD_GPREEMPT_START_SCHED);
	struct kfd_gpreempt_stop *a = data;
	uint64_t hold_ms = a->hold_ms ? a->hold_ms : KFD_GPREEMPT_MAX_HOLD_MS;
	struct model_gpu *gpu;
	struct ext_stop *stop;
	bool stopped;

	if (!c->caller->admin)
		return -EPERM;
	if (hold_ms > KFD_GPREEMPT_MAX_HOLD_MS || (start && a->hold_ms) || a->pad)
		return -EINVAL;
	gpu = model_gpu_by_id(c->m, a->gpu_id);
	if (!gpu)
		return -ENODEV;
	stopped = model_ext_is_stopped(gpu);
	stop = &c->file->stops[gpu->index];
	if (start && !stop->count)
		return -EALREADY;
	if (start) {
		stop->count--;
	} else {
		stop->count++;
		stop->until_ns = c->began_ns + hold_ms * NSEC_PER_MSEC;
	}
	a->stops = stop->count;
	if (model_ext_is_stopped(gpu) == stopped)
		return 0;
	return set_stopped(gpu, !start, start ? 0 : c->caller->pid);
}

/* ---- what the driver asks ---- */

void model_ext_new_queue(struct model_queue *q)
{
	for (uint32_t i = 0; i < EXT_N_HOLDERS; i++) {
		q->ext.holds[i] = q->pdd->holds[i];
		if (q->ext.holds[i].owner)
			q->ext.reasons |= EXT_BY(i);
	}
	if (model_ext_is_stopped(q->gpu))
		q->ext.reasons |= EXT_BY_STOP;
	if (q->ext.reasons)
		q->ext.since_ns = model_now_ns(q->gpu->m);
}
