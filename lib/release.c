/* SPDX-License-Identifier: MIT */
/* Ending holds, whoever made them. */
#include <errno.h>
#include <string.h>

#include "lib/daemon_internal.h"

struct result {
	pid_t *ret;
	size_t max, n;
	struct gpreempt_error error; /* the first */
	struct gpreempt_daemon *daemon; /* NULL: none that answers */
	struct gpreempt_daemon_status status; /* the daemon's */
};

static void note_released(struct result *res, pid_t pid)
{
	if (res->n < res->max)
		res->ret[res->n] = pid;
	res->n++;
}

/* @ctx has the failure. */
static void note_failure(struct gpreempt_ctx *ctx, struct result *res)
{
	if (!res->error.error)
		res->error = ctx->last;
}

/* A living daemon lets go of one job when asked, and need not end for it. */
static void find_daemon(struct gpreempt_ctx *ctx, struct result *res)
{
	res->status.size = sizeof(res->status);
	if (ctx->alone || gpreempt_daemon_open(NULL, &res->daemon, NULL) < 0)
		return;
	gpreempt_daemon_set_timeout(res->daemon, DAEMON_RELEASE_NS);
	if (gpreempt_daemon_get_status(res->daemon, &res->status) < 0)
		res->daemon = gpreempt_daemon_close(res->daemon);
}

/* What a daemon has of a software GPU is a model to it, by whatever name that was opened. */
static bool has_our_gpus(const struct gpreempt_ctx *ctx, const struct gpreempt_daemon_status *s)
{
	return s->modelled == ctx->modelled &&
	       (s->modelled || strcmp(s->backend, ctx->driver->name) == 0);
}

/* Who traces it, if anybody does, is a process of its own: only the daemon knows whom it has. */
static bool is_daemons(struct gpreempt_ctx *ctx, const struct result *res, pid_t pid)
{
	_cleanup_free_ struct gpreempt_daemon_job *jobs = NULL;
	int room, n;

	if (!res->daemon || !has_our_gpus(ctx, &res->status))
		return false;
	room = gpreempt_daemon_get_jobs(res->daemon, NULL, 0);
	jobs = room > 0 ? calloc((size_t)room, sizeof(*jobs)) : NULL;
	if (!jobs)
		return false;
	jobs[0].size = sizeof(*jobs);
	n = gpreempt_daemon_get_jobs(res->daemon, jobs, (size_t)room);
	for (int i = 0; i < MIN(n, room); i++)
		if (jobs[i].pid == pid && jobs[i].attached)
			return true;
	return false;
}

/* True: that settles it. Otherwise the daemon hangs or is gone, and its end is the way. */
static bool release_by_daemon(struct gpreempt_ctx *ctx, pid_t pid, struct result *res)
{
	int r = gpreempt_daemon_release(res->daemon, pid);

	if (r > 0)
		note_released(res, pid);
	if (r >= 0)
		return true;
	if (r == -ETIMEDOUT || r == -ECONNRESET || r == -EPROTO) {
		res->daemon = gpreempt_daemon_close(res->daemon);
		return false;
	}
	gpreempt_daemon_get_error(res->daemon, &ctx->last);
	note_failure(ctx, res);
	return true;
}

/*
 * What the kernel's scheduler holds for a daemon: the daemon has it left alone for a while, else it
 * would give the class again; the kernel lets go when it looks next. True: that settles it.
 */
static bool release_by_kernel(struct gpreempt_ctx *ctx, pid_t pid, struct result *res)
{
	if (!res->daemon || !res->status.kernel || !(ctx->has & GPREEMPT_HAS_SCHEDULER) ||
	    gkfd_ext_bind(ctx->k, pid) < 0 || gkfd_ext_is_scheduled_off(ctx->k, pid, 0) != 1)
		return false;
	if (gpreempt_daemon_release(res->daemon, pid) < 0)
		return false;
	note_released(res, pid);
	return true;
}

static void release_one(struct gpreempt_ctx *ctx, pid_t pid, struct result *res, bool named)
{
	int r;

	if (is_daemons(ctx, res, pid) && release_by_daemon(ctx, pid, res))
		return;
	if (release_by_kernel(ctx, pid, res))
		return;
	r = ctx->vendor->release(ctx, pid, named);
	if (r > 0)
		note_released(res, pid);
	if (r < 0)
		note_failure(ctx, res);
}

EXPORT int gpreempt_list_pids(struct gpreempt_ctx *ctx, pid_t *ret, size_t max)
{
	_cleanup_free_ pid_t *pids = NULL;
	size_t n = 0;
	int r;

	ctx_clear_error(ctx);
	r = ctx->vendor->list(ctx, &pids, &n);
	if (r < 0)
		return r;
	if (n && max)
		memcpy(ret, pids, MIN(n, max) * sizeof(*pids));
	return (int)n;
}

EXPORT int gpreempt_release(struct gpreempt_ctx *ctx, const pid_t *pids, size_t n, pid_t *ret,
			    size_t max)
{
	struct result res = { .ret = ret, .max = max };
	_cleanup_free_ pid_t *all = NULL;
	bool named = pids;
	int r = 0;

	ctx_clear_error(ctx);
	/* Ending a stranger's session costs what is attached its resumption at our death. */
	if (!LIST_EMPTY(&ctx->processes))
		return ctx_fail(ctx, -EBUSY, GPREEMPT_ERROR_USAGE, "detach from them first",
				"the caller is attached to processes itself");
	find_daemon(ctx, &res);
	if (!named)
		r = ctx->vendor->list(ctx, &all, &n);
	for (size_t i = 0; r >= 0 && i < n; i++)
		release_one(ctx, named ? pids[i] : all[i], &res, named);
	gpreempt_daemon_close(res.daemon);
	if (r < 0)
		return r;
	if (res.error.error)
		ctx->last = res.error;
	return res.n == 0 && res.error.error ? res.error.error : (int)res.n;
}
