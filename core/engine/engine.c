/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#include "core/engine/internal.h"

#define US 1000ull
#define MS (1000 * US)
#define S (1000 * MS)

#define MAX_GPUS 1024u
#define MAX_JOBS (1u << JOB_INDEX_BITS)
#define MAX_QUEUES (1u << 22)
#define ALIGNMENT 8

const struct engine_config engine_config_default = {
	.policy = &gpol_priority,
	.params = {
		.linger_ns = 200 * US,
		.turn_ns = 100 * MS,
		.ceiling_ns = 10 * MS,
		.margin_ns = 1 * MS,
	},
	.costs = {
		.suspend_ns = 500 * US,
		.resume_ns = 400 * US,
		.cycle_ns = 100 * US,
		.disturbs_all = true,
		.counts_progress = true,
	},
	.interval_ns = 5 * MS,
	.critical_interval_ns = 1 * MS,
	.idle_interval_ns = 50 * MS,
	.hint_ns = 10 * MS,
	.hold_max_ns = 10 * S,
	.min_run_ns = 2 * MS,
	.cycles_per_s = 1000,
	.online_permille = 100,
	.offline_permille = 800,
	.low_water = 2,
	.slot_turn_ns = 100 * MS,
	.idle_queue_ns = 100 * MS,
};

/* Where the next array is, of @bytes behind the ones before. */
static void *take(uintptr_t *end, size_t bytes)
{
	uintptr_t begin = *end;

	*end += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	return (void *)begin;
}

/* At least twice as many places as queues, so that runs of full ones are short. */
static size_t table_places(const struct engine_limits *limits)
{
	size_t n = 2;

	while (n < 2 * (size_t)limits->queues)
		n *= 2;
	return n;
}

/* Puts @e at @at, and its arrays behind it. How many bytes that is. */
static size_t lay_out(struct engine *e, uintptr_t at, const struct engine_limits *l)
{
	uintptr_t end = at;

	take(&end, sizeof(*e));
	e->gpus = take(&end, l->gpus * sizeof(*e->gpus));
	e->jobs = take(&end, l->jobs * sizeof(*e->jobs));
	e->queues = take(&end, l->queues * sizeof(*e->queues));
	e->table = take(&end, table_places(l) * sizeof(*e->table));
	e->order = take(&end, l->queues * sizeof(*e->order));
	e->input = take(&end, l->jobs * sizeof(*e->input));
	e->verdicts = take(&end, l->jobs * sizeof(*e->verdicts));
	e->touched = take(&end, l->jobs * sizeof(*e->touched));
	return end - at;
}

static bool are_sane(const struct engine_limits *l)
{
	return l->gpus <= MAX_GPUS && l->jobs <= MAX_JOBS && l->queues <= MAX_QUEUES;
}

size_t engine_bytes(const struct engine_limits *limits)
{
	struct engine e;

	return are_sane(limits) ? lay_out(&e, 0, limits) : 0;
}

struct engine *engine_init(void *memory, const struct engine_limits *limits,
			   const struct engine_config *config)
{
	struct engine *e = memory;

	if (!are_sane(limits))
		return NULL;
	ENGINE_ASSERT(memory && (uintptr_t)memory % ALIGNMENT == 0);
	__builtin_memset(memory, 0, engine_bytes(limits));
	lay_out(e, (uintptr_t)memory, limits);
	e->limits = *limits;
	e->table_mask = (uint32_t)table_places(limits) - 1;
	engine_queues_init(e);
	engine_configure(e, config);
	return e;
}

void engine_configure(struct engine *e, const struct engine_config *config)
{
	const struct engine_config old = e->config;
	struct engine_config *c = &e->config;

	ENGINE_ASSERT(config->policy && config->interval_ns && config->critical_interval_ns &&
		      config->idle_interval_ns && config->hold_max_ns);
	*c = *config;
	c->cycles_per_s = (uint32_t)gpol_min(c->cycles_per_s, 1000000);
	c->online_permille = (uint32_t)gpol_min(c->online_permille, 1000);
	c->offline_permille = (uint32_t)gpol_min(c->offline_permille, 1000);
	e->cadence_ns = 0;
	for_each_gpu(e, g) {
		g->stale = true;
		if (old.policy != c->policy) /* what one noted is for itself alone */
			__builtin_memset(g->policy_state, 0, sizeof(g->policy_state));
		if (old.costs.suspend_ns != c->costs.suspend_ns)
			g->learnt.suspend_ns = c->costs.suspend_ns;
		if (old.costs.resume_ns != c->costs.resume_ns)
			g->learnt.resume_ns = c->costs.resume_ns;
		for_each_job_on(e, g, j)
			engine_settle(e, j);
	}
}
