/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What amdkfd asks of amdgpu and where any plausible answer will do. */
#include <linux/idr.h>
#include <linux/seq_file.h>

#include <amdgpu_ras.h>
#include <kfd_priv.h>

#include "kernel/kfdsim/sim.h"

#define VRAM_BYTES (1ull << 30)

/* ---- what it is ---- */

uint32_t amdgpu_amdkfd_get_fw_version(struct amdgpu_device *adev, enum kgd_engine_type type)
{
	return type == KGD_ENGINE_SDMA1 ? 19 : to_gpu(adev)->chip->mec_fw;
}

void amdgpu_amdkfd_get_local_mem_info(struct amdgpu_device *adev,
				      struct kfd_local_mem_info *mem_info, struct amdgpu_xcp *xcp)
{
	*mem_info = (struct kfd_local_mem_info){
		.local_mem_size_public = VRAM_BYTES,
		.vram_width = 8192,
		.mem_clk_max = 1300,
	};
}

uint64_t amdgpu_amdkfd_get_gpu_clock_counter(struct amdgpu_device *adev)
{
	return ktime_get_ns() / 10; /* 100 MHz */
}

uint32_t amdgpu_amdkfd_get_max_engine_clock_in_mhz(struct amdgpu_device *adev)
{
	return 2100;
}

uint8_t amdgpu_amdkfd_get_xgmi_hops_count(struct amdgpu_device *dst, struct amdgpu_device *src)
{
	return 1;
}

int amdgpu_amdkfd_get_xgmi_bandwidth_mbytes(struct amdgpu_device *dst, struct amdgpu_device *src,
					    bool is_min)
{
	return 64000;
}

int amdgpu_amdkfd_get_pcie_bandwidth_mbytes(struct amdgpu_device *adev, bool is_min)
{
	return 32000;
}

bool amdgpu_amdkfd_have_atomics_support(struct amdgpu_device *adev)
{
	return true;
}

size_t amdgpu_amdkfd_get_available_memory(struct amdgpu_device *adev, uint8_t xcp_id)
{
	return VRAM_BYTES;
}

u64 amdgpu_amdkfd_xcp_memory_size(struct amdgpu_device *adev, int xcp_id)
{
	return VRAM_BYTES;
}

int amdgpu_amdkfd_get_tile_config(struct amdgpu_device *adev, struct tile_config *config)
{
	memset(config, 0, sizeof(*config));
	return 0;
}

bool amdgpu_sriov_xnack_support(struct amdgpu_device *adev)
{
	return true;
}

int amdgpu_xcp_get_inst_details(struct amdgpu_xcp *xcp, enum AMDGPU_XCP_IP_BLOCK ip,
				uint32_t *inst_mask)
{
	*inst_mask = 1;
	return 0;
}

int amdgpu_xcp_query_partition_mode(struct amdgpu_xcp_mgr *xcp_mgr, u32 flags)
{
	return AMDGPU_SPX_PARTITION_MODE;
}

uint64_t amdgpu_dpm_get_thermal_throttling_counter(struct amdgpu_device *adev)
{
	return 0;
}

int kfd_debugfs_kfd_mem_limits(struct seq_file *m, void *data)
{
	seq_puts(m, "System mem used 0M out of 0M\nTTM mem used 0M out of 0M\n");
	return 0;
}

/* ---- numbering ---- */

int amdgpu_queue_mask_bit_to_set_resource_bit(struct amdgpu_device *adev, int queue_bit)
{
	return queue_bit;
}

void amdgpu_queue_mask_bit_to_mec_queue(struct amdgpu_device *adev, int bit, int *mec, int *pipe,
					int *queue)
{
	*queue = bit % SIM_PIPE_QUEUES;
	*pipe = bit / SIM_PIPE_QUEUES % SIM_PIPES;
	*mec = bit / SIM_SLOTS;
}

static DEFINE_IDA(pasids);

int amdgpu_pasid_alloc(unsigned int bits)
{
	return ida_alloc_range(&pasids, 1u << (bits - 1), (1u << bits) - 1, GFP_KERNEL);
}

void amdgpu_pasid_free(u32 pasid)
{
	ida_free(&pasids, pasid);
}

/* ---- things to do that nothing here depends on ---- */

void amdgpu_amdkfd_debug_mem_fence(struct amdgpu_device *adev)
{
}

void amdgpu_amdkfd_set_compute_idle(struct amdgpu_device *adev, bool idle)
{
}

int amdgpu_amdkfd_submit_ib(struct amdgpu_device *adev, enum kgd_engine_type engine, uint32_t vmid,
			    uint64_t gpu_addr, uint32_t *ib_cmd, uint32_t ib_len)
{
	return 0;
}

void amdgpu_device_flush_hdp(struct amdgpu_device *adev, struct amdgpu_ring *ring)
{
}

void amdgpu_gfx_off_ctrl(struct amdgpu_device *adev, bool enable)
{
}

int amdgpu_vm_flush_compute_tlb(struct amdgpu_device *adev, struct amdgpu_vm *vm,
				uint32_t flush_type, uint32_t xcc_mask)
{
	struct sim_gpu *gpu = to_gpu(adev);

	mutex_lock(&gpu->lock);
	gpu->count.tlb_flushes++;
	mutex_unlock(&gpu->lock);
	return 0;
}

/*
 * Hardware's amdgpu_ih_wait_on_checkpoint_process_ts() answers with what is left of its timeout,
 * which the caller takes for a failure: there, too, no fence is sent and none waited for.
 */
int amdgpu_amdkfd_send_close_event_drain_irq(struct amdgpu_device *adev, uint32_t *payload)
{
	return 1;
}

void amdgpu_amdkfd_block_mmu_notifications(void *p)
{
}

int amdgpu_amdkfd_criu_resume(void *p)
{
	return 0;
}

int amdgpu_ttm_tt_get_userptr(const struct ttm_buffer_object *tbo, uint64_t *user_addr)
{
	return -EINVAL;
}

/* ---- errors that never happen here ---- */

/*
 * Asked before each packet and then over and over by who waits for the scheduler's fence, which is
 * how we hear of orders. A machine with GPUs has processors to spare for that; where there are but
 * one or two, those who wait would keep our thread from answering, and each other from asking.
 */
bool amdgpu_amdkfd_is_fed(struct amdgpu_device *adev)
{
	struct sim_gpu *gpu = to_gpu(adev);
	u64 began = ktime_get_ns();

	if (READ_ONCE(gpu->preempt.phase) == SIM_PREEMPT_NONE)
		sim_engine_wake();
	if (!sim_hiq_is_awaited(gpu))
		return false;
	wait_event_timeout(gpu->changed, !sim_hiq_has_orders(gpu), 1);
	mutex_lock(&gpu->lock);
	gpu->count.fence_ns += ktime_get_ns() - began;
	mutex_unlock(&gpu->lock);
	return false;
}

int amdgpu_amdkfd_gpuvm_get_vm_fault_info(struct amdgpu_device *adev,
					  struct kfd_vm_fault_info *info)
{
	return -EINVAL;
}

void amdgpu_amdkfd_ras_poison_consumption_handler(struct amdgpu_device *adev,
						  enum amdgpu_ras_block block, uint32_t reset)
{
}

void amdgpu_amdkfd_ras_pasid_poison_consumption_handler(struct amdgpu_device *adev,
							enum amdgpu_ras_block block, uint16_t pasid,
							pasid_notify pasid_fn, void *data,
							uint32_t reset)
{
}

u64 amdgpu_ras_acquire_event_id(struct amdgpu_device *adev, enum ras_event_type type)
{
	return 0;
}

void amdgpu_ras_event_log_print(struct amdgpu_device *adev, u64 event_id, const char *fmt, ...)
{
}

int amdgpu_ras_mark_ras_event_caller(struct amdgpu_device *adev, enum ras_event_type type,
				     const void *caller)
{
	return 0;
}

struct amdgpu_task_info *amdgpu_vm_get_task_info_pasid(struct amdgpu_device *adev, u32 pasid)
{
	return NULL;
}

void amdgpu_vm_put_task_info(struct amdgpu_task_info *task_info)
{
}
