/* SPDX-License-Identifier: MIT */
/* Suspend, resume and snapshots (Linux 6.12 kfd_device_queue_manager.c, kfd_debug.c). */
#include <errno.h>

#include "gpu/model/driver.h"

struct id_list {
	uint32_t *ids;
	uint32_t n;
	uint64_t user; /* where they came from; 0: none were given */
	bool all; /* then all queues are meant */
	uint32_t any; /* for what would be noted of those */
};

static int ids_read(const struct model *m, struct id_list *l, uint64_t user, uint32_t n)
{
	int r;

	*l = (struct id_list){ .user = user, .n = user ? n : 0 };
	if (!user)
		return n ? -EINVAL : 0;
	if (n > MAX_QUEUES_PER_PROCESS)
		return -EINVAL;
	l->ids = calloc(MAX(n, 1u), sizeof(*l->ids));
	if (!l->ids)
		return -ENOMEM;
	r = model_copy_from_user(m, l->ids, user, n * sizeof(*l->ids));
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < n; i++)
		l->ids[i] |= KFD_DBG_QUEUE_INVALID_MASK;
	return 0;
}

static void ids_done(struct id_list *l)
{
	free(l->ids);
}

/* A failed copy is only logged by the driver. */
static void ids_write(const struct model *m, const struct id_list *l)
{
	if (l->user)
		(void)model_copy_to_user(m, l->user, l->ids, l->n * sizeof(*l->ids));
}

/*
 * Where it is noted what becomes of @q; NULL: it is of another GPU, or not in the list. The first
 * of duplicates; an error bit left from an earlier call is part of the id.
 */
static uint32_t *entry_of(struct id_list *l, const struct model_queue *q,
			  const struct model_gpu *gpu)
{
	if (q->gpu != gpu)
		return NULL;
	if (l->all)
		return &l->any;
	for (uint32_t i = 0; i < l->n; i++)
		if ((l->ids[i] & ~KFD_DBG_QUEUE_INVALID_MASK) == q->id)
			return &l->ids[i];
	return NULL;
}

/* ---- the save area ---- */

static int write_area(const struct model_queue *q, uint64_t va, bool in_target, const void *buf,
		      size_t n)
{
	struct mem_space *mm = q->owner->proc->mm;

	if (in_target || mem_covers(mm, va, n))
		return mem_write(mm, va, buf, n);
	return model_copy_to_user(q->gpu->m, va, buf, n);
}

/* The control stack's contents are not modelled, only where they would be. */
int model_wave_state(struct model *m, struct model_queue *q, uint64_t area, bool in_target)
{
	for (uint32_t xcc = 0; xcc < m->config.chip->n_xcc; xcc++) {
		struct kfd_context_save_area_header header = { 0 };
		struct hw_saved_state saved = hw_see(q->hw)->left[xcc];

		header.wave_state.control_stack_offset = q->ctl_stack_bytes - saved.ctl_stack_used;
		header.wave_state.control_stack_size = saved.ctl_stack_used;
		header.wave_state.wave_state_offset = q->ctl_stack_bytes + saved.wave_bytes;
		header.wave_state.wave_state_size = saved.wave_bytes;
		if (write_area(q, area + (uint64_t)xcc * q->cwsr_bytes, in_target,
			       &header.wave_state, sizeof(header.wave_state)) < 0)
			return -EFAULT;
	}
	return 0;
}

/* The headers of all compute queues of the process, as after each suspend. */
static void copy_context(struct model *m, struct model_kproc *k)
{
	const struct model_chip *chip = m->config.chip;
	uint64_t ns = 0;

	for (struct model_queue *q = k->queues; q; q = q->next) {
		if (q->type != QUEUE_COMPUTE)
			continue;
		(void)model_wave_state(m, q, q->cwsr_base, true);
		ns += chip->costs.header_ns * chip->n_xcc;
	}
	model_advance(m, ns);
}

/* ---- suspend ---- */

/* -EBUSY: it is passed over. MES takes it off at once and may fail to. */
static int suspend_one(struct model_queue *q)
{
	if (q->is_suspended)
		return 0;
	if (q->exception_status & KFD_EC_MASK(EC_QUEUE_NEW) || q->is_being_destroyed)
		return -EBUSY;
	q->is_suspended = true;
	if (model_is_mes(q->gpu)) {
		int r = model_mes_remove(q);

		if (r < 0)
			return r;
	}
	q->is_active = false;
	return 0;
}

static uint32_t suspend_on(struct model_kproc *k, struct model_gpu *gpu, struct id_list *l,
			   const struct kfd_ioctl_dbg_trap_suspend_queues_args *a)
{
	bool mes = model_is_mes(gpu);
	uint32_t n = 0;
	int r;

	for (struct model_queue *q = k->queues; q; q = q->next) {
		uint32_t *entry = entry_of(l, q, gpu);

		r = entry ? suspend_one(q) : -EBUSY;
		if (r == -EBUSY)
			continue;
		if (r < 0) {
			*entry |= KFD_DBG_QUEUE_ERROR_MASK;
			break;
		}
		*entry &= ~KFD_DBG_QUEUE_INVALID_MASK;
		if (mes)
			q->exception_status &= ~a->exception_mask;
		n++;
	}
	if (!n || mes)
		return n;
	r = model_execute_queues(gpu, a->grace_period);
	for (struct model_queue *q = k->queues; q; q = q->next) {
		uint32_t *entry = entry_of(l, q, gpu);

		/* Refused queues are treated alike here, their NEW bit included. */
		if (entry && r < 0)
			*entry |= KFD_DBG_QUEUE_ERROR_MASK;
		else if (entry)
			q->exception_status &= ~a->exception_mask;
	}
	return r < 0 ? 0 : n;
}

int model_suspend_queues(struct model *m, struct model_kproc *k,
			 struct kfd_ioctl_dbg_trap_suspend_queues_args *a)
{
	_cleanup_(ids_done) struct id_list l;
	uint32_t total = 0;
	int r;

	r = ids_read(m, &l, a->queue_array_ptr, a->num_queues);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < m->config.n_gpus; i++)
		total += suspend_on(k, &m->gpus[i], &l, a);
	if (total)
		copy_context(m, k);
	ids_write(m, &l);
	return (int)total;
}

/* ---- resume ---- */

static int resume_one(struct model_queue *q)
{
	if (!q->is_suspended)
		return 0;
	q->is_suspended = false;
	if (!model_queue_wants_run(q))
		return 0;
	if (model_is_mes(q->gpu)) {
		int r = model_mes_add(q);

		if (r < 0)
			return r;
	}
	q->is_active = true;
	return 0;
}

static uint32_t resume_on(struct model *m, struct model_kproc *k, struct model_gpu *gpu,
			  struct id_list *l)
{
	uint32_t n = 0;
	int r;

	for (struct model_queue *q = k->queues; q; q = q->next) {
		uint32_t *entry = entry_of(l, q, gpu);

		if (!entry)
			continue;
		r = resume_one(q);
		if (r < 0 && !l->all) {
			*entry |= KFD_DBG_QUEUE_ERROR_MASK;
			break;
		}
		*entry &= ~KFD_DBG_QUEUE_INVALID_MASK;
		n += r == 0;
	}
	if (model_is_mes(gpu))
		model_wake_destroyers(m, gpu);
	if (!n || model_is_mes(gpu))
		return n;
	if (model_execute_queues(gpu, KFD_GRACE_KEEP_DEFAULT) == 0) {
		model_wake_destroyers(m, gpu);
		return n;
	}
	for (struct model_queue *q = k->queues; q; q = q->next) {
		uint32_t *entry = entry_of(l, q, gpu);

		if (entry)
			*entry |= KFD_DBG_QUEUE_ERROR_MASK;
	}
	return 0;
}

/* No array means all queues, whatever the count says. */
int model_resume_queues(struct model *m, struct model_kproc *k, uint64_t array, uint32_t n)
{
	_cleanup_(ids_done) struct id_list l = { .all = !array };
	uint32_t total = 0;
	int r;

	if (array) {
		r = ids_read(m, &l, array, n);
		if (r < 0)
			return r;
	}
	for (uint32_t i = 0; i < m->config.n_gpus; i++)
		total += resume_on(m, k, &m->gpus[i], &l);
	ids_write(m, &l);
	return (int)total;
}

/* ---- snapshots ---- */

uint32_t model_queue_user_type(const struct model_queue *q)
{
	if (q->type == QUEUE_SDMA)
		return KFD_IOC_QUEUE_TYPE_SDMA;
	if (q->type == QUEUE_SDMA_XGMI)
		return KFD_IOC_QUEUE_TYPE_SDMA_XGMI;
	return q->aql ? KFD_IOC_QUEUE_TYPE_COMPUTE_AQL : KFD_IOC_QUEUE_TYPE_COMPUTE;
}

static void fill_entry(const struct model_queue *q, struct kfd_queue_snapshot_entry *e)
{
	*e = (struct kfd_queue_snapshot_entry){
		.exception_status = q->exception_status,
		.ring_base_address = q->ring_base,
		.write_pointer_address = q->write_ptr,
		.read_pointer_address = q->read_ptr,
		.ctx_save_restore_address = q->cwsr_base,
		.queue_id = q->id,
		.gpu_id = q->gpu->id,
		.ring_size = q->ring_bytes,
		.queue_type = model_queue_user_type(q),
		.ctx_save_restore_area_size = q->cwsr_bytes,
	};
}

int model_queue_snapshot(struct model *m, struct model_kproc *k,
			 struct kfd_ioctl_dbg_trap_queue_snapshot_args *a)
{
	uint32_t stride = a->entry_size, room = a->num_queues;
	uint64_t at = a->snapshot_buf_ptr;

	a->num_queues = 0;
	if (!stride)
		return -EINVAL;
	a->entry_size = MIN(stride, (uint32_t)sizeof(struct kfd_queue_snapshot_entry));
	for (struct model_queue *q = k->queues; q; q = q->next) {
		if (a->num_queues < room) {
			struct kfd_queue_snapshot_entry e;

			fill_entry(q, &e);
			q->exception_status &= ~a->exception_mask;
			if (model_copy_to_user(m, at, &e, a->entry_size) < 0)
				return -EFAULT;
			at += stride;
		}
		a->num_queues++;
	}
	return 0;
}

static void fill_device(const struct model_gpu *gpu, const struct model_pdd *pdd,
			struct kfd_dbg_device_info_entry *e)
{
	const struct model_chip *chip = gpu->m->config.chip;

	*e = (struct kfd_dbg_device_info_entry){
		.exception_status = pdd->exception_status,
		.lds_base = MODEL_LDS_BASE,
		.lds_limit = MODEL_LDS_BASE | UINT32_MAX,
		.scratch_base = MODEL_SCRATCH_BASE,
		.scratch_limit = MODEL_SCRATCH_BASE | UINT32_MAX,
		.gpuvm_base = MODEL_GPUVM_BASE,
		.gpuvm_limit = MODEL_GPUVM_LIMIT,
		.gpu_id = gpu->id,
		.location_id = model_gpu_location(gpu),
		.vendor_id = MODEL_PCI_VENDOR,
		.device_id = model_gpu_device_id(gpu),
		.fw_version = MODEL_MEC_FW_VERSION,
		.gfx_target_version = chip->gfx_target_version,
		.simd_count = chip->n_xcc * chip->cu_per_xcc * MODEL_SIMD_PER_CU,
		.max_waves_per_simd = MODEL_WAVES_PER_SIMD,
		.array_count = chip->n_engines,
		.simd_arrays_per_engine = 1,
		.num_xcc = chip->n_xcc,
		.capability = model_gpu_capability(gpu),
		.debug_prop = model_gpu_debug_prop(gpu),
	};
}

int model_device_snapshot(struct model *m, struct model_kproc *k,
			  struct kfd_ioctl_dbg_trap_device_snapshot_args *a)
{
	uint32_t stride = a->entry_size;
	uint32_t n = MIN(a->num_devices, m->config.n_gpus);
	uint64_t at = a->snapshot_buf_ptr;

	if (!at)
		return -EINVAL;
	a->num_devices = m->config.n_gpus;
	a->entry_size = MIN(stride, (uint32_t)sizeof(struct kfd_dbg_device_info_entry));
	for (uint32_t i = 0; i < n; i++) {
		struct kfd_dbg_device_info_entry e;

		fill_device(&m->gpus[i], &k->pdds[i], &e);
		k->pdds[i].exception_status &= ~a->exception_mask;
		if (model_copy_to_user(m, at, &e, a->entry_size) < 0)
			return -EFAULT;
		at += stride;
	}
	return 0;
}
