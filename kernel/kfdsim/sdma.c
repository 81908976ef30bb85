/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * SDMA queues: one packet a tick, all engines side by side. NOP, linear copy and write, fill, fence
 * and trap are done, others stop the queue. Pointers count bytes.
 */
#include <vega10_sdma_pkt_open.h>

#include "kernel/kfdsim/sim.h"

#define MAX_PACKET_DW 64
#define MAX_COPY (1u << 22)

struct sdma {
	struct sim_gpu *gpu;
	struct sim_queue *q;
	u32 word[MAX_PACKET_DW];
};

static u64 address(const struct sdma *s, unsigned int at)
{
	return sim_pair(s->word[at + 1], s->word[at]);
}

/* 0: not a packet we know. */
static u32 packet_dwords(u32 header, const u32 *more)
{
	u32 op = header & 0xff, sub = header >> 8 & 0xff;

	switch (op) {
	case SDMA_OP_NOP:
		return 1 +
		       (header >> SDMA_PKT_NOP_HEADER_count_shift & SDMA_PKT_NOP_HEADER_count_mask);
	case SDMA_OP_COPY:
		return sub == SDMA_SUBOP_COPY_LINEAR ? 7 : 0;
	case SDMA_OP_WRITE:
		return sub == SDMA_SUBOP_WRITE_LINEAR ? 5 + (more[3] & 0xfffff) : 0;
	case SDMA_OP_FENCE:
		return 4;
	case SDMA_OP_TRAP:
		return 2;
	case SDMA_OP_CONST_FILL:
		return 5;
	default:
		return 0;
	}
}

static void copy(struct sdma *s)
{
	u32 bytes = min((s->word[1] & 0x3fffffff) + 1, MAX_COPY);
	void *from = sim_user(s->gpu, s->q->pasid, address(s, 3), bytes);
	void *to = sim_user(s->gpu, s->q->pasid, address(s, 5), bytes);

	if (!from || !to)
		return;
	memmove(to, from, bytes);
	s->gpu->count.sdma_bytes += bytes;
}

static void fill(struct sdma *s)
{
	u32 words = min(((s->word[4] & 0x3fffff) + 1) / 4, MAX_COPY / 4);
	u32 *to = sim_user(s->gpu, s->q->pasid, address(s, 1), words * 4);

	if (!to)
		return;
	memset32(to, s->word[3], words);
	s->gpu->count.sdma_bytes += words * 4;
}

static void write_linear(struct sdma *s, u32 dwords)
{
	void *to = sim_user(s->gpu, s->q->pasid, address(s, 1), (dwords - 4) * 4);

	if (to)
		memcpy(to, s->word + 4, (dwords - 4) * 4);
}

static void fence(struct sdma *s)
{
	u32 *to = sim_user(s->gpu, s->q->pasid, address(s, 1), sizeof(*to));

	if (to)
		smp_store_release(to, s->word[3]); /* the copies before it are done */
}

static void execute(struct sdma *s, u32 dwords)
{
	switch (s->word[0] & 0xff) {
	case SDMA_OP_COPY:
		copy(s);
		break;
	case SDMA_OP_CONST_FILL:
		fill(s);
		break;
	case SDMA_OP_WRITE:
		write_linear(s, dwords);
		break;
	case SDMA_OP_FENCE:
		fence(s);
		break;
	case SDMA_OP_TRAP:
		sim_irq_sdma_trap(s->gpu, s->q, s->word[1] & 0xfffffff);
		break;
	}
}

static bool one_packet(struct sdma *s)
{
	struct sim_queue *q = s->q;
	u32 ring_dw = 0, dwords, i, *ring;
	u64 base = sim_queue_ring(s->gpu, q, &ring_dw), at = q->read / 4;

	ring = base ? sim_user(s->gpu, q->pasid, base, ring_dw * 4) : NULL;
	if (!ring)
		return false;
	for (i = 0; i < 4; i++)
		s->word[i] = ring[(at + i) % ring_dw];
	dwords = packet_dwords(s->word[0], s->word);
	if (!dwords || q->read + dwords * 4 > q->write)
		return false;
	for (i = 0; i < min_t(u32, dwords, MAX_PACKET_DW); i++)
		s->word[i] = ring[(at + i) % ring_dw];
	q->read += dwords * 4;
	if (dwords <= MAX_PACKET_DW)
		execute(s, dwords);
	s->gpu->count.sdma++;
	sim_count_proc(s->gpu, q->pasid)->packets++;
	return true;
}

void sim_run_sdma(struct sim_gpu *gpu, struct sim_queue *q, u64 ticks)
{
	struct sdma s = { .gpu = gpu, .q = q };

	if (q->leaving)
		return;
	while (ticks-- && q->read < q->write) {
		if (!one_packet(&s))
			break;
	}
	sim_queue_report(gpu, q);
}
