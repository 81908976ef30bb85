/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/model/hw_internal.h"
#include "util/array.h"
#include "util/macros.h"

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

void hw_log_submitted(struct hw_queue *q, uint64_t write)
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
