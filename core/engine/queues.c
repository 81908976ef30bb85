/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What is remembered of queues. They come in the same order in almost every step, so the queue of
 * a sample is looked for where it was last; a hash table finds it elsewhere.
 */
#include "core/engine/internal.h"

void engine_queues_init(struct engine *e)
{
	for (uint32_t i = 0; i < e->limits.queues; i++)
		e->queues[i] = (struct engine_queue){ .job = NO_INDEX };
	e->free_queue = NO_INDEX;
}

static uint32_t home(const struct engine *e, uint32_t job, uint32_t queue)
{
	uint64_t key = ((uint64_t)job << 32 | queue) * 0x9e3779b97f4a7c15ull;

	return (uint32_t)(key >> 32) & e->table_mask;
}

/* Where the queue is in the table, or the empty place where it would be. */
static uint32_t place_of(const struct engine *e, uint32_t job, uint32_t queue)
{
	uint32_t at = home(e, job, queue);

	for (; e->table[at]; at = (at + 1) & e->table_mask) {
		const struct engine_queue *q = &e->queues[e->table[at] - 1];

		if (q->job == job && q->queue == queue)
			break;
	}
	return at;
}

/* What follows moves up if it would not be found past the gap. */
static void clear_place(struct engine *e, uint32_t gap)
{
	e->table[gap] = 0;
	for (uint32_t at = (gap + 1) & e->table_mask; e->table[at]; at = (at + 1) & e->table_mask) {
		const struct engine_queue *q = &e->queues[e->table[at] - 1];
		uint32_t from_home = (at - home(e, q->job, q->queue)) & e->table_mask;

		if (from_home < ((at - gap) & e->table_mask))
			continue;
		e->table[gap] = e->table[at];
		e->table[at] = 0;
		gap = at;
	}
}

static struct engine_queue *take_free(struct engine *e)
{
	struct engine_queue *q = NULL;

	if (e->free_queue != NO_INDEX) {
		q = &e->queues[e->free_queue];
		e->free_queue = (uint32_t)q->read;
	} else if (e->queues_high < e->limits.queues) {
		q = &e->queues[e->queues_high++];
	}
	e->n_queues += q != NULL;
	return q;
}

static struct engine_queue *add(struct engine *e, const struct engine_sample *s, uint32_t at)
{
	struct engine_job *j = engine_find_job(e, s->job);
	struct engine_queue *q = j ? take_free(e) : NULL;

	if (!q)
		return NULL;
	*q = (struct engine_queue){
		.job = s->job,
		.queue = s->queue,
		.read = s->read,
		.write = s->write,
	};
	e->table[at] = (uint32_t)(q - e->queues) + 1;
	j->queues++;
	j->gpu->stale = true;
	engine_touch(e, j);
	return q;
}

struct engine_queue *engine_queue(struct engine *e, const struct engine_sample *s, size_t at)
{
	uint32_t place = place_of(e, s->job, s->queue);
	struct engine_queue *q;

	q = e->table[place] ? &e->queues[e->table[place] - 1] : add(e, s, place);
	if (q && at < e->limits.queues)
		e->order[at] = (uint32_t)(q - e->queues);
	return q;
}

static void forget(struct engine *e, struct engine_queue *q)
{
	struct engine_job *j = engine_find_job(e, q->job);

	clear_place(e, place_of(e, q->job, q->queue));
	j->queues--;
	j->working -= q->work;
	j->hidden -= q->hidden;
	j->gpu->stale = true;
	*q = (struct engine_queue){ .job = NO_INDEX, .read = e->free_queue };
	e->free_queue = (uint32_t)(q - e->queues);
	e->n_queues--;
}

void engine_forget_queues_of(struct engine *e, const struct engine_job *j)
{
	for (uint32_t i = 0; i < e->queues_high && j->queues; i++) {
		if (e->queues[i].job == j->id)
			forget(e, &e->queues[i]);
	}
}

void engine_forget_unseen_queues(struct engine *e)
{
	for (uint32_t i = 0; i < e->queues_high; i++) {
		struct engine_queue *q = &e->queues[i];

		if (q->job == NO_INDEX || q->seen == (uint32_t)e->step)
			continue;
		engine_touch(e, engine_find_job(e, q->job));
		forget(e, q);
	}
}
