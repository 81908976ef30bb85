/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/model/hw_internal.h"
#include "util/array.h"
#include "util/macros.h"

static void memory_written(struct mem_watch *w, uint64_t va, size_t len)
{
	struct hw_queue *q = container_of(w, struct hw_queue, watch);

	for (size_t i = 0; i < AQL_MAX_DEPS; i++) {
		uint64_t value_va = q->deps[i] + AQL_SIGNAL_VALUE_OFFSET;

		if (q->deps[i] && va < value_va + sizeof(uint64_t) && value_va < va + len) {
			hw_gpu_kick(q->gpu);
			return;
		}
	}
}

struct hw_queue *hw_queue_new(struct hw_gpu *gpu, const struct hw_queue_config *config)
{
	struct hw_queue *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	q->gpu = gpu;
	q->config = *config;
	q->watch.written = memory_written;
	TAILQ_INIT(&q->packets);
	TAILQ_INIT(&q->running);
	TAILQ_INIT(&q->saved);
	TAILQ_INSERT_TAIL(&gpu->queues, q, link);
	return q;
}

void hw_queue_free(struct hw_queue *q)
{
	if (!q)
		return;
	hw_queue_lose(q);
	hw_queue_unwatch(q);
	TAILQ_REMOVE(&q->gpu->queues, q, link);
	free(q->log);
	free(q);
}

void hw_queue_set_ring(struct hw_queue *q, uint64_t ring_va, uint32_t ring_bytes)
{
	q->config.ring_va = ring_va;
	q->config.ring_bytes = ring_bytes;
}

void hw_queue_set_priority(struct hw_queue *q, uint32_t priority)
{
	q->config.priority = priority;
}

void hw_queue_on_complete(struct hw_queue *q, void (*completed)(void *user, uint64_t index),
			  void *user)
{
	q->on_complete = completed;
	q->user = user;
}

uint32_t hw_queue_unit_bytes(const struct hw_queue *q)
{
	switch (q->config.ring) {
	case HW_RING_PM4:
		return 4;
	case HW_RING_SDMA:
		return 1;
	case HW_RING_AQL:
		break;
	}
	return AQL_PACKET_BYTES;
}

/* ---- the record of each packet ---- */

/* Makes records up to packet @end; those that are new count as submitted now. */
static int extend(struct hw_queue *q, uint64_t end)
{
	uint64_t n = end > q->first_log ? end - q->first_log : 0;

	if (array_reserve(&q->log, n, &q->cap_log, sizeof(*q->log)) < 0)
		return -ENOMEM;
	for (; q->n_log < n; q->n_log++)
		q->log[q->n_log] = (struct model_packet){
			.index = q->first_log + q->n_log,
			.submitted_ns = q->gpu->time->now_ns,
		};
	return 0;
}

/* Best effort. */
static void log_submitted(struct hw_queue *q, uint64_t write)
{
	uint64_t unit = hw_queue_unit_bytes(q);
	uint64_t behind = write - q->seen.read;

	if (!q->config.log_packets || (int64_t)behind <= 0)
		return;
	/* No more than the ring can hold: the pointer is the program's and may be anything. */
	behind = MIN(behind, q->config.ring_bytes / unit);
	extend(q, (q->seen.read + behind) * unit / AQL_PACKET_BYTES);
}

int hw_log_fetched(struct hw_packet *p, uint64_t workgroups)
{
	struct hw_queue *q = p->q;
	int r;

	if (!q->config.log_packets)
		return 0;
	r = extend(q, p->index + 1);
	if (r < 0)
		return r;
	q->log[p->index - q->first_log].workgroups = workgroups;
	return 0;
}

struct model_packet *hw_log(struct hw_packet *p)
{
	struct hw_queue *q = p->q;

	return q->config.log_packets ? &q->log[p->index - q->first_log] : &p->unlogged;
}

size_t hw_queue_packets(const struct hw_queue *q, uint64_t first, struct model_packet *ret,
			size_t max)
{
	uint64_t skipped = first - q->first_log;
	const struct hw_cohort *c;
	size_t n;

	if (first < q->first_log || skipped >= q->n_log)
		return 0;
	n = MIN(max, q->n_log - skipped);
	memcpy(ret, &q->log[skipped], n * sizeof(*ret));
	TAILQ_FOREACH(c, &q->running, link) {
		uint64_t i = c->packet->index - first;

		if (i < n)
			ret[i].executed_ns += hw_cohort_workgroups(c) * hw_cohort_ran_ns(c);
	}
	return n;
}

void hw_queue_forget_packets(struct hw_queue *q, uint64_t before)
{
	size_t n = 0;

	while (n < q->n_log && q->log[n].index < before && q->log[n].done_ns)
		n++;
	if (!n)
		return;
	q->first_log += n;
	q->n_log -= n;
	memmove(q->log, q->log + n, q->n_log * sizeof(*q->log));
}

/* ---- work comes ---- */

void hw_queue_see_write(struct hw_queue *q)
{
	q->seen.write = mem_read64(q->config.vm, q->config.write_ptr_va);
	q->unpublished = false;
	log_submitted(q, q->seen.write);
}

void hw_doorbell(struct hw_queue *q)
{
	if (!q->seen.on) {
		log_submitted(q, mem_read64(q->config.vm, q->config.write_ptr_va));
		return;
	}
	hw_queue_see_write(q);
	hw_gpu_kick(q->gpu);
}

void hw_queue_watch(struct hw_queue *q, const uint64_t deps[AQL_MAX_DEPS])
{
	memcpy(q->deps, deps, sizeof(q->deps));
	if (!q->waiting)
		mem_watch(q->config.vm, &q->watch);
	q->waiting = true;
}

void hw_queue_unwatch(struct hw_queue *q)
{
	if (q->waiting)
		mem_unwatch(&q->watch);
	q->waiting = false;
}

void hw_queue_fail(struct hw_queue *q)
{
	q->seen.failed = true;
	hw_queue_unwatch(q);
}

const struct hw_queue_seen *hw_see(const struct hw_queue *q)
{
	return &q->seen;
}
