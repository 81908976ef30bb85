/* SPDX-License-Identifier: MIT */
/*
 * What of a scheduler outlives the daemon's executing itself anew: everything people said, figures,
 * GPUs that tripped, and of each process what cannot be found out again.
 */
#include <errno.h>
#include <string.h>

#include "cmd/gpreemptd/scheduler_internal.h"

struct remembered {
	pid_t pid;
	uint64_t start_ticks;
	struct asked by_root, by_user;
	uint64_t seen_ns, seen_realtime_ns, free_until_ns;
	bool has_page;
	uint32_t page_calls;
	int page_fd; /* -1: none */
};

/* What has no parts of its own. */
struct whole {
	char policy[32], backend[sizeof(((struct wire_status *)0)->backend)];
	char level[sizeof(((struct wire_status *)0)->level)];
	struct scheduler_figures figures;
	uint64_t request_numbers;
	size_t n_requests, n_gpus, n_processes;
};

static void save_process(const struct process *p, struct handover *h)
{
	const struct remembered r = {
		.pid = p->pid,
		.start_ticks = p->identity.start_ticks,
		.by_root = p->by_root,
		.by_user = p->by_user,
		.seen_ns = p->seen_ns,
		.seen_realtime_ns = p->seen_realtime_ns,
		.free_until_ns = p->free_until_ns,
		.has_page = p->page,
		.page_calls = p->page_calls,
		.page_fd = -1,
	};

	handover_put(h, &r, sizeof(r));
	if (p->page)
		handover_put_fd(h, p->page_fd);
}

void scheduler_save(struct scheduler *s, struct handover *h)
{
	struct whole w = {
		.figures = s->figures,
		.request_numbers = s->request_numbers,
		.n_requests = s->n_requests,
		.n_gpus = s->n_gpus,
		.n_processes = s->n_processes,
	};

	snprintf(w.policy, sizeof(w.policy), "%s", s->engine_config.policy->name);
	snprintf(w.backend, sizeof(w.backend), "%s", s->backend_name);
	snprintf(w.level, sizeof(w.level), "%s", s->level);
	handover_put(h, &w, sizeof(w));
	handover_put(h, s->requests, s->n_requests * sizeof(*s->requests));
	handover_put(h, s->gpus, s->n_gpus * sizeof(*s->gpus));
	for_each_process(s, p)
		save_process(p, h);
}

static int restore_gpu(struct scheduler *s, struct handover *h)
{
	struct gpu was, *g;
	int r = handover_get(h, &was, sizeof(was));

	if (r < 0)
		return r;
	g = gpu_add(s, &was.node);
	if (!g)
		return -ENOSPC;
	g->tripped = was.tripped;
	g->trips = was.trips;
	memcpy(g->tripped_by, was.tripped_by, sizeof(g->tripped_by));
	return 0;
}

static int restore_process(struct scheduler *s, struct handover *h)
{
	struct remembered *p = &s->remembered[s->n_remembered];
	int r = handover_get(h, p, sizeof(*p));

	if (r >= 0 && p->has_page)
		r = handover_get_fd(h, &p->page_fd);
	if (r >= 0)
		s->n_remembered++;
	return r;
}

int scheduler_restore(struct scheduler *s, struct handover *h)
{
	struct whole w;
	int r = handover_get(h, &w, sizeof(w));

	if (r < 0)
		return r;
	if (w.n_requests > CLASS_REQUESTS_MAX || !gpol_find(w.policy))
		return -EBADMSG;
	r = handover_get(h, s->requests, w.n_requests * sizeof(*s->requests));
	s->remembered = calloc(w.n_processes, sizeof(*s->remembered));
	if (!s->remembered && w.n_processes)
		r = -ENOMEM;
	for (size_t i = 0; i < w.n_gpus && r >= 0; i++)
		r = restore_gpu(s, h);
	for (size_t i = 0; i < w.n_processes && r >= 0; i++)
		r = restore_process(s, h);
	if (r < 0)
		return r;
	s->engine_config.policy = gpol_find(w.policy);
	memcpy(s->backend_name, w.backend, sizeof(s->backend_name));
	memcpy(s->level, w.level, sizeof(s->level));
	s->figures = w.figures;
	s->request_numbers = w.request_numbers;
	s->n_requests = w.n_requests;
	return 0;
}

uint64_t remembered_since(struct scheduler *s, struct process *p)
{
	for (size_t i = 0; i < s->n_remembered; i++) {
		struct remembered *r = &s->remembered[i];

		if (r->pid != p->pid || r->start_ticks != p->identity.start_ticks)
			continue;
		p->by_root = r->by_root;
		p->by_user = r->by_user;
		p->seen_realtime_ns = r->seen_realtime_ns;
		p->free_until_ns = r->free_until_ns;
		if (r->page_fd >= 0)
			hint_page_open(p, steal_fd(&r->page_fd), r->page_calls);
		return MIN(r->seen_ns, s->now_ns);
	}
	return s->now_ns;
}

void remembered_forget(struct scheduler *s)
{
	for (size_t i = 0; i < s->n_remembered; i++)
		closep(&s->remembered[i].page_fd);
	free(steal_ptr(&s->remembered));
	s->n_remembered = 0;
}
