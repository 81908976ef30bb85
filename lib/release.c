/* SPDX-License-Identifier: MIT */
/* Ending holds, whoever made them. */
#include <errno.h>

#include "gpu/kfd/release.h"
#include "lib/internal.h"

struct result {
	pid_t *ret;
	size_t max, n;
	int first_error;
	struct gpreempt_error error;
};

static void release_one(struct gpreempt_ctx *ctx, pid_t pid, struct result *res, bool named)
{
	struct gkfd_failure failure = { 0 };
	int r = gkfd_release_pid(ctx->k, pid, &failure);

	if (r > 0) {
		if (res->n < res->max)
			res->ret[res->n] = pid;
		res->n++;
	}
	if (r >= 0)
		return;
	/* Of all processes: one that ended is let go, and somebody's debugger is no hold. */
	if (!named && (r == -ESRCH || failure.why == GKFD_WHY_TRACED))
		return;
	ctx_fail_target(ctx, r, pid, &failure);
	if (res->first_error == 0) {
		res->first_error = r;
		res->error = ctx->last;
	}
}

static int release_all(struct gpreempt_ctx *ctx, struct result *res)
{
	_cleanup_free_ pid_t *pids = NULL;
	size_t n = 0;
	int r;

	if (!gkfd_pids_are_global(ctx->k))
		return ctx_fail(ctx, -EOPNOTSUPP, GPREEMPT_ERROR_REFUSED,
				"run it on the host, or name the pids",
				"inside a container the holds of the machine cannot be seen");
	r = gkfd_proc_list(ctx->k, &pids, &n);
	if (r < 0)
		return ctx_fail_errno(ctx, r, "the list of GPU processes");
	for (size_t i = 0; i < n; i++)
		if (pids[i] != ctx_own_pid(ctx))
			release_one(ctx, pids[i], res, false);
	return 0;
}

EXPORT int gpreempt_release(struct gpreempt_ctx *ctx, const pid_t *pids, size_t n, pid_t *ret,
			    size_t max)
{
	struct result res = { .ret = ret, .max = max };
	int r;

	ctx_clear_error(ctx);
	/* Ending a stranger's session costs what is attached its resumption at our death. */
	if (!LIST_EMPTY(&ctx->processes))
		return ctx_fail(ctx, -EBUSY, GPREEMPT_ERROR_USAGE, "detach from them first",
				"the caller is attached to processes itself");
	r = ctx_open_device(ctx);
	if (r < 0)
		return r;
	if (!pids) {
		r = release_all(ctx, &res);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; pids && i < n; i++)
		release_one(ctx, pids[i], &res, true);
	if (res.first_error)
		ctx->last = res.error;
	return res.n == 0 && res.first_error ? res.first_error : (int)res.n;
}
