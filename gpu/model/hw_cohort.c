/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "gpu/model/hw_internal.h"
#include "util/macros.h"

uint64_t hw_cohort_bytes(const struct hw_cohort *c)
{
	uint64_t per_cu = c->packet->q->gpu->chip.cwsr_bytes_per_cu;

	return per_cu * c->count * c->packet->wg_units / HW_CU_UNITS;
}

uint64_t hw_cohort_ran_ns(const struct hw_cohort *c)
{
	uint64_t now = c->packet->q->gpu->time->now_ns;

	return now > c->since_ns ? MIN(now - c->since_ns, c->left_ns) : 0;
}

static void occupy(const struct hw_packet *p, uint32_t xcc, uint32_t count)
{
	struct hw_queue *q = p->q;

	q->gpu->free_room[xcc] -= p->wg_room * count;
	q->gpu->waves += (uint64_t)p->wg_waves * count;
	q->waves[xcc] += p->wg_waves * count;
	q->resident += p->wg_room ? count : 0;
}

static void vacate(const struct hw_packet *p, uint32_t xcc, uint32_t count)
{
	struct hw_queue *q = p->q;

	q->gpu->free_room[xcc] += p->wg_room * count;
	q->gpu->waves -= (uint64_t)p->wg_waves * count;
	q->waves[xcc] -= p->wg_waves * count;
	q->resident -= p->wg_room ? count : 0;
}

/* Even what takes no time ends later than it began. */
static void set_end(struct hw_cohort *c)
{
	uint64_t end_ns = hw_add_sat(c->since_ns, MAX(c->left_ns, 1u));

	timeline_set(c->packet->q->gpu->time, &c->done, end_ns);
}

static void forget(struct hw_cohort *c, struct hw_cohorts *list)
{
	struct hw_packet *p = c->packet;

	timeline_cancel(p->q->gpu->time, &c->done);
	if (p->fresh[c->xcc] == c)
		p->fresh[c->xcc] = NULL;
	TAILQ_REMOVE(list, c, link);
	p->n_cohorts--;
	free(c);
}

static void complete(struct hw_packet *p)
{
	struct hw_queue *q = p->q;
	uint64_t index = p->index;

	if (p->completion_signal) {
		uint64_t va = p->completion_signal + AQL_SIGNAL_VALUE_OFFSET;

		mem_write64(q->config.vm, va, mem_read64(q->config.vm, va) - 1);
	}
	hw_log_done(p);
	q->completed++;
	TAILQ_REMOVE(&q->packets, p, link);
	free(p);
	if (q->on_complete)
		q->on_complete(q->user, index);
}

static void cohort_done(struct event *e)
{
	struct hw_cohort *c = container_of(e, struct hw_cohort, done);
	struct hw_packet *p = c->packet;
	struct hw_queue *q = p->q;

	vacate(p, c->xcc, c->count);
	hw_log_executed(p, c->count, c->left_ns);
	hw_log_finished(p, c->count);
	forget(c, &q->running);
	if (!p->unlaunched && !p->n_cohorts)
		complete(p);
	hw_gpu_kick(q->gpu);
}

/* A cohort with a place on the timeline, not yet in a list. NULL: out of memory. */
static struct hw_cohort *cohort_new(struct hw_packet *p, uint32_t xcc, uint32_t count)
{
	_cleanup_free_ struct hw_cohort *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->packet = p;
	c->xcc = xcc;
	c->count = count;
	c->left_ns = p->wg_ns;
	c->done.run = cohort_done;
	if (timeline_set(p->q->gpu->time, &c->done, TIMELINE_NEVER) < 0)
		return NULL;
	p->n_cohorts++;
	return steal_ptr(&c);
}

bool hw_launch(struct hw_packet *p, uint32_t xcc, uint32_t count)
{
	struct hw_gpu *gpu = p->q->gpu;
	struct hw_cohort *c = p->fresh[xcc];

	if (c && c->since_ns == gpu->time->now_ns) {
		c->count += count;
	} else {
		c = cohort_new(p, xcc, count);
		if (!c) {
			hw_gpu_kick_later(gpu);
			return false;
		}
		c->since_ns = gpu->time->now_ns;
		set_end(c);
		TAILQ_INSERT_TAIL(&p->q->running, c, link);
		p->fresh[xcc] = c;
	}
	if (!p->started)
		hw_log_started(p);
	p->started = true;
	occupy(p, xcc, count);
	p->to_launch[xcc] -= count;
	p->unlaunched -= count;
	return true;
}

void hw_cohort_save(struct hw_cohort *c)
{
	struct hw_packet *p = c->packet;
	uint64_t ran = hw_cohort_ran_ns(c);

	vacate(p, c->xcc, c->count);
	hw_log_executed(p, c->count, ran);
	c->left_ns -= ran;
	timeline_set(p->q->gpu->time, &c->done, TIMELINE_NEVER);
	if (p->fresh[c->xcc] == c)
		p->fresh[c->xcc] = NULL;
	TAILQ_REMOVE(&p->q->running, c, link);
	TAILQ_INSERT_TAIL(&p->q->saved, c, link);
	p->q->parked += p->wg_room ? c->count : 0;
}

/* Divides off what fits, ahead of the rest. */
static struct hw_cohort *split(struct hw_cohort *c, uint32_t count)
{
	struct hw_cohort *part = cohort_new(c->packet, c->xcc, count);

	if (!part)
		return NULL;
	part->left_ns = c->left_ns;
	c->count -= count;
	TAILQ_INSERT_BEFORE(c, part, link);
	return part;
}

/* Gives a saved cohort room; what of it got some is among the running, with no start yet. */
static bool bring_back(struct hw_cohort *c, uint64_t *bytes)
{
	struct hw_packet *p = c->packet;
	struct hw_queue *q = p->q;
	uint64_t fit = p->wg_room ? q->gpu->free_room[c->xcc] / p->wg_room : c->count;
	bool whole = fit >= c->count;

	if (!fit)
		return false;
	if (!whole) {
		c = split(c, fit);
		if (!c) {
			hw_gpu_kick_later(q->gpu);
			return false;
		}
	}
	TAILQ_REMOVE(&q->saved, c, link);
	TAILQ_INSERT_TAIL(&q->running, c, link);
	occupy(p, c->xcc, c->count);
	q->parked -= p->wg_room ? c->count : 0;
	c->since_ns = TIMELINE_NEVER;
	*bytes += hw_cohort_bytes(c);
	return whole;
}

uint64_t hw_restore(struct hw_gpu *gpu, uint64_t from_ns)
{
	uint64_t bytes[MODEL_MAX_XCC] = { 0 };
	struct hw_cohort *c, *next;
	uint64_t move_ns = 0;

	for (uint32_t x = 0; x < gpu->chip.n_xcc; x++)
		gpu->n_waiting[x] = 0;
	for (size_t i = 0; i < gpu->n_mapped; i++) {
		for (c = TAILQ_FIRST(&gpu->mapped[i]->saved); c; c = next) {
			bool must_wait = c->packet->wg_room && gpu->n_waiting[c->xcc];

			next = TAILQ_NEXT(c, link);
			if (must_wait || !bring_back(c, &bytes[c->xcc]))
				gpu->n_waiting[c->xcc]++;
		}
	}
	for (uint32_t x = 0; x < gpu->chip.n_xcc; x++)
		move_ns = MAX(move_ns, hw_gpu_move_ns(gpu, bytes[x]));
	for (size_t i = 0; i < gpu->n_mapped; i++) {
		TAILQ_FOREACH(c, &gpu->mapped[i]->running, link) {
			if (c->since_ns != TIMELINE_NEVER)
				continue;
			c->since_ns = from_ns + move_ns;
			set_end(c);
		}
	}
	return from_ns + move_ns;
}

void hw_queue_lose(struct hw_queue *q)
{
	struct hw_cohort *c;
	struct hw_packet *p;

	while ((c = TAILQ_FIRST(&q->running))) {
		vacate(c->packet, c->xcc, c->count);
		forget(c, &q->running);
	}
	while ((c = TAILQ_FIRST(&q->saved)))
		forget(c, &q->saved);
	q->parked = 0;
	q->launching = NULL;
	while ((p = TAILQ_FIRST(&q->packets))) {
		TAILQ_REMOVE(&q->packets, p, link);
		free(p);
		hw_queue_fail(q);
	}
}
