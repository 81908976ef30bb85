/* SPDX-License-Identifier: MIT */
/*
 * Creation, changes and destruction of queues (Linux 6.12 kfd_chardev.c,
 * kfd_process_queue_manager.c), and what they need: ids, engines, doorbells, buffers of the right
 * size.
 */
#include <errno.h>
#include <string.h>

#include "gpu/model/driver.h"

#define ENOTSUPP 524 /* the kernel's own; it reaches user space for an unknown queue type */
#define MMAP_TYPE_DOORBELL (3ull << 62)
#define MMAP_GPU_ID_SHIFT 46
#define DOORBELL_BYTES 8u
#define GWS_SLOTS 64
#define MAX_CU_MASK_BITS 1024u

#define SDMA_DOORBELL_FIRST 0x100u /* of all layouts but the first */
#define SDMA_DOORBELL_RANGE 10u
#define SDMA_DOORBELL_ALIGN 4u
#define DOORBELL_MIRROR 512u

#define CTL_STACK_BYTES_PER_WAVE 8u
#define CTL_STACK_BYTES_PER_WAVE_10 12u /* gfx10 and later */
#define DEBUG_BYTES_PER_WAVE 32u
#define ALIGN_UP(n, to) (((n) + (to)-1) / (to) * (to))

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

/* ---- what a queue needs ---- */

int model_bit_take(uint8_t *map, uint32_t first, uint32_t step, uint32_t n)
{
	for (uint32_t i = first; i < n; i += step) {
		if (map[i / 8] & (1u << (i % 8)))
			continue;
		map[i / 8] |= (uint8_t)(1u << (i % 8));
		return (int)i;
	}
	return -1;
}

static void bit_clear(uint8_t *map, size_t bit)
{
	map[bit / 8] &= (uint8_t) ~(1u << (bit % 8));
}

/* The driver counts the first two of all engines as PCIe ones, the rest as XGMI. */
uint32_t model_sdma_engines(const struct model_chip *chip)
{
	return chip->xgmi ? MIN(chip->n_sdma, 2u) : chip->n_sdma;
}

/* kfd_device_info_set_sdma_info() of Linux 6.12 kfd_device.c */
uint32_t model_sdma_queues(const struct model_chip *chip)
{
	return chip->gfx_target_version == 90000 ? 2 : 8;
}

/* kfd_queue_ctx_save_restore_size() of Linux 6.12 kfd_queue.c */
struct cwsr_sizes model_cwsr_sizes(const struct model_chip *chip)
{
	bool gfx9 = chip->gfx_target_version < 100100;
	uint32_t waves =
		gfx9 ? MIN(chip->cu_per_xcc * 40, chip->n_engines * 512) : chip->cu_per_xcc * 32;
	uint32_t header = sizeof(struct kfd_context_save_area_header);
	uint32_t stack = waves * (gfx9 ? CTL_STACK_BYTES_PER_WAVE : CTL_STACK_BYTES_PER_WAVE_10);
	uint32_t ctl_stack = ALIGN_UP(header + stack + 8, PAGE_BYTES);

	return (struct cwsr_sizes){
		.ctl_stack = ctl_stack,
		.cwsr = ctl_stack +
			ALIGN_UP(chip->cu_per_xcc * chip->cwsr_bytes_per_cu, PAGE_BYTES),
		.debug = ALIGN_UP(waves * DEBUG_BYTES_PER_WAVE, 64u),
	};
}

/* -ENOMEM when all slots of the engine are taken. @q's type becomes what the engine is. */
static int sdma_take(struct model_queue *q, uint32_t ioc_type)
{
	const struct model_chip *chip = q->gpu->m->config.chip;
	uint32_t n_pcie = model_sdma_engines(chip);
	bool chosen = ioc_type == KFD_IOC_QUEUE_TYPE_SDMA_BY_ENG_ID;
	bool xgmi = chosen ? q->sdma_engine >= n_pcie : ioc_type == KFD_IOC_QUEUE_TYPE_SDMA_XGMI;
	uint32_t n = xgmi ? chip->n_sdma - n_pcie : n_pcie;
	uint32_t first = xgmi ? n_pcie : 0;
	uint32_t n_slots = n * model_sdma_queues(chip);
	uint8_t *map = q->gpu->sdma_used[xgmi];
	int id;

	id = model_bit_take(map, chosen ? q->sdma_engine - first : 0, chosen ? n : 1, n_slots);
	if (id < 0)
		return -ENOMEM;
	q->type = xgmi ? QUEUE_SDMA_XGMI : QUEUE_SDMA;
	q->sdma_id = (uint32_t)id;
	q->sdma_engine = first + q->sdma_id % n;
	q->sdma_queue = q->sdma_id / n;
	return 0;
}

static void sdma_give(struct model_queue *q)
{
	if (q->type != QUEUE_COMPUTE)
		bit_clear(q->gpu->sdma_used[q->type == QUEUE_SDMA_XGMI], q->sdma_id);
}

/* Static: by engine and queue. Since 6.12.115 gfx942 keeps to blocks of 32 bytes. */
static uint32_t sdma_doorbell(const struct model_queue *q)
{
	uint32_t base = SDMA_DOORBELL_FIRST + q->sdma_engine * SDMA_DOORBELL_RANGE;

	if (q->gpu->m->config.chip->gfx_target_version / 100 == 904)
		base = ALIGN_UP(base, SDMA_DOORBELL_ALIGN);
	return base + (q->sdma_queue & 1) * DOORBELL_MIRROR + (q->sdma_queue >> 1);
}

static int doorbell_take(struct model_queue *q)
{
	int id;

	if (q->type != QUEUE_COMPUTE) {
		q->doorbell_id = sdma_doorbell(q);
		return 0;
	}
	id = model_bit_take(q->pdd->doorbells, 0, 1, MAX_QUEUES_PER_PROCESS);
	if (id < 0)
		return -EBUSY;
	q->doorbell_id = (uint32_t)id;
	return 0;
}

static void doorbell_give(struct model_queue *q)
{
	if (q->type == QUEUE_COMPUTE)
		bit_clear(q->pdd->doorbells, q->doorbell_id);
}

/* A region that starts in the page of @va and, where @bytes fill a page, ends with them. */
static bool mapped_exactly(const struct mem_space *mm, uint64_t va, uint64_t bytes)
{
	uint64_t start = va & ~(uint64_t)(PAGE_BYTES - 1);
	uint64_t whole = bytes & ~(uint64_t)(PAGE_BYTES - 1);

	if (!start || !mem_covers(mm, start, whole ? whole : PAGE_BYTES))
		return false;
	if (mem_covers(mm, start - 1, 2))
		return false;
	return !whole || !mem_covers(mm, start, whole + 1);
}

/* ---- creation ---- */

/* What can also be changed later. */
static int check_properties(uint32_t percentage, uint32_t priority, uint64_t ring, uint32_t *bytes)
{
	if ((percentage & 0xff) > KFD_MAX_QUEUE_PERCENTAGE || priority > KFD_MAX_QUEUE_PRIORITY)
		return -EINVAL;
	if (!model_access_ok(ring))
		return -EFAULT;
	if (*bytes & (*bytes - 1))
		return -EINVAL;
	*bytes = MAX(*bytes, (uint32_t)KFD_MIN_QUEUE_RING_SIZE);
	return 0;
}

static int check_create_args(struct kfd_ioctl_create_queue_args *a)
{
	int r = check_properties(a->queue_percentage, a->queue_priority, a->ring_base_address,
				 &a->ring_size);

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
	struct cwsr_sizes sizes = model_cwsr_sizes(chip);
	uint64_t cwsr_total;

	if (!mapped_exactly(mm, q->write_ptr, PAGE_BYTES) ||
	    !mapped_exactly(mm, q->read_ptr, PAGE_BYTES) ||
	    !mapped_exactly(mm, q->ring_base, q->ring_bytes))
		return -EINVAL;
	if (q->type != QUEUE_COMPUTE)
		return 0;
	if (q->eop_base && (q->eop_bytes < PAGE_BYTES ||
			    !mapped_exactly(mm, q->eop_base, q->eop_bytes + (PAGE_BYTES - 1ull))))
		return -EINVAL;
	if (q->ctl_stack_bytes != sizes.ctl_stack || q->cwsr_bytes < sizes.cwsr)
		return -EINVAL;
	cwsr_total = ((uint64_t)q->cwsr_bytes + sizes.debug) * chip->n_xcc + PAGE_BYTES - 1;
	return mapped_exactly(mm, q->cwsr_base, cwsr_total) ? 0 : -EINVAL;
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
	hw_queue_free(q->hw);
	free(q);
}

static void free_queuep(struct model_queue **q)
{
	if (*q)
		free_queue(*q);
}

/* create_queue_cpsch() */
static int insert_queue(struct model_queue *q, uint32_t ioc_type)
{
	int r;

	if (q->gpu->total_queues >= MAX_QUEUES_PER_DEVICE)
		return -EPERM;
	if (q->type != QUEUE_COMPUTE) {
		r = sdma_take(q, ioc_type);
		if (r < 0)
			return r;
	}
	r = doorbell_take(q);
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
		r = model_execute_queues(q->gpu, KFD_GRACE_KEEP_DEFAULT);
		if (r < 0) {
			q->is_active = false;
			unlink_queue(q);
			goto fail_doorbell;
		}
	}
	q->gpu->total_queues++;
	return 0;

fail_doorbell:
	doorbell_give(q);
fail_sdma:
	sdma_give(q);
	return r;
}

int model_ioc_create_queue(struct call *c, void *data)
{
	struct kfd_ioctl_create_queue_args *a = data;
	const struct model_chip *chip = c->m->config.chip;
	_cleanup_(free_queuep) struct model_queue *q = NULL;
	struct model_kproc *k = c->kproc;
	struct model_pdd *pdd;
	int r, id;

	r = check_create_args(a);
	if (r < 0)
		return r;
	pdd = model_pdd_by_id(c->m, k, a->gpu_id);
	if (!pdd)
		return -EINVAL;
	if (!pdd->vm_acquired)
		return -ESRCH;
	if (a->queue_type == KFD_IOC_QUEUE_TYPE_SDMA_BY_ENG_ID && a->sdma_engine_id >= chip->n_sdma)
		return -EINVAL;
	q = queue_from_args(k, pdd, a);
	if (!q)
		return -ENOMEM;
	r = check_buffers(q);
	if (r < 0)
		return r;
	if (pdd->queue_count >= max_queues_per_pdd(chip))
		return -ENOSPC;
	id = model_bit_take(k->ids, 0, 1, MAX_QUEUES_PER_PROCESS);
	if (id < 0)
		return -ENOMEM;
	q->id = (uint32_t)id;
	r = insert_queue(q, a->queue_type);
	if (r < 0) {
		bit_clear(k->ids, q->id);
		return r;
	}
	a->queue_id = q->id;
	a->doorbell_offset = MMAP_TYPE_DOORBELL | ((uint64_t)a->gpu_id << MMAP_GPU_ID_SHIFT) |
			     (q->doorbell_id * DOORBELL_BYTES);
	model_dbg_raise(k, KFD_EC_MASK(EC_QUEUE_NEW), q->gpu, q->id);
	steal_ptr(&q);
	return 0;
}

/* ---- changes: each costs a runlist cycle ---- */

/* update_queue() of Linux 6.12 kfd_device_queue_manager.c */
static int update_queue(struct model_queue *q)
{
	bool mes = model_is_mes(q->gpu);
	int r = mes ? model_mes_remove(q) : model_unmap_queues(q->gpu, KFD_GRACE_KEEP_DEFAULT);

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
	int r;

	r = check_properties(a->queue_percentage, a->queue_priority, a->ring_base_address,
			     &a->ring_size);
	if (r < 0)
		return r;
	q = model_queue_find(c->kproc, a->queue_id);
	if (!q)
		return -EFAULT;
	if (a->ring_base_address &&
	    !mapped_exactly(q->owner->proc->mm, a->ring_base_address, a->ring_size))
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
	int r;

	if (!q)
		return -EFAULT;
	if (q->type != QUEUE_COMPUTE || q->is_active)
		return -EINVAL;
	r = model_wave_state(c->m, q, a->ctl_stack_address, false);
	if (r < 0)
		return r;
	a->ctl_stack_used_size = hw_see(q->hw)->left[0].ctl_stack_used;
	a->save_area_used_size = hw_see(q->hw)->left[0].wave_bytes;
	return 0;
}

/* ---- destruction ---- */

int model_queue_destroy_now(struct model_queue *q)
{
	struct model_kproc *k = q->owner;
	struct model_gpu *gpu = q->gpu;
	int r = 0;

	doorbell_give(q);
	sdma_give(q);
	if (q->is_active) {
		q->is_active = false;
		r = model_execute_queues(gpu, KFD_GRACE_KEEP_DEFAULT);
	}
	unlink_queue(q);
	gpu->total_queues--;
	model_dbg_raise(k, KFD_EC_MASK(EC_DEVICE_QUEUE_DELETE), gpu, UINT32_MAX);
	if (q->gws)
		q->pdd->num_gws = 0;
	bit_clear(k->ids, q->id);
	free_queue(q);
	return r;
}

int model_ioc_destroy_queue(struct call *c, void *data)
{
	const struct kfd_ioctl_destroy_queue_args *a = data;
	struct model_queue *q = model_queue_find(c->kproc, a->queue_id);
	int r;

	if (!q)
		return -EINVAL;
	if (q->is_being_destroyed)
		return -EBUSY;
	q->is_being_destroyed = true;
	if (!c->kproc->debug_enabled || !q->is_suspended)
		return model_queue_destroy_now(q);
	r = model_block(c->m, c->task, c->kproc, BLOCKED_DESTROY, q->id);
	q->is_being_destroyed = r == MODEL_BLOCKED;
	return r;
}

/* process_termination_cpsch(): without MES one cycle on every GPU, even without queues there. */
void model_queues_terminate(struct model *m, struct model_kproc *k)
{
	for (struct model_queue *q = k->queues; q; q = q->next) {
		sdma_give(q);
		if (model_is_mes(q->gpu))
			model_mes_remove(q);
		q->gpu->total_queues--;
	}
	for (uint32_t i = 0; i < m->config.n_gpus; i++)
		model_execute_queues(&m->gpus[i], KFD_GRACE_KEEP_DEFAULT);
	while (k->queues) {
		struct model_queue *q = k->queues;

		unlink_queue(q);
		free_queue(q);
	}
}
