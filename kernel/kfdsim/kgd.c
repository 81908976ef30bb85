/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The functions amdkfd calls on a chip, and the few registers behind them.
 *
 * Which functions a chip has, what they refuse and what they answer is taken from Linux 6.12
 * amdgpu_amdkfd_{gfx_v9,arcturus,aldebaran,gc_9_4_3,gfx_v11,gfx_v12}.c. What they would write to
 * hardware is dropped. Only the hardware scheduler runs queues: those that are loaded without it
 * (sched_policy=2) stand still.
 */
#include <linux/slab.h>

#include <gc/gc_9_0_sh_mask.h>
#include <kfd_priv.h>

#include "kernel/kfdsim/debug.h"
#include "kernel/kfdsim/sim.h"

#define REG_IQ_WAIT 0x30b0 /* CP_IQ_WAIT_TIME2, in dwords */
#define REG_HQD_FIRST 0x3245 /* CP_MQD_BASE_ADDR */
#define HQD_FIRST_DWORD 0x80 /* of the descriptor */
#define HQD_REGS 56
#define SDMA_REGS 44

/* ---- nothing to do ---- */

static void sh_mem(struct amdgpu_device *adev, uint32_t vmid, uint32_t config, uint32_t ape1_base,
		   uint32_t ape1_limit, uint32_t bases, uint32_t inst)
{
}

static int pasid_vmid(struct amdgpu_device *adev, u32 pasid, unsigned int vmid, uint32_t inst)
{
	return 0;
}

static int init_interrupts(struct amdgpu_device *adev, uint32_t pipe, uint32_t inst)
{
	return 0;
}

static int wave_control(struct amdgpu_device *adev, uint32_t index, uint32_t cmd, uint32_t inst)
{
	return 0;
}

static void page_table_base(struct amdgpu_device *adev, uint32_t vmid, uint64_t base)
{
}

static void trap_handler(struct amdgpu_device *adev, uint32_t vmid, uint64_t tba, uint64_t tma,
			 uint32_t inst)
{
}

/* ---- queues without the scheduler ---- */

static int hqd_load(struct amdgpu_device *adev, void *mqd, uint32_t pipe, uint32_t queue,
		    uint32_t __user *wptr, uint32_t shift, uint32_t mask, struct mm_struct *mm,
		    uint32_t inst)
{
	return 0;
}

static int sdma_load(struct amdgpu_device *adev, void *mqd, uint32_t __user *wptr,
		     struct mm_struct *mm)
{
	return 0;
}

static bool hqd_occupied(struct amdgpu_device *adev, uint64_t address, uint32_t pipe,
			 uint32_t queue, uint32_t inst)
{
	return false;
}

static bool sdma_occupied(struct amdgpu_device *adev, void *mqd)
{
	return false;
}

static int hqd_destroy(struct amdgpu_device *adev, void *mqd, enum kfd_preempt_type type,
		       unsigned int timeout, uint32_t pipe, uint32_t queue, uint32_t inst)
{
	return 0;
}

static int sdma_destroy(struct amdgpu_device *adev, void *mqd, unsigned int timeout)
{
	return 0;
}

/* ---- the scheduler's queue ---- */

static int hiq_load(struct amdgpu_device *adev, void *mqd, uint32_t pipe, uint32_t queue,
		    uint32_t doorbell_off, uint32_t inst)
{
	struct sim_gpu *gpu = to_gpu(adev);
	int r;

	if (inst >= gpu->n_xcc)
		return -EINVAL;
	mutex_lock(&gpu->lock);
	r = sim_hiq_load(gpu, mqd, doorbell_off, inst);
	mutex_unlock(&gpu->lock);
	return r;
}

int amdgpu_amdkfd_unmap_hiq(struct amdgpu_device *adev, u32 doorbell_off, u32 inst)
{
	struct sim_gpu *gpu = to_gpu(adev);

	mutex_lock(&gpu->lock);
	gpu->hiq.loaded = false;
	mutex_unlock(&gpu->lock);
	return 0;
}

static void iq_wait_times(struct amdgpu_device *adev, uint32_t *wait_times, uint32_t inst)
{
	*wait_times = to_gpu(adev)->iq_wait;
}

static void grace_packet(struct amdgpu_device *adev, uint32_t wait_times, uint32_t grace,
			 uint32_t *reg, uint32_t *data)
{
	if (!grace)
		grace = 1;
	*reg = REG_IQ_WAIT;
	*data = (wait_times & ~CP_IQ_WAIT_TIME2__SCH_WAVE_MASK) |
		(grace << CP_IQ_WAIT_TIME2__SCH_WAVE__SHIFT & CP_IQ_WAIT_TIME2__SCH_WAVE_MASK);
}

/* ---- slots seen from outside ---- */

static void dump_slot(struct sim_gpu *gpu, u32 slot, unsigned int xcc, u32 (*dump)[2])
{
	struct sim_queue *q = slot < SIM_SLOTS ? sim_slot_owner(gpu, slot) : NULL;
	const struct v9_mqd *mqd = q ? sim_queue_mqd(gpu, q, xcc) : NULL;
	const u32 *dwords;
	u32 i;

	if (slot >= SIM_SLOTS)
		mqd = sim_hiq_mqd(gpu, xcc);
	dwords = (const u32 *)mqd;
	for (i = 0; i < HQD_REGS; i++) {
		dump[i][0] = (REG_HQD_FIRST + i) << 2;
		dump[i][1] = dwords ? dwords[HQD_FIRST_DWORD + i] : 0;
	}
	if (!mqd)
		return;
	dump[offsetof(struct v9_mqd, cp_hqd_active) / 4 - HQD_FIRST_DWORD][1] = 1;
	dump[offsetof(struct v9_mqd, cp_hqd_vmid) / 4 - HQD_FIRST_DWORD][1] = q ? q->vmid : 0;
}

static int hqd_dump(struct amdgpu_device *adev, uint32_t pipe, uint32_t queue,
		    uint32_t (**ret_dump)[2], uint32_t *n_regs, uint32_t inst)
{
	struct sim_gpu *gpu = to_gpu(adev);
	u32(*dump)[2] = kcalloc(HQD_REGS, sizeof(*dump), GFP_KERNEL);

	if (!dump)
		return -ENOMEM;
	mutex_lock(&gpu->lock);
	dump_slot(gpu, pipe * SIM_PIPE_QUEUES + queue, inst, dump);
	mutex_unlock(&gpu->lock);
	*ret_dump = dump;
	*n_regs = HQD_REGS;
	return 0;
}

/* Zeros: which queue an engine is serving is not modelled. */
static int sdma_dump(struct amdgpu_device *adev, uint32_t engine, uint32_t queue,
		     uint32_t (**ret_dump)[2], uint32_t *n_regs)
{
	u32(*dump)[2] = kcalloc(SDMA_REGS, sizeof(*dump), GFP_KERNEL);
	u32 i;

	if (!dump)
		return -ENOMEM;
	for (i = 0; i < SDMA_REGS; i++)
		dump[i][0] = i << 2;
	*ret_dump = dump;
	*n_regs = SDMA_REGS;
	return 0;
}

static void cu_occupancy(struct amdgpu_device *adev, struct kfd_cu_occupancy *occupancy,
			 int *max_waves_per_cu, uint32_t inst)
{
	struct sim_gpu *gpu = to_gpu(adev);
	const struct v9_mqd *mqd;
	struct sim_queue *q;
	unsigned int slot, i;

	mutex_lock(&gpu->lock);
	for (slot = 0; slot < SIM_SLOTS; slot++) {
		q = sim_slot_owner(gpu, slot);
		mqd = q ? sim_queue_mqd(gpu, q, inst) : NULL;
		if (!mqd)
			continue;
		for (i = 0; i < q->n_flight; i++)
			occupancy[slot].wave_cnt +=
				sim_waves_on(mqd, q->flight[i].waves, gpu->n_xcc);
		if (occupancy[slot].wave_cnt)
			occupancy[slot].doorbell_off = q->doorbell;
	}
	mutex_unlock(&gpu->lock);
	*max_waves_per_cu = SIM_CU_WAVES;
}

/* Only a queue that the firmware gave up on is still there when the driver asks. */
static uint64_t hqd_pq_addr(struct amdgpu_device *adev, uint32_t pipe, uint32_t queue,
			    uint32_t inst)
{
	struct sim_gpu *gpu = to_gpu(adev);
	struct sim_queue *q;
	u64 address = 0;

	mutex_lock(&gpu->lock);
	q = sim_slot_owner(gpu, pipe * SIM_PIPE_QUEUES + queue);
	if (q)
		address = sim_queue_ring(gpu, q, NULL);
	mutex_unlock(&gpu->lock);
	return address;
}

static uint64_t hqd_reset(struct amdgpu_device *adev, uint32_t pipe, uint32_t queue, uint32_t inst,
			  unsigned int utimeout)
{
	u32 slot = pipe * SIM_PIPE_QUEUES + queue;
	struct sim_gpu *gpu = to_gpu(adev);
	struct sim_queue *q;
	u64 address = 0;

	mutex_lock(&gpu->lock);
	q = sim_slot_owner(gpu, slot);
	if (q && gpu->knobs.queue_reset_works) {
		address = sim_queue_ring(gpu, q, NULL);
		/* The slot is that of all XCCs; the driver resets them one after the other. */
		if (inst + 1 == gpu->n_xcc) {
			sim_log(gpu, SIM_EV_RESET, q->pasid, q->doorbell, slot, 1);
			gpu->count.queue_resets++;
			if (gpu->knobs.stuck_doorbell == q->doorbell)
				gpu->knobs.stuck_doorbell = U32_MAX;
			sim_queue_off_hardware(gpu, q, true);
			sim_queue_remove(gpu, q);
		}
	}
	mutex_unlock(&gpu->lock);
	return address;
}

static uint64_t no_pq_addr(struct amdgpu_device *adev, uint32_t pipe, uint32_t queue, uint32_t inst)
{
	return 0;
}

static uint64_t no_hqd_reset(struct amdgpu_device *adev, uint32_t pipe, uint32_t queue,
			     uint32_t inst, unsigned int utimeout)
{
	return 0;
}

static bool atc_mapping(struct amdgpu_device *adev, uint8_t vmid, uint16_t *pasid)
{
	return false;
}

/* ---- the tables ---- */

#define COMMON_CALLS \
	.program_sh_mem_settings = sh_mem, .set_pasid_vmid_mapping = pasid_vmid, \
	.init_interrupts = init_interrupts, .hqd_load = hqd_load, .hiq_mqd_load = hiq_load, \
	.hqd_sdma_load = sdma_load, .hqd_dump = hqd_dump, .hqd_sdma_dump = sdma_dump, \
	.hqd_is_occupied = hqd_occupied, .hqd_sdma_is_occupied = sdma_occupied, \
	.hqd_destroy = hqd_destroy, .hqd_sdma_destroy = sdma_destroy, \
	.wave_control_execute = wave_control, .set_vm_context_page_table_base = page_table_base

#define GFX9_CALLS \
	COMMON_CALLS, \
		.get_atc_vmid_pasid_mapping_info = atc_mapping, .get_cu_occupancy = cu_occupancy, \
		.program_trap_handler_settings = trap_handler, .get_iq_wait_times = iq_wait_times, \
		.build_grace_period_packet_info = grace_packet, .hqd_get_pq_addr = hqd_pq_addr, \
		.hqd_reset = hqd_reset

#define GLOBAL_DEBUG_CALLS \
	.validate_trap_override_request = sim_dbg_global_override_check, \
	.set_wave_launch_trap_override = sim_dbg_global_override, \
	.set_wave_launch_mode = sim_dbg_global_launch_mode, \
	.set_address_watch = sim_dbg_global_watch, .clear_address_watch = sim_dbg_clear_watch

#define PER_VMID_DEBUG_CALLS \
	.enable_debug_trap = sim_dbg_trap_on, \
	.set_wave_launch_trap_override = sim_dbg_per_vmid_override, \
	.set_address_watch = sim_dbg_per_vmid_watch, .clear_address_watch = sim_dbg_clear_watch

const struct kfd2kgd_calls gfx_v9_kfd2kgd = {
	GFX9_CALLS,
	GLOBAL_DEBUG_CALLS,
	.enable_debug_trap = sim_dbg_global_trap,
	.disable_debug_trap = sim_dbg_global_trap,
};

const struct kfd2kgd_calls arcturus_kfd2kgd = {
	GFX9_CALLS,
	GLOBAL_DEBUG_CALLS,
	.enable_debug_trap = sim_dbg_arcturus_trap,
	.disable_debug_trap = sim_dbg_arcturus_trap,
};

const struct kfd2kgd_calls aldebaran_kfd2kgd = {
	GFX9_CALLS,
	PER_VMID_DEBUG_CALLS,
	.disable_debug_trap = sim_dbg_trap_off,
	.validate_trap_override_request = sim_dbg_aldebaran_override_check,
	.set_wave_launch_mode = sim_dbg_per_vmid_launch_mode,
};

const struct kfd2kgd_calls gc_9_4_3_kfd2kgd = {
	GFX9_CALLS,
	PER_VMID_DEBUG_CALLS,
	.disable_debug_trap = sim_dbg_trap_on,
	.validate_trap_override_request = sim_dbg_gc943_override_check,
	.set_wave_launch_mode = sim_dbg_per_vmid_launch_mode,
};

const struct kfd2kgd_calls gfx_v11_kfd2kgd = {
	COMMON_CALLS,
	PER_VMID_DEBUG_CALLS,
	.disable_debug_trap = sim_dbg_trap_on,
	.validate_trap_override_request = sim_dbg_v11_override_check,
	.set_wave_launch_mode = sim_dbg_per_vmid_launch_mode,
	.hqd_get_pq_addr = no_pq_addr,
	.hqd_reset = no_hqd_reset,
};

const struct kfd2kgd_calls gfx_v12_kfd2kgd = {
	PER_VMID_DEBUG_CALLS,
	.init_interrupts = init_interrupts,
	.hqd_dump = hqd_dump,
	.hqd_sdma_dump = sdma_dump,
	.wave_control_execute = wave_control,
	.disable_debug_trap = sim_dbg_trap_on,
	.validate_trap_override_request = sim_dbg_gc943_override_check,
	.set_wave_launch_mode = sim_dbg_v12_launch_mode,
};

/* Chips we do not have. */
const struct kfd2kgd_calls gfx_v7_kfd2kgd, gfx_v8_kfd2kgd, gfx_v10_kfd2kgd, gfx_v10_3_kfd2kgd;
