/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Loading, unloading, and the module parameters of amdgpu that amdkfd looks at. */
#include <linux/module.h>

#include <kfd_priv.h>

#include "kernel/kfdsim/sim.h"

int sched_policy = KFD_SCHED_POLICY_HWS;
module_param(sched_policy, int, 0444);
int hws_max_conc_proc = -1;
module_param(hws_max_conc_proc, int, 0444);
int cwsr_enable = 1;
module_param(cwsr_enable, int, 0444);
int max_num_of_queues_per_device = KFD_MAX_NUM_OF_QUEUES_PER_DEVICE_DEFAULT;
module_param(max_num_of_queues_per_device, int, 0444);
int send_sigterm;
module_param(send_sigterm, int, 0444);
int halt_if_hws_hang;
module_param(halt_if_hws_hang, int, 0644);
bool hws_gws_support;
module_param(hws_gws_support, bool, 0444);
int queue_preemption_timeout_ms = 9000;
module_param(queue_preemption_timeout_ms, int, 0644);
bool debug_evictions;
module_param(debug_evictions, bool, 0644);
int amdgpu_no_queue_eviction_on_vm_fault;
module_param_named(no_queue_eviction_on_vm_fault, amdgpu_no_queue_eviction_on_vm_fault, int, 0444);
int amdgpu_use_xgmi_p2p = 1;
int amdgpu_emu_mode;
int amdgpu_exp_hw_support;
uint amdgpu_sdma_phase_quantum = 32;

static uint gpus = 1;
module_param(gpus, uint, 0444);
MODULE_PARM_DESC(gpus, "number of GPUs, 1 to 8");

struct sim_gpu *sim_gpus[SIM_MAX_GPUS];
unsigned int sim_n_gpus;

static void remove_gpus(void)
{
	sim_debugfs_exit();
	while (sim_n_gpus) {
		sim_n_gpus--;
		sim_gpu_destroy(sim_gpus[sim_n_gpus]);
		sim_gpus[sim_n_gpus] = NULL;
	}
}

static int add_gpus(void)
{
	struct sim_gpu *gpu;

	sim_debugfs_init();
	while (sim_n_gpus < gpus) {
		gpu = sim_gpu_create(sim_n_gpus);
		if (IS_ERR(gpu)) {
			remove_gpus();
			return PTR_ERR(gpu);
		}
		sim_gpus[sim_n_gpus++] = gpu;
		sim_debugfs_add(gpu);
	}
	return 0;
}

/* The nodes of amdkfd must be gone before what they stand on. */
static void stop_all(unsigned int n)
{
	while (n--) {
		struct amdgpu_device *adev = &sim_gpus[n]->adev;

		flush_workqueue(sim_gpus[n]->reset_domain.wq);
		mutex_lock(&sim_gpus[n]->lock);
		adev->kfd.init_complete = false; /* no interrupts any more */
		mutex_unlock(&sim_gpus[n]->lock);
		kgd2kfd_device_exit(adev->kfd.dev);
		adev->kfd.dev = NULL;
	}
}

static int start_all(void)
{
	unsigned int i;
	int r;

	for (i = 0; i < sim_n_gpus; i++) {
		r = sim_gpu_start(sim_gpus[i]);
		if (r) {
			stop_all(i);
			return r;
		}
	}
	return 0;
}

static int __init sim_init(void)
{
	int r;

	if (!gpus || gpus > SIM_MAX_GPUS)
		return -EINVAL;
	r = add_gpus();
	if (r)
		return r;
	r = sim_engine_start();
	if (r)
		goto no_engine;
	r = kgd2kfd_init();
	if (r)
		goto no_kfd;
	r = start_all();
	if (r)
		goto no_nodes;
	pr_info("kfdsim: %u GPUs up\n", sim_n_gpus);
	return 0;

no_nodes:
	kgd2kfd_exit();
no_kfd:
	sim_engine_stop();
no_engine:
	remove_gpus();
	return r;
}

/* The driver ends before its GPUs, as in amdgpu. */
static void __exit sim_exit(void)
{
	kgd2kfd_exit();
	stop_all(sim_n_gpus);
	sim_engine_stop();
	remove_gpus();
}

module_init(sim_init);
module_exit(sim_exit);
MODULE_DESCRIPTION("amdkfd on a software GPU");
MODULE_LICENSE("GPL and additional rights");
MODULE_IMPORT_NS(DMA_BUF);
