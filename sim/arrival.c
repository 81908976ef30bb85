/* SPDX-License-Identifier: MIT */
#include "sim/arrival.h"
#include "util/macros.h"

#define LN2_Q32 2977044472ull /* the natural logarithm of 2, times 2^32 */

/* The finaliser of splitmix64: each bit of the input turns half the bits of the output. */
static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

uint64_t sim_random(uint64_t seed, uint64_t stream, uint64_t n)
{
	static const uint64_t step = 0x9e3779b97f4a7c15ull;

	return mix(mix(mix(seed + step) + (stream + 1) * step) + (n + 1) * step);
}

/* -log2(u / 2^64), times 2^32: bit by bit, each squaring doubles the logarithm of what is left. */
static uint64_t negative_log2(uint64_t u)
{
	unsigned int zeros = __builtin_clzll(u);
	uint64_t x = u << zeros; /* x / 2^63 in [1, 2) */
	uint64_t fraction = 0;

	for (unsigned int i = 0; i < 32; i++) {
		unsigned __int128 square = (unsigned __int128)x * x >> 63;

		fraction <<= 1;
		if (square >> 64) {
			fraction |= 1;
			square >>= 1;
		}
		x = square;
	}
	return ((uint64_t)(zeros + 1) << 32) - fraction;
}

static uint64_t exponential(uint64_t mean_ns, uint64_t random)
{
	uint64_t ln = (unsigned __int128)negative_log2(random | 1) * LN2_Q32 >> 32;

	return ((unsigned __int128)mean_ns * ln >> 32) + 1;
}

static uint64_t jitter(const struct sim_arrivals *a, uint64_t n)
{
	return sim_random(a->key, 0, n) % (MIN(a->interval_ns / 4, SIM_TIMER_SLACK_NS) + 1);
}

static uint64_t due_ns(const struct sim_arrivals *a, uint64_t n)
{
	switch (a->kind) {
	case SIM_PERIODIC:
		return a->phase_ns + n * a->interval_ns + jitter(a, n);
	case SIM_POISSON:
		return (n ? a->next_ns : 0) + exponential(a->interval_ns, sim_random(a->key, 0, n));
	case SIM_TRACE:
		n *= a->trace_step;
		return n < a->n_trace ? a->trace_ns[n] : UINT64_MAX;
	case SIM_CLOSED:
		break;
	}
	return UINT64_MAX;
}

uint64_t sim_arrivals_interval_ns(const struct sim_job *job)
{
	if ((job->arrival != SIM_PERIODIC && job->arrival != SIM_POISSON) || !job->rate_mhz)
		return 0;
	return MAX(1000 * NSEC_PER_SEC / job->rate_mhz, SIM_HOST_TURN_NS);
}

void sim_arrivals_init(struct sim_arrivals *a, const struct sim_scenario *s,
		       const struct sim_job *job, uint64_t key,
		       const struct sim_place_in_line *line)
{
	size_t skip = MIN(line->nth, s->n_trace);

	*a = (struct sim_arrivals){
		.kind = job->arrival,
		.key = key,
		.interval_ns = sim_arrivals_interval_ns(job),
		.phase_ns = line->phase_ns,
		.trace_ns = s->n_trace ? s->trace_ns + skip : NULL,
		.n_trace = s->n_trace - skip,
		.trace_step = MAX(line->of, 1u),
	};
	if ((a->kind == SIM_PERIODIC || a->kind == SIM_POISSON) && !a->interval_ns)
		a->kind = SIM_CLOSED;
	a->next_ns = due_ns(a, 0);
}

/* Those in between are not looked at one by one: a rate may be far beyond what is taken. */
static void leap(struct sim_arrivals *a, uint64_t now_ns)
{
	uint64_t past = now_ns > a->phase_ns ? (now_ns - a->phase_ns) / a->interval_ns : 0;

	if (past > a->taken + 1) {
		a->taken = past - 1;
		a->next_ns = due_ns(a, a->taken);
	}
}

uint64_t sim_arrivals_take(struct sim_arrivals *a, uint64_t now_ns)
{
	uint64_t before = a->taken;

	if (a->kind == SIM_PERIODIC)
		leap(a, now_ns);
	while (a->next_ns <= now_ns) {
		a->taken++;
		a->next_ns = due_ns(a, a->taken);
	}
	return a->taken - before;
}
