/* SPDX-License-Identifier: MIT */
#include "cmd/gpreempt-top/snapshot.h"

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
	r = list_read(get_jobs, d, sizeof(*s->jobs), &s->jobs);
	if (r < 0)
		return r;
	s->n_jobs = (size_t)r;
	return 0;
}

int snapshot_read(struct snapshot *s, const char *socket, struct gpreempt_daemon **d)
{
	struct snapshot now = { 0 };
	int r = 0;

	s->error = (struct gpreempt_error){ .size = sizeof(s->error) };
	if (!*d) {
		r = gpreempt_daemon_open(socket, d, &s->error);
		if (r < 0)
			return r;
		gpreempt_daemon_set_timeout(*d, TIMEOUT_NS);
	}
	r = read_all(&now, *d);
	if (r < 0) {
		gpreempt_daemon_get_error(*d, &s->error);
		if (r == -ENOMEM)
			snprintf(s->error.message, sizeof(s->error.message), "out of memory");
		if (s->error.kind == GPREEMPT_ERROR_NONE)
			s->error.kind = GPREEMPT_ERROR_FAILED;
		*d = gpreempt_daemon_close(*d);
		snapshot_done(&now);
		return r;
	}
	snapshot_done(s);
	*s = now;
	s->seen = true;
	s->error.size = sizeof(s->error);
	return 0;
}

void snapshot_done(struct snapshot *s)
{
	free(s->gpus);
	free(s->jobs);
	*s = (struct snapshot){ 0 };
}
