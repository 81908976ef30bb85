/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "gpu/model/model.h"
#include "util/macros.h"

#define GIB (1ull << 30)
#define GB 1000000000ull

/* Linux 6.12 kfd_queue.c: vector registers, scalar ones 0x4000, LDS 0x10000, state 0x1000. */
#define CU_BYTES(vector) ((vector) + 0x15000)
#define GFX94_CU_BYTES CU_BYTES(0x80000)

/* PCIe x16 one way, raw: that a save comes near it is assumed. */
#define PCIE3_X16 (16 * GB)
#define PCIE4_X16 (32 * GB)
#define PCIE5_X16 (64 * GB)

/* Assumed, one and all. The driver asks for a process_quantum of 10, of an unknown unit. */
#define ASSUMED_COSTS \
	{ \
		.unmap_ns = 15000, .map_ns = 10000, .trap_ns = 2000, .header_ns = 500, \
		.ioctl_ns = 1000, .quantum_ns = 10 * NSEC_PER_MSEC, \
	}

#define CHIP(chip, gfx, xcc, engines, cus, cu_bytes, vmids, sdma, has_xgmi, mhz, hbm, link, vram) \
	{ \
		.name = chip, .gfx_target_version = gfx, .n_xcc = xcc, .n_engines = engines, \
		.cu_per_xcc = cus, .cwsr_bytes_per_cu = cu_bytes, .n_cp_queues = 24, \
		.n_vmid = vmids, .n_sdma = sdma, .xgmi = has_xgmi, .clock_mhz = mhz, \
		.hbm_bytes_per_s = (hbm)*GB, .link_bytes_per_s = link, .vram_bytes = (vram)*GIB, \
		.costs = ASSUMED_COSTS, \
	}

/*
 * HBM: the vendor's peak, in GB/s. Of mi308x it and the memory are assumed, as MI300X. mi100
 * has the registers and LDS of gfx94. From gfx1150 on MES schedules: queue by queue, no run
 * list. gfx1150 has system memory, LPDDR5X at 7500 MT/s, of which firmware is assumed to set 1
 * GiB aside; gfx1200 is of 16 GB cards.
 */
const struct model_chip model_chips[] = {
	/* name, gfx, XCCs, engines, CUs, CU's bytes, VMIDs, SDMA, XGMI, MHz, HBM, link, GiB */
	CHIP("mi308x", 90402, 4, 4, 20, GFX94_CU_BYTES, 13, 8, true, 2100, 5300, PCIE5_X16, 192),
	CHIP("mi300x", 90402, 8, 4, 38, GFX94_CU_BYTES, 13, 16, true, 2100, 5300, PCIE5_X16, 192),
	CHIP("mi100", 90008, 1, 8, 120, GFX94_CU_BYTES, 13, 8, true, 1502, 1230, PCIE4_X16, 32),
	CHIP("mi210", 90010, 1, 8, 104, GFX94_CU_BYTES, 13, 5, true, 1700, 1638, PCIE4_X16, 64),
	CHIP("mi25", 90000, 1, 4, 64, CU_BYTES(0x40000), 8, 2, false, 1500, 484, PCIE3_X16, 16),
	CHIP("gfx1150", 110500, 1, 1, 16, CU_BYTES(0x40000), 8, 1, false, 2900, 120, 120 * GB, 1),
	CHIP("gfx1200", 120000, 1, 2, 32, CU_BYTES(0x60000), 8, 2, false, 3130, 322, PCIE5_X16, 16),
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
