/* SPDX-License-Identifier: MIT */
/* What is true of policies whatever happens. */
#include "tests/core/world.h"

#define SEEDS 2000
#define STEPS 60

static const struct world_rules anything = {
	.offline = 5,
	.online = 3,
	.bounds = true,
	.odd = true,
	.disobedient = true,
};
static const struct world_rules sensible = { .offline = 5, .online = 2 };

/* ---- of the same question always the same answer ---- */

static void same_answer(const struct world *w, const struct gpol_input *in, uint64_t again,
			const struct gpol_verdict *verdicts)
{
	world_check(w, again == w->again_ns);
	for (uint32_t i = 0; i < w->n; i++) {
		uint32_t k = 0;

		while (in->jobs[k].id != w->jobs[i].id)
			k++;
		world_check(w, verdicts[k].hold == w->verdicts[i].hold);
		world_check(w, verdicts[k].because == w->verdicts[i].because);
	}
}

static void shuffle(struct world *w, struct gpol_job *jobs)
{
	for (uint32_t i = w->n; i > 1; i--) {
		uint32_t k = (uint32_t)world_random(w, i);
		struct gpol_job job = jobs[k];

		jobs[k] = jobs[i - 1];
		jobs[i - 1] = job;
	}
}

/* Asks a second time, of a copy in another order, with other rubbish where the answer goes. */
static void ask_twice(struct world *w)
{
	struct gpol_verdict verdicts[WORLD_JOBS];
	uint64_t before[GPOL_STATE_BYTES / 8], after[GPOL_STATE_BYTES / 8];
	struct gpol_job jobs[WORLD_JOBS];
	struct gpol_input in = world_input(w);

	memcpy(before, w->state, sizeof(before));
	memset(w->verdicts, 0x00, sizeof(w->verdicts));
	world_ask(w);
	memcpy(after, w->state, sizeof(after));
	memset(verdicts, 0x01, sizeof(verdicts));
	same_answer(w, &in, w->ops->decide(w->state, &in, verdicts), verdicts);
	world_check(w, memcmp(after, w->state, sizeof(after)) == 0);

	memcpy(jobs, w->jobs, sizeof(jobs));
	shuffle(w, jobs);
	in.jobs = jobs;
	if (w->ops->observe)
		w->ops->observe(before, &in);
	world_check(w, memcmp(after, before, sizeof(after)) == 0);
	same_answer(w, &in, w->ops->decide(before, &in, verdicts), verdicts);
}

/* Every policy in a world where anything happens; @look asks it, and checks. */
static void each_policy(uint64_t seed, void (*look)(struct world *w))
{
	for (size_t p = 0; gpol_all[p]; p++) {
		struct world w;

		world_init(&w, gpol_all[p], &anything, seed);
		for (int i = 0; i < STEPS; i++) {
			world_pass(&w, world_random(&w, 30 * WORLD_MS));
			world_happen(&w);
			look(&w);
			world_obey(&w);
		}
	}
}

static void purity(uint64_t seed)
{
	each_policy(seed, ask_twice);
}

static void the_same_question_has_the_same_answer_in_any_order(void **state)
{
	world_seeds(SEEDS, purity);
}

/* ---- who may be held, and for whom ---- */

static const struct gpol_job *by_id(const struct world *w, uint32_t id)
{
	for (uint32_t i = 0; i < w->n; i++) {
		if (w->jobs[i].id == id)
			return &w->jobs[i];
	}
	return NULL;
}

static bool by_urgency(const struct world *w)
{
	return w->ops == &gpol_priority || w->ops == &gpol_deadline;
}

static void check_verdict(const struct world *w, uint32_t i)
{
	const struct gpol_job *job = &w->jobs[i], *top = by_id(w, w->verdicts[i].because);
	struct gpol_input in = world_input(w);

	if (!w->verdicts[i].hold) {
		world_check(w, w->verdicts[i].because == GPOL_NOBODY);
		return;
	}
	world_check(w, job->class == JOB_OFFLINE && job->preemptible);
	world_check(w, top && top != job && gpol_needs_gpu(top, &in));
	world_check(w, !gpol_more_urgent(job, top) || !by_urgency(w));
	world_check(w, gpol_more_urgent(top, job) || !by_urgency(w));
	world_check(w, w->ops != &gpol_none);
	world_check(w, !job->wait_bound_ns || w->waiting_ns[i] < job->wait_bound_ns);
}

static void ask_and_check(struct world *w)
{
	world_ask(w);
	for (uint32_t k = 0; k < w->n; k++)
		check_verdict(w, k);
}

static void holds(uint64_t seed)
{
	each_policy(seed, ask_and_check);
}

static void nobody_is_held_but_for_somebody_else_who_needs_the_gpu(void **state)
{
	world_seeds(SEEDS, holds);
}

/* ---- nothing is missed ---- */

static void ask_meanwhile(struct world *w)
{
	struct world later = *w;
	uint64_t gap =
		(w->again_ns == GPOL_NEVER ? w->now_ns + 5000 * WORLD_MS : w->again_ns) - w->now_ns;

	world_check(w, w->again_ns > w->now_ns);
	later.now_ns += world_random(w, gap);
	world_ask(&later);
	for (uint32_t i = 0; i < w->n; i++)
		world_check(w, later.verdicts[i].hold == w->verdicts[i].hold);
}

static void ask_and_ask_again(struct world *w)
{
	world_ask(w);
	ask_meanwhile(w);
}

static void looking_again(uint64_t seed)
{
	each_policy(seed, ask_and_ask_again);
}

static void no_answer_changes_before_it_is_time_to_look_again(void **state)
{
	world_seeds(SEEDS, looking_again);
}

/* ---- online work ---- */

static void no_inversion(uint64_t seed)
{
	const struct gpol_ops *const policies[] = { &gpol_priority, &gpol_rotate };

	for (size_t p = 0; p < 2; p++) {
		struct world w;

		world_init(&w, policies[p], &sensible, seed);
		for (int i = 0; i < STEPS; i++) {
			struct gpol_input in;

			world_pass(&w, world_random(&w, 30 * WORLD_MS));
			world_happen(&w);
			world_ask(&w);
			in = world_input(&w);
			for (uint32_t k = 0; k < w.n && gpol_most_urgent(&in, JOB_ONLINE); k++)
				world_check(&w,
					    w.verdicts[k].hold || !world_is_victim(&w, &w.jobs[k]));
			world_obey(&w);
		}
	}
}

static void while_online_work_waits_nobody_who_can_be_held_runs(void **state)
{
	world_seeds(SEEDS, no_inversion);
}

/* ---- bounds ---- */

static void bounded(uint64_t seed)
{
	struct world_rules rules = { .offline = 5, .online = 2, .bounds = true };

	for (size_t p = 0; gpol_all[p]; p++) {
		struct world w;

		world_init(&w, gpol_all[p], &rules, seed);
		for (int i = 0; i < STEPS * 4; i++) {
			world_pass(&w, world_random(&w, 30 * WORLD_MS));
			for (uint32_t k = 0; k < w.n; k++)
				world_check(&w, w.waiting_ns[k] <= w.jobs[k].wait_bound_ns);
			world_happen(&w);
			world_ask(&w);
			world_obey(&w);
		}
	}
}

static void nobody_waits_past_its_bound(void **state)
{
	world_seeds(SEEDS, bounded);
}

/* Online work without end: whoever is let go is let go for its bound. */
static void turns_of_the_due(uint64_t seed)
{
	struct world_rules rules = { .offline = 4, .bounds = true, .steady = true };
	struct world w;

	world_init(&w, &gpol_priority, &rules, seed);
	w.jobs[w.n++] = (struct gpol_job){
		.id = 99,
		.class = JOB_ONLINE,
		.has_work = true,
		.work_since_ns = w.now_ns,
	};
	for (int i = 0; i < STEPS * 2; i++) {
		world_pass(&w, 1 + world_random(&w, 60 * WORLD_MS));
		world_ask(&w);
		for (uint32_t k = 0; k < w.n; k++)
			world_check(&w, !w.verdicts[k].hold || w.jobs[k].held ||
						!w.jobs[k].held_since_ns ||
						w.on_ns[k] >= w.params.turn_ns);
		world_obey(&w);
	}
}

static void who_is_let_go_for_its_bound_stays_on_for_a_turn(void **state)
{
	world_seeds(SEEDS, turns_of_the_due);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_question_has_the_same_answer_in_any_order),
		cmocka_unit_test(nobody_is_held_but_for_somebody_else_who_needs_the_gpu),
		cmocka_unit_test(no_answer_changes_before_it_is_time_to_look_again),
		cmocka_unit_test(while_online_work_waits_nobody_who_can_be_held_runs),
		cmocka_unit_test(nobody_waits_past_its_bound),
		cmocka_unit_test(who_is_let_go_for_its_bound_stays_on_for_a_turn),
	};

	world_arguments(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
