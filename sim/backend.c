/* SPDX-License-Identifier: MIT */
/*
 * Suspends and resumes, as a driver carries them out: one batch at a time on a GPU.
 *
 * A batch reaches the scheduler after call_ns. From then on its victims stand still, their room
 * still taken; cycle_ns, the way into the trap handler and the moving of their state later they
 * are off. A resume takes a cycle and moves the state back. Where the driver disturbs everybody,
 * everybody stands still meanwhile, and those who stay are saved and restored too.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/world.h"
#include "util/macros.h"

static uint64_t move_ns(const struct sim_world *w, uint64_t bytes)
{
	return sim_move_ns(bytes, w->bytes_per_s);
}

/* What came of the time since the need of a queue changed last. */
static void count_wait(const struct sim_wait *wait, uint64_t now, struct sim_process *p)
{
	if (wait->need != SIM_HELD)
		return;
	p->longest_hold_ns = MAX(p->longest_hold_ns, now - wait->need_since_ns);
	p->longest_wait_ns = MAX(p->longest_wait_ns, now - wait->since_ns);
}

static enum sim_need need_of(const struct sim_queue *q)
{
	if (!q->has_work)
		return SIM_NO_WORK;
	return q->place == SIM_ON ? SIM_SERVED : SIM_HELD;
}

/* How long a queue was on with work until its need is another; who is told to leave is gone. */
static uint64_t served_ns(const struct sim_gpu *gpu, const struct sim_wait *wait,
			  enum sim_need need)
{
	const struct sim_batch *b = STAILQ_FIRST(&gpu->batches);
	uint64_t until = need == SIM_HELD && b ? b->asked_ns : gpu->world->time.now_ns;

	if (wait->need != SIM_SERVED || until < wait->need_since_ns)
		return 0;
	return until - wait->need_since_ns;
}

void sim_backend_note_wait(struct sim_gpu *gpu, size_t queue)
{
	const struct sim_world *w = gpu->world;
	enum sim_need need = need_of(&gpu->machine.queues[queue]);
	struct sim_wait *wait = &gpu->waits[queue];
	uint64_t now = w->time.now_ns;

	count_wait(wait, now, gpu->members[queue]->process);
	if (need == wait->need)
		return;
	wait->ran_ns += served_ns(gpu, wait, need);
	if (need == SIM_NO_WORK || wait->ran_ns >= w->config.min_run_ns)
		wait->unserved = false;
	if (need == SIM_HELD && !wait->unserved) {
		wait->unserved = true;
		wait->since_ns = now;
		wait->ran_ns = 0;
	}
	wait->need = need;
	wait->need_since_ns = now;
}

/* ---- what an action is about ---- */

static bool is_meant(const struct engine_action *a, size_t queue)
{
	return a->queue == ENGINE_ALL_QUEUES || a->queue == queue;
}

/* Moves the queues an action is about from one place to another. */
static void shift(struct sim_gpu *gpu, const struct engine_action *a, enum sim_place from,
		  enum sim_place to)
{
	struct sim_member *m = sim_watcher_find(gpu->world, a->job);

	for (size_t i = 0; m && i < m->process->n_streams; i++) {
		struct sim_queue *q = &m->queues[i];

		if (!is_meant(a, i) || q->place != from)
			continue;
		if (to == SIM_LEAVING && q->has_slot)
			q->saved_bytes = sim_queue_state_bytes(q);
		sim_machine_set_place(&gpu->machine, q, to);
		sim_backend_note_wait(gpu, q - gpu->machine.queues);
	}
}

static uint64_t bytes_at(const struct sim_gpu *gpu, enum sim_place place)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < gpu->machine.n; i++) {
		const struct sim_queue *q = &gpu->machine.queues[i];

		if (q->place == place)
			sum += place == SIM_ON ? sim_queue_state_bytes(q) : q->saved_bytes;
	}
	return sum;
}

/* ---- a batch ---- */

/* How long until its victims are off, and until everybody else goes on. */
static uint64_t suspend_ns(struct sim_gpu *gpu, uint64_t *ret_still_ns)
{
	const struct sim_costs *c = &gpu->world->costs;
	uint64_t leave = bytes_at(gpu, SIM_LEAVING);
	uint64_t stay = c->disturbs_all ? bytes_at(gpu, SIM_ON) : 0;
	uint64_t ns = c->cycle_ns + move_ns(gpu->world, leave + stay);

	if (leave + stay)
		ns += c->trap_ns;
	*ret_still_ns = c->disturbs_all ? ns + move_ns(gpu->world, stay) : 0;
	return ns;
}

static uint64_t resume_ns(struct sim_gpu *gpu, uint64_t *ret_still_ns)
{
	const struct sim_costs *c = &gpu->world->costs;
	uint64_t come = bytes_at(gpu, SIM_COMING);
	uint64_t stay = c->disturbs_all ? bytes_at(gpu, SIM_ON) : 0;
	uint64_t ns = c->cycle_ns + move_ns(gpu->world, stay) + move_ns(gpu->world, come + stay);

	if (stay)
		ns += c->trap_ns;
	*ret_still_ns = c->disturbs_all ? ns : 0;
	return ns;
}

static void begin(struct sim_gpu *gpu, struct sim_batch *b)
{
	struct sim_machine *machine = sim_touch(gpu);
	uint64_t now = machine->now_ns, still_ns, ns;
	bool suspend = b->verb == ENGINE_SUSPEND;

	for (size_t i = 0; i < b->n; i++)
		shift(gpu, &b->actions[i], suspend ? SIM_ON : SIM_OFF,
		      suspend ? SIM_LEAVING : SIM_COMING);
	ns = suspend ? suspend_ns(gpu, &still_ns) : resume_ns(gpu, &still_ns);
	if (still_ns)
		sim_machine_stand_still(machine, now + still_ns);
	b->begun_ns = now;
	gpu->begun = true;
	gpu->world->cycles++;
	sim_at(gpu->world, &gpu->act, now + ns);
}

static void start_next(struct sim_gpu *gpu)
{
	struct sim_world *w = gpu->world;
	uint64_t from = MAX(w->time.now_ns, gpu->machine.still_until_ns);

	gpu->begun = false;
	if (!STAILQ_EMPTY(&gpu->batches))
		sim_at(w, &gpu->act, from + w->costs.call_ns);
}

/* Members held as a whole have a guard, which lets them go at the deadline if nobody else does. */
static void note_held(struct sim_gpu *gpu, const struct engine_action *a, uint64_t since_ns)
{
	struct sim_world *w = gpu->world;
	struct sim_member *m = sim_watcher_find(w, a->job);
	const struct sim_member *because = sim_watcher_find(w, a->because);

	if (!m || a->queue != ENGINE_ALL_QUEUES)
		return;
	if (m->held && a->verb == ENGINE_RESUME) {
		sim_tracing_hold(m);
		timeline_cancel(&w->time, &m->guard);
	} else if (!m->held && a->verb == ENGINE_SUSPEND) {
		m->held_since_ns = since_ns;
		m->process->preempted++;
		w->preemptions++;
	}
	m->held = a->verb == ENGINE_SUSPEND;
	if (!m->held)
		return;
	m->because = because ? because->process->index : UINT32_MAX;
	m->deadline_ns = a->deadline_ns;
	sim_at(w, &m->guard, a->deadline_ns);
}

static void finish(struct sim_gpu *gpu, struct sim_batch *b)
{
	struct sim_world *w = gpu->world;
	uint64_t took = sim_touch(gpu)->now_ns - b->asked_ns;
	bool suspend = b->verb == ENGINE_SUSPEND;

	gpu->longest_batch_ns = MAX(gpu->longest_batch_ns, took);
	if (suspend)
		sim_record(w, &w->preemption, took);
	for (size_t i = 0; i < b->n; i++) {
		const struct engine_action *a = &b->actions[i];

		shift(gpu, a, suspend ? SIM_LEAVING : SIM_COMING, suspend ? SIM_OFF : SIM_ON);
		note_held(gpu, a, b->begun_ns);
		sim_watcher_report(w, a->ticket, took);
	}
	sim_watcher_step(w);
}

static void act(struct event *e)
{
	struct sim_gpu *gpu = container_of(e, struct sim_gpu, act);
	struct sim_batch *b = STAILQ_FIRST(&gpu->batches);

	if (!gpu->begun) {
		begin(gpu, b);
		return;
	}
	finish(gpu, b);
	STAILQ_REMOVE_HEAD(&gpu->batches, link);
	free(b);
	start_next(gpu);
}

static bool is_being_resumed(const struct sim_member *m)
{
	const struct sim_batch *b;

	STAILQ_FOREACH(b, &m->gpu->batches, link)
	{
		for (size_t i = 0; b->verb == ENGINE_RESUME && i < b->n; i++) {
			if (b->actions[i].job == m->engine_job)
				return true;
		}
	}
	return false;
}

/* What else is due at this instant goes first: it may be the engine, letting go. */
static void hold_ends(struct event *e)
{
	struct sim_member *m = container_of(e, struct sim_member, guard);
	struct engine_action a = {
		.gpu = m->gpu->index,
		.job = m->engine_job,
		.queue = ENGINE_ALL_QUEUES,
		.because = GPOL_NOBODY,
		.verb = ENGINE_RESUME,
	};

	if (m->deadline_ns) {
		m->deadline_ns = 0;
		sim_at(m->gpu->world, e, m->gpu->world->time.now_ns);
	} else if (!is_being_resumed(m)) {
		sim_backend_ask(m->gpu, &a, 1);
	}
}

void sim_backend_ask(struct sim_gpu *gpu, const struct engine_action *actions, size_t n)
{
	struct sim_world *w = gpu->world;
	struct sim_batch *b = calloc(1, sizeof(*b) + n * sizeof(*actions));
	bool idle = STAILQ_EMPTY(&gpu->batches);

	if (!b) {
		w->failed = -ENOMEM;
		return;
	}
	b->asked_ns = w->time.now_ns;
	b->verb = actions->verb;
	b->n = n;
	memcpy(b->actions, actions, n * sizeof(*actions));
	STAILQ_INSERT_TAIL(&gpu->batches, b, link);
	if (idle)
		start_next(gpu);
}

void sim_backend_init(struct sim_gpu *gpu)
{
	STAILQ_INIT(&gpu->batches);
	gpu->act.run = act;
	for (size_t i = 0; i < gpu->machine.n; i++)
		gpu->members[i]->guard.run = hold_ends;
}

void sim_backend_done(struct sim_gpu *gpu)
{
	struct sim_batch *b;

	while ((b = STAILQ_FIRST(&gpu->batches))) {
		STAILQ_REMOVE_HEAD(&gpu->batches, link);
		free(b);
	}
}
