/* SPDX-License-Identifier: MIT */
/* Taking queues off the GPU and back: one call of the driver for all processes. */
#include <errno.h>
#include <string.h>

#include "lib/ext.h"
#include "lib/model_stats.h"

/* Between ext_enter() and ext_leave(). */
struct batch {
	struct gpreempt_process *const *procs;
	size_t n;
	struct kfd_gpreempt_entry *entries; /* those of all processes, one after the other */
	uint32_t n_entries;
	struct kfd_gpreempt_batch call;
	uint32_t queues;
};

static int fail(const struct gpreempt_process *p, int r, const struct gkfd_failure *f)
{
	return ctx_fail_target(p->ctx, r, p->pid, f);
}

static int check_ids(const struct gpreempt_process *p, const uint32_t *ids, size_t n)
{
	struct gkfd_failure failure = { .why = GKFD_WHY_TOO_MANY_QUEUES };

	if (n > KFD_GPREEMPT_MAX_ENTRIES)
		return fail(p, -EINVAL, &failure);
	failure.why = GKFD_WHY_DUPLICATE_QUEUE;
	for (size_t i = 0; i < n; i++) {
		failure.queue_id = ids[i];
		for (size_t j = 0; j < i; j++)
			if (ids[i] == ids[j])
				return fail(p, -EINVAL, &failure);
	}
	return 0;
}

static bool holds(struct gpreempt_ctx *ctx, const struct ext_attached *a)
{
	return a->holds && gpreempt_now_ns(ctx) < MIN(a->until_ns, a->lapses_ns);
}

static int check_one(const struct gpreempt_process *p)
{
	struct ext_attached *a = p->ext;
	int r = ext_check(p->ctx->ext, a);

	if (r < 0)
		return fail(p, r, &a->failure);
	if (holds(p->ctx, a))
		return fail(p, -EALREADY, &(struct gkfd_failure){ .why = GKFD_WHY_ALREADY_HELD });
	return 0;
}

/* @ids NULL: one entry for all queues. */
static int list_entries(struct ext_attached *a, const uint32_t *ids, size_t n)
{
	ext_note_free(a);
	a->n_entries = ids ? (uint32_t)n : 1;
	a->entries = calloc(a->n_entries, sizeof(*a->entries));
	if (!a->entries)
		return -ENOMEM;
	for (uint32_t i = 0; i < a->n_entries; i++)
		a->entries[i] = gkfd_ext_entry(a->pid, a->start_ticks,
					       ids ? ids[i] : KFD_GPREEMPT_ALL_QUEUES);
	return 0;
}

/* Whatever their processes have in their lists. */
static int collect(struct batch *b)
{
	size_t n = 0;

	for (size_t i = 0; i < b->n; i++)
		n += b->procs[i]->ext->n_entries;
	if (n > KFD_GPREEMPT_MAX_ENTRIES)
		return ctx_fail(b->procs[0]->ctx, -EINVAL, GPREEMPT_ERROR_USAGE,
				"hold fewer at once", "the driver takes %u processes at once",
				KFD_GPREEMPT_MAX_ENTRIES);
	b->entries = calloc(MAX(n, (size_t)1), sizeof(*b->entries));
	if (!b->entries)
		return ctx_fail_errno(b->procs[0]->ctx, -ENOMEM, "suspend");
	for (size_t i = 0; i < b->n; i++) {
		const struct ext_attached *a = b->procs[i]->ext;

		if (a->n_entries)
			memcpy(b->entries + b->n_entries, a->entries,
			       a->n_entries * sizeof(*a->entries));
		b->n_entries += a->n_entries;
	}
	return 0;
}

static struct gpreempt_process *process_of(const struct batch *b,
					   const struct kfd_gpreempt_entry *e)
{
	for (size_t i = 0; i < b->n; i++)
		if (b->procs[i]->pid == (pid_t)e->pid)
			return b->procs[i];
	return b->procs[0];
}

/* The first that went wrong, rather than one that was not tried for that. */
static const struct kfd_gpreempt_entry *find_failed(const struct batch *b)
{
	const struct kfd_gpreempt_entry *failed = NULL;

	for (uint32_t i = 0; i < b->n_entries; i++) {
		const struct kfd_gpreempt_entry *e = &b->entries[i];

		if (e->result && (!failed || failed->result == -ECANCELED))
			failed = e;
	}
	return failed;
}

static int fail_entry(const struct batch *b, const struct kfd_gpreempt_entry *e, int result)
{
	const struct gpreempt_process *p = process_of(b, e);
	struct gkfd_failure failure = { 0 };
	int r = gkfd_ext_explain(p->ctx->k, e, result, &failure);

	return fail(p, r, &failure);
}

/* What could be taken off comes back. */
static void undo(struct batch *b)
{
	struct kfd_gpreempt_batch back = { .grace = KFD_GPREEMPT_DEFAULT_GRACE };
	uint32_t n = 0;

	for (uint32_t i = 0; i < b->n_entries; i++)
		if (b->entries[i].result == 0)
			b->entries[n++] = b->entries[i];
	if (n)
		gkfd_ext_map(b->procs[0]->ctx->k, b->entries, n, &back);
}

static int unmap(struct batch *b, uint64_t until_ns)
{
	struct gpreempt_ctx *ctx = b->procs[0]->ctx;
	uint64_t asked_ns = gpreempt_now_ns(ctx);
	const struct kfd_gpreempt_entry *failed;
	int r;

	b->call.hold_ms = ext_hold_ms(ctx->ext, until_ns);
	r = gkfd_ext_unmap(ctx->k, b->entries, b->n_entries, &b->call);
	if (r < 0)
		return fail_entry(b, &b->entries[0], r);
	failed = find_failed(b);
	if (failed) {
		r = fail_entry(b, failed, failed->result);
		undo(b);
		return r;
	}
	for (uint32_t i = 0; i < b->n_entries; i++)
		b->queues += b->entries[i].queues;
	for (size_t i = 0; i < b->n; i++) {
		b->procs[i]->ext->until_ns = until_ns;
		ext_note_held(ctx->ext, b->procs[i]->ext, asked_ns, b->call.hold_ms);
	}
	return 0;
}

static int suspend_here(struct batch *b, const uint32_t *ids, size_t n_ids,
			const struct gpreempt_suspend_options *o)
{
	struct gpreempt_ctx *ctx = b->procs[0]->ctx;
	uint64_t until_ns;
	int r = 0;

	for (size_t i = 0; i < b->n && r >= 0; i++) {
		r = check_one(b->procs[i]);
		if (r >= 0 && list_entries(b->procs[i]->ext, ids, n_ids) < 0)
			r = ctx_fail_errno(ctx, -ENOMEM, "suspend");
	}
	if (r >= 0)
		r = collect(b);
	if (r < 0)
		return r;
	r = ext_keep(ctx->ext);
	if (r < 0)
		return ctx_fail_errno(ctx, r, "starting a thread");
	if (!o->longest_ns ||
	    __builtin_add_overflow(gpreempt_now_ns(ctx), o->longest_ns, &until_ns))
		until_ns = UINT64_MAX;
	b->call.grace = o->grace_kclk;
	return unmap(b, until_ns);
}

static void free_all(const struct batch *b)
{
	for (size_t i = 0; i < b->n; i++)
		if (!b->procs[i]->ext->holds)
			ext_note_free(b->procs[i]->ext);
}

static void begin(const struct batch *b)
{
	struct gpreempt_ctx *ctx = b->procs[0]->ctx;

	ctx_call_begin(ctx);
	ext_enter(ctx->ext);
}

static int end(struct batch *b, int r, struct gpreempt_timing *timing)
{
	struct gpreempt_ctx *ctx = b->procs[0]->ctx;

	ext_leave(ctx->ext);
	ctx_call_end(ctx);
	free(b->entries);
	if (r < 0)
		return r;
	timing->call_ns = b->call.took_ns;
	timing->queues = b->queues;
	return 0;
}

int ext_suspend(struct gpreempt_process *const *procs, size_t n, const uint32_t *ids, size_t n_ids,
		const struct gpreempt_suspend_options *options, struct gpreempt_timing *timing)
{
	struct gpreempt_ctx *ctx = procs[0]->ctx;
	struct batch b = { .procs = procs, .n = n };
	struct gpreempt_suspend_options o;
	uint64_t save_ns_before;
	int r = suspend_options(ctx, &o, options);

	if (r >= 0 && ids)
		r = check_ids(procs[0], ids, n_ids);
	if (r < 0)
		return r;
	save_ns_before = model_save_ns(ctx);
	begin(&b);
	r = suspend_here(&b, ids, n_ids, &o);
	if (r < 0)
		free_all(&b);
	r = end(&b, r, timing);
	if (r < 0)
		return r;
	timing->has_save_ns = gpreempt_is_modelled(ctx);
	timing->save_ns = model_save_ns(ctx) - save_ns_before;
	return 0;
}

/* Who was let go before, or has not the queue any more, runs: that is what was wanted. */
static bool runs_again(int result)
{
	return result == 0 || result == -EALREADY || result == -ENOENT;
}

static int map(struct batch *b)
{
	struct gpreempt_ctx *ctx = b->procs[0]->ctx;
	int r, first = 0;

	b->call.grace = KFD_GPREEMPT_DEFAULT_GRACE;
	r = gkfd_ext_map(ctx->k, b->entries, b->n_entries, &b->call);
	if (r < 0)
		return fail_entry(b, &b->entries[0], r);
	for (uint32_t i = 0; i < b->n_entries; i++) {
		b->queues += b->entries[i].queues;
		if (first == 0 && !runs_again(b->entries[i].result))
			first = fail_entry(b, &b->entries[i], b->entries[i].result);
	}
	return first;
}

/* Whatever goes wrong, it is not renewed any more, and the driver lets go by itself. */
static int resume_here(struct batch *b)
{
	struct gpreempt_ctx *ctx = b->procs[0]->ctx;
	int first = 0, r;

	for (size_t i = 0; i < b->n; i++) {
		struct ext_attached *a = b->procs[i]->ext;

		if (ext_check(ctx->ext, a) < 0 && first == 0)
			first = fail(b->procs[i], a->error, &a->failure);
	}
	r = collect(b);
	if (r >= 0 && b->n_entries)
		r = map(b);
	for (size_t i = 0; i < b->n; i++)
		ext_note_free(b->procs[i]->ext);
	return first ? first : r;
}

int ext_resume(struct gpreempt_process *const *procs, size_t n, struct gpreempt_timing *timing)
{
	struct batch b = { .procs = procs, .n = n };

	begin(&b);
	return end(&b, resume_here(&b), timing);
}

bool ext_holds(const struct gpreempt_process *p)
{
	bool r;

	if (!p->ext)
		return false; /* being detached */
	ext_enter(p->ctx->ext);
	r = holds(p->ctx, p->ext);
	ext_leave(p->ctx->ext);
	return r;
}

int ext_held(const struct gpreempt_process *p, uint32_t *ret, size_t max)
{
	_cleanup_free_ struct kfd_gpreempt_queue *queues = NULL;
	size_t n = 0;
	int room;

	if (!ext_holds(p))
		return 0;
	room = gkfd_ext_queues(p->ctx->k, p->pid, p->ext->start_ticks, &queues);
	for (int i = room - 1; i >= 0; i--) {
		if (!(queues[i].flags & KFD_GPREEMPT_QUEUE_MINE))
			continue;
		if (n < max)
			ret[n] = queues[i].queue_id;
		n++;
	}
	return (int)n;
}
