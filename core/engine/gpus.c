/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#include "core/engine/internal.h"

#define LONGEST_ACT_NS (10ull * 1000 * 1000 * 1000) /* a longer one counts as this */
#define OUTLIER 4 /* a figure that is so many times what was learnt counts as that */
#define LEARNING 8 /* one part in so many of a new figure counts */

struct engine_gpu *engine_find_gpu(const struct engine *e, uint32_t gpu)
{
	for_each_gpu(e, g) {
		if (g->id == gpu)
			return g;
	}
	return NULL;
}

int engine_add_gpu(struct engine *e, uint32_t gpu, uint32_t slots)
{
	struct engine_gpu *g = &e->gpus[e->n_gpus];

	if (engine_find_gpu(e, gpu))
		return -EEXIST;
	if (e->n_gpus == e->limits.gpus)
		return -ENOSPC;
	*g = (struct engine_gpu){
		.id = gpu,
		.slots = slots,
		.stale = true,
		.tokens = INT64_MAX, /* filled up, not over, by engine_budget_fill */
		.tokens_ns = e->now_ns,
		.learnt = { e->config.costs.suspend_ns, e->config.costs.resume_ns },
	};
	e->n_gpus++;
	e->cadence_ns = 0;
	return 0;
}

void engine_trip(struct engine *e, struct engine_gpu *g)
{
	g->tripped = true;
	g->stale = true;
	e->cadence_ns = 0;
}

int engine_rearm(struct engine *e, uint32_t gpu)
{
	struct engine_gpu *g = engine_find_gpu(e, gpu);

	if (!g)
		return -ENOENT;
	g->tripped = false;
	g->stale = true;
	e->cadence_ns = 0;
	return 0;
}

/*
 * A bucket of tokens that holds a quarter of the budget and is filled with the rest of it in a
 * second: so no second sees more suspends than the budget says, wherever it begins. A suspend asks
 * for two, since a resume will follow it.
 */
static int64_t bucket(const struct engine *e)
{
	return (int64_t)gpol_max(e->config.cycles_per_s / 4, 2) * TOKEN;
}

static int64_t tokens_per_s(const struct engine *e)
{
	uint64_t kept = (uint64_t)(bucket(e) / TOKEN);

	return (int64_t)gpol_max(gpol_elapsed(e->config.cycles_per_s, kept), 1);
}

void engine_budget_fill(const struct engine *e, struct engine_gpu *g)
{
	uint64_t elapsed_ns = gpol_min(gpol_elapsed(e->now_ns, g->tokens_ns), 1ull << 32);
	int64_t room = bucket(e) - g->tokens;
	int64_t more = (int64_t)gpol_min(elapsed_ns * (uint64_t)tokens_per_s(e), INT64_MAX);

	g->tokens = room <= more ? bucket(e) : g->tokens + more;
	g->tokens_ns = e->now_ns;
}

static int64_t needed(const struct engine *e, int64_t cycles, uint32_t spare_permille)
{
	int64_t all = bucket(e);
	int64_t need = cycles * TOKEN + all / 1000 * spare_permille;

	return need < all ? need : all;
}

uint64_t engine_budget_again(const struct engine *e, const struct engine_gpu *g, int64_t cycles,
			     uint32_t spare_permille)
{
	int64_t lacking = needed(e, cycles, spare_permille) - g->tokens, rate = tokens_per_s(e);

	if (!e->config.cycles_per_s || lacking <= 0)
		return GPOL_NEVER;
	return gpol_after(e->now_ns, (uint64_t)((lacking + rate - 1) / rate));
}

void engine_pay(struct engine *e, struct engine_gpu *g, enum engine_verb verb)
{
	if (g->batch[verb] == e->step)
		return;
	g->batch[verb] = e->step;
	g->cycles++;
	/* Resumes that fail for an hour do not cost the hour after it. */
	if (e->config.cycles_per_s && g->tokens > -bucket(e))
		g->tokens -= TOKEN;
}

void engine_draw_near(uint64_t *mean_ns, uint64_t ns, uint64_t part)
{
	if (ns > *mean_ns)
		*mean_ns += (ns - *mean_ns) / part;
	else
		*mean_ns -= (*mean_ns - ns) / part;
}

/* A job may make one act last; and where acts seem dear, none is made that would tell better. */
void engine_learn(uint64_t *ns, uint64_t sample_ns)
{
	uint64_t most_ns = *ns ? OUTLIER * *ns : LONGEST_ACT_NS;
	uint64_t sample = gpol_min(sample_ns, gpol_min(most_ns, LONGEST_ACT_NS));

	if (sample > *ns)
		*ns += (sample - *ns + LEARNING - 1) / LEARNING;
	else
		*ns -= (*ns - sample) / LEARNING;
}
