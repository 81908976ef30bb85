/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The hardware scheduler of gfx9: packets of the HIQ and of run lists.
 *
 * Packet layouts are the driver's (kfd_pm4_headers_ai.h). On multi-XCC chips each XCC's firmware
 * reads the same ring and the first reports; here one reader stands for all.
 */
#include <linux/types.h>

#include <gc/gc_9_0_sh_mask.h>
#include <kfd_pm4_headers_ai.h>
#include <kfd_pm4_headers_aldebaran.h>
#include <kfd_pm4_opcodes.h>
#include <kfd_priv.h>

#include "kernel/kfdsim/sim.h"

#define MAX_PACKET_DW 32
#define TYPE3 3
#define NOP_ONE_DWORD 0x3fff /* as a count: the header is all there is */

struct pm4 {
	u32 opcode;
	u32 dwords;
};

static bool parse_header(u32 header, struct pm4 *ret)
{
	u32 count = header >> 16 & 0x3fff;

	if (header >> 30 != TYPE3)
		return false;
	ret->opcode = header >> 8 & 0xff;
	ret->dwords = count == NOP_ONE_DWORD ? 1 : count + 2;
	return true;
}

int sim_hiq_load(struct sim_gpu *gpu, void *mqd, u32 doorbell, unsigned int xcc)
{
	const struct v9_mqd *m = mqd;
	struct sim_hiq *hiq = &gpu->hiq;

	hiq->mqd[xcc] = sim_pair(m->cp_mqd_base_addr_hi, m->cp_mqd_base_addr_lo);
	if (xcc)
		return 0;
	hiq->ring = sim_pair(m->cp_hqd_pq_base_hi, m->cp_hqd_pq_base_lo) << 8;
	hiq->ring_dw = 2u << (m->cp_hqd_pq_control & CP_HQD_PQ_CONTROL__QUEUE_SIZE_MASK);
	hiq->rptr_report =
		sim_pair(m->cp_hqd_pq_rptr_report_addr_hi, m->cp_hqd_pq_rptr_report_addr_lo);
	hiq->doorbell = doorbell;
	hiq->read = 0;
	sim_doorbell_clear(gpu, doorbell);
	hiq->loaded =
		sim_gart(gpu, hiq->ring, hiq->ring_dw * 4) && sim_gart(gpu, hiq->rptr_report, 4);
	return hiq->loaded ? 0 : -EINVAL;
}

struct v9_mqd *sim_hiq_mqd(struct sim_gpu *gpu, unsigned int xcc)
{
	if (!gpu->hiq.loaded || xcc >= gpu->n_xcc)
		return NULL;
	return sim_gart(gpu, gpu->hiq.mqd[xcc], sizeof(struct v9_mqd));
}

static void bad_packet(struct sim_gpu *gpu, u32 word, u64 where)
{
	gpu->count.bad++;
	sim_log(gpu, SIM_EV_BAD, 0, 0, word, where);
}

/* ---- run lists ---- */

/* Both forms begin alike. The later one brings the debugger's register along. */
static void map_process(struct sim_gpu *gpu, const u32 *packet, u32 dwords, struct sim_queue *ret)
{
	const struct pm4_mes_map_process *p = (const void *)packet;
	const struct pm4_mes_map_process_aldebaran *later = (const void *)packet;
	u32 debug = dwords == sizeof(*later) / 4 ? later->spi_gdbg_per_vmid_cntl : 0;

	ret->pasid = p->bitfields2.pasid;
	ret->debug_vmid = p->bitfields2.new_debug ? p->bitfields2.debug_vmid : 0;
	sim_count_new_proc(gpu, ret->pasid);
	gpu->count.map_process++;
	sim_log(gpu, SIM_EV_MAP_PROCESS, ret->pasid, 0, p->bitfields2.process_quantum, debug);
}

static void map_queue(struct sim_gpu *gpu, const struct pm4_mes_map_queues *p,
		      const struct sim_queue *process)
{
	struct sim_queue *q = sim_queue_add(gpu);
	u32 engine = p->bitfields2.engine_sel, bank = p->bitfields2.extended_engine_sel;

	if (!q) {
		bad_packet(gpu, p->ordinal1, gpu->n_queues);
		return;
	}
	q->pasid = process->pasid;
	q->debug_vmid = process->debug_vmid;
	q->doorbell = p->bitfields3.doorbell_offset;
	q->mqd = sim_pair(p->mqd_addr_hi, p->mqd_addr_lo);
	q->wptr = sim_pair(p->wptr_addr_hi, p->wptr_addr_lo);
	q->kind = engine || bank ? SIM_SDMA : SIM_AQL; /* its descriptor knows better */
	q->engine = bank == extended_engine_sel__mes_map_queues__sdma8_to_15_sel ? engine + 8 :
		    bank							 ? engine :
			   engine - engine_sel__mes_map_queues__sdma0_vi;
	gpu->count.map_queues++;
	sim_count_proc(gpu, q->pasid)->maps++;
	sim_log(gpu, SIM_EV_MAP_QUEUE, q->pasid, q->doorbell, q->mqd, q->kind);
}

/* A list that ends in a RUN_LIST of itself tells the firmware to go round. */
static void run_list(struct sim_gpu *gpu, const struct pm4_mes_runlist *p, u64 now)
{
	u64 address = sim_pair(p->ib_base_hi, p->ordinal2 & ~3u);
	u32 dwords = p->bitfields4.ib_size, at = 0;
	const u32 *ib = sim_gart(gpu, address, dwords * 4);
	struct sim_queue process = { 0 }; /* what its queues have in common */
	struct pm4 pm4;

	gpu->count.runlists++;
	sim_log(gpu, SIM_EV_RUNLIST, 0, 0, dwords, p->bitfields4.process_cnt);
	if (!ib || gpu->n_queues) {
		bad_packet(gpu, p->ordinal1, address);
		return;
	}
	gpu->chained = false;
	gpu->window = 0;
	for (; at < dwords && parse_header(ib[at], &pm4); at += pm4.dwords) {
		if (pm4.opcode == IT_MAP_PROCESS)
			map_process(gpu, &ib[at], pm4.dwords, &process);
		else if (pm4.opcode == IT_MAP_QUEUES)
			map_queue(gpu, (const void *)&ib[at], &process);
		else if (pm4.opcode == IT_RUN_LIST)
			gpu->chained = true;
		else
			bad_packet(gpu, ib[at], at);
	}
	sim_slots_fill(gpu, now);
}

/* ---- the ring ---- */

static void set_resources(struct sim_gpu *gpu, const struct pm4_mes_set_resources *p)
{
	gpu->vmids = p->bitfields2.vmid_mask;
	gpu->slots = p->queue_mask_lo; /* the second half is MEC2's */
	gpu->count.set_resources++;
	sim_log(gpu, SIM_EV_SET_RESOURCES, 0, 0, p->bitfields2.vmid_mask,
		sim_pair(p->queue_mask_hi, p->queue_mask_lo));
}

static void unmap_queues(struct sim_gpu *gpu, const struct pm4_mes_unmap_queues *p, u64 now)
{
	struct sim_preempt what = {
		.reset = p->bitfields2.action == action__mes_unmap_queues__reset_queues,
	};

	gpu->count.unmaps++;
	switch (p->bitfields2.queue_sel) {
	case queue_sel__mes_unmap_queues__perform_request_on_specified_queues:
		what.select = SIM_BY_DOORBELL;
		what.n_doorbells = min_t(u32, p->bitfields2.num_queues, 4);
		what.doorbells[0] = p->bitfields3b.doorbell_offset0;
		what.doorbells[1] = p->bitfields4.doorbell_offset1;
		what.doorbells[2] = p->bitfields5.doorbell_offset2;
		what.doorbells[3] = p->bitfields6.doorbell_offset3;
		break;
	case queue_sel__mes_unmap_queues__perform_request_on_pasid_queues:
		what.select = SIM_BY_PASID;
		what.pasid = p->bitfields3a.pasid;
		break;
	default: /* all, or all non-static: we know no static ones */
		what.select = SIM_ALL;
	}
	/* Whether firmware that goes round a list leaves out who was taken off it nobody knows. */
	if (what.select != SIM_ALL && !what.reset && gpu->chained)
		bad_packet(gpu, p->ordinal1, p->ordinal2);
	sim_preempt_begin(gpu, &what, now);
}

static void query_status(struct sim_gpu *gpu, const struct pm4_mes_query_status *p)
{
	u64 *fence = sim_gart(gpu, sim_pair(p->addr_hi, p->addr_lo), sizeof(*fence));

	gpu->count.queries++;
	sim_log(gpu, SIM_EV_QUERY, 0, 0, sim_pair(p->data_hi, p->data_lo), 0);
	if (fence)
		smp_store_release(fence, /* the packets before it are done */
				  sim_pair(p->data_hi, p->data_lo));
	else
		bad_packet(gpu, p->ordinal1, p->addr_lo);
	wake_up_all(&gpu->changed);
}

/* The only register amdkfd writes this way is CP_IQ_WAIT_TIME2. */
static void write_data(struct sim_gpu *gpu, const struct pm4_mec_write_data_mmio *p)
{
	gpu->count.write_data++;
	gpu->count.last_reg = p->bitfields3.dst_mmreg_addr;
	gpu->count.last_value = p->data;
	gpu->iq_wait = p->data;
	sim_log(gpu, SIM_EV_WRITE, 0, 0, p->bitfields3.dst_mmreg_addr, p->data);
}

static void execute(struct sim_gpu *gpu, const void *packet, u32 opcode, u64 now)
{
	switch (opcode) {
	case IT_SET_RESOURCES:
		set_resources(gpu, packet);
		break;
	case IT_RUN_LIST:
		run_list(gpu, packet, now);
		break;
	case IT_UNMAP_QUEUES:
		unmap_queues(gpu, packet, now);
		break;
	case IT_QUERY_STATUS:
		query_status(gpu, packet);
		break;
	case IT_WRITE_DATA:
		write_data(gpu, packet);
		break;
	case IT_NOP:
		gpu->count.nops++;
		break;
	default:
		bad_packet(gpu, opcode, gpu->hiq.read);
	}
}

static bool one_packet(struct sim_gpu *gpu, u64 written, u64 now)
{
	struct sim_hiq *hiq = &gpu->hiq;
	const u32 *ring = sim_gart(gpu, hiq->ring, hiq->ring_dw * 4);
	u32 *report = sim_gart(gpu, hiq->rptr_report, 4);
	u32 packet[MAX_PACKET_DW] = { 0 }, i;
	struct pm4 pm4;

	if (!ring || !report)
		return false;
	/* What no firmware understands hangs it: so works amdkfd's own debugfs file hang_hws. */
	if (!parse_header(ring[hiq->read % hiq->ring_dw], &pm4) || pm4.dwords > MAX_PACKET_DW ||
	    hiq->read + pm4.dwords > written) {
		bad_packet(gpu, ring[hiq->read % hiq->ring_dw], hiq->read);
		gpu->knobs.dead = true;
		return false;
	}
	for (i = 0; i < pm4.dwords; i++)
		packet[i] = ring[(hiq->read + i) % hiq->ring_dw];
	WRITE_ONCE(hiq->read, hiq->read + pm4.dwords);
	execute(gpu, packet, pm4.opcode, now);
	/* The ring may be written again once this is seen. */
	smp_store_release(report, (u32)(hiq->read % hiq->ring_dw));
	return true;
}

bool sim_hiq_has_orders(const struct sim_gpu *gpu)
{
	return READ_ONCE(gpu->preempt.phase) != SIM_PREEMPT_NONE ||
	       READ_ONCE(gpu->hiq.read) < sim_doorbell(gpu, gpu->hiq.doorbell);
}

bool sim_hiq_is_awaited(struct sim_gpu *gpu)
{
	const u32 dwords = sizeof(struct pm4_mes_query_status) / sizeof(u32);
	struct pm4 pm4 = { 0 };
	const u32 *ring;
	u64 written;

	mutex_lock(&gpu->lock);
	ring = gpu->hiq.loaded ? sim_gart(gpu, gpu->hiq.ring, gpu->hiq.ring_dw * 4) : NULL;
	written = ring ? sim_doorbell(gpu, gpu->hiq.doorbell) : 0;
	if (written >= dwords)
		parse_header(ring[(written - dwords) % gpu->hiq.ring_dw], &pm4);
	mutex_unlock(&gpu->lock);
	return pm4.opcode == IT_QUERY_STATUS && pm4.dwords == dwords;
}

void sim_hiq_step(struct sim_gpu *gpu, u64 now)
{
	u64 written;

	if (!gpu->hiq.loaded)
		return;
	written = sim_doorbell(gpu, gpu->hiq.doorbell);
	while (gpu->hiq.read < written && !gpu->knobs.dead &&
	       gpu->preempt.phase == SIM_PREEMPT_NONE) {
		if (!one_packet(gpu, written, now))
			break;
	}
}
