/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "gpu/model/model.h"

#define GIB (1ull << 30)

/* Linux 6.12 kfd_queue.c, gfx9.4.x: registers 0x80000 + 0x4000, LDS 0x10000, state 0x1000. */
#define GFX94_CU_BYTES 610304

/* Assumed, one and all. */
#define ASSUMED_COSTS \
	{ \
		.unmap_ns = 15000, .map_ns = 10000, .trap_ns = 2000, .header_ns = 500, \
		.ioctl_ns = 1000, \
	}

const struct model_chip model_chips[] = {
	{
		.name = "mi308x",
		.gfx_target_version = 90402,
		.n_xcc = 4,
		.cu_per_xcc = 20,
		.cwsr_bytes_per_cu = GFX94_CU_BYTES,
		.n_cp_queues = 24,
		.n_vmid = 13,
		.clock_mhz = 2100,
		.hbm_bytes_per_s = 5300000000000ull, /* assumed: as MI300X */
		.vram_bytes = 192 * GIB, /* assumed: as MI300X */
		.costs = ASSUMED_COSTS,
	},
	{
		.name = "mi300x",
		.gfx_target_version = 90402,
		.n_xcc = 8,
		.cu_per_xcc = 38,
		.cwsr_bytes_per_cu = GFX94_CU_BYTES,
		.n_cp_queues = 24,
		.n_vmid = 13,
		.clock_mhz = 2100,
		.hbm_bytes_per_s = 5300000000000ull, /* the vendor's peak */
		.vram_bytes = 192 * GIB,
		.costs = ASSUMED_COSTS,
	},
	{
		.name = "mi100",
		.gfx_target_version = 90008,
		.n_xcc = 1,
		.cu_per_xcc = 120,
		.cwsr_bytes_per_cu = GFX94_CU_BYTES, /* the same registers and LDS */
		.n_cp_queues = 24,
		.n_vmid = 13,
		.clock_mhz = 1502,
		.hbm_bytes_per_s = 1230000000000ull, /* the vendor's peak */
		.vram_bytes = 32 * GIB,
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
