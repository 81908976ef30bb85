/* SPDX-License-Identifier: MIT */
/* Statistics over samples: by sorting and merging, so that a thousand queues cost little. */
#include <errno.h>

#include "lib/internal.h"
#include "util/array.h"

static size_t count_new(const struct tally *t, const uint32_t *keys, size_t n)
{
	size_t fresh = 0, at = 0;

	for (size_t i = 0; i < n; i++) {
		if (i > 0 && keys[i] == keys[i - 1])
			continue;
		while (at < t->n && t->counts[at].key < keys[i])
			at++;
		if (at == t->n || t->counts[at].key != keys[i])
			fresh++;
	}
	return fresh;
}

/* Counts @keys, which are sorted, into @t from the back, where there is room for new ones. */
static int tally_add(struct tally *t, const uint32_t *keys, size_t n)
{
	size_t fresh = count_new(t, keys, n);
	size_t from = t->n, to = t->n + fresh;
	int r = array_reserve(&t->counts, to ? to : 1, &t->room, sizeof(*t->counts));

	if (r < 0)
		return r;
	t->n = to;
	while (n > 0) {
		uint32_t key = keys[n - 1];
		uint64_t seen = 0;

		for (; n > 0 && keys[n - 1] == key; n--)
			seen++;
		while (from > 0 && t->counts[from - 1].key > key)
			t->counts[--to] = t->counts[--from];
		if (from > 0 && t->counts[from - 1].key == key)
			seen += t->counts[--from].count;
		t->counts[--to] = (struct gpreempt_count){ .key = key, .count = seen };
	}
	return 0;
}

enum key { KEY_ID, KEY_GPU, KEY_TYPE };

static uint32_t key_of(const struct gpreempt_queue *q, enum key which)
{
	switch (which) {
	case KEY_ID:
		return q->queue_id;
	case KEY_GPU:
		return q->gpu_id;
	case KEY_TYPE:
	default:
		return (uint32_t)q->type;
	}
}

static int add_keys(struct analysis *a, struct tally *t, enum key which,
		    const struct gpreempt_queue *queues, size_t n)
{
	for (size_t i = 0; i < n; i++)
		a->keys[i] = key_of(&queues[i], which);
	if (n)
		qsort(a->keys, n, sizeof(*a->keys), compare_u32);
	return tally_add(t, a->keys, n);
}

int analysis_add(struct analysis *a, const struct gpreempt_queue *queues, size_t n)
{
	int r = array_reserve(&a->keys, n ? n : 1, &a->room, sizeof(*a->keys));

	if (r >= 0)
		r = add_keys(a, &a->ids, KEY_ID, queues, n);
	if (r >= 0)
		r = add_keys(a, &a->gpus, KEY_GPU, queues, n);
	if (r >= 0)
		r = add_keys(a, &a->types, KEY_TYPE, queues, n);
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

static bool is_stable(const struct analysis *a)
{
	for (size_t i = 0; i < a->ids.n; i++)
		if (a->ids.counts[i].count != a->samples)
			return false;
	return true;
}

static void advise(const struct analysis *a, struct gpreempt_stats *s)
{
	size_t steady = 0;

	for (size_t i = 0; i < a->ids.n; i++)
		steady += a->ids.counts[i].count == a->samples;
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
			 steady, a->ids.n);
}

void analysis_stats(const struct analysis *a, struct gpreempt_stats *ret)
{
	*ret = (struct gpreempt_stats){
		.size = sizeof(*ret),
		.samples = a->samples,
		.min = a->min,
		.max = a->max,
		.avg = a->samples ? (double)a->queues / (double)a->samples : 0,
		.stable = is_stable(a),
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
	free(a->keys);
	*a = (struct analysis){ 0 };
}
