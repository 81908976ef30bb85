/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Render nodes: a file is an address space, a mapping is a buffer.
 *
 * As with amdgpu's buffers a mapping holds page frames, not pages: process_vm_readv() of it fails,
 * /proc/PID/mem works.
 */
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/vmalloc.h>
#include <drm/drm_drv.h>
#include <drm/drm_file.h>
#include <drm/drm_ioctl.h>

#include "kernel/kfdsim/sim.h"

#define MMAP_ID_SHIFT (32 - PAGE_SHIFT) /* offsets are id << 32 */

DEFINE_XARRAY_ALLOC1(sim_mmap_ids);

static int open_vm(struct drm_device *ddev, struct drm_file *file)
{
	struct sim_gpu *gpu = to_gpu(drm_to_adev(ddev));
	struct sim_vm *vm = kzalloc(sizeof(*vm), GFP_KERNEL);

	if (!vm)
		return -ENOMEM;
	vm->gpu = gpu;
	INIT_LIST_HEAD(&vm->attachments);
	mt_init(&vm->mapped);
	dma_resv_init(&vm->root.tbo.base._resv);
	vm->root.tbo.base.resv = &vm->root.tbo.base._resv;
	vm->root.tbo.bdev = &gpu->adev.mman.bdev;
	vm->fpriv.vm.root.bo = &vm->root;
	file->driver_priv = &vm->fpriv;
	mutex_lock(&gpu->lock);
	list_add(&vm->link, &gpu->vms);
	mutex_unlock(&gpu->lock);
	return 0;
}

static void close_vm(struct drm_device *ddev, struct drm_file *file)
{
	struct sim_vm *vm = container_of(file->driver_priv, struct sim_vm, fpriv);

	sim_vm_detach_all(vm);
	mutex_lock(&vm->gpu->lock);
	list_del(&vm->link);
	mutex_unlock(&vm->gpu->lock);
	mtree_destroy(&vm->mapped);
	dma_resv_fini(&vm->root.tbo.base._resv);
	kfree(vm);
}

static void mapping_opened(struct vm_area_struct *vma)
{
	sim_buffer_get(vma->vm_private_data);
}

static void mapping_closed(struct vm_area_struct *vma)
{
	sim_buffer_put(vma->vm_private_data);
}

static u64 buffer_offset(const struct vm_area_struct *vma, unsigned long address)
{
	u64 page = vma->vm_pgoff & (BIT(MMAP_ID_SHIFT) - 1);

	return (page << PAGE_SHIFT) + (address - vma->vm_start);
}

static vm_fault_t mapping_fault(struct vm_fault *vmf)
{
	struct sim_buffer *b = vmf->vma->vm_private_data;
	u64 at = buffer_offset(vmf->vma, vmf->address);

	if (at >= b->size)
		return VM_FAULT_SIGBUS;
	return vmf_insert_pfn(vmf->vma, vmf->address, vmalloc_to_pfn(b->cpu + at));
}

static int mapping_access(struct vm_area_struct *vma, unsigned long address, void *data, int len,
			  int write)
{
	struct sim_buffer *b = vma->vm_private_data;
	u64 at = buffer_offset(vma, address);

	if (at >= b->size)
		return -EIO;
	len = min_t(u64, len, b->size - at);
	if (write)
		memcpy(b->cpu + at, data, len);
	else
		memcpy(data, b->cpu + at, len);
	return len;
}

static const struct vm_operations_struct mapping_ops = {
	.open = mapping_opened,
	.close = mapping_closed,
	.fault = mapping_fault,
	.access = mapping_access,
};

static struct sim_buffer *find_buffer(struct sim_gpu *gpu, unsigned long id)
{
	struct sim_buffer *b;

	xa_lock(&sim_mmap_ids);
	b = xa_load(&sim_mmap_ids, id);
	if (b && (b->gpu != gpu || !kref_get_unless_zero(&b->ref)))
		b = NULL;
	xa_unlock(&sim_mmap_ids);
	return b;
}

static int map_buffer(struct file *filp, struct vm_area_struct *vma)
{
	struct drm_file *file = filp->private_data;
	struct sim_gpu *gpu = to_gpu(drm_to_adev(file->minor->dev));
	struct sim_buffer *b = find_buffer(gpu, vma->vm_pgoff >> MMAP_ID_SHIFT);

	if (!b)
		return -EINVAL;
	if (buffer_offset(vma, vma->vm_end) > b->size ||
	    (is_cow_mapping(vma->vm_flags) && (vma->vm_flags & VM_ACCESS_FLAGS))) {
		sim_buffer_put(b);
		return -EINVAL;
	}
	if (is_cow_mapping(vma->vm_flags))
		vm_flags_clear(vma, VM_MAYWRITE); /* the thunk's PROT_NONE placeholders */
	vm_flags_set(vma, VM_IO | VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP);
	vma->vm_private_data = b; /* takes over the reference */
	vma->vm_ops = &mapping_ops;
	return 0;
}

static const struct file_operations render_fops = {
	.owner = THIS_MODULE,
	.open = drm_open,
	.release = drm_release,
	.unlocked_ioctl = drm_ioctl,
	.mmap = map_buffer,
	.llseek = noop_llseek,
	.fop_flags = FOP_UNSIGNED_OFFSET,
};

const struct drm_driver sim_drm_driver = {
	.driver_features = DRIVER_RENDER,
	.open = open_vm,
	.postclose = close_vm,
	.fops = &render_fops,
	.name = "amdgpu", /* libdrm asks for it */
	.desc = "kfdsim",
	.date = "20240101",
	.major = 3,
	.minor = 61,
};

int amdgpu_file_to_fpriv(struct file *filp, struct amdgpu_fpriv **fpriv)
{
	struct drm_file *file;

	if (filp->f_op != &render_fops)
		return -EINVAL;
	file = filp->private_data;
	*fpriv = file->driver_priv;
	return 0;
}

struct sim_vm *sim_vm_of_pasid(struct sim_gpu *gpu, u32 pasid)
{
	struct sim_vm *vm;

	lockdep_assert_held(&gpu->lock);
	if (!pasid)
		return NULL;
	list_for_each_entry(vm, &gpu->vms, link) {
		if (vm->fpriv.vm.pasid == pasid)
			return vm;
	}
	return NULL;
}
