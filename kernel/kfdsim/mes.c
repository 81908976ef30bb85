/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * MES, the scheduler of gfx11 and gfx12: it is called, queue by queue.
 *
 * The calls come under the driver's mes lock, one at a time, and return when the firmware has
 * answered. The compute descriptors of gfx11 and gfx12 have what we look at where gfx9's has it.
 */
#include <linux/sched.h>

#include <mes_v11_api_def.h>
#include <v11_structs.h>
#include <v12_structs.h>

#include "kernel/kfdsim/sim.h"

#define SAME_PLACE(field) \
	static_assert(offsetof(struct v9_mqd, field) == offsetof(struct v11_compute_mqd, field) && \
		      offsetof(struct v9_mqd, field) == offsetof(struct v12_compute_mqd, field))

SAME_PLACE(cp_hqd_active);
SAME_PLACE(cp_hqd_pipe_priority);
SAME_PLACE(cp_hqd_pq_base_lo);
SAME_PLACE(cp_hqd_pq_rptr);
SAME_PLACE(cp_hqd_pq_rptr_report_addr_lo);
SAME_PLACE(cp_hqd_pq_wptr_poll_addr_lo);
SAME_PLACE(cp_hqd_pq_control);
SAME_PLACE(cp_hqd_ctx_save_base_addr_lo);
SAME_PLACE(cp_hqd_cntl_stack_offset);
SAME_PLACE(cp_hqd_cntl_stack_size);
SAME_PLACE(cp_hqd_wg_state_offset);
SAME_PLACE(cp_hqd_ctx_save_size);
SAME_PLACE(cp_hqd_aql_control);
SAME_PLACE(cp_hqd_pq_wptr_lo);

#define ANSWER_MS 10000 /* of our own engine; MES itself has no such limit */

static struct sim_gpu *gpu_of(struct amdgpu_mes *mes)
{
	return to_gpu(container_of(mes, struct amdgpu_device, mes));
}

static int add_queue(struct amdgpu_mes *mes, struct mes_add_queue_input *in)
{
	struct sim_gpu *gpu = gpu_of(mes);
	struct sim_queue *q;
	int r = 0;

	mutex_lock(&gpu->lock);
	q = gpu->knobs.dead ? NULL : sim_queue_add(gpu);
	if (!q) {
		r = -ETIMEDOUT;
	} else {
		q->pasid = in->process_id;
		q->doorbell = in->doorbell_offset;
		q->mqd = in->mqd_addr;
		q->wptr = in->wptr_addr;
		q->kind = in->queue_type == MES_QUEUE_TYPE_COMPUTE ? SIM_AQL : SIM_SDMA;
		gpu->chained = true; /* MES goes round by itself */
		gpu->count.adds++;
		sim_count_new_proc(gpu, q->pasid)->maps++;
		sim_log(gpu, SIM_EV_ADD, q->pasid, q->doorbell, q->mqd, q->kind);
		sim_slots_fill(gpu, ktime_get_ns());
	}
	mutex_unlock(&gpu->lock);
	return r;
}

static struct sim_queue *find(struct sim_gpu *gpu, u32 doorbell)
{
	unsigned int i;

	for (i = 0; i < gpu->n_queues; i++) {
		if (gpu->queues[i].doorbell == doorbell)
			return &gpu->queues[i];
	}
	return NULL;
}

static int remove_queue(struct amdgpu_mes *mes, struct mes_remove_queue_input *in)
{
	struct sim_gpu *gpu = gpu_of(mes);
	struct sim_preempt what = {
		.select = SIM_BY_DOORBELL,
		.n_doorbells = 1,
		.doorbells = { in->doorbell_offset },
	};
	int r;

	mutex_lock(&gpu->lock);
	if (gpu->knobs.dead || !find(gpu, in->doorbell_offset)) {
		r = gpu->knobs.dead ? -ETIMEDOUT : 0;
		mutex_unlock(&gpu->lock);
		return r;
	}
	gpu->count.removes++;
	sim_log(gpu, SIM_EV_REMOVE, 0, in->doorbell_offset, 0, 0);
	sim_preempt_begin(gpu, &what, ktime_get_ns());
	mutex_unlock(&gpu->lock);
	sim_engine_wake();

	if (!wait_event_timeout(gpu->changed, READ_ONCE(gpu->preempt.phase) == SIM_PREEMPT_NONE,
				msecs_to_jiffies(ANSWER_MS)))
		return -ETIMEDOUT;
	mutex_lock(&gpu->lock);
	r = find(gpu, in->doorbell_offset) ? -ETIMEDOUT : 0;
	sim_slots_fill(gpu, ktime_get_ns());
	mutex_unlock(&gpu->lock);
	return r;
}

const struct amdgpu_mes_funcs sim_mes_funcs = {
	.add_hw_queue = add_queue,
	.remove_hw_queue = remove_queue,
};

static int set_halted(struct amdgpu_device *adev, bool halted)
{
	struct sim_gpu *gpu = to_gpu(adev);

	mutex_lock(&gpu->lock);
	gpu->halted = halted;
	mutex_unlock(&gpu->lock);
	return 0;
}

int amdgpu_mes_suspend(struct amdgpu_device *adev)
{
	return set_halted(adev, true);
}

int amdgpu_mes_resume(struct amdgpu_device *adev)
{
	return set_halted(adev, false);
}

int amdgpu_mes_flush_shader_debugger(struct amdgpu_device *adev, uint64_t process_context_addr)
{
	return 0;
}

int amdgpu_mes_set_shader_debugger(struct amdgpu_device *adev, uint64_t process_context_addr,
				   uint32_t spi_gdbg_per_vmid_cntl, const uint32_t *tcp_watch_cntl,
				   uint32_t flags, bool trap_en)
{
	return 0;
}
