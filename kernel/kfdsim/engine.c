/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The thread that is the hardware of all GPUs. It looks at everything once per wake-up and lets
 * queues work for the ticks that went by. A doorbell is a write to memory and wakes nobody: who
 * waits for an order to be carried out does.
 */
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/wait.h>

#include "kernel/kfdsim/sim.h"

#define MAX_TICKS 64 /* after a long sleep not all is caught up with at once */
#define IDLE_NS (1 * (u64)NSEC_PER_MSEC)
#define MIN_LOOK_US 50u
#define MAX_LOOK_US 4000u /* however long a tick is */
#define MIN_SLEEP_NS (20 * (u64)NSEC_PER_USEC) /* others are to run, too */

static uint tick_us = 100;
module_param(tick_us, uint, 0644);
MODULE_PARM_DESC(tick_us, "unit of work, in microseconds");

static struct task_struct *thread;
static DECLARE_WAIT_QUEUE_HEAD(bell);
static bool rung;

void sim_engine_wake(void)
{
	WRITE_ONCE(rung, true);
	wake_up(&bell);
}

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
	if (q->n_flight || q->read == q->write || q->kind != SIM_AQL)
		sim_wait_over(q, gpu->ran_until_ns);
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

/*
 * Work first, up to now or to the end of a grace period; then orders, which come now. Returns when
 * to look again.
 */
static u64 step(struct sim_gpu *gpu)
{
	u64 look_ns = clamp(tick_us, MIN_LOOK_US, MAX_LOOK_US) * NSEC_PER_USEC;
	u64 now = ktime_get_ns(), next;

	mutex_lock(&gpu->lock);
	sim_count_slots(gpu, now);
	if (gpu->preempt.phase == SIM_PREEMPT_GRACE)
		run_queues(gpu, min(now, gpu->preempt.until_ns));
	sim_preempt_step(gpu, now);
	run_queues(gpu, now);
	sim_slots_step(gpu, now);
	sim_hiq_step(gpu, now);
	sim_preempt_step(gpu, ktime_get_ns());
	next = now + max(look_ns, IDLE_NS);
	if (gpu->n_queues || gpu->preempt.phase)
		next = now + look_ns;
	if (gpu->preempt.phase)
		next = min(next, gpu->preempt.until_ns);
	mutex_unlock(&gpu->lock);
	return next;
}

static int run(void *unused)
{
	while (!kthread_should_stop()) {
		u64 next = U64_MAX, now;
		unsigned int i;

		WRITE_ONCE(rung, false);
		for (i = 0; i < sim_n_gpus; i++)
			next = min(next, step(sim_gpus[i]));
		now = ktime_get_ns();
		next = next > now ? next - now : 0;
		wait_event_hrtimeout(bell, READ_ONCE(rung), max(next, MIN_SLEEP_NS));
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
