/* SPDX-License-Identifier: MIT */
#include "cmd/gpreempt/snapshot.h"

#include <errno.h>

#include "util/list.h"

#define TIMEOUT_NS (2 * NSEC_PER_SEC) /* keys should not wait for a daemon that hangs */

static int get_gpus(void *of, void *list, size_t room)
{
	return gpreempt_daemon_get_gpus(of, list, room);
}

static int get_jobs(void *of, void *list, size_t room)
{
	return gpreempt_daemon_get_jobs(of, list, room);
}

int read_daemon_jobs(struct gpreempt_daemon *d, struct gpreempt_daemon_job **ret)
{
	return list_read(get_jobs, d, sizeof(**ret), ret);
}

static int read_all(struct snapshot *s, struct gpreempt_daemon *d)
{
	int r;

	s->status.size = sizeof(s->status);
	r = gpreempt_daemon_get_status(d, &s->status);
	if (r < 0)
		return r;
	r = list_read(get_gpus, d, sizeof(*s->gpus), &s->gpus);
	if (r < 0)
		return r;
	s->n_gpus = (size_t)r;
	r = read_daemon_jobs(d, &s->jobs);
	if (r < 0)
		return r;
	s->n_jobs = (size_t)r;
	return 0;
}

int snapshot_read(struct snapshot *s, const char *socket, struct gpreempt_daemon **d)
{
	struct snapshot now = { .seen = true, .error = { .size = sizeof(now.error) } };
	int r;

	s->error = now.error;
	if (!*d) {
		r = gpreempt_daemon_open(socket, d, &s->error);
		if (r < 0)
			return r;
		gpreempt_daemon_set_timeout(*d, TIMEOUT_NS);
	}
	r = read_all(&now, *d);
	if (r >= 0) {
		snapshot_done(s);
		*s = now;
		return 0;
	}
	gpreempt_daemon_get_error(*d, &s->error);
	if (r == -ENOMEM)
		s->error = (struct gpreempt_error){ .message = "out of memory",
						    .hint = "free some memory" };
	if (s->error.kind == GPREEMPT_ERROR_NONE)
		s->error.kind = GPREEMPT_ERROR_FAILED;
	*d = gpreempt_daemon_close(*d);
	snapshot_done(&now);
	return r;
}

void snapshot_done(struct snapshot *s)
{
	for (size_t i = 0; s->trips && i < s->n_gpus; i++)
		free(s->trips[i]);
	free(s->trips);
	free(s->gpus);
	free(s->jobs);
	*s = (struct snapshot){ 0 };
}
