/* SPDX-License-Identifier: MIT */
#include "sim/bursts.h"

#include <errno.h>
#include <stdlib.h>

#include "sim/arrival.h"
#include "util/macros.h"

#define TRACE_ROOM ((size_t)16) /* at first; doubled when full */

enum { STREAM_ARRIVALS, STREAM_KEPT, STREAM_STRETCHES };

int sim_trace_add(struct sim_scenario *s, uint64_t at_ns)
{
	size_t n = s->n_trace;

	if (n == SIM_MAX_TRACE)
		return -E2BIG;
	if (!n || (n >= TRACE_ROOM && !(n & (n - 1)))) {
		uint64_t *grown = realloc(s->trace_ns, MAX(2 * n, TRACE_ROOM) * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		s->trace_ns = grown;
	}
	s->trace_ns[s->n_trace++] = at_ns;
	return 0;
}

struct stretches {
	const struct sim_bursts *b;
	uint64_t n, ends_ns;
};

/* Whether @at_ns, which only grows, is within a burst. */
static bool in_burst(struct stretches *s, uint64_t at_ns)
{
	while (at_ns >= s->ends_ns) {
		uint64_t mean = s->n % 2 ? s->b->burst_ns : s->b->quiet_ns;

		s->ends_ns +=
			mean / 2 + sim_random(s->b->seed, STREAM_STRETCHES, s->n) % (mean + 1);
		s->n++;
	}
	return s->n % 2 == 0;
}

/* Arrivals at the higher rate all along, of which a part is kept while the lower one holds. */
int sim_bursts_make(const struct sim_bursts *b, struct sim_scenario *s)
{
	uint64_t peak = MAX(b->quiet_rate_mhz, b->burst_rate_mhz);
	struct sim_job job = { .arrival = SIM_POISSON, .rate_mhz = peak };
	struct sim_place_in_line line = { 0 };
	struct stretches stretches = { .b = b };
	struct sim_arrivals arrivals;
	int r;

	if ((unsigned __int128)peak * b->length_ns / (1000 * NSEC_PER_SEC) > SIM_MAX_TRACE)
		return -E2BIG;
	sim_arrivals_init(&arrivals, s, &job, sim_random(b->seed, STREAM_ARRIVALS, 0), &line);
	while (arrivals.next_ns < b->length_ns) {
		uint64_t at = arrivals.next_ns, n = arrivals.taken;
		uint64_t rate = in_burst(&stretches, at) ? b->burst_rate_mhz : b->quiet_rate_mhz;

		if (sim_random(b->seed, STREAM_KEPT, n) % peak < rate) {
			r = sim_trace_add(s, at);
			if (r < 0)
				return r;
		}
		sim_arrivals_take(&arrivals, at);
	}
	return 0;
}
