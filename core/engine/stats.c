/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#include "core/engine/internal.h"

int engine_job_stats(const struct engine *e, uint32_t job, struct engine_job_stats *ret)
{
	const struct engine_job *j = engine_find_job(e, job);
	uint64_t passed_ns, waits_ns;
	bool waits;

	if (!j)
		return -ENOENT;
	waits = j->has_work && j->place != PLACE_ON;
	passed_ns = gpol_elapsed(e->now_ns, j->accounted_ns);
	waits_ns = waits ? gpol_elapsed(e->now_ns, j->wait_since_ns) : 0;
	if (is_online(j) && j->has_work)
		waits_ns = engine_shared_ns(e, j);
	*ret = (struct engine_job_stats){
		.held = is_held(j),
		.has_work = j->has_work,
		.waits = waits,
		.preempted = j->preempted,
		.ran_ns = j->ran_ns + (j->has_work && !waits ? passed_ns : 0),
		.longest_wait_ns = gpol_max(j->longest_wait_ns, waits_ns),
		.made_room = j->made_room,
		.detections = j->detections,
		.detect_ns = j->detect_ns,
	};
	return 0;
}

int engine_gpu_stats(const struct engine *e, uint32_t gpu, struct engine_gpu_stats *ret)
{
	const struct engine_gpu *g = engine_find_gpu(e, gpu);
	uint32_t online = 0, offline = 0;

	if (!g)
		return -ENOENT;
	for_each_job_on(e, g, j) {
		online += is_online(j) ? j->queues : 0;
		offline += !is_online(j) && j->place != PLACE_OFF ? j->queues : 0;
	}
	*ret = (struct engine_gpu_stats){
		.slots_online = online,
		.slots_offline = offline,
		.slots_reserved = g->reserved,
		.cycles = g->cycles,
		.denied_by_budget = g->denied_by_budget,
		.denied_by_cost = g->denied_by_cost,
		.suspend_ns = g->learnt.suspend_ns,
		.resume_ns = g->learnt.resume_ns,
		.tripped = g->tripped,
	};
	return 0;
}
