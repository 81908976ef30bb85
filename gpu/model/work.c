/* SPDX-License-Identifier: MIT */
/* What a well-behaved runtime does: memory for a queue, its creation, packets, doorbells. */
#include <errno.h>
#include <string.h>

#include "gpu/model/driver.h"

#define DEFAULT_RING_PACKETS 1024u
#define PACKET_BYTES 64u
#define EOP_BYTES 4096u
/* amd_queue_t, as ROCr lays it out in one page */
#define AQL_WRITE_OFFSET 56
#define AQL_READ_OFFSET 128
#define KERNELS_PER_PAGE (PAGE_BYTES / sizeof(struct hw_kernel))
#define WAVE_LANES 64u

struct model_program { /* the user side of one queue */
	uint64_t kernels_va; /* 0: none yet */
	uint32_t n_kernels;
	struct hw_kernel last; /* what kernels_va holds at n_kernels - 1 */
	uint64_t signals_va; /* one per ring slot */
	struct model_work loop;
};

void model_program_free(struct model_queue *q)
{
	free(q->program);
	q->program = NULL;
}

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
	struct cwsr_sizes sizes;
	uint64_t pointers;

	a->ring_base_address = mem_map(mm, a->ring_size);
	pointers = mem_map(mm, PAGE_BYTES);
	if (!a->ring_base_address || !pointers)
		return -ENOMEM;
	a->write_pointer_address = pointers + AQL_WRITE_OFFSET;
	a->read_pointer_address = pointers + AQL_READ_OFFSET;
	if (aql && invalidate_ring(mm, a->ring_base_address, a->ring_size) < 0)
		return -ENOMEM;
	if (!compute)
		return 0;
	model_cwsr_sizes(chip, &sizes);
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

	if (!p)
		return -ESRCH;
	if (!p->has_fd) {
		r = model_kfd_open(m, task);
		if (r < 0)
			return r;
	}
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

static struct model_program *program_of(struct model_queue *q)
{
	if (!q->program)
		q->program = calloc(1, sizeof(*q->program));
	return q->program;
}

static uint64_t kernel_for(struct model_queue *q, const struct model_work *w)
{
	struct model_program *prog = q->program;
	struct hw_kernel kernel = {
		.magic = HW_KERNEL_MAGIC,
		.wg_ns = w->wg_ns,
		.wg_units = HW_CU_UNITS / MAX(w->wg_per_cu, 1u),
	};
	uint64_t va;

	if (prog->n_kernels && !memcmp(&kernel, &prog->last, sizeof(kernel)))
		return prog->kernels_va + (prog->n_kernels - 1) * sizeof(kernel);
	if (!prog->kernels_va || prog->n_kernels == KERNELS_PER_PAGE) {
		prog->kernels_va = mem_map(q->owner->proc->mm, PAGE_BYTES);
		prog->n_kernels = 0;
		if (!prog->kernels_va)
			return 0;
	}
	va = prog->kernels_va + prog->n_kernels * sizeof(kernel);
	if (mem_write(q->owner->proc->mm, va, &kernel, sizeof(kernel)) < 0)
		return 0;
	prog->last = kernel;
	prog->n_kernels++;
	return va;
}

static uint64_t signal_for(struct model_queue *q, uint32_t slot)
{
	struct mem_space *mm = q->owner->proc->mm;
	struct model_program *prog = q->program;
	uint64_t va;

	if (!prog->signals_va)
		prog->signals_va = mem_map(mm, (size_t)slots(q) * AQL_SIGNAL_BYTES);
	if (!prog->signals_va)
		return 0;
	va = prog->signals_va + (uint64_t)slot * AQL_SIGNAL_BYTES;
	mem_write64(mm, va + AQL_SIGNAL_VALUE_OFFSET, 1);
	return va;
}

static int write_dispatch(struct model_queue *q, const struct model_work *w, uint32_t slot)
{
	struct aql_dispatch packet = {
		.header = AQL_KERNEL_DISPATCH | (w->barrier ? AQL_BARRIER_BIT : 0),
		.setup = 1,
		.workgroup_x = WAVE_LANES,
		.workgroup_y = 1,
		.workgroup_z = 1,
		.grid_x = w->workgroups * WAVE_LANES,
		.grid_y = 1,
		.grid_z = 1,
		.kernel_object = kernel_for(q, w),
	};

	if (!packet.kernel_object)
		return -ENOMEM;
	if (w->signal) {
		packet.completion_signal = signal_for(q, slot);
		if (!packet.completion_signal)
			return -ENOMEM;
	}
	return mem_write(q->owner->proc->mm, q->ring_base + (uint64_t)slot * PACKET_BYTES, &packet,
			 sizeof(packet));
}

static int write_timed(struct model_queue *q, const struct model_work *w, uint32_t slot)
{
	struct hw_timed_packet packet = {
		.magic = HW_TIMED_MAGIC,
		.busy_ns = w->wg_ns * MAX(w->workgroups, 1u),
		.completion_signal = w->signal ? signal_for(q, slot) : 0,
	};

	return mem_write(q->owner->proc->mm, q->ring_base + (uint64_t)slot * PACKET_BYTES, &packet,
			 sizeof(packet));
}

static int submit(struct model_queue *q, const struct model_work *w, uint64_t *ret_index)
{
	struct mem_space *mm = q->owner->proc->mm;
	uint32_t unit = pointer_unit(q);
	uint64_t index = mem_read64(mm, q->write_ptr) / unit;
	uint64_t read = mem_read64(mm, q->read_ptr) / unit;
	uint32_t slot;
	int r;

	if (!program_of(q))
		return -ENOMEM;
	if (index - read >= slots(q))
		return -ENOSPC;
	slot = (uint32_t)(index % slots(q));
	r = q->aql ? write_dispatch(q, w, slot) : write_timed(q, w, slot);
	if (r < 0)
		return r;
	mem_write64(mm, q->write_ptr, (index + 1) * unit);
	hw_doorbell(q->hw);
	*ret_index = index;
	return 0;
}

int model_submit(struct model *m, pid_t pid, uint32_t queue_id, const struct model_work *work,
		 uint64_t *ret_index)
{
	struct model_queue *q = model_queue_of(m, pid, queue_id);
	uint64_t index;
	int r;

	if (!q)
		return -ENOENT;
	r = submit(q, work, &index);
	if (r == 0 && ret_index)
		*ret_index = index;
	return r;
}

/* A ring without room is filled up again after the next completion. */
static void refill(void *user, uint64_t completed)
{
	struct model_queue *q = user;
	uint64_t index;

	(void)completed;
	(void)submit(q, &q->program->loop, &index);
}

int model_loop(struct model *m, pid_t pid, uint32_t queue_id, const struct model_work *work,
	       uint32_t depth)
{
	struct model_queue *q = model_queue_of(m, pid, queue_id);
	uint64_t index;
	int r;

	if (!q)
		return -ENOENT;
	if (!depth || depth > slots(q))
		return -EINVAL;
	if (!program_of(q))
		return -ENOMEM;
	q->program->loop = *work;
	hw_queue_on_complete(q->hw, refill, q);
	for (uint32_t i = 0; i < depth; i++) {
		r = submit(q, work, &index);
		if (r < 0)
			return r;
	}
	return 0;
}
