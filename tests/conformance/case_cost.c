/* SPDX-License-Identifier: MIT */
#include "tests/conformance/case.h"

struct meter meter(struct world *w)
{
	struct meter m = { .w = w };

	for (uint32_t gpu = 0; gpu < w->n_gpus; gpu++)
		w->ops->scheduler_work(w, gpu, &m.before[gpu]);
	return m;
}

void say_cost(struct meter *m, const char *what, int r)
{
	struct world *w = m->w;
	char text[96] = "";
	size_t at = 0;

	for (uint32_t gpu = 0; gpu < w->n_gpus; gpu++) {
		struct scheduler_work *before = &m->before[gpu], now;
		const char *comma = gpu ? "," : "";

		w->ops->scheduler_work(w, gpu, &now);
		if (is_mes(w))
			at += (size_t)snprintf(
				text + at, sizeof(text) - at, "%s adds %u removes %u", comma,
				now.adds - before->adds, now.removes - before->removes);
		else
			at += (size_t)snprintf(text + at, sizeof(text) - at, "%s unmaps %u", comma,
					       now.unmaps - before->unmaps);
		*before = now;
	}
	say(w, "%s %s:%s", what, text_of(r), text);
}
