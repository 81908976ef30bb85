/* SPDX-License-Identifier: MIT */
/* CRIU_OP as far as it stops and starts queues; images are not modelled. */
#include <errno.h>

#include "abi/mqd_v9.h"
#include "gpu/model/driver.h"

/* sizeof the driver's kfd_criu_*_priv_data */
#define PROCESS_PRIV_BYTES 8u
#define DEVICE_PRIV_BYTES 8u
#define QUEUE_PRIV_BYTES 120u
#define EVENT_PRIV_BYTES 64u

static uint64_t object_bytes(const struct model *m, const struct model_kproc *k, uint32_t *ret_n)
{
	uint64_t bytes = PROCESS_PRIV_BYTES + (uint64_t)m->config.n_gpus * DEVICE_PRIV_BYTES;

	*ret_n = model_events_count(k);
	bytes += (uint64_t)*ret_n * EVENT_PRIV_BYTES;
	for (const struct model_queue *q = k->queues; q; q = q->next) {
		bool compute = q->type == QUEUE_COMPUTE;

		bytes += QUEUE_PRIV_BYTES + (compute ? MQD9_BYTES : MQD_SDMA_BYTES) +
			 (compute ? q->ctl_stack_bytes : 0);
		++*ret_n;
	}
	return bytes;
}

/* Up to Linux 6.12.115 it was paused once more each time, and one UNPAUSE did not undo that. */
static int process_info(struct call *c, struct kfd_ioctl_criu_args *a)
{
	struct model_kproc *k = c->kproc;
	int r = 0;

	if (!c->m->config.n_gpus)
		return -ENODEV;
	if (!k->queues_paused)
		r = model_evict_queues(c->m, k);
	if (r < 0)
		return r;
	k->queues_paused = true;
	a->pid = (uint32_t)k->proc->pid;
	a->num_devices = c->m->config.n_gpus;
	a->num_bos = 0;
	a->priv_data_size = object_bytes(c->m, k, &a->num_objects);
	return 0;
}

static int unpause(struct call *c)
{
	int r;

	if (!c->kproc->queues_paused)
		return -EINVAL;
	r = model_restore_queues(c->m, c->kproc);
	if (r == 0)
		c->kproc->queues_paused = false;
	return r;
}

static int checkpoint(struct call *c, const struct kfd_ioctl_criu_args *a)
{
	if (!a->devices || !a->bos || !a->priv_data)
		return -EINVAL;
	if (!c->m->config.n_gpus)
		return -ENODEV;
	return c->kproc->queues_paused ? -EOPNOTSUPP : -EINVAL;
}

static int resume(struct call *c, const struct kfd_ioctl_criu_args *a)
{
	struct model_proc *p = a->pid ? model_proc_by_tid(c->m, (pid_t)a->pid) : NULL;

	return p && p->kproc ? 0 : -ESRCH;
}

int model_ioc_criu(struct call *c, void *data)
{
	struct kfd_ioctl_criu_args *a = data;

	switch (a->op) {
	case KFD_CRIU_OP_PROCESS_INFO:
		return process_info(c, a);
	case KFD_CRIU_OP_CHECKPOINT:
		return checkpoint(c, a);
	case KFD_CRIU_OP_UNPAUSE:
		return unpause(c);
	case KFD_CRIU_OP_RESTORE:
		return -EINVAL;
	case KFD_CRIU_OP_RESUME:
		return resume(c, a);
	default:
		return -EINVAL;
	}
}
