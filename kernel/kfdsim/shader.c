/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What waves compute: a link of a checksum chain, or nothing. */
#include "kernel/kfdsim/kernarg.h"
#include "kernel/kfdsim/sim.h"

void sim_shader(struct sim_gpu *gpu, u32 pasid, const struct aql_dispatch *packet)
{
	const struct kfdsim_kernarg *arg;
	u64 *word;

	if (!packet->kernarg)
		return;
	arg = sim_user(gpu, pasid, packet->kernarg, sizeof(*arg));
	if (!arg || arg->magic != KFDSIM_KERNARG_MAGIC || (arg->word & 7))
		return;
	word = sim_user(gpu, pasid, arg->word, sizeof(*word));
	if (!word)
		return;
	WRITE_ONCE(*word, kfdsim_mix(READ_ONCE(*word), arg->seq));
	gpu->count.links++;
}
