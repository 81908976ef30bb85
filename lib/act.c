/* SPDX-License-Identifier: MIT */
#include "lib/act.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "util/array.h"

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
	uint64_t one = 1;

	if (done->verb != GPU_ENDED) {
		p->done = *done;
		p->waits = false;
		return;
	}
	p->over = done->result;
	p->over_why = done->why;
	while (write(p->over_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

static void hear(struct gpreempt_ctx *ctx, struct gpu_backend *b)
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

/* Until what was asked of all of them is done. Where somebody stands still the guard ends it. */
static void await(struct gpreempt_process *const *procs, size_t n)
{
	struct gpu_backend *b = procs[0]->b;
	struct pollfd fd = { .fd = b->ops->fd(b), .events = POLLIN };

	if (b->ops->submit)
		b->ops->submit(b);
	for (hear(procs[0]->ctx, b); any_waits(procs, n); hear(procs[0]->ctx, b))
		poll(&fd, 1, -1);
}

/* @r: of the call that began it. */
static int begun(struct gpreempt_process *p, int r, const char *what)
{
	p->waits = r >= 0;
	return r < 0 ? ctx_fail_errno(p->ctx, r, what) : 0;
}

static int fail(struct gpreempt_process *p)
{
	return ctx_fail_why(p->ctx, p->done.result, &p->done.why);
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

void process_detach(struct gpreempt_process *p)
{
	if (p->target && p->b->ops->release(p->target, 0) >= 0) {
		p->waits = true;
		await(&p, 1);
	}
	p->target = NULL;
	closep(&p->over_fd);
	closep(&p->poll_fd);
}

int process_attach(struct gpreempt_process *p)
{
	const struct gpu_attach request = { .pid = p->pid };
	int r = open_fds(p);

	if (r < 0)
		return ctx_fail_errno(p->ctx, r, "attach");
	r = begun(p, p->b->ops->attach(p->b, &request, 0, &p->target), "attach");
	if (r < 0)
		return r;
	await(&p, 1);
	return p->done.result < 0 ? fail(p) : 0;
}

int process_check(struct gpreempt_process *p)
{
	hear(p->ctx, p->b);
	return p->over < 0 ? ctx_fail_why(p->ctx, p->over, &p->over_why) : 0;
}

/* ---- holding ---- */

bool process_holds(const struct gpreempt_process *p)
{
	return p->target && p->b->ops->holds(p->target);
}

int process_held(const struct gpreempt_process *p, uint32_t **ret)
{
	_cleanup_free_ uint32_t *ids = NULL;
	int n = 0, now;

	ctx_call_begin(p->ctx); /* whoever knows may be waiting for the driver */
	if (process_holds(p))
		n = p->b->ops->held(p->target, NULL, 0);
	ids = calloc((size_t)n + 1, sizeof(*ids));
	now = ids && n ? p->b->ops->held(p->target, ids, (size_t)n) : 0;
	ctx_call_end(p->ctx);
	if (!ids)
		return -ENOMEM;
	n = MIN(n, now);
	qsort(ids, (size_t)n, sizeof(*ids), compare_u32);
	*ret = steal_ptr(&ids);
	return n;
}

/* Whoever was taken off though another could not be comes back. */
static int undo(struct gpreempt_process *const *procs, size_t n)
{
	struct gpreempt_error why = procs[0]->ctx->last;

	for (size_t i = 0; i < n; i++)
		if (process_holds(procs[i]))
			process_resume(&procs[i], 1, &(struct gpreempt_timing){ 0 });
	procs[0]->ctx->last = why;
	return why.error;
}

/* Before anybody is touched. */
static int check_hold(struct gpreempt_process *p)
{
	int r = process_check(p);

	if (r < 0)
		return r;
	if (process_holds(p))
		return ctx_fail(p->ctx, -EALREADY, GPREEMPT_ERROR_USAGE, "resume it first",
				"process %d is already held by the caller", (int)p->pid);
	return 0;
}

/* Answers are told apart by their process. */
static int begin_hold(struct gpreempt_process *p, const struct gpu_hold *hold)
{
	if (p->waits)
		return ctx_fail(p->ctx, -EINVAL, GPREEMPT_ERROR_USAGE, "name each process once",
				"process %d is named twice", (int)p->pid);
	return begun(p, p->b->ops->suspend(p->target, hold, 0), "suspend");
}

/* Adds up what became of them. -errno of the first that failed. */
static int end_calls(struct gpreempt_process *const *procs, size_t n,
		     struct gpreempt_timing *timing)
{
	int r = 0;

	for (size_t i = 0; i < n; i++) {
		const struct gpu_done *d = &procs[i]->done;

		if (d->result < 0 && r == 0)
			r = fail(procs[i]);
		timing->queues += d->queues;
		timing->call_ns = MAX(timing->call_ns,
				      d->took_ns ? d->took_ns : d->done_ns - d->began_ns);
	}
	return r;
}

int process_suspend(struct gpreempt_process *const *procs, size_t n, const struct gpu_hold *hold,
		struct gpreempt_timing *timing)
{
	size_t begun = 0;
	int r = 0;

	for (size_t i = 0; i < n && r >= 0; i++)
		r = check_hold(procs[i]);
	while (begun < n && r >= 0) {
		r = begin_hold(procs[begun], hold);
		begun += r >= 0;
	}
	if (begun)
		await(procs, begun);
	if (r >= 0)
		r = end_calls(procs, n, timing);
	return r < 0 ? undo(procs, begun) : 0;
}

/* Whatever is wrong with one, the others are asked for; the first failure is told. */
int process_resume(struct gpreempt_process *const *procs, size_t n, struct gpreempt_timing *timing)
{
	struct gpreempt_ctx *ctx = procs[0]->ctx;
	struct gpreempt_error first = { 0 };
	int r;

	for (size_t i = 0; i < n; i++) {
		struct gpreempt_process *p = procs[i];

		if (p->waits)
			continue; /* named twice */
		p->done = (struct gpu_done){ 0 };
		r = process_check(p);
		if (r >= 0)
			r = begun(p, p->b->ops->resume(p->target, NULL, 0, 0), "resume");
		if (r < 0 && !first.error)
			first = ctx->last;
	}
	await(procs, n);
	r = end_calls(procs, n, timing);
	if (!first.error)
		return r;
	ctx->last = first;
	return first.error;
}

/* ---- the caller's own life, and made up time ---- */

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
