/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "gpu/model/model.h"
#include "util/macros.h"

#define GIB (1ull << 30)

/* Linux 6.12 kfd_queue.c: vector registers, scalar ones 0x4000, LDS 0x10000, state 0x1000. */
#define CU_BYTES(vector) ((vector) + 0x15000)
#define GFX94_CU_BYTES CU_BYTES(0x80000)

/* PCIe x16 one way, raw: that a save comes near it is assumed. */
#define PCIE3_X16 16000000000ull
#define PCIE4_X16 32000000000ull
#define PCIE5_X16 64000000000ull

/* Assumed, one and all. The driver asks for a process_quantum of 10, of an unknown unit. */
#define ASSUMED_COSTS \
	{ \
		.unmap_ns = 15000, .map_ns = 10000, .trap_ns = 2000, .header_ns = 500, \
		.ioctl_ns = 1000, .quantum_ns = 10 * NSEC_PER_MSEC, \
	}

const struct model_chip model_chips[] = {
	{
		.name = "mi308x",
		.gfx_target_version = 90402,
		.n_xcc = 4,
		.n_engines = 4,
		.cu_per_xcc = 20,
		.cwsr_bytes_per_cu = GFX94_CU_BYTES,
		.n_cp_queues = 24,
		.n_vmid = 13,
		.n_sdma = 8,
		.xgmi = true,
		.clock_mhz = 2100,
		.hbm_bytes_per_s = 5300000000000ull, /* assumed: as MI300X */
		.link_bytes_per_s = PCIE5_X16,
		.vram_bytes = 192 * GIB, /* assumed: as MI300X */
		.costs = ASSUMED_COSTS,
	},
	{
		.name = "mi300x",
		.gfx_target_version = 90402,
		.n_xcc = 8,
		.n_engines = 4,
		.cu_per_xcc = 38,
		.cwsr_bytes_per_cu = GFX94_CU_BYTES,
		.n_cp_queues = 24,
		.n_vmid = 13,
		.n_sdma = 16,
		.xgmi = true,
		.clock_mhz = 2100,
		.hbm_bytes_per_s = 5300000000000ull, /* the vendor's peak */
		.link_bytes_per_s = PCIE5_X16,
		.vram_bytes = 192 * GIB,
		.costs = ASSUMED_COSTS,
	},
	{
		.name = "mi100",
		.gfx_target_version = 90008,
		.n_xcc = 1,
		.n_engines = 8,
		.cu_per_xcc = 120,
		.cwsr_bytes_per_cu = GFX94_CU_BYTES, /* the same registers and LDS */
		.n_cp_queues = 24,
		.n_vmid = 13,
		.n_sdma = 8,
		.xgmi = true,
		.clock_mhz = 1502,
		.hbm_bytes_per_s = 1230000000000ull, /* the vendor's peak */
		.link_bytes_per_s = PCIE4_X16,
		.vram_bytes = 32 * GIB,
		.costs = ASSUMED_COSTS,
	},
	{
		.name = "mi210",
		.gfx_target_version = 90010,
		.n_xcc = 1,
		.n_engines = 8,
		.cu_per_xcc = 104,
		.cwsr_bytes_per_cu = GFX94_CU_BYTES,
		.n_cp_queues = 24,
		.n_vmid = 13,
		.n_sdma = 5,
		.xgmi = true,
		.clock_mhz = 1700,
		.hbm_bytes_per_s = 1638000000000ull, /* the vendor's peak */
		.link_bytes_per_s = PCIE4_X16,
		.vram_bytes = 64 * GIB,
		.costs = ASSUMED_COSTS,
	},
	{
		.name = "mi25",
		.gfx_target_version = 90000,
		.n_xcc = 1,
		.n_engines = 4,
		.cu_per_xcc = 64,
		.cwsr_bytes_per_cu = CU_BYTES(0x40000),
		.n_cp_queues = 24,
		.n_vmid = 8,
		.n_sdma = 2,
		.clock_mhz = 1500,
		.hbm_bytes_per_s = 484000000000ull, /* the vendor's peak */
		.link_bytes_per_s = PCIE3_X16,
		.vram_bytes = 16 * GIB,
		.costs = ASSUMED_COSTS,
	},
	/* From here on MES schedules: queue by queue, no run list. */
	{
		.name = "gfx1150",
		.gfx_target_version = 110500,
		.n_xcc = 1,
		.n_engines = 1,
		.cu_per_xcc = 16,
		.cwsr_bytes_per_cu = CU_BYTES(0x40000),
		.n_cp_queues = 24,
		.n_vmid = 8,
		.n_sdma = 1,
		.clock_mhz = 2900,
		.hbm_bytes_per_s = 120000000000ull, /* system memory, LPDDR5X at 7500 MT/s */
		.link_bytes_per_s = 120000000000ull, /* the same memory */
		.vram_bytes = GIB, /* assumed: what firmware sets aside */
		.costs = ASSUMED_COSTS,
	},
	{
		.name = "gfx1200",
		.gfx_target_version = 120000,
		.n_xcc = 1,
		.n_engines = 2,
		.cu_per_xcc = 32,
		.cwsr_bytes_per_cu = CU_BYTES(0x60000),
		.n_cp_queues = 24,
		.n_vmid = 8,
		.n_sdma = 2,
		.clock_mhz = 3130,
		.hbm_bytes_per_s = 322000000000ull, /* the vendor's peak, of 16 GB cards */
		.link_bytes_per_s = PCIE5_X16,
		.vram_bytes = 16 * GIB,
		.costs = ASSUMED_COSTS,
	},
	{ .name = NULL },
};

const struct model_chip *model_chip_find(const char *name)
{
	for (const struct model_chip *c = model_chips; c->name; c++) {
		if (!strcmp(c->name, name))
			return c;
	}
	return NULL;
}
