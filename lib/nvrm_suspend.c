/* SPDX-License-Identifier: MIT */
/* Taking channel groups off the GPU and back. */
#include <errno.h>
#include <string.h>

#include "lib/nvrm.h"
#include "lib/nvrm_keeper.h"

static int check_options(struct gpreempt_ctx *ctx, struct gpreempt_suspend_options *o,
			 const struct gpreempt_suspend_options *given)
{
	int r = suspend_take_options(ctx, o, given);

	if (r < 0)
		return r;
	if (o->grace_kclk)
		return nv_cannot(ctx, "grace period", "leave it out: what runs is saved at once");
	return 0;
}

/* ---- between keeper_enter() and keeper_leave() ---- */

struct batch {
	struct gpreempt_process *const *procs;
	size_t n;
	struct nvrm_process **processes; /* those that are there; room for n */
	size_t n_processes;
	uint64_t began_ns, done_ns;
	uint32_t groups; /* that are off, or were */
};

static int fail(const struct gpreempt_process *p, int r, const struct nvrm_failure *f)
{
	return ctx_fail_nvrm(p->ctx, r, p->pid, f);
}

static int check_one(struct batch *b, struct gpreempt_process *p)
{
	struct nvrm_failure failure = { 0 };
	struct nv_attached *a = p->nvrm;
	int r = keeper_check(p->ctx->nvrm->keeper, a);

	if (r < 0)
		return fail(p, r, &a->failure);
	if (nvrm_groups_off(a->process, NVRM_ALL_GPUS))
		return ctx_fail(p->ctx, -EALREADY, GPREEMPT_ERROR_USAGE, "resume first",
				"process %d is held already", (int)p->pid);
	r = nvrm_process_refresh(a->process, &failure);
	if (r < 0)
		return fail(p, r, &failure);
	b->processes[b->n_processes++] = a->process;
	return 0;
}

static struct nvrm_group *find_group(struct nvrm_process *process, uint32_t id)
{
	for (size_t i = 0; i < process->n_groups; i++)
		if (nvrm_group_id(process, &process->groups[i]) == id)
			return &process->groups[i];
	return NULL;
}

/* Only these, or, with NULL, all. */
static int choose(struct gpreempt_process *p, const uint32_t *ids, size_t n)
{
	struct nvrm_process *process = p->nvrm->process;

	for (size_t i = 0; i < process->n_groups; i++)
		process->groups[i].spared = ids != NULL;
	for (size_t i = 0; ids && i < n; i++) {
		struct nvrm_group *g = find_group(process, ids[i]);

		if (!g)
			return ctx_fail(p->ctx, -EINVAL, GPREEMPT_ERROR_ABSENT,
					"see what it has with: gpreempt queues PID",
					"process %d has no channel group %u", (int)p->pid, ids[i]);
		if (!g->spared)
			return ctx_fail(p->ctx, -EINVAL, GPREEMPT_ERROR_USAGE, "name each once",
					"channel group %u is named twice", ids[i]);
		g->spared = false;
	}
	return 0;
}

/* Whoever ended while it was held, or could not be, must not leave the others off. */
static int undo(struct batch *b, struct gpreempt_process *p, int r,
		const struct nvrm_failure *failure)
{
	nvrm_let_go(b->processes, b->n_processes, NVRM_ALL_GPUS, &(struct nvrm_failure){ 0 });
	return fail(p, r, failure);
}

static int hold(struct batch *b)
{
	struct gpreempt_ctx *ctx = b->procs[0]->ctx;
	struct nvrm_failure failure = { 0 };
	uint64_t off_ns = 0;
	int r;

	b->began_ns = nv_now_ns(ctx);
	r = nvrm_hold(b->processes, b->n_processes, NVRM_ALL_GPUS, &off_ns, &failure);
	b->done_ns = nv_now_ns(ctx);
	if (r < 0)
		return undo(b, b->procs[0], r, &failure);
	for (size_t i = 0; i < b->n; i++) {
		struct nv_attached *a = b->procs[i]->nvrm;

		r = keeper_check(ctx->nvrm->keeper, a);
		if (r < 0) {
			b->processes[i] = b->processes[--b->n_processes];
			return undo(b, b->procs[i], r, &a->failure);
		}
		b->groups += (uint32_t)nvrm_groups_off(a->process, NVRM_ALL_GPUS);
	}
	return 0;
}

static void note_held(const struct batch *b, const struct gpreempt_suspend_options *o, bool whole)
{
	uint64_t at_ns;

	if (!o->longest_ns || __builtin_add_overflow(b->began_ns, o->longest_ns, &at_ns))
		at_ns = UINT64_MAX;
	for (size_t i = 0; i < b->n; i++) {
		b->procs[i]->nvrm->whole = whole;
		b->procs[i]->nvrm->resume_at_ns = at_ns;
	}
	if (at_ns != UINT64_MAX)
		keeper_wake(b->procs[0]->ctx->nvrm->keeper);
}

static int suspend_here(struct batch *b, const uint32_t *ids, size_t n_ids,
			const struct gpreempt_suspend_options *o)
{
	int r = 0;

	for (size_t i = 0; i < b->n && r >= 0; i++) {
		r = check_one(b, b->procs[i]);
		if (r >= 0)
			r = choose(b->procs[i], ids, n_ids);
	}
	if (r >= 0)
		r = hold(b);
	if (r >= 0)
		note_held(b, o, ids == NULL);
	return r;
}

static int resume_here(struct batch *b)
{
	struct gpreempt_ctx *ctx = b->procs[0]->ctx;
	struct nvrm_failure failure = { 0 };
	int r = 0, gone = 0;

	for (size_t i = 0; i < b->n; i++) {
		struct nv_attached *a = b->procs[i]->nvrm;

		gone = keeper_check(ctx->nvrm->keeper, a);
		if (gone < 0) {
			r = r < 0 ? r : fail(b->procs[i], gone, &a->failure);
			continue;
		}
		b->groups += (uint32_t)nvrm_groups_off(a->process, NVRM_ALL_GPUS);
		a->whole = false;
		a->resume_at_ns = UINT64_MAX;
		b->processes[b->n_processes++] = a->process;
	}
	b->began_ns = nv_now_ns(ctx);
	gone = nvrm_let_go(b->processes, b->n_processes, NVRM_ALL_GPUS, &failure);
	b->done_ns = nv_now_ns(ctx);
	if (gone >= 0)
		return r;
	/* Closing them undoes it as well, and is the last that can be tried. */
	for (size_t i = 0; i < b->n; i++)
		keeper_give_up(ctx->nvrm->keeper, b->procs[i]->nvrm, gone, &failure);
	return fail(b->procs[0], gone, &failure);
}

/* ---- for the caller ---- */

static int begin(struct batch *b)
{
	struct gpreempt_ctx *ctx = b->procs[0]->ctx;

	b->processes = calloc(b->n, sizeof(struct nvrm_process *));
	if (!b->processes)
		return ctx_fail_errno(ctx, -ENOMEM, "suspend");
	ctx_call_begin(ctx);
	keeper_enter(ctx->nvrm->keeper);
	return 0;
}

static int end(struct batch *b, int r, struct gpreempt_timing *timing)
{
	struct gpreempt_ctx *ctx = b->procs[0]->ctx;

	keeper_leave(ctx->nvrm->keeper);
	ctx_call_end(ctx);
	free(b->processes);
	if (r < 0)
		return r;
	timing->call_ns = b->done_ns - b->began_ns;
	timing->queues = b->groups;
	return 0;
}

int nv_suspend(struct gpreempt_process *const *procs, size_t n, const uint32_t *ids, size_t n_ids,
	       const struct gpreempt_suspend_options *options, struct gpreempt_timing *timing)
{
	struct batch b = { .procs = procs, .n = n };
	struct gpreempt_suspend_options o;
	int r = check_options(procs[0]->ctx, &o, options);

	if (r >= 0)
		r = begin(&b);
	return r < 0 ? r : end(&b, suspend_here(&b, ids, n_ids, &o), timing);
}

int nv_resume(struct gpreempt_process *const *procs, size_t n, struct gpreempt_timing *timing)
{
	struct batch b = { .procs = procs, .n = n };
	int r = begin(&b);

	return r < 0 ? r : end(&b, resume_here(&b), timing);
}

int nv_held(const struct gpreempt_process *p, uint32_t *ret, size_t max)
{
	struct nv_keeper *k = p->ctx->nvrm->keeper;
	const struct nvrm_process *process;
	size_t n = 0;

	if (!p->nvrm)
		return 0; /* being detached */
	keeper_enter(k);
	process = p->nvrm->process;
	for (size_t i = 0; process && i < process->n_groups; i++) {
		if (!process->groups[i].off)
			continue;
		if (n < max)
			ret[n] = nvrm_group_id(process, &process->groups[i]);
		n++;
	}
	keeper_leave(k);
	return (int)n;
}

bool nv_holds(const struct gpreempt_process *p)
{
	return nv_held(p, NULL, 0) > 0;
}
