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
void model_hex_dump(FILE *out, const char *indent, const uint32_t *words, size_t n)
{
	size_t margin = strlen(indent);
	char row[32 + 9 * WORDS_PER_ROW];

	memcpy(row, indent, margin);
	for (size_t i = 0; i < n; i += WORDS_PER_ROW) {
		char *at = put_hex(row + margin, (uint32_t)(i * sizeof(*words)));

		*at++ = ':';
		for (size_t j = i; j < n && j < i + WORDS_PER_ROW; j++)
			at = put_word(at, words[j]);
		*at++ = '\n';
		fwrite_unlocked(row, 1, (size_t)(at - row), out);
	}
}

/* ---- mqds ---- */

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
				model_fill_mqd(q, xcc, mqd);
			model_hex_dump(out, "    ", mqd,
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

static void dump_regs(FILE *out, uint32_t addr, const uint32_t *values, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (i % WORDS_PER_ROW == 0)
			fprintf(out, "%s    %08x: %08x", i ? "\n" : "", addr + i * 4, values[i]);
		else
			fprintf(out, " %08x", values[i]);
	}
}

/* The k-th compute queue on hardware: the firmware chooses slots, here in that order. */
static const struct model_queue *nth_on(const struct model_gpu *gpu, uint32_t k)
{
	for (const struct model_kproc *p = gpu->m->kprocs; p; p = p->next)
		for (const struct model_queue *q = p->queues; q; q = q->next)
			if (q->gpu == gpu && q->type == QUEUE_COMPUTE && hw_queue_on(q->hw) && !k--)
				return q;
	return NULL;
}

/* Live registers: the descriptor, but with the pointers of now. */
static void fill_hqd(const struct model_queue *q, uint32_t xcc, uint32_t *regs)
{
	uint32_t mqd[MQD9_DWORDS] = { 0 };
	uint32_t shift = q->aql ? 4 : 0; /* registers count dwords */
	uint64_t write = hw_queue_write_index(q->hw) << shift;

	model_fill_mqd(q, xcc, mqd);
	mqd[MQD9_ACTIVE] = 1;
	mqd[MQD9_RPTR] = (uint32_t)(hw_queue_read_index(q->hw) << shift);
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
			dump_regs(out, HQD_FIRST_REG, regs, HQD_REGS);
			fputc('\n', out);
		}
	}
}

static void print_sdma_slots(const struct model_gpu *gpu, FILE *out)
{
	static const struct {
		uint32_t offset, n;
	} ranges[] = { { 0, 19 }, { 0xa0, 6 }, { 0xbc, 7 }, { 0x100, 12 } };
	const struct model_chip *chip = gpu->m->config.chip;
	uint32_t engines = model_sdma_engines(chip) + model_xgmi_engines(chip);
	const uint32_t zero[19] = { 0 };

	for (uint32_t engine = 0; engine < engines; engine++) {
		for (uint32_t rlc = 0; rlc < model_sdma_queues(chip); rlc++) {
			fprintf(out, "  SDMA Engine %u, RLC %u\n", engine, rlc);
			for (size_t i = 0; i < ARRAY_SIZE(ranges); i++) {
				dump_regs(out, SDMA_FIRST_REG + ranges[i].offset, zero,
					  ranges[i].n);
				fputc('\n', out);
			}
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
			dump_regs(out, HQD_FIRST_REG, zero, HQD_REGS);
			fputc('\n', out);
			print_slots(&m->gpus[i], xcc, out);
		}
		print_sdma_slots(&m->gpus[i], out);
	}
}

/* ---- the tree ---- */

static void print_rls(struct model *m, FILE *out)
{
	for (uint32_t i = 0; i < m->config.n_gpus; i++) {
		fprintf(out, "Node %u, gpu_id %x:\n", i + 1, m->gpus[i].id);
		if (m->gpus[i].active_runlist)
			model_dump_runlist(&m->gpus[i], out);
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
