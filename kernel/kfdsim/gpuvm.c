/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Memory of processes and where it is mapped. No page tables, no faults, no eviction. */
#include <linux/dma-buf.h>
#include <linux/dma-fence.h>
#include <linux/slab.h>

#include <kfd_priv.h>

#include "kernel/kfdsim/sim.h"

#define to_mem(m) container_of((m), struct sim_mem, mem)

static struct sim_vm *vm_of(struct amdgpu_vm *vm)
{
	return container_of(vm, struct sim_vm, fpriv.vm);
}

static struct sim_vm *vm_of_file(void *drm_priv)
{
	return vm_of(drm_priv_to_vm(drm_priv));
}

/* ---- address spaces ---- */

static const char *fence_name(struct dma_fence *fence)
{
	return "kfdsim";
}

static const struct dma_fence_ops fence_ops = {
	.get_driver_name = fence_name,
	.get_timeline_name = fence_name,
};

/* An eviction fence that nobody ever signals. */
static struct dma_fence *new_fence(void)
{
	static DEFINE_SPINLOCK(lock);
	struct dma_fence *fence = kzalloc(sizeof(*fence), GFP_KERNEL);

	if (fence)
		dma_fence_init(fence, &fence_ops, &lock, dma_fence_context_alloc(1), 1);
	return fence;
}

int amdgpu_amdkfd_gpuvm_acquire_process_vm(struct amdgpu_device *adev, struct amdgpu_vm *avm,
					   void **process_info, struct dma_fence **ef)
{
	struct amdkfd_process_info *info = *process_info;
	struct dma_fence *fence = NULL;

	if (avm->process_info)
		return -EINVAL;
	if (ef) {
		fence = new_fence();
		if (!fence)
			return -ENOMEM;
	}
	if (!info) {
		info = kzalloc(sizeof(*info), GFP_KERNEL);
		if (!info) {
			dma_fence_put(fence);
			return -ENOMEM;
		}
		*process_info = info;
	}
	avm->process_info = info;
	info->n_vms++;
	if (ef)
		*ef = fence;
	return 0;
}

void amdgpu_amdkfd_gpuvm_destroy_cb(struct amdgpu_device *adev, struct amdgpu_vm *vm)
{
	struct amdkfd_process_info *info = vm->process_info;

	vm->process_info = NULL;
	if (info && !--info->n_vms)
		kfree(info);
}

int amdgpu_amdkfd_gpuvm_set_vm_pasid(struct amdgpu_device *adev, struct amdgpu_vm *avm, u32 pasid)
{
	mutex_lock(&to_gpu(adev)->lock);
	avm->pasid = pasid;
	mutex_unlock(&to_gpu(adev)->lock);
	return 0;
}

void amdgpu_amdkfd_gpuvm_release_process_vm(struct amdgpu_device *adev, void *drm_priv)
{
	struct amdgpu_vm *vm = drm_priv_to_vm(drm_priv);

	amdgpu_amdkfd_gpuvm_set_vm_pasid(adev, vm, 0);
	amdgpu_amdkfd_gpuvm_destroy_cb(adev, vm);
}

uint64_t amdgpu_amdkfd_gpuvm_get_process_page_dir(void *drm_priv)
{
	return 0x1000;
}

int amdgpu_amdkfd_gpuvm_restore_process_bos(void *process_info, struct dma_fence __rcu **ef)
{
	struct dma_fence *fence = new_fence();

	if (!fence)
		return -ENOMEM;
	dma_fence_put(rcu_replace_pointer(*ef, fence, true));
	return 0;
}

/* ---- attachments ---- */

static struct sim_attachment *find_attachment(struct sim_mem *m, const struct sim_vm *vm)
{
	struct sim_attachment *a;

	list_for_each_entry(a, &m->attachments, in_mem) {
		if (a->vm == vm)
			return a;
	}
	return NULL;
}

static struct sim_attachment *attach(struct sim_mem *m, struct sim_vm *vm)
{
	struct sim_attachment *a = find_attachment(m, vm);

	if (a)
		return a;
	a = kzalloc(sizeof(*a), GFP_KERNEL);
	if (!a)
		return NULL;
	a->mem = m;
	a->vm = vm;
	a->bo_va.base.bo = &m->buffer->bo;
	a->mapping.bo_va = &a->bo_va;
	a->mapping.start = m->mem.va >> AMDGPU_GPU_PAGE_SHIFT;
	a->mapping.last = a->mapping.start + (m->buffer->size >> AMDGPU_GPU_PAGE_SHIFT) - 1;
	list_add(&a->in_mem, &m->attachments);
	list_add(&a->in_vm, &vm->attachments);
	return a;
}

static void unmap_attachment(struct sim_attachment *a)
{
	if (!a->mapped)
		return;
	mutex_lock(&a->vm->gpu->lock);
	mtree_erase(&a->vm->mapped, a->mem->mem.va);
	mutex_unlock(&a->vm->gpu->lock);
	a->mapped = false;
	a->mem->mem.mapped_to_gpu_memory--;
}

static void detach(struct sim_attachment *a)
{
	unmap_attachment(a);
	list_del(&a->in_mem);
	list_del(&a->in_vm);
	kfree(a);
}

void sim_vm_detach_all(struct sim_vm *vm)
{
	struct sim_attachment *a, *next;

	list_for_each_entry_safe(a, next, &vm->attachments, in_vm) detach(a);
}

int amdgpu_amdkfd_gpuvm_map_memory_to_gpu(struct amdgpu_device *adev, struct kgd_mem *mem,
					  void *drm_priv)
{
	struct sim_vm *vm = vm_of_file(drm_priv);
	struct sim_mem *m = to_mem(mem);
	struct sim_attachment *a = attach(m, vm);
	int r;

	if (!a)
		return -ENOMEM;
	if (a->mapped)
		return 0;
	mutex_lock(&vm->gpu->lock);
	r = mtree_insert_range(&vm->mapped, mem->va, mem->va + m->buffer->size - 1, a, GFP_KERNEL);
	mutex_unlock(&vm->gpu->lock);
	if (r)
		return r == -EEXIST ? -EINVAL : r;
	a->mapped = true;
	mem->mapped_to_gpu_memory++;
	return 0;
}

int amdgpu_amdkfd_gpuvm_unmap_memory_from_gpu(struct amdgpu_device *adev, struct kgd_mem *mem,
					      void *drm_priv)
{
	struct sim_attachment *a = find_attachment(to_mem(mem), vm_of_file(drm_priv));

	if (!a)
		return -EINVAL;
	if (a->bo_va.queue_refcount)
		return -EBUSY;
	unmap_attachment(a);
	return 0;
}

bool amdgpu_amdkfd_bo_mapped_to_dev(void *drm_priv, struct kgd_mem *mem)
{
	struct sim_attachment *a = find_attachment(to_mem(mem), vm_of_file(drm_priv));

	return a && a->mapped;
}

struct amdgpu_bo_va_mapping *amdgpu_vm_bo_lookup_mapping(struct amdgpu_vm *vm, uint64_t addr)
{
	struct sim_attachment *a = mtree_load(&vm_of(vm)->mapped, addr << AMDGPU_GPU_PAGE_SHIFT);

	return a ? &a->mapping : NULL;
}

struct amdgpu_bo_va *amdgpu_vm_bo_find(struct amdgpu_vm *vm, struct amdgpu_bo *bo)
{
	struct sim_attachment *a;

	list_for_each_entry(a, &vm_of(vm)->attachments, in_vm) {
		if (a->bo_va.base.bo == bo)
			return &a->bo_va;
	}
	return NULL;
}

void *sim_user(struct sim_gpu *gpu, u32 pasid, u64 address, size_t bytes)
{
	struct sim_vm *vm = sim_vm_of_pasid(gpu, pasid);
	struct sim_attachment *a = vm ? mtree_load(&vm->mapped, address) : NULL;
	u64 offset;

	if (!a || !a->mem->buffer->cpu)
		return NULL;
	offset = address - a->mem->mem.va;
	if (bytes > a->mem->buffer->size - offset)
		return NULL;
	return a->mem->buffer->cpu + offset;
}

/* ---- memory ---- */

static struct sim_buffer *buffer_for(struct sim_gpu *gpu, u64 size, u64 user, u32 flags)
{
	if (flags & (KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_GTT))
		return sim_buffer_new(gpu, size, SIM_MEMORY);
	if (flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR)
		return sim_buffer_of_user(gpu, user, size);
	return sim_buffer_new(gpu, size, SIM_NOTHING);
}

static int allow_mmap(struct sim_buffer *b)
{
	return xa_alloc(&sim_mmap_ids, &b->mmap_id, b, XA_LIMIT(1, 1 << 20), GFP_KERNEL);
}

static void fill_mem(struct sim_mem *m, u64 va, u32 flags)
{
	mutex_init(&m->mem.lock);
	INIT_LIST_HEAD(&m->mem.attachments);
	INIT_LIST_HEAD(&m->attachments);
	m->mem.bo = &m->buffer->bo;
	m->mem.va = va;
	m->mem.alloc_flags = flags;
	m->mem.domain = flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM ? AMDGPU_GEM_DOMAIN_VRAM :
							       AMDGPU_GEM_DOMAIN_GTT;
}

/* The refusals of amdgpu_amdkfd_gpuvm.c. */
static int check_alloc(u64 size, const u64 *offset, u32 flags)
{
	const u32 kinds = KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_GTT |
			  KFD_IOC_ALLOC_MEM_FLAGS_USERPTR | KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL |
			  KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP;

	if (!size || !(flags & kinds))
		return -EINVAL;
	if (flags & (KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_GTT))
		return 0;
	if ((flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR) && (!offset || !*offset))
		return -EINVAL;
	return 0;
}

int amdgpu_amdkfd_gpuvm_alloc_memory_of_gpu(struct amdgpu_device *adev, uint64_t va, uint64_t size,
					    void *drm_priv, struct kgd_mem **mem, uint64_t *offset,
					    uint32_t flags, bool criu_resume)
{
	struct sim_mem *m;
	int r;

	r = check_alloc(size, offset, flags);
	if (r)
		return r;
	m = kzalloc(sizeof(*m), GFP_KERNEL);
	if (!m)
		return -ENOMEM;
	m->buffer = buffer_for(to_gpu(adev), size, offset ? *offset : 0, flags);
	if (!m->buffer) {
		kfree(m);
		return -ENOMEM;
	}
	fill_mem(m, va, flags);
	if (m->buffer->cpu && !m->buffer->user_pages) {
		r = allow_mmap(m->buffer);
		if (r) {
			sim_buffer_put(m->buffer);
			kfree(m);
			return r;
		}
		if (offset)
			*offset = (u64)m->buffer->mmap_id << 32;
	}
	*mem = &m->mem;
	return 0;
}

int amdgpu_amdkfd_gpuvm_free_memory_of_gpu(struct amdgpu_device *adev, struct kgd_mem *mem,
					   void *drm_priv, uint64_t *size)
{
	struct sim_mem *m = to_mem(mem);
	struct sim_attachment *a, *next;

	if (mem->mapped_to_gpu_memory)
		return -EBUSY;
	if (size)
		*size = mem->domain == AMDGPU_GEM_DOMAIN_VRAM ? m->buffer->size : 0;
	list_for_each_entry_safe(a, next, &m->attachments, in_mem) detach(a);
	sim_buffer_put(m->buffer);
	mutex_destroy(&mem->lock);
	kfree(m);
	return 0;
}

int amdgpu_amdkfd_gpuvm_dmaunmap_mem(struct kgd_mem *mem, void *drm_priv)
{
	return 0;
}

int amdgpu_amdkfd_gpuvm_sync_memory(struct amdgpu_device *adev, struct kgd_mem *mem, bool intr)
{
	return 0;
}

int amdgpu_amdkfd_gpuvm_map_gtt_bo_to_kernel(struct kgd_mem *mem, void **kptr, uint64_t *size)
{
	struct sim_buffer *b = to_mem(mem)->buffer;

	if (!b->cpu || b->user_pages)
		return -EINVAL;
	*kptr = b->cpu;
	if (size)
		*size = b->size;
	return 0;
}

void amdgpu_amdkfd_gpuvm_unmap_gtt_bo_from_kernel(struct kgd_mem *mem)
{
}

/* ---- global wave sync: a thing to own, nothing more ---- */

int amdgpu_amdkfd_alloc_gws(struct amdgpu_device *adev, size_t size, void **mem_obj)
{
	*mem_obj = sim_buffer_new(to_gpu(adev), PAGE_SIZE, SIM_NOTHING);
	return *mem_obj ? 0 : -ENOMEM;
}

void amdgpu_amdkfd_free_gws(struct amdgpu_device *adev, void *mem_obj)
{
	sim_buffer_put(mem_obj);
}

int amdgpu_amdkfd_add_gws_to_process(void *info, void *gws, struct kgd_mem **mem)
{
	struct sim_mem *m;

	if (!info || !gws)
		return -EINVAL;
	m = kzalloc(sizeof(*m), GFP_KERNEL);
	if (!m)
		return -ENOMEM;
	m->buffer = gws;
	sim_buffer_get(m->buffer);
	fill_mem(m, 0, 0);
	m->mem.domain = AMDGPU_GEM_DOMAIN_GWS;
	*mem = &m->mem;
	return 0;
}

int amdgpu_amdkfd_remove_gws_from_process(void *info, void *mem)
{
	struct sim_mem *m = to_mem(mem);

	sim_buffer_put(m->buffer);
	kfree(m);
	return 0;
}

/* ---- buffers shared with other drivers: none are ours ---- */

static int refuse_dmabuf(int fd)
{
	struct dma_buf *buf = dma_buf_get(fd);

	if (IS_ERR(buf))
		return PTR_ERR(buf);
	dma_buf_put(buf);
	return -EINVAL;
}

int amdgpu_amdkfd_gpuvm_import_dmabuf_fd(struct amdgpu_device *adev, int fd, uint64_t va,
					 void *drm_priv, struct kgd_mem **mem, uint64_t *size,
					 uint64_t *mmap_offset)
{
	return refuse_dmabuf(fd);
}

int amdgpu_amdkfd_get_dmabuf_info(struct amdgpu_device *adev, int dma_buf_fd,
				  struct amdgpu_device **dmabuf_adev, uint64_t *bo_size,
				  void **metadata_buffer, size_t buffer_size,
				  uint32_t *metadata_size, uint32_t *flags, int8_t *xcp_id)
{
	return refuse_dmabuf(dma_buf_fd);
}

int amdgpu_amdkfd_gpuvm_export_dmabuf(struct kgd_mem *mem, struct dma_buf **dmabuf)
{
	return -EOPNOTSUPP;
}
