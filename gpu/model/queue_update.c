/* SPDX-License-Identifier: MIT */
/* Changes to a queue by its owner: each costs a runlist cycle. */
#include <errno.h>
#include <string.h>

#include "gpu/model/driver.h"

#define GWS_SLOTS 64
#define MAX_CU_MASK_BITS 1024u

/* update_queue() of Linux 6.12 kfd_device_queue_manager.c */
static int update_queue(struct model_queue *q)
{
	bool mes = model_is_mes(q->gpu);
	int r = mes ? model_mes_remove(q) : model_unmap_queues(q->gpu, GRACE_DEFAULT);

	if (q->pdd->has_reset_queue)
		return -EACCES;
	if (r < 0)
		return r;
	q->is_active = model_queue_wants_run(q);
	q->is_gws = q->gws;
	if (q->ring_base)
		hw_queue_set_ring(q->hw, q->ring_base, q->ring_bytes);
	hw_queue_set_priority(q->hw, q->priority);
	return mes ? model_mes_sync(q->gpu) : model_map_queues(q->gpu);
}

int model_ioc_update_queue(struct call *c, void *data)
{
	struct kfd_ioctl_update_queue_args *a = data;
	struct model_queue *q;

	if ((a->queue_percentage & 0xff) > KFD_MAX_QUEUE_PERCENTAGE ||
	    a->queue_priority > KFD_MAX_QUEUE_PRIORITY)
		return -EINVAL;
	if (!model_access_ok(a->ring_base_address))
		return -EFAULT;
	if (a->ring_size & (a->ring_size - 1))
		return -EINVAL;
	a->ring_size = MAX(a->ring_size, (uint32_t)KFD_MIN_QUEUE_RING_SIZE);
	q = model_queue_find(c->kproc, a->queue_id);
	if (!q)
		return -EFAULT;
	if (a->ring_base_address &&
	    !model_mapped_exactly(q->owner->proc->mm, a->ring_base_address, a->ring_size))
		return -EFAULT;
	q->ring_base = a->ring_base_address;
	q->ring_bytes = a->ring_size;
	q->percent = a->queue_percentage & 0xff;
	q->target_xcc = (a->queue_percentage >> 8) & 0xff;
	q->priority = a->queue_priority;
	return update_queue(q);
}

/* Since gfx10 two compute units make a workgroup processor, which is masked as one. */
static bool is_pairwise(const struct model_gpu *gpu, const uint32_t *mask, uint32_t bits)
{
	if (gpu->m->config.chip->gfx_target_version < 100000)
		return true;
	for (uint32_t i = 0; i < bits; i += 2) {
		uint32_t pair = mask[i / 32] >> (i % 32) & 3;

		if (pair && pair != 3)
			return false;
	}
	return true;
}

int model_ioc_set_cu_mask(struct call *c, void *data)
{
	const struct kfd_ioctl_set_cu_mask_args *a = data;
	uint32_t bits = MIN(a->num_cu_mask, MAX_CU_MASK_BITS);
	uint32_t mask[MAX_CU_MASK_BITS / 32] = { 0 };
	struct model_queue *q;
	int r;

	if (a->num_cu_mask % 32 || !bits)
		return -EINVAL;
	r = model_copy_from_user(c->m, mask, a->cu_mask_ptr, bits / 8);
	if (r < 0)
		return r;
	q = model_queue_find(c->kproc, a->queue_id);
	if (!q)
		return -EFAULT;
	if (!is_pairwise(q->gpu, mask, bits))
		return -EINVAL;
	r = update_queue(q);
	if (r < 0)
		return r;
	memcpy(q->cu_mask, mask, sizeof(mask));
	q->cu_masked = true;
	return 0;
}

/* kfd_gws_init() of Linux 6.12 kfd_device.c, with firmware of today */
uint32_t model_gpu_gws(const struct model_gpu *gpu)
{
	return gpu->m->config.chip->gfx_target_version < 120000 ? GWS_SLOTS : 0;
}

static int set_gws(struct model_queue *q, bool gws)
{
	if (gws && q->pdd->num_gws)
		return -EBUSY;
	if (!gws && !q->pdd->num_gws)
		return -EINVAL;
	q->gws = gws;
	q->pdd->num_gws = gws ? GWS_SLOTS : 0;
	return update_queue(q);
}

int model_ioc_alloc_queue_gws(struct call *c, void *data)
{
	struct kfd_ioctl_alloc_queue_gws_args *a = data;
	struct model_queue *q = model_queue_find(c->kproc, a->queue_id);
	int r;

	if (!q)
		return -EINVAL;
	if (!model_gpu_gws(q->gpu))
		return -ENODEV;
	if (c->kproc->debug_enabled && !model_gpu_debugs_gws(q->gpu))
		return -EBUSY;
	r = set_gws(q, a->num_gws != 0);
	a->first_gws = 0;
	return r;
}

int model_ioc_get_queue_wave_state(struct call *c, void *data)
{
	struct kfd_ioctl_get_queue_wave_state_args *a = data;
	struct model_queue *q = model_queue_find(c->kproc, a->queue_id);
	struct hw_saved_state first = { 0 };
	int r;

	if (!q)
		return -EFAULT;
	if (q->type != QUEUE_COMPUTE || q->is_active)
		return -EINVAL;
	r = model_wave_state(c->m, q, a->ctl_stack_address, false, &first);
	if (r < 0)
		return r;
	a->ctl_stack_used_size = first.ctl_stack_used;
	a->save_area_used_size = first.wave_bytes;
	return 0;
}
