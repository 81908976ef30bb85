/* SPDX-License-Identifier: MIT */
#include "gpu/kfd/actor.h"

#include "gpu/kfd/failure_text.h"
#include "util/macros.h"

static void explain(const struct actor *a, int r, const struct gkfd_failure *fail,
		    struct gpu_done *done)
{
	done->result = r;
	done->gpu_failed = fail->why == GKFD_WHY_PREEMPTION_FAILED;
	done->gpu = fail->gpu_id;
	gkfd_failure_describe(a->k, r, a->pid, fail, &done->why);
}

void actor_settle(struct actor *a)
{
	struct gpu_done done = { .verb = GPU_ENDED };
	struct gkfd_failure fail;
	int r;

	a->busy = false;
	if (a->told || !a->attached)
		return;
	r = target_check_here(a->target, &fail);
	if (r >= 0)
		return;
	a->told = true;
	done.began_ns = done.done_ns = gkfd_now_ns(a->k);
	explain(a, r, &fail, &done);
	a->ended(a, &done);
}

static int attach(struct actor *a, struct gpu_done *done, struct gkfd_failure *fail)
{
	int r;

	done->began_ns = gkfd_now_ns(a->k);
	r = target_attach_here(a->target, fail);
	done->done_ns = gkfd_now_ns(a->k);
	a->attached = r >= 0;
	a->refused = r;
	a->refusal = *fail;
	return r;
}

static int suspend(struct actor *a, const struct actor_order *o, struct gpu_done *done,
		   struct gkfd_failure *fail)
{
	const struct gkfd_hold_request request = {
		.ids = o->ids,
		.n = o->n,
		.grace_kclk = o->grace_kclk,
		.longest_ns = o->longest_ns,
		.since_ns = o->called_ns,
		.more = true,
	};
	struct gkfd_hold hold = { 0 };
	int r = target_hold_here(a->target, &request, &hold, fail);

	done->began_ns = hold.began_ns;
	done->done_ns = hold.done_ns;
	done->queues = hold.n;
	return r;
}

static int resume(struct actor *a, const struct actor_order *o, struct gpu_done *done,
		  struct gkfd_failure *fail)
{
	struct gkfd_resumed resumed = { 0 };
	int r = target_resume_here(a->target, o->ids, o->n, &resumed, fail);

	done->began_ns = resumed.began_ns;
	done->done_ns = resumed.done_ns;
	done->queues = resumed.n;
	return r;
}

static int dispatch(struct actor *a, const struct actor_order *o, struct gpu_done *done,
		    struct gkfd_failure *fail)
{
	if (o->verb == GPU_ATTACH)
		return attach(a, done, fail);
	if (!a->attached) {
		*fail = a->refusal;
		return a->refused;
	}
	return (o->verb == GPU_SUSPEND ? suspend : resume)(a, o, done, fail);
}

void actor_run(struct actor *a, const struct actor_order *o, struct gpu_done *done)
{
	struct gkfd_failure fail = { 0 };
	int r;

	a->busy = true;
	done->verb = o->verb;
	r = dispatch(a, o, done, &fail);
	if (!done->began_ns) /* the driver was not asked, or did not say */
		done->began_ns = done->done_ns = gkfd_now_ns(a->k);
	if (r < 0)
		explain(a, r, &fail, done);
	done->holds = gkfd_target_holds(a->target);
}
