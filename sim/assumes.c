/* SPDX-License-Identifier: MIT */
/* What a simulation takes for granted, in words. */
#include <stdio.h>

#include "sim/parse.h"
#include "sim/sim.h"

const char *sim_detect_text(uint64_t detect, char *buf, size_t size)
{
	char period[UNIT_TEXT];

	if (detect > SIM_DETECT_TRAP)
		snprintf(buf, size, SIM_LOOK "%s", unit_text(UNIT_DURATION, detect, period));
	else
		snprintf(buf, size, "%s", detect == SIM_DETECT_WATCH ? "watch" : "trap");
	return buf;
}

void sim_announce_time_text(uint64_t announce_ns, char *buf, size_t size)
{
	char ahead[UNIT_TEXT];

	if (announce_ns == SIM_NOT_ANNOUNCED)
		snprintf(buf, size, "none");
	else if (!announce_ns)
		snprintf(buf, size, "submission");
	else
		snprintf(buf, size, "%s", unit_text(UNIT_DURATION, announce_ns, ahead));
}

/* SIM_NOT_ANNOUNCED if there is no online job; -1: they differ. */
static int announced_by_all(const struct sim_scenario *s, uint64_t *ret_ns)
{
	const struct sim_job *first = NULL;

	*ret_ns = SIM_NOT_ANNOUNCED;
	for (size_t i = 0; i < s->n_jobs; i++) {
		const struct sim_job *job = &s->jobs[i];

		if (!job->online)
			continue;
		if (first && job->announce_ns != first->announce_ns)
			return -1;
		first = job;
		*ret_ns = job->announce_ns;
	}
	return 0;
}

const char *sim_announce_text(const struct sim_scenario *s, char *buf, size_t size)
{
	uint64_t ns;

	if (announced_by_all(s, &ns) < 0)
		snprintf(buf, size, "by job");
	else
		sim_announce_time_text(ns, buf, size);
	return buf;
}

static void announcement(const struct sim_scenario *s, char *buf, size_t size)
{
	char when[UNIT_TEXT];
	uint64_t ns;

	sim_announce_text(s, when, sizeof(when));
	if (announced_by_all(s, &ns) < 0)
		snprintf(buf, size, "announced by some jobs");
	else if (ns == SIM_NOT_ANNOUNCED)
		snprintf(buf, size, "nothing announced");
	else
		snprintf(buf, size, ns ? "announced %s ahead" : "announced at %s", when);
}

static void sight(const struct sim_scenario *s, char *buf, size_t size)
{
	const struct sim_sight sight = sim_sight(s);
	char begin[UNIT_TEXT], end[UNIT_TEXT], how[UNIT_TEXT];

	unit_text(UNIT_DURATION, sight.begin_ns, begin);
	unit_text(UNIT_DURATION, sight.look_ns, end);
	if (!sight.any)
		snprintf(buf, size, "work not seen, processes take turns");
	else if (s->detect > SIM_DETECT_TRAP)
		snprintf(buf, size, "work seen by looks every %s", end);
	else
		snprintf(buf, size, "work seen after %s (%s), its end by looks every %s", begin,
			 sim_detect_text(s->detect, how, sizeof(how)), end);
}

const char *sim_assumes(const struct sim_scenario *s, char buf[SIM_ASSUMES])
{
	char seen[160], announced[64];

	sight(s, seen, sizeof(seen));
	announcement(s, announced, sizeof(announced));
	snprintf(buf, SIM_ASSUMES, "costs of %s; %s; %s", s->costs, seen, announced);
	return buf;
}
