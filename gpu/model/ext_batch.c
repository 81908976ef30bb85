/* SPDX-License-Identifier: MIT */
/* A batch: some queues off, others on, of any processes on any GPUs; what became of it. */
#include <errno.h>
#include <string.h>

#include "gpu/model/driver.h"

#define BATCH_FLAGS (KFD_GPREEMPT_ASYNC | KFD_GPREEMPT_VICTIMS_ONLY)
#define SELECTIVE_FLAGS \
	(BATCH_FLAGS | KFD_GPREEMPT_KEEP_MQD | KFD_GPREEMPT_KEEP_STATE | KFD_GPREEMPT_NO_CWSR)

static int check_batch(const struct ext_call *c, const struct kfd_gpreempt_batch *a, uint32_t flags)
{
	uint64_t n = (uint64_t)a->n_unmap + a->n_map;

	if (!n || n > KFD_GPREEMPT_MAX_ENTRIES || a->flags & ~flags ||
	    a->hold_ms > KFD_GPREEMPT_MAX_HOLD_MS)
		return -EINVAL;
	if (a->grace != KFD_GPREEMPT_DEFAULT_GRACE && (a->grace < 1 || a->grace > 255))
		return -EINVAL;
	if (a->flags & KFD_GPREEMPT_NO_CWSR)
		return -EOPNOTSUPP;
	if (a->flags & KFD_GPREEMPT_VICTIMS_ONLY && c->m->config.ext != MODEL_EXT_VICTIMS)
		return -EOPNOTSUPP;
	/* Tickets are told of by poll(), which /dev/kfd has not. */
	if (c->file->own && (a->flags & KFD_GPREEMPT_ASYNC || a->timeout_ms))
		return -EOPNOTSUPP;
	return 0;
}

/* ---- doing it ---- */

static int resolve(const struct ext_call *c, const struct kfd_gpreempt_batch *a,
		   const struct kfd_gpreempt_entry *entries, struct ext_batch *b)
{
	for (uint32_t i = 0; i < b->n; i++) {
		const struct kfd_gpreempt_entry *e = &entries[i];
		struct ext_item *item = &b->items[i];

		if (e->pad)
			return -EINVAL;
		item->e = *e;
		item->e.queues = 0;
		item->map = i >= a->n_unmap;
		item->e.result = model_ext_target(c, e->pid, e->start_ticks, &item->process);
	}
	return 0;
}

static bool is_part_of(const struct model_queue *q, const struct ext_item *item,
		       const struct ext_change *c)
{
	return q->gpu == c->gpu && q->ext.mark == c->mark &&
	       (item->e.gpu_id == KFD_GPREEMPT_ANY_GPU || item->e.gpu_id == c->gpu->id) &&
	       (item->e.queue_id == KFD_GPREEMPT_ALL_QUEUES || item->e.queue_id == q->id);
}

/* Everything of the process that was to change there, and who lost a queue in a reset. */
static void note_failure(struct ext_batch *b, const struct ext_change *c)
{
	for (uint32_t i = 0; i < b->n; i++) {
		struct ext_item *item = &b->items[i];
		struct model_queue *q = item->process ? item->process->queues : NULL;

		for (; q; q = q->next) {
			if (!is_part_of(q, item, c) || !(c->result || q->pdd->has_reset_queue))
				continue;
			if (!item->e.result)
				item->e.result = c->result ? c->result : -EIO;
		}
	}
}

static void do_batch(const struct ext_call *c, const struct kfd_gpreempt_batch *a,
		     struct ext_batch *b)
{
	struct ext_change changes[MODEL_MAX_GPUS];

	model_ext_changes(c->m, changes, c->caller->pid);
	for (uint32_t i = 0; i < c->m->config.n_gpus; i++) {
		changes[i].grace = a->grace;
		changes[i].victims_wanted = a->flags & KFD_GPREEMPT_VICTIMS_ONLY;
		model_ext_apply(b, &changes[i]);
	}
	model_ext_commit(c->m, changes);
	for (uint32_t i = 0; i < c->m->config.n_gpus; i++) {
		note_failure(b, &changes[i]);
		b->told.cycles += changes[i].cycled;
		b->told.victims += changes[i].victims;
		b->told.fence_ns = MAX(b->told.fence_ns, changes[i].cycle_ns);
	}
	for (uint32_t i = 0; i < b->n; i++)
		if (b->items[i].process && !b->items[i].matched)
			b->items[i].e.result = -ENOENT;
	b->told.took_ns = model_now_ns(c->m) - c->began_ns;
	b->told.n = b->n;
	for (uint32_t i = 0; i < b->n; i++)
		b->told.done += !b->items[i].e.result;
}

/* ---- tickets ---- */

void model_ext_free_tickets(struct ext_file *f)
{
	for (uint32_t i = 0; i < f->n_tickets; i++)
		free(f->tickets[i]);
}

/* All are done. */
static int take_ticket(struct ext_file *f, uint64_t ticket, uint32_t room, struct ext_batch **ret)
{
	uint32_t i = 0;

	while (i < f->n_tickets && ticket && f->tickets[i]->told.ticket != ticket)
		i++;
	if (i == f->n_tickets)
		return ticket ? -ENOENT : -EAGAIN;
	if (f->tickets[i]->n > room)
		return -ENOSPC;
	*ret = f->tickets[i];
	f->n_tickets--;
	memmove(&f->tickets[i], &f->tickets[i + 1], (f->n_tickets - i) * sizeof(f->tickets[0]));
	return 0;
}

static int write_results(const struct model *m, const struct ext_batch *b, uint64_t user)
{
	for (uint32_t i = 0; i < b->n; i++) {
		uint64_t at = user + i * sizeof(struct kfd_gpreempt_entry);
		const struct ext_item *item = &b->items[i];

		if (model_copy_to_user(m, at + offsetof(struct kfd_gpreempt_entry, result),
				       &item->e.result, sizeof(item->e.result)) < 0 ||
		    model_copy_to_user(m, at + offsetof(struct kfd_gpreempt_entry, queues),
				       &item->e.queues, sizeof(item->e.queues)) < 0)
			return -EFAULT;
	}
	return 0;
}

int model_ext_collect(struct ext_call *c, void *data)
{
	struct kfd_gpreempt_collect *a = data;
	_cleanup_free_ struct ext_batch *b = NULL;
	int r;

	r = take_ticket(c->file, a->ticket, a->n, &b);
	if (r < 0)
		return r;
	b->told.entries = a->entries;
	*a = b->told;
	return write_results(c->m, b, a->entries);
}

/* ---- calls ---- */

/* Whether the caller has gone on by then. */
static bool is_left_alone(const struct kfd_gpreempt_batch *a, const struct ext_batch *b)
{
	return a->flags & KFD_GPREEMPT_ASYNC ||
	       (a->timeout_ms && b->told.took_ns > a->timeout_ms * NSEC_PER_MSEC);
}

/* *ret_b: the batch, where it has not become a ticket. */
static int run_batch(const struct ext_call *c, struct kfd_gpreempt_batch *a,
		     const struct kfd_gpreempt_entry *entries, struct ext_batch **ret_b)
{
	uint64_t hold_ms = a->hold_ms ? a->hold_ms : KFD_GPREEMPT_MAX_HOLD_MS;
	_cleanup_free_ struct ext_batch *b = NULL;
	bool may_leave = a->flags & KFD_GPREEMPT_ASYNC || a->timeout_ms;
	uint32_t n = a->n_unmap + a->n_map;
	int r;

	b = calloc(1, sizeof(*b) + n * sizeof(b->items[0]));
	if (!b)
		return -ENOMEM;
	b->n = n;
	b->holder = c->file->own ? EXT_ITSELF : EXT_HOLDER;
	b->owner = c->file->id;
	b->until_ns = c->began_ns + hold_ms * NSEC_PER_MSEC;
	r = resolve(c, a, entries, b);
	if (r < 0)
		return r;
	if (may_leave && c->file->n_tickets >= KFD_GPREEMPT_MAX_TICKETS)
		return -ENOSPC;
	if (may_leave)
		b->told.ticket = ++c->file->last_ticket;
	do_batch(c, a, b);
	if (is_left_alone(a, b)) {
		a->ticket = b->told.ticket;
		c->file->tickets[c->file->n_tickets++] = steal_ptr(&b);
		return a->flags & KFD_GPREEMPT_ASYNC ? 0 : -ETIME;
	}
	a->cycles = b->told.cycles;
	a->victims = b->told.victims;
	a->fence_ns = b->told.fence_ns;
	a->took_ns = b->told.took_ns;
	r = (int)b->told.done;
	*ret_b = steal_ptr(&b);
	return r;
}

int model_ext_batch(struct ext_call *c, void *data)
{
	bool selective = c->nr == _IOC_NR(KFD_GPREEMPT_SELECTIVE_UNMAP);
	bool map =
		c->nr == _IOC_NR(KFD_GPREEMPT_FAST_REMAP) || c->nr == _IOC_NR(KFD_GPREEMPT_SWITCH);
	bool unmap = c->nr != _IOC_NR(KFD_GPREEMPT_FAST_REMAP);
	_cleanup_free_ struct kfd_gpreempt_entry *entries = NULL;
	_cleanup_free_ struct ext_batch *b = NULL;
	struct kfd_gpreempt_batch *a = data;
	size_t n = (size_t)a->n_unmap + a->n_map;
	int r = check_batch(c, a, selective ? SELECTIVE_FLAGS : BATCH_FLAGS);

	if (r < 0)
		return r;
	if (!!a->n_unmap != unmap || !!a->n_map != map)
		return -EINVAL;
	a->ticket = 0;
	entries = calloc(n, sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	r = model_copy_from_user(c->m, entries, a->entries, n * sizeof(*entries));
	if (r < 0)
		return r;
	r = run_batch(c, a, entries, &b);
	if (b && write_results(c->m, b, a->entries) < 0)
		return -EFAULT;
	return r;
}

int model_ext_one(struct ext_call *c, void *data)
{
	bool sets = c->nr == _IOC_NR(KFD_GPREEMPT_SET_QUEUE_STATE);
	struct kfd_gpreempt_one *one = data;
	bool map = c->nr == _IOC_NR(KFD_GPREEMPT_RESUME_QUEUE) || one->state == KFD_GPREEMPT_ACTIVE;
	_cleanup_free_ struct ext_batch *b = NULL;
	struct kfd_gpreempt_batch a = {
		.n_unmap = !map,
		.n_map = map,
		.flags = one->flags,
		.grace = one->grace,
		.hold_ms = one->hold_ms,
		.timeout_ms = one->timeout_ms,
	};
	struct kfd_gpreempt_entry entry = {
		.pid = one->pid,
		.queue_id = one->queue_id,
		.gpu_id = one->gpu_id,
		.start_ticks = one->start_ticks,
	};
	int r = check_batch(c, &a, BATCH_FLAGS);

	if (one->state > (sets ? KFD_GPREEMPT_ACTIVE : 0))
		return -EINVAL;
	if (r < 0)
		return r;
	r = run_batch(c, &a, &entry, &b);
	one->ticket = a.ticket;
	if (r >= 0 && b)
		r = b->items[0].e.result;
	return sets && r == -EALREADY ? 0 : r; /* it is what it is to be */
}
