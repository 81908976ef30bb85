/* SPDX-License-Identifier: MIT */
#include "gpu/kfd/look.h"

#include <errno.h>

#include "gpu/kfd/procs.h"
#include "util/macros.h"

/* So many queues are followed at a time, and so many packets of each: the first decide. */
#define LOOK_QUEUES 64
#define LOOK_PACKETS 8
/* So often a queue with packets is believed to have them still, as no pointer says otherwise. */
#define TRUST 15
/* Pointers no further apart are read as one; ROCm has them in one struct, 72 bytes apart. */
#define NEAR_BYTES 128

struct seen { /* of one queue, at the last look */
	struct gkfd_look_queue at;
	uint64_t read, write;
	uint64_t now_read, now_write; /* as they are being looked at */
	uint32_t span, n_spans; /* of the look's: two, or one where they lie together */
	bool settled; /* idle, and stays so until a pointer moves */
	uint32_t trust; /* so many looks it may stay busy without a pointer moving */
	uint64_t together[NEAR_BYTES / sizeof(uint64_t)]; /* both and what is between */
};

struct gkfd_look {
	pid_t pid;
	size_t n;
	struct seen *seen;
	struct gkfd_span *spans;
	size_t n_spans;
	struct gkfd_mem mem;
	bool stale;
};

struct gkfd_look_room {
	struct gkfd_progress_room *room;
	struct gkfd_queue_addr followed[LOOK_QUEUES];
	struct gkfd_progress progress[LOOK_QUEUES];
	uint32_t index[LOOK_QUEUES]; /* queues that are followed together */
	size_t n;
};

struct looking { /* one look */
	struct gkfd *k;
	struct gkfd_look *l;
	struct gkfd_look_room *room;
	struct gpu_sample *samples;
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

static bool is_read(const struct gkfd_look *l, size_t i)
{
	const struct seen *s = &l->seen[i];

	return l->spans[s->span].ok && l->spans[s->span + s->n_spans - 1].ok;
}

/*
 * Read as one, the write pointer may be older than the read pointer, but it was no less when that
 * was read.
 */
static void take_pointers(struct gkfd_look *l, size_t i)
{
	struct seen *s = &l->seen[i];
	const struct gkfd_queue_addr *addr = &s->at.addr;
	uint64_t low = l->spans[s->span].addr;

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

/* What was followed of one queue. */
static void take_progress(struct gkfd_look *l, struct seen *s, const struct gkfd_progress *p,
			  struct gpu_sample *sample)
{
	if (!p->pointers_known || s->now_read < s->read || s->now_write < s->write) {
		l->stale = true; /* another queue by now, or none */
		s->settled = false;
		s->trust = 0;
	}
	if (!p->pointers_known)
		return;
	s->read = s->now_read;
	s->write = s->now_write;
	s->settled = can_settle(p);
	s->trust = p->state == GKFD_QUEUE_PENDING ? TRUST : 0;
	sample->read = s->read;
	sample->write = s->write;
	sample->state = state_of(p);
}

static void follow(const struct looking *lk)
{
	struct gkfd_look_room *room = lk->room;
	struct gkfd_look *l = lk->l;

	for (size_t i = 0; i < room->n; i++) {
		const struct seen *s = &l->seen[room->index[i]];

		room->followed[i] = s->at.addr;
		room->progress[i].read_index = s->now_read;
		room->progress[i].write_index = s->now_write;
	}
	gkfd_progress_follow(lk->k, l->pid, &l->mem, room->room, room->followed, room->n,
			     room->progress);
	for (size_t i = 0; i < room->n; i++) {
		uint32_t at = room->index[i];

		take_progress(l, &l->seen[at], &room->progress[i], &lk->samples[at]);
	}
	room->n = 0;
}

/* Nobody on the GPU at this instant: whatever was consumed is finished. */
static bool is_unoccupied(const struct looking *lk, uint32_t gpu)
{
	uint32_t occupancy;

	return gkfd_proc_occupancy(lk->k, lk->l->pid, gpu, &occupancy) == 0 && occupancy == 0;
}

struct answer {
	uint32_t gpu;
	bool idle;
};

static bool ask_once(const struct looking *lk, uint32_t gpu, struct answer *answers, size_t *n)
{
	bool idle;

	for (size_t i = 0; i < *n; i++) {
		if (answers[i].gpu == gpu)
			return answers[i].idle;
	}
	if (*n == GPU_NODES_MAX)
		return false;
	idle = is_unoccupied(lk, gpu);
	answers[(*n)++] = (struct answer){ gpu, idle };
	return idle;
}

/* What memory left open. */
static void settle_unknown(const struct looking *lk)
{
	struct answer answers[GPU_NODES_MAX];
	size_t n_answers = 0;

	for (size_t i = 0; i < lk->l->n; i++) {
		struct seen *s = &lk->l->seen[i];

		if (lk->samples[i].state != GPU_UNKNOWN || !is_read(lk->l, i) || has_moved(s) ||
		    !ask_once(lk, s->at.gpu, answers, &n_answers))
			continue;
		lk->samples[i].state = GPU_IDLE;
		s->settled = s->read == s->write;
	}
}

static struct gpu_sample last_sample(const struct seen *s)
{
	return (struct gpu_sample){
		.gpu = s->at.gpu,
		.queue = s->at.queue,
		.read = s->read,
		.write = s->write,
		.state = GPU_UNKNOWN,
	};
}

static struct gpu_sample hidden_sample(const struct seen *s)
{
	return (struct gpu_sample){ .gpu = s->at.gpu, .queue = s->at.queue, .state = GPU_UNSEEN };
}

/* How many could not be read. */
static size_t look_at_all(const struct looking *lk)
{
	struct gkfd_look_room *room = lk->room;
	struct gkfd_look *l = lk->l;
	size_t unread = 0;

	for (size_t i = 0; i < l->n; i++) {
		lk->samples[i] = last_sample(&l->seen[i]);
		if (!is_read(l, i)) {
			lk->samples[i] = hidden_sample(&l->seen[i]);
			unread++;
			continue;
		}
		take_pointers(l, i);
		if (is_known(&l->seen[i], &lk->samples[i].state))
			continue;
		room->index[room->n++] = (uint32_t)i;
		if (room->n == LOOK_QUEUES)
			follow(lk);
	}
	if (room->n > 0)
		follow(lk);
	return unread;
}

/* A file kept open is of a program that may have been replaced since. */
static void forget_memory(struct gkfd_look *l)
{
	closep(&l->mem.fd);
	l->mem = GKFD_MEM_NONE;
}

int gkfd_look(struct gkfd *k, struct gkfd_look *l, struct gkfd_look_room *room, bool held,
	      struct gpu_sample *ret)
{
	const struct looking lk = { .k = k, .l = l, .room = room, .samples = ret };
	size_t unread, unknown = 0;
	int r = gkfd_read_mem(k, l->pid, &l->mem, l->spans, l->n_spans);

	if (r < 0)
		return r;
	l->stale = false;
	unread = look_at_all(&lk);
	for (size_t i = 0; i < l->n; i++)
		unknown += ret[i].state == GPU_UNKNOWN;
	/* Of a process that is held nobody is on the GPU, finished or not. */
	if (unknown > 0 && !held)
		settle_unknown(&lk);
	if (unread > 0)
		forget_memory(l);
	return l->stale || unread > 0;
}

/* ---- beginning and end ---- */

int gkfd_look_room_new(struct gkfd_look_room **ret)
{
	struct gkfd_look_room *room = calloc(1, sizeof(*room));
	int r;

	if (!room)
		return -ENOMEM;
	r = gkfd_progress_room_new(LOOK_QUEUES, LOOK_PACKETS, &room->room);
	if (r < 0) {
		free(room);
		return r;
	}
	*ret = room;
	return 0;
}

void gkfd_look_room_free(struct gkfd_look_room *room)
{
	if (room)
		gkfd_progress_room_free(room->room);
	free(room);
}

static void add_queue(struct gkfd_look *l, const struct gkfd_look_queue *q)
{
	struct seen *seen = &l->seen[l->n];
	struct gkfd_span *spans = &l->spans[l->n_spans];
	uint64_t read = q->addr.read_ptr_addr, write = q->addr.write_ptr_addr;
	uint64_t low = MIN(read, write), bytes = MAX(read, write) - low;

	*seen = (struct seen){ .at = *q, .span = (uint32_t)l->n_spans };
	if (bytes % sizeof(uint64_t) == 0 && bytes <= NEAR_BYTES - sizeof(uint64_t)) {
		spans[0] = (struct gkfd_span){ low, seen->together, bytes + sizeof(uint64_t) };
		seen->n_spans = 1;
	} else {
		/* In this order: a write pointer read later is no less than the read pointer. */
		spans[0] = (struct gkfd_span){ read, &seen->now_read, sizeof(uint64_t) };
		spans[1] = (struct gkfd_span){ write, &seen->now_write, sizeof(uint64_t) };
		seen->n_spans = 2;
	}
	l->n++;
	l->n_spans += seen->n_spans;
}

int gkfd_look_new(pid_t pid, const struct gkfd_look_queue *queues, size_t n, struct gkfd_look **ret)
{
	struct gkfd_look *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->pid = pid;
	l->mem = GKFD_MEM_NONE;
	l->seen = calloc(n + 1, sizeof(*l->seen));
	l->spans = calloc(n + 1, 2 * sizeof(*l->spans));
	if (!l->seen || !l->spans) {
		gkfd_look_free(l);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++)
		add_queue(l, &queues[i]);
	*ret = l;
	return 0;
}

void gkfd_look_free(struct gkfd_look *l)
{
	if (!l)
		return;
	closep(&l->mem.fd);
	free(l->seen);
	free(l->spans);
	free(l);
}

/* ---- in the reader ---- */

struct gkfd_lookers {
	struct gkfd *k;
	struct gkfd_look_room *room;
	struct gkfd_look *looks[GKFD_LOOKS]; /* by id; NULL: none */
};

int gkfd_lookers_new(struct gkfd *k, struct gkfd_lookers **ret)
{
	struct gkfd_lookers *all = calloc(1, sizeof(*all));
	int r;

	if (!all)
		return -ENOMEM;
	all->k = k;
	r = gkfd_look_room_new(&all->room);
	if (r < 0) {
		free(all);
		return r;
	}
	*ret = all;
	return 0;
}

int gkfd_look_serve(struct gkfd_lookers *all, pid_t pid, const void *request, size_t len,
		    struct reader_room *room)
{
	const struct gkfd_look_request *head = request;
	struct gkfd_look **look;
	size_t bytes;
	int r = 0;

	if (len < sizeof(*head) || head->id >= GKFD_LOOKS)
		return -EINVAL;
	look = &all->looks[head->id];
	if (head->flags & GKFD_LOOK_NEW) {
		if ((len - sizeof(*head)) / sizeof(struct gkfd_look_queue) < head->n)
			return -EINVAL;
		gkfd_look_free(steal_ptr(look));
		r = gkfd_look_new(pid, (const void *)(head + 1), head->n, look);
	}
	if (r < 0)
		return r;
	if (!*look || (*look)->pid != pid)
		return -ENOENT;
	bytes = (*look)->n * sizeof(struct gpu_sample);
	if (bytes > room->max)
		return -ENOSPC;
	room->len = bytes;
	return gkfd_look(all->k, *look, all->room, head->flags & GKFD_LOOK_HELD,
			 (struct gpu_sample *)(void *)room->at);
}
