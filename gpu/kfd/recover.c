/* SPDX-License-Identifier: MIT */
#include "gpu/kfd/find.h"
#include "gpu/kfd/pause.h"
#include "gpu/kfd/session.h"
#include "gpu/kfd/tracer.h"

struct recover_args {
	struct gkfd *k;
	pid_t pid;
	enum gkfd_way way;
	struct gkfd_failure *fail;
};

static int do_recover(void *arg)
{
	struct recover_args *a = arg;
	int paused = 0, debugged;

	if (a->way == GKFD_BY_PAUSE)
		paused = gkfd_pause_recover(a->k, a->pid, a->fail);
	if (paused < 0 || !gkfd_has(a->k, GKFD_CAP_DEBUG))
		return paused;
	debugged = gkfd_session_recover(a->k, a->pid, a->fail);
	if (debugged > 0)
		gkfd_stain();
	return debugged < 0 && paused == 0 ? debugged : paused || debugged > 0;
}

int gkfd_target_recover(struct gkfd *k, pid_t pid, enum gkfd_way way,
			struct gkfd_failure *ret_failure)
{
	struct recover_args args = { .k = k, .pid = pid, .way = way, .fail = ret_failure };
	struct gkfd_proc_ident ident;
	struct tracer *tracer;
	int r;

	r = gkfd_target_find(k, pid, GKFD_CAP_CRIU, &ident, ret_failure);
	if (r < 0)
		return r;
	r = tracer_start(k, pid, NULL, NULL, &tracer);
	if (r < 0)
		return gkfd_seize_failed(k, pid, r, ret_failure);
	r = tracer_call(tracer, do_recover, &args);
	tracer_stop(tracer);
	return r;
}
