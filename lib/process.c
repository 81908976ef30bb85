/* SPDX-License-Identifier: MIT */
/*
 * Attaching to processes: the library as a client of gpu/backend.h that waits. Each way to hold
 * (levels) is a backend of its own, opened when the first process is attached by it.
 */
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "lib/internal.h"

/* ---- what backends have to say ---- */

static struct gpreempt_process *process_of(struct gpreempt_ctx *ctx, const struct gpu_target *t)
{
	struct gpreempt_process *p;

	LIST_FOREACH(p, &ctx->processes, link)
		if (p->target == t)
			return p;
	return NULL;
}

static void note(struct gpreempt_process *p, const struct gpu_done *done)
{
	if (done->verb != GPU_ENDED) {
		p->done = *done;
		p->waits = false;
		return;
	}
	p->over = done->result;
	p->over_why = done->why;
	eventfd_write(p->over_fd, 1);
}

void process_hear(struct gpreempt_ctx *ctx, struct gpu_backend *b)
{
	struct gpu_done done;

	while (b->ops->take(b, &done) == 1) {
		struct gpreempt_process *p = process_of(ctx, done.target);

		if (p)
			note(p, &done);
	}
}

static bool any_waits(struct gpreempt_process *const *procs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (procs[i]->waits)
			return true;
	return false;
}

void process_await(struct gpreempt_process *const *procs, size_t n)
{
	struct gpu_backend *b = procs[0]->b;
	struct pollfd fd = { .fd = b->ops->fd(b), .events = POLLIN };

	if (b->ops->submit)
		b->ops->submit(b);
	process_hear(procs[0]->ctx, b);
	while (any_waits(procs, n)) {
		poll(&fd, 1, -1);
		process_hear(procs[0]->ctx, b);
	}
}

int process_begun(struct gpreempt_process *p, int r, const char *what)
{
	p->waits = r >= 0;
	return r < 0 ? ctx_fail_errno(p->ctx, r, what) : 0;
}

int process_fail(struct gpreempt_process *p)
{
	return ctx_fail_why(p->ctx, p->done.result, &p->done.why);
}

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

/* ---- coming and going ---- */

static int watch(int epoll, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

/* Readable once it is over, and whenever there is something to hear that may say so. */
static int open_fds(struct gpreempt_process *p)
{
	int r;

	p->over_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	p->poll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (p->over_fd < 0 || p->poll_fd < 0)
		return -errno;
	r = watch(p->poll_fd, p->over_fd);
	return r < 0 ? r : watch(p->poll_fd, p->b->ops->fd(p->b));
}

static int attach(struct gpreempt_process *p)
{
	const struct gpu_attach request = { .pid = p->pid };
	int r = open_fds(p);

	if (r < 0)
		return ctx_fail_errno(p->ctx, r, "attach");
	r = process_begun(p, p->b->ops->attach(p->b, &request, 0, &p->target), "attach");
	if (r < 0)
		return r;
	process_await(&p, 1);
	return p->done.result < 0 ? process_fail(p) : 0;
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
		r = attach(p);
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
	if (p->target && p->b->ops->release(p->target, 0) >= 0) {
		p->waits = true;
		process_await(&p, 1);
	}
	p->target = NULL;
	closep(&p->over_fd);
	closep(&p->poll_fd);
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

int process_check(struct gpreempt_process *p)
{
	process_hear(p->ctx, p->b);
	return p->over < 0 ? ctx_fail_why(p->ctx, p->over, &p->over_why) : 0;
}

EXPORT int gpreempt_process_check(struct gpreempt_process *p)
{
	int r = process_check(p);

	if (r < 0)
		ctx_call_end(p->ctx);
	return r;
}

/* ---- backends: the caller's own life, and made up time ---- */

void backends_promise(struct gpreempt_ctx *ctx, uint64_t allow_ns)
{
	for (size_t i = 0; i < ARRAY_SIZE(ctx->backends); i++) {
		struct gpu_backend *b = ctx->backends[i];

		if (b && b->ops->promise)
			b->ops->promise(b, b->ops->now_ns(b) + allow_ns);
	}
}

void backends_tick(struct gpreempt_ctx *ctx)
{
	for (size_t i = 0; i < ARRAY_SIZE(ctx->backends); i++) {
		struct gpu_backend *b = ctx->backends[i];

		if (b && b->caps.made_up_time && b->ops->tick)
			b->ops->tick(b);
	}
}

void backends_close(struct gpreempt_ctx *ctx)
{
	for (size_t i = 0; i < ARRAY_SIZE(ctx->backends); i++) {
		struct gpu_backend *b = steal_ptr(&ctx->backends[i]);

		if (b)
			b->ops->close(b);
	}
}
