/* SPDX-License-Identifier: MIT */
/*
 * Queues off the run list and on again: a change first sets what is wanted of each queue, and then
 * the hardware is asked once on each GPU, on all of them at the same time.
 */
#include <errno.h>
#include <string.h>

#include "gpu/model/driver.h"

void model_ext_changes(struct model *m, struct ext_change changes[MODEL_MAX_GPUS], pid_t by)
{
	uint64_t mark = ++m->ext.next_mark;

	memset(changes, 0, MODEL_MAX_GPUS * sizeof(changes[0]));
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

void model_ext_set_reasons(struct model_queue *q, uint32_t reasons, struct ext_change *c)
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
	if (c->victims && !model_is_mes(c->gpu))
		return 0;
	return model_is_mes(c->gpu) ? model_mes_sync(c->gpu) : model_map_queues(c->gpu);
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

	if (!part->some)
		r = model_unmap_all_end(c->gpu, &part->op, r);
	else if (!model_is_mes(c->gpu))
		r = model_unmap_end(c->gpu, &part->op, r);
	else if (model_unmap_end(c->gpu, &part->op, r < 0 ? -ETIME : 0) < 0)
		r = -ETIME;
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
