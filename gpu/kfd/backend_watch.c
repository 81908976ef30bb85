/* SPDX-License-Identifier: MIT */
/* Which queues a process has, and where their pointers are. */
#include <errno.h>
#include <string.h>

#include "gpu/kfd/backend_internal.h"
#include "gpu/kfd/match.h"
#include "gpu/kfd/procs.h"
#include "util/macros.h"

/* What could not be found in it is looked for again later and later. */
#define RETRY_MAX_NS (10 * NSEC_PER_SEC)

static void read_mqds(struct backend *b)
{
	uint64_t now_ns = gkfd_now_ns(b->k);

	if (b->mqds_read && now_ns - b->mqds_ns < MQDS_FRESH_NS)
		return;
	if (!b->mqds_reader && mqds_reader_new(b, &b->mqds_reader) < 0)
		gkfd_mqds_done(&b->mqds);
	b->mqds_read = b->mqds_reader &&
		       mqds_reader_get(b->mqds_reader, b->patience_ns, &b->mqds);
	b->mqds_ns = now_ns;
}

struct fresh { /* what becomes of a watch */
	struct gpu_queue *queues;
	struct gkfd_queue_addr *addrs;
	struct seen *seen;
	struct gkfd_span *spans;
	size_t n, n_known, n_unseen;
	uint32_t n_spans;
	bool kept; /* something as it was before, as nobody could tell anew */
};

static void fresh_done(struct fresh *f)
{
	free(f->queues);
	free(f->addrs);
	free(f->seen);
	free(f->spans);
}

static int fresh_alloc(struct fresh *f, size_t n)
{
	f->queues = calloc(n + 1, sizeof(*f->queues));
	f->addrs = calloc(n + 1, sizeof(*f->addrs));
	f->seen = calloc(n + 1, sizeof(*f->seen));
	f->spans = calloc(n + 1, 2 * sizeof(*f->spans));
	return f->queues && f->addrs && f->seen && f->spans ? 0 : -ENOMEM;
}

static void add_known(struct fresh *f, const struct gkfd_proc_queue *q, struct gkfd_queue_addr addr)
{
	struct seen *seen = &f->seen[f->n_known];
	struct gkfd_span *spans = &f->spans[f->n_spans];
	uint64_t low = MIN(addr.read_ptr_addr, addr.write_ptr_addr);
	uint64_t bytes = MAX(addr.read_ptr_addr, addr.write_ptr_addr) - low;

	*seen = (struct seen){ .gpu = q->gpu_id, .queue = q->queue_id, .span = f->n_spans };
	if (bytes % sizeof(uint64_t) == 0 && bytes <= NEAR_BYTES - sizeof(uint64_t)) {
		spans[0] = (struct gkfd_span){ low, seen->together, bytes + sizeof(uint64_t) };
		seen->n_spans = 1;
	} else {
		/* In this order: a write pointer read later is no less than the read pointer. */
		spans[0] = (struct gkfd_span){ addr.read_ptr_addr, &seen->now_read,
					       sizeof(uint64_t) };
		spans[1] = (struct gkfd_span){ addr.write_ptr_addr, &seen->now_write,
					       sizeof(uint64_t) };
		seen->n_spans = 2;
	}
	f->addrs[f->n_known++] = addr;
	f->n_spans += seen->n_spans;
}

/* After the known ones. */
static void add_unseen(struct fresh *f)
{
	for (size_t i = 0; i < f->n; i++) {
		const struct gpu_queue *q = &f->queues[i];

		if (q->unseen)
			f->seen[f->n_known + f->n_unseen++] =
				(struct seen){ .gpu = q->gpu, .queue = q->queue };
	}
}

/* Where it was before, if it is the same as far as sysfs tells. */
static const struct gkfd_queue_addr *addr_before(const struct gpu_watch *w,
						 const struct gkfd_proc_queue *q)
{
	for (size_t i = 0; i < w->n_known; i++) {
		const struct seen *s = &w->seen[i];

		if (s->gpu == q->gpu_id && s->queue == q->queue_id &&
		    w->addrs[i].ring_bytes == q->ring_bytes)
			return &w->addrs[i];
	}
	return NULL;
}

static void add_queue(struct fresh *f, const struct gpu_watch *w, const struct gkfd_proc_queue *q,
		      const struct gkfd_mqd *mqd, bool none_read)
{
	const struct gkfd_queue_addr *before = !mqd && none_read ? addr_before(w, q) : NULL;

	f->queues[f->n++] = (struct gpu_queue){
		.gpu = q->gpu_id,
		.queue = q->queue_id,
		.unseen = !mqd && !before && gkfd_type_is_compute(q->type),
	};
	if (mqd)
		add_known(f, q, gkfd_mqd_addr(mqd));
	else if (before)
		add_known(f, q, *before);
	f->kept |= before != NULL;
}

static int fresh_build(const struct gpu_watch *w, const struct gkfd_proc *proc, struct fresh *f)
{
	_cleanup_free_ const struct gkfd_mqd **mqds = calloc(proc->n_queues + 1, sizeof(*mqds));
	const struct gkfd_mqd *first;
	size_t n;

	if (!mqds || fresh_alloc(f, proc->n_queues) < 0)
		return -ENOMEM;
	n = gkfd_mqds_of_process(&w->b->mqds, proc->pid, &first);
	gkfd_match_queues(proc, first, n, mqds);
	for (size_t i = 0; i < proc->n_queues; i++)
		add_queue(f, w, &proc->queues[i], mqds[i], n == 0);
	add_unseen(f);
	return 0;
}

static bool is_same(const struct gpu_watch *w, const struct fresh *f)
{
	if (w->n != f->n)
		return false;
	for (size_t i = 0; i < f->n; i++) {
		const struct gpu_queue *a = &w->queues[i], *b = &f->queues[i];

		if (a->gpu != b->gpu || a->queue != b->queue || a->unseen != b->unseen)
			return false;
	}
	return true;
}

static void adopt(struct gpu_watch *w, struct fresh *f)
{
	struct fresh old = {
		.queues = w->queues, .addrs = w->addrs, .seen = w->seen, .spans = w->spans
	};

	fresh_done(&old);
	w->queues = f->queues;
	w->addrs = f->addrs;
	w->seen = f->seen;
	w->spans = f->spans;
	w->n = f->n;
	w->n_known = f->n_known;
	w->n_unseen = f->n_unseen;
	w->stale = f->n_unseen > 0 || f->kept;
	closep(&w->mem.fd);
	w->mem = GKFD_MEM_NONE;
}

/* 1: others than before. */
static int rebuild(struct gpu_watch *w)
{
	_cleanup_(gkfd_proc_done) struct gkfd_proc proc = { 0 };
	struct fresh f = { 0 };
	int r;

	read_mqds(w->b); /* first: what it lacks is then missed, not mistaken */
	r = gkfd_proc_read(w->b->k, w->pid, &proc);
	if (r < 0)
		return r;
	r = fresh_build(w, &proc, &f);
	if (r < 0) {
		fresh_done(&f);
		return r;
	}
	r = !is_same(w, &f);
	adopt(w, &f);
	return r;
}

static bool same_names(const char *a, const char *b)
{
	while (*a && strcmp(a, b) == 0) {
		a += strlen(a) + 1;
		b += strlen(b) + 1;
	}
	return !*a && !*b;
}

/* What is still being read may have it: then soon. */
static void plan_retry(struct gpu_watch *w, bool changed)
{
	w->retry_ns = changed || !w->b->mqds_read ? MQDS_FRESH_NS :
						    MIN(2 * w->retry_ns, RETRY_MAX_NS);
	w->retry_at_ns = gkfd_now_ns(w->b->k) + w->retry_ns;
}

int watch_refresh(struct gpu_watch *w)
{
	_cleanup_free_ char *names = NULL;
	char path[64];
	bool changed;
	int r;

	snprintf(path, sizeof(path), "proc/%d/queues", (int)w->pid);
	r = gkfd_list_dir(w->b->k, GKFD_TREE_SYSFS, path, &names);
	if (r == -ENOENT || r == -ENODEV)
		return -ESRCH;
	if (r < 0)
		return r;
	changed = !w->names || !same_names(w->names, names);
	if (!changed && !(w->stale && gkfd_now_ns(w->b->k) >= w->retry_at_ns))
		return 0;
	r = rebuild(w);
	if (r < 0)
		return r;
	plan_retry(w, changed);
	free(w->names);
	w->names = steal_ptr(&names);
	return r;
}

int watch_new(struct gpu_backend *base, pid_t pid, struct gpu_watch **ret)
{
	struct backend *b = (struct backend *)base;
	struct gpu_watch *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	*w = (struct gpu_watch){ .b = b, .pid = pid, .mem = GKFD_MEM_NONE };
	LIST_INSERT_HEAD(&b->watches, w, link);
	r = watch_refresh(w);
	if (r < 0) {
		watch_free(w);
		return r;
	}
	*ret = w;
	return 0;
}

void watch_free(struct gpu_watch *w)
{
	if (!w)
		return;
	LIST_REMOVE(w, link);
	closep(&w->mem.fd);
	free(w->names);
	free(w->queues);
	free(w->addrs);
	free(w->seen);
	free(w->spans);
	free(w);
}

const struct gpu_queue *watch_queues(const struct gpu_watch *w, size_t *ret_n)
{
	*ret_n = w->n;
	return w->queues;
}
