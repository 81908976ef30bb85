/* SPDX-License-Identifier: MIT */
/* Launch mode, overrides, flags and watch points: kept and costed, without effect on waves. */
#include <errno.h>

#include "gpu/model/driver.h"

#define OVERRIDE_OR 0u
#define OVERRIDE_REPLACE 1u
#define TRAP_MASK_GFX9 0x1ffu
#define FLAG_SINGLE_MEM_OP 1u
#define FLAG_SINGLE_ALU_OP 2u
#define CAP_PRECISE_MEMORY 0x40000u
#define CAP_PRECISE_ALU 0x40000000u

static int refresh_all(struct model *m)
{
	for (uint32_t i = 0; i < m->config.n_gpus; i++) {
		int r = model_dbg_refresh(&m->gpus[i]);

		if (r < 0)
			return r;
	}
	return 0;
}

int model_launch_mode(struct model *m, struct model_kproc *k, uint32_t mode)
{
	mode &= 0xff; /* the driver passes it on as a byte */
	if (mode != KFD_DBG_TRAP_WAVE_LAUNCH_MODE_NORMAL &&
	    mode != KFD_DBG_TRAP_WAVE_LAUNCH_MODE_HALT &&
	    mode != KFD_DBG_TRAP_WAVE_LAUNCH_MODE_DEBUG)
		return -EINVAL;
	for (uint32_t i = 0; i < m->config.n_gpus; i++) {
		int r;

		k->pdds[i].launch_mode = mode;
		r = model_dbg_refresh(&m->gpus[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

int model_launch_override(struct model *m, struct model_kproc *k,
			  struct kfd_ioctl_dbg_trap_set_wave_launch_override_args *a)
{
	uint32_t bits = a->enable_mask, request = a->support_request_mask;

	a->support_request_mask = m->config.n_gpus ? TRAP_MASK_GFX9 : UINT32_MAX;
	if (m->config.n_gpus && a->override_mode != OVERRIDE_OR &&
	    a->override_mode != OVERRIDE_REPLACE)
		return -EPERM;
	if (request & ~a->support_request_mask)
		return -EACCES;
	for (uint32_t i = 0; i < m->config.n_gpus; i++) {
		int r;

		a->enable_mask = k->pdds[i].override;
		k->pdds[i].override = (bits & request) | (k->pdds[i].override & ~request);
		r = model_dbg_refresh(&m->gpus[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

int model_set_flags(struct model *m, struct model_kproc *k, uint32_t *flags)
{
	uint32_t before = k->dbg_flags, wanted = *flags;
	int r;

	*flags = before;
	for (uint32_t i = 0; i < m->config.n_gpus; i++) {
		uint32_t caps = model_gpu_capability(&m->gpus[i]);

		if ((wanted & FLAG_SINGLE_MEM_OP && !(caps & CAP_PRECISE_MEMORY)) ||
		    (wanted & FLAG_SINGLE_ALU_OP && !(caps & CAP_PRECISE_ALU)))
			return -EACCES;
	}
	k->dbg_flags = wanted;
	r = refresh_all(m);
	if (r < 0)
		k->dbg_flags = before;
	return r;
}

int model_watch_set(struct model_pdd *pdd,
		    struct kfd_ioctl_dbg_trap_set_node_address_watch_args *a)
{
	struct model_gpu *gpu = pdd->gpu;
	uint32_t id = 0;
	int r;

	while (id < MAX_WATCH_POINTS && gpu->watch_ids & (1u << id))
		id++;
	if (id == MAX_WATCH_POINTS) {
		a->id = UINT32_MAX;
		return -ENOMEM;
	}
	a->id = id;
	gpu->watch_ids |= 1u << id;
	pdd->watch_ids |= 1u << id;
	if (model_gpu_debugs_per_vmid(gpu)) {
		r = model_unmap_queues(gpu, 0);
		if (r == 0 && model_map_queues(gpu) == 0)
			return 0;
		pdd->watch_ids &= ~(1u << id);
		gpu->watch_ids &= ~(1u << id);
		return r; /* 0 when only the map failed */
	}
	return 0;
}

int model_watch_clear(struct model_pdd *pdd, uint32_t id)
{
	int r;

	if (id >= MAX_WATCH_POINTS || !(pdd->watch_ids & (1u << id)))
		return -EINVAL;
	r = model_dbg_refresh(pdd->gpu);
	if (r < 0)
		return r;
	pdd->watch_ids &= ~(1u << id);
	pdd->gpu->watch_ids &= ~(1u << id);
	return 0;
}
