/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "gpu/kfd/target_internal.h"
#include "util/macros.h"

/*
 * What a guard could do for a model's process it could do to somebody else's; a model ends with
 * its owner anyway.
 */
static bool guard_has_to_undo(const struct gkfd_target *t)
{
	return t->way == GKFD_BY_PAUSE && t->slot >= 0 && !t->k->transport->modelled;
}

static int entrust(struct gkfd_target *t, struct gkfd_failure *fail)
{
	_cleanup_close_ int pidfd = -1;
	struct guard_undo undo;
	int r;

	if (!guard_has_to_undo(t))
		return 0;
	pidfd = t->k->transport->trace->pidfd(t->k->data, t->ident.pid);
	if (pidfd < 0)
		return gkfd_fail(fail, pidfd, GKFD_WHY_SYSTEM, "pidfd");
	gkfd_pause_undo(&undo);
	r = guard_entrust(t->guard, t->slot, t->pause.fd, pidfd, &undo);
	if (r == -EOWNERDEAD)
		return gkfd_fail(fail, r, GKFD_WHY_GUARD_DIED, "attach");
	return r < 0 ? gkfd_fail(fail, r, GKFD_WHY_SYSTEM, "guard") : 0;
}

int way_begin(struct gkfd_target *t, struct gkfd_failure *fail)
{
	int r;

	if (t->way == GKFD_BY_DEBUG)
		return gkfd_session_begin(&t->session, t->k, t->ident.pid, fail);
	r = gkfd_pause_begin(&t->pause, t->k, t->ident.pid, fail);
	return r < 0 ? r : entrust(t, fail);
}

void way_end(struct gkfd_target *t)
{
	if (t->way == GKFD_BY_DEBUG)
		gkfd_session_end(&t->session);
	else
		gkfd_pause_end(&t->pause);
}

void way_forget(struct gkfd_target *t)
{
	if (t->way == GKFD_BY_DEBUG)
		gkfd_session_forget(&t->session);
	else
		gkfd_pause_forget(&t->pause);
}

/* The guard hears of a pause before the driver does. */
int way_hold(struct gkfd_target *t, const struct gkfd_hold_request *request, struct gkfd_hold *ret,
	     struct gkfd_failure *fail)
{
	int r;

	if (t->way == GKFD_BY_DEBUG)
		return gkfd_session_hold(&t->session, request, ret, fail);
	if (t->pause.paused && request->more && !request->ids) {
		*ret = (struct gkfd_hold){ .began_ns = gkfd_now_ns(t->k) };
		ret->done_ns = ret->began_ns;
		return 0;
	}
	if (guard_has_to_undo(t))
		guard_set_due(t->guard, t->slot, 0, true);
	r = gkfd_pause_hold(&t->pause, request, ret, fail);
	if (r < 0 && guard_has_to_undo(t))
		guard_set_due(t->guard, t->slot, 0, false);
	return r;
}

int way_resume(struct gkfd_target *t, const uint32_t *ids, uint32_t n, struct gkfd_resumed *ret,
	       struct gkfd_failure *fail)
{
	int r;

	if (t->way == GKFD_BY_DEBUG)
		return ids ? gkfd_session_resume_some(&t->session, ids, n, ret, fail) :
			     gkfd_session_resume(&t->session, ret, fail);
	if (ids)
		return gkfd_fail(fail, -EINVAL, GKFD_WHY_WHOLE_ONLY, "unpause");
	r = gkfd_pause_resume(&t->pause, ret, fail);
	if (r >= 0 && guard_has_to_undo(t))
		guard_set_due(t->guard, t->slot, 0, false);
	return r;
}

int way_snapshot(struct gkfd_target *t, struct kfd_queue_snapshot_entry **ret, uint32_t *ret_n,
		 struct gkfd_failure *fail)
{
	if (t->way == GKFD_BY_DEBUG)
		return gkfd_session_snapshot(&t->session, ret, ret_n, fail);
	return gkfd_pause_snapshot(&t->pause, ret, ret_n, fail);
}
