/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "cmd/gpreemptd/scheduler_internal.h"

#define ENGINE_INDEX(id) ((uint32_t)(id) % 0x10000)

/* ---- GPUs ---- */

struct gpu *gpu_find(struct scheduler *s, uint32_t gpu)
{
	for (uint32_t i = 0; i < s->n_gpus; i++) {
		if (s->gpus[i].node.gpu == gpu)
			return &s->gpus[i];
	}
	return NULL;
}

static struct gpu *gpu_add(struct scheduler *s, const struct gpu_node *node)
{
	struct gpu *g = gpu_find(s, node->gpu);
	uint32_t slots = s->config->ration_slots ? node->slots : 0;

	if (!g) {
		if (s->n_gpus == GPU_NODES_MAX || engine_add_gpu(s->engine, node->gpu, slots) < 0)
			return NULL;
		g = &s->gpus[s->n_gpus++];
		*g = (struct gpu){ 0 };
	}
	g->node = *node;
	return g;
}

void gpus_read(struct scheduler *s)
{
	struct gpu_node nodes[GPU_NODES_MAX];
	int n = ops(s)->nodes(s->b, nodes, ARRAY_SIZE(nodes));

	if (n < 0)
		return;
	for (int i = 0; i < MIN(n, GPU_NODES_MAX); i++) {
		if (nodes[i].gpu)
			gpu_add(s, &nodes[i]);
	}
}

static bool is_online(const struct job *j)
{
	return j->process->verdict.job_class == JOB_ONLINE;
}

bool is_critical(const struct process *p)
{
	return p->verdict.critical || p->page;
}

static void count_work(struct job *j, uint32_t by)
{
	if (!j->on || j->engine_job == NO_JOB || !j->works)
		return;
	if (is_online(j))
		j->on->online_working += by;
	else if (!j->away)
		j->on->offline_running += by;
}

void gpu_stir(struct scheduler *s, struct gpu *g)
{
	g->stirred = true;
	s->gpus_due |= g->quiet > 0;
	g->quiet = 0;
}

void gpus_settle(struct scheduler *s)
{
	struct job *j;

	s->gpus_due = true;
	TAILQ_FOREACH(j, &s->jobs, link) {
		if (j->on && (j->off || (j->works && is_online(j))))
			gpu_stir(s, j->on);
	}
	for (uint32_t i = 0; i < s->n_gpus; i++) {
		struct gpu *g = &s->gpus[i];

		g->quiet = g->stirred ? 0 : MIN(g->quiet + 1, QUIET_LONG);
		g->stirred = false;
	}
}

void gpus_count(struct scheduler *s)
{
	struct job *j;

	s->gpus_due = false;
	s->slices_due = s->b->caps.slices;
	for (uint32_t i = 0; i < s->n_gpus; i++) {
		struct gpu *g = &s->gpus[i];

		g->online = g->untold = g->offline = g->tied = g->holdable = 0;
		g->online_working = g->offline_running = 0;
	}
	TAILQ_FOREACH(j, &s->jobs, link) {
		if (!j->on || j->engine_job == NO_JOB)
			continue;
		j->on->online += is_online(j);
		j->on->untold += is_online(j) && !j->process->armed;
		j->on->offline += !is_online(j);
		j->on->tied += !is_online(j) && j->process->tie == TIE_ATTACHED;
		j->on->holdable += !is_online(j) && !j->on->tripped && is_holdable(s, j->process);
		count_work(j, 1);
	}
	pace_count(s);
}

/* ---- accounts ---- */

void job_account(struct scheduler *s, struct job *j)
{
	uint64_t passed_ns = s->now_ns - MIN(j->accounted_ns, s->now_ns);

	if (j->off) {
		j->sum.held_ns += passed_ns;
		j->sum.stolen_ns += j->works ? passed_ns : 0;
	}
	j->accounted_ns = s->now_ns;
}

/*
 * An inversion: an online job has work while an offline one is on the GPU with it. It is resolved
 * when holds have brought the last of those off while the online work still lasts.
 */
static void note_inversion(struct scheduler *s, struct gpu *g, bool by_us)
{
	bool inverted = g->online_working && g->offline_running;

	if (inverted == g->inverted)
		return;
	g->inverted = inverted;
	s->figures.status.inversions += inverted;
	s->figures.status.resolved += !inverted && by_us && g->online_working;
}

void job_set(struct scheduler *s, struct job *j, bool works, bool away)
{
	bool by_us = away && !j->away, ran;

	if (j->works == works && j->away == away)
		return;
	job_account(s, j);
	ran = j->on && j->on->offline_running;
	count_work(j, -1u);
	j->works = works;
	j->away = away;
	count_work(j, 1);
	if (j->on && j->on->quiet && ran != (j->on->offline_running > 0))
		s->gpus_due = true;
	if (j->on && works && is_online(j))
		gpu_stir(s, j->on);
	if (j->on)
		note_inversion(s, j->on, by_us);
}

static void tick(struct job *j, uint64_t ran_ns, uint64_t elapsed_ns)
{
	uint64_t shift = MIN(elapsed_ns / NSEC_PER_SEC, GPREEMPT_JOB_HISTORY);
	uint64_t share = (ran_ns - MIN(j->ran_before_ns, ran_ns)) * 1000 / elapsed_ns;

	for (size_t i = GPREEMPT_JOB_HISTORY; i-- > 0;)
		j->sum.history[i] = i >= shift ? j->sum.history[i - shift] :
						 (uint8_t)(j->sum.share_permille * 255u / 1000);
	j->sum.share_permille = (uint32_t)MIN(share, 1000);
	j->ran_before_ns = ran_ns;
}

void jobs_tick(struct scheduler *s)
{
	uint64_t elapsed_ns = s->now_ns - s->tick_ns;
	struct engine_job_stats stats;
	struct job *j;

	if (elapsed_ns < NSEC_PER_SEC)
		return;
	s->tick_ns = s->now_ns;
	TAILQ_FOREACH(j, &s->jobs, link) {
		if (j->engine_job == NO_JOB ||
		    engine_job_stats(s->engine, (uint32_t)j->engine_job, &stats) < 0)
			continue;
		tick(j, j->sum.ran_ns + stats.ran_ns, elapsed_ns);
	}
}

/* ---- jobs and the engine ---- */

struct job *job_find(const struct scheduler *s, uint32_t engine_job)
{
	struct job *j = NULL;

	if (engine_job != GPOL_NOBODY && ENGINE_INDEX(engine_job) < SCHEDULER_MAX_JOBS)
		j = s->by_index[ENGINE_INDEX(engine_job)];
	return j && j->engine_job == (int)engine_job ? j : NULL;
}

static struct engine_job_config describe(const struct scheduler *s, const struct job *j)
{
	const struct process *p = j->process;
	const struct verdict *v = &p->verdict;
	bool online = v->job_class == JOB_ONLINE;
	bool holdable = !online && is_holdable(s, p) && j->on && !j->on->tripped;

	return (struct engine_job_config){
		.gpu = j->gpu,
		.gang = v->gang[0] || p->n_jobs > 1 ? p->gang : ENGINE_NO_GANG,
		.flags = (holdable ? ENGINE_JOB_PREEMPTIBLE : 0) |
			 (online && is_critical(p) ? ENGINE_JOB_CRITICAL : 0) |
			 (v->lazy ? ENGINE_JOB_LAZY : 0) |
			 (v->auto_deactivate ? ENGINE_JOB_AUTO_DEACTIVATE : 0),
		.class = v->job_class,
		.priority = v->priority,
		.weight = v->weight,
		.min_permille = v->min_permille,
		.target_ns = v->target_ns,
		.wait_bound_ns = v->wait_bound_ns,
	};
}

static void enter(struct scheduler *s, struct job *j)
{
	struct engine_job_config config = describe(s, j);
	int id = engine_add_job(s->engine, s->now_ns, &config);

	j->engine_job = id < 0 ? NO_JOB : id;
	if (id >= 0)
		s->by_index[ENGINE_INDEX(id)] = j;
	s->gpus_due = s->step_due = true;
}

/* What the engine counted of it is kept. */
static void leave(struct scheduler *s, struct job *j)
{
	struct engine_job_stats stats;

	if (j->engine_job == NO_JOB)
		return;
	if (engine_job_stats(s->engine, (uint32_t)j->engine_job, &stats) == 0) {
		j->sum.preempted += stats.preempted;
		j->sum.made_room += stats.made_room;
		j->sum.ran_ns += stats.ran_ns;
		j->sum.longest_wait_ns = MAX(j->sum.longest_wait_ns, stats.longest_wait_ns);
	}
	engine_remove_job(s->engine, (uint32_t)j->engine_job);
	s->by_index[ENGINE_INDEX(j->engine_job)] = NULL;
	j->engine_job = NO_JOB;
	s->gpus_due = s->step_due = true;
}

void job_init(struct scheduler *s, struct process *p, uint32_t gpu, struct job *j)
{
	*j = (struct job){
		.process = p,
		.gpu = gpu,
		.on = gpu ? gpu_find(s, gpu) : NULL,
		.key = ++s->keys,
		.engine_job = NO_JOB,
		.since_ns = s->now_ns,
		.accounted_ns = s->now_ns,
	};
	TAILQ_INSERT_TAIL(&s->jobs, j, link);
}

struct job *job_on(const struct process *p, uint32_t gpu)
{
	for_each_job(p, j) {
		if (j->gpu == gpu)
			return j;
	}
	return NULL;
}

static struct job *job_new(struct scheduler *s, struct process *p, uint32_t gpu)
{
	struct job *j;

	if (s->n_jobs == SCHEDULER_MAX_JOBS)
		return NULL;
	j = malloc(sizeof(*j));
	if (!j)
		return NULL;
	if (!gpu_find(s, gpu))
		gpus_read(s);
	job_init(s, p, gpu, j);
	SLIST_INSERT_HEAD(&p->jobs, j, sibling);
	p->n_jobs++;
	s->n_jobs++;
	return j;
}

static void job_free(struct scheduler *s, struct job *j)
{
	struct process *p = j->process;

	leave(s, j);
	TAILQ_REMOVE(&s->jobs, j, link);
	SLIST_REMOVE(&p->jobs, j, job, sibling);
	p->n_jobs--;
	s->n_jobs--;
	free(j);
}

void jobs_change(struct scheduler *s, struct process *p)
{
	for_each_job(p, j) {
		struct engine_job_config config = describe(s, j);

		if (j->engine_job != NO_JOB)
			engine_change_job(s->engine, (uint32_t)j->engine_job, &config);
	}
	s->gpus_due = s->step_due = true;
}

void jobs_start_over(struct scheduler *s, struct process *p)
{
	for_each_job(p, j) {
		j->asked[ENGINE_SUSPEND].number = j->asked[ENGINE_RESUME].number = 0;
		if (j->engine_job == NO_JOB)
			continue;
		leave(s, j);
		enter(s, j);
	}
}

void jobs_remove(struct scheduler *s, struct process *p)
{
	act_forget(s, p);
	while (!SLIST_EMPTY(&p->jobs))
		job_free(s, SLIST_FIRST(&p->jobs));
	s->n_queues -= p->n_queues;
	p->n_queues = 0;
}

/* ---- jobs and their queues ---- */

/* What is off stays until it is back: somebody has to ask for that. */
static void remove_empty(struct scheduler *s, struct process *p)
{
	struct job *j = SLIST_FIRST(&p->jobs);

	while (j) {
		struct job *next = SLIST_NEXT(j, sibling);

		if (!j->queues && !j->off)
			job_free(s, j);
		j = next;
	}
}

static bool count_queues(struct scheduler *s, struct process *p, const struct gpu_queue *queues,
			 size_t n)
{
	struct job *j = NULL;

	for_each_job(p, other)
		other->queues = 0;
	for (size_t i = 0; i < n; i++) {
		if (!j || j->gpu != queues[i].gpu)
			j = job_on(p, queues[i].gpu);
		if (!j)
			j = job_new(s, p, queues[i].gpu);
		if (!j)
			return false;
		j->queues++;
	}
	return true;
}

void jobs_leave_alone(struct scheduler *s, struct process *p)
{
	p->left_alone = true;
	snprintf(p->why, sizeof(p->why), "left alone: more jobs or queues than there is room for");
	attach_let_go(s, p);
	jobs_remove(s, p);
	ops(s)->unwatch(steal_ptr(&p->watch));
	if (!s->told_limit)
		log_line(LOG_LEVEL_WARNING,
			 "process %d is left alone: there are more than %d jobs or %d queues",
			 p->pid, SCHEDULER_MAX_JOBS, SCHEDULER_MAX_QUEUES);
	s->told_limit = true;
}

void jobs_follow(struct scheduler *s, struct process *p)
{
	const struct gpu_queue *queues;
	uint32_t jobs = p->n_jobs;
	size_t n;

	p->stale = false;
	p->n_looked = NOT_LOOKED;
	queues = ops(s)->queues(p->watch, &n);
	if (!shares_make_room_for_queues(s, p, n) || !count_queues(s, p, queues, n)) {
		jobs_leave_alone(s, p);
		return;
	}
	s->n_queues = s->n_queues - p->n_queues + (uint32_t)n;
	p->n_queues = (uint32_t)n;
	remove_empty(s, p);
	for_each_job(p, j) {
		if (j->engine_job == NO_JOB)
			enter(s, j);
	}
	if (p->n_jobs != jobs)
		jobs_change(s, p);
	s->attach_due |= p->n_jobs != jobs;
}
