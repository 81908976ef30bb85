/* SPDX-License-Identifier: MIT */
/* Attaching to one process. */
#include <errno.h>

#include "gpu/kfd/backend.h"
#include "gpu/kfd/ext.h"
#include "lib/act.h"
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
	if (ctx->guard) {
		backends_close(ctx); /* they have it, too */
		guard_stop(ctx->guard);
		ctx->guard = NULL;
	}
	if (!gpreempt_is_modelled(ctx) && !guard_is_possible())
		return ctx_fail(ctx, -EOPNOTSUPP, GPREEMPT_ERROR_REFUSED,
				"start the container with an init, for example: docker run --init",
				"the caller is pid 1 of its container, which no guard could end");
	r = guard_start(&ctx->guard);
	return r < 0 ? ctx_fail_errno(ctx, r, "starting the guard process") : 0;
}

/* Which of them; the extension's where it is there and nobody wants another. */
enum way { WAY_EXT, WAY_DEBUG, WAY_PAUSE };

static enum way choose_way(struct gpreempt_ctx *ctx, unsigned int flags)
{
	struct kfd_gpreempt_version version;

	if (flags & GPREEMPT_ATTACH_PAUSE)
		return WAY_PAUSE;
	if (flags & GPREEMPT_ATTACH_DEBUG || gkfd_ext_open(ctx->k, &version) < 0)
		return WAY_DEBUG;
	return WAY_EXT;
}

int amd_open_backend(struct gpreempt_ctx *ctx, unsigned int flags, struct gpu_backend **ret)
{
	enum way way = choose_way(ctx, flags);
	bool unguarded = flags & GPREEMPT_ATTACH_LOOK_ONLY && gpreempt_is_modelled(ctx);
	bool guarded = way != WAY_EXT && !unguarded;
	struct gpu_backend **b = &ctx->backends[unguarded ? MAX_WAYS + way : way];
	char why[GPU_WHY_SIZE] = "";
	struct gkfd_backend_options options = {
		.ext = way == WAY_EXT ? GKFD_EXT_ONLY : GKFD_EXT_NEVER,
		.way = way == WAY_PAUSE ? GKFD_BY_PAUSE : GKFD_BY_DEBUG,
		.named_only = true,
		.why = why,
	};
	int r = ctx_open_device(ctx);

	if (r >= 0 && guarded)
		r = ctx_start_guard(ctx);
	if (r < 0)
		return r;
	options.guard = guarded ? ctx->guard : NULL;
	if (!*b)
		r = gkfd_backend_open(gkfd_ref(ctx->k), &options, b);
	*ret = *b;
	return r < 0 ? ctx_fail_errno(ctx, r, why[0] ? why : "attach") : 0;
}

EXPORT int gpreempt_attach(struct gpreempt_ctx *ctx, pid_t pid, unsigned int flags,
			   struct gpreempt_process **ret)
{
	struct gpreempt_process *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return ctx_fail_errno(ctx, -ENOMEM, "attach");
	*p = (struct gpreempt_process){ .ctx = ctx, .pid = pid, .over_fd = -1, .poll_fd = -1 };
	p->look_only = flags & GPREEMPT_ATTACH_LOOK_ONLY;
	r = ctx->vendor->open_backend(ctx, flags, &p->b);
	LIST_INSERT_HEAD(&ctx->processes, p, link);
	if (r >= 0) {
		ctx_call_begin(ctx);
		r = process_attach(p);
		ctx_call_end(ctx);
	}
	if (r < 0) {
		gpreempt_detach(p);
		return r;
	}
	*ret = p;
	return 0;
}

EXPORT struct gpreempt_process *gpreempt_detach(struct gpreempt_process *p)
{
	if (!p)
		return NULL;
	ctx_call_begin(p->ctx);
	process_detach(p);
	LIST_REMOVE(p, link);
	ctx_call_end(p->ctx);
	gkfd_mqds_done(&p->mqds);
	free(p);
	return NULL;
}

EXPORT pid_t gpreempt_process_pid(const struct gpreempt_process *p)
{
	return p->pid;
}

EXPORT int gpreempt_process_fd(const struct gpreempt_process *p)
{
	return p->poll_fd;
}

EXPORT int gpreempt_process_check(struct gpreempt_process *p)
{
	int r = process_check(p);

	if (r < 0)
		ctx_call_end(p->ctx);
	return r;
}
