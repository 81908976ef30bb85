/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "gpu/model/hw_internal.h"
#include "util/macros.h"

union slot {
	uint16_t header;
	struct aql_dispatch dispatch;
	struct aql_barrier barrier;
	struct hw_timed_packet timed;
};
_Static_assert(sizeof(union slot) == AQL_PACKET_BYTES, "every packet fills one slot");

static uint64_t units_per_packet(const struct hw_queue *q)
{
	return AQL_PACKET_BYTES / hw_queue_unit_bytes(q);
}

static uint64_t slot_va(const struct hw_queue *q)
{
	return q->config.ring_va + q->seen.read * hw_queue_unit_bytes(q) % q->config.ring_bytes;
}

/* NULL: out of memory; the packet stays where it is. */
static struct hw_packet *start(struct hw_queue *q, uint64_t workgroups, uint64_t signal)
{
	_cleanup_free_ struct hw_packet *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->q = q;
	p->index = q->seen.read / units_per_packet(q);
	p->completion_signal = signal;
	if (hw_log_fetched(p, workgroups) < 0)
		return NULL;
	TAILQ_INSERT_TAIL(&q->packets, p, link);
	q->launching = p;
	return steal_ptr(&p);
}

/* Work that needs no compute unit: @busy_ns of an engine, or nothing at all. */
static bool start_roomless(struct hw_queue *q, uint32_t xcc, uint64_t busy_ns, bool empty,
			   uint64_t signal)
{
	struct hw_packet *p = start(q, empty ? 0 : 1, signal);

	if (!p) {
		hw_gpu_kick_later(q->gpu);
		return false;
	}
	p->empty = empty;
	p->wg_ns = busy_ns;
	p->to_launch[xcc] = 1;
	p->unlaunched = 1;
	return true;
}

static bool start_empty(struct hw_queue *q, uint64_t signal)
{
	return start_roomless(q, 0, 0, true, signal);
}

/* Multi-XCC AQL queues deal single workgroups, the start rotating (tg_chunk_size 1). */
static void deal(struct hw_packet *p, uint32_t workgroups)
{
	uint32_t n_xcc = p->q->gpu->chip.n_xcc;
	uint32_t odd = workgroups % n_xcc;

	for (uint32_t i = 0; i < n_xcc; i++)
		p->to_launch[(p->q->next_xcc + i) % n_xcc] = workgroups / n_xcc + (i < odd);
	p->q->next_xcc = (p->q->next_xcc + odd) % n_xcc;
	p->unlaunched = workgroups;
}

static bool read_kernel(const struct hw_queue *q, uint64_t va, struct hw_kernel *ret)
{
	return mem_read(q->config.vm, va, ret, sizeof(*ret)) == 0 &&
	       ret->magic == HW_KERNEL_MAGIC && ret->wg_units && ret->wg_units <= HW_CU_UNITS;
}

static bool start_dispatch(struct hw_queue *q, const struct aql_dispatch *d)
{
	struct hw_kernel kernel;
	struct hw_packet *p;
	uint32_t workgroups;

	if (d->workgroup_x && !d->grid_x)
		return start_empty(q, d->completion_signal);
	if (!d->workgroup_x || !read_kernel(q, d->kernel_object, &kernel)) {
		hw_queue_fail(q);
		return false;
	}
	workgroups = (d->grid_x - 1) / d->workgroup_x + 1;
	p = start(q, workgroups, d->completion_signal);
	if (!p) {
		hw_gpu_kick_later(q->gpu);
		return false;
	}
	p->wg_ns = kernel.wg_ns;
	p->wg_units = kernel.wg_units;
	p->wg_room = hw_gpu_wg_room(kernel.wg_units);
	p->wg_waves = MAX(1u, kernel.wg_units / (HW_CU_UNITS / HW_CU_WAVES));
	deal(p, workgroups);
	return true;
}

static bool start_barrier(struct hw_queue *q, const struct aql_barrier *b, bool any)
{
	uint32_t used = 0, met = 0;

	for (size_t i = 0; i < AQL_MAX_DEPS; i++) {
		int64_t value;

		if (!b->dep_signal[i])
			continue;
		if (mem_read(q->config.vm, b->dep_signal[i] + AQL_SIGNAL_VALUE_OFFSET, &value,
			     sizeof(value)) < 0) {
			hw_queue_fail(q);
			return false;
		}
		used++;
		met += value <= 0;
	}
	if (used && !(any ? met > 0 : met == used)) {
		hw_queue_watch(q, b->dep_signal);
		return false;
	}
	hw_queue_unwatch(q);
	return start_empty(q, b->completion_signal);
}

static bool fetch_aql(struct hw_queue *q, const union slot *s)
{
	enum aql_type type = s->header & AQL_TYPE_MASK;

	if (type == AQL_INVALID) {
		q->unpublished = true;
		return false;
	}
	q->barred = (s->header & AQL_BARRIER_BIT) && !TAILQ_EMPTY(&q->packets);
	if (q->barred)
		return false;
	switch (type) {
	case AQL_KERNEL_DISPATCH:
		return start_dispatch(q, &s->dispatch);
	case AQL_BARRIER_AND:
	case AQL_BARRIER_OR:
		return start_barrier(q, &s->barrier, type == AQL_BARRIER_OR);
	case AQL_VENDOR:
	case AQL_AGENT_DISPATCH:
		return start_empty(q, s->dispatch.completion_signal);
	case AQL_INVALID:
		break;
	}
	hw_queue_fail(q);
	return false;
}

static bool fetch_timed(struct hw_queue *q, const union slot *s)
{
	uint32_t xcc = q->config.ring == HW_RING_PM4 ? q->config.target_xcc : 0;

	if (s->timed.magic != HW_TIMED_MAGIC || xcc >= q->gpu->chip.n_xcc) {
		hw_queue_fail(q);
		return false;
	}
	return start_roomless(q, xcc, s->timed.busy_ns, false, s->timed.completion_signal);
}

bool hw_ring_fetch(struct hw_queue *q)
{
	uint64_t behind = q->seen.write - q->seen.read;
	union slot s;

	if (q->seen.failed || q->unpublished)
		return false;
	if ((int64_t)behind < (int64_t)units_per_packet(q))
		return false;
	if ((q->barred || q->config.ring != HW_RING_AQL) && !TAILQ_EMPTY(&q->packets))
		return false;
	/*
	 * Only an AQL producer may be further ahead than the ring is long: it reserves first, and
	 * what it has not published stays invalid.
	 */
	if (q->config.ring_bytes < AQL_PACKET_BYTES ||
	    (q->config.ring != HW_RING_AQL &&
	     behind > q->config.ring_bytes / hw_queue_unit_bytes(q)) ||
	    mem_read(q->config.vm, slot_va(q), &s, sizeof(s)) < 0) {
		hw_queue_fail(q);
		return false;
	}
	return q->config.ring == HW_RING_AQL ? fetch_aql(q, &s) : fetch_timed(q, &s);
}

void hw_ring_consume(struct hw_queue *q)
{
	static const uint16_t invalid = AQL_INVALID;

	if (q->config.ring == HW_RING_AQL)
		mem_write(q->config.vm, slot_va(q), &invalid, sizeof(invalid));
	q->seen.read += units_per_packet(q);
	mem_write64(q->config.vm, q->config.read_ptr_va, q->seen.read);
	q->launching = NULL;
}
