/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>

#include "sim/world.h"
#include "util/macros.h"

void sim_at(struct sim_world *w, struct event *e, uint64_t at_ns)
{
	int r = timeline_set(&w->time, e, at_ns);

	if (r < 0)
		w->failed = r;
}

void sim_record(struct sim_world *w, struct sim_samples *s, uint64_t ns)
{
	int r = sim_samples_add(s, ns);

	if (r < 0)
		w->failed = r;
}

struct sim_machine *sim_touch(struct sim_gpu *gpu)
{
	sim_machine_advance(&gpu->machine, gpu->world->time.now_ns);
	gpu->stale = true;
	return &gpu->machine;
}

/* ---- time passes ---- */

static void machine_goes_on(struct event *e)
{
	struct sim_gpu *gpu = container_of(e, struct sim_gpu, event);
	struct sim_machine *m = sim_touch(gpu);

	for (size_t i = 0; i < m->n_on; i++) {
		if (sim_machine_finish(m, m->on[i]))
			sim_client_part_done(gpu, m->on[i] - m->queues);
	}
	sim_machine_turn(m);
}

static void note_inversion(struct sim_gpu *gpu, bool inverted)
{
	struct sim_world *w = gpu->world;

	if (gpu->inverted == inverted)
		return;
	gpu->inverted = inverted;
	if (inverted)
		gpu->inverted_since_ns = w->time.now_ns;
	else
		sim_record(w, &w->inversion, w->time.now_ns - gpu->inverted_since_ns);
}

static void update(struct sim_gpu *gpu)
{
	sim_machine_update(&gpu->machine);
	sim_at(gpu->world, &gpu->event, sim_machine_next_ns(&gpu->machine));
	note_inversion(gpu, gpu->machine.inverted);
	sim_tracing_update(gpu);
	gpu->stale = false;
}

static void half_time(struct event *e)
{
	struct sim_world *w = container_of(e, struct sim_world, half_time);

	for (size_t i = 0; i < w->n_processes; i++) {
		struct sim_process *p = &w->processes[i];

		p->halfway = sim_process_backlog(p, w->time.now_ns);
		sim_process_note_full(p, true);
		p->full_ns = 0;
	}
}

static int run(struct sim_world *w)
{
	w->half_time.run = half_time;
	sim_at(w, &w->half_time, w->s->duration_ns / 2);
	for (uint32_t i = 0; i < w->s->gpus; i++) {
		w->gpus[i].event.run = machine_goes_on;
		w->gpus[i].stale = true;
	}
	sim_clients_start(w);
	do {
		for (uint32_t i = 0; i < w->s->gpus; i++) {
			if (w->gpus[i].stale)
				update(&w->gpus[i]);
		}
	} while (!w->failed && timeline_step(&w->time, w->s->duration_ns));
	return w->failed;
}

static void end(struct sim_world *w)
{
	for (uint32_t i = 0; i < w->s->gpus; i++) {
		struct sim_gpu *gpu = &w->gpus[i];

		sim_touch(gpu);
		sim_slots_end(&gpu->machine);
		note_inversion(gpu, false);
		for (size_t q = 0; q < gpu->machine.n; q++)
			sim_backend_note_wait(gpu, q);
	}
	sim_tracing_end(w);
}

/* ---- what came of it ---- */

/* In the second half its streams were never idle, but for a fiftieth, and requests given up. */
static bool is_overloaded(struct sim_process *p, uint64_t backlog)
{
	uint64_t half_ns = p->world->s->duration_ns - p->world->s->duration_ns / 2;

	if (p->job->arrival == SIM_CLOSED)
		return false;
	sim_process_note_full(p, false);
	return p->full_ns >= half_ns - half_ns / 50 && backlog > p->halfway &&
	       backlog > p->n_streams;
}

/*
 * A job waits from when its work could be seen, and a resume that is asked for at the bound takes
 * as long as it takes, behind the batch that is under way. The engine reckons waits from what it
 * sees, so that one of its may end where ours is half over: two of them are between two services.
 */
static bool is_starved(const struct sim_process *p)
{
	const struct sim_world *w = p->world;
	uint64_t bound = p->job->wait_bound_ns ? p->job->wait_bound_ns : w->config.hold_max_ns;
	uint64_t act_ns = 0;

	if (!w->engine || p->job->online)
		return false;
	for (uint32_t i = 0; i < p->n_members; i++)
		act_ns = MAX(act_ns, p->members[i].gpu->longest_batch_ns);
	bound += w->config.interval_ns + 2 * act_ns;
	return p->longest_hold_ns > bound || p->longest_wait_ns > 2 * bound + w->config.min_run_ns;
}

/* What was done of requests, also of those under way, as it takes alone. */
static uint64_t work_ns(const struct sim_process *p)
{
	uint64_t alone = p->program->alone_ns, sum = 0;

	for (uint32_t i = 0; i < p->n_members; i++) {
		for (uint32_t n = 0; n < p->n_streams; n++) {
			const struct sim_queue *q = &p->members[i].queues[n];

			sum += q->done * alone;
			if (q->has_work)
				sum += (alone * SIM_SPEED - q->left) / SIM_SPEED;
		}
	}
	return sum;
}

static void judge_process(struct sim_process *p, struct sim_result *r)
{
	struct sim_job_result *job = &r->jobs[p->index];

	*job = (struct sim_job_result){
		.job = p->job,
		.announce_ns = p->job->announce_ns,
		.submitted = p->sent,
		.done = p->done,
		.longest_wait_ns = !p->job->online ? p->longest_wait_ns : 0,
		.gpu_ns = work_ns(p),
		.preempted = p->preempted,
		.starved = is_starved(p),
	};
	if (!p->n_members)
		return;
	job->backlog = sim_process_backlog(p, p->world->s->duration_ns);
	job->overloaded = is_overloaded(p, job->backlog);
	r->overloaded |= job->overloaded;
	r->starved += job->starved;
	r->work_ns += job->gpu_ns;
	if (!p->job->online)
		r->offline_work_ns += job->gpu_ns;
}

static int judge(struct sim_world *w, struct sim_result *ret)
{
	struct sim_result r = {
		.suspend_ns = w->config.costs.suspend_ns,
		.preemptions = w->preemptions,
		.cycles = w->cycles,
		.engine_steps = w->steps,
		.n_jobs = w->n_processes,
	};
	bool has_slots = !sim_takes_turns(w);

	r.jobs = calloc(w->n_processes + 1, sizeof(*r.jobs));
	if (!r.jobs)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->s->gpus; i++) {
		const struct sim_machine *m = &w->gpus[i].machine;

		r.slot_ns += has_slots ? w->s->duration_ns * w->chip->n_cp_queues : 0;
		r.slot_used_ns += has_slots ? m->slot_used_ns : 0;
		r.online_slot_wait_max_ns =
			MAX(r.online_slot_wait_max_ns, m->online_slot_wait_max_ns);
	}
	for (size_t i = 0; i < w->n_processes; i++)
		judge_process(&w->processes[i], &r);
	r.online = sim_samples_quantiles(&w->online);
	sim_samples_curve(&w->online, r.online_curve_ns);
	r.preemption = sim_samples_quantiles(&w->preemption);
	r.inversion = sim_samples_quantiles(&w->inversion);
	*ret = r;
	return 0;
}

int sim_run(const struct sim_scenario *s, const struct sim_options *options, struct sim_result *ret)
{
	struct sim_world w;
	int r;

	r = sim_world_init(&w, s, options);
	if (!r)
		r = run(&w);
	if (!r) {
		end(&w);
		r = w.failed ? w.failed : judge(&w, ret);
	}
	sim_world_done(&w);
	return r;
}

void sim_result_done(struct sim_result *r)
{
	free(r->jobs);
	*r = (struct sim_result){ 0 };
}
