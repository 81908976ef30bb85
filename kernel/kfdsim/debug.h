/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The debugger's functions of the chips, and the tables of kgd.c. */
#ifndef GPREEMPT_KERNEL_KFDSIM_DEBUG_H
#define GPREEMPT_KERNEL_KFDSIM_DEBUG_H

#include <linux/types.h>

struct amdgpu_device;

extern const struct kfd2kgd_calls gfx_v7_kfd2kgd, gfx_v8_kfd2kgd, gfx_v9_kfd2kgd;
extern const struct kfd2kgd_calls arcturus_kfd2kgd, aldebaran_kfd2kgd, gc_9_4_3_kfd2kgd;
extern const struct kfd2kgd_calls gfx_v10_kfd2kgd, gfx_v10_3_kfd2kgd, gfx_v11_kfd2kgd;
extern const struct kfd2kgd_calls gfx_v12_kfd2kgd;

uint32_t sim_dbg_global_trap(struct amdgpu_device *adev, bool keep, uint32_t vmid);
uint32_t sim_dbg_arcturus_trap(struct amdgpu_device *adev, bool keep, uint32_t vmid);
int sim_dbg_global_override_check(struct amdgpu_device *adev, uint32_t override,
				  uint32_t *supported);
uint32_t sim_dbg_global_override(struct amdgpu_device *adev, uint32_t vmid, uint32_t override,
				 uint32_t bits, uint32_t request, uint32_t *prev,
				 uint32_t cntl_prev);
uint32_t sim_dbg_global_launch_mode(struct amdgpu_device *adev, uint8_t mode, uint32_t vmid);
uint32_t sim_dbg_global_watch(struct amdgpu_device *adev, uint64_t address, uint32_t mask,
			      uint32_t id, uint32_t mode, uint32_t vmid, uint32_t inst);
uint32_t sim_dbg_clear_watch(struct amdgpu_device *adev, uint32_t id);
uint32_t sim_dbg_trap_on(struct amdgpu_device *adev, bool restore, uint32_t vmid);
uint32_t sim_dbg_trap_off(struct amdgpu_device *adev, bool keep, uint32_t vmid);
int sim_dbg_aldebaran_override_check(struct amdgpu_device *adev, uint32_t override,
				     uint32_t *supported);
int sim_dbg_gc943_override_check(struct amdgpu_device *adev, uint32_t override,
				 uint32_t *supported);
int sim_dbg_v11_override_check(struct amdgpu_device *adev, uint32_t override, uint32_t *supported);
uint32_t sim_dbg_per_vmid_override(struct amdgpu_device *adev, uint32_t vmid, uint32_t override,
				   uint32_t bits, uint32_t request, uint32_t *prev,
				   uint32_t cntl_prev);
uint32_t sim_dbg_per_vmid_launch_mode(struct amdgpu_device *adev, uint8_t mode, uint32_t vmid);
uint32_t sim_dbg_v12_launch_mode(struct amdgpu_device *adev, uint8_t mode, uint32_t vmid);
uint32_t sim_dbg_per_vmid_watch(struct amdgpu_device *adev, uint64_t address, uint32_t mask,
				uint32_t id, uint32_t mode, uint32_t vmid, uint32_t inst);

#endif
