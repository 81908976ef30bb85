/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Entries of the interrupt ring, handed to amdkfd as amdgpu's handler does. */
#include <linux/module.h>

#include <kfd_priv.h>
#include <soc15_int.h>

#include "kernel/kfdsim/sim.h"

static void raise(struct sim_gpu *gpu, u32 client, u32 source, const struct sim_queue *q,
		  u32 context)
{
	u32 entry[8] = {
		[0] = client | source << 8 | q->vmid << 24,
		[3] = q->pasid, /* node id 0: the first XCC */
		[4] = context,
	};

	if (!gpu->adev.kfd.init_complete)
		return;
	gpu->count.irqs++;
	kgd2kfd_interrupt(gpu->adev.kfd.dev, entry);
}

void sim_irq_end_of_pipe(struct sim_gpu *gpu, const struct sim_queue *q, u32 event)
{
	raise(gpu, SOC15_IH_CLIENTID_GRBM_CP, SOC15_INTSRC_CP_END_OF_PIPE, q, event);
}

void sim_irq_sdma_trap(struct sim_gpu *gpu, const struct sim_queue *q, u32 context)
{
	if (sim_is_mes(gpu))
		raise(gpu, SOC21_IH_CLIENTID_GFX, SOC21_INTSRC_SDMA_TRAP, q, context);
	else
		raise(gpu, SOC15_IH_CLIENTID_SDMA0, SOC15_INTSRC_SDMA_TRAP, q, context);
}
