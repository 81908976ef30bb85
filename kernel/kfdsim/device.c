/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* One GPU: what amdkfd reads in struct amdgpu_device, and the order of bringing it up. */
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/platform_device.h>
#include <linux/pm_runtime.h>
#include <drm/drm_drv.h>

#include <kfd_device_queue_manager.h>
#include <kfd_priv.h>

#include "kernel/kfdsim/sim.h"

#define DOORBELL_SDMA_FIRST 0x100 /* layout 1 of amdgpu_doorbell.h */
#define DOORBELL_SDMA_STEP 10
#define DOORBELL_NON_CP_LAST 0x1e8
#define VRAM_BYTES (1ull << 30)

static uint gc = 0x090403;
module_param(gc, uint, 0444);
MODULE_PARM_DESC(gc, "GC version: 0x090001 0x090401 0x090402 0x090403 0x0b0500 0x0c0000");
static uint num_xcc = 1;
module_param(num_xcc, uint, 0444);
MODULE_PARM_DESC(num_xcc, "XCCs of a GPU, 1 to 8; more than 1 only for gc=0x090403");
static uint cu_per_se = 1;
module_param(cu_per_se, uint, 0444);
MODULE_PARM_DESC(cu_per_se, "compute units in each of an XCC's 4 shader engines, 1 to 16");

/*
 * VMIDs as in gmc_v9_0.c to gmc_v12_0.c, SDMA engines as the chips have them, firmware new enough
 * for kfd_topology.c to call debugging supported.
 */
static const struct sim_chip chips[] = {
	{ 0x090001, IP_VERSION(4, 0, 0), 2, 8, false, 0x6860, 32768 + 471 },
	{ 0x090401, IP_VERSION(4, 2, 2), 8, 3, true, 0x738c, 200 },
	{ 0x090402, IP_VERSION(4, 4, 0), 5, 3, true, 0x740c, 200 },
	{ 0x090403, IP_VERSION(4, 4, 2), 0, 3, true, 0x74a1, 200 },
	{ 0x0b0500, IP_VERSION(6, 1, 0), 1, 8, false, 0x150e, 600 },
	{ 0x0c0000, IP_VERSION(7, 0, 0), 2, 8, false, 0x7590, 2600 },
};

const char *amdgpu_asic_name[CHIP_LAST + 1] = {
	[0 ... CHIP_LAST] = "SIM",
	[CHIP_IP_DISCOVERY] = "IP DISCOVERY",
};

static const struct sim_chip *find_chip(void)
{
	const struct sim_chip *c;

	for (c = chips; c < chips + ARRAY_SIZE(chips); c++) {
		if (c->gc == gc)
			return c;
	}
	return NULL;
}

static enum amdgpu_memory_partition memory_partition(struct amdgpu_device *adev)
{
	return AMDGPU_NPS1_PARTITION_MODE;
}

static enum amdgpu_pkg_type package(struct amdgpu_device *adev)
{
	return AMDGPU_PKG_TYPE_OAM;
}

static const struct amdgpu_gmc_funcs gmc_funcs = { .query_mem_partition_mode = memory_partition };
static const struct amdgpu_smuio_funcs smuio_funcs = { .get_pkg_type = package };

static void free_pci(struct device *dev)
{
	kfree(to_pci_dev(dev));
}

/* amdkfd reads identity and place of a PCI device; this one is on no list of the kernel's. */
static struct pci_dev *make_pci(struct sim_gpu *gpu)
{
	struct pci_bus *bus = pci_find_bus(0, 0);
	struct pci_dev *p;

	if (!bus)
		return NULL;
	p = kzalloc(sizeof(*p), GFP_KERNEL);
	if (!p)
		return NULL;
	p->bus = bus;
	p->devfn = PCI_DEVFN(20 + gpu->index, 0);
	p->vendor = PCI_VENDOR_ID_ATI;
	p->device = gpu->chip->device;
	p->subsystem_vendor = PCI_VENDOR_ID_ATI;
	p->subsystem_device = gpu->chip->device;
	device_initialize(&p->dev);
	p->dev.release = free_pci;
	set_dev_node(&p->dev, NUMA_NO_NODE);
	if (dev_set_name(&p->dev, "kfdsim-gpu%u", gpu->index)) {
		put_device(&p->dev);
		return NULL;
	}
	return p;
}

static void fill_compute(struct sim_gpu *gpu)
{
	struct amdgpu_gfx *gfx = &gpu->adev.gfx;
	unsigned int x, se, bit;

	gfx->xcc_mask = GENMASK(gpu->n_xcc - 1, 0);
	gfx->num_xcc_per_xcp = gpu->n_xcc;
	gfx->config.max_shader_engines = SIM_SE;
	gfx->config.max_sh_per_se = 1;
	gfx->config.max_cu_per_sh = cu_per_se;
	gfx->cu_info.number = gpu->cu_per_xcc * gpu->n_xcc;
	gfx->cu_info.simd_per_cu = 4;
	gfx->cu_info.max_waves_per_simd = SIM_CU_WAVES / 4;
	gfx->cu_info.wave_front_size = 64;
	gfx->cu_info.max_scratch_slots_per_cu = 32;
	gfx->cu_info.lds_size = 64;
	for (x = 0; x < gpu->n_xcc; x++) {
		for (se = 0; se < SIM_SE; se++)
			gfx->cu_info.bitmap[x][se][0] = GENMASK(cu_per_se - 1, 0);
	}
	gfx->mec.num_mec = 2;
	gfx->mec.num_pipe_per_mec = SIM_PIPES;
	gfx->mec.num_queue_per_pipe = SIM_PIPE_QUEUES;
	for (bit = 0; bit < SIM_SLOTS; bit++) {
		if (bit % SIM_PIPE_QUEUES < SIM_KERNEL_QUEUES)
			set_bit(bit, gfx->mec_bitmap[0].queue_bitmap);
	}
}

static void fill_sdma(struct sim_gpu *gpu)
{
	struct amdgpu_device *adev = &gpu->adev;
	unsigned int n = gpu->chip->sdma_engines, i;

	if (!n)
		n = gpu->n_xcc > 1 ? 2 * gpu->n_xcc : 8;
	adev->sdma.num_instances = n;
	for (i = 0; i < n; i++)
		adev->doorbell_index.sdma_engine[i] = DOORBELL_SDMA_FIRST + DOORBELL_SDMA_STEP * i;
	adev->doorbell_index.first_non_cp = DOORBELL_SDMA_FIRST;
	adev->doorbell_index.last_non_cp = DOORBELL_NON_CP_LAST;
}

static void fill(struct sim_gpu *gpu)
{
	struct amdgpu_device *adev = &gpu->adev;
	const struct sim_chip *c = gpu->chip;

	adev->dev = &gpu->pdev->dev;
	adev->asic_type = CHIP_IP_DISCOVERY;
	adev->rev_id = 1; /* gfx942, not gfx940 or gfx941 */
	adev->ip_versions[GC_HWIP][0] = IP_VERSION(c->gc >> 16, c->gc >> 8 & 0xff, c->gc & 0xff);
	adev->ip_versions[SDMA0_HWIP][0] = c->sdma;
	adev->enable_mes = c->gc >= 0x0b0000;
	adev->mes.funcs = &sim_mes_funcs;
	adev->mes.sched_version = 14 << AMDGPU_MES_API_VERSION_SHIFT | 80;
	mutex_init(&adev->mes.mutex_hidden);
	fill_compute(gpu);
	fill_sdma(gpu);
	adev->gds.gws_size = 64;
	adev->gmc.gmc_funcs = &gmc_funcs;
	adev->gmc.real_vram_size = VRAM_BYTES;
	adev->gmc.xgmi.supported = c->xgmi;
	adev->smuio.funcs = &smuio_funcs;
	adev->vm_manager.max_pfn = 1ull << 36;
	adev->vm_manager.first_kfd_vmid = c->first_vmid;
	adev->unique_id = 0x6b66647300000000ull + gpu->index;
	spin_lock_init(&adev->mman.bdev.lru_lock);
}

static void fill_knobs(struct sim_gpu *gpu)
{
	gpu->knobs.preempt_us = 50;
	gpu->knobs.save_ns_per_kib = 50;
	gpu->knobs.quantum_us = 10000;
	gpu->knobs.stuck_doorbell = U32_MAX;
	gpu->knobs.stuck_ms = 100;
	gpu->knobs.recover = true;
	gpu->knobs.queue_reset_works = true;
	gpu->iq_wait = SIM_DEFAULT_IQ_WAIT;
}

static int init_gpu(struct sim_gpu *gpu)
{
	int r;

	mutex_init(&gpu->lock);
	init_waitqueue_head(&gpu->changed);
	INIT_LIST_HEAD(&gpu->vms);
	xa_init_flags(&gpu->gart, XA_FLAGS_ALLOC1);
	xa_init(&gpu->waits);
	gpu->slots_counted_ns = ktime_get_ns();
	fill_knobs(gpu);
	sim_slots_reset(gpu);
	gpu->queues = kvcalloc(SIM_MAX_QUEUES, sizeof(*gpu->queues), GFP_KERNEL);
	gpu->log = sim_log_new();
	if (!gpu->queues || !gpu->log)
		return -ENOMEM;
	r = sim_bar_init(gpu);
	if (r)
		return r;
	gpu->adev.pdev = make_pci(gpu);
	if (!gpu->adev.pdev)
		return -ENODEV;
	sim_reset_init(gpu);
	sim_sleep_init(gpu);
	gpu->reset_domain.wq = alloc_ordered_workqueue("kfdsim-reset%u", 0, gpu->index);
	if (!gpu->reset_domain.wq)
		return -ENOMEM;
	fill(gpu);
	r = drm_dev_register(&gpu->adev.ddev, 0);
	gpu->registered = !r;
	return r;
}

static struct sim_gpu *alloc_gpu(unsigned int index)
{
	struct platform_device *pdev;
	struct sim_gpu *gpu;

	pdev = platform_device_register_simple("kfdsim", index, NULL, 0);
	if (IS_ERR(pdev))
		return ERR_CAST(pdev);
	pm_runtime_no_callbacks(&pdev->dev);
	pm_runtime_set_active(&pdev->dev);
	pm_runtime_enable(&pdev->dev);
	if (!devres_open_group(&pdev->dev, NULL, GFP_KERNEL))
		gpu = ERR_PTR(-ENOMEM);
	else
		gpu = devm_drm_dev_alloc(&pdev->dev, &sim_drm_driver, struct sim_gpu, adev.ddev);
	if (IS_ERR(gpu)) {
		pm_runtime_disable(&pdev->dev);
		platform_device_unregister(pdev);
		return gpu;
	}
	gpu->pdev = pdev;
	gpu->index = index;
	return gpu;
}

struct sim_gpu *sim_gpu_create(unsigned int index)
{
	const struct sim_chip *chip = find_chip();
	struct sim_gpu *gpu;
	int r;

	if (!chip || !num_xcc || num_xcc > SIM_MAX_XCC || (num_xcc > 1 && gc != 0x090403) ||
	    !cu_per_se || cu_per_se > 16)
		return ERR_PTR(-EINVAL);
	gpu = alloc_gpu(index);
	if (IS_ERR(gpu))
		return gpu;
	gpu->chip = chip;
	gpu->n_xcc = num_xcc;
	gpu->cu_per_xcc = SIM_SE * cu_per_se;
	r = init_gpu(gpu);
	if (r) {
		sim_gpu_destroy(gpu);
		return ERR_PTR(r);
	}
	return gpu;
}

/*
 * Linux 6.12 makes no packet manager for MES, but its debugfs file "rls" takes that one's lock
 * (pm_debugfs_runlist()). A kernel that watches locks would say so once and watch no more.
 */
static void init_unused_locks(struct amdgpu_device *adev)
{
	unsigned int i;

	for (i = 0; adev->enable_mes && i < adev->kfd.dev->num_nodes; i++)
		mutex_init(&adev->kfd.dev->nodes[i]->dqm->packet_mgr.lock);
}

/* The same calls, in the same order, as amdgpu_amdkfd_device_probe() and _init(). */
int sim_gpu_start(struct sim_gpu *gpu)
{
	struct amdgpu_device *adev = &gpu->adev;
	struct kgd2kfd_shared_resources res = {
		.compute_vmid_bitmap = GENMASK(SIM_LAST_VMID, gpu->chip->first_vmid),
		.num_pipe_per_mec = SIM_PIPES,
		.num_queue_per_pipe = SIM_PIPE_QUEUES,
		.gpuvm_size = AMDGPU_GMC_HOLE_START,
		.drm_render_minor = adev->ddev.render->index,
		.sdma_doorbell_idx = adev->doorbell_index.sdma_engine,
		.non_cp_doorbells_start = adev->doorbell_index.first_non_cp,
		.non_cp_doorbells_end = adev->doorbell_index.last_non_cp,
		.enable_mes = adev->enable_mes,
	};

	bitmap_complement(res.cp_queue_bitmap, adev->gfx.mec_bitmap[0].queue_bitmap,
			  AMDGPU_MAX_QUEUES);
	bitmap_clear(res.cp_queue_bitmap, SIM_SLOTS, AMDGPU_MAX_QUEUES - SIM_SLOTS);
	adev->kfd.dev = kgd2kfd_probe(adev, false);
	if (!adev->kfd.dev)
		return -ENODEV;
	adev->kfd.init_complete = kgd2kfd_device_init(adev->kfd.dev, &res);
	if (adev->kfd.init_complete) {
		init_unused_locks(adev);
		return 0;
	}
	kgd2kfd_device_exit(adev->kfd.dev);
	adev->kfd.dev = NULL;
	return -ENODEV;
}

void sim_gpu_destroy(struct sim_gpu *gpu)
{
	struct platform_device *pdev;

	if (!gpu)
		return;
	pdev = gpu->pdev;
	if (gpu->registered)
		drm_dev_unregister(&gpu->adev.ddev);
	if (gpu->reset_domain.wq)
		destroy_workqueue(gpu->reset_domain.wq);
	if (gpu->adev.pdev)
		put_device(&gpu->adev.pdev->dev);
	sim_bar_exit(gpu);
	sim_log_free(gpu->log);
	kvfree(gpu->queues);
	sim_waits_free(gpu);
	xa_destroy(&gpu->gart);
	pm_runtime_disable(&pdev->dev);
	platform_device_unregister(pdev); /* frees @gpu */
}
