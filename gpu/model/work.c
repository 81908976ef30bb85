/* SPDX-License-Identifier: MIT */
/* What a well-behaved runtime does: memory for a queue, its creation, packets, doorbells. */
#include <errno.h>
#include <string.h>

#include "gpu/model/driver.h"

#define DEFAULT_RING_PACKETS 1024u
#define PACKET_BYTES ((uint32_t)AQL_PACKET_BYTES)
#define EOP_BYTES 4096u
/* amd_queue_t, as ROCr lays it out in one page */
#define AQL_WRITE_OFFSET 56
#define AQL_READ_OFFSET 128
#define WAVE_LANES 64u

struct slot_memory { /* what the packet in a slot of the ring points to */
	struct hw_kernel kernel;
	_Alignas(AQL_SIGNAL_BYTES) struct {
		uint64_t kind;
		int64_t value;
	} signal;
};
_Static_assert(offsetof(struct slot_memory, signal.value) % AQL_SIGNAL_BYTES ==
		       AQL_SIGNAL_VALUE_OFFSET,
	       "a signal has its value where packets expect it");

static uint32_t slots(const struct model_queue *q)
{
	return q->ring_bytes / PACKET_BYTES;
}

/* The ring's pointers count packets, dwords or bytes. */
static uint32_t pointer_unit(const struct model_queue *q)
{
	if (q->type != QUEUE_COMPUTE)
		return PACKET_BYTES;
	return q->aql ? 1 : PACKET_BYTES / 4;
}

/* ---- creation ---- */

static int invalidate_ring(struct mem_space *mm, uint64_t va, uint32_t bytes)
{
	struct aql_dispatch page[PAGE_BYTES / AQL_PACKET_BYTES];
	int r;

	memset(page, 0, sizeof(page));
	for (size_t i = 0; i < ARRAY_SIZE(page); i++)
		page[i].header = AQL_INVALID;
	for (uint32_t at = 0; at < bytes; at += PAGE_BYTES) {
		r = mem_write(mm, va + at, page, MIN(bytes - at, PAGE_BYTES));
		if (r < 0)
			return r;
	}
	return 0;
}

/* The part of each header that libhsakmt writes and the driver leaves alone. */
static int init_save_area(struct mem_space *mm, uint64_t va, const struct model_chip *chip,
			  const struct cwsr_sizes *sizes)
{
	for (uint32_t xcc = 0; xcc < chip->n_xcc; xcc++) {
		struct kfd_context_save_area_header header = {
			.debug_offset = (chip->n_xcc - xcc) * sizes->cwsr,
			.debug_size = sizes->debug * chip->n_xcc,
		};
		int r = mem_write(mm, va + (uint64_t)xcc * sizes->cwsr, &header, sizeof(header));

		if (r < 0)
			return r;
	}
	return 0;
}

static int map_buffers(struct model *m, struct mem_space *mm, bool aql,
		       struct kfd_ioctl_create_queue_args *a)
{
	bool compute = aql || a->queue_type == KFD_IOC_QUEUE_TYPE_COMPUTE;
	const struct model_chip *chip = m->config.chip;
	struct cwsr_sizes sizes = model_cwsr_sizes(chip);
	uint64_t pointers;

	a->ring_base_address = mem_map(mm, a->ring_size);
	pointers = mem_map_page(mm);
	if (!a->ring_base_address || !pointers)
		return -ENOMEM;
	a->write_pointer_address = pointers + AQL_WRITE_OFFSET;
	a->read_pointer_address = pointers + AQL_READ_OFFSET;
	if (aql && invalidate_ring(mm, a->ring_base_address, a->ring_size) < 0)
		return -ENOMEM;
	if (!compute)
		return 0;
	a->eop_buffer_address = mem_map(mm, EOP_BYTES);
	a->eop_buffer_size = EOP_BYTES;
	a->ctx_save_restore_size = sizes.cwsr;
	a->ctl_stack_size = sizes.ctl_stack;
	a->ctx_save_restore_address =
		mem_map(mm, ((size_t)sizes.cwsr + sizes.debug) * chip->n_xcc);
	if (!a->eop_buffer_address || !a->ctx_save_restore_address)
		return -ENOMEM;
	return init_save_area(mm, a->ctx_save_restore_address, chip, &sizes);
}

int model_queue_create(struct model *m, pid_t pid, const struct model_queue_spec *spec,
		       uint32_t *ret_id)
{
	struct model_task task = { .pid = pid, .tid = pid };
	struct model_proc *p = model_proc_find(m, pid);
	struct kfd_ioctl_create_queue_args args = {
		.gpu_id = model_gpu_id(m, spec->gpu_index),
		.queue_type = spec->type,
		.queue_priority = spec->priority,
		.queue_percentage = spec->percent_zero ? 0 : KFD_MAX_QUEUE_PERCENTAGE,
		.ring_size = (spec->ring_packets ? spec->ring_packets : DEFAULT_RING_PACKETS) *
			     PACKET_BYTES,
	};
	int r;

	r = model_kfd_open(m, task);
	if (r < 0)
		return r;
	r = model_vm_acquire(m, pid, spec->gpu_index);
	if (r < 0)
		return r;
	r = map_buffers(m, p->mm, spec->type == KFD_IOC_QUEUE_TYPE_COMPUTE_AQL, &args);
	if (r < 0)
		return r;
	r = model_ioctl(m, task, pid, AMDKFD_IOC_CREATE_QUEUE, &args);
	if (r < 0)
		return r;
	*ret_id = args.queue_id;
	return 0;
}

/* ---- packets ---- */

/* 0: out of memory. */
static uint64_t memory_of(struct model_queue *q, uint32_t slot)
{
	if (!q->slots_va)
		q->slots_va = mem_map(q->owner->proc->mm, slots(q) * sizeof(struct slot_memory));
	return q->slots_va ? q->slots_va + slot * sizeof(struct slot_memory) : 0;
}

static int write_packet(struct model_queue *q, const struct model_work *w, uint32_t slot)
{
	struct mem_space *mm = q->owner->proc->mm;
	struct slot_memory memory = {
		.kernel = {
			.magic = HW_KERNEL_MAGIC,
			.wg_ns = w->wg_ns,
			.wg_units = HW_CU_UNITS / MAX(w->wg_per_cu, 1u),
		},
		.signal.value = 1,
	};
	uint64_t va = memory_of(q, slot);
	uint64_t signal = w->signal ? va + offsetof(struct slot_memory, signal) : 0;
	struct hw_timed_packet timed = {
		.magic = HW_TIMED_MAGIC,
		.busy_ns = w->wg_ns * MAX(w->workgroups, 1u),
		.completion_signal = signal,
	};
	struct aql_dispatch dispatch = {
		.header = AQL_KERNEL_DISPATCH | (w->barrier ? AQL_BARRIER_BIT : 0),
		.setup = 1,
		.workgroup_x = WAVE_LANES,
		.workgroup_y = 1,
		.workgroup_z = 1,
		.grid_x = w->workgroups * WAVE_LANES,
		.grid_y = 1,
		.grid_z = 1,
		.kernel_object = va + offsetof(struct slot_memory, kernel),
		.completion_signal = signal,
	};

	if (!va || mem_write(mm, va, &memory, sizeof(memory)) < 0)
		return -ENOMEM;
	return mem_write(mm, q->ring_base + (uint64_t)slot * PACKET_BYTES,
			 q->aql ? (void *)&dispatch : &timed, PACKET_BYTES);
}

static uint64_t write_index(const struct model_queue *q)
{
	return mem_read64(q->owner->proc->mm, q->write_ptr) / pointer_unit(q);
}

static int submit_at(struct model_queue *q, const struct model_work *w, uint64_t index, bool move)
{
	struct mem_space *mm = q->owner->proc->mm;
	uint32_t unit = pointer_unit(q);
	uint64_t read = mem_read64(mm, q->read_ptr) / unit;
	int r;

	if (index - read >= slots(q))
		return -ENOSPC;
	r = write_packet(q, w, (uint32_t)(index % slots(q)));
	if (r < 0)
		return r;
	if (move)
		mem_write64(mm, q->write_ptr, (index + 1) * unit);
	hw_doorbell(q->hw);
	return 0;
}

static int submit(struct model_queue *q, const struct model_work *w, uint64_t *ret_index)
{
	uint64_t index = write_index(q);
	int r = submit_at(q, w, index, true);

	if (r == 0 && ret_index)
		*ret_index = index;
	return r;
}

int model_submit(struct model *m, pid_t pid, uint32_t queue_id, const struct model_work *work,
		 uint64_t *ret_index)
{
	struct model_queue *q = model_queue_of(m, pid, queue_id);

	return q ? submit(q, work, ret_index) : -ENOENT;
}

int model_submit_reserved(struct model *m, pid_t pid, uint32_t queue_id,
			  const struct model_work *work, uint64_t index)
{
	struct model_queue *q = model_queue_of(m, pid, queue_id);

	return q ? submit_at(q, work, index, false) : -ENOENT;
}

void model_unreserve(struct model *m, pid_t pid, uint32_t queue_id)
{
	struct model_queue *q = model_queue_of(m, pid, queue_id);

	if (q)
		mem_add64(q->owner->proc->mm, q->write_ptr, -(uint64_t)pointer_unit(q));
}

int model_write_pointer(struct model *m, pid_t pid, uint32_t queue_id, uint64_t *ret_va,
			uint64_t *ret_index)
{
	struct model_queue *q = model_queue_of(m, pid, queue_id);

	if (!q)
		return -ENOENT;
	*ret_va = q->write_ptr;
	*ret_index = write_index(q);
	return 0;
}

/* A ring without room is filled up again after the next completion. */
static void refill(void *user, uint64_t completed)
{
	struct model_queue *q = user;

	(void)submit(q, &q->loop, NULL);
}

int model_loop(struct model *m, pid_t pid, uint32_t queue_id, const struct model_work *work,
	       uint32_t depth)
{
	struct model_queue *q = model_queue_of(m, pid, queue_id);
	int r;

	if (!q)
		return -ENOENT;
	if (!depth || depth > slots(q))
		return -EINVAL;
	q->loop = *work;
	hw_queue_on_complete(q->hw, refill, q);
	for (uint32_t i = 0; i < depth; i++) {
		r = submit(q, work, NULL);
		if (r < 0)
			return r;
	}
	return 0;
}
