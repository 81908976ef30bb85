/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>

#include "sim/stats.h"

#include "util/array.h"

int sim_samples_add(struct sim_samples *s, uint64_t ns)
{
	if (array_reserve(&s->ns, s->n + 1, &s->cap, sizeof(*s->ns)) < 0)
		return -ENOMEM;
	s->ns[s->n++] = ns;
	return 0;
}

void sim_samples_done(struct sim_samples *s)
{
	free(s->ns);
	*s = (struct sim_samples){ 0 };
}

static uint64_t at_permille(const struct sim_samples *s, uint64_t permille)
{
	return s->ns[curve_rank(s->n, (uint32_t)permille)];
}

static uint64_t mean(const struct sim_samples *s)
{
	unsigned __int128 sum = 0;

	for (size_t i = 0; i < s->n; i++)
		sum += s->ns[i];
	return (sum + s->n / 2) / s->n;
}

struct sim_quantiles sim_samples_quantiles(struct sim_samples *s)
{
	if (!s->n)
		return (struct sim_quantiles){ 0 };
	qsort(s->ns, s->n, sizeof(*s->ns), compare_u64);
	return (struct sim_quantiles){
		.n = s->n,
		.min_ns = s->ns[0],
		.mean_ns = mean(s),
		.p50_ns = at_permille(s, 500),
		.p95_ns = at_permille(s, 950),
		.p99_ns = at_permille(s, 990),
		.p999_ns = at_permille(s, 999),
		.max_ns = s->ns[s->n - 1],
	};
}

void sim_samples_curve(const struct sim_samples *s, uint64_t ret_ns[CURVE_POINTS])
{
	for (size_t i = 0; i < CURVE_POINTS; i++)
		ret_ns[i] = s->n ? at_permille(s, curve_permille(i)) : 0;
}
