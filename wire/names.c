/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "wire/wire.h"

static const char *const classes[] = {
	[WIRE_CLASS_NONE] = "none",
	[WIRE_CLASS_OFFLINE] = "offline",
	[WIRE_CLASS_ONLINE] = "online",
};

static const char *const events[] = {
	[WIRE_JOB_CAME] = "job-came",
	[WIRE_JOB_WENT] = "job-went",
	[WIRE_JOB_CLASSED] = "job-classed",
	[WIRE_JOB_ATTACHED_NOW] = "job-attached",
	[WIRE_JOB_NOT_ATTACHED] = "job-not-attached",
	[WIRE_HELD] = "held",
	[WIRE_LET_GO] = "let-go",
	[WIRE_TRIPPED] = "tripped",
	[WIRE_REARMED] = "rearmed",
	[WIRE_POLICY_SET] = "policy-set",
	[WIRE_PAUSED] = "paused",
	[WIRE_CONTINUED] = "continued",
	[WIRE_RELOADED] = "reloaded",
	[WIRE_MISSED] = "missed",
	[WIRE_HANDED_OVER] = "handed-over",
	[WIRE_TAKEN_BACK] = "taken-back",
	[WIRE_JOB_BLIND_NOW] = "job-blind",
	[WIRE_JOB_SEEN] = "job-seen",
	[WIRE_BLIND] = "blind",
	[WIRE_SEES] = "sees",
};

static const char *const types[] = {
	[WIRE_STATUS] = "status",	[WIRE_GPUS] = "gpus",		[WIRE_JOBS] = "jobs",
	[WIRE_POLICY] = "policy",	[WIRE_CLASS] = "class",		[WIRE_HINT] = "hint",
	[WIRE_HINT_PAGE] = "hint-page", [WIRE_SUBSCRIBE] = "subscribe", [WIRE_METRICS] = "metrics",
	[WIRE_PAUSE] = "pause",		[WIRE_CONTINUE] = "continue",	[WIRE_REARM] = "rearm",
	[WIRE_RELEASE] = "release",	[WIRE_RELOAD] = "reload",	[WIRE_EVENT] = "event",
	[WIRE_ERROR] = "error",
};

static const char *name_of(const char *const *names, size_t n, uint32_t number)
{
	return number < n ? names[number] : NULL;
}

const char *wire_class_name(uint32_t job_class)
{
	return name_of(classes, ARRAY_SIZE(classes), job_class);
}

const char *wire_event_name(uint32_t kind)
{
	return name_of(events, ARRAY_SIZE(events), kind);
}

const char *wire_type_name(uint32_t type)
{
	return name_of(types, ARRAY_SIZE(types), type);
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
