/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The policy is asked. */
#include "core/engine/internal.h"

#define SOONEST_NS 10000 /* a policy that cannot wait has to wait for so long */

/* Once in a step for all of a gang: a large one costs no more than as many jobs. */
static void note_gang(struct engine *e, struct engine_job *j)
{
	bool works = false;

	if (!engine_first_visit(e, j))
		return;
	for_each_member(e, m, j)
		works |= m->has_work;
	for_each_member(e, m, j)
		m->gang_works = works;
}

/*
 * While an online job needs room, what an offline job writes does not speak for it: with queues it
 * counts as having work, however idle it looks. So does one whose gang works elsewhere: else there
 * would be no turn for the gang here.
 */
static bool seems_to_work(const struct engine_job *j, bool urgent)
{
	return j->has_work || (!is_online(j) && (j->gang_works || (urgent && j->queues)));
}

static void describe(const struct engine *e, const struct engine_job *j, bool urgent,
		     struct gpol_job *ret)
{
	const struct engine_job_config *c = &j->config;
	uint64_t passed_ns = gpol_elapsed(e->now_ns, j->accounted_ns);

	*ret = (struct gpol_job){
		.id = j->id,
		.class = c->class,
		.priority = c->priority,
		.has_work = seems_to_work(j, urgent),
		.announced = engine_announced(e, j) || engine_is_kept_for(e, j),
		.held = is_held(j),
		.preemptible = is_holdable(e, j),
		.latency_critical = c->flags & ENGINE_JOB_CRITICAL,
		.weight = c->weight,
		.min_permille = c->min_permille,
		.work_since_ns = j->ever_worked ? j->work_since_ns : 0,
		.held_since_ns = is_held(j) ? j->held_since_ns : j->let_go_ns,
		.ran_ns = j->ran_ns + (j->has_work && j->place == PLACE_ON ? passed_ns : 0),
		.wanted_ns = j->wanted_ns + (j->has_work ? passed_ns : 0),
		.service_ns = j->service_ns,
		.target_ns = c->target_ns,
		.wait_bound_ns = wait_bound(e, j),
	};
}

static struct gpol_input gather(struct engine *e, struct engine_gpu *g)
{
	const struct engine_job *urgent = NULL;
	size_t n = 0;

	for_each_job_on(e, g, j) {
		engine_note_announced(e, j);
		if (engine_needs_room(e, j))
			urgent = j;
		note_gang(e, j);
	}
	engine_note_need(e, g, urgent);
	for_each_job_on(e, g, j)
		describe(e, j, urgent != NULL, &e->input[n++]);
	return (struct gpol_input){
		.now_ns = e->now_ns,
		.params = &e->config.params,
		.gpu = &g->learnt,
		.jobs = e->input,
		.n = n,
	};
}

/* For whom, if that is a job of this GPU. */
static uint32_t checked(const struct engine *e, const struct engine_job *victim, uint32_t because)
{
	const struct engine_job *j = engine_find_job(e, because);

	return j && j->gpu == victim->gpu && j != victim ? because : GPOL_NOBODY;
}

static void take_verdicts(struct engine *e, struct engine_gpu *g)
{
	const struct gpol_verdict *v = e->verdicts;

	for_each_job_on(e, g, j) {
		j->hold = v->hold;
		j->because = v->hold ? checked(e, j, v->because) : GPOL_NOBODY;
		v++;
	}
}

bool engine_judge(struct engine *e, struct engine_gpu *g)
{
	const struct gpol_ops *policy = e->config.policy;
	struct gpol_input in;
	uint64_t again;

	if (!g->stale && e->now_ns < g->judge_ns)
		return false;
	in = gather(e, g);
	gpol_hold_nobody(&in, e->verdicts);
	if (policy->observe)
		policy->observe(g->policy_state, &in);
	again = policy->decide(g->policy_state, &in, e->verdicts);
	take_verdicts(e, g);
	again = gpol_max(again, gpol_after(e->now_ns, SOONEST_NS));
	again = gpol_min(again, engine_keeping_changes(e, g));
	for_each_job_on(e, g, j)
		again = gpol_min(again, engine_announcement_changes(e, j));
	g->judge_ns = again;
	g->stale = false;
	return true;
}
