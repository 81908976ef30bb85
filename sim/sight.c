/* SPDX-License-Identifier: MIT */
/* What a scenario assumes of the driver, and of seeing work. */
#include <string.h>

#include "sim/sim.h"
#include "util/macros.h"

const struct sim_costs *sim_costs_of(const struct sim_scenario *s)
{
	for (size_t i = 0; i < s->n_cost_tables; i++) {
		if (!strcmp(s->cost_tables[i].name, s->costs))
			return &s->cost_tables[i];
	}
	return NULL;
}

uint64_t sim_look_period_ns(const struct sim_detection *d)
{
	uint64_t least_ns = MAX(d->look_least_ns, 1u);

	return d->look_permille ? MAX(d->look_ns * 1000 / d->look_permille, least_ns) : least_ns;
}

struct sim_sight sim_sight(const struct sim_scenario *s)
{
	const struct sim_costs *costs = sim_costs_of(s);
	const struct sim_detection *d = &s->detection;
	struct sim_sight sight = { .any = costs && costs->counts_progress };

	if (s->detect > SIM_DETECT_TRAP) {
		sight.begin_ns = sight.look_ns = s->detect;
	} else {
		sight.begin_ns = s->detect == SIM_DETECT_WATCH ? d->watch_ns : d->trap_ns;
		sight.look_ns = sim_look_period_ns(d);
	}
	return sight;
}
