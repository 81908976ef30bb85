/* SPDX-License-Identifier: MIT */
/*
 * RUNTIME_ENABLE and its handshake with a debugger (Linux 6.12 kfd_chardev.c), and what sleeps in
 * the driver: that, and the destruction of a held queue.
 */
#include <errno.h>

#include "gpu/model/driver.h"

/* ---- calls that sleep ---- */

int model_block(struct model *m, struct model_task task, struct model_kproc *k, enum blocked_on on,
		uint32_t queue_id)
{
	struct blocked *b = calloc(1, sizeof(*b));
	struct blocked **last = &m->blocked;

	if (!b)
		return -EINTR;
	*b = (struct blocked){ .task = task, .kproc = k, .on = on, .queue_id = queue_id };
	while (*last)
		last = &(*last)->next;
	*last = b;
	return MODEL_BLOCKED;
}

struct blocked *model_blocked_find(struct model *m, struct model_task task)
{
	for (struct blocked *b = m->blocked; b; b = b->next)
		if (b->task.pid == task.pid && b->task.tid == task.tid)
			return b;
	return NULL;
}

bool model_blocked_result(struct model *m, struct model_task task, int *ret)
{
	for (struct blocked **at = &m->blocked; *at; at = &(*at)->next) {
		struct blocked *b = *at;

		if (b->task.pid != task.pid || b->task.tid != task.tid || !b->done)
			continue;
		*ret = b->result;
		*at = b->next;
		free(b);
		return true;
	}
	return false;
}

void model_blocked_forget(struct model *m, const struct model_kproc *k)
{
	struct blocked **at = &m->blocked;

	while (*at) {
		struct blocked *b = *at;

		if (b->kproc != k) {
			at = &b->next;
			continue;
		}
		*at = b->next;
		free(b);
	}
}

static void finish_disable(struct model *m, struct model_kproc *k)
{
	k->runtime.ttmp_setup = 0;
	for (uint32_t i = 0; i < m->config.n_gpus; i++)
		model_dbg_refresh(&m->gpus[i]);
}

/* Once it is woken, or with -EINTR. */
static void resume_call(struct model *m, struct blocked *b, int r)
{
	struct model_queue *q = model_queue_find(b->kproc, b->queue_id);

	if (b->on != BLOCKED_DESTROY)
		b->kproc->runtime_retry = r < 0;
	else if (r == 0)
		r = q ? model_queue_destroy_now(q) : -EINVAL;
	else if (q)
		q->is_being_destroyed = false;
	if (b->on == BLOCKED_RUNTIME_DISABLE && r == 0)
		finish_disable(m, b->kproc);
	b->woken = false;
	b->done = true;
	b->result = r;
}

void model_run_woken(struct model *m)
{
	struct blocked *b;

	do {
		for (b = m->blocked; b; b = b->next)
			if (b->woken)
				break;
		if (b)
			resume_call(m, b, 0);
	} while (b);
}

void model_wake_destroyers(struct model *m, struct model_gpu *gpu)
{
	for (struct blocked *b = m->blocked; b; b = b->next) {
		struct model_queue *q;

		if (b->done || b->on != BLOCKED_DESTROY)
			continue;
		q = model_queue_find(b->kproc, b->queue_id);
		if (q && q->gpu == gpu && !q->is_suspended)
			b->woken = true;
	}
}

void model_runtime_up(struct model *m, struct model_kproc *k)
{
	for (struct blocked *b = m->blocked; b; b = b->next) {
		if (b->kproc != k || b->done || b->woken || b->on == BLOCKED_DESTROY)
			continue;
		b->woken = true;
		return;
	}
	k->runtime_sema++;
}

void model_signal(struct model *m, struct model_task task)
{
	struct blocked *b = model_blocked_find(m, task);

	if (b && !b->done)
		resume_call(m, b, -EINTR);
}

int model_not_waiting(struct model *m, struct model_task task, int r)
{
	if (r != MODEL_BLOCKED)
		return r;
	model_signal(m, task);
	(void)model_blocked_result(m, task, &r);
	return -EDEADLK;
}

int model_ioctl_now(struct model *m, struct model_task task, pid_t fd_owner, unsigned long request,
		    void *arg)
{
	return model_not_waiting(m, task, model_ioctl(m, task, fd_owner, request, arg));
}

/* ---- the runtime ---- */

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
static int down(struct call *c, enum blocked_on on)
{
	struct model_kproc *k = c->kproc;

	if (k->runtime_sema <= 0)
		return model_block(c->m, c->task, k, on, 0);
	k->runtime_sema--;
	k->runtime_retry = false;
	return 0;
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
	return down(c, BLOCKED_RUNTIME_ENABLE);
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
		r = down(c, BLOCKED_RUNTIME_DISABLE);
		if (r < 0)
			return r;
	}
	finish_disable(c->m, k);
	return 0;
}

int model_ioc_runtime_enable(struct call *c, void *data)
{
	const struct kfd_ioctl_runtime_enable_args *a = data;

	return a->mode_mask & KFD_RUNTIME_ENABLE_MODE_ENABLE_MASK ? enable(c, a) : disable(c);
}
