/* SPDX-License-Identifier: MIT */
#include "cmd/gpreempt-top/snapshot.h"

#include <errno.h>

#include "util/macros.h"

#define TIMEOUT_NS (2 * NSEC_PER_SEC) /* keys should not wait for a daemon that hangs */

static int read_gpus(struct snapshot *s, struct gpreempt_daemon *d)
{
	size_t room = 32;

	for (;;) {
		_cleanup_free_ struct gpreempt_daemon_gpu *list = calloc(room, sizeof(*list));
		int n;

		if (!list)
			return -ENOMEM;
		list[0].size = sizeof(*list);
		n = gpreempt_daemon_get_gpus(d, list, room);
		if (n < 0)
			return n;
		if ((size_t)n <= room) {
			s->gpus = steal_ptr(&list);
			s->n_gpus = (size_t)n;
			return 0;
		}
		room = (size_t)n;
	}
}

static int read_jobs(struct snapshot *s, struct gpreempt_daemon *d)
{
	size_t room = 64;

	for (;;) {
		_cleanup_free_ struct gpreempt_daemon_job *list = calloc(room, sizeof(*list));
		int n;

		if (!list)
			return -ENOMEM;
		list[0].size = sizeof(*list);
		n = gpreempt_daemon_get_jobs(d, list, room);
		if (n < 0)
			return n;
		if ((size_t)n <= room) {
			s->jobs = steal_ptr(&list);
			s->n_jobs = (size_t)n;
			return 0;
		}
		room = (size_t)n;
	}
}

static int read_all(struct snapshot *s, struct gpreempt_daemon *d)
{
	int r;

	s->status.size = sizeof(s->status);
	r = gpreempt_daemon_get_status(d, &s->status);
	if (r >= 0)
		r = read_gpus(s, d);
	if (r >= 0)
		r = read_jobs(s, d);
	return r;
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
