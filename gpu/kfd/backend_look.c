/* SPDX-License-Identifier: MIT */
/*
 * One look at a process's queues: the pointers of all in one read, and only where they have moved,
 * or the queue was not seen idle with them, the packets and signals behind them.
 */
#include <errno.h>

#include "gpu/kfd/backend_ext.h"
#include "gpu/kfd/procs.h"
#include "util/macros.h"

/* So often a queue with packets is believed to have them still, as no pointer says otherwise. */
#define TRUST 15

struct chunk { /* queues that are followed together */
	uint32_t index[LOOK_QUEUES];
	size_t n;
};

/*
 * A queue that waits at a barrier for somebody else's signal needs no GPU until it comes: to whom
 * it may matter, it is idle. What runs is busy also while it is held: its signal is not done.
 */
static enum gpu_state state_of(const struct gkfd_progress *p)
{
	switch (p->state) {
	case GKFD_QUEUE_PENDING:
	case GKFD_QUEUE_RUNNING:
		return GPU_BUSY;
	case GKFD_QUEUE_IDLE:
	case GKFD_QUEUE_BLOCKED:
		return GPU_IDLE;
	case GKFD_QUEUE_UNKNOWN:
	default:
		return p->pending > 0 ? GPU_BUSY : GPU_UNKNOWN;
	}
}

/* What is reserved already may be published without a pointer moving. */
static bool can_settle(const struct gkfd_progress *p)
{
	return p->state == GKFD_QUEUE_IDLE && p->read_index == p->write_index;
}

static bool has_moved(const struct seen *s)
{
	return s->now_read != s->read || s->now_write != s->write;
}

static bool is_read(const struct gpu_watch *w, size_t i)
{
	const struct seen *s = &w->seen[i];

	return w->spans[s->span].ok && w->spans[s->span + s->n_spans - 1].ok;
}

/*
 * Read as one, the write pointer may be older than the read pointer, but it was no less when that
 * was read.
 */
static void take_pointers(struct gpu_watch *w, size_t i)
{
	const struct gkfd_queue_addr *addr = &w->addrs[i];
	struct seen *s = &w->seen[i];
	uint64_t low = w->spans[s->span].addr;

	if (s->n_spans > 1)
		return;
	s->now_read = s->together[(addr->read_ptr_addr - low) / sizeof(uint64_t)];
	s->now_write = s->together[(addr->write_ptr_addr - low) / sizeof(uint64_t)];
	if (addr->write_ptr_addr < addr->read_ptr_addr)
		s->now_write = MAX(s->now_write, s->now_read);
}

/* What is known without looking further, since no pointer has moved. */
static bool is_known(struct seen *s, enum gpu_state *ret)
{
	if (has_moved(s) || (!s->settled && s->trust == 0))
		return false;
	if (!s->settled)
		s->trust--;
	*ret = s->settled ? GPU_IDLE : GPU_BUSY;
	return true;
}

static void follow(struct gpu_watch *w, struct chunk *c, struct gpu_sample *samples)
{
	struct backend *b = w->b;

	for (size_t i = 0; i < c->n; i++) {
		const struct seen *s = &w->seen[c->index[i]];

		b->followed[i] = w->addrs[c->index[i]];
		b->progress[i].read_index = s->now_read;
		b->progress[i].write_index = s->now_write;
	}
	gkfd_progress_follow(b->k, w->pid, &w->mem, b->room, b->followed, c->n, b->progress);
	for (size_t i = 0; i < c->n; i++) {
		const struct gkfd_progress *p = &b->progress[i];
		struct seen *s = &w->seen[c->index[i]];

		if (!p->pointers_known || s->now_read < s->read || s->now_write < s->write) {
			w->stale = true; /* another queue by now, or none */
			s->settled = false;
			s->trust = 0;
		}
		if (!p->pointers_known)
			continue;
		s->read = s->now_read;
		s->write = s->now_write;
		s->settled = can_settle(p);
		s->trust = p->state == GKFD_QUEUE_PENDING ? TRUST : 0;
		samples[c->index[i]].read = s->read;
		samples[c->index[i]].write = s->write;
		samples[c->index[i]].state = state_of(p);
	}
	c->n = 0;
}

/* Nobody on the GPU at this instant: whatever was consumed is finished. */
static bool is_unoccupied(struct gpu_watch *w, uint32_t gpu)
{
	uint32_t occupancy;

	return gkfd_proc_occupancy(w->b->k, w->pid, gpu, &occupancy) == 0 && occupancy == 0;
}

struct answer {
	uint32_t gpu;
	bool idle;
};

static bool ask_once(struct gpu_watch *w, uint32_t gpu, struct answer *answers, size_t *n)
{
	bool idle;

	for (size_t i = 0; i < *n; i++) {
		if (answers[i].gpu == gpu)
			return answers[i].idle;
	}
	if (*n == GPU_NODES_MAX)
		return false;
	idle = is_unoccupied(w, gpu);
	answers[(*n)++] = (struct answer){ gpu, idle };
	return idle;
}

/* What memory left open. Of a process that is held nobody is on the GPU, finished or not. */
static void settle_unknown(struct gpu_watch *w, struct gpu_sample *samples, size_t n)
{
	struct answer answers[GPU_NODES_MAX];
	size_t n_answers = 0;

	if (w->b->ext ? ext_holds(w->b, w->pid) : act_holds(w->b, w->pid))
		return;
	for (size_t i = 0; i < n; i++) {
		struct seen *s = &w->seen[i];

		if (samples[i].state != GPU_UNKNOWN || !is_read(w, i) ||
		    has_moved(s) || !ask_once(w, s->gpu, answers, &n_answers))
			continue;
		samples[i].state = GPU_IDLE;
		s->settled = s->read == s->write;
	}
}

static struct gpu_sample last_sample(const struct seen *s)
{
	return (struct gpu_sample){
		.gpu = s->gpu,
		.queue = s->queue,
		.read = s->read,
		.write = s->write,
		.state = GPU_UNKNOWN,
	};
}

static size_t add_unseen(const struct gpu_watch *w, struct gpu_sample *ret, size_t max)
{
	size_t n = MIN(max, w->n_unseen);

	for (size_t i = 0; i < n; i++) {
		ret[i] = last_sample(&w->seen[w->n_known + i]);
		ret[i].state = GPU_UNSEEN;
	}
	return n;
}

/* A file kept open is of a program that may have been replaced since. */
static void forget_memory(struct gpu_watch *w)
{
	closep(&w->mem.fd);
	w->mem = GKFD_MEM_NONE;
}

int watch_look(struct gpu_watch *w, struct gpu_sample *ret, size_t max)
{
	size_t n = MIN(max, w->n_known), unread = 0, unknown = 0;
	struct chunk c = { .n = 0 };
	size_t spans = n ? w->seen[n - 1].span + w->seen[n - 1].n_spans : 0;
	int r = gkfd_read_mem(w->b->k, w->pid, &w->mem, w->spans, spans);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		ret[i] = last_sample(&w->seen[i]);
		if (!is_read(w, i)) {
			unread++;
			continue;
		}
		take_pointers(w, i);
		if (!is_known(&w->seen[i], &ret[i].state)) {
			c.index[c.n++] = (uint32_t)i;
			if (c.n == LOOK_QUEUES)
				follow(w, &c, ret);
		}
	}
	if (c.n > 0)
		follow(w, &c, ret);
	for (size_t i = 0; i < n; i++)
		unknown += ret[i].state == GPU_UNKNOWN;
	if (unknown > unread)
		settle_unknown(w, ret, n);
	if (unread > 0) {
		w->stale = true;
		forget_memory(w);
	}
	return (int)(n + add_unseen(w, ret + n, max - n));
}
