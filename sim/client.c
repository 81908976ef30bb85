/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>

#include "sim/world.h"
#include "util/macros.h"

static bool announces(const struct sim_process *p)
{
	return p->world->options->mode == SIM_ENGINE && p->job->online &&
	       p->job->announce_ns != SIM_NOT_ANNOUNCED;
}

/* Nobody can announce what it does not know of: it prepares for at least as long. */
static uint64_t prepare_ns(const struct sim_process *p)
{
	uint64_t ns = p->job->prepare_ns;

	if (p->job->announce_ns != SIM_NOT_ANNOUNCED)
		ns = MAX(ns, p->job->announce_ns);
	return p->job->arrival == SIM_CLOSED ? MAX(ns, SIM_HOST_TURN_NS) : ns;
}

/* A stream that has nothing to do begins to prepare a request at @from_ns. */
static void begin(struct sim_stream *stream, uint64_t from_ns)
{
	struct sim_process *p = stream->process;

	stream->request = p->sent++;
	stream->submit_ns = from_ns + prepare_ns(p);
	stream->started_ns = UINT64_MAX;
	stream->stage = announces(p) ? SIM_TO_ANNOUNCE : SIM_TO_SUBMIT;
	p->busy_streams++;
	if (p->busy_streams == p->n_streams)
		p->full_since_ns = p->world->time.now_ns;
	sim_at(p->world, &stream->event,
	       stream->submit_ns - (announces(p) ? p->job->announce_ns : 0));
}

void sim_process_note_full(struct sim_process *p, bool forget)
{
	uint64_t now = p->world->time.now_ns;

	if (p->busy_streams < p->n_streams)
		return;
	p->full_ns += forget ? 0 : now - p->full_since_ns;
	p->full_since_ns = now;
}

static struct sim_stream *idle_stream(struct sim_process *p)
{
	for (uint32_t n = 0; n < p->n_streams; n++) {
		struct sim_stream *stream = &p->streams[(p->next_stream + n) % p->n_streams];

		if (stream->stage == SIM_IDLE)
			return stream;
	}
	return NULL;
}

/*
 * Of the requests that fell due by now the newest is sent, if somebody is free to do so. When the
 * next falls due matters only while somebody is.
 */
static void send_due(struct sim_process *p)
{
	uint64_t now = p->world->time.now_ns;
	struct sim_stream *stream = idle_stream(p);

	if (stream && sim_arrivals_take(&p->arrivals, now)) {
		p->next_stream = (stream - p->streams + 1) % p->n_streams;
		begin(stream, now);
		stream = idle_stream(p);
	}
	if (stream && p->arrivals.next_ns != UINT64_MAX)
		sim_at(p->world, &p->due, p->arrivals.next_ns);
}

static void request_due(struct event *e)
{
	send_due(container_of(e, struct sim_process, due));
}

static void submit(struct sim_stream *stream)
{
	struct sim_process *p = stream->process;

	stream->stage = SIM_SENT;
	stream->parts = p->n_members;
	for (uint32_t i = 0; i < p->n_members; i++) {
		struct sim_member *m = &p->members[i];
		struct sim_queue *q = &m->queues[stream - p->streams];

		sim_machine_submit(sim_touch(m->gpu), q);
		sim_backend_note_wait(m->gpu, q - m->gpu->machine.queues);
		sim_looks_submitted(m);
	}
}

static void stream_goes_on(struct event *e)
{
	struct sim_stream *stream = container_of(e, struct sim_stream, event);
	struct sim_process *p = stream->process;

	if (stream->stage == SIM_TO_ANNOUNCE) {
		stream->stage = SIM_TO_SUBMIT;
		sim_at(p->world, &stream->event, stream->submit_ns);
		sim_watcher_hint(p, stream->submit_ns);
	} else {
		submit(stream);
	}
}

static void request_done(struct sim_stream *stream)
{
	struct sim_process *p = stream->process;
	struct sim_world *w = p->world;

	p->done++;
	if (p->job->online)
		sim_record(w, &w->online, w->time.now_ns - stream->submit_ns);
	/* Who says that work comes says also that it is done: worth a look. */
	if (announces(p))
		sim_looks_told(w);
	sim_process_note_full(p, false);
	p->busy_streams--;
	stream->stage = SIM_IDLE;
	if (p->job->arrival == SIM_CLOSED)
		begin(stream, w->time.now_ns);
	else
		send_due(p);
}

void sim_client_part_done(struct sim_gpu *gpu, size_t queue)
{
	struct sim_stream *stream = gpu->streams[queue];

	sim_backend_note_wait(gpu, queue);
	sim_tracing_request(stream, gpu);
	if (!--stream->parts)
		request_done(stream);
}

uint64_t sim_process_backlog(const struct sim_process *p, uint64_t now_ns)
{
	struct sim_arrivals a = p->arrivals;

	if (p->job->arrival == SIM_CLOSED)
		return p->sent - p->done;
	sim_arrivals_take(&a, now_ns);
	return a.taken - p->done;
}

/* ---- who begins when ---- */

static bool same_clock(const struct sim_process *a, const struct sim_process *b)
{
	return a->job->arrival == SIM_PERIODIC && b->job->arrival == SIM_PERIODIC &&
	       a->job->rate_mhz == b->job->rate_mhz && a->gpu == b->gpu;
}

/*
 * Periodic processes of one rate on one GPU begin one after the other, each when the last could be
 * done if it were alone, as the load coordinator of DISB has it. Where the first is in its period
 * is for the seed to say.
 */
static void line_up(struct sim_world *w, struct sim_process *p, size_t *trace_processes,
		    struct sim_place_in_line *ret)
{
	uint64_t interval = sim_arrivals_interval_ns(p->job);

	ret->nth = *trace_processes;
	*trace_processes += p->job->arrival == SIM_TRACE;
	ret->phase_ns = 0;
	if (p->job->arrival != SIM_PERIODIC || !interval)
		return;
	for (size_t i = p->index; i--;) {
		const struct sim_process *before = &w->processes[i];

		if (same_clock(before, p)) {
			ret->phase_ns = before->arrivals.phase_ns + before->program->alone_ns +
					before->job->prepare_ns;
			ret->phase_ns %= interval;
			return;
		}
	}
	ret->phase_ns = sim_random(w->options->seed, p->job->rate_mhz, p->gpu);
	ret->phase_ns %= interval;
}

static size_t count_trace_processes(const struct sim_world *w)
{
	size_t n = 0;

	for (size_t i = 0; i < w->n_processes; i++)
		n += w->processes[i].job->arrival == SIM_TRACE;
	return n;
}

int sim_clients_init(struct sim_world *w)
{
	struct sim_place_in_line line = { .of = count_trace_processes(w) };
	size_t trace_processes = 0;

	for (size_t i = 0; i < w->n_processes; i++) {
		struct sim_process *p = &w->processes[i];

		p->streams = calloc(p->n_streams, sizeof(*p->streams));
		if (!p->streams)
			return -ENOMEM;
		p->due.run = request_due;
		for (uint32_t n = 0; n < p->n_streams; n++) {
			p->streams[n].process = p;
			p->streams[n].event.run = stream_goes_on;
		}
		line_up(w, p, &trace_processes, &line);
		sim_arrivals_init(&p->arrivals, w->s, p->job, sim_random(w->options->seed, i, 0),
				  &line);
	}
	return 0;
}

/* What is continuous begins at some time in the first millisecond. */
void sim_clients_start(struct sim_world *w)
{
	for (size_t i = 0; i < w->n_processes; i++) {
		struct sim_process *p = &w->processes[i];

		if (!p->n_members)
			continue;
		if (p->job->arrival != SIM_CLOSED) {
			send_due(p);
			continue;
		}
		for (uint32_t n = 0; n < p->n_streams; n++)
			begin(&p->streams[n],
			      sim_random(w->options->seed, i, n + 1) % NSEC_PER_MSEC);
	}
}
