/* SPDX-License-Identifier: MIT */
/* Calls that sleep in the driver: the runtime handshake and the destruction of a held queue. */
#include <errno.h>

#include "gpu/model/driver.h"

struct blocked *model_block(struct model *m, struct model_task task, struct model_kproc *k,
			    enum blocked_on on)
{
	struct blocked *b = calloc(1, sizeof(*b));
	struct blocked **last = &m->blocked;

	if (!b)
		return NULL;
	b->task = task;
	b->kproc = k;
	b->on = on;
	while (*last)
		last = &(*last)->next;
	*last = b;
	return b;
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

static void finish(struct blocked *b, int r)
{
	b->woken = false;
	b->done = true;
	b->result = r;
}

static void resume_call(struct model *m, struct blocked *b)
{
	struct model_queue *q;

	if (b->on != BLOCKED_DESTROY) {
		model_runtime_continue(m, b, 0);
		finish(b, 0);
		return;
	}
	q = model_queue_find(b->kproc, b->queue_id);
	finish(b, q ? model_queue_destroy_now(q) : -EINVAL);
}

void model_run_woken(struct model *m)
{
	struct blocked *b;

	do {
		for (b = m->blocked; b; b = b->next)
			if (b->woken)
				break;
		if (b)
			resume_call(m, b);
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
	struct model_queue *q;

	if (!b || b->done)
		return;
	if (b->on == BLOCKED_DESTROY) {
		q = model_queue_find(b->kproc, b->queue_id);
		if (q)
			q->is_being_destroyed = false;
	} else {
		model_runtime_continue(m, b, -EINTR);
	}
	finish(b, -EINTR);
}

int model_ioctl_now(struct model *m, struct model_task task, pid_t fd_owner, unsigned long request,
		    void *arg)
{
	int r = model_ioctl(m, task, fd_owner, request, arg);

	if (r != MODEL_BLOCKED)
		return r;
	model_signal(m, task);
	(void)model_blocked_result(m, task, &r);
	return -EDEADLK;
}
