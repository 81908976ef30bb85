/* SPDX-License-Identifier: MIT */
/* From a scenario to a world: who is where, and on which GPU's queues. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/world.h"
#include "util/macros.h"

static bool makes_sense(const struct sim_scenario *s)
{
	if (s->gpus > SIM_MAX_GPUS || (!s->gpus && s->n_jobs))
		return false;
	for (size_t i = 0; i < s->n_jobs; i++) {
		if (s->jobs[i].model >= s->n_models || s->jobs[i].gpu >= s->gpus)
			return false;
	}
	return true;
}

/* Where processes take turns at the GPU the daemon has offline ones take turns, too. */
const struct gpol_ops *sim_scenario_policy(const struct sim_scenario *s)
{
	const struct sim_costs *costs = sim_costs_of(s);

	if (s->policy[0])
		return gpol_find(s->policy);
	return costs && costs->change_ns ? &gpol_rotate : &gpol_priority;
}

const struct gpol_ops *sim_world_policy(const struct sim_world *w)
{
	return w->options->policy ? w->options->policy : sim_scenario_policy(w->s);
}

/* Only who acts needs to know what acting costs; how a GPU is shared is everybody's concern. */
static int set_costs(struct sim_world *w)
{
	const struct sim_costs *costs = sim_costs_of(w->s);

	w->bytes_per_s = w->chip->hbm_bytes_per_s;
	if (costs)
		w->costs = *costs;
	if (w->options->mode != SIM_ENGINE)
		return 0;
	if (!costs)
		return -EINVAL;
	if (w->s->cycle_ns)
		w->costs.cycle_ns = w->s->cycle_ns;
	if (w->s->save_in_host_memory && costs->host_bytes_per_s)
		w->bytes_per_s = costs->host_bytes_per_s;
	return 0;
}

static int make_programs(struct sim_world *w)
{
	const struct model_chip *chip = w->chip;
	uint64_t bytes = w->costs.save_bytes;

	if (!bytes)
		bytes = (uint64_t)chip->n_xcc * chip->cu_per_xcc * chip->cwsr_bytes_per_cu;
	w->programs = calloc(w->s->n_models + 1, sizeof(*w->programs));
	if (!w->programs)
		return -ENOMEM;
	for (size_t i = 0; i < w->s->n_models; i++)
		sim_program_init(&w->programs[i], &w->s->models[i], w->s->kernel_permille, bytes);
	return 0;
}

static int make_process(struct sim_world *w, struct sim_process *p, const struct sim_job *job,
			uint32_t copy)
{
	bool present = w->options->mode != SIM_ALONE || job->online;

	*p = (struct sim_process){
		.world = w,
		.job = job,
		.program = &w->programs[job->model],
		.index = p - w->processes,
		.gpu = (job->gpu + copy) % w->s->gpus,
		.n_streams = MAX(job->queues, 1u),
		.n_members = !present  ? 0 :
			     job->gang ? w->s->gpus :
					 1,
	};
	p->members = calloc(p->n_members + 1, sizeof(*p->members));
	return p->members ? 0 : -ENOMEM;
}

static int make_processes(struct sim_world *w)
{
	size_t n = 0;

	for (size_t i = 0; i < w->s->n_jobs; i++)
		n += w->s->jobs[i].copies;
	w->processes = calloc(n + 1, sizeof(*w->processes));
	if (!w->processes)
		return -ENOMEM;
	for (size_t i = 0; i < w->s->n_jobs; i++) {
		for (uint32_t copy = 0; copy < w->s->jobs[i].copies; copy++) {
			struct sim_process *p = &w->processes[w->n_processes++];
			int r = make_process(w, p, &w->s->jobs[i], copy);

			if (r < 0)
				return r;
		}
	}
	return 0;
}

/* ---- GPUs ---- */

static bool is_on(const struct sim_world *w, const struct sim_process *p, uint32_t member,
		  uint32_t gpu)
{
	return (p->gpu + member) % w->s->gpus == gpu;
}

static size_t count_queues(const struct sim_world *w, uint32_t gpu)
{
	size_t n = 0;

	for (size_t i = 0; i < w->n_processes; i++) {
		const struct sim_process *p = &w->processes[i];

		for (uint32_t m = 0; m < p->n_members; m++)
			n += is_on(w, p, m, gpu) ? p->n_streams : 0;
	}
	return n;
}

/* ---- slices ---- */

bool sim_takes_turns(const struct sim_world *w)
{
	return w->costs.change_ns && w->options->mode <= SIM_NONE;
}

static uint32_t count_members(const struct sim_world *w, uint32_t gpu, bool online)
{
	uint32_t n = 0;

	for (size_t i = 0; i < w->n_processes; i++) {
		const struct sim_process *p = &w->processes[i];

		for (uint32_t m = 0; m < p->n_members; m++)
			n += p->job->online == online && is_on(w, p, m, gpu);
	}
	return n;
}

/* As gpreemptd does: long turns for an only online process, short ones for what is in its way. */
static uint64_t slice_of(const struct sim_world *w, const struct sim_process *p, uint32_t gpu)
{
	uint32_t online = count_members(w, gpu, true), offline = count_members(w, gpu, false);
	const struct gpol_ops *policy = sim_world_policy(w);
	const struct sim_costs *c = &w->costs;

	if (w->options->mode != SIM_ENGINE || policy == &gpol_none || !online || !offline)
		return c->slice_ns;
	if (p->job->online)
		return online == 1 ? c->long_slice_ns : c->slice_ns;
	return offline == 1 || policy == &gpol_rotate ? c->short_slice_ns : c->slice_ns;
}

/* The queues of a member from @first on. */
static void place_member(struct sim_gpu *gpu, struct sim_process *p, struct sim_member *m,
			 size_t first)
{
	m->process = p;
	m->gpu = gpu;
	m->queues = &gpu->machine.queues[first];
	for (uint32_t i = 0; i < p->n_streams; i++) {
		m->queues[i].program = p->program;
		m->queues[i].process = p->index;
		m->queues[i].online = p->job->online;
		m->queues[i].slice_ns = slice_of(p->world, p, gpu->index);
		gpu->streams[first + i] = &p->streams[i];
		gpu->members[first + i] = m;
	}
}

static void place_members(struct sim_world *w, struct sim_gpu *gpu)
{
	size_t at = 0;

	for (size_t i = 0; i < w->n_processes; i++) {
		struct sim_process *p = &w->processes[i];

		for (uint32_t m = 0; m < p->n_members; m++) {
			if (!is_on(w, p, m, gpu->index))
				continue;
			place_member(gpu, p, &p->members[m], at);
			at += p->n_streams;
		}
	}
}

static int make_gpu(struct sim_world *w, struct sim_gpu *gpu, uint32_t index)
{
	size_t n = count_queues(w, index);
	int r;

	gpu->world = w;
	gpu->index = index;
	STAILQ_INIT(&gpu->batches);
	r = sim_machine_init(&gpu->machine, w->options->mode, w->chip, n);
	if (r < 0)
		return r;
	gpu->machine.change_ns = sim_takes_turns(w) ? w->costs.change_ns : 0;
	gpu->streams = calloc(n + 1, sizeof(struct sim_stream *));
	gpu->members = calloc(n + 1, sizeof(struct sim_member *));
	gpu->waits = calloc(n + 1, sizeof(*gpu->waits));
	if (!gpu->streams || !gpu->members || !gpu->waits)
		return -ENOMEM;
	place_members(w, gpu);
	sim_backend_init(gpu);
	return 0;
}

static int make_gpus(struct sim_world *w)
{
	int r = 0;

	w->gpus = calloc(w->s->gpus + 1, sizeof(*w->gpus));
	if (!w->gpus)
		return -ENOMEM;
	for (uint32_t i = 0; !r && i < w->s->gpus; i++)
		r = make_gpu(w, &w->gpus[i], i);
	return r;
}

int sim_world_init(struct sim_world *w, const struct sim_scenario *s,
		   const struct sim_options *options)
{
	int r;

	*w = (struct sim_world){ .s = s, .options = options };
	timeline_init(&w->time);
	w->chip = model_chip_find(s->chip);
	if (!w->chip || !makes_sense(s))
		return -EINVAL;
	r = set_costs(w);
	if (!r)
		r = make_programs(w);
	if (!r)
		r = make_processes(w);
	if (!r)
		r = sim_clients_init(w);
	if (!r)
		r = make_gpus(w);
	if (!r && options->mode == SIM_ENGINE)
		r = sim_watcher_init(w);
	return r;
}

void sim_world_done(struct sim_world *w)
{
	timeline_done(&w->time); /* first: what is due is in what goes */
	for (uint32_t i = 0; w->gpus && i < w->s->gpus; i++) {
		struct sim_gpu *gpu = &w->gpus[i];

		sim_backend_done(gpu);
		sim_machine_done(&gpu->machine);
		free(gpu->streams);
		free(gpu->members);
		free(gpu->waits);
	}
	for (size_t i = 0; i < w->n_processes; i++) {
		free(w->processes[i].streams);
		free(w->processes[i].members);
	}
	sim_watcher_done(w);
	free(w->gpus);
	free(w->processes);
	free(w->programs);
	sim_samples_done(&w->online);
	sim_samples_done(&w->preemption);
	sim_samples_done(&w->inversion);
}
