/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * PM4 compute queues: one packet a tick. Writes to memory are done (WRITE_DATA, RELEASE_MEM), what
 * would start waves is passed over. Pointers count dwords and never wrap; whether the read pointer
 * that hardware reports does was not verified.
 */
#include <linux/types.h>

#include <kfd_pm4_headers_ai.h>
#include <kfd_pm4_opcodes.h>

#include "kernel/kfdsim/sim.h"

#define MAX_PACKET_DW 64
#define DST_TC_L2 2
#define DST_MEMORY 5

static void write_data(struct sim_gpu *gpu, struct sim_queue *q, const u32 *p, u32 dwords)
{
	u32 dst = p[1] >> 8 & 0xf;
	u32 bytes = (dwords - 4) * sizeof(*p);
	void *to;

	if (dwords <= 4 || (dst != DST_MEMORY && dst != DST_TC_L2))
		return;
	to = sim_user(gpu, q->pasid, sim_pair(p[3], p[2]), bytes);
	if (to)
		memcpy(to, p + 4, bytes);
}

static void release_mem(struct sim_gpu *gpu, struct sim_queue *q, const u32 *p, u32 dwords)
{
	const struct pm4_mec_release_mem *r = (const void *)p;
	u64 *to;

	if (dwords < 7)
		return;
	to = sim_user(gpu, q->pasid, sim_pair(r->address_hi, r->ordinal4 & ~7u), sizeof(*to));
	if (to && r->bitfields3.data_sel == data_sel__mec_release_mem__send_64_bit_data)
		WRITE_ONCE(*to, sim_pair(r->data_hi, r->data_lo));
	if (r->bitfields3.int_sel && dwords > 7)
		sim_irq_end_of_pipe(gpu, q, r->int_ctxid);
}

static bool one_packet(struct sim_gpu *gpu, struct sim_queue *q)
{
	u32 packet[MAX_PACKET_DW], ring_dw = 0, dwords, count, i, *word;
	u64 ring = sim_queue_ring(gpu, q, &ring_dw);

	word = ring ? sim_user(gpu, q->pasid, ring, ring_dw * 4) : NULL;
	if (!word)
		return false;
	packet[0] = word[q->read % ring_dw];
	count = packet[0] >> 16 & 0x3fff;
	dwords = packet[0] >> 30 != 3 || count == 0x3fff ? 1 : count + 2;
	if (q->read + dwords > q->write)
		return false;
	for (i = 1; i < min_t(u32, dwords, MAX_PACKET_DW); i++)
		packet[i] = word[(q->read + i) % ring_dw];
	q->read += dwords;
	if (dwords > 1 && dwords <= MAX_PACKET_DW) {
		if ((packet[0] >> 8 & 0xff) == IT_WRITE_DATA)
			write_data(gpu, q, packet, dwords);
		else if ((packet[0] >> 8 & 0xff) == IT_RELEASE_MEM)
			release_mem(gpu, q, packet, dwords);
	}
	gpu->count.pm4++;
	sim_count_proc(gpu, q->pasid)->packets++;
	return true;
}

void sim_run_pm4(struct sim_gpu *gpu, struct sim_queue *q, u64 ticks)
{
	if (q->leaving || q->hopeless)
		return;
	while (ticks-- && q->read < q->write) {
		if (!one_packet(gpu, q))
			break;
	}
	sim_queue_report(gpu, q);
}
