/* SPDX-License-Identifier: MIT */
/* Queue descriptors and runlist packets of gfx9 as words. */
#include <string.h>

#include "abi/mqd_v9.h"
#include "gpu/model/driver.h"

/* Linux 6.12 kfd_mqd_manager_v9.c, init_mqd() and update_mqd() */
#define MQD_HEADER 0xc0310800u
#define MQD_PIPELINESTAT 0x0b
#define MQD_CU_MASK_SE0 0x17
#define MQD_EOP_BASE_LO 0xa5
#define MQD_EOP_CONTROL 0xa7
#define MQD_STRIDE 0xe2
#define PQ_RPTR_BLOCK_SIZE (5u << 8)
#define PQ_UNORD_DISPATCH (1u << 28)
#define PQ_NO_UPDATE_RPTR (1u << 27)
#define PQ_SLOT_BASED_WPTR (2u << 18)
#define PQ_QUEUE_FULL_EN (1u << 14)
#define PQ_WPP_CLAMP_EN (1u << 13)
#define DOORBELL_OFFSET_SHIFT 2
#define DOORBELL_BIF_DROP (1u << 1)

#define PM4_HEADER(op, dwords) (0xc0000000u | ((dwords) - 2) << 16 | (op) << 8)
#define MAP_PROCESS_DWORDS 21 /* as on gfx90a and later; 15 before */
#define MAP_PROCESS_DWORDS_OLD 15
#define MAP_QUEUES_DWORDS 7
#define RUN_LIST_DWORDS 4
#define MAP_PROCESS 0xa1u
#define MAP_QUEUES 0xa2u
#define RUN_LIST 0xa5u
#define PROCESS_QUANTUM 10u

static uint32_t log2_of(uint32_t n)
{
	return n ? 31 - (uint32_t)__builtin_clz(n) : 0;
}

static uint32_t pq_control(const struct model_queue *q, uint32_t xcc)
{
	uint32_t v = PQ_RPTR_BLOCK_SIZE | PQ_UNORD_DISPATCH | (log2_of(q->ring_bytes / 4) - 1);

	if (!q->aql)
		return v;
	v |= PQ_SLOT_BASED_WPTR | PQ_QUEUE_FULL_EN | PQ_WPP_CLAMP_EN;
	return xcc ? v | PQ_NO_UPDATE_RPTR : v;
}

static uint32_t pipe_priority(uint32_t priority)
{
	if (priority < 7)
		return 0;
	return priority < 11 ? 1 : 2;
}

static void put64(uint32_t *at, uint64_t value)
{
	at[0] = (uint32_t)value;
	at[1] = (uint32_t)(value >> 32);
}

/* VMIDs in the order the processes have queues on the GPU: the firmware's choice, assumed. */
static uint32_t vmid_of(const struct model_queue *q)
{
	uint32_t vmid = MODEL_FIRST_VMID;

	for (const struct model_kproc *k = q->owner->next; k; k = k->next)
		vmid += k->pdds[q->gpu->index].queue_count > 0;
	return MODEL_FIRST_VMID + (vmid - MODEL_FIRST_VMID) % q->gpu->m->config.chip->n_vmid;
}

static void fill_saved(const struct model_queue *q, uint32_t xcc, uint32_t *mqd)
{
	struct hw_saved_state saved;
	uint32_t shift = q->aql ? 4 : 0; /* the registers count dwords */

	hw_queue_saved_state(q->hw, xcc, &saved);
	mqd[MQD9_RPTR] = (uint32_t)(q->saved_read << shift);
	put64(mqd + MQD9_WPTR_LO, q->saved_write << shift);
	put64(mqd + MQD9_CTX_SAVE_LO, q->cwsr_base + (uint64_t)xcc * q->cwsr_bytes);
	mqd[MQD9_CTL_STACK_SIZE] = q->ctl_stack_bytes;
	mqd[MQD9_CTL_STACK_OFFSET] = q->ctl_stack_bytes - saved.ctl_stack_used;
	mqd[MQD9_WG_STATE_OFFSET] = q->ctl_stack_bytes + saved.wave_bytes;
	mqd[MQD9_CTX_SAVE_SIZE] = q->cwsr_bytes;
}

/* Which compute unit a mask bit means is not modelled; the words are kept as given. */
static void fill_cu_mask(const struct model_queue *q, uint32_t *mqd)
{
	for (uint32_t i = 0; i < 4; i++)
		mqd[MQD_CU_MASK_SE0 + i] = q->cu_masked ? q->cu_mask[i] : UINT32_MAX;
}

void model_fill_mqd(const struct model_queue *q, uint32_t xcc, uint32_t *mqd)
{
	if (q->type != QUEUE_COMPUTE) {
		put64(mqd + 1, q->ring_base >> 8); /* sdmax_rlcx_rb_base */
		return;
	}
	mqd[0] = MQD_HEADER;
	mqd[MQD_PIPELINESTAT] = 1;
	fill_cu_mask(q, mqd);
	mqd[MQD9_ACTIVE] = q->is_active;
	mqd[MQD9_VMID] = vmid_of(q);
	mqd[MQD9_PIPE_PRIORITY] = pipe_priority(q->priority);
	mqd[MQD9_QUEUE_PRIORITY] = q->priority;
	put64(mqd + MQD9_RING_BASE_LO, q->ring_base >> 8);
	put64(mqd + MQD9_RPTR_ADDR_LO, q->read_ptr);
	put64(mqd + MQD9_WPTR_ADDR_LO, q->write_ptr);
	mqd[MQD9_DOORBELL] = q->doorbell_id << (DOORBELL_OFFSET_SHIFT + 1) |
			     (q->aql ? DOORBELL_BIF_DROP : 0);
	mqd[MQD9_PQ_CONTROL] = pq_control(q, xcc);
	put64(mqd + MQD_EOP_BASE_LO, q->eop_base >> 8);
	mqd[MQD_EOP_CONTROL] = q->eop_bytes ? MIN(10u, log2_of(q->eop_bytes / 4) - 1) : 0;
	mqd[MQD_STRIDE] = q->ctl_stack_bytes + PAGE_BYTES;
	if (q->cwsr_base)
		fill_saved(q, xcc, mqd);
}

/* ---- the runlist ---- */

static size_t put_process(uint32_t *at, const struct model_gpu *gpu, const struct model_kproc *k)
{
	size_t n = model_gpu_debugs_per_vmid(gpu) ? MAP_PROCESS_DWORDS : MAP_PROCESS_DWORDS_OLD;

	memset(at, 0, n * sizeof(*at));
	at[0] = PM4_HEADER(MAP_PROCESS, (uint32_t)n);
	at[1] = k->pasid | PROCESS_QUANTUM << 25;
	return n;
}

static size_t put_queue(uint32_t *at, const struct model_queue *q)
{
	uint32_t engine = q->type == QUEUE_COMPUTE ? 0 : 2 + (q->sdma_engine & 1);

	at[0] = PM4_HEADER(MAP_QUEUES, MAP_QUEUES_DWORDS);
	at[1] = 1u << 4 /* slots are the firmware's choice */ | engine << 26 | 1u << 29;
	at[2] = q->doorbell_id << 3;
	put64(at + 3,
	      0xff00000000ull + ((uint64_t)q->owner->pasid << 24) + ((uint64_t)q->id << 12));
	put64(at + 5, q->write_ptr);
	return MAP_QUEUES_DWORDS;
}

bool model_gpu_oversubscribed(const struct model_gpu *gpu)
{
	const struct model_chip *chip = gpu->m->config.chip;
	uint32_t compute = 0, gws = 0;

	for (const struct model_kproc *k = gpu->m->kprocs; k; k = k->next)
		for (const struct model_queue *q = k->queues; q; q = q->next)
			if (q->gpu == gpu && q->is_active) {
				compute += q->type == QUEUE_COMPUTE;
				gws += q->is_gws;
			}
	return model_gpu_processes(gpu) > chip->n_vmid || compute > chip->n_cp_queues || gws > 1;
}

void model_dump_runlist(const struct model_gpu *gpu, FILE *out)
{
	size_t room = (size_t)model_gpu_processes(gpu) * MAP_PROCESS_DWORDS +
		      (size_t)model_gpu_active(gpu) * MAP_QUEUES_DWORDS + RUN_LIST_DWORDS;
	_cleanup_free_ uint32_t *ib = calloc(room, sizeof(*ib));
	size_t n = 0;

	if (!ib)
		return;
	for (const struct model_kproc *k = gpu->m->kprocs; k; k = k->next) {
		if (!k->pdds[gpu->index].queue_count)
			continue;
		n += put_process(ib + n, gpu, k);
		for (const struct model_queue *q = k->queues; q; q = q->next)
			if (q->gpu == gpu && q->is_active)
				n += put_queue(ib + n, q);
	}
	if (model_gpu_oversubscribed(gpu)) {
		ib[n] = PM4_HEADER(RUN_LIST, RUN_LIST_DWORDS);
		ib[n + 3] = (uint32_t)(n + RUN_LIST_DWORDS) | 1u << 20 /* chain */;
		n += RUN_LIST_DWORDS;
	}
	model_hex_dump(out, "  ", ib, n);
}
