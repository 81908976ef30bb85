/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "abi/aql.h"
#include "abi/kfd_memory.h"
#include "kernel/kfdsim/kernarg.h"
#include "tests/vm/mk.h"

#define PAGE 4096u
#define RING_BYTES (MK_SLOTS * AQL_PACKET_BYTES)
#define DOORBELL_BYTES (2 * PAGE)
#define RELEASE_MEM_DWORDS 8u
#define SDMA_BYTES (8 * 4u)

static size_t round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

/* Linux 6.12 kfd_queue.c wants the whole of it, to the byte. */
static size_t save_area_bytes(const struct mk_gpu *gpu)
{
	uint32_t cu = gpu->simd_count / gpu->simd_per_cu / gpu->n_xcc;
	uint32_t engines = gpu->array_count / gpu->arrays_per_engine;
	uint32_t waves = cu * 32;

	if (gpu->gfx_target_version < 100100)
		waves = cu * 40 < engines * 512 ? cu * 40 : engines * 512;
	return round_up((gpu->cwsr_size + round_up(waves * 32, 64)) * gpu->n_xcc, PAGE);
}

static void map_doorbells(struct mk_gpu *gpu, uint64_t offset)
{
	if (gpu->doorbells)
		return;
	gpu->doorbells = mmap(NULL, DOORBELL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, gpu->kfd,
			      (off_t)(offset & ~(uint64_t)(DOORBELL_BYTES - 1)));
	if (gpu->doorbells == MAP_FAILED)
		mk_die("mmap of doorbells");
}

static void make_memory(struct mk_queue *q)
{
	uint64_t *page = mk_alloc(q->gpu, PAGE, NULL);

	q->write = page + 7; /* where amd_queue_t has them */
	q->read = page + 16;
	q->signal = (int64_t *)(page + 64);
	q->word = page + 128;
	q->ring = mk_alloc(q->gpu, RING_BYTES, NULL);
	if (q->kind != MK_AQL)
		return;
	q->args = mk_alloc(q->gpu, round_up(MK_SLOTS * sizeof(*q->args), PAGE), NULL);
}

static void make_save_area(struct mk_queue *q)
{
	if (q->kind == MK_SDMA)
		return;
	q->eop = mk_alloc(q->gpu, PAGE, NULL);
	q->save_area = mk_alloc(q->gpu, save_area_bytes(q->gpu), NULL);
}

/* Nothing submitted, nothing done. */
static void clear(struct mk_queue *q)
{
	q->submitted = q->written = q->expected = 0;
	*q->write = *q->read = *q->word = 0;
	if (q->kind != MK_AQL)
		return;
	q->signal[2] = (int64_t)q->gpu->mailbox;
	q->signal[3] = q->gpu->event_id;
	for (uint32_t i = 0; i < MK_SLOTS; i++)
		*(uint16_t *)(q->ring + i * AQL_PACKET_BYTES) = AQL_INVALID;
}

static void create(struct mk_queue *q)
{
	static const uint32_t types[] = {
		[MK_AQL] = KFD_IOC_QUEUE_TYPE_COMPUTE_AQL,
		[MK_PM4] = KFD_IOC_QUEUE_TYPE_COMPUTE,
		[MK_SDMA] = KFD_IOC_QUEUE_TYPE_SDMA,
	};
	struct mk_gpu *gpu = q->gpu;
	struct kfd_ioctl_create_queue_args c = {
		.ring_base_address = (uintptr_t)q->ring,
		.write_pointer_address = (uintptr_t)q->write,
		.read_pointer_address = (uintptr_t)q->read,
		.ring_size = RING_BYTES,
		.gpu_id = gpu->gpu_id,
		.queue_type = types[q->kind],
		.queue_percentage = KFD_MAX_QUEUE_PERCENTAGE,
		.queue_priority = q->priority,
	};

	if (q->kind != MK_SDMA) {
		c.eop_buffer_address = (uintptr_t)q->eop;
		c.eop_buffer_size = PAGE;
		c.ctx_save_restore_address = (uintptr_t)q->save_area;
		c.ctx_save_restore_size = gpu->cwsr_size;
		c.ctl_stack_size = gpu->ctl_stack_size;
	}
	if (ioctl(gpu->kfd, AMDKFD_IOC_CREATE_QUEUE, &c))
		mk_die("CREATE_QUEUE");
	q->id = c.queue_id;
	map_doorbells(gpu, c.doorbell_offset);
	q->doorbell =
		(volatile uint64_t *)(gpu->doorbells + (c.doorbell_offset & (DOORBELL_BYTES - 1)));
}

void mk_queue_create(struct mk_queue *q, struct mk_gpu *gpu, enum mk_kind kind, uint32_t priority)
{
	*q = (struct mk_queue){ .gpu = gpu, .kind = kind, .priority = priority };
	make_memory(q);
	make_save_area(q);
	mk_queue_again(q);
}

void mk_queue_again(struct mk_queue *q)
{
	clear(q);
	create(q);
}

void mk_queue_destroy(struct mk_queue *q)
{
	struct kfd_ioctl_destroy_queue_args d = { .queue_id = q->id };

	if (ioctl(q->gpu->kfd, AMDKFD_IOC_DESTROY_QUEUE, &d))
		mk_die("DESTROY_QUEUE");
}

static void ring_doorbell(struct mk_queue *q)
{
	__atomic_store_n(q->write, q->written, __ATOMIC_RELEASE);
	*q->doorbell = q->written;
}

static void submit_link(struct mk_queue *q, uint32_t ticks, uint32_t waves)
{
	uint32_t slot = q->submitted % MK_SLOTS;
	struct aql_dispatch *p = (void *)(q->ring + slot * AQL_PACKET_BYTES);
	struct kfdsim_kernarg *arg = &q->args[slot];

	*arg = (struct kfdsim_kernarg){
		.magic = KFDSIM_KERNARG_MAGIC,
		.word = (uintptr_t)q->word,
		.seq = q->submitted,
	};
	memset((char *)p + 2, 0, sizeof(*p) - 2);
	p->setup = 3;
	p->workgroup_x = 1;
	p->workgroup_y = 64;
	p->workgroup_z = 1;
	p->grid_x = ticks;
	p->grid_y = waves * 64;
	p->grid_z = 1;
	p->kernarg = (uintptr_t)arg;
	p->completion_signal = (uintptr_t)q->signal;
	__atomic_fetch_add(&q->signal[1], 1, __ATOMIC_SEQ_CST);
	q->expected = kfdsim_mix(q->expected, q->submitted);
	__atomic_store_n(&p->header, AQL_KERNEL_DISPATCH | AQL_BARRIER_BIT, __ATOMIC_RELEASE);
	q->written++;
}

static void put_dwords(struct mk_queue *q, const uint32_t *words, uint32_t n, uint64_t at)
{
	uint32_t *ring = (uint32_t *)q->ring;

	for (uint32_t i = 0; i < n; i++)
		ring[(at + i) % (RING_BYTES / 4)] = words[i];
}

/* RELEASE_MEM: 64 bits of data, then an interrupt. */
static void submit_release_mem(struct mk_queue *q)
{
	uint64_t value = q->submitted + 1, word = (uintptr_t)q->word;
	const uint32_t packet[RELEASE_MEM_DWORDS] = {
		3u << 30 | (RELEASE_MEM_DWORDS - 2) << 16 | 0x49 << 8,
		5 << 8,
		2u << 29 | 2 << 24,
		(uint32_t)word,
		(uint32_t)(word >> 32),
		(uint32_t)value,
		(uint32_t)(value >> 32),
		q->gpu->event_id,
	};

	put_dwords(q, packet, RELEASE_MEM_DWORDS, q->written);
	q->expected = value;
	q->written += RELEASE_MEM_DWORDS;
}

/* A fence of 32 bits, a no-op, a trap. */
static void submit_fence(struct mk_queue *q)
{
	uint64_t word = (uintptr_t)q->word;
	uint32_t value = (uint32_t)(q->submitted + 1);
	const uint32_t packet[SDMA_BYTES / 4] = {
		5, (uint32_t)word, (uint32_t)(word >> 32), value, 1 << 16, 0, 6, q->gpu->event_id,
	};

	put_dwords(q, packet, SDMA_BYTES / 4, q->written / 4);
	q->expected = value;
	q->written += SDMA_BYTES;
}

void mk_submit(struct mk_queue *q, uint32_t ticks, uint32_t waves)
{
	switch (q->kind) {
	case MK_AQL:
		submit_link(q, ticks, waves);
		break;
	case MK_PM4:
		submit_release_mem(q);
		break;
	case MK_SDMA:
		submit_fence(q);
		break;
	}
	q->submitted++;
	ring_doorbell(q);
}

uint64_t mk_pending(const struct mk_queue *q)
{
	if (q->kind == MK_AQL)
		return (uint64_t)__atomic_load_n(&q->signal[1], __ATOMIC_ACQUIRE);
	return q->submitted - __atomic_load_n(q->word, __ATOMIC_ACQUIRE);
}

bool mk_is_right(const struct mk_queue *q)
{
	return *q->word == q->expected && *q->read == q->written;
}
