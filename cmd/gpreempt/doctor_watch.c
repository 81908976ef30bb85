/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>

#include "cmd/gpreempt/doctor.h"

#define TIMEOUT_NS (2 * NSEC_PER_SEC)

static int ask_daemon(struct cli *cli, struct gpreempt_daemon_status *ret,
		      struct gpreempt_error *ret_error)
{
	struct gpreempt_daemon *d = NULL;
	int r = gpreempt_daemon_open(cli->socket, &d, ret_error);

	if (r < 0)
		return r;
	gpreempt_daemon_set_timeout(d, TIMEOUT_NS);
	r = gpreempt_daemon_get_status(d, ret);
	if (r < 0)
		gpreempt_daemon_get_error(d, ret_error);
	gpreempt_daemon_close(d);
	return r;
}

/* What it says of itself counts; where it had nobody to watch yet, what it would get. */
void doctor_watch(struct cli *cli, struct doctor_watch *ret)
{
	struct gpreempt_error e = { .size = sizeof(e), .message = "out of memory" };
	struct gpreempt_daemon_status s = { .size = sizeof(s) };
	int r = ask_daemon(cli, &s, &e);

	*ret = (struct doctor_watch){ .known = true };
	if (r >= 0 && s.unwatched[0]) {
		snprintf(ret->reason, sizeof(ret->reason), "%s", s.unwatched);
	} else if (r >= 0 || e.kind == GPREEMPT_ERROR_ABSENT) {
		r = gpreempt_check_watch(s.pid, &e);
		ret->known = r != -ENODATA;
		ret->available = r >= 0;
		snprintf(ret->reason, sizeof(ret->reason), "%s",
			 r >= 0 ? "a hardware watchpoint can be had" : e.message);
	} else {
		ret->known = false;
		snprintf(ret->reason, sizeof(ret->reason), "%s", e.message);
	}
	text_clean(ret->reason);
}
