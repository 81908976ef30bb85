/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "gpu/model/driver.h"

/* 16 bits, not 0, no two alike, as kfd_generate_gpu_id() of Linux 6.12 makes them. */
static uint32_t make_gpu_id(uint32_t index)
{
	return (0x2d1bu + index * 0x1a35u) & 0xffff;
}

static int gpus_new(struct model *m)
{
	for (uint32_t i = 0; i < m->config.n_gpus; i++) {
		struct model_gpu *gpu = &m->gpus[i];

		gpu->m = m;
		gpu->index = i;
		gpu->id = make_gpu_id(i);
		for (uint32_t k = 0; model_is_mes(gpu) && k < MES_SDMA_RESERVED; k++)
			for (uint32_t engine = 0; engine < m->config.chip->n_sdma; engine++)
				model_bit_take(gpu->sdma_used[0], 0, 1,
					       8 * sizeof(gpu->sdma_used[0]));
		gpu->hw = hw_gpu_new(m->config.chip, &m->time);
		if (!gpu->hw)
			return -ENOMEM;
	}
	return 0;
}

int model_new(const struct model_config *config, struct model **ret)
{
	_cleanup_(model_freep) struct model *m = NULL;
	struct model_proc_spec self = { .pid = MODEL_SELF_PID, .comm = "gpreempt" };
	int r;

	if (!config->chip || config->n_gpus > MODEL_MAX_GPUS ||
	    config->chip->n_xcc > MODEL_MAX_XCC)
		return -EINVAL;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->chip = *config->chip;
	m->config = *config;
	m->config.chip = &m->chip;
	if (!m->config.kfd_minor)
		m->config.kfd_minor = KFD_IOCTL_MINOR_VERSION;
	m->next_serial = 1;
	m->next_pasid = 0x8001;

	r = gpus_new(m);
	if (r < 0)
		return r;
	r = model_proc_start(m, &self);
	if (r < 0)
		return r;
	*ret = steal_ptr(&m);
	return 0;
}

void model_free(struct model *m)
{
	if (!m)
		return;
	while (m->procs)
		model_proc_exit(m, m->procs->pid);
	for (uint32_t i = 0; i < MODEL_MAX_GPUS; i++)
		if (m->gpus[i].hw)
			hw_gpu_free(m->gpus[i].hw);
	timeline_done(&m->time);
	free(m);
}

void model_freep(struct model **m)
{
	model_free(*m);
}

uint64_t model_now_ns(const struct model *m)
{
	return m->time.now_ns;
}

void model_advance(struct model *m, uint64_t ns)
{
	timeline_run(&m->time, m->time.now_ns + ns);
}

uint64_t model_next_ns(const struct model *m)
{
	return timeline_next_ns(&m->time);
}

/* ---- memory ---- */

uint64_t model_mem_map(struct model *m, pid_t pid, size_t bytes)
{
	struct model_proc *p = model_proc_find(m, pid);

	return p ? mem_map(p->mm, bytes) : 0;
}

int model_mem_adopt(struct model *m, pid_t pid, uint64_t va, void *pages, size_t bytes)
{
	struct model_proc *p = model_proc_find(m, pid);

	return p ? mem_adopt(p->mm, va, pages, bytes) : -ESRCH;
}

int model_mem_read(struct model *m, pid_t pid, uint64_t va, void *buf, size_t len)
{
	struct model_proc *p = model_proc_find(m, pid);

	return p ? mem_read(p->mm, va, buf, len) : -ESRCH;
}

int model_mem_write(struct model *m, pid_t pid, uint64_t va, const void *buf, size_t len)
{
	struct model_proc *p = model_proc_find(m, pid);

	return p ? mem_write(p->mm, va, buf, len) : -ESRCH;
}

/* ---- the truth ---- */

int model_gpu_stats(const struct model *m, uint32_t gpu_index, struct model_gpu_stats *ret)
{
	const struct hw_turns *turns;
	const struct model_gpu *gpu;
	struct gpu_counts n;

	if (gpu_index >= m->config.n_gpus)
		return -ENODEV;
	gpu = &m->gpus[gpu_index];
	*ret = gpu->stats;
	n = model_gpu_count(gpu);
	ret->active_queues = n.active;
	ret->total_queues = gpu->total_queues;
	ret->processes = n.processes;
	turns = hw_gpu_turns(gpu->hw);
	ret->rotations = turns->rotations;
	ret->saved_bytes += turns->saved.bytes;
	ret->save_ns += turns->saved.ns;
	return 0;
}

uint32_t model_gpu_id(const struct model *m, uint32_t gpu_index)
{
	return gpu_index < m->config.n_gpus ? m->gpus[gpu_index].id : 0;
}

uint32_t model_n_gpus(const struct model *m)
{
	return m->config.n_gpus;
}

const struct model_chip *model_chip_of(const struct model *m)
{
	return &m->chip;
}

struct model_queue *model_queue_of(const struct model *m, pid_t pid, uint32_t queue_id)
{
	struct model_proc *p = model_proc_find(m, pid);

	return p && p->kproc ? model_queue_find(p->kproc, queue_id) : NULL;
}

int model_queue_stats(const struct model *m, pid_t pid, uint32_t queue_id,
		      struct model_queue_stats *ret)
{
	struct model_queue *q = model_queue_of(m, pid, queue_id);
	const struct hw_queue_seen *seen;

	if (!q)
		return -ENOENT;
	seen = hw_see(q->hw);
	*ret = (struct model_queue_stats){
		.active = q->is_active,
		.suspended = q->is_suspended,
		.evicted = q->is_evicted,
		.is_new = q->exception_status & KFD_EC_MASK(EC_QUEUE_NEW),
		.mapped = seen->mapped,
		.held = q->ext.reasons != 0,
		.on = seen->on,
		.completed = seen->completed,
		.resident = seen->resident,
		.saved = seen->saved,
	};
	return 0;
}

size_t model_packets(const struct model *m, pid_t pid, uint32_t queue_id, uint64_t first,
		     struct model_packet *ret, size_t max)
{
	struct model_queue *q = model_queue_of(m, pid, queue_id);

	return q ? hw_queue_packets(q->hw, first, ret, max) : 0;
}

void model_forget_packets(struct model *m, pid_t pid, uint32_t queue_id, uint64_t before)
{
	struct model_queue *q = model_queue_of(m, pid, queue_id);

	if (q)
		hw_queue_forget_packets(q->hw, before);
}

int model_on_complete(struct model *m, pid_t pid, uint32_t queue_id,
		      void (*completed)(void *user, uint64_t index), void *user)
{
	struct model_queue *q = model_queue_of(m, pid, queue_id);

	if (!q)
		return -ENOENT;
	hw_queue_on_complete(q->hw, completed, user);
	return 0;
}
