/* SPDX-License-Identifier: MIT */
/* Statistics over samples: in sorted tallies, so that a thousand queues cost little. */
#include <string.h>

#include "lib/internal.h"
#include "util/array.h"

static int count(struct tally *t, uint32_t key)
{
	size_t at = 0, end = t->n;
	int r;

	while (at < end) {
		size_t middle = at + (end - at) / 2;

		if (t->counts[middle].key < key)
			at = middle + 1;
		else
			end = middle;
	}
	if (at < t->n && t->counts[at].key == key) {
		t->counts[at].count++;
		return 0;
	}
	r = array_reserve(&t->counts, t->n + 1, &t->room, sizeof(*t->counts));
	if (r < 0)
		return r;
	memmove(t->counts + at + 1, t->counts + at, (t->n - at) * sizeof(*t->counts));
	t->counts[at] = (struct gpreempt_count){ .key = key, .count = 1 };
	t->n++;
	return 0;
}

int analysis_add(struct analysis *a, const struct gpreempt_queue *queues, size_t n)
{
	int r = 0;

	for (size_t i = 0; i < n && r >= 0; i++) {
		r = count(&a->ids, queues[i].queue_id);
		if (r >= 0)
			r = count(&a->gpus, queues[i].gpu_id);
		if (r >= 0)
			r = count(&a->types, (uint32_t)queues[i].type);
	}
	if (r < 0)
		return r;
	if (a->samples == 0 || n < a->min)
		a->min = (uint32_t)n;
	if (n > a->max)
		a->max = (uint32_t)n;
	a->queues += n;
	a->samples++;
	return 0;
}

/* How many ids were in every sample. */
static size_t count_steady(const struct analysis *a)
{
	size_t n = 0;

	for (size_t i = 0; i < a->ids.n; i++)
		n += a->ids.counts[i].count == a->samples;
	return n;
}

static void advise(const struct analysis *a, struct gpreempt_stats *s)
{
	if (a->max == 0)
		snprintf(s->advice, sizeof(s->advice),
			 "no queue was seen: the process does not use the GPU now");
	else if (a->samples == 1)
		snprintf(s->advice, sizeof(s->advice),
			 "one sample does not tell whether queues come and go: sample for longer");
	else if (s->stable)
		snprintf(s->advice, sizeof(s->advice),
			 "the same %zu queues in every sample: their ids can be used directly",
			 a->ids.n);
	else
		snprintf(s->advice, sizeof(s->advice),
			 "queues come and go (%zu of %zu ids were always there): hold the whole "
			 "process rather than single ids",
			 count_steady(a), a->ids.n);
}

void analysis_stats(const struct analysis *a, struct gpreempt_stats *ret)
{
	*ret = (struct gpreempt_stats){
		.size = sizeof(*ret),
		.samples = a->samples,
		.min = a->min,
		.max = a->max,
		.avg = a->samples ? (double)a->queues / (double)a->samples : 0,
		.stable = count_steady(a) == a->ids.n,
		.n_ids = a->ids.n,
		.n_gpus = a->gpus.n,
		.n_types = a->types.n,
		.ids = a->ids.counts,
		.gpus = a->gpus.counts,
		.types = a->types.counts,
	};
	advise(a, ret);
}

void analysis_done(struct analysis *a)
{
	free(a->ids.counts);
	free(a->gpus.counts);
	free(a->types.counts);
	*a = (struct analysis){ 0 };
}
