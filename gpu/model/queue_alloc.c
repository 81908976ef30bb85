/* SPDX-License-Identifier: MIT */
/* What a queue needs besides its descriptor: ids, engines, doorbells, buffers of the right size. */
#include <errno.h>

#include "gpu/model/driver.h"

#define SDMA_DOORBELL_FIRST 0x100u /* of all layouts but the first */
#define SDMA_DOORBELL_RANGE 10u
#define SDMA_DOORBELL_ALIGN 4u
#define DOORBELL_MIRROR 512u

#define CTL_STACK_BYTES_PER_WAVE 8u
#define CTL_STACK_BYTES_PER_WAVE_10 12u /* gfx10 and later */
#define DEBUG_BYTES_PER_WAVE 32u
#define ALIGN_UP(n, to) (((n) + (to)-1) / (to) * (to))

/* The first free bit of those from @first on, @step apart; -1: there is none. */
static int take_bit(uint8_t *map, uint32_t first, uint32_t step, uint32_t n)
{
	for (uint32_t i = first; i < n; i += step) {
		if (map[i / 8] & (1u << (i % 8)))
			continue;
		map[i / 8] |= (uint8_t)(1u << (i % 8));
		return (int)i;
	}
	return -1;
}

int model_bit_take(uint8_t *map, size_t n)
{
	return take_bit(map, 0, 1, (uint32_t)n);
}

void model_bit_clear(uint8_t *map, size_t bit)
{
	map[bit / 8] &= (uint8_t) ~(1u << (bit % 8));
}

/* The driver counts the first two of all engines as PCIe ones, the rest as XGMI. */
uint32_t model_sdma_engines(const struct model_chip *chip)
{
	return chip->xgmi ? MIN(chip->n_sdma, 2u) : chip->n_sdma;
}

uint32_t model_xgmi_engines(const struct model_chip *chip)
{
	return chip->n_sdma - model_sdma_engines(chip);
}

/* kfd_device_info_set_sdma_info() of Linux 6.12 kfd_device.c */
uint32_t model_sdma_queues(const struct model_chip *chip)
{
	return chip->gfx_target_version == 90000 ? 2 : 8;
}

/* kfd_queue_ctx_save_restore_size() of Linux 6.12 kfd_queue.c */
void model_cwsr_sizes(const struct model_chip *chip, struct cwsr_sizes *ret)
{
	bool gfx9 = chip->gfx_target_version < 100100;
	uint32_t waves =
		gfx9 ? MIN(chip->cu_per_xcc * 40, chip->n_engines * 512) : chip->cu_per_xcc * 32;
	uint32_t header = sizeof(struct kfd_context_save_area_header);
	uint32_t stack = waves * (gfx9 ? CTL_STACK_BYTES_PER_WAVE : CTL_STACK_BYTES_PER_WAVE_10);

	ret->waves = waves;
	ret->ctl_stack = ALIGN_UP(header + stack + 8, PAGE_BYTES);
	ret->cwsr =
		ret->ctl_stack + ALIGN_UP(chip->cu_per_xcc * chip->cwsr_bytes_per_cu, PAGE_BYTES);
	ret->debug = ALIGN_UP(waves * DEBUG_BYTES_PER_WAVE, 64u);
}

int model_sdma_take(struct model_queue *q, uint32_t ioc_type)
{
	const struct model_chip *chip = q->gpu->m->config.chip;
	uint32_t n_pcie = model_sdma_engines(chip);
	bool chosen = ioc_type == KFD_IOC_QUEUE_TYPE_SDMA_BY_ENG_ID;
	bool xgmi = chosen ? q->sdma_engine >= n_pcie : ioc_type == KFD_IOC_QUEUE_TYPE_SDMA_XGMI;
	uint32_t n = xgmi ? model_xgmi_engines(chip) : n_pcie;
	uint32_t first = xgmi ? n_pcie : 0;
	uint8_t *map = xgmi ? q->gpu->xgmi_used : q->gpu->sdma_used;
	uint32_t n_slots;
	int id;

	n_slots = n * model_sdma_queues(chip);
	id = chosen ? take_bit(map, q->sdma_engine - first, n, n_slots) :
		      model_bit_take(map, n_slots);
	if (id < 0)
		return -ENOMEM;
	q->type = xgmi ? QUEUE_SDMA_XGMI : QUEUE_SDMA;
	q->sdma_id = (uint32_t)id;
	q->sdma_engine = first + q->sdma_id % n;
	q->sdma_queue = q->sdma_id / n;
	return 0;
}

void model_sdma_give(struct model_queue *q)
{
	if (q->type != QUEUE_COMPUTE)
		model_bit_clear(q->type == QUEUE_SDMA_XGMI ? q->gpu->xgmi_used : q->gpu->sdma_used,
				q->sdma_id);
}

/* Static: by engine and queue. Since 6.12.115 gfx942 keeps to blocks of 32 bytes. */
static uint32_t sdma_doorbell(const struct model_queue *q)
{
	uint32_t base = SDMA_DOORBELL_FIRST + q->sdma_engine * SDMA_DOORBELL_RANGE;

	if (q->gpu->m->config.chip->gfx_target_version / 100 == 904)
		base = ALIGN_UP(base, SDMA_DOORBELL_ALIGN);
	return base + (q->sdma_queue & 1) * DOORBELL_MIRROR + (q->sdma_queue >> 1);
}

int model_doorbell_take(struct model_queue *q)
{
	int id;

	if (q->type != QUEUE_COMPUTE) {
		q->doorbell_id = sdma_doorbell(q);
		return 0;
	}
	id = model_bit_take(q->pdd->doorbells, MAX_QUEUES_PER_PROCESS);
	if (id < 0)
		return -EBUSY;
	q->doorbell_id = (uint32_t)id;
	return 0;
}

void model_doorbell_give(struct model_queue *q)
{
	if (q->type == QUEUE_COMPUTE)
		model_bit_clear(q->pdd->doorbells, q->doorbell_id);
}

bool model_mapped_exactly(const struct mem_space *mm, uint64_t va, uint64_t bytes)
{
	uint64_t start = va & ~(uint64_t)(PAGE_BYTES - 1);
	uint64_t whole = bytes & ~(uint64_t)(PAGE_BYTES - 1);

	if (!start || !mem_covers(mm, start, whole ? whole : PAGE_BYTES))
		return false;
	if (mem_covers(mm, start - 1, 2))
		return false;
	return !whole || !mem_covers(mm, start, whole + 1);
}
