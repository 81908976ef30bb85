/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "gpu/model/hw_internal.h"
#include "util/macros.h"

uint64_t hw_cohort_bytes(const struct hw_cohort *c, uint32_t xcc)
{
	uint64_t per_cu = c->packet->q->gpu->chip.cwsr_bytes_per_cu;

	return per_cu * c->count[xcc] * c->packet->wg_units / HW_CU_UNITS;
}

uint64_t hw_cohort_workgroups(const struct hw_cohort *c)
{
	uint64_t sum = 0;

	for (uint32_t x = 0; x < c->packet->q->gpu->chip.n_xcc; x++)
		sum += c->count[x];
	return sum;
}

uint64_t hw_cohort_ran_ns(const struct hw_cohort *c)
{
	uint64_t now = c->packet->q->gpu->time->now_ns;

	return now > c->since_ns ? MIN(now - c->since_ns, c->left_ns) : 0;
}

/* @count workgroups more; those that leave are negative. */
static void occupy(const struct hw_packet *p, uint32_t xcc, int64_t count)
{
	struct hw_queue *q = p->q;

	q->gpu->free_room[xcc] -= p->wg_room * (uint64_t)count;
	q->gpu->waves += p->wg_waves * (uint64_t)count;
	q->seen.waves[xcc] += (uint32_t)(p->wg_waves * count);
	q->seen.resident += p->wg_room ? (uint64_t)count : 0;
}

static void vacate(const struct hw_cohort *c)
{
	for (uint32_t x = 0; x < c->packet->q->gpu->chip.n_xcc; x++)
		occupy(c->packet, x, -(int64_t)c->count[x]);
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
	if (p->fresh == c)
		p->fresh = NULL;
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
	hw_log(p)->done_ns = q->gpu->time->now_ns;
	q->seen.completed++;
	TAILQ_REMOVE(&q->packets, p, link);
	free(p);
	if (q->on_complete)
		q->on_complete(q->user, index);
}

static void cohort_done(struct event *e)
{
	struct hw_cohort *c = container_of(e, struct hw_cohort, done);
	uint64_t workgroups = hw_cohort_workgroups(c);
	struct hw_packet *p = c->packet;
	struct hw_queue *q = p->q;

	vacate(c);
	hw_log(p)->executed_ns += workgroups * c->left_ns;
	hw_log(p)->finished += p->empty ? 0 : workgroups;
	forget(c, &q->running);
	if (!p->unlaunched && !p->n_cohorts)
		complete(p);
	hw_gpu_kick(q->gpu);
}

/* A cohort of nobody yet, with a place on the timeline, in no list. NULL: out of memory. */
static struct hw_cohort *cohort_new(struct hw_packet *p)
{
	_cleanup_free_ struct hw_cohort *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->packet = p;
	c->left_ns = p->wg_ns;
	c->done.run = cohort_done;
	if (timeline_set(p->q->gpu->time, &c->done, TIMELINE_NEVER) < 0)
		return NULL;
	p->n_cohorts++;
	return steal_ptr(&c);
}

static struct hw_cohort *youngest(struct hw_packet *p)
{
	uint64_t now = p->q->gpu->time->now_ns;
	struct hw_cohort *c = p->fresh;

	if (c && c->since_ns == now)
		return c;
	c = cohort_new(p);
	if (!c)
		return NULL;
	if (!p->started)
		hw_log(p)->started_ns = now;
	p->started = true;
	c->since_ns = now;
	set_end(c);
	TAILQ_INSERT_TAIL(&p->q->running, c, link);
	p->fresh = c;
	return c;
}

bool hw_launch(struct hw_packet *p, uint32_t xcc, uint32_t count)
{
	struct hw_cohort *c = youngest(p);

	if (!c) {
		hw_gpu_kick_later(p->q->gpu);
		return false;
	}
	c->count[xcc] += count;
	occupy(p, xcc, count);
	p->to_launch[xcc] -= count;
	p->unlaunched -= count;
	return true;
}

void hw_cohort_save(struct hw_cohort *c)
{
	struct hw_packet *p = c->packet;
	uint64_t workgroups = hw_cohort_workgroups(c);
	uint64_t ran = hw_cohort_ran_ns(c);

	vacate(c);
	hw_log(p)->executed_ns += workgroups * ran;
	c->left_ns -= ran;
	timeline_set(p->q->gpu->time, &c->done, TIMELINE_NEVER);
	p->fresh = NULL;
	TAILQ_REMOVE(&p->q->running, c, link);
	TAILQ_INSERT_TAIL(&p->q->saved, c, link);
	p->q->seen.saved += p->wg_room ? workgroups : 0;
}

/* How much of a saved cohort may come back to each XCC now. What is left over is waited for. */
static uint64_t measure(const struct hw_cohort *c, uint32_t ret_fit[MODEL_MAX_XCC])
{
	const struct hw_packet *p = c->packet;
	struct hw_gpu *gpu = p->q->gpu;
	uint32_t pipe = p->q->pipe;
	uint64_t sum = 0;

	for (uint32_t x = 0; x < gpu->chip.n_xcc; x++) {
		uint64_t fit = c->count[x];

		if (p->wg_room && (gpu->saved_waits[x] || gpu->new_waits[x] > pipe + 1))
			fit = 0;
		else if (p->wg_room)
			fit = MIN(fit, gpu->free_room[x] / p->wg_room);
		if (fit < c->count[x] && !gpu->saved_waits[x])
			gpu->saved_waits[x] = pipe + 1;
		ret_fit[x] = fit;
		sum += fit;
	}
	return sum;
}

/* Divides off @count, ahead of the rest. */
static struct hw_cohort *split(struct hw_cohort *c, const uint32_t count[MODEL_MAX_XCC])
{
	struct hw_cohort *part = cohort_new(c->packet);

	if (!part)
		return NULL;
	part->left_ns = c->left_ns;
	memcpy(part->count, count, sizeof(part->count));
	for (uint32_t x = 0; x < MODEL_MAX_XCC; x++)
		c->count[x] -= count[x];
	TAILQ_INSERT_BEFORE(c, part, link);
	return part;
}

/* What of a saved cohort finds room is then among the running, with no start yet. */
static void bring_back(struct hw_cohort *c, uint64_t bytes[MODEL_MAX_XCC])
{
	struct hw_packet *p = c->packet;
	struct hw_queue *q = p->q;
	uint32_t fit[MODEL_MAX_XCC] = { 0 };
	uint64_t workgroups = measure(c, fit);

	if (!workgroups)
		return;
	if (workgroups < hw_cohort_workgroups(c))
		c = split(c, fit);
	if (!c) {
		hw_gpu_kick_later(q->gpu);
		return;
	}
	TAILQ_REMOVE(&q->saved, c, link);
	TAILQ_INSERT_TAIL(&q->running, c, link);
	c->since_ns = TIMELINE_NEVER;
	q->seen.saved -= p->wg_room ? workgroups : 0;
	for (uint32_t x = 0; x < q->gpu->chip.n_xcc; x++) {
		occupy(p, x, c->count[x]);
		bytes[x] += hw_cohort_bytes(c, x);
	}
}

static void restore_pipe(struct hw_gpu *gpu, uint32_t pipe, uint64_t bytes[MODEL_MAX_XCC])
{
	struct hw_cohort *c, *next;

	for (size_t i = 0; i < gpu->n_on; i++) {
		if (gpu->on[i]->pipe != pipe)
			continue;
		for (c = TAILQ_FIRST(&gpu->on[i]->saved); c; c = next) {
			next = TAILQ_NEXT(c, link);
			bring_back(c, bytes);
		}
	}
}

uint64_t hw_restore(struct hw_gpu *gpu, uint64_t from_ns)
{
	uint64_t bytes[MODEL_MAX_XCC] = { 0 };
	uint64_t start_ns = from_ns;
	struct hw_cohort *c;

	memset(gpu->saved_waits, 0, sizeof(gpu->saved_waits));
	for (uint32_t pipe = HW_N_PIPES; pipe--;)
		restore_pipe(gpu, pipe, bytes);
	for (uint32_t x = 0; x < gpu->chip.n_xcc; x++)
		start_ns = MAX(start_ns, from_ns + hw_gpu_move_ns(gpu, bytes[x]));
	for (size_t i = 0; i < gpu->n_on; i++) {
		TAILQ_FOREACH(c, &gpu->on[i]->running, link) {
			if (c->since_ns != TIMELINE_NEVER)
				continue;
			c->since_ns = start_ns;
			set_end(c);
		}
	}
	return start_ns;
}

void hw_queue_lose(struct hw_queue *q)
{
	struct hw_cohort *c;
	struct hw_packet *p;

	while ((c = TAILQ_FIRST(&q->running))) {
		vacate(c);
		forget(c, &q->running);
	}
	while ((c = TAILQ_FIRST(&q->saved)))
		forget(c, &q->saved);
	q->seen.saved = 0;
	q->launching = NULL;
	while ((p = TAILQ_FIRST(&q->packets))) {
		TAILQ_REMOVE(&q->packets, p, link);
		free(p);
		hw_queue_fail(q);
	}
}
