/* SPDX-License-Identifier: MIT */
#include "cmd/gpreempt/job_text.h"

#include <stdio.h>
#include <string.h>

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

const char *job_cell(const struct gpreempt_daemon_job *job, const char *name, duration_fn say,
		     char buf[UNIT_TEXT_SIZE])
{
	const struct wire_record *r = &wire_job_record;
	const struct wire_field *f = wire_field(r, name);
	uint64_t value;

	if (!f)
		return job_state(job);
	if (f->form == WIRE_FORM_TEXT)
		return (const char *)job + f->offset;
	if (!(job->detailed || f->flags & WIRE_PUBLIC) || wire_is_unseen(r, f, job) ||
	    (f->flags & WIRE_OPTIONAL && wire_is_zero(f, job)))
		return "-";
	value = wire_value(f, job);
	if (f->form == WIRE_FORM_CLASS)
		return job_class_word((enum gpreempt_class)value);
	if (f->form == WIRE_FORM_NS)
		return say(value, buf);
	if (f->form == WIRE_FORM_PERMILLE)
		snprintf(buf, UNIT_TEXT_SIZE, "%u %%", ((unsigned int)value + 5) / 10);
	else
		snprintf(buf, UNIT_TEXT_SIZE, "%llu%s", (unsigned long long)value,
			 job->critical && strcmp(name, "priority") == 0 ? "!" : "");
	return buf;
}
