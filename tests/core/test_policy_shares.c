/* SPDX-License-Identifier: MIT */
/* What taking turns comes to in the long run, and what online jobs notice of it. */
#include "tests/core/world.h"

#define SEEDS 1000
#define STEPS 400

static uint32_t on_now(const struct world *w)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < w->n; i++)
		n += w->jobs[i].class == JOB_OFFLINE && w->jobs[i].has_work && !w->jobs[i].held;
	return n;
}

static void rotation(uint64_t seed)
{
	struct world_rules rules = { .offline = 6, .online = 1 };
	struct world w;

	world_init(&w, &gpol_rotate, &rules, seed);
	for (int i = 0; i < STEPS; i++) {
		world_pass(&w, world_random(&w, 30 * WORLD_MS));
		world_happen(&w);
		world_ask(&w);
		world_obey(&w);
		world_check(&w, on_now(&w) <= 1);
	}
}

static void of_jobs_that_rotate_at_most_one_is_on(void **state)
{
	world_seeds(SEEDS, rotation);
}

static void rounds(uint64_t seed)
{
	struct world_rules rules = { .offline = 6 };
	uint32_t others;
	struct world w;

	world_init(&w, &gpol_rotate, &rules, seed);
	others = w.n - 1;
	for (int i = 0; i < STEPS; i++) {
		world_pass(&w, world_random(&w, 30 * WORLD_MS));
		for (uint32_t k = 0; k < w.n; k++)
			world_check(&w, w.waiting_ns[k] <= others * w.params.turn_ns);
		world_happen(&w);
		world_ask(&w);
		world_obey(&w);
	}
}

static void each_gets_its_turn_after_those_of_the_others(void **state)
{
	world_seeds(SEEDS, rounds);
}

/* Runs a world in which offline jobs always have work; @longest_ns between two looks at most. */
static void run_steady(struct world *w, uint64_t duration_ns, uint64_t longest_ns)
{
	uint64_t end_ns = w->now_ns + duration_ns;

	while (w->now_ns < end_ns) {
		world_ask(w);
		world_obey(w);
		world_pass(w, longest_ns);
	}
}

/* What share promises to a job where nobody else needs the GPU, in permille. */
static uint64_t promised(const struct world *w, const struct gpol_job *job)
{
	uint64_t weights = 0, minima = 0;

	for (uint32_t i = 0; i < w->n; i++) {
		weights += w->jobs[i].weight;
		minima += w->jobs[i].min_permille;
	}
	return job->min_permille + (1000 - minima) * job->weight / weights;
}

static void proportions(uint64_t seed)
{
	struct world_rules rules = { .offline = 5, .steady = true };
	uint64_t all_ns = 60000 * WORLD_MS;
	struct world w;

	world_init(&w, &gpol_share, &rules, seed);
	run_steady(&w, all_ns, 1000 * WORLD_MS);
	for (uint32_t i = 0; i < w.n; i++) {
		uint64_t got = w.jobs[i].ran_ns / (all_ns / 1000), fair = promised(&w, &w.jobs[i]);

		world_check(&w, got * 100 >= fair * 93 && got * 93 <= fair * 100 + 200);
		world_check(&w, got + 1 >= w.jobs[i].min_permille);
	}
}

static void shares_follow_minima_and_weights(void **state)
{
	world_seeds(SEEDS / 4, proportions);
}

/*
 * Beside an online job that always works, or has its pauses, each offline job gets its minimum, and
 * the online job waits no longer at a stretch than the ceiling.
 */
static void minima(uint64_t seed)
{
	struct world_rules rules = { .offline = 4, .steady = true };
	uint64_t all_ns = 60000 * WORLD_MS, end_ns, beside_ns = 0;
	struct gpol_job *online;
	struct world w;

	world_init(&w, &gpol_share, &rules, seed);
	online = &w.jobs[w.n++];
	*online = (struct gpol_job){ .id = 99, .class = JOB_ONLINE };
	end_ns = w.now_ns + all_ns;
	while (w.now_ns < end_ns) {
		uint64_t before_ns = w.now_ns;

		world_pass(&w, 1 + world_random(&w, 20 * WORLD_MS));
		beside_ns = online->has_work && on_now(&w) ? beside_ns + w.now_ns - before_ns : 0;
		world_check(&w, beside_ns + w.gpu.suspend_ns <= w.params.ceiling_ns);
		if (!online->has_work || world_random(&w, 4 + seed % 100) == 0) {
			online->has_work = !online->has_work;
			online->work_since_ns = w.now_ns;
		}
		world_ask(&w);
		world_obey(&w);
	}
	for (uint32_t i = 0; i + 1 < w.n; i++)
		world_check(&w, (w.jobs[i].ran_ns / (all_ns / 1000) + 1) * 100 >=
					w.jobs[i].min_permille * 95ull);
}

static void minima_are_paid_within_the_ceiling(void **state)
{
	world_seeds(SEEDS / 10, minima);
}

/* ---- targets ---- */

static uint64_t last_moment(const struct world *w, const struct gpol_job *job)
{
	return job->work_since_ns + job->target_ns - w->gpu.suspend_ns - job->service_ns -
	       w->params.margin_ns;
}

/* One online job whose target can be met, with exact knowledge of it. */
static void targets(uint64_t seed)
{
	struct world_rules rules = { .offline = 3, .steady = true };
	struct gpol_job *online;
	struct world w;

	world_init(&w, &gpol_deadline, &rules, seed);
	online = &w.jobs[w.n++];
	*online = (struct gpol_job){ .id = 99, .class = JOB_ONLINE };
	online->service_ns = 1 + world_random(&w, 10 * WORLD_MS);
	online->target_ns = online->service_ns + world_random(&w, 40 * WORLD_MS) + 4 * WORLD_MS;
	for (int i = 0; i < STEPS; i++) {
		world_pass(&w, world_random(&w, 20 * WORLD_MS));
		if (world_random(&w, 4) == 0) {
			online->has_work = !online->has_work;
			online->work_since_ns = w.now_ns;
		}
		world_ask(&w);
		for (uint32_t k = 0; k + 1 < w.n; k++) {
			bool for_it = w.verdicts[k].because == online->id;
			bool late = online->has_work && w.now_ns >= last_moment(&w, online);

			world_check(&w, !late || for_it);
			world_check(&w, late || !for_it || w.jobs[k].held);
		}
		world_obey(&w);
	}
}

static void jobs_are_held_for_a_target_at_the_last_moment_and_not_before(void **state)
{
	world_seeds(SEEDS, targets);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_jobs_that_rotate_at_most_one_is_on),
		cmocka_unit_test(each_gets_its_turn_after_those_of_the_others),
		cmocka_unit_test(shares_follow_minima_and_weights),
		cmocka_unit_test(minima_are_paid_within_the_ceiling),
		cmocka_unit_test(jobs_are_held_for_a_target_at_the_last_moment_and_not_before),
	};

	world_arguments(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
