/* SPDX-License-Identifier: MIT */
#include "cmd/gpreempt/job_text.h"

#include <stdio.h>

#include "wire/wire.h"

const char *job_state(const struct gpreempt_daemon_job *job)
{
	if (!job->detailed)
		return "-";
	if (job->held)
		return "held";
	if (job->blind)
		return "blind";
	if (job->unseen)
		return "unknown";
	if (job->waiting)
		return "waiting";
	return job->working ? "working" : "idle";
}

const char *job_class_word(enum gpreempt_class job_class)
{
	const char *name = wire_class_name(job_class);

	return name ? name : "none";
}

const char *text_age(uint64_t seconds, char buf[AGE_TEXT_SIZE])
{
	unsigned long long minutes = seconds / 60, hours = minutes / 60, days = hours / 24;

	if (minutes == 0)
		snprintf(buf, AGE_TEXT_SIZE, "%llu s", (unsigned long long)seconds);
	else if (hours == 0)
		snprintf(buf, AGE_TEXT_SIZE, "%llu min", minutes);
	else if (days < 2)
		snprintf(buf, AGE_TEXT_SIZE, "%llu h %llu min", hours, minutes % 60);
	else
		snprintf(buf, AGE_TEXT_SIZE, "%llu days", days);
	return buf;
}
