/* SPDX-License-Identifier: MIT */
/* Attaching to one process: it does not notice. */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "gpu/kfd/find.h"
#include "lib/ext.h"

bool ext_is_usable(struct gpreempt_ctx *ctx)
{
	struct kfd_gpreempt_version version;

	return gkfd_ext_open(ctx->k, &version) >= 0;
}

static void free_attached(struct ext_attached *a)
{
	if (!a)
		return;
	closep(&a->pidfd);
	closep(&a->over_fd);
	closep(&a->poll_fd);
	free(a->entries);
	free(a);
}

static void free_attachedp(struct ext_attached **a)
{
	free_attached(*a);
}

static int watch(const struct ext_attached *a, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	return epoll_ctl(a->poll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static int open_fds(struct gkfd *k, struct ext_attached *a)
{
	int r;

	a->over_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (a->over_fd >= 0)
		a->poll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (a->poll_fd < 0)
		return -errno;
	a->pidfd = k->transport->trace->pidfd(k->data, a->pid);
	if (a->pidfd < 0 && a->pidfd != -ENOSYS)
		return a->pidfd;
	r = watch(a, a->over_fd);
	return r < 0 || a->pidfd < 0 ? r : watch(a, a->pidfd);
}

/* Whether it is one that can be held, and by us. */
static int try_process(struct gkfd *k, const struct ext_attached *a, struct gkfd_failure *failure)
{
	struct kfd_gpreempt_entry e =
		gkfd_ext_entry(a->pid, a->start_ticks, KFD_GPREEMPT_ALL_QUEUES);
	_cleanup_free_ struct kfd_gpreempt_queue *queues = NULL;
	int r = gkfd_ext_bind(k, a->pid);

	if (r >= 0)
		r = gkfd_ext_queues(k, a->pid, a->start_ticks, &queues);
	return r < 0 ? gkfd_ext_explain(k, &e, r, failure) : 0;
}

static int new_attached(struct gkfd *k, pid_t pid, struct ext_attached **ret,
			struct gkfd_failure *failure)
{
	_cleanup_(free_attachedp) struct ext_attached *a = calloc(1, sizeof(*a));
	struct gkfd_proc_ident ident;
	int r;

	if (!a)
		return -ENOMEM;
	*a = (struct ext_attached){ .pid = pid, .pidfd = -1, .over_fd = -1, .poll_fd = -1 };
	r = gkfd_process_find(k, pid, &ident, failure);
	if (r < 0)
		return r;
	a->start_ticks = ident.start_ticks;
	r = open_fds(k, a);
	if (r < 0)
		return r;
	r = try_process(k, a, failure);
	if (r < 0)
		return r;
	*ret = steal_ptr(&a);
	return 0;
}

static int attach(struct gpreempt_process *p)
{
	struct gkfd_failure failure = { .step = "attach" };
	struct gpreempt_ctx *ctx = p->ctx;
	int r = ctx_open_device(ctx);

	if (r < 0)
		return r;
	if (!ctx->ext) {
		r = ext_keeper_new(ctx->k, &ctx->ext);
		if (r < 0)
			return ctx_fail_errno(ctx, r, "attach");
	}
	r = new_attached(ctx->k, p->pid, &p->ext, &failure);
	if (r < 0)
		return ctx_fail_target(ctx, r, p->pid, &failure);
	ext_enter(ctx->ext);
	ext_add(ctx->ext, p->ext);
	ext_leave(ctx->ext);
	return 0;
}

static void detach(struct gpreempt_process *p)
{
	if (ext_holds(p))
		ext_resume(&p, 1, &(struct gpreempt_timing){ 0 });
	ext_enter(p->ctx->ext);
	ext_remove(p->ext);
	ext_leave(p->ctx->ext);
	free_attached(steal_ptr(&p->ext));
}

static int attached_fd(const struct gpreempt_process *p)
{
	return p->ext->poll_fd;
}

static int check(struct gpreempt_process *p)
{
	struct gkfd_failure failure;
	int r;

	ext_enter(p->ctx->ext);
	r = ext_check(p->ctx->ext, p->ext);
	failure = p->ext->failure;
	ext_leave(p->ctx->ext);
	ctx_call_end(p->ctx);
	return r < 0 ? ctx_fail_target(p->ctx, r, p->pid, &failure) : 0;
}

const struct process_ops ext_process = {
	.attach = attach,
	.detach = detach,
	.fd = attached_fd,
	.check = check,
	.snapshot = ext_snapshot,
	.suspend = ext_suspend,
	.resume = ext_resume,
	.holds = ext_holds,
	.held = ext_held,
};
