/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>

#include "sim/world.h"
#include "util/macros.h"

#define TURN_BETWEEN_SLICES_NS (200 * NSEC_PER_MSEC) /* the daemon's, where it makes slices short */

/* ---- what is to be seen ---- */

/*
 * The packets of a queue. All of a request are written at once; one is read when its kernel is on
 * the GPU, not when it is done. What was saved of a held queue shows in its save area.
 */
static void count_packets(const struct sim_queue *q, struct engine_sample *s)
{
	const struct sim_program *p = q->program;
	uint64_t alone = p->alone_ns * SIM_SPEED;

	s->read = s->write = q->done * p->kernels;
	if (!q->has_work)
		return;
	s->write += p->kernels;
	if (!q->room && q->left == alone)
		return;
	s->read += (unsigned __int128)(alone - q->left) * p->kernels / alone;
	s->read = MIN(s->read + 1, s->write);
	s->busy = s->read == s->write;
}

static size_t take_samples(struct sim_world *w, bool all)
{
	size_t n = 0;

	for (size_t i = 0; i < w->n_jobs; i++) {
		const struct sim_member *m = w->jobs[i];

		if (!all && !m->process->job->online)
			continue;
		sim_machine_advance(&m->gpu->machine, w->time.now_ns);
		for (uint32_t q = 0; q < m->process->n_streams; q++) {
			struct engine_sample *s = &w->samples[n++];

			*s = (struct engine_sample){ .job = m->engine_job, .queue = q };
			if (w->costs.counts_progress)
				count_packets(&m->queues[q], s);
		}
	}
	return n;
}

/* ---- steps ---- */

static bool same_batch(const struct engine_action *a, const struct engine_action *b)
{
	return a->gpu == b->gpu && a->verb == b->verb;
}

/* Batches in the order of their first entries; within one the order of the entries. */
static void carry_out(struct sim_world *w, struct engine_action *actions, size_t n)
{
	while (n) {
		struct engine_action first = actions[0];
		size_t batch = 0, rest = 0;

		for (size_t i = 0; i < n; i++) {
			if (same_batch(&actions[i], &first))
				w->batch[batch++] = actions[i];
			else
				actions[rest++] = actions[i];
		}
		if (first.gpu < w->s->gpus)
			sim_backend_ask(&w->gpus[first.gpu], w->batch, batch);
		n = rest;
	}
}

static bool is_looking_only(const struct sim_world *w)
{
	return w->s->detect > SIM_DETECT_TRAP;
}

static void take_step(struct sim_world *w, size_t n_samples, bool complete)
{
	uint64_t now = w->time.now_ns, next;
	struct engine_step step = {
		.now_ns = now,
		.samples = w->samples,
		.n_samples = n_samples,
		.complete = complete,
		.actions = w->actions,
		.max = w->max_actions,
	};

	engine_step(w->engine, &step);
	w->steps++;
	next = is_looking_only(w) ? step.wake_ns : step.due_ns;
	sim_at(w, &w->step, next == UINT64_MAX ? TIMELINE_NEVER : MAX(next, now + 1));
	carry_out(w, w->actions, step.n_actions);
}

static void step(struct event *e)
{
	struct sim_world *w = container_of(e, struct sim_world, step);

	if (is_looking_only(w))
		sim_watcher_look(w, true);
	else
		take_step(w, 0, false);
}

void sim_watcher_step(struct sim_world *w)
{
	if (w->engine)
		sim_at(w, &w->step, w->time.now_ns);
}

void sim_watcher_look(struct sim_world *w, bool all)
{
	take_step(w, take_samples(w, all), all);
	sim_looks_taken(w);
}

void sim_watcher_hint(struct sim_process *p, uint64_t at_ns)
{
	struct sim_world *w = p->world;
	/* Where nobody can see that it is done the program has to say how long it takes. */
	uint64_t for_ns = w->costs.counts_progress ? 0 : p->program->alone_ns;

	for (uint32_t i = 0; w->engine && i < p->n_members; i++)
		engine_hint(w->engine, w->time.now_ns, p->members[i].engine_job, at_ns, for_ns);
	sim_watcher_step(w);
}

void sim_watcher_report(struct sim_world *w, uint64_t ticket, uint64_t took_ns)
{
	if (w->engine)
		engine_report(w->engine, w->time.now_ns, ticket, 0, took_ns);
}

/* ---- beginning and end ---- */

static void set_costs(struct sim_world *w)
{
	const struct sim_costs *c = &w->costs;
	uint64_t bytes = 0, move_ns;

	for (size_t i = 0; i < w->s->n_models; i++)
		bytes = MAX(bytes, w->programs[i].state_bytes);
	move_ns = sim_move_ns(bytes, w->bytes_per_s);
	w->config.costs = (struct engine_costs){
		.suspend_ns = c->call_ns + c->cycle_ns + c->trap_ns + move_ns,
		.resume_ns = c->call_ns + c->cycle_ns + move_ns,
		.cycle_ns = c->cycle_ns,
		.disturbs_all = c->disturbs_all,
		.counts_progress = c->counts_progress,
		.suspends_first = c->change_ns != 0,
	};
}

static int configure(struct sim_world *w)
{
	const struct sim_scenario *s = w->s;

	w->config = engine_config_default;
	w->config.policy = sim_world_policy(w);
	if (!w->config.policy)
		return -EINVAL;
	w->config.params = s->params;
	if (!s->params.turn_ns)
		w->config.params.turn_ns =
			w->costs.change_ns ? TURN_BETWEEN_SLICES_NS : gpol_params_default.turn_ns;
	if (s->detect > SIM_DETECT_TRAP) {
		w->config.interval_ns = s->detect;
		w->config.critical_interval_ns = MIN(s->detect, w->config.critical_interval_ns);
	}
	if (s->online_permille)
		w->config.online_permille = s->online_permille;
	if (s->offline_permille)
		w->config.offline_permille = s->offline_permille;
	set_costs(w);
	return 0;
}

static struct sim_member **slot_of(const struct sim_world *w, uint32_t id)
{
	size_t at = sim_random(0, 0, id) & (w->n_by_id - 1);

	while (w->by_id[at] && w->by_id[at]->engine_job != id)
		at = (at + 1) & (w->n_by_id - 1);
	return &w->by_id[at];
}

struct sim_member *sim_watcher_find(const struct sim_world *w, uint32_t engine_job)
{
	return w->by_id ? *slot_of(w, engine_job) : NULL;
}

static int add_member(struct sim_world *w, struct sim_member *m)
{
	const struct sim_process *p = m->process;
	const struct sim_job *job = p->job;
	struct engine_job_config c = {
		.gpu = m->gpu->index,
		.gang = job->gang ? p->index + 1 : ENGINE_NO_GANG,
		.class = job->online ? JOB_ONLINE : JOB_OFFLINE,
		.priority = job->priority,
		.weight = job->weight,
		.min_permille = job->min_permille,
		.target_ns = job->target_ns,
		.wait_bound_ns = job->wait_bound_ns,
	};
	int id;

	c.flags = (!job->online ? ENGINE_JOB_PREEMPTIBLE : 0) |
		  (job->latency_critical ? ENGINE_JOB_CRITICAL : 0) |
		  (job->lazy ? ENGINE_JOB_LAZY : 0) |
		  (job->auto_deactivate ? ENGINE_JOB_AUTO_DEACTIVATE : 0);
	id = engine_add_job(w->engine, 0, &c);
	if (id < 0)
		return id;
	m->engine_job = id;
	w->jobs[w->n_jobs++] = m;
	*slot_of(w, id) = m;
	return 0;
}

static int add_all(struct sim_world *w)
{
	int r = 0;

	for (uint32_t i = 0; !r && i < w->s->gpus; i++)
		r = engine_add_gpu(w->engine, i, w->costs.change_ns ? 0 : w->chip->n_cp_queues);
	for (size_t i = 0; !r && i < w->n_processes; i++) {
		for (uint32_t n = 0; !r && n < w->processes[i].n_members; n++)
			r = add_member(w, &w->processes[i].members[n]);
	}
	return r;
}

static int allocate(struct sim_world *w, const struct engine_limits *limits)
{
	size_t bytes = engine_bytes(limits);

	if (!bytes)
		return -EINVAL;
	for (w->n_by_id = 2; w->n_by_id < 2 * (size_t)limits->jobs;)
		w->n_by_id *= 2;
	/* A resume and a suspend of each job and queue in one step is more than there can be. */
	w->max_actions = 2 * ((size_t)limits->jobs + limits->queues);
	w->engine_memory = calloc(1, bytes);
	w->jobs = calloc(limits->jobs, sizeof(struct sim_member *));
	w->by_id = calloc(w->n_by_id, sizeof(struct sim_member *));
	w->samples = calloc(limits->queues, sizeof(*w->samples));
	w->actions = calloc(w->max_actions, sizeof(*w->actions));
	w->batch = calloc(w->max_actions, sizeof(*w->batch));
	if (!w->engine_memory || !w->jobs || !w->by_id || !w->samples || !w->actions || !w->batch)
		return -ENOMEM;
	return 0;
}

int sim_watcher_init(struct sim_world *w)
{
	struct engine_limits limits = { .gpus = w->s->gpus };
	int r;

	for (size_t i = 0; i < w->n_processes; i++) {
		const struct sim_process *p = &w->processes[i];

		limits.jobs += p->n_members;
		limits.queues += p->n_members * p->n_streams;
	}
	if (!limits.jobs)
		return 0;
	r = configure(w);
	if (!r)
		r = allocate(w, &limits);
	if (r < 0)
		return r;
	w->engine = engine_init(w->engine_memory, &limits, &w->config);
	if (!w->engine)
		return -EINVAL;
	w->step.run = step;
	r = add_all(w);
	if (r < 0)
		return r;
	sim_looks_init(w);
	return 0;
}

void sim_watcher_done(struct sim_world *w)
{
	free(w->engine_memory);
	free(w->jobs);
	free(w->by_id);
	free(w->samples);
	free(w->actions);
	free(w->batch);
}
