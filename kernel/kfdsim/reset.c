/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Whole-GPU resets: what amdgpu_device_gpu_recover() does as far as amdkfd can tell. What was on
 * the GPU is lost, a dead scheduler lives again.
 */
#include <kfd_priv.h>

#include "kernel/kfdsim/sim.h"

static void forget_everything(struct sim_gpu *gpu)
{
	mutex_lock(&gpu->lock);
	gpu->hiq.loaded = false;
	gpu->n_queues = 0;
	gpu->waves = 0;
	gpu->halted = false;
	gpu->iq_wait = SIM_DEFAULT_IQ_WAIT;
	sim_slots_reset(gpu);
	gpu->knobs.dead = false;
	gpu->knobs.stuck_doorbell = U32_MAX;
	WRITE_ONCE(gpu->preempt.phase, SIM_PREEMPT_NONE);
	wake_up_all(&gpu->changed);
	mutex_unlock(&gpu->lock);
}

static void reset_work(struct work_struct *work)
{
	struct amdgpu_device *adev = container_of(work, struct amdgpu_device, kfd.reset_work);
	struct amdgpu_reset_context context = { .reset_req_dev = adev };
	struct sim_gpu *gpu = to_gpu(adev);

	if (!adev->kfd.dev)
		return;
	atomic_set(&gpu->reset_domain.in_gpu_reset, 1);
	down_write(&gpu->reset_domain.sem);
	kgd2kfd_pre_reset(adev->kfd.dev, &context);
	forget_everything(gpu);
	kgd2kfd_post_reset(adev->kfd.dev);
	cancel_work(work); /* what asked meanwhile has been served */
	atomic_set(&gpu->reset_domain.in_gpu_reset, 0);
	up_write(&gpu->reset_domain.sem);
	dev_info(adev->dev, "kfdsim: GPU reset done\n");
}

void sim_reset_init(struct sim_gpu *gpu)
{
	init_rwsem(&gpu->reset_domain.sem);
	gpu->adev.reset_domain = &gpu->reset_domain;
	INIT_WORK(&gpu->adev.kfd.reset_work, reset_work);
}

void amdgpu_amdkfd_gpu_reset(struct amdgpu_device *adev)
{
	struct sim_gpu *gpu = to_gpu(adev);

	mutex_lock(&gpu->lock);
	gpu->count.resets++;
	sim_log(gpu, SIM_EV_RESET, 0, 0, 0, 0);
	mutex_unlock(&gpu->lock);
	dev_info(adev->dev, "kfdsim: GPU reset requested\n");
	if (gpu->knobs.recover)
		queue_work(gpu->reset_domain.wq, &adev->kfd.reset_work);
}

void amdgpu_reset_get_desc(struct amdgpu_reset_context *rst_ctxt, char *buf, size_t len)
{
	strscpy(buf, "kfdsim", len);
}
