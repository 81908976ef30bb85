/* SPDX-License-Identifier: MIT */
#include "cmd/gpreemptd/histogram.h"

#include "util/macros.h"

uint64_t histogram_bound_ns(size_t bucket)
{
	static const uint64_t steps[] = { 1, 2, 5 };
	uint64_t bound_ns = NSEC_PER_USEC;

	if (bucket >= HISTOGRAM_BUCKETS - 1)
		return UINT64_MAX;
	for (size_t decade = 0; decade < bucket / ARRAY_SIZE(steps); decade++)
		bound_ns *= 10;
	return bound_ns * steps[bucket % ARRAY_SIZE(steps)];
}

void histogram_add(struct histogram *h, uint64_t ns)
{
	size_t bucket = 0;

	while (ns > histogram_bound_ns(bucket))
		bucket++;
	h->counts[bucket]++;
	h->count++;
	h->sum_ns += ns;
	h->max_ns = MAX(h->max_ns, ns);
}

uint64_t histogram_quantile_ns(const struct histogram *h, unsigned int permille)
{
	uint64_t below = 0;
	/* Rounded up, and in parts, so that no count overflows. */
	uint64_t wanted = h->count / 1000 * permille + (h->count % 1000 * permille + 999) / 1000;

	wanted = MAX(wanted, 1);
	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
		below += h->counts[i];
		if (below >= wanted)
			return MIN(histogram_bound_ns(i), h->max_ns);
	}
	return h->max_ns;
}
