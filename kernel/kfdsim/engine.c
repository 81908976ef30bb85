/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The thread that is the hardware of all GPUs. Nothing wakes it: a doorbell is a write to memory.
 * It looks at everything once per wake-up and lets queues work for the ticks that went by.
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/module.h>

#include "kernel/kfdsim/sim.h"

#define MAX_TICKS 64 /* after a long sleep not all is caught up with at once */

static uint tick_us = 100;
module_param(tick_us, uint, 0644);
MODULE_PARM_DESC(tick_us, "unit of work, in microseconds");

static struct task_struct *thread;

/* High before low; among equals in turns. Only who may start is decided here. */
static void start_work(struct sim_gpu *gpu)
{
	unsigned int i, at;
	int priority;

	if (gpu->turn >= gpu->n_queues)
		gpu->turn = 0;
	for (priority = 2; priority >= 0; priority--) {
		for (i = 0, at = gpu->turn; i < gpu->n_queues; i++) {
			struct sim_queue *q = &gpu->queues[at];

			at = at + 1 < gpu->n_queues ? at + 1 : 0;
			if (q->resident && q->kind == SIM_AQL && q->pipe_priority == priority)
				sim_start_aql(gpu, q);
		}
	}
	gpu->turn++;
}

static void run_queue(struct sim_gpu *gpu, struct sim_queue *q, u64 ticks)
{
	if (!q->resident || q->frozen)
		return;
	sim_queue_see_doorbell(gpu, q);
	switch (q->kind) {
	case SIM_AQL:
		sim_run_aql(gpu, q, ticks);
		break;
	case SIM_PM4:
		sim_run_pm4(gpu, q, ticks);
		break;
	case SIM_SDMA:
		sim_run_sdma(gpu, q, ticks);
		break;
	}
}

/* One tick at a time: what one packet frees the next may take. */
static void run_queues(struct sim_gpu *gpu, u64 now)
{
	u64 tick_ns = max(tick_us, 1u) * NSEC_PER_USEC;
	u64 ticks, i;

	if (now < gpu->ran_until_ns)
		return;
	ticks = div64_u64(now - gpu->ran_until_ns, tick_ns);
	if (gpu->halted || now < gpu->stalled_until_ns) {
		gpu->ran_until_ns = now;
		return;
	}
	if (!ticks)
		return;
	gpu->ran_until_ns = ticks > MAX_TICKS ? now : gpu->ran_until_ns + ticks * tick_ns;
	for (ticks = min_t(u64, ticks, MAX_TICKS); ticks; ticks--) {
		start_work(gpu);
		for (i = 0; i < gpu->n_queues; i++)
			run_queue(gpu, &gpu->queues[i], 1);
	}
}

/* Work first, up to now or to the end of a grace period; then orders, which come now. */
static bool step(struct sim_gpu *gpu)
{
	u64 now = ktime_get_ns();
	bool busy;

	mutex_lock(&gpu->lock);
	if (gpu->preempt.phase == SIM_PREEMPT_GRACE)
		run_queues(gpu, min(now, gpu->preempt.until_ns));
	sim_preempt_step(gpu, now);
	run_queues(gpu, now);
	sim_slots_step(gpu, now);
	sim_hiq_step(gpu, now);
	sim_preempt_step(gpu, ktime_get_ns());
	busy = gpu->n_queues || gpu->preempt.phase;
	mutex_unlock(&gpu->lock);
	return busy;
}

static int run(void *unused)
{
	while (!kthread_should_stop()) {
		unsigned int i, us = clamp(tick_us, 50u, 1000u);
		bool busy = false;

		for (i = 0; i < sim_n_gpus; i++)
			busy |= step(sim_gpus[i]);
		if (!busy)
			us = 1000;
		usleep_range(us, us + us / 4);
	}
	return 0;
}

int sim_engine_start(void)
{
	thread = kthread_run(run, NULL, "kfdsim");
	return PTR_ERR_OR_ZERO(thread);
}

void sim_engine_stop(void)
{
	kthread_stop(thread);
}
