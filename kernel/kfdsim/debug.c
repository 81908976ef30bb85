/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What a debugger may ask of a chip: refusals and register values as in Linux 6.12
 * amdgpu_amdkfd_{gfx_v9,arcturus,aldebaran,gc_9_4_3,gfx_v11,gfx_v12}.c; no effect on waves.
 */
#include <kfd_priv.h>

#include "kernel/kfdsim/debug.h"
#include "kernel/kfdsim/sim.h"

/* SPI_GDBG_PER_VMID_CNTL of gfx9.4.2 and later */
#define PER_VMID_STALL BIT(0)
#define PER_VMID_LAUNCH_MODE(m) (((m)&3u) << 1)
#define PER_VMID_TRAP_EN BIT(3)
#define PER_VMID_EXCP_EN(m) (((m)&0x1ffu) << 4)
#define PER_VMID_EXCP_REPLACE BIT(13)
#define PER_VMID_TRAP_ON_START BIT(14)
#define PER_VMID_TRAP_ON_END BIT(15)

#define TRAP_MASK_EXCEPTIONS 0x1ffu
#define TRAP_MASK_ALL \
	(TRAP_MASK_EXCEPTIONS | KFD_DBG_TRAP_MASK_TRAP_ON_WAVE_START | \
	 KFD_DBG_TRAP_MASK_TRAP_ON_WAVE_END)

/* ---- debugging, where one register is everybody's (before gfx9.4.2) ---- */

uint32_t sim_dbg_global_trap(struct amdgpu_device *adev, bool keep, uint32_t vmid)
{
	to_gpu(adev)->trap_mask = 0;
	return 0;
}

/* kgd_arcturus_enable_debug_trap() stops all of KFD to change how barriers wait. */
uint32_t sim_dbg_arcturus_trap(struct amdgpu_device *adev, bool keep, uint32_t vmid)
{
	if (down_read_trylock(&adev->reset_domain->sem)) {
		kgd2kfd_suspend(adev->kfd.dev, false);
		kgd2kfd_resume(adev->kfd.dev, false);
		up_read(&adev->reset_domain->sem);
	}
	return sim_dbg_global_trap(adev, keep, vmid);
}

int sim_dbg_global_override_check(struct amdgpu_device *adev, uint32_t override,
				  uint32_t *supported)
{
	*supported &= KFD_DBG_TRAP_MASK_DBG_ADDRESS_WATCH;
	return override == KFD_DBG_TRAP_OVERRIDE_OR ? 0 : -EINVAL;
}

uint32_t sim_dbg_global_override(struct amdgpu_device *adev, uint32_t vmid, uint32_t override,
				 uint32_t bits, uint32_t request, uint32_t *prev,
				 uint32_t cntl_prev)
{
	struct sim_gpu *gpu = to_gpu(adev);

	*prev = gpu->trap_mask;
	gpu->trap_mask = (bits & request) | (*prev & ~request);
	return 0;
}

uint32_t sim_dbg_global_launch_mode(struct amdgpu_device *adev, uint8_t mode, uint32_t vmid)
{
	return 0;
}

uint32_t sim_dbg_global_watch(struct amdgpu_device *adev, uint64_t address, uint32_t mask,
			      uint32_t id, uint32_t mode, uint32_t vmid, uint32_t inst)
{
	return 0;
}

uint32_t sim_dbg_clear_watch(struct amdgpu_device *adev, uint32_t id)
{
	return 0;
}

/* ---- debugging per process: these compute a register that MAP_PROCESS carries ---- */

uint32_t sim_dbg_trap_on(struct amdgpu_device *adev, bool restore, uint32_t vmid)
{
	return PER_VMID_TRAP_EN;
}

uint32_t sim_dbg_trap_off(struct amdgpu_device *adev, bool keep, uint32_t vmid)
{
	return keep ? PER_VMID_TRAP_EN : 0;
}

static int override_check(uint32_t override)
{
	if (override != KFD_DBG_TRAP_OVERRIDE_OR && override != KFD_DBG_TRAP_OVERRIDE_REPLACE)
		return -EPERM;
	return 0;
}

int sim_dbg_aldebaran_override_check(struct amdgpu_device *adev, uint32_t override,
				     uint32_t *supported)
{
	*supported &= TRAP_MASK_EXCEPTIONS;
	return override_check(override);
}

int sim_dbg_gc943_override_check(struct amdgpu_device *adev, uint32_t override, uint32_t *supported)
{
	*supported &= TRAP_MASK_ALL;
	return override_check(override);
}

/* gfx11.0.4 and later adds the two bits, asked for or not. */
int sim_dbg_v11_override_check(struct amdgpu_device *adev, uint32_t override, uint32_t *supported)
{
	*supported &= TRAP_MASK_EXCEPTIONS;
	*supported |= TRAP_MASK_ALL & ~TRAP_MASK_EXCEPTIONS;
	return override_check(override);
}

static uint32_t to_register(uint32_t mask)
{
	uint32_t reg = PER_VMID_EXCP_EN(mask);

	if (mask & KFD_DBG_TRAP_MASK_TRAP_ON_WAVE_START)
		reg |= PER_VMID_TRAP_ON_START;
	if (mask & KFD_DBG_TRAP_MASK_TRAP_ON_WAVE_END)
		reg |= PER_VMID_TRAP_ON_END;
	return reg;
}

static uint32_t from_register(uint32_t reg)
{
	uint32_t mask = reg >> 4 & TRAP_MASK_EXCEPTIONS;

	if (reg & PER_VMID_TRAP_ON_START)
		mask |= KFD_DBG_TRAP_MASK_TRAP_ON_WAVE_START;
	if (reg & PER_VMID_TRAP_ON_END)
		mask |= KFD_DBG_TRAP_MASK_TRAP_ON_WAVE_END;
	return mask;
}

uint32_t sim_dbg_per_vmid_override(struct amdgpu_device *adev, uint32_t vmid, uint32_t override,
				   uint32_t bits, uint32_t request, uint32_t *prev,
				   uint32_t cntl_prev)
{
	*prev = from_register(cntl_prev);
	return to_register((bits & request) | (*prev & ~request)) | PER_VMID_TRAP_EN |
	       (override == KFD_DBG_TRAP_OVERRIDE_REPLACE ? PER_VMID_EXCP_REPLACE : 0);
}

uint32_t sim_dbg_per_vmid_launch_mode(struct amdgpu_device *adev, uint8_t mode, uint32_t vmid)
{
	return PER_VMID_LAUNCH_MODE(mode);
}

uint32_t sim_dbg_v12_launch_mode(struct amdgpu_device *adev, uint8_t mode, uint32_t vmid)
{
	return mode == 4 ? PER_VMID_STALL : PER_VMID_LAUNCH_MODE(mode);
}

uint32_t sim_dbg_per_vmid_watch(struct amdgpu_device *adev, uint64_t address, uint32_t mask,
				uint32_t id, uint32_t mode, uint32_t vmid, uint32_t inst)
{
	return BIT(31) | (mode & 3) << 29 | (mask >> 7 & 0xffffff);
}
