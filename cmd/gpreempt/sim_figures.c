/* SPDX-License-Identifier: MIT */
/* What the results of a simulation come to, compared with each other. */
#include "cmd/gpreempt/sim.h"

static const struct {
	const char *key, *text;
} modes[] = {
	[SIM_ENGINE] = { "gpreempt", "gpreempt" },
	[SIM_ALONE] = { "alone", "online alone" },
	[SIM_NONE] = { "none", "no preemption" },
	[SIM_STREAM_PRIORITY] = { "stream_priority", "stream priority" },
	[SIM_SEQUENTIAL] = { "sequential", "sequential" },
};

const char *sim_mode_key(enum sim_mode mode)
{
	return modes[mode].key;
}

const char *sim_mode_text(enum sim_mode mode)
{
	return modes[mode].text;
}

static double percent(uint64_t a, uint64_t b)
{
	return b ? 100 * (double)a / (double)b : -1;
}

bool sim_has_over_alone(const struct sim_outcome *o, enum sim_mode mode)
{
	return o->of[mode].online.n && o->of[SIM_ALONE].online.mean_ns;
}

double sim_over_alone(const struct sim_outcome *o, enum sim_mode mode)
{
	return percent(o->of[mode].online.mean_ns, o->of[SIM_ALONE].online.mean_ns) - 100;
}

static uint64_t count_done(const struct sim_result *r)
{
	uint64_t n = 0;

	for (size_t i = 0; i < r->n_jobs; i++)
		n += r->jobs[i].done;
	return n;
}

double sim_goodput(const struct sim_outcome *o, enum sim_mode mode)
{
	return percent(o->of[mode].offline_work_ns, o->of[SIM_NONE].offline_work_ns);
}

double sim_throughput(const struct sim_outcome *o, enum sim_mode mode)
{
	return percent(count_done(&o->of[mode]), count_done(&o->of[SIM_NONE]));
}

double sim_work(const struct sim_outcome *o, enum sim_mode mode)
{
	return percent(o->of[mode].work_ns, o->of[SIM_NONE].work_ns);
}

double sim_slots_used(const struct sim_result *r)
{
	return percent(r->slot_used_ns, r->slot_ns);
}
