/* SPDX-License-Identifier: MIT */
/* Attaching to one process: its descriptors are borrowed, and it does not notice. */
#include <errno.h>
#include <sys/eventfd.h>

#include "lib/nvrm.h"
#include "lib/nvrm_keeper.h"

static int start_keeper(struct gpreempt_ctx *ctx)
{
	int r;

	if (ctx->nvrm->keeper)
		return 0;
	r = keeper_new(ctx->nvrm->n, &ctx->nvrm->keeper);
	return r < 0 ? ctx_fail_errno(ctx, r, "starting a thread") : 0;
}

static int prepare(struct gpreempt_process *p)
{
	struct gpreempt_ctx *ctx = p->ctx;
	int r;

	if (p->pauses)
		return nv_cannot(ctx, "way to pause whole processes (level K1)",
				 "leave the level out, or name N2");
	r = nv_check_driver(ctx);
	/* Nothing is done to a process that is only looked at. */
	if (r >= 0 && !p->look_only)
		r = ctx_start_guard(ctx);
	return r < 0 ? r : start_keeper(ctx);
}

static int open_process(struct gpreempt_process *p, struct nv_attached *a)
{
	struct nv_keeper *k = p->ctx->nvrm->keeper;
	struct nvrm_failure failure = { 0 };
	int r;

	ctx_call_begin(p->ctx);
	keeper_enter(k);
	r = nvrm_process_open(p->ctx->nvrm->n, p->pid, p->look_only ? NULL : p->ctx->guard,
			      &a->process, &failure);
	if (r >= 0) {
		r = keeper_add(k, a);
		if (r < 0)
			nvrm_process_close(a->process);
	}
	keeper_leave(k);
	ctx_call_end(p->ctx);
	return r < 0 ? ctx_fail_nvrm(p->ctx, r, p->pid, &failure) : 0;
}

int nv_attach(struct gpreempt_process *p)
{
	_cleanup_free_ struct nv_attached *a = NULL;
	_cleanup_close_ int over_fd = -1;
	int r = prepare(p);

	if (r < 0)
		return r;
	a = calloc(1, sizeof(*a));
	if (!a)
		return ctx_fail_errno(p->ctx, -ENOMEM, "attach");
	over_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (over_fd < 0)
		return ctx_fail_errno(p->ctx, -errno, "attach");
	a->over_fd = over_fd;
	a->resume_at_ns = UINT64_MAX;
	r = open_process(p, a);
	if (r < 0)
		return r;
	steal_fd(&over_fd);
	p->nvrm = steal_ptr(&a);
	return 0;
}

void nv_detach(struct gpreempt_process *p)
{
	struct nv_keeper *k = p->ctx->nvrm->keeper;

	keeper_enter(k);
	keeper_remove(k, p->nvrm);
	keeper_leave(k);
	closep(&p->nvrm->over_fd);
	free(steal_ptr(&p->nvrm));
}

int nv_attached_fd(const struct gpreempt_process *p)
{
	return p->nvrm->over_fd;
}

int nv_check(struct gpreempt_process *p)
{
	struct nv_keeper *k = p->ctx->nvrm->keeper;
	struct nvrm_failure failure;
	int r;

	keeper_enter(k);
	r = keeper_check(k, p->nvrm);
	failure = p->nvrm->failure;
	keeper_leave(k);
	ctx_call_end(p->ctx);
	return r < 0 ? ctx_fail_nvrm(p->ctx, r, p->pid, &failure) : 0;
}

/* *ret is the caller's to free. */
static int copy_groups(const struct nvrm_process *process, struct gpreempt_queue **ret,
		       size_t *ret_n)
{
	struct gpreempt_queue *queues;

	queues = calloc(process->n_groups ? process->n_groups : 1, sizeof(*queues));
	if (!queues)
		return -ENOMEM;
	for (size_t i = 0; i < process->n_groups; i++)
		queues[i] = nv_describe_group(process, &process->groups[i]);
	*ret = queues;
	*ret_n = process->n_groups;
	return 0;
}

int nv_snapshot(struct gpreempt_process *p, struct gpreempt_queue **ret, size_t *ret_n)
{
	struct nv_keeper *k = p->ctx->nvrm->keeper;
	struct nv_attached *a = p->nvrm;
	struct nvrm_failure failure = { 0 };
	int r;

	ctx_call_begin(p->ctx);
	keeper_enter(k);
	r = keeper_check(k, a);
	if (r < 0)
		failure = a->failure;
	if (r >= 0)
		r = nvrm_process_refresh(a->process, &failure);
	if (r >= 0)
		r = copy_groups(a->process, ret, ret_n);
	keeper_leave(k);
	ctx_call_end(p->ctx);
	return r < 0 ? ctx_fail_nvrm(p->ctx, r, p->pid, &failure) : 0;
}
