/* SPDX-License-Identifier: MIT */
/* Creation and destruction of queues (Linux 6.12 kfd_chardev.c, kfd_process_queue_manager.c). */
#include <errno.h>

#include "gpu/model/driver.h"

#define ENOTSUPP 524 /* the kernel's own; it reaches user space for an unknown queue type */
#define MMAP_TYPE_DOORBELL (3ull << 62)
#define MMAP_GPU_ID_SHIFT 46
#define DOORBELL_BYTES 8u

struct model_gpu *model_gpu_by_id(struct model *m, uint32_t gpu_id)
{
	for (uint32_t i = 0; i < m->config.n_gpus; i++)
		if (m->gpus[i].id == gpu_id)
			return &m->gpus[i];
	return NULL;
}

struct model_pdd *model_pdd_by_id(struct model *m, struct model_kproc *k, uint32_t gpu_id)
{
	const struct model_gpu *gpu = model_gpu_by_id(m, gpu_id);

	return gpu ? &k->pdds[gpu->index] : NULL;
}

struct model_queue *model_queue_find(const struct model_kproc *k, uint32_t id)
{
	for (struct model_queue *q = k->queues; q; q = q->next)
		if (q->id == id)
			return q;
	return NULL;
}

static int check_ring_size(uint32_t *size)
{
	if (*size & (*size - 1))
		return -EINVAL;
	*size = MAX(*size, (uint32_t)KFD_MIN_QUEUE_RING_SIZE);
	return 0;
}

static int check_create_args(struct kfd_ioctl_create_queue_args *a)
{
	int r;

	if ((a->queue_percentage & 0xff) > KFD_MAX_QUEUE_PERCENTAGE ||
	    a->queue_priority > KFD_MAX_QUEUE_PRIORITY)
		return -EINVAL;
	if (!model_access_ok(a->ring_base_address))
		return -EFAULT;
	r = check_ring_size(&a->ring_size);
	if (r < 0)
		return r;
	if (!model_access_ok(a->read_pointer_address) ||
	    !model_access_ok(a->write_pointer_address) ||
	    !model_access_ok(a->eop_buffer_address) ||
	    !model_access_ok(a->ctx_save_restore_address))
		return -EFAULT;
	return a->queue_type > KFD_IOC_QUEUE_TYPE_SDMA_BY_ENG_ID ? -ENOTSUPP : 0;
}

static struct model_queue *queue_from_args(struct model_kproc *k, struct model_pdd *pdd,
					   const struct kfd_ioctl_create_queue_args *a)
{
	bool compute = a->queue_type == KFD_IOC_QUEUE_TYPE_COMPUTE ||
		       a->queue_type == KFD_IOC_QUEUE_TYPE_COMPUTE_AQL;
	struct model_queue *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	*q = (struct model_queue){
		.owner = k,
		.gpu = pdd->gpu,
		.pdd = pdd,
		.type = compute ? QUEUE_COMPUTE : QUEUE_SDMA,
		.aql = a->queue_type == KFD_IOC_QUEUE_TYPE_COMPUTE_AQL,
		.ring_base = a->ring_base_address,
		.ring_bytes = a->ring_size,
		.read_ptr = a->read_pointer_address,
		.write_ptr = a->write_pointer_address,
		.eop_base = a->eop_buffer_address,
		.eop_bytes = (uint32_t)a->eop_buffer_size,
		.cwsr_base = a->ctx_save_restore_address,
		.cwsr_bytes = a->ctx_save_restore_size,
		.ctl_stack_bytes = a->ctl_stack_size,
		.percent = a->queue_percentage & 0xff,
		.target_xcc = (a->queue_percentage >> 8) & 0xff,
		.priority = a->queue_priority,
		.sdma_engine = a->sdma_engine_id,
		.exception_status = KFD_EC_MASK(EC_QUEUE_NEW),
	};
	return q;
}

/* kfd_queue_acquire_buffers(): what the GPU sees must match to the page. */
static int check_buffers(const struct model_queue *q)
{
	const struct model_chip *chip = q->gpu->m->config.chip;
	const struct mem_space *mm = q->owner->proc->mm;
	struct cwsr_sizes sizes;
	uint64_t cwsr_total;

	if (!model_mapped_exactly(mm, q->write_ptr, PAGE_BYTES) ||
	    !model_mapped_exactly(mm, q->read_ptr, PAGE_BYTES) ||
	    !model_mapped_exactly(mm, q->ring_base, q->ring_bytes))
		return -EINVAL;
	if (q->type != QUEUE_COMPUTE)
		return 0;
	if (q->eop_base && (q->eop_bytes < PAGE_BYTES ||
			    !model_mapped_exactly(mm, q->eop_base,
						  q->eop_bytes + (PAGE_BYTES - 1ull))))
		return -EINVAL;
	model_cwsr_sizes(chip, &sizes);
	if (q->ctl_stack_bytes != sizes.ctl_stack || q->cwsr_bytes < sizes.cwsr)
		return -EINVAL;
	cwsr_total = ((uint64_t)q->cwsr_bytes + sizes.debug) * chip->n_xcc + PAGE_BYTES - 1;
	return model_mapped_exactly(mm, q->cwsr_base, cwsr_total) ? 0 : -EINVAL;
}

static uint32_t max_queues_per_pdd(const struct model_chip *chip)
{
	return chip->gfx_target_version / 100 == 904 ? 255 : 127;
}

static int attach_hw(struct model_queue *q)
{
	struct hw_queue_config config = {
		.ring = q->type != QUEUE_COMPUTE ? HW_RING_SDMA :
			q->aql ? HW_RING_AQL : HW_RING_PM4,
		.vm = q->owner->proc->mm,
		.ring_va = q->ring_base,
		.ring_bytes = q->ring_bytes,
		.read_ptr_va = q->read_ptr,
		.write_ptr_va = q->write_ptr,
		.target_xcc = q->target_xcc,
		.priority = q->priority,
		.log_packets = q->gpu->m->config.log_packets,
	};

	q->hw = hw_queue_new(q->gpu->hw, &config);
	return q->hw ? 0 : -ENOMEM;
}

static void unlink_queue(struct model_queue *q)
{
	struct model_queue **at = &q->owner->queues;

	while (*at != q)
		at = &(*at)->next;
	*at = q->next;
	q->pdd->queue_count--;
}

static void free_queue(struct model_queue *q)
{
	if (q->hw)
		hw_queue_free(q->hw);
	free(q);
}

/* create_queue_cpsch() */
static int insert_queue(struct model_queue *q, uint32_t ioc_type)
{
	int r;

	if (q->gpu->total_queues >= MAX_QUEUES_PER_DEVICE)
		return -EPERM;
	if (q->type != QUEUE_COMPUTE) {
		r = model_sdma_take(q, ioc_type);
		if (r < 0)
			return r;
	}
	r = model_doorbell_take(q);
	if (r < 0)
		goto fail_sdma;
	r = attach_hw(q);
	if (r < 0)
		goto fail_doorbell;
	q->is_evicted = q->pdd->evicted > 0;
	model_ext_new_queue(q);
	q->is_active = model_queue_wants_run(q);
	q->next = q->owner->queues;
	q->owner->queues = q;
	q->pdd->queue_count++;
	if (q->is_active) {
		r = model_execute_queues(q->gpu, GRACE_DEFAULT);
		if (r < 0) {
			q->is_active = false;
			unlink_queue(q);
			goto fail_doorbell;
		}
	}
	q->gpu->total_queues++;
	return 0;

fail_doorbell:
	model_doorbell_give(q);
fail_sdma:
	model_sdma_give(q);
	return r;
}

int model_ioc_create_queue(struct call *c, void *data)
{
	struct kfd_ioctl_create_queue_args *a = data;
	const struct model_chip *chip = c->m->config.chip;
	struct model_kproc *k = c->kproc;
	struct model_pdd *pdd;
	struct model_queue *q;
	int r, id;

	r = check_create_args(a);
	if (r < 0)
		return r;
	pdd = model_pdd_by_id(c->m, k, a->gpu_id);
	if (!pdd)
		return -EINVAL;
	if (!pdd->vm_acquired)
		return -ESRCH;
	if (a->queue_type == KFD_IOC_QUEUE_TYPE_SDMA_BY_ENG_ID &&
	    a->sdma_engine_id >= model_sdma_engines(chip) + model_xgmi_engines(chip))
		return -EINVAL;
	q = queue_from_args(k, pdd, a);
	if (!q)
		return -ENOMEM;
	r = check_buffers(q);
	if (r == 0 && pdd->queue_count >= max_queues_per_pdd(chip))
		r = -ENOSPC;
	if (r < 0)
		goto fail;
	id = model_bit_take(k->ids, MAX_QUEUES_PER_PROCESS);
	if (id < 0) {
		r = -ENOMEM;
		goto fail;
	}
	q->id = (uint32_t)id;
	r = insert_queue(q, a->queue_type);
	if (r < 0) {
		model_bit_clear(k->ids, q->id);
		goto fail;
	}
	a->queue_id = q->id;
	a->doorbell_offset = MMAP_TYPE_DOORBELL | ((uint64_t)a->gpu_id << MMAP_GPU_ID_SHIFT) |
			     (q->doorbell_id * DOORBELL_BYTES);
	model_dbg_raise(k, KFD_EC_MASK(EC_QUEUE_NEW), q->gpu, q->id);
	return 0;

fail:
	free_queue(q);
	return r;
}

/* ---- destruction ---- */

int model_queue_destroy_now(struct model_queue *q)
{
	struct model_kproc *k = q->owner;
	struct model_gpu *gpu = q->gpu;
	int r = 0;

	model_doorbell_give(q);
	model_sdma_give(q);
	if (q->is_active) {
		q->is_active = false;
		r = model_execute_queues(gpu, GRACE_DEFAULT);
	}
	unlink_queue(q);
	gpu->total_queues--;
	model_dbg_raise(k, KFD_EC_MASK(EC_DEVICE_QUEUE_DELETE), gpu, UINT32_MAX);
	if (q->gws)
		q->pdd->num_gws = 0;
	model_bit_clear(k->ids, q->id);
	free_queue(q);
	return r;
}

int model_ioc_destroy_queue(struct call *c, void *data)
{
	const struct kfd_ioctl_destroy_queue_args *a = data;
	struct model_queue *q = model_queue_find(c->kproc, a->queue_id);
	struct blocked *b;

	if (!q)
		return -EINVAL;
	if (q->is_being_destroyed)
		return -EBUSY;
	q->is_being_destroyed = true;
	if (!c->kproc->debug_enabled || !q->is_suspended)
		return model_queue_destroy_now(q);
	b = model_block(c->m, c->task, c->kproc, BLOCKED_DESTROY);
	if (!b) {
		q->is_being_destroyed = false;
		return -EINTR;
	}
	b->queue_id = q->id;
	return MODEL_BLOCKED;
}

/* process_termination_cpsch(): without MES one cycle on every GPU, even without queues there. */
void model_queues_terminate(struct model *m, struct model_kproc *k)
{
	for (struct model_queue *q = k->queues; q; q = q->next) {
		model_sdma_give(q);
		if (model_is_mes(q->gpu))
			model_mes_remove(q);
		q->gpu->total_queues--;
	}
	for (uint32_t i = 0; i < m->config.n_gpus; i++)
		model_execute_queues(&m->gpus[i], GRACE_DEFAULT);
	while (k->queues) {
		struct model_queue *q = k->queues;

		unlink_queue(q);
		free_queue(q);
	}
}
