/* SPDX-License-Identifier: MIT */
/* What a running daemon knows better than the priorities of queues tell. */
#include "cmd/gpreempt/daemon.h"
#include "cmd/gpreempt/processes.h"

#define PATIENCE_NS NSEC_PER_SEC /* for something that is nice to know */

static void take_class(struct processes *ps, const struct gpreempt_daemon_job *job)
{
	for (size_t i = 0; i < ps->n; i++)
		if (ps->list[i].pid == job->pid && job->job_class != GPREEMPT_CLASS_UNKNOWN)
			ps->list[i].job_class = job->job_class;
}

void processes_ask_daemon(struct cli *cli, struct processes *ps)
{
	_cleanup_free_ struct gpreempt_daemon_job *jobs = NULL;
	_cleanup_daemon_ struct gpreempt_daemon *d = NULL;
	int n, room;

	/* The processes of a model of our own are nobody else's. */
	if (gpreempt_is_modelled(cli->ctx) || gpreempt_daemon_open(cli->socket, &d, NULL) < 0)
		return;
	gpreempt_daemon_set_timeout(d, PATIENCE_NS);
	room = gpreempt_daemon_get_jobs(d, NULL, 0);
	jobs = room > 0 ? calloc((size_t)room, sizeof(*jobs)) : NULL;
	if (!jobs)
		return;
	jobs[0].size = sizeof(*jobs);
	n = gpreempt_daemon_get_jobs(d, jobs, (size_t)room);
	for (int i = 0; i < MIN(n, room); i++)
		take_class(ps, &jobs[i]);
}
