/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "abi/job_class.h"
#include "wire/wire.h"

_Static_assert(GPREEMPT_CLASS_UNKNOWN == (int)JOB_UNMANAGED &&
		       GPREEMPT_CLASS_ONLINE == (int)JOB_ONLINE &&
		       GPREEMPT_CLASS_OFFLINE == (int)JOB_OFFLINE,
	       "classes have the same numbers everywhere");

static const char *const classes[] = {
	[GPREEMPT_CLASS_UNKNOWN] = "none",
	[GPREEMPT_CLASS_ONLINE] = "online",
	[GPREEMPT_CLASS_OFFLINE] = "offline",
};

static const struct wire_event_kind events[] = {
	[GPREEMPT_EVENT_JOB_CAME] = { "job-came", WIRE_TO_OWNER },
	[GPREEMPT_EVENT_JOB_WENT] = { "job-went", WIRE_TO_OWNER },
	[GPREEMPT_EVENT_JOB_CLASSED] = { "job-classed", WIRE_TO_OWNER },
	[GPREEMPT_EVENT_ATTACHED] = { "job-attached", WIRE_TO_OWNER },
	[GPREEMPT_EVENT_NOT_ATTACHED] = { "job-not-attached", WIRE_TO_OWNER, true },
	[GPREEMPT_EVENT_HELD] = { "held", WIRE_TO_OWNER },
	[GPREEMPT_EVENT_LET_GO] = { "let-go", WIRE_TO_OWNER },
	[GPREEMPT_EVENT_TRIPPED] = { "tripped", WIRE_TO_OWNER, true },
	[GPREEMPT_EVENT_REARMED] = { "rearmed", WIRE_TO_OWNER },
	[GPREEMPT_EVENT_POLICY_SET] = { "policy-set", WIRE_TO_ALL },
	[GPREEMPT_EVENT_PAUSED] = { "paused", WIRE_TO_ALL },
	[GPREEMPT_EVENT_CONTINUED] = { "continued", WIRE_TO_ALL },
	[GPREEMPT_EVENT_RELOADED] = { "reloaded", WIRE_TO_OWNER },
	[GPREEMPT_EVENT_MISSED] = { "missed", WIRE_TO_ALL },
	[GPREEMPT_EVENT_HANDED_OVER] = { "handed-over", WIRE_TO_ALL },
	[GPREEMPT_EVENT_TAKEN_BACK] = { "taken-back", WIRE_TO_ALL },
	[GPREEMPT_EVENT_JOB_BLIND] = { "job-blind", WIRE_TO_OWNER, true },
	[GPREEMPT_EVENT_JOB_SEEN] = { "job-seen", WIRE_TO_OWNER },
	[GPREEMPT_EVENT_BLIND] = { "blind", WIRE_TO_NEIGHBOURS, true }, /* it may name somebody */
	[GPREEMPT_EVENT_SEES] = { "sees", WIRE_TO_NEIGHBOURS },
};

const struct wire_event_kind *wire_event_kind(uint32_t kind)
{
	return kind < ARRAY_SIZE(events) && events[kind].name ? &events[kind] : NULL;
}

const char *wire_class_name(uint32_t job_class)
{
	return job_class < ARRAY_SIZE(classes) ? classes[job_class] : NULL;
}

int wire_class_parse(const char *name, uint32_t *ret)
{
	for (uint32_t i = 0; i < ARRAY_SIZE(classes); i++) {
		if (strcmp(name, classes[i]) == 0) {
			*ret = i;
			return 0;
		}
	}
	return -EINVAL;
}
