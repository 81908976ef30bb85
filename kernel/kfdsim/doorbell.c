/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The doorbell aperture: ordinary pages that processes write and the engine reads.
 *
 * Hardware sees each write; we see the last value, when the engine gets round to it. That there was
 * one is seen always: what a queue's doorbell held is taken out, as a process that writes the same
 * value again rings, too. Nobody may read a doorbell back.
 */
#include <linux/gfp.h>
#include <linux/io.h>
#include <linux/log2.h>

#include "kernel/kfdsim/sim.h"

#define NOT_RUNG U64_MAX /* what no queue writes: packets, dwords and bytes are counted */
#define to_buffer(p) container_of((p), struct sim_buffer, bo)

int sim_bar_init(struct sim_gpu *gpu)
{
	gpu->bar = (void *)__get_free_pages(GFP_KERNEL | __GFP_ZERO, ilog2(SIM_BAR_PAGES));
	if (!gpu->bar)
		return -ENOMEM;
	gpu->adev.doorbell.base = virt_to_phys(gpu->bar);
	gpu->adev.doorbell.size = SIM_BAR_PAGES << PAGE_SHIFT;
	return 0;
}

void sim_bar_exit(struct sim_gpu *gpu)
{
	free_pages((unsigned long)gpu->bar, ilog2(SIM_BAR_PAGES));
	gpu->bar = NULL;
}

void sim_bar_release(struct sim_buffer *b)
{
	bitmap_clear(b->gpu->bar_used, b->bar_page, b->bar_pages);
}

static u64 *bell(const struct sim_gpu *gpu, u32 dword)
{
	if ((dword & 1) || dword >= (SIM_BAR_PAGES << PAGE_SHIFT) / sizeof(u32))
		return NULL;
	return gpu->bar + dword * sizeof(u32);
}

u64 sim_doorbell(const struct sim_gpu *gpu, u32 dword)
{
	u64 *p = bell(gpu, dword);

	return p ? READ_ONCE(*p) : 0;
}

bool sim_doorbell_rung(struct sim_gpu *gpu, u32 dword)
{
	u64 *p = bell(gpu, dword);

	return p && READ_ONCE(*p) != NOT_RUNG && xchg(p, NOT_RUNG) != NOT_RUNG;
}

void sim_doorbell_clear(struct sim_gpu *gpu, u32 dword)
{
	u64 *p = bell(gpu, dword);

	if (p)
		WRITE_ONCE(*p, 0);
}

static int claim(struct sim_buffer *b)
{
	unsigned long n = b->size >> PAGE_SHIFT, at;
	struct sim_gpu *gpu = b->gpu;

	mutex_lock(&gpu->lock);
	at = bitmap_find_next_zero_area(gpu->bar_used, SIM_BAR_PAGES, 0, n, 0);
	if (at < SIM_BAR_PAGES)
		bitmap_set(gpu->bar_used, at, n);
	mutex_unlock(&gpu->lock);
	if (at >= SIM_BAR_PAGES)
		return -ENOSPC;
	b->bar_page = at;
	b->bar_pages = n;
	b->cpu = gpu->bar + (at << PAGE_SHIFT);
	memset(b->cpu, 0, b->size);
	return 0;
}

/* amdkfd makes nothing but doorbell pages this way. */
int amdgpu_bo_create_kernel(struct amdgpu_device *adev, unsigned long size, int align, u32 domain,
			    struct amdgpu_bo **bo_ptr, u64 *gpu_addr, void **cpu_addr)
{
	struct sim_buffer *b;
	int r;

	if (domain != AMDGPU_GEM_DOMAIN_DOORBELL)
		return -EINVAL;
	b = sim_buffer_new(to_gpu(adev), size, SIM_NOTHING);
	if (!b)
		return -ENOMEM;
	r = claim(b);
	if (r) {
		sim_buffer_put(b);
		return r;
	}
	*bo_ptr = &b->bo;
	if (cpu_addr)
		*cpu_addr = b->cpu;
	return 0;
}

void amdgpu_bo_free_kernel(struct amdgpu_bo **bo, u64 *gpu_addr, void **cpu_addr)
{
	if (*bo)
		sim_buffer_put(to_buffer(*bo));
	*bo = NULL;
	if (cpu_addr)
		*cpu_addr = NULL;
}

uint32_t amdgpu_doorbell_index_on_bar(struct amdgpu_device *adev, struct amdgpu_bo *db_bo,
				      uint32_t doorbell_index, uint32_t db_size)
{
	u32 first = to_buffer(db_bo)->bar_page << (PAGE_SHIFT - 2);

	return first + doorbell_index * DIV_ROUND_UP(db_size, 4);
}

/* Two pages a process, as with the scheduler of gfx9. */
int amdgpu_mes_doorbell_process_slice(struct amdgpu_device *adev)
{
	return 2 * PAGE_SIZE;
}
