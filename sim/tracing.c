/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "sim/world.h"

/* The request a process is at on this GPU: of several queues the first that gets on. */
static const struct sim_stream *current(const struct sim_member *m)
{
	for (uint32_t i = 0; i < m->process->n_streams; i++) {
		if (m->queues[i].speed)
			return &m->process->streams[i];
	}
	return NULL;
}

static void end_slice(struct sim_member *m, uint64_t now_ns)
{
	const struct sim_world *w = m->process->world;

	if (m->tracing && now_ns > m->traced_since_ns)
		sim_trace_work(w->options->trace, m->gpu->index, m->process->index,
			       m->traced_since_ns, now_ns, m->traced_request);
	m->tracing = false;
}

static void update(struct sim_member *m, uint64_t now_ns)
{
	const struct sim_stream *s = current(m);

	if (m->tracing && s && s->request == m->traced_request)
		return;
	end_slice(m, now_ns);
	if (!s)
		return;
	m->tracing = true;
	m->traced_request = s->request;
	m->traced_since_ns = now_ns;
}

static void update_slots(struct sim_gpu *gpu, uint64_t now_ns)
{
	const struct sim_machine *m = &gpu->machine;
	struct sim_slots slots = { 0 };

	for (size_t i = 0; i < m->n_on; i++) {
		const struct sim_queue *q = m->on[i];

		if (!q->has_work)
			slots.idle++;
		else if (q->online)
			slots.online++;
		else
			slots.offline++;
	}
	if (m->change_ns)
		return; /* processes take turns: there are none */
	slots.free = m->chip->n_cp_queues - (uint32_t)m->n_on;
	if (memcmp(&slots, &gpu->traced_slots, sizeof(slots)) == 0)
		return;
	gpu->traced_slots = slots;
	sim_trace_slots(gpu->world->options->trace, gpu->index, now_ns, &slots);
}

void sim_tracing_update(struct sim_gpu *gpu)
{
	const struct sim_world *w = gpu->world;
	struct sim_member *last = NULL;

	if (!w->options->trace)
		return;
	for (size_t i = 0; i < gpu->machine.n; i++) {
		struct sim_member *m = gpu->members[i];
		struct sim_stream *s = gpu->streams[i];

		if (gpu->machine.queues[i].speed && s->started_ns == UINT64_MAX)
			s->started_ns = w->time.now_ns;
		if (m != last)
			update(m, w->time.now_ns);
		last = m;
	}
	update_slots(gpu, w->time.now_ns);
}

void sim_tracing_request(struct sim_stream *stream, struct sim_gpu *gpu)
{
	const struct sim_process *p = stream->process;
	const struct sim_world *w = p->world;

	if (w->options->trace)
		sim_trace_request(w->options->trace, gpu->index, p->index, stream->request,
				  stream->submit_ns, stream->started_ns, w->time.now_ns);
}

void sim_tracing_hold(struct sim_member *m)
{
	const struct sim_world *w = m->process->world;

	if (w->options->trace)
		sim_trace_preemption(w->options->trace, m->gpu->index, m->process->index,
				     m->because, m->held_since_ns, w->time.now_ns);
}

void sim_tracing_end(struct sim_world *w)
{
	for (size_t i = 0; w->options->trace && i < w->n_processes; i++) {
		for (uint32_t n = 0; n < w->processes[i].n_members; n++) {
			struct sim_member *m = &w->processes[i].members[n];

			end_slice(m, w->time.now_ns);
			if (m->held)
				sim_tracing_hold(m);
		}
	}
}
