/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Taking queues off hardware: waves get the grace period to end in, the rest is saved, and all
 * that takes time, the more the more is resident.
 *
 * The grace period is CP_IQ_WAIT_TIME2.SCH_WAVE, in 1000 GPU clocks; 0 never ends (Linux 6.12
 * amdgpu_amdkfd_gfx_v9.c). A compute queue that does not yield is given up after a while: the
 * firmware leaves its doorbell in the HIQ's descriptor and carries on (kfd_device_queue_manager.c).
 */
#include <gc/gc_9_0_sh_mask.h>

#include "kernel/kfdsim/sim.h"

#define CLOCK_MHZ 2100

u64 sim_save_ns(const struct sim_gpu *gpu, u64 waves)
{
	u64 kib = DIV_ROUND_UP(waves, gpu->n_xcc) * (SIM_WAVE_BYTES / 1024);

	return gpu->knobs.preempt_us * NSEC_PER_USEC + kib * gpu->knobs.save_ns_per_kib;
}

static bool selected(const struct sim_preempt *p, const struct sim_queue *q)
{
	unsigned int i;

	if (p->select == SIM_ALL)
		return true;
	if (p->select == SIM_BY_PASID)
		return q->pasid == p->pasid;
	for (i = 0; i < p->n_doorbells; i++) {
		if (q->doorbell == p->doorbells[i])
			return true;
	}
	return false;
}

static bool is_stuck(const struct sim_gpu *gpu, const struct sim_queue *q)
{
	return q->resident && q->kind != SIM_SDMA && q->doorbell == gpu->knobs.stuck_doorbell;
}

void sim_preempt_begin(struct sim_gpu *gpu, const struct sim_preempt *what, u64 now)
{
	u32 grace = (gpu->iq_wait & CP_IQ_WAIT_TIME2__SCH_WAVE_MASK) >>
		    CP_IQ_WAIT_TIME2__SCH_WAVE__SHIFT;
	struct sim_preempt *p = &gpu->preempt;
	unsigned int i;

	*p = *what;
	p->began_ns = now;
	p->until_ns = grace ? now + grace * NSEC_PER_MSEC / CLOCK_MHZ : U64_MAX;
	if (p->reset)
		p->until_ns = now;
	p->phase = SIM_PREEMPT_GRACE;
	for (i = 0; i < gpu->n_queues; i++)
		gpu->queues[i].leaving = selected(p, &gpu->queues[i]);
	sim_log(gpu, SIM_EV_UNMAP, p->pasid, p->doorbells[0], p->select, p->reset);
}

static bool anything_runs(const struct sim_gpu *gpu)
{
	unsigned int i;

	for (i = 0; i < gpu->n_queues; i++) {
		if (gpu->queues[i].leaving && gpu->queues[i].n_flight)
			return true;
	}
	return false;
}

static void begin_save(struct sim_gpu *gpu, u64 now)
{
	bool stuck = false;
	u64 waves = 0;
	unsigned int i, f;

	for (i = 0; i < gpu->n_queues; i++) {
		struct sim_queue *q = &gpu->queues[i];

		if (!q->leaving)
			continue;
		if (is_stuck(gpu, q)) {
			stuck = true;
			continue;
		}
		q->frozen = true;
		for (f = 0; f < q->n_flight; f++)
			waves += q->flight[f].waves;
	}
	gpu->preempt.until_ns = now + sim_save_ns(gpu, gpu->preempt.reset ? 0 : waves);
	if (stuck)
		gpu->preempt.until_ns += gpu->knobs.stuck_ms * (u64)NSEC_PER_MSEC;
	gpu->preempt.phase = SIM_PREEMPT_SAVE;
}

static void give_up(struct sim_gpu *gpu, struct sim_queue *q)
{
	struct v9_mqd *hiq;
	unsigned int x;

	q->hopeless = true;
	q->leaving = false;
	for (x = 0; x < gpu->n_xcc; x++) {
		hiq = sim_hiq_mqd(gpu, x);
		if (hiq)
			hiq->queue_doorbell_id0 = q->doorbell;
	}
	sim_log(gpu, SIM_EV_STUCK, q->pasid, q->doorbell, q->slot, 0);
}

static void finish(struct sim_gpu *gpu, u64 now)
{
	u64 saved = gpu->count.saved_bytes;
	unsigned int i = 0;

	while (i < gpu->n_queues) {
		struct sim_queue *q = &gpu->queues[i];

		if (!q->leaving) {
			i++;
		} else if (is_stuck(gpu, q)) {
			give_up(gpu, q);
			i++;
		} else {
			sim_count_proc(gpu, q->pasid)->unmaps++;
			if (q->resident)
				sim_queue_off_hardware(gpu, q, gpu->preempt.reset);
			sim_queue_remove(gpu, q);
		}
	}
	gpu->count.cycles++;
	sim_log(gpu, SIM_EV_UNMAPPED, 0, 0, now - gpu->preempt.began_ns,
		gpu->count.saved_bytes - saved);
	WRITE_ONCE(gpu->preempt.phase, SIM_PREEMPT_NONE);
	wake_up_all(&gpu->changed);
}

void sim_preempt_step(struct sim_gpu *gpu, u64 now)
{
	struct sim_preempt *p = &gpu->preempt;

	if (gpu->knobs.dead)
		return;
	if (p->phase == SIM_PREEMPT_GRACE && (now >= p->until_ns || !anything_runs(gpu)))
		begin_save(gpu, now);
	if (p->phase == SIM_PREEMPT_SAVE && now >= p->until_ns)
		finish(gpu, now);
}
