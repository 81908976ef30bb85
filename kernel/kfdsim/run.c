/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * AQL queues.
 *
 * A dispatch takes grid_x ticks of work and one wave for each 64 of grid_y * grid_z. It is consumed
 * when it is launched: the read pointer moves and the header turns invalid while it still runs.
 * Without the barrier bit a queue's dispatches overlap. A dispatch for which the compute units have
 * no room waits; one that is larger than the GPU takes all of it. Waves that run are never
 * displaced by others, of whatever priority.
 */
#include <linux/atomic.h>

#include "kernel/kfdsim/sim.h"

#define MAX_PACKETS_AT_ONCE 64
#define WAVE_ITEMS 64
#define SIGNAL_MAILBOX 2 /* amd_signal_t, in 64-bit words */
#define SIGNAL_EVENT 3

static u32 room(const struct sim_gpu *gpu)
{
	return gpu->cu_per_xcc * gpu->n_xcc * SIM_CU_WAVES;
}

static u32 waves_of(const struct sim_gpu *gpu, const struct aql_dispatch *p)
{
	u64 items = (u64)max(p->grid_y, 1u) * max(p->grid_z, 1u);

	return clamp_t(u64, DIV_ROUND_UP_ULL(items, WAVE_ITEMS), 1, room(gpu));
}

static void signal_done(struct sim_gpu *gpu, struct sim_queue *q, u64 signal)
{
	u64 *s = sim_user(gpu, q->pasid, signal, AQL_SIGNAL_BYTES), *mailbox;

	gpu->count.packets++;
	sim_count_proc(gpu, q->pasid)->packets++;
	if (!signal || !s)
		return;
	atomic64_dec((atomic64_t *)((void *)s + AQL_SIGNAL_VALUE_OFFSET));
	if (!s[SIGNAL_MAILBOX])
		return;
	mailbox = sim_user(gpu, q->pasid, s[SIGNAL_MAILBOX], sizeof(*mailbox));
	if (!mailbox)
		return;
	WRITE_ONCE(*mailbox, (u32)s[SIGNAL_EVENT]);
	sim_irq_end_of_pipe(gpu, q, s[SIGNAL_EVENT]);
}

static void consume(struct sim_gpu *gpu, struct sim_queue *q, struct aql_dispatch *p)
{
	WRITE_ONCE(p->header, AQL_INVALID);
	q->read++;
	sim_queue_report(gpu, q);
}

static bool launch(struct sim_gpu *gpu, struct sim_queue *q, struct aql_dispatch *p)
{
	u32 waves = waves_of(gpu, p);
	struct sim_flight *f;

	if (q->n_flight == SIM_MAX_FLIGHT || (gpu->waves && gpu->waves + waves > room(gpu)))
		return false;
	f = &q->flight[q->n_flight++];
	*f = (struct sim_flight){
		.index = q->read,
		.left = max(p->grid_x, 1u),
		.waves = waves,
		.packet = *p,
	};
	gpu->waves += waves;
	if (gpu->knobs.log_packets)
		sim_log(gpu, SIM_EV_START, q->pasid, q->doorbell, f->index, f->left);
	consume(gpu, q, p);
	return true;
}

/* Signals it cannot see count as not met, as a fault would stop the queue there. */
static bool is_met(struct sim_gpu *gpu, struct sim_queue *q, u64 signal)
{
	void *s = sim_user(gpu, q->pasid, signal, AQL_SIGNAL_BYTES);

	return s && READ_ONCE(*(s64 *)(s + AQL_SIGNAL_VALUE_OFFSET)) == 0;
}

static bool deps_met(struct sim_gpu *gpu, struct sim_queue *q, const struct aql_barrier *p,
		     bool any)
{
	bool used = false;
	unsigned int i;

	for (i = 0; i < AQL_MAX_DEPS; i++) {
		if (!p->dep_signal[i])
			continue;
		used = true;
		if (is_met(gpu, q, p->dep_signal[i]) == any)
			return any;
	}
	return !used || !any;
}

/* True: the packet is behind us. */
static bool one_packet(struct sim_gpu *gpu, struct sim_queue *q, struct aql_dispatch *p)
{
	u16 header = READ_ONCE(p->header);
	u16 type = header & AQL_TYPE_MASK;
	u64 signal;

	if (type == AQL_INVALID)
		return false;
	smp_rmb(); /* the header is published last */
	if ((header & AQL_BARRIER_BIT) && q->n_flight)
		return false;
	if (type == AQL_KERNEL_DISPATCH)
		return launch(gpu, q, p);
	if ((type == AQL_BARRIER_AND || type == AQL_BARRIER_OR) &&
	    !deps_met(gpu, q, (const struct aql_barrier *)p, type == AQL_BARRIER_OR))
		return false;
	if (type > AQL_BARRIER_OR) {
		gpu->count.bad++;
		sim_log(gpu, SIM_EV_BAD, q->pasid, q->doorbell, header, q->read);
	}
	signal = p->completion_signal;
	consume(gpu, q, p);
	signal_done(gpu, q, signal);
	return true;
}

void sim_start_aql(struct sim_gpu *gpu, struct sim_queue *q)
{
	unsigned int n;
	u32 dwords = 0;
	u64 ring;

	if (q->leaving || q->frozen || q->hopeless || q->read == q->write)
		return;
	ring = sim_queue_ring(gpu, q, &dwords);
	for (n = 0; ring && n < MAX_PACKETS_AT_ONCE && q->read != q->write; n++) {
		u64 slot = q->read % (dwords * 4 / AQL_PACKET_BYTES);
		struct aql_dispatch *p =
			sim_user(gpu, q->pasid, ring + slot * AQL_PACKET_BYTES, AQL_PACKET_BYTES);

		if (!p || !one_packet(gpu, q, p))
			return;
	}
}

static void retire(struct sim_gpu *gpu, struct sim_queue *q, unsigned int at)
{
	struct sim_flight f = q->flight[at];

	q->n_flight--;
	memmove(&q->flight[at], &q->flight[at + 1], (q->n_flight - at) * sizeof(f));
	gpu->waves -= f.waves;
	if (gpu->knobs.log_packets)
		sim_log(gpu, SIM_EV_DONE, q->pasid, q->doorbell, f.index, 0);
	sim_shader(gpu, q->pasid, &f.packet);
	signal_done(gpu, q, f.packet.completion_signal);
}

void sim_run_aql(struct sim_gpu *gpu, struct sim_queue *q, u64 ticks)
{
	unsigned int i = 0;

	while (i < q->n_flight) {
		struct sim_flight *f = &q->flight[i];

		f->left -= min(f->left, ticks);
		if (f->left)
			i++;
		else
			retire(gpu, q, i);
	}
}
