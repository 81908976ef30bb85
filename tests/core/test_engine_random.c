/* SPDX-License-Identifier: MIT */
/*
 * usage: test_engine_random [COUNT [FIRST]]
 *
 * What holds after every step, whatever happens: COUNT seeds, counted from FIRST.
 */
#include "tests/core/engine_chaos.h"

#define STEPS 300

static const char *program;
static uint64_t count = 1000, first = 1;

static void check_at(const struct chaos *c, bool what, const char *text, const char *file, int line)
{
	if (what)
		return;
	print_message("policy %s, seed %" PRIu64 ", at %" PRIu64 " ns: not so: %s\n",
		      c->config.policy->name, c->seed, c->now_ns, text);
	print_message("again with: %s 1 %" PRIu64 "\n", program, c->seed);
	_fail(file, line);
}

#define check(c, what) check_at(c, what, #what, __FILE__, __LINE__)

/* ---- each action ---- */

static struct chaos_ticket ticket_of(struct chaos *c, const struct engine_action *a)
{
	bool lost = chaos_random(c, 1000) < c->lost_permille;
	uint64_t took_ns = chaos_random(c, 50) ? chaos_random(c, 3 * MS) : chaos_random(c, SEC);

	return (struct chaos_ticket){
		.number = a->ticket,
		.comes_ns = lost ? GPOL_NEVER : c->now_ns + took_ns,
		.took_ns = took_ns,
	};
}

static void note_suspend(struct chaos *c, struct chaos_job *j, const struct engine_action *a)
{
	check(c, j->config.class == JOB_OFFLINE);
	check(c, j->config.flags & ENGINE_JOB_PREEMPTIBLE);
	check(c, !j->gone);
	check(c, !c->gpu[j->config.gpu].tripped);
	check(c, !j->held && !j->suspend.number && !j->resume.number);
	check(c, a->deadline_ns > c->now_ns);
	check(c, a->deadline_ns - c->now_ns <= c->config.hold_max_ns);
	check(c, c->config.policy != &gpol_none);
	j->held = true;
	j->waits = false;
	j->held_since_ns = c->now_ns;
	j->deadline_ns = a->deadline_ns;
	j->suspend = ticket_of(c, a);
	c->suspends++;
}

static void note_resume(struct chaos *c, struct chaos_job *j, const struct engine_action *a)
{
	check(c, j->held && !j->resume.number);
	j->held = j->waits = false;
	j->resume = ticket_of(c, a);
	c->resumes++;
}

static void note_actions(struct chaos *c)
{
	bool suspends[CHAOS_GPUS] = { false };
	uint8_t last = ENGINE_RESUME;

	check(c, c->step.n_actions <= c->step.max);
	for (size_t i = 0; i < c->step.n_actions; i++) {
		const struct engine_action *a = &c->actions[i];
		struct chaos_job *j = chaos_find(c, a->job);

		check(c, j && a->gpu == j->config.gpu && a->queue == ENGINE_ALL_QUEUES);
		check(c, a->verb == last || a->verb == ENGINE_SUSPEND);
		last = a->verb;
		if (a->verb == ENGINE_SUSPEND)
			note_suspend(c, j, a);
		else
			note_resume(c, j, a);
		suspends[a->gpu] |= a->verb == ENGINE_SUSPEND;
	}
	for (uint32_t i = 0; i < c->gpus; i++) {
		struct chaos_gpu *g = &c->gpu[i];

		if (suspends[i])
			g->batch_ns[g->batches++ % CHAOS_BATCHES] = c->now_ns;
	}
}

/* ---- all there is ---- */

static void check_budget(const struct chaos *c, const struct chaos_gpu *g)
{
	size_t n = 0;

	if (!c->config.cycles_per_s)
		return;
	for (size_t i = g->batches; i-- && n < CHAOS_BATCHES; n++) {
		if (c->now_ns - g->batch_ns[i % CHAOS_BATCHES] >= SEC)
			break;
	}
	check(c, n <= c->config.cycles_per_s);
}

static void check_hold(const struct chaos *c, struct chaos_job *j)
{
	uint64_t bound_ns =
		j->config.wait_bound_ns ? j->config.wait_bound_ns : c->config.hold_max_ns;
	struct engine_job_stats stats;

	check(c, engine_job_stats(c->e, j->id, &stats) == 0);
	check(c, stats.held == j->held);
	if (!j->held || !stats.has_work)
		j->waits = false;
	else if (!j->waits)
		j->wait_since_ns = c->now_ns;
	j->waits = j->held && stats.has_work;
	if (!j->held || c->step.n_actions == c->step.max)
		return;
	check(c, c->now_ns < j->deadline_ns);
	check(c, c->step.wake_ns <= j->deadline_ns);
	check(c, !j->waits || c->now_ns - j->wait_since_ns < bound_ns);
	check(c, !j->waits || c->step.wake_ns - j->wait_since_ns <= bound_ns);
	check(c, !c->gpu[j->config.gpu].tripped || j->suspend.number);
}

/* While somebody of it is on its way, or did not fit, nothing is said. */
static void check_gang(struct chaos *c, const struct chaos_job *j)
{
	if (j->config.gang == ENGINE_NO_GANG || c->step.n_actions == c->step.max)
		return;
	for (int i = 0; i < CHAOS_JOBS; i++) {
		const struct chaos_job *m = &c->jobs[i];

		if (m->alive && m->config.gang == j->config.gang && m->suspend.number)
			return;
	}
	for (int i = 0; i < CHAOS_JOBS; i++) {
		const struct chaos_job *m = &c->jobs[i];

		if (m->alive && m->config.gang == j->config.gang)
			check(c, m->held == j->held);
	}
}

static void check_wake(const struct chaos *c)
{
	uint64_t longest_ns = c->config.idle_interval_ns;

	for (int i = 0; i < CHAOS_JOBS; i++) {
		const struct chaos_job *j = &c->jobs[i];

		if (j->alive && !j->gone && j->config.class == JOB_OFFLINE &&
		    (j->config.flags & ENGINE_JOB_PREEMPTIBLE) && !c->gpu[j->config.gpu].tripped)
			longest_ns = c->config.interval_ns;
	}
	check(c, c->step.wake_ns >= c->now_ns);
	check(c, c->step.wake_ns - c->now_ns <= longest_ns);
}

static uint64_t hash(uint64_t h, uint64_t value)
{
	return (h ^ value) * 0x100000001b3ull;
}

static uint64_t hash_step(const struct chaos *c, uint64_t h)
{
	for (size_t i = 0; i < c->step.n_actions; i++) {
		const struct engine_action *a = &c->actions[i];

		h = hash(hash(hash(h, a->ticket), a->deadline_ns), a->because);
		h = hash(hash(h, (uint64_t)a->gpu << 32 | a->job), a->verb);
	}
	return hash(hash(h, c->step.n_actions), c->step.wake_ns);
}

static uint64_t play(uint64_t seed, uint64_t *suspends)
{
	static struct chaos c;
	uint64_t h = seed;

	chaos_open(&c, seed);
	for (int i = 0; i < STEPS; i++) {
		chaos_go_on(&c);
		h = hash_step(&c, h);
		note_actions(&c);
		check_wake(&c);
		for (uint32_t g = 0; g < c.gpus; g++)
			check_budget(&c, &c.gpu[g]);
		for (int k = 0; k < CHAOS_JOBS; k++) {
			if (c.jobs[k].alive)
				check_hold(&c, &c.jobs[k]);
		}
		for (int k = 0; k < CHAOS_JOBS; k++) {
			if (c.jobs[k].alive)
				check_gang(&c, &c.jobs[k]);
		}
	}
	*suspends += c.suspends;
	chaos_close(&c);
	return h;
}

/* ---- tests ---- */

static void the_rules_hold_after_every_step_whatever_happens(void **state)
{
	uint64_t suspends = 0;

	for (uint64_t seed = first; seed < first + count; seed++)
		play(seed, &suspends);
	assert_true(suspends >= count); /* something did happen */
}

static void the_same_seed_gives_the_same_bytes(void **state)
{
	uint64_t suspends = 0;

	for (uint64_t seed = first; seed < first + count / 10 + 1; seed++)
		assert_true(play(seed, &suspends) == play(seed, &suspends));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_rules_hold_after_every_step_whatever_happens),
		cmocka_unit_test(the_same_seed_gives_the_same_bytes),
	};

	program = argv[0];
	count = argc > 1 ? strtoull(argv[1], NULL, 0) : count;
	first = argc > 2 ? strtoull(argv[2], NULL, 0) : first;
	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
