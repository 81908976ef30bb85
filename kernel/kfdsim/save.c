/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Context save and restore.
 *
 * Where things go is hardware's and the driver's affair, and is kept: an entry per wave on the
 * control stack, downwards (gfx9: behind the descriptor, from where amdkfd copies it; later: in
 * the process's save area), the waves' state in the save area, upwards, and both ends in the
 * descriptor of each XCC. What is written there is ours: enough to go on, and to notice when it
 * comes back changed.
 */
#include "kernel/kfdsim/sim.h"

#define WAVE_MAGIC 0x6b66647361766564ull

struct wave_record {
	u64 magic;
	u64 index; /* of the packet */
	u64 left;
	u32 waves; /* of the dispatch, on all XCCs */
	u32 share; /* of it, on this XCC */
	u32 number; /* of this one in that share */
	u32 doorbell;
	struct aql_dispatch packet;
};
static_assert(sizeof(struct wave_record) <= SIM_WAVE_BYTES);

struct area {
	struct sim_gpu *gpu;
	struct sim_queue *q;
	struct v9_mqd *mqd; /* of this XCC */
	u64 mqd_gart;
	u64 base;
	u32 entry_bytes;
};

u32 sim_waves_on(const struct v9_mqd *mqd, u32 waves, unsigned int n_xcc)
{
	if (n_xcc == 1)
		return waves;
	return waves / n_xcc + (mqd->compute_current_logic_xcc_id < waves % n_xcc);
}

static bool open_area(struct sim_gpu *gpu, struct sim_queue *q, unsigned int xcc, struct area *ret)
{
	struct v9_mqd *m = sim_queue_mqd(gpu, q, xcc);

	if (!m || !m->cp_hqd_cntl_stack_size)
		return false;
	*ret = (struct area){
		.gpu = gpu,
		.q = q,
		.mqd = m,
		.mqd_gart = q->mqd + (gpu->n_xcc > 1 ? (u64)m->cp_mqd_stride_size * xcc : 0),
		.base = sim_pair(m->cp_hqd_ctx_save_base_addr_hi, m->cp_hqd_ctx_save_base_addr_lo),
		.entry_bytes = sim_is_mes(gpu) ? 12 : 8,
	};
	return true;
}

static struct wave_record *wave_at(const struct area *a, u32 n)
{
	u64 offset = a->mqd->cp_hqd_cntl_stack_size + (u64)n * SIM_WAVE_BYTES;

	if (offset + SIM_WAVE_BYTES > a->mqd->cp_hqd_ctx_save_size)
		return NULL;
	return sim_user(a->gpu, a->q->pasid, a->base + offset, sizeof(struct wave_record));
}

static u64 *entry_at(const struct area *a, u32 n)
{
	u32 offset = a->mqd->cp_hqd_cntl_stack_size - (n + 1) * a->entry_bytes;

	if ((n + 1) * a->entry_bytes > a->mqd->cp_hqd_cntl_stack_size)
		return NULL;
	if (sim_is_mes(a->gpu))
		return sim_user(a->gpu, a->q->pasid, a->base + offset, sizeof(u64));
	return sim_gart(a->gpu, a->mqd_gart + PAGE_SIZE + offset, sizeof(u64));
}

static u64 entry_of(const struct sim_flight *f, u32 number)
{
	return f->index << 32 | (number + 1);
}

/* Returns how many of its waves found no memory. */
static u32 save_flight(const struct area *a, const struct sim_flight *f, u32 *at)
{
	u32 share = sim_waves_on(a->mqd, f->waves, a->gpu->n_xcc), i;

	for (i = 0; i < share; i++) {
		struct wave_record *w = wave_at(a, *at);
		u64 *entry = entry_at(a, *at);
		u64 value = entry_of(f, i);

		if (!w || !entry)
			return share - i;
		*w = (struct wave_record){
			.magic = WAVE_MAGIC,
			.index = f->index,
			.left = f->left,
			.waves = f->waves,
			.share = share,
			.number = i,
			.doorbell = a->q->doorbell,
			.packet = f->packet,
		};
		memcpy(entry, &value, sizeof(value)); /* 12-byte entries are not aligned */
		(*at)++;
	}
	return 0;
}

void sim_save(struct sim_gpu *gpu, struct sim_queue *q)
{
	struct sim_proc_counters *proc = sim_count_proc(gpu, q->pasid);
	u32 waves = 0, lost = 0;
	unsigned int x, i;

	for (x = 0; x < gpu->n_xcc; x++) {
		struct area a;
		u32 at = 0;

		if (!open_area(gpu, q, x, &a))
			continue;
		for (i = 0; i < q->n_flight; i++)
			lost += save_flight(&a, &q->flight[i], &at);
		a.mqd->cp_hqd_cntl_stack_offset -= at * a.entry_bytes;
		a.mqd->cp_hqd_wg_state_offset += at * SIM_WAVE_BYTES;
		waves += at;
	}
	gpu->count.damaged += lost;
	gpu->count.saves++;
	gpu->count.saved_waves += waves;
	gpu->count.saved_bytes += (u64)waves * SIM_WAVE_BYTES;
	proc->saves++;
	proc->saved_bytes += (u64)waves * SIM_WAVE_BYTES;
	sim_log(gpu, SIM_EV_SAVE, q->pasid, q->doorbell, waves, q->flight[0].left);
}

static struct sim_flight *flight_of(struct sim_queue *q, const struct wave_record *w)
{
	struct sim_flight *f;

	for (f = q->flight; f < q->flight + q->n_flight; f++) {
		if (f->index == w->index)
			return f->left == w->left ? f : NULL;
	}
	if (q->n_flight == SIM_MAX_FLIGHT)
		return NULL;
	q->n_flight++;
	*f = (struct sim_flight){ .index = w->index, .left = w->left, .packet = w->packet };
	return f;
}

static bool restore_wave(const struct area *a, u32 n)
{
	const struct wave_record *w = wave_at(a, n);
	const u64 *entry = entry_at(a, n);
	struct sim_flight *f;
	u64 value;

	if (!w || !entry || w->magic != WAVE_MAGIC || w->doorbell != a->q->doorbell ||
	    w->index >= a->q->read || !w->left)
		return false;
	f = flight_of(a->q, w);
	if (!f)
		return false;
	memcpy(&value, entry, sizeof(value));
	f->waves++;
	return value == entry_of(f, w->number);
}

void sim_restore(struct sim_gpu *gpu, struct sim_queue *q)
{
	u32 waves = 0, n, i;
	unsigned int x;

	memset(q->flight, 0, sizeof(q->flight));
	q->n_flight = 0;
	for (x = 0; x < gpu->n_xcc; x++) {
		struct area a;

		if (!open_area(gpu, q, x, &a))
			continue;
		n = (a.mqd->cp_hqd_wg_state_offset - a.mqd->cp_hqd_cntl_stack_size) /
		    SIM_WAVE_BYTES;
		for (i = 0; i < n; i++) {
			if (!restore_wave(&a, i))
				gpu->count.damaged++;
		}
		waves += n;
	}
	if (!waves)
		return;
	for (i = 0; i < q->n_flight; i++)
		gpu->waves += q->flight[i].waves;
	gpu->count.restores++;
	sim_log(gpu, SIM_EV_RESTORE, q->pasid, q->doorbell, waves, q->flight[0].left);
}
