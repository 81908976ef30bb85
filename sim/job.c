/* SPDX-License-Identifier: MIT */

#include "sim/parse.h"

static bool said(uint64_t seen, const char *name)
{
	return seen & 1ull << (sim_key_find(sim_job_keys, name) - sim_job_keys);
}

/* A rate alone means a periodic job, no rate a continuous one. */
int sim_job_settle(struct sim_job *job, uint64_t seen, struct inifile *ini, unsigned int line)
{
	bool has_rate = said(seen, "rate");

	if (!said(seen, "arrival"))
		job->arrival = has_rate ? SIM_PERIODIC : SIM_CLOSED;
	if (!has_rate && (job->arrival == SIM_PERIODIC || job->arrival == SIM_POISSON))
		return inifile_wrong_line(ini, line, "[job %s] needs a 'rate'", job->name);
	if (has_rate && (job->arrival == SIM_CLOSED || job->arrival == SIM_TRACE))
		return inifile_wrong_line(ini, line, "[job %s] has a rate but does not follow it",
					  job->name);
	if (!job->online && job->announce_ns != SIM_NOT_ANNOUNCED)
		return inifile_wrong_line(ini, line, "[job %s] is offline: it announces nothing",
					  job->name);
	return 0;
}
