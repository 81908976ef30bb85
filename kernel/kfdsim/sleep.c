/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The machine sleeps: what amdgpu_device_suspend() and _resume() tell amdkfd of it, when all
 * processes are frozen (Linux 6.12).
 */
#include <linux/pci.h>
#include <linux/platform_device.h>
#include <linux/pm_domain.h>

#include <kfd_priv.h>

#include "kernel/kfdsim/sim.h"

static struct kfd_dev *kfd_of(struct device *dev)
{
	unsigned int i;

	for (i = 0; i < sim_n_gpus; i++) {
		if (&sim_gpus[i]->pdev->dev == dev)
			return sim_gpus[i]->adev.kfd.dev;
	}
	return NULL;
}

static int fall_asleep(struct device *dev)
{
	struct kfd_dev *kfd = kfd_of(dev);

	if (kfd)
		kgd2kfd_suspend(kfd, false);
	return 0;
}

static int awake(struct device *dev)
{
	struct kfd_dev *kfd = kfd_of(dev);

	return kfd ? kgd2kfd_resume(kfd, false) : 0;
}

static struct dev_pm_domain pm_domain = {
	.ops = { SET_SYSTEM_SLEEP_PM_OPS(fall_asleep, awake) },
};

/* Linux 6.12 resets a virtio device that sleeps, and virtio's 9p, the guest's root, never wakes. */
static void keep_virtio_awake(void)
{
	struct pci_dev *p = NULL;

	while ((p = pci_get_device(PCI_VENDOR_ID_REDHAT_QUMRANET, PCI_ANY_ID, p)))
		dev_pm_syscore_device(&p->dev, true);
}

void sim_sleep_init(struct sim_gpu *gpu)
{
	dev_pm_domain_set(&gpu->pdev->dev, &pm_domain);
	keep_virtio_awake();
}
