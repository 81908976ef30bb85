/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Buffers: vmalloc memory, pinned user memory, or nothing; some with a GART address. */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "kernel/kfdsim/sim.h"

/* A GART address names its buffer: base, 16 bits of id, 28 bits of offset. */
#define GART_BASE 0x100000000000ull
#define GART_SHIFT 28
#define GART_WINDOW (1ull << GART_SHIFT)
#define GART_MAX_ID 0xffff

#define to_buffer(p) container_of((p), struct sim_buffer, bo)

/* The engine may be looking at the memory: it is cut off under the lock, then freed. */
static void forget(struct sim_buffer *b)
{
	mutex_lock(&b->gpu->lock);
	if (b->gart_id)
		xa_erase(&b->gpu->gart, b->gart_id);
	if (b->bar_pages)
		sim_bar_release(b);
	mutex_unlock(&b->gpu->lock);
	if (b->mmap_id)
		xa_erase(&sim_mmap_ids, b->mmap_id);
}

static void release(struct kref *ref)
{
	struct sim_buffer *b = container_of(ref, struct sim_buffer, ref);

	forget(b);
	if (b->user_pages) {
		vunmap(b->cpu);
		unpin_user_pages_dirty_lock(b->user_pages, b->n_user_pages, true);
		kvfree(b->user_pages);
	} else if (!b->bar_pages) {
		vfree(b->cpu);
	}
	kfree(b);
}

struct sim_buffer *sim_buffer_new(struct sim_gpu *gpu, u64 size, enum sim_backing backing)
{
	struct sim_buffer *b = kzalloc(sizeof(*b), GFP_KERNEL);

	if (!b)
		return NULL;
	kref_init(&b->ref);
	b->gpu = gpu;
	b->bo.tbo.bdev = &gpu->adev.mman.bdev;
	b->size = PAGE_ALIGN(size);
	if (backing == SIM_NOTHING)
		return b;
	b->cpu = vmalloc_user(b->size);
	if (!b->cpu) {
		kfree(b);
		return NULL;
	}
	return b;
}

/* Pinned for as long as it lives: unlike amdgpu's, never invalidated by the mmu. */
struct sim_buffer *sim_buffer_of_user(struct sim_gpu *gpu, u64 address, u64 size)
{
	struct sim_buffer *b = sim_buffer_new(gpu, size, SIM_NOTHING);
	unsigned long n = PAGE_ALIGN(size) >> PAGE_SHIFT;
	int got;

	if (!b)
		return NULL;
	b->user_pages = kvcalloc(n, sizeof(*b->user_pages), GFP_KERNEL);
	if (!b->user_pages)
		goto fail;
	got = pin_user_pages_fast(address, n, FOLL_WRITE | FOLL_LONGTERM, b->user_pages);
	b->n_user_pages = max(got, 0);
	if (b->n_user_pages == n)
		b->cpu = vmap(b->user_pages, n, VM_MAP, PAGE_KERNEL);
	if (b->cpu)
		return b;
fail:
	sim_buffer_put(b);
	return NULL;
}

int sim_buffer_to_gart(struct sim_buffer *b)
{
	if (b->size > GART_WINDOW)
		return -E2BIG;
	return xa_alloc(&b->gpu->gart, &b->gart_id, b, XA_LIMIT(1, GART_MAX_ID), GFP_KERNEL);
}

void sim_buffer_get(struct sim_buffer *b)
{
	kref_get(&b->ref);
}

void sim_buffer_put(struct sim_buffer *b)
{
	kref_put(&b->ref, release);
}

u64 sim_buffer_gart(const struct sim_buffer *b)
{
	return b->gart_id ? GART_BASE + ((u64)b->gart_id << GART_SHIFT) : 0;
}

void *sim_gart(struct sim_gpu *gpu, u64 address, size_t bytes)
{
	u64 offset = address & (GART_WINDOW - 1);
	struct sim_buffer *b;

	lockdep_assert_held(&gpu->lock);
	if (address < GART_BASE)
		return NULL;
	b = xa_load(&gpu->gart, (address - GART_BASE) >> GART_SHIFT);
	if (!b || !b->cpu || offset + bytes > b->size)
		return NULL;
	return b->cpu + offset;
}

int amdgpu_amdkfd_alloc_gtt_mem(struct amdgpu_device *adev, size_t size, void **mem_obj,
				uint64_t *gpu_addr, void **cpu_ptr, bool mqd_gfx9)
{
	struct sim_buffer *b = sim_buffer_new(to_gpu(adev), size, SIM_MEMORY);
	int r;

	if (!b)
		return -ENOMEM;
	r = sim_buffer_to_gart(b);
	if (r) {
		sim_buffer_put(b);
		return r;
	}
	*mem_obj = b;
	*gpu_addr = sim_buffer_gart(b);
	*cpu_ptr = b->cpu;
	return 0;
}

void amdgpu_amdkfd_free_gtt_mem(struct amdgpu_device *adev, void **mem_obj)
{
	if (*mem_obj)
		sim_buffer_put(*mem_obj);
	*mem_obj = NULL;
}

struct amdgpu_bo *amdgpu_bo_ref(struct amdgpu_bo *bo)
{
	if (bo)
		sim_buffer_get(to_buffer(bo));
	return bo;
}

void amdgpu_bo_unref(struct amdgpu_bo **bo)
{
	if (*bo)
		sim_buffer_put(to_buffer(*bo));
	*bo = NULL;
}

u64 amdgpu_bo_gpu_offset(struct amdgpu_bo *bo)
{
	return sim_buffer_gart(to_buffer(bo));
}

/* MES looks at write pointers through the GART. */
int amdgpu_amdkfd_map_gtt_bo_to_gart(struct amdgpu_bo *bo, struct amdgpu_bo **bo_gart)
{
	struct sim_buffer *b = to_buffer(bo);
	int r;

	if (!b->gart_id) {
		r = sim_buffer_to_gart(b);
		if (r)
			return r;
	}
	*bo_gart = amdgpu_bo_ref(bo);
	return 0;
}

void ttm_bo_move_to_lru_tail(struct ttm_buffer_object *bo)
{
}
