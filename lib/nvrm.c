/* SPDX-License-Identifier: MIT */
#include "lib/nvrm.h"

#include <errno.h>
#include <string.h>

#include "gpu/nvrm/backend.h"

int ctx_fail_nvrm(struct gpreempt_ctx *ctx, int r, pid_t pid, const struct nvrm_failure *f)
{
	struct gpu_why text;

	nvrm_failure_describe(r, pid, f, &text);
	return ctx_fail_why(ctx, r, &text);
}

int nv_check_driver(struct gpreempt_ctx *ctx)
{
	struct nvrm_failure failure = { 0 };
	int r = nvrm_check_version(&ctx->nvrm->version, &failure);

	return r < 0 ? ctx_fail_nvrm(ctx, r, 0, &failure) : 0;
}

uint64_t nv_now_ns(struct gpreempt_ctx *ctx)
{
	const struct nvrm *n = ctx->nvrm->n;

	return n->transport->now_ns(n->data);
}

static void nv_close(struct gpreempt_ctx *ctx)
{
	nvrm_finder_free(ctx->nvrm->finder);
	nvrm_free(ctx->nvrm->n);
	free(steal_ptr(&ctx->nvrm));
}

/* Unless it was named: who has ended, who has nothing to hold, who is not the caller's to touch. */
static bool is_passed_over(int r, enum nvrm_why why)
{
	return r == -ESRCH || why == NVRM_WHY_EXITED || why == NVRM_WHY_NO_CONTEXT ||
	       why == NVRM_WHY_NOT_FOUND || why == NVRM_WHY_NO_RIGHT;
}

static int nv_release(struct gpreempt_ctx *ctx, pid_t pid, bool named)
{
	struct nvrm_failure failure = { 0 };
	int r = nv_check_driver(ctx);

	if (r < 0)
		return r;
	r = nvrm_release_pid(ctx->nvrm->n, pid, &failure);
	if (r < 0 && !named && is_passed_over(r, failure.why))
		return 0;
	return r < 0 ? ctx_fail_nvrm(ctx, r, pid, &failure) : r > 0;
}

/* Nothing is done to a process that is only looked at: no guard has to undo it. */
static int nv_open_backend(struct gpreempt_ctx *ctx, unsigned int flags, struct gpu_backend **ret)
{
	bool looks = flags & GPREEMPT_ATTACH_LOOK_ONLY;
	struct gpu_backend **b = &ctx->backends[looks ? MAX_WAYS : 0];
	char why[GPU_WHY_SIZE] = "";
	struct nvrm_backend_options options = { .untested = true, .why = why };
	int r;

	if (flags & GPREEMPT_ATTACH_PAUSE)
		return ctx_needs(ctx, 0, "way to pause whole processes (level K1)",
				 "leave the level out, or name N2");
	r = nv_check_driver(ctx);
	if (r >= 0 && !looks)
		r = ctx_start_guard(ctx);
	if (r < 0)
		return r;
	options.guard = looks ? NULL : ctx->guard;
	if (!*b)
		r = nvrm_backend_open(nvrm_ref(ctx->nvrm->n), &options, b);
	*ret = *b;
	return r < 0 ? ctx_fail_errno(ctx, r, why[0] ? why : "attach") : 0;
}

static const struct vendor nvidia = {
	.driver = "NVIDIA's driver",
	.open_backend = nv_open_backend,
	.snapshot = nv_snapshot,
	.close = nv_close,
	.now_ns = nv_now_ns,
	.device_info = nv_device_info,
	.gpus = nv_gpus,
	.levels = nv_levels,
	.self_test = nv_self_test,
	.processes = nv_processes,
	.queues = nv_queues,
	.list = nv_list,
	.release = nv_release,
};

static int read_version(struct gpreempt_ctx *ctx, struct nv_device *d)
{
	int r = nvrm_read_version(d->n, &d->version);

	if (r == -ENOENT)
		return ctx_fail(ctx, -ENODEV, GPREEMPT_ERROR_ABSENT,
				"load nvidia, or try without a GPU: --device model",
				"no NVIDIA GPU driver on this machine (no /dev/nvidiactl)");
	return r < 0 ? ctx_fail_errno(ctx, r, "the version of NVIDIA's driver") : 0;
}

int ctx_open_nvrm(struct gpreempt_ctx *ctx, struct nvrm *n)
{
	_cleanup_(nvrm_freep) struct nvrm *owned = n;
	_cleanup_free_ struct nv_device *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return ctx_fail_errno(ctx, -ENOMEM, "opening the device");
	d->n = n;
	r = read_version(ctx, d);
	if (r < 0)
		return r;
	d->n = steal_ptr(&owned);
	snprintf(ctx->backend, sizeof(ctx->backend), "nvrm");
	ctx->nvrm = steal_ptr(&d);
	ctx->vendor = &nvidia;
	return 0;
}
