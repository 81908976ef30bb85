/* SPDX-License-Identifier: MIT */
/* Launch mode, overrides, flags and watch points: kept and costed, without effect on waves. */
#include <errno.h>

#include "gpu/model/driver.h"

#define OVERRIDE_OR 0u
#define OVERRIDE_REPLACE 1u
#define TRAP_MASK_GFX942 0xc00001ffu
#define TRAP_MASK_GFX90A 0x1ffu
#define TRAP_MASK_OLDER 0x80u /* address watch only: the register is everybody's */
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

/* The chips' validate_trap_override_request() of Linux 6.12 amdgpu. */
static int check_override(const struct model *m, uint32_t mode, uint32_t *ret_supported)
{
	uint32_t gfx = m->config.chip->gfx_target_version;

	if (!m->config.n_gpus) {
		*ret_supported = UINT32_MAX;
		return 0;
	}
	if (gfx < 90010) {
		*ret_supported = TRAP_MASK_OLDER;
		return mode == OVERRIDE_OR ? 0 : -EINVAL;
	}
	*ret_supported = gfx == 90010 ? TRAP_MASK_GFX90A : TRAP_MASK_GFX942;
	return mode == OVERRIDE_OR || mode == OVERRIDE_REPLACE ? 0 : -EPERM;
}

int model_launch_override(struct model *m, struct model_kproc *k,
			  struct kfd_ioctl_dbg_trap_set_wave_launch_override_args *a)
{
	uint32_t bits = a->enable_mask, request = a->support_request_mask;
	int r;

	r = check_override(m, a->override_mode, &a->support_request_mask);
	if (r < 0)
		return r;
	if (request & ~a->support_request_mask)
		return -EACCES;
	for (uint32_t i = 0; i < m->config.n_gpus; i++) {
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
	if (model_gpu_debugs_per_vmid(gpu) && !model_is_mes(gpu)) {
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
