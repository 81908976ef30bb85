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

static void watched_done(struct watched *q)
{
	free(q->queues);
	free(q->known);
	free(q->samples);
	free(q->found);
	free(q->used);
}

static int watched_alloc(struct watched *f, size_t n)
{
	f->queues = calloc(n + 1, sizeof(*f->queues));
	f->known = calloc(n + 1, sizeof(*f->known));
	f->samples = calloc(n + 1, sizeof(*f->samples));
	f->found = calloc(n + 1, sizeof(*f->found));
	f->used = calloc(n + 1, sizeof(*f->used));
	return f->queues && f->known && f->samples && f->found && f->used ? 0 : -ENOMEM;
}

static void add_known(struct watched *f, const struct gkfd_proc_queue *q,
		      struct gkfd_queue_addr addr)
{
	f->known[f->n_known++] = (struct gkfd_look_queue){
		.gpu = q->gpu_id,
		.queue = q->queue_id,
		.addr = addr,
	};
}

/* Their samples never change, and follow those of the known ones. */
static void add_unseen(struct watched *f)
{
	for (size_t i = 0; i < f->n; i++) {
		const struct gpu_queue *q = &f->queues[i];

		if (q->unseen)
			f->samples[f->n_known + f->n_unseen++] = (struct gpu_sample){
				.gpu = q->gpu, .queue = q->queue, .state = GPU_UNSEEN
			};
	}
}

/* Where it was before, if it is the same as far as sysfs tells. */
static const struct gkfd_queue_addr *addr_before(const struct gpu_watch *w,
						 const struct gkfd_proc_queue *q)
{
	for (size_t i = 0; i < w->q.n_known; i++) {
		const struct gkfd_look_queue *k = &w->q.known[i];

		if (k->gpu == q->gpu_id && k->queue == q->queue_id &&
		    k->addr.ring_bytes == q->ring_bytes)
			return &k->addr;
	}
	return NULL;
}

static void add_queue(struct watched *f, const struct gpu_watch *w, const struct gkfd_proc_queue *q,
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

static int fresh_build(const struct gpu_watch *w, const struct gkfd_proc *proc, struct watched *f)
{
	const struct gkfd_mqd *first;
	size_t n = gkfd_mqds_of_process(mqds_list(w->b), proc->pid, &first);

	if (watched_alloc(f, proc->n_queues) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < proc->n_queues; i++) {
		const struct gkfd_proc_queue *q = &proc->queues[i];

		add_queue(f, w, q, gkfd_match_queue(proc, q, first, n), n == 0);
	}
	add_unseen(f);
	return 0;
}

static bool is_same(const struct gpu_watch *w, const struct watched *f)
{
	if (w->q.n != f->n)
		return false;
	for (size_t i = 0; i < f->n; i++) {
		const struct gpu_queue *a = &w->q.queues[i], *b = &f->queues[i];

		if (a->gpu != b->gpu || a->queue != b->queue || a->unseen != b->unseen)
			return false;
	}
	return true;
}

static void adopt(struct gpu_watch *w, const struct watched *f)
{
	look_changed(w);
	watched_done(&w->q);
	w->q = *f;
	w->stale = f->n_unseen > 0 || f->kept;
}

/* 1: others than before. */
static int rebuild(struct gpu_watch *w)
{
	_cleanup_(gkfd_proc_done) struct gkfd_proc proc = { 0 };
	struct watched f = { 0 };
	int r;

	mqds_refresh(w->b); /* first: what it lacks is then missed, not mistaken */
	r = gkfd_proc_read(w->b->k, w->pid, &proc);
	if (r < 0)
		return r;
	r = fresh_build(w, &proc, &f);
	if (r < 0) {
		watched_done(&f);
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

static size_t count_names(const char *names)
{
	size_t n = 0;

	for (; *names; names += strlen(names) + 1)
		n++;
	return n;
}

/* What is still being read may have it: then soon. */
static void plan_retry(struct gpu_watch *w, bool changed)
{
	w->retry_ns = changed || !mqds_is_known(w->b) ? MQDS_FRESH_NS :
							MIN(2 * w->retry_ns, RETRY_MAX_NS);
	w->retry_at_ns = gkfd_now_ns(w->b->k) + w->retry_ns;
}

static int refresh(struct gpu_watch *w)
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
	w->stale |= count_names(names) > w->q.n; /* one is listed before it has its files */
	plan_retry(w, changed);
	free(w->names);
	w->names = steal_ptr(&names);
	return r;
}

int watch_refresh(struct gpu_watch *w)
{
	int r = refresh(w);

	w->error = MIN(r, 0);
	return r;
}

static bool is_for_good(int error)
{
	return error == -ESRCH || error == -ENOMEM;
}

int watch_new(struct gpu_backend *base, pid_t pid, struct gpu_watch **ret)
{
	struct backend *b = (struct backend *)base;
	struct gpu_watch *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	*w = (struct gpu_watch){ .b = b, .pid = pid };
	r = look_init(w);
	if (r < 0) {
		free(w);
		return r;
	}
	LIST_INSERT_HEAD(&b->watches, w, link);
	r = watch_refresh(w);
	if (is_for_good(r)) {
		watch_free(w);
		return r;
	}
	*ret = w; /* what cannot be read yet is asked for again, and is told: look_blind() */
	return 0;
}

void watch_free(struct gpu_watch *w)
{
	if (!w)
		return;
	LIST_REMOVE(w, link);
	look_done(w);
	free(w->names);
	watched_done(&w->q);
	free(w);
}

const struct gpu_queue *watch_queues(const struct gpu_watch *w, size_t *ret_n)
{
	*ret_n = w->q.n;
	return w->q.queues;
}
