/* SPDX-License-Identifier: MIT */
/* RUNTIME_ENABLE and its handshake with a debugger (Linux 6.12 kfd_chardev.c). */
#include <errno.h>

#include "gpu/model/driver.h"

int model_runtime_enable(struct model *m, pid_t pid)
{
	struct kfd_ioctl_runtime_enable_args args = {
		.mode_mask = KFD_RUNTIME_ENABLE_MODE_ENABLE_MASK |
			     KFD_RUNTIME_ENABLE_MODE_TTMP_SAVE_MASK,
	};
	struct model_task task = { .pid = pid, .tid = pid };
	int r = model_kfd_open(m, task);

	if (r < 0)
		return r;
	return model_ioctl(m, task, pid, AMDKFD_IOC_RUNTIME_ENABLE, &args);
}

/* down_interruptible(): 0 when a post was there, else the call sleeps. */
static int down(struct call *c, enum blocked_on on, bool was_enabled)
{
	struct model_kproc *k = c->kproc;
	struct blocked *b;

	if (k->runtime_sema > 0) {
		k->runtime_sema--;
		k->runtime_retry = false;
		return 0;
	}
	b = model_block(c->m, c->task, k, on);
	if (!b)
		return -EINTR;
	b->was_enabled = was_enabled;
	return MODEL_BLOCKED;
}

static int enable(struct call *c, const struct kfd_ioctl_runtime_enable_args *a)
{
	struct model_kproc *k = c->kproc;

	if (!k->runtime_retry) {
		if (k->runtime.runtime_state != DEBUG_RUNTIME_STATE_DISABLED)
			return -EBUSY;
		if (k->queues)
			return -EEXIST;
		k->runtime = (struct kfd_runtime_info){
			.r_debug = a->r_debug,
			.runtime_state = DEBUG_RUNTIME_STATE_ENABLED,
			.ttmp_setup = !!(a->mode_mask & KFD_RUNTIME_ENABLE_MODE_TTMP_SAVE_MASK),
		};
	}
	if (!k->debug_enabled)
		return 0;
	if (!k->runtime_retry) {
		model_dbg_activate(c->m, k);
		model_dbg_raise(k, KFD_EC_MASK(EC_PROCESS_RUNTIME), NULL, 0);
	}
	return down(c, BLOCKED_RUNTIME_ENABLE, false);
}

static void finish_disable(struct model *m, struct model_kproc *k)
{
	k->runtime.ttmp_setup = 0;
	for (uint32_t i = 0; i < m->config.n_gpus; i++)
		model_dbg_refresh(&m->gpus[i]);
}

static int disable(struct call *c)
{
	struct model_kproc *k = c->kproc;
	bool was_enabled = k->runtime.runtime_state == DEBUG_RUNTIME_STATE_ENABLED;
	int r;

	k->runtime.runtime_state = DEBUG_RUNTIME_STATE_DISABLED;
	k->runtime.r_debug = 0;
	if (k->debug_enabled) {
		if (was_enabled)
			model_dbg_deactivate(c->m, k);
		if (!k->runtime_retry)
			model_dbg_raise(k, KFD_EC_MASK(EC_PROCESS_RUNTIME), NULL, 0);
		r = down(c, BLOCKED_RUNTIME_DISABLE, was_enabled);
		if (r < 0)
			return r;
	}
	finish_disable(c->m, k);
	return 0;
}

void model_runtime_continue(struct model *m, struct blocked *b, int r)
{
	b->kproc->runtime_retry = r < 0;
	if (r == 0 && b->on == BLOCKED_RUNTIME_DISABLE)
		finish_disable(m, b->kproc);
}

int model_ioc_runtime_enable(struct call *c, void *data)
{
	const struct kfd_ioctl_runtime_enable_args *a = data;

	return a->mode_mask & KFD_RUNTIME_ENABLE_MODE_ENABLE_MASK ? enable(c, a) : disable(c);
}
