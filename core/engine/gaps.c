/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Short gaps in online work. To let the others go for one gives them what is left of it when they
 * have returned, and costs the online work that comes next the time to take them off again. How
 * long gaps of a GPU are is remembered, by powers of two; at the end of online work room is kept
 * for as long as pays on average, and never for longer than the gaps that are not worth it last.
 */
#include "core/engine/internal.h"

#define SHORTEST 16 /* log2 of the nanoseconds that end the first class of gaps, less one */
#define KNOWN 64 /* gaps; with more of them all count half */
#define LONG_NS (1ull << 40) /* a longer gap counts as this */
#define ENOUGH 8 /* of fewer nothing is concluded */

static uint32_t class_of(uint64_t gap_ns)
{
	uint32_t class = 0;

	while (class < GAPS - 1 && gap_ns >> (SHORTEST + 1 + class))
		class ++;
	return class;
}

static void note(struct engine_gaps *gaps, uint64_t gap_ns)
{
	uint32_t class = class_of(gap_ns);

	if (gaps->all == KNOWN) {
		gaps->all = 0;
		for (uint32_t i = 0; i < GAPS; i++)
			gaps->all += gaps->n[i] /= 2;
	}
	gaps->all++;
	gaps->n[class]++;
	engine_draw_near(&gaps->mean_ns[class], gap_ns, gaps->n[class]);
}

/* What gaps gain in all where the others are let go after @wait_ns. */
static int64_t gain(const struct engine_gpu *g, uint64_t wait_ns)
{
	const struct engine_gaps *gaps = &g->gaps;
	uint64_t lost_ns = gpol_after(wait_ns, g->learnt.resume_ns);
	int64_t sum = 0;

	for (uint32_t i = 0; i < GAPS; i++) {
		uint64_t ns = gpol_elapsed(gaps->mean_ns[i], lost_ns);

		if (gaps->mean_ns[i] > wait_ns)
			sum += ((int64_t)ns - (int64_t)g->learnt.suspend_ns) * gaps->n[i];
	}
	return sum;
}

static uint64_t best_wait(const struct engine *e, const struct engine_gpu *g)
{
	uint64_t best_ns = 0;
	int64_t most = gain(g, e->config.params.linger_ns);

	if (g->gaps.all < ENOUGH)
		return 0;
	for (uint32_t i = 0; i < GAPS - 1; i++) {
		uint64_t wait_ns = 1ull << (SHORTEST + 1 + i);

		if (g->gaps.n[i] && wait_ns > e->config.params.linger_ns &&
		    gain(g, wait_ns) > most) {
			best_ns = wait_ns;
			most = gain(g, wait_ns);
		}
	}
	return best_ns;
}

void engine_note_need(const struct engine *e, struct engine_gpu *g, const struct engine_job *j)
{
	struct engine_gaps *gaps = &g->gaps;

	if (j) {
		if (!gaps->needed && gaps->ended_ns)
			note(gaps, gpol_min(gpol_elapsed(e->now_ns, gaps->ended_ns), LONG_NS));
		gaps->needed = true;
		gaps->job = j->id;
	} else if (gaps->needed) {
		gaps->needed = false;
		gaps->ended_ns = e->now_ns;
		gaps->kept_until_ns = gpol_after(e->now_ns, best_wait(e, g));
	}
}

bool engine_is_kept_for(const struct engine *e, const struct engine_job *j)
{
	const struct engine_gaps *gaps = &j->gpu->gaps;

	return is_online(j) && !gaps->needed && gaps->job == j->id &&
	       e->now_ns < gaps->kept_until_ns;
}

uint64_t engine_keeping_changes(const struct engine *e, const struct engine_gpu *g)
{
	return !g->gaps.needed && e->now_ns < g->gaps.kept_until_ns ? g->gaps.kept_until_ns :
								      GPOL_NEVER;
}
