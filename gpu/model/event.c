/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "gpu/model/event.h"
#include "util/array.h"
#include "util/macros.h"

void timeline_init(struct timeline *t)
{
	*t = (struct timeline){ 0 };
}

void timeline_done(struct timeline *t)
{
	for (size_t i = 1; i <= t->n; i++)
		t->heap[i]->slot = 0;
	free(t->heap);
	timeline_init(t);
}

static bool sooner(const struct event *a, const struct event *b)
{
	if (a->at_ns != b->at_ns)
		return a->at_ns < b->at_ns;
	return a->seq < b->seq;
}

static void put(struct timeline *t, size_t slot, struct event *e)
{
	t->heap[slot] = e;
	e->slot = slot;
}

static void sift_up(struct timeline *t, struct event *e)
{
	size_t slot = e->slot;

	for (; slot > 1 && sooner(e, t->heap[slot / 2]); slot /= 2)
		put(t, slot, t->heap[slot / 2]);
	put(t, slot, e);
}

static void sift_down(struct timeline *t, struct event *e)
{
	size_t slot = e->slot;

	for (;;) {
		size_t child = slot * 2;

		if (child > t->n)
			break;
		if (child < t->n && sooner(t->heap[child + 1], t->heap[child]))
			child++;
		if (!sooner(t->heap[child], e))
			break;
		put(t, slot, t->heap[child]);
		slot = child;
	}
	put(t, slot, e);
}

static void settle(struct timeline *t, struct event *e)
{
	sift_up(t, e);
	sift_down(t, e);
}

int timeline_set(struct timeline *t, struct event *e, uint64_t at_ns)
{
	if (!e->slot) {
		int r = array_reserve(&t->heap, t->n + 2, &t->cap, sizeof(*t->heap));

		if (r < 0)
			return r;
		put(t, ++t->n, e);
	}
	e->at_ns = MAX(at_ns, t->now_ns);
	e->seq = t->seq++;
	settle(t, e);
	return 0;
}

void timeline_cancel(struct timeline *t, struct event *e)
{
	size_t slot = e->slot;
	struct event *last;

	if (!slot)
		return;
	last = t->heap[t->n--];
	e->slot = 0;
	if (last == e)
		return;
	put(t, slot, last);
	settle(t, last);
}

static struct event *next_due(const struct timeline *t, uint64_t by_ns)
{
	struct event *e = t->n ? t->heap[1] : NULL;

	return e && e->at_ns <= by_ns && e->at_ns != TIMELINE_NEVER ? e : NULL;
}

bool timeline_step(struct timeline *t, uint64_t limit_ns)
{
	struct event *e = next_due(t, limit_ns);

	if (!e) {
		t->now_ns = MAX(t->now_ns, limit_ns);
		return false;
	}
	t->now_ns = MAX(t->now_ns, e->at_ns);
	/* An event may itself let time pass: then all that came due meanwhile has run already. */
	while ((e = next_due(t, t->now_ns))) {
		timeline_cancel(t, e);
		e->run(e);
	}
	return true;
}

void timeline_run(struct timeline *t, uint64_t until_ns)
{
	while (timeline_step(t, until_ns))
		;
}

uint64_t timeline_next_ns(const struct timeline *t)
{
	return t->n ? t->heap[1]->at_ns : TIMELINE_NEVER;
}
