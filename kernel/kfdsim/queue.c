/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * One queue between its descriptor (MQD), its ring and its doorbell.
 *
 * The write pointer is read when the queue comes onto hardware and when its doorbell is rung, and
 * at no other time. Where the read pointer is kept while off hardware follows the register's
 * meaning (dwords); hardware's 64-bit bookkeeping was not verified.
 */
#include <linux/types.h>

#include <gc/gc_9_0_sh_mask.h>
#include <sdma0/sdma0_4_0_sh_mask.h>
#include <v11_structs.h>
#include <v12_structs.h>

#include "kernel/kfdsim/sim.h"

/* Where SDMA queues report to has moved with each generation; the rest we use stayed. */
#define SDMA_SAME(field) \
	static_assert(offsetof(struct v9_sdma_mqd, field) == \
			      offsetof(struct v11_sdma_mqd, field) && \
		      offsetof(struct v9_sdma_mqd, field) == \
			      offsetof(struct v12_sdma_mqd, field))

SDMA_SAME(sdmax_rlcx_rb_cntl);
SDMA_SAME(sdmax_rlcx_rb_base);
SDMA_SAME(sdmax_rlcx_rb_rptr);

#define MIN_RING_ORDER 8 /* of dwords: 1 KiB, the driver's least */
#define MAX_RING_ORDER 28

static unsigned int dword_shift(const struct sim_queue *q)
{
	return q->kind == SIM_AQL ? 4 : 0;
}

struct v9_mqd *sim_queue_mqd(struct sim_gpu *gpu, const struct sim_queue *q, unsigned int xcc)
{
	const struct v9_mqd *first;

	if (q->kind == SIM_SDMA || xcc >= gpu->n_xcc)
		return NULL;
	first = sim_gart(gpu, q->mqd, sizeof(*first));
	if (!first || !xcc)
		return (struct v9_mqd *)first;
	return sim_gart(gpu, q->mqd + (u64)first->cp_mqd_stride_size * xcc, sizeof(*first));
}

struct v9_sdma_mqd *sim_queue_sdma_mqd(struct sim_gpu *gpu, const struct sim_queue *q)
{
	if (q->kind != SIM_SDMA)
		return NULL;
	return sim_gart(gpu, q->mqd, sizeof(struct v9_sdma_mqd));
}

static void see_write_pointer(struct sim_gpu *gpu, struct sim_queue *q)
{
	u64 *w = sim_user(gpu, q->pasid, q->wptr, sizeof(*w));

	if (w)
		q->write = READ_ONCE(*w);
}

void sim_queue_see_doorbell(struct sim_gpu *gpu, struct sim_queue *q)
{
	if (sim_doorbell_rung(gpu, q->doorbell))
		see_write_pointer(gpu, q);
}

static bool sdma_on_hardware(struct sim_gpu *gpu, struct sim_queue *q)
{
	const struct v9_sdma_mqd *m = sim_queue_sdma_mqd(gpu, q);

	if (!m)
		return false;
	q->read = sim_pair(m->sdmax_rlcx_rb_rptr_hi, m->sdmax_rlcx_rb_rptr);
	return true;
}

static bool compute_on_hardware(struct sim_gpu *gpu, struct sim_queue *q)
{
	struct v9_mqd *m = sim_queue_mqd(gpu, q, 0);
	unsigned int x;
	u64 write;

	if (!m || q->slot == SIM_NO_SLOT)
		return false;
	q->kind = m->cp_hqd_aql_control ? SIM_AQL : SIM_PM4;
	q->pipe_priority = min(m->cp_hqd_pipe_priority, 2u);
	write = sim_pair(m->cp_hqd_pq_wptr_hi, m->cp_hqd_pq_wptr_lo);
	q->read = (write - (u32)((u32)write - m->cp_hqd_pq_rptr)) >> dword_shift(q);
	if (q->kind == SIM_AQL)
		sim_restore(gpu, q);
	for (x = 0; x < gpu->n_xcc; x++) {
		m = sim_queue_mqd(gpu, q, x);
		if (m)
			m->cp_hqd_active = 1;
	}
	return true;
}

bool sim_queue_on_hardware(struct sim_gpu *gpu, struct sim_queue *q)
{
	bool there = q->kind == SIM_SDMA ? sdma_on_hardware(gpu, q) : compute_on_hardware(gpu, q);

	if (!there) {
		gpu->count.bad++;
		sim_log(gpu, SIM_EV_BAD, q->pasid, q->doorbell, q->mqd, 0);
		return false;
	}
	sim_wait_begin(gpu, q);
	sim_doorbell_rung(gpu, q->doorbell);
	see_write_pointer(gpu, q);
	return true;
}

static void store_pointers(struct sim_queue *q, struct v9_mqd *m)
{
	u64 write = q->write << dword_shift(q);

	m->cp_hqd_pq_rptr = lower_32_bits(q->read << dword_shift(q));
	m->cp_hqd_pq_wptr_lo = lower_32_bits(write);
	m->cp_hqd_pq_wptr_hi = upper_32_bits(write);
	m->cp_hqd_active = 0;
}

void sim_queue_off_hardware(struct sim_gpu *gpu, struct sim_queue *q, bool reset)
{
	struct v9_sdma_mqd *sdma = sim_queue_sdma_mqd(gpu, q);
	struct v9_mqd *m;
	unsigned int x;

	if (sdma) {
		sdma->sdmax_rlcx_rb_rptr = lower_32_bits(q->read);
		sdma->sdmax_rlcx_rb_rptr_hi = upper_32_bits(q->read);
	}
	for (x = 0; x < gpu->n_xcc; x++) {
		m = sim_queue_mqd(gpu, q, x);
		if (!m)
			continue;
		store_pointers(q, m);
		m->cp_hqd_cntl_stack_offset = m->cp_hqd_cntl_stack_size;
		m->cp_hqd_wg_state_offset = m->cp_hqd_cntl_stack_size;
	}
	if (!reset && q->n_flight)
		sim_save(gpu, q);
	for (x = 0; x < q->n_flight; x++)
		gpu->waves -= q->flight[x].waves;
	q->n_flight = 0;
	q->resident = false;
	q->slot = SIM_NO_SLOT;
	q->frozen = false;
}

u64 sim_queue_ring(struct sim_gpu *gpu, const struct sim_queue *q, u32 *ret_dwords)
{
	const struct v9_sdma_mqd *sdma = sim_queue_sdma_mqd(gpu, q);
	const struct v9_mqd *m = sim_queue_mqd(gpu, q, 0);
	u32 order;
	u64 base;

	if (sdma) {
		order = (sdma->sdmax_rlcx_rb_cntl & SDMA0_RLC0_RB_CNTL__RB_SIZE_MASK) >>
			SDMA0_RLC0_RB_CNTL__RB_SIZE__SHIFT;
		base = sim_pair(sdma->sdmax_rlcx_rb_base_hi, sdma->sdmax_rlcx_rb_base) << 8;
	} else if (m) {
		order = (m->cp_hqd_pq_control & CP_HQD_PQ_CONTROL__QUEUE_SIZE_MASK) + 1;
		base = sim_pair(m->cp_hqd_pq_base_hi, m->cp_hqd_pq_base_lo) << 8;
	} else {
		return 0; /* the driver has given up on the GPU and freed it */
	}
	if (ret_dwords)
		*ret_dwords = 1u << clamp_t(u32, order, MIN_RING_ORDER, MAX_RING_ORDER);
	return base;
}

static u64 report_address(struct sim_gpu *gpu, const struct sim_queue *q)
{
	const struct v9_sdma_mqd *sdma = sim_queue_sdma_mqd(gpu, q);
	const struct v11_sdma_mqd *sdma11 = (const void *)sdma;
	const struct v12_sdma_mqd *sdma12 = (const void *)sdma;
	const struct v9_mqd *m = sim_queue_mqd(gpu, q, 0);

	if (sdma && gpu->chip->gc >= 0x0c0000)
		return sim_pair(sdma12->sdmax_rlcx_rb_rptr_addr_hi,
				sdma12->sdmax_rlcx_rb_rptr_addr_lo);
	if (sdma && gpu->chip->gc >= 0x0b0000)
		return sim_pair(sdma11->sdmax_rlcx_rb_rptr_addr_hi,
				sdma11->sdmax_rlcx_rb_rptr_addr_lo);
	if (sdma)
		return sim_pair(sdma->sdmax_rlcx_rb_rptr_addr_hi, sdma->sdmax_rlcx_rb_rptr_addr_lo);
	if (m)
		return sim_pair(m->cp_hqd_pq_rptr_report_addr_hi, m->cp_hqd_pq_rptr_report_addr_lo);
	return 0;
}

void sim_queue_report(struct sim_gpu *gpu, struct sim_queue *q)
{
	u64 *r = sim_user(gpu, q->pasid, report_address(gpu, q), sizeof(*r));

	if (r)
		smp_store_release(r, q->read); /* what the packets did was done before */
}
