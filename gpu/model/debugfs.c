/* SPDX-License-Identifier: MIT */
/* /sys/kernel/debug/kfd: descriptors, hardware queue slots and runlists, as the driver's dumps. */
#include <errno.h>
#include <string.h>

#include "abi/mqd_v9.h"
#include "gpu/model/driver.h"

#define WORDS_PER_ROW 8
#define HQD_REGS 56
#define HQD_FIRST_REG 0xc914u /* CP_MQD_BASE_ADDR in bytes */
#define PIPES 4u
#define QUEUES_PER_PIPE 8u
#define SDMA_FIRST_REG 0x5180u

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

#define PM4_HEADER(op, dwords) (0xc0000000u | ((dwords)-2) << 16 | (op) << 8)
#define MAP_PROCESS_DWORDS 21 /* as on gfx90a and later; 15 before */
#define MAP_PROCESS_DWORDS_OLD 15
#define MAP_QUEUES_DWORDS 7
#define RUN_LIST_DWORDS 4
#define MAP_PROCESS 0xa1u
#define MAP_QUEUES 0xa2u
#define RUN_LIST 0xa5u
#define PROCESS_QUANTUM 10u

static char *put_hex(char *at, uint32_t value)
{
	for (int shift = 28; shift >= 0; shift -= 4)
		*at++ = "0123456789abcdef"[value >> shift & 0xf];
	return at;
}

static char *put_word(char *at, uint32_t value)
{
	static const char zero[] = " 00000000"; /* what most of a descriptor is */

	if (value) {
		*at = ' ';
		return put_hex(at + 1, value);
	}
	memcpy(at, zero, sizeof(zero) - 1);
	return at + sizeof(zero) - 1;
}

/* By hand: a dump of all descriptors is the bulk of what a short-lived command costs. */
static void hex_dump(FILE *out, const char *indent, uint32_t addr, const uint32_t *words, size_t n)
{
	size_t margin = strlen(indent);
	char row[32 + 9 * WORDS_PER_ROW];

	memcpy(row, indent, margin);
	for (size_t i = 0; i < n; i += WORDS_PER_ROW) {
		char *at = put_hex(row + margin, addr + (uint32_t)(i * sizeof(*words)));

		*at++ = ':';
		for (size_t j = i; j < n && j < i + WORDS_PER_ROW; j++)
			at = put_word(at, words[j]);
		*at++ = '\n';
		fwrite_unlocked(row, 1, (size_t)(at - row), out);
	}
}

/* ---- mqds ---- */

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
	struct hw_saved_state saved = hw_see(q->hw)->left[xcc];
	uint32_t shift = q->aql ? 4 : 0; /* the registers count dwords */

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

static void fill_mqd(const struct model_queue *q, uint32_t xcc, uint32_t *mqd)
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
	mqd[MQD9_PIPE_PRIORITY] = hw_pipe_of(q->priority);
	mqd[MQD9_QUEUE_PRIORITY] = q->priority;
	put64(mqd + MQD9_RING_BASE_LO, q->ring_base >> 8);
	put64(mqd + MQD9_RPTR_ADDR_LO, q->read_ptr);
	put64(mqd + MQD9_WPTR_ADDR_LO, q->write_ptr);
	mqd[MQD9_DOORBELL] =
		q->doorbell_id << (DOORBELL_OFFSET_SHIFT + 1) | (q->aql ? DOORBELL_BIF_DROP : 0);
	mqd[MQD9_PQ_CONTROL] = pq_control(q, xcc);
	put64(mqd + MQD_EOP_BASE_LO, q->eop_base >> 8);
	mqd[MQD_EOP_CONTROL] = q->eop_bytes ? MIN(10u, log2_of(q->eop_bytes / 4) - 1) : 0;
	mqd[MQD_STRIDE] = q->ctl_stack_bytes + PAGE_BYTES;
	if (q->cwsr_base)
		fill_saved(q, xcc, mqd);
}

static void dump_mqds(const struct model_kproc *k, FILE *out)
{
	uint32_t mqd[MQD9_DWORDS];
	uint32_t n_xcc = 1;

	for (const struct model_queue *q = k->queues; q; q = q->next) {
		bool compute = q->type == QUEUE_COMPUTE;

		fprintf(out, "  %s queue on device %x\n", compute ? "Compute" : "SDMA", q->gpu->id);
		/* The driver does not go back to 1 for an SDMA queue that follows. */
		if (compute)
			n_xcc = q->gpu->m->config.chip->n_xcc;
		for (uint32_t xcc = 0; xcc < n_xcc; xcc++) {
			memset(mqd, 0, sizeof(mqd));
			if (compute || xcc == 0)
				fill_mqd(q, xcc, mqd);
			hex_dump(out, "    ", 0, mqd,
				 compute ? MQD9_DWORDS : MQD_SDMA_BYTES / sizeof(mqd[0]));
		}
	}
}

static void print_mqds(struct model *m, FILE *out)
{
	for (const struct model_kproc *k = m->kprocs; k; k = k->next) {
		fprintf(out, "Process %d PASID 0x%x:\n", k->proc->pid, k->pasid);
		dump_mqds(k, out);
	}
}

/* ---- hqds ---- */

/* The k-th compute queue on hardware: the firmware chooses slots, here in that order. */
static const struct model_queue *nth_on(const struct model_gpu *gpu, uint32_t k)
{
	for (const struct model_queue *q = NULL; (q = model_next_on(gpu, q));)
		if (q->type == QUEUE_COMPUTE && hw_see(q->hw)->on && !k--)
			return q;
	return NULL;
}

/* Live registers: the descriptor, but with the pointers of now. */
static void fill_hqd(const struct model_queue *q, uint32_t xcc, uint32_t *regs)
{
	uint32_t mqd[MQD9_DWORDS] = { 0 };
	uint32_t shift = q->aql ? 4 : 0; /* registers count dwords */
	uint64_t write = hw_see(q->hw)->write << shift;

	fill_mqd(q, xcc, mqd);
	mqd[MQD9_ACTIVE] = 1;
	mqd[MQD9_RPTR] = (uint32_t)(hw_see(q->hw)->read << shift);
	mqd[MQD9_WPTR_LO] = (uint32_t)write;
	mqd[MQD9_WPTR_HI] = (uint32_t)(write >> 32);
	memcpy(regs, mqd + MQD9_HQD_FIRST, HQD_REGS * sizeof(*regs));
}

static void print_slots(const struct model_gpu *gpu, uint32_t xcc, FILE *out)
{
	uint32_t usable = MIN(gpu->m->config.chip->n_cp_queues / PIPES, QUEUES_PER_PIPE);
	uint32_t k = 0;

	for (uint32_t pipe = 0; pipe < PIPES; pipe++) {
		for (uint32_t queue = QUEUES_PER_PIPE - usable; queue < QUEUES_PER_PIPE; queue++) {
			const struct model_queue *q = nth_on(gpu, k++);
			uint32_t regs[HQD_REGS] = { 0 };

			if (q)
				fill_hqd(q, xcc, regs);
			fprintf(out, " Inst %u,  CP Pipe %u, Queue %u\n", xcc, pipe, queue);
			hex_dump(out, "    ", HQD_FIRST_REG, regs, HQD_REGS);
		}
	}
}

static void print_sdma_slots(const struct model_gpu *gpu, FILE *out)
{
	static const struct {
		uint32_t offset, n;
	} ranges[] = { { 0, 19 }, { 0xa0, 6 }, { 0xbc, 7 }, { 0x100, 12 } };
	const struct model_chip *chip = gpu->m->config.chip;
	const uint32_t zero[19] = { 0 };

	for (uint32_t engine = 0; engine < chip->n_sdma; engine++) {
		for (uint32_t rlc = 0; rlc < model_sdma_queues(chip); rlc++) {
			fprintf(out, "  SDMA Engine %u, RLC %u\n", engine, rlc);
			for (size_t i = 0; i < ARRAY_SIZE(ranges); i++)
				hex_dump(out, "    ", SDMA_FIRST_REG + ranges[i].offset, zero,
					 ranges[i].n);
		}
	}
}

static void print_hqds(struct model *m, FILE *out)
{
	const uint32_t zero[HQD_REGS] = { 0 };

	for (uint32_t i = 0; i < m->config.n_gpus; i++) {
		fprintf(out, "Node %u, gpu_id %x:\n", i + 1, m->gpus[i].id);
		for (uint32_t xcc = 0; xcc < m->config.chip->n_xcc; xcc++) {
			fprintf(out, "   Inst %u, HIQ on MEC 2 Pipe 0 Queue 0\n", xcc);
			hex_dump(out, "    ", HQD_FIRST_REG, zero, HQD_REGS);
			print_slots(&m->gpus[i], xcc, out);
		}
		print_sdma_slots(&m->gpus[i], out);
	}
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

static void dump_runlist(const struct model_gpu *gpu, FILE *out)
{
	struct gpu_counts count = model_gpu_count(gpu);
	size_t room = (size_t)count.processes * MAP_PROCESS_DWORDS +
		      (size_t)count.active * MAP_QUEUES_DWORDS + RUN_LIST_DWORDS;
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
	hex_dump(out, "  ", 0, ib, n);
}

static void print_rls(struct model *m, FILE *out)
{
	for (uint32_t i = 0; i < m->config.n_gpus; i++) {
		fprintf(out, "Node %u, gpu_id %x:\n", i + 1, m->gpus[i].id);
		if (m->gpus[i].active_runlist)
			dump_runlist(&m->gpus[i], out);
		else
			fputs("  No active runlist\n", out);
	}
}

void model_print_debugfs(struct tree *t, struct model *m)
{
	if (model_at_file(t, "hang_hws"))
		t->result = -EACCES; /* for writing only */
	if (model_at_file(t, "hqds"))
		print_hqds(m, t->out);
	if (model_at_file(t, "mem_limit"))
		t->result = -EACCES;
	if (model_at_file(t, "mqds"))
		print_mqds(m, t->out);
	if (model_at_file(t, "rls"))
		print_rls(m, t->out);
}
