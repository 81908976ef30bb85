/* SPDX-License-Identifier: MIT */
/*
 * Calls about memory and clocks. The checks of their arguments are the driver's; where
 * the driver would then hand out a thing the model does not have, the answer is -EOPNOTSUPP:
 *
 *   ALLOC_MEMORY_OF_GPU    no device memory
 *   SMI_EVENTS             no event stream
 *   IMPORT_DMABUF          no dma-buf, nor can one be asked about
 */
#include <errno.h>
#include <fcntl.h>

#include "abi/kfd_memory.h"
#include "gpu/model/driver.h"

#define CACHE_POLICY_LAST 1u /* 0 coherent, 1 non-coherent */
#define GPU_COUNTER_NS 10u /* 100 MHz */

int model_ioc_get_clock_counters(struct call *c, void *data)
{
	struct kfd_ioctl_get_clock_counters_args *a = data;
	uint64_t now = model_now_ns(c->m);
	bool known = model_pdd_by_id(c->m, c->kproc, a->gpu_id);

	a->gpu_clock_counter = known ? now / GPU_COUNTER_NS : 0;
	a->cpu_clock_counter = now;
	a->system_clock_counter = now;
	a->system_clock_freq = NSEC_PER_SEC;
	return 0;
}

static struct kfd_process_device_apertures apertures_of(const struct model_gpu *gpu)
{
	return (struct kfd_process_device_apertures){
		.lds_base = MODEL_LDS_BASE,
		.lds_limit = MODEL_LDS_BASE | UINT32_MAX,
		.scratch_base = MODEL_SCRATCH_BASE,
		.scratch_limit = MODEL_SCRATCH_BASE | UINT32_MAX,
		.gpuvm_base = MODEL_GPUVM_BASE,
		.gpuvm_limit = MODEL_GPUVM_LIMIT,
		.gpu_id = gpu->id,
	};
}

int model_ioc_get_apertures(struct call *c, void *data)
{
	struct kfd_ioctl_get_process_apertures_args *a = data;

	for (uint32_t i = 0; i < MIN(c->m->config.n_gpus, (uint32_t)NUM_OF_SUPPORTED_GPUS); i++)
		a->process_apertures[a->num_of_nodes++] = apertures_of(&c->m->gpus[i]);
	return 0;
}

int model_ioc_get_apertures_new(struct call *c, void *data)
{
	struct kfd_ioctl_get_process_apertures_new_args *a = data;
	struct kfd_process_device_apertures all[MODEL_MAX_GPUS];
	uint32_t n = MIN(a->num_of_nodes, c->m->config.n_gpus);

	if (a->num_of_nodes == 0) {
		a->num_of_nodes = c->m->config.n_gpus;
		return 0;
	}
	if (a->num_of_nodes > c->m->config.n_gpus + 1) /* nodes of the topology */
		return -EINVAL;
	for (uint32_t i = 0; i < n; i++)
		all[i] = apertures_of(&c->m->gpus[i]);
	a->num_of_nodes = n;
	return model_copy_to_user(c->m, a->kfd_process_device_apertures_ptr, all,
				  n * sizeof(all[0]));
}

/* ---- memory ---- */

int model_vm_acquire(struct model *m, pid_t pid, uint32_t gpu_index)
{
	struct model_proc *p = model_proc_find(m, pid);

	if (!p || !p->kproc)
		return -ESRCH;
	if (gpu_index >= m->config.n_gpus)
		return -ENODEV;
	p->kproc->pdds[gpu_index].vm_acquired = true;
	return 0;
}

/* No descriptor of this process is a render node of a modelled GPU: model_vm_acquire() is. */
int model_ioc_acquire_vm(struct call *c, void *data)
{
	const struct kfd_ioctl_acquire_vm_args *a = data;
	struct model_pdd *pdd;

	if (fcntl((int)a->drm_fd, F_GETFD) < 0)
		return -EINVAL;
	pdd = model_pdd_by_id(c->m, c->kproc, a->gpu_id);
	if (!pdd)
		return -EINVAL;
	return pdd->vm_acquired ? -EBUSY : -EINVAL;
}

static int need_vm(struct call *c, uint32_t gpu_id, int without)
{
	struct model_pdd *pdd = model_pdd_by_id(c->m, c->kproc, gpu_id);

	if (!pdd)
		return -EINVAL;
	return pdd->vm_acquired ? 0 : without;
}

int model_ioc_alloc_memory(struct call *c, void *data)
{
	const struct kfd_ioctl_alloc_memory_of_gpu_args *a = data;
	int r;

	if (!a->size)
		return -EINVAL;
	r = need_vm(c, a->gpu_id, -ENODEV);
	return r < 0 ? r : -EOPNOTSUPP;
}

/* Whatever the handle says, there is no such buffer. */
int model_ioc_free_memory(struct call *c, void *data)
{
	(void)c;
	(void)data;
	return -EINVAL;
}

static int check_device_array(const struct model *m, uint64_t array, uint32_t n, uint32_t n_success)
{
	_cleanup_free_ uint32_t *ids = NULL;

	if (!n || n_success > n)
		return -EINVAL;
	if (n > KMALLOC_MAX_BYTES / sizeof(*ids))
		return -ENOMEM;
	ids = calloc(n, sizeof(*ids));
	if (!ids)
		return -ENOMEM;
	return model_copy_from_user(m, ids, array, n * sizeof(*ids));
}

int model_ioc_map_memory(struct call *c, void *data)
{
	const struct kfd_ioctl_map_memory_to_gpu_args *a = data;
	int r = check_device_array(c->m, a->device_ids_array_ptr, a->n_devices, a->n_success);

	if (r == 0)
		r = need_vm(c, (uint32_t)(a->handle >> 32), -ENODEV);
	return r < 0 ? r : -ENOMEM;
}

int model_ioc_unmap_memory(struct call *c, void *data)
{
	const struct kfd_ioctl_unmap_memory_from_gpu_args *a = data;
	int r = check_device_array(c->m, a->device_ids_array_ptr, a->n_devices, a->n_success);

	if (r < 0)
		return r;
	return model_pdd_by_id(c->m, c->kproc, (uint32_t)(a->handle >> 32)) ? -ENOMEM : -EINVAL;
}

int model_ioc_set_memory_policy(struct call *c, void *data)
{
	const struct kfd_ioctl_set_memory_policy_args *a = data;

	if (a->default_policy > CACHE_POLICY_LAST || a->alternate_policy > CACHE_POLICY_LAST)
		return -EINVAL;
	return need_vm(c, a->gpu_id, -ESRCH);
}

int model_ioc_set_trap_handler(struct call *c, void *data)
{
	const struct kfd_ioctl_set_trap_handler_args *a = data;

	return need_vm(c, a->gpu_id, -ESRCH);
}

int model_ioc_set_scratch(struct call *c, void *data)
{
	const struct kfd_ioctl_set_scratch_backing_va_args *a = data;

	return need_vm(c, a->gpu_id, -ENODEV);
}

int model_ioc_get_tile_config(struct call *c, void *data)
{
	struct kfd_ioctl_get_tile_config_args *a = data;

	if (!model_pdd_by_id(c->m, c->kproc, a->gpu_id))
		return -EINVAL;
	a->num_tile_configs = 0;
	a->num_macro_tile_configs = 0;
	return 0;
}

int model_ioc_available_memory(struct call *c, void *data)
{
	struct kfd_ioctl_get_available_memory_args *a = data;
	struct model_pdd *pdd = model_pdd_by_id(c->m, c->kproc, a->gpu_id);
	uint64_t used = 0;

	if (!pdd)
		return -EINVAL;
	for (struct model_kproc *k = c->m->kprocs; k; k = k->next)
		used += k->pdds[pdd->gpu->index].vram_bytes;
	a->available = c->m->config.chip->vram_bytes - MIN(used, c->m->config.chip->vram_bytes);
	return 0;
}

/* ---- sharing ---- */

int model_ioc_dmabuf_info(struct call *c, void *data)
{
	const struct kfd_ioctl_get_dmabuf_info_args *a = data;

	(void)c;
	return fcntl((int)a->dmabuf_fd, F_GETFD) < 0 ? -EBADF : -EINVAL;
}

int model_ioc_import_dmabuf(struct call *c, void *data)
{
	const struct kfd_ioctl_import_dmabuf_args *a = data;
	int r = need_vm(c, a->gpu_id, -ENODEV);

	if (r < 0)
		return r;
	return fcntl((int)a->dmabuf_fd, F_GETFD) < 0 ? -EBADF : -EINVAL;
}

int model_ioc_export_dmabuf(struct call *c, void *data)
{
	(void)c;
	(void)data;
	return -EINVAL;
}

int model_ioc_smi_events(struct call *c, void *data)
{
	const struct kfd_ioctl_smi_events_args *a = data;

	return model_pdd_by_id(c->m, c->kproc, a->gpuid) ? -EOPNOTSUPP : -EINVAL;
}
