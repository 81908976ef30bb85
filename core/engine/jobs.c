/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#include "core/engine/internal.h"

#define GENERATIONS (1u << (31 - JOB_INDEX_BITS))

struct engine_job *engine_find_job(const struct engine *e, uint32_t id)
{
	uint32_t index = id & ((1u << JOB_INDEX_BITS) - 1);
	struct engine_job *j = &e->jobs[index];

	return index < e->limits.jobs && j->used && j->id == id ? j : NULL;
}

/* ---- accounts ---- */

static bool runs_offline(const struct engine_job *j)
{
	return !is_online(j) && j->has_work && j->place <= PLACE_LEAVING;
}

static bool waits(const struct engine_job *j)
{
	return j->has_work && j->place != PLACE_ON;
}

void engine_account(struct engine *e, struct engine_job *j)
{
	uint64_t passed_ns = gpol_elapsed(e->now_ns, j->accounted_ns);

	if (j->place == PLACE_ON) {
		j->turn_ns += passed_ns;
		j->ran_ns += j->has_work ? passed_ns : 0;
	}
	j->wanted_ns += j->has_work ? passed_ns : 0;
	if (waits(j))
		j->longest_wait_ns =
			gpol_max(j->longest_wait_ns, gpol_elapsed(e->now_ns, j->wait_since_ns));
	j->accounted_ns = e->now_ns;
}

static void count_running(struct engine *e, const struct engine_job *j, bool more)
{
	struct engine_gpu *g = j->gpu;

	if (!runs_offline(j))
		return;
	if (more && g->offline_running++ == 0)
		g->contended_since_ns = e->now_ns;
	if (!more && --g->offline_running == 0)
		g->contended_ns += gpol_elapsed(e->now_ns, g->contended_since_ns);
}

/*
 * Being let go for a moment does not end a wait: it lasts until the job ran for min_run_ns in all,
 * or had nothing to do. Else short gaps in urgent work would begin every wait anew.
 */
static void note_wait(struct engine *e, struct engine_job *j)
{
	if (!j->has_work)
		j->unserved = false;
	if (!waits(j) || (j->unserved && j->ran_ns - j->wait_ran_ns < e->config.min_run_ns))
		return;
	j->unserved = true;
	j->wait_since_ns = e->now_ns;
	j->wait_ran_ns = j->ran_ns;
}

void engine_move_job(struct engine *e, struct engine_job *j, bool has_work, enum place place)
{
	bool waited = waits(j);

	engine_account(e, j);
	count_running(e, j, false);
	j->gpu->stale = true;
	if (j->has_work != has_work) {
		j->work_since_ns = e->now_ns;
		for_each_member(e, m, j)
			m->gpu->stale = true;
	}
	j->has_work = has_work;
	j->place = (uint8_t)place;
	count_running(e, j, true);
	if (!waited || !has_work)
		note_wait(e, j);
}

bool engine_works(const struct engine *e, const struct engine_job *j)
{
	if (!e->config.costs.counts_progress && !is_online(j))
		return true;
	return j->working || j->loose_work;
}

/* ---- lists ---- */

static void link_to_gpu(struct engine *e, struct engine_job *j)
{
	struct engine_job **link = &j->gpu->first_job;

	while (*link && (*link)->id < j->id)
		link = &(*link)->next_on_gpu;
	j->next_on_gpu = *link;
	*link = j;
}

static void unlink_from_gpu(struct engine *e, const struct engine_job *j)
{
	struct engine_job **link = &j->gpu->first_job;

	while (*link != j)
		link = &(*link)->next_on_gpu;
	*link = j->next_on_gpu;
}

static void join_gang(struct engine *e, struct engine_job *j)
{
	j->next_in_gang = j;
	for (uint32_t i = 0; i < e->limits.jobs && j->config.gang != ENGINE_NO_GANG; i++) {
		struct engine_job *other = &e->jobs[i];

		if (!other->used || other == j || other->config.gang != j->config.gang)
			continue;
		j->next_in_gang = other->next_in_gang;
		other->next_in_gang = j;
		return;
	}
}

static void leave_gang(const struct engine_job *j)
{
	struct engine_job *m = j->next_in_gang;

	while (m->next_in_gang != j)
		m = m->next_in_gang;
	m->next_in_gang = j->next_in_gang;
}

static void leave_line(struct engine *e, struct engine_job *j)
{
	*(j->line_prev ? &j->line_prev->line_next : &e->line_first) = j->line_next;
	*(j->line_next ? &j->line_next->line_prev : &e->line_last) = j->line_prev;
}

static void join_line(struct engine *e, struct engine_job *j)
{
	j->line_prev = e->line_last;
	j->line_next = NULL;
	*(e->line_last ? &e->line_last->line_next : &e->line_first) = j;
	e->line_last = j;
}

void engine_line_up(struct engine *e, struct engine_job *j)
{
	leave_line(e, j);
	join_line(e, j);
}

bool engine_first_visit(struct engine *e, struct engine_job *j)
{
	if (j->visited == e->walk)
		return false;
	for_each_member(e, m, j)
		m->visited = e->walk;
	return true;
}

/* ---- what there is ---- */

/* Places are used in turn, so that an id comes back as late as possible. */
static struct engine_job *free_place(struct engine *e)
{
	for (uint32_t i = 0; i < e->limits.jobs; i++) {
		struct engine_job *j = &e->jobs[(e->next_job + i) % e->limits.jobs];

		if (!j->used) {
			e->next_job = index_of(e, j) + 1;
			return j;
		}
	}
	return NULL;
}

static void set_config(struct engine *e, struct engine_job *j,
		       const struct engine_job_config *config)
{
	j->config = *config;
	j->config.class = config->class == JOB_ONLINE ? JOB_ONLINE : JOB_OFFLINE;
	j->config.weight = config->weight ? config->weight : 1;
	j->gpu->stale = true;
	e->cadence_ns = 0;
}

int engine_add_job(struct engine *e, uint64_t now_ns, const struct engine_job_config *config)
{
	struct engine_gpu *g = engine_find_gpu(e, config->gpu);
	struct engine_job *j = g ? free_place(e) : NULL;

	if (!j)
		return g ? -ENOSPC : -ENODEV;
	e->now_ns = gpol_max(e->now_ns, now_ns);
	*j = (struct engine_job){
		.used = true,
		.id = j->id, /* engine_remove_job left the next one */
		.gpu = g,
		.because = GPOL_NOBODY,
		.work_since_ns = e->now_ns,
		.accounted_ns = e->now_ns,
	};
	if (!j->id)
		j->id = index_of(e, j);
	set_config(e, j, config);
	link_to_gpu(e, j);
	join_gang(e, j);
	join_line(e, j);
	engine_others_changed(e, j->gpu);
	engine_settle(e, j);
	return (int)j->id;
}

int engine_change_job(struct engine *e, uint32_t job, const struct engine_job_config *config)
{
	struct engine_job *j = engine_find_job(e, job);

	if (!j)
		return -ENOENT;
	if (config->gpu != j->gpu->id)
		return -EINVAL;
	engine_account(e, j);
	count_running(e, j, false);
	leave_gang(j);
	set_config(e, j, config);
	join_gang(e, j);
	count_running(e, j, true);
	if (!is_online(j))
		j->hints = 0;
	engine_others_changed(e, j->gpu);
	engine_settle(e, j);
	return 0;
}

int engine_remove_job(struct engine *e, uint32_t job)
{
	struct engine_job *j = engine_find_job(e, job);

	if (!j)
		return -ENOENT;
	count_running(e, j, false);
	engine_forget_queues_of(e, j);
	unlink_from_gpu(e, j);
	leave_gang(j);
	leave_line(e, j);
	engine_others_changed(e, j->gpu);
	j->gpu->stale = true;
	e->cadence_ns = 0;
	*j = (struct engine_job){
		.id = (j->id + (1u << JOB_INDEX_BITS)) % (GENERATIONS << JOB_INDEX_BITS),
	};
	return 0;
}
