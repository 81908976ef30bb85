/* SPDX-License-Identifier: MIT */
/*
 * MES, the scheduler of gfx11 and later: queues are added and removed one by one (Linux 6.12
 * kfd_device_queue_manager.c, add_queue_mes() and remove_queue_mes()).
 */
#include <errno.h>

#include "gpu/model/driver.h"

#define FIRST_MES_VERSION 110000

bool model_is_mes(const struct model_gpu *gpu)
{
	return gpu->m->config.chip->gfx_target_version >= FIRST_MES_VERSION;
}

int model_mes_remove(struct model_queue *q)
{
	struct model_gpu *gpu = q->gpu;
	struct hw_unmap op = { .timeout_ns = PREEMPTION_TIMEOUT_NS };
	int r;

	if (!hw_see(q->hw)->mapped)
		return 0;
	if (gpu->reset_pending)
		return -EIO;
	model_fault_into_unmap(gpu, &op);
	gpu->m->ext.waits++;
	r = hw_remove(q->hw, &op);
	gpu->m->ext.waits--;
	gpu->stats.unmaps++;
	gpu->stats.saved_bytes += op.saved_bytes;
	gpu->stats.save_ns += op.save_ns;
	q->saved_read = hw_see(q->hw)->read;
	q->saved_write = hw_see(q->hw)->write;
	if (r < 0) {
		model_hang(gpu);
		return -ETIMEDOUT;
	}
	return 0;
}

int model_mes_add(struct model_queue *q)
{
	struct model_gpu *gpu = q->gpu;
	int r;

	if (gpu->reset_pending)
		return -EIO;
	if (model_fault_is_dead(gpu)) {
		gpu->m->ext.waits++;
		model_advance(gpu->m, PREEMPTION_TIMEOUT_NS);
		gpu->m->ext.waits--;
		model_hang(gpu);
		return -ETIMEDOUT;
	}
	r = hw_add(q->hw);
	if (r == 0)
		gpu->stats.maps++;
	return r;
}

int model_mes_sync(struct model_gpu *gpu)
{
	for (struct model_queue *q = NULL; (q = model_next_on(gpu, q));) {
		int r;

		if (q->is_active == hw_see(q->hw)->mapped)
			continue;
		r = q->is_active ? model_mes_add(q) : model_mes_remove(q);
		if (r < 0)
			return r;
	}
	return 0;
}
