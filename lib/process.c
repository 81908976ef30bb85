/* SPDX-License-Identifier: MIT */
/* Attaching to one process. */
#include <errno.h>

#include "lib/ext.h"
#include "lib/internal.h"

int ctx_start_guard(struct gpreempt_ctx *ctx)
{
	int r;

	if (ctx->guard && guard_alive(ctx->guard))
		return 0;
	/* A dead one may still be in use by processes attached before. */
	if (ctx->guard && !LIST_EMPTY(&ctx->processes))
		return ctx_fail(ctx, -EOWNERDEAD, GPREEMPT_ERROR_FAILED,
				"detach from all processes and start again",
				"the guard process has died");
	guard_stop(ctx->guard);
	ctx->guard = NULL;
	if (!gpreempt_is_modelled(ctx) && !guard_is_possible())
		return ctx_fail(ctx, -EOPNOTSUPP, GPREEMPT_ERROR_REFUSED,
				"start the container with an init, for example: docker run --init",
				"the caller is pid 1 of its container, which no guard could end");
	r = guard_start(&ctx->guard);
	return r < 0 ? ctx_fail_errno(ctx, r, "starting the guard process") : 0;
}

static int attach(struct gpreempt_process *p)
{
	struct gpreempt_ctx *ctx = p->ctx;
	struct gkfd_failure failure = { 0 };
	/* A looker seizes too; only a model's processes cannot be stopped by that. */
	bool guarded = !p->look_only || !gpreempt_is_modelled(ctx);
	int r = ctx_open_device(ctx);

	if (r >= 0 && guarded)
		r = ctx_start_guard(ctx);
	if (r < 0)
		return r;
	ctx_call_begin(ctx);
	r = gkfd_target_attach_by(ctx->k, p->pid, p->pauses ? GKFD_BY_PAUSE : GKFD_BY_DEBUG,
				  guarded ? ctx->guard : NULL, &p->target, &failure);
	ctx_call_end(ctx);
	return r < 0 ? ctx_fail_target(ctx, r, p->pid, &failure) : 0;
}

/* NULL: by tracing it. */
static const struct process_ops *choose_ops(struct gpreempt_ctx *ctx, unsigned int flags)
{
	if (ctx->vendor)
		return ctx->vendor->process;
	if (flags & (GPREEMPT_ATTACH_PAUSE | GPREEMPT_ATTACH_DEBUG))
		return NULL;
	return ext_is_usable(ctx) ? &ext_process : NULL;
}

EXPORT int gpreempt_attach(struct gpreempt_ctx *ctx, pid_t pid, unsigned int flags,
			   struct gpreempt_process **ret)
{
	_cleanup_free_ struct gpreempt_process *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return ctx_fail_errno(ctx, -ENOMEM, "attach");
	*p = (struct gpreempt_process){ .ctx = ctx, .pid = pid };
	p->look_only = flags & GPREEMPT_ATTACH_LOOK_ONLY;
	p->pauses = flags & GPREEMPT_ATTACH_PAUSE;
	p->ops = choose_ops(ctx, flags);
	r = p->ops ? p->ops->attach(p) : attach(p);
	if (r < 0)
		return r;
	LIST_INSERT_HEAD(&ctx->processes, p, link);
	*ret = steal_ptr(&p);
	return 0;
}

EXPORT struct gpreempt_process *gpreempt_detach(struct gpreempt_process *p)
{
	if (!p)
		return NULL;
	ctx_call_begin(p->ctx);
	if (p->ops)
		p->ops->detach(p);
	else
		gkfd_target_release(p->target);
	p->held = false;
	ctx_call_end(p->ctx);
	LIST_REMOVE(p, link);
	gkfd_mqds_done(&p->mqds);
	free(p->held_ids);
	free(p);
	return NULL;
}

EXPORT pid_t gpreempt_process_pid(const struct gpreempt_process *p)
{
	return p->pid;
}

EXPORT int gpreempt_process_fd(const struct gpreempt_process *p)
{
	return p->ops ? p->ops->fd(p) : gkfd_target_fd(p->target);
}

static const struct {
	int error;
	enum gkfd_why why;
} ends[] = {
	[GKFD_TARGET_EXITED] = { -ESRCH, GKFD_WHY_EXITED },
	[GKFD_TARGET_EXECED] = { -ESRCH, GKFD_WHY_EXECED },
	[GKFD_TARGET_TAKEN] = { -EPERM, GKFD_WHY_TAKEN },
	[GKFD_TARGET_GUARD_DIED] = { -EOWNERDEAD, GKFD_WHY_GUARD_DIED },
	[GKFD_TARGET_FAILED] = { -EIO, GKFD_WHY_SYSTEM },
	[GKFD_TARGET_LET_GO] = { -EAGAIN, GKFD_WHY_LET_GO },
};

EXPORT int gpreempt_process_check(struct gpreempt_process *p)
{
	struct gkfd_failure failure = { .step = "preempting a queue" };
	enum gkfd_target_state state;

	if (p->ops)
		return p->ops->check(p);
	state = gkfd_target_state(p->target);
	if (state == GKFD_TARGET_ATTACHED)
		return 0;
	failure.why = ends[state].why;
	p->held = false;
	p->n_held = 0;
	ctx_call_end(p->ctx);
	return ctx_fail_target(p->ctx, ends[state].error, p->pid, &failure);
}
