/* SPDX-License-Identifier: MIT */
/*
 * The runlist of a GPU: every change takes all queues of all processes off and puts those that
 * are active back (Linux 6.12 kfd_device_queue_manager.c, the "cpsch" functions). MES, which
 * schedules on gfx11 and later, adds and removes them one by one (add_queue_mes() and
 * remove_queue_mes()).
 */
#include <errno.h>

#include "gpu/model/driver.h"

/* The reset value of CP_IQ_WAIT_TIME2.SCH_WAVE; no source gives it, assumed. */
#define DEFAULT_GRACE_KCLK 1
#define FIRST_MES_VERSION 110000

bool model_is_mes(const struct model_gpu *gpu)
{
	return gpu->m->config.chip->gfx_target_version >= FIRST_MES_VERSION;
}

bool model_queue_wants_run(const struct model_queue *q)
{
	return q->ring_bytes > 0 && q->ring_base != 0 && q->percent > 0 && !q->is_evicted &&
	       !q->is_suspended && !q->ext.reasons;
}

struct model_queue *model_next_on(const struct model_gpu *gpu, const struct model_queue *q)
{
	const struct model_kproc *k = q ? q->owner : gpu->m->kprocs;
	struct model_queue *next = q ? q->next : k ? k->queues : NULL;

	while (k && (!next || next->gpu != gpu)) {
		k = next ? k : k->next;
		next = next ? next->next : k ? k->queues : NULL;
	}
	return next;
}

struct gpu_counts model_gpu_count(const struct model_gpu *gpu)
{
	struct gpu_counts n = { 0 };

	for (const struct model_queue *q = NULL; (q = model_next_on(gpu, q));) {
		n.queues++;
		n.held += q->ext.reasons != 0;
		n.active += q->is_active;
		n.compute += q->is_active && q->type == QUEUE_COMPUTE;
		n.gws += q->is_active && q->is_gws;
	}
	for (const struct model_kproc *k = gpu->m->kprocs; k; k = k->next)
		n.processes += k->pdds[gpu->index].queue_count > 0;
	return n;
}

bool model_gpu_oversubscribed(const struct model_gpu *gpu)
{
	const struct model_chip *chip = gpu->m->config.chip;
	struct gpu_counts n = model_gpu_count(gpu);

	return n.processes > chip->n_vmid || n.compute > chip->n_cp_queues || n.gws > 1;
}

/* ---- injected faults ---- */

int model_fault_set(struct model *m, const struct model_fault *fault)
{
	if (fault->kind == MODEL_FAULT_NONE) {
		for (int i = 0; i < MODEL_FAULT_KINDS; i++)
			m->faults[i].kind = MODEL_FAULT_NONE;
		m->vanish_at_call = 0;
		return 0;
	}
	if (fault->kind >= MODEL_FAULT_KINDS)
		return -EINVAL;
	if (fault->gpu_index >= m->config.n_gpus)
		return -ENODEV;
	if (fault->kind == MODEL_FAULT_VANISH)
		m->vanish_at_call = m->calls + MAX(fault->count, 1u);
	m->faults[fault->kind] = *fault;
	return 0;
}

void model_faults_before_call(struct model *m)
{
	m->calls++;
	if (!m->vanish_at_call || m->calls != m->vanish_at_call)
		return;
	m->vanish_at_call = 0;
	model_proc_exit(m, m->faults[MODEL_FAULT_VANISH].pid);
	m->faults[MODEL_FAULT_VANISH].kind = MODEL_FAULT_NONE;
}

static bool fault_is_dead(const struct model_gpu *gpu)
{
	const struct model_fault *dead = &gpu->m->faults[MODEL_FAULT_DEAD_SCHEDULER];

	return dead->kind && dead->gpu_index == gpu->index;
}

static struct model_queue *stuck_queue(const struct model_gpu *gpu)
{
	const struct model_fault *stuck = &gpu->m->faults[MODEL_FAULT_STUCK_QUEUE];
	struct model_proc *p = stuck->kind ? model_proc_find(gpu->m, stuck->pid) : NULL;
	struct model_queue *q = p && p->kproc ? model_queue_find(p->kproc, stuck->queue_id) : NULL;

	return q && q->gpu == gpu ? q : NULL;
}

static void fault_into_unmap(struct model_gpu *gpu, struct hw_unmap *op)
{
	struct model *m = gpu->m;
	const struct model_fault *slow = &m->faults[MODEL_FAULT_SLOW];
	struct model_queue *stuck = stuck_queue(gpu);

	if (slow->kind && slow->gpu_index == gpu->index)
		op->extra_ns = slow->ns;
	op->dead = fault_is_dead(gpu);
	if (stuck && hw_see(stuck->hw)->mapped)
		op->stuck = stuck->hw;
}

static struct model_queue *fault_take_resettable(struct model_gpu *gpu)
{
	struct model_fault *fault = &gpu->m->faults[MODEL_FAULT_STUCK_QUEUE];
	struct model_queue *q = fault->resettable ? stuck_queue(gpu) : NULL;

	if (q)
		fault->kind = MODEL_FAULT_NONE;
	return q;
}

bool model_fault_take(struct model *m, enum model_fault_kind kind)
{
	bool set = m->faults[kind].kind != MODEL_FAULT_NONE;

	m->faults[kind].kind = MODEL_FAULT_NONE;
	return set;
}

/* ---- cycles ---- */

/* kfd_hws_hang(): the scheduler is lost, a reset will follow. */
static void hang(struct model_gpu *gpu)
{
	for (struct model_kproc *k = gpu->m->kprocs; k; k = k->next)
		if (k->pdds[gpu->index].queue_count)
			k->pdds[gpu->index].has_reset_queue = true;
	gpu->reset_pending = true;
}

/* What the last save left in the descriptors. */
static void note_saved_pointers(struct model_gpu *gpu)
{
	for (struct model_queue *q = NULL; (q = model_next_on(gpu, q));) {
		if (hw_see(q->hw)->mapped)
			continue;
		q->saved_read = hw_see(q->hw)->read;
		q->saved_write = hw_see(q->hw)->write;
	}
}

/* 0 would never end and is forced to 1, but before the cut to 8 bits (amdgpu_amdkfd_gfx_v9.c). */
static uint32_t grace_register(uint32_t grace)
{
	if (grace == KFD_GRACE_KEEP_DEFAULT)
		return DEFAULT_GRACE_KCLK;
	return (grace ? grace : 1) & 0xff;
}

/* reset_queues_on_hws_hang(): the others may go on. */
static bool reset_queue(struct model_gpu *gpu)
{
	struct model_queue *q = fault_take_resettable(gpu);

	if (!q)
		return false;
	q->is_active = false;
	q->pdd->has_reset_queue = true;
	model_events_of_reset(gpu, q->owner);
	return true;
}

struct hw_unmap model_unmap_begin(struct model_gpu *gpu, uint32_t grace)
{
	struct hw_unmap op = {
		.grace_kclk = grace_register(grace),
		.timeout_ns = PREEMPTION_TIMEOUT_NS,
	};

	fault_into_unmap(gpu, &op);
	return op;
}

int model_unmap_end(struct model_gpu *gpu, const struct hw_unmap *op, int r)
{
	gpu->stats.unmaps += op->unmapped;
	gpu->stats.saved_bytes += op->saved_bytes;
	gpu->stats.save_ns += op->save_ns;
	note_saved_pointers(gpu);
	/* MES resets no queue alone. */
	if (r < 0 && (model_is_mes(gpu) || r != -EREMOTEIO || !reset_queue(gpu))) {
		hang(gpu);
		return -ETIME;
	}
	return 0;
}

int model_unmap_all_end(struct model_gpu *gpu, const struct hw_unmap *op, int r)
{
	gpu->stats.cycles++;
	gpu->stats.preemptions++;
	r = model_unmap_end(gpu, op, r);
	if (r < 0)
		return r;
	gpu->active_runlist = false;
	gpu->in_cycle = true;
	return 0;
}

int model_unmap_queues(struct model_gpu *gpu, uint32_t grace)
{
	struct hw_unmap op;
	int r;

	if (!gpu->active_runlist)
		return 0;
	if (gpu->reset_pending)
		return -EIO;
	op = model_unmap_begin(gpu, grace);
	gpu->m->ext.waits++;
	r = hw_unmap(gpu->hw, NULL, &op);
	gpu->m->ext.waits--;
	return model_unmap_all_end(gpu, &op, r);
}

int model_map_queues(struct model_gpu *gpu)
{
	_cleanup_free_ struct hw_queue **qs = NULL;
	uint32_t active = model_gpu_count(gpu).active;
	bool in_cycle = gpu->in_cycle;
	size_t n = 0;
	int r;

	gpu->in_cycle = false;
	if (!active || gpu->active_runlist)
		return 0;
	qs = calloc(active, sizeof(*qs));
	if (!qs)
		return -ENOMEM;
	for (struct model_queue *q = NULL; (q = model_next_on(gpu, q));)
		if (q->is_active)
			qs[n++] = q->hw;
	r = hw_map(gpu->hw, qs, n);
	if (r < 0)
		return r;
	if (!in_cycle)
		gpu->stats.cycles++;
	gpu->stats.maps += n;
	gpu->active_runlist = true;
	gpu->oversubscribed = model_gpu_oversubscribed(gpu);
	return 0;
}

int model_execute_queues(struct model_gpu *gpu, uint32_t grace)
{
	int r;

	if (gpu->reset_pending)
		return -EIO;
	if (model_is_mes(gpu))
		return model_mes_sync(gpu);
	r = model_unmap_queues(gpu, grace);
	if (r < 0)
		return r;
	return model_map_queues(gpu);
}

/* ---- MES ---- */

int model_mes_remove(struct model_queue *q)
{
	struct model_gpu *gpu = q->gpu;
	struct hw_unmap op;
	int r;

	if (!hw_see(q->hw)->mapped)
		return 0;
	if (gpu->reset_pending)
		return -EIO;
	op = model_unmap_begin(gpu, 0);
	gpu->m->ext.waits++;
	r = hw_unmap(gpu->hw, q->hw, &op);
	gpu->m->ext.waits--;
	return model_unmap_end(gpu, &op, r) < 0 ? -ETIMEDOUT : 0;
}

int model_mes_add(struct model_queue *q)
{
	struct model_gpu *gpu = q->gpu;
	int r;

	if (gpu->reset_pending)
		return -EIO;
	if (fault_is_dead(gpu)) {
		gpu->m->ext.waits++;
		model_advance(gpu->m, PREEMPTION_TIMEOUT_NS);
		gpu->m->ext.waits--;
		hang(gpu);
		return -ETIMEDOUT;
	}
	r = hw_add(q->hw);
	if (r == 0)
		gpu->stats.maps++;
	return r;
}

int model_mes_sync(struct model_gpu *gpu)
{
	for (struct model_queue *q = NULL; (q = model_next_on(gpu, q));) {
		int r;

		if (q->is_active == hw_see(q->hw)->mapped)
			continue;
		r = q->is_active ? model_mes_add(q) : model_mes_remove(q);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- eviction ---- */

static void set_evicted(struct model_kproc *k, const struct model_pdd *pdd, bool evicted)
{
	for (struct model_queue *q = k->queues; q; q = q->next) {
		if (q->pdd != pdd)
			continue;
		q->is_evicted = evicted;
		q->is_active = model_queue_wants_run(q);
	}
}

static int evict_on(struct model_kproc *k, struct model_pdd *pdd)
{
	if (pdd->evicted++ > 0)
		return 0;
	if (!pdd->vm_acquired)
		return 0;
	set_evicted(k, pdd, true);
	pdd->evicted_at_ns = model_now_ns(pdd->gpu->m);
	return model_execute_queues(pdd->gpu, KFD_GRACE_KEEP_DEFAULT);
}

static int restore_on(struct model_kproc *k, struct model_pdd *pdd)
{
	int r = 0;

	if (!pdd->evicted)
		return 0;
	if (pdd->evicted > 1) {
		pdd->evicted--;
		return 0;
	}
	if (pdd->vm_acquired) {
		set_evicted(k, pdd, false);
		r = model_execute_queues(pdd->gpu, KFD_GRACE_KEEP_DEFAULT);
		pdd->evicted_ns += model_now_ns(pdd->gpu->m) - pdd->evicted_at_ns;
	}
	pdd->evicted = 0;
	return r;
}

int model_evict_queues(struct model *m, struct model_kproc *k)
{
	uint32_t n_evicted = 0;
	int r = 0;

	for (uint32_t i = 0; i < m->config.n_gpus; i++) {
		r = evict_on(k, &k->pdds[i]);
		/* -EIO: a reset runs, the queues count as evicted nevertheless. */
		if (r < 0 && r != -EIO)
			break;
		n_evicted++;
	}
	if (r < 0 && r != -EIO)
		for (uint32_t i = 0; i < n_evicted; i++)
			restore_on(k, &k->pdds[i]);
	return r;
}

int model_restore_queues(struct model *m, struct model_kproc *k)
{
	int ret = 0;

	for (uint32_t i = 0; i < m->config.n_gpus; i++) {
		int r = restore_on(k, &k->pdds[i]);

		if (r < 0 && !ret)
			ret = r;
	}
	return ret;
}

/* ---- reset ---- */

/*
 * Every process is evicted on every GPU before the reset and stays so until it dies: the driver
 * cannot bring existing ones back (Linux 6.12 kfd_device.c, kgd2kfd_post_reset).
 */
static void reset_gpu(struct model_gpu *gpu)
{
	struct model *m = gpu->m;

	for (struct model_kproc *k = m->kprocs; k; k = k->next)
		model_evict_queues(m, k);
	model_events_of_reset(gpu, NULL);
	hw_reset(gpu->hw);
	gpu->active_runlist = false;
	gpu->reset_pending = false;
	gpu->stats.resets++;
	if (m->faults[MODEL_FAULT_DEAD_SCHEDULER].gpu_index == gpu->index)
		m->faults[MODEL_FAULT_DEAD_SCHEDULER].kind = MODEL_FAULT_NONE;
	m->faults[MODEL_FAULT_STUCK_QUEUE].kind = MODEL_FAULT_NONE;
}

void model_run_resets(struct model *m)
{
	bool again = true;

	/* Evicting for one reset may hang another GPU. */
	while (again) {
		again = false;
		for (uint32_t i = 0; i < m->config.n_gpus; i++) {
			if (!m->gpus[i].reset_pending)
				continue;
			reset_gpu(&m->gpus[i]);
			again = true;
		}
	}
}
