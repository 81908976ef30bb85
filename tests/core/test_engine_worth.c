/* SPDX-License-Identifier: MIT */
/*
 * When a preemption is worth it, and for how long room is kept: learnt from a GPU on which work
 * takes as long as it does beside others, and acts as long as they do.
 */
#include "tests/core/engine_rig.h"

#define TICK (50 * US)
#define ACTS 16

struct act {
	uint64_t ticket, done_ns;
	uint32_t job;
	bool suspend;
};

struct gpu {
	struct rig r;
	uint32_t online, offline;
	uint64_t act_ns; /* a suspend, a resume */
	bool disturbs_all; /* all stand still for the second half of it */
	uint64_t speed; /* of online work beside offline work, permille */
	uint64_t ahead_ns; /* bursts are announced so long before; 0: they are not */
	uint64_t look_ns; /* between two looks; 0: every tick is one */
	struct act acts[ACTS];
	size_t n_acts;
	bool off; /* the offline job */
	/* what happened */
	uint64_t suspends, resumes, took_ns, bursts;
};

static void gpu_open(struct gpu *g, uint64_t act_ns, uint64_t speed, bool disturbs_all)
{
	struct engine_config config = rig_config(&gpol_priority);

	config.costs.suspend_ns = config.costs.resume_ns = act_ns;
	config.costs.cycle_ns = act_ns / 2;
	config.costs.disturbs_all = disturbs_all;
	*g = (struct gpu){ .act_ns = act_ns, .speed = speed, .disturbs_all = disturbs_all };
	rig_open(&g->r, &config, 1, 0);
	g->r.silent = true;
	g->online = rig_online(&g->r);
	g->offline = rig_offline(&g->r);
	rig_step(&g->r, MS);
}

static void take_actions(struct gpu *g)
{
	for (size_t i = 0; i < g->r.n_actions; i++) {
		const struct engine_action *a = &g->r.actions[i];
		bool suspend = a->verb == ENGINE_SUSPEND;

		assert_true(g->n_acts < ACTS);
		g->acts[g->n_acts++] =
			(struct act){ a->ticket, g->r.now_ns + g->act_ns, a->job, suspend };
		g->suspends += suspend;
		g->resumes += !suspend;
		g->off &= suspend; /* who returns is in the way at once */
	}
}

static void report_done(struct gpu *g)
{
	size_t kept = 0;

	for (size_t i = 0; i < g->n_acts; i++) {
		struct act *a = &g->acts[i];

		if (a->done_ns > g->r.now_ns) {
			g->acts[kept++] = *a;
			continue;
		}
		assert_int_equal(engine_report(g->r.e, g->r.now_ns, a->ticket, 0, g->act_ns), 0);
		g->off |= a->suspend && a->job == g->offline;
	}
	g->n_acts = kept;
}

static bool stands_still(const struct gpu *g)
{
	for (size_t i = 0; g->disturbs_all && i < g->n_acts; i++) {
		if (g->acts[i].done_ns < g->r.now_ns + g->act_ns / 2)
			return true;
	}
	return false;
}

/* What was reported is judged, but nobody is looked at. */
static void step_blindly(struct rig *r)
{
	struct engine_step step = {
		.now_ns = r->now_ns += TICK,
		.actions = r->actions,
		.max = r->max,
	};

	engine_step(r->e, &step);
	r->n_actions = step.n_actions;
}

static void tick(struct gpu *g)
{
	if (g->look_ns && (g->r.now_ns + TICK) % g->look_ns)
		step_blindly(&g->r);
	else
		rig_step(&g->r, TICK);
	take_actions(g);
	report_done(g);
}

static void pass(struct gpu *g, uint64_t ns)
{
	for (uint64_t end_ns = g->r.now_ns + ns; g->r.now_ns < end_ns;)
		tick(g);
}

/* Work that takes @alone_ns alone; how long it took. */
static uint64_t burst(struct gpu *g, uint64_t alone_ns)
{
	uint64_t began_ns, left = alone_ns * 1000;

	if (g->ahead_ns) {
		engine_hint(g->r.e, g->r.now_ns, g->online, g->r.now_ns + g->ahead_ns, 0);
		rig_step(&g->r, 0);
		take_actions(g);
		pass(g, g->ahead_ns);
	}
	began_ns = g->r.now_ns;
	rig_work(&g->r, g->online, true);
	if (!g->look_ns) {
		rig_step(&g->r, 0);
		take_actions(g);
	}
	while (left) {
		uint64_t speed = stands_still(g) ? 0 : g->off ? 1000 : g->speed;

		left -= left < TICK * speed ? left : TICK * speed;
		tick(g);
	}
	rig_work(&g->r, g->online, false);
	if (!g->look_ns) {
		rig_step(&g->r, 0);
		take_actions(g);
	}
	g->took_ns += g->r.now_ns - began_ns;
	g->bursts++;
	return g->r.now_ns - began_ns;
}

/* Bursts and gaps; what happened before is forgotten. */
static void play(struct gpu *g, size_t n, uint64_t alone_ns, uint64_t gap_ns)
{
	g->suspends = g->resumes = g->took_ns = g->bursts = 0;
	while (n--) {
		burst(g, alone_ns);
		pass(g, gap_ns);
	}
}

static uint64_t mean_ns(const struct gpu *g)
{
	return g->took_ns / g->bursts;
}

/* ---- what an act gains ---- */

static void who_does_no_harm_is_left_alone(void **state)
{
	for (int i = 0; i < 4; i++) {
		struct gpu g;

		gpu_open(&g, 400 * US, 1000, i % 2);
		g.ahead_ns = i / 2 * 100 * US;
		play(&g, 2000, 3 * MS, 7 * MS);
		assert_true(g.suspends < 200);
		play(&g, 2000, 3 * MS, 7 * MS);
		assert_true(g.suspends <= 2000 / 128 + 1);
		assert_true(mean_ns(&g) <= 3 * MS + TICK);
		rig_close(&g.r);
	}
}

static void who_slows_online_work_is_held_however_much_acts_disturb(void **state)
{
	struct gpu g;

	gpu_open(&g, 400 * US, 500, true);
	play(&g, 2000, 3 * MS, 7 * MS);
	assert_true(g.suspends >= 1980);
	assert_true(mean_ns(&g) <= 3 * MS + 400 * US + 2 * TICK);
	rig_close(&g.r);
}

/* 0.9 ms alone and 18 ms beside others, where an act and its undoing cost more than it gains. */
static void a_short_burst_that_others_slow_much_is_worth_an_act_that_costs_more(void **state)
{
	for (uint64_t ahead_ns = 0; ahead_ns <= 100 * US; ahead_ns += 100 * US) {
		struct gpu g;

		gpu_open(&g, 400 * US, 50, true);
		g.ahead_ns = ahead_ns;
		play(&g, 20, 900 * US, 9 * MS);
		play(&g, 1000, 900 * US, 9 * MS);
		assert_true(g.suspends >= 985);
		assert_true(mean_ns(&g) <= 1400 * US);
		rig_close(&g.r);
	}
}

/* 6 ms beside others and 3.8 with room look alike to who looks every 8, from 1 ms after it came. */
static void what_looks_cannot_tell_apart_is_no_reason_to_let_work_wait(void **state)
{
	struct gpu g;

	gpu_open(&g, 400 * US, 500, true);
	g.look_ns = 8 * MS;
	for (int i = 0; i < 1000; i++) {
		pass(&g, 32 * MS - (g.r.now_ns + MS) % (32 * MS));
		g.suspends = i < 500 ? 0 : g.suspends;
		burst(&g, 3 * MS);
	}
	assert_true(g.suspends >= 490);
	rig_close(&g.r);
}

static void a_burst_that_is_over_before_room_is_made_is_let_be(void **state)
{
	struct gpu g;

	gpu_open(&g, 400 * US, 500, true);
	play(&g, 10, 100 * US, 9 * MS);
	play(&g, 4000, 100 * US, 9 * MS);
	assert_int_equal(g.suspends, 0);
	rig_close(&g.r);
}

static void the_other_way_is_tried_so_seldom_that_it_hardly_shows(void **state)
{
	uint64_t usual_ns, longer = 0;
	struct gpu g;

	gpu_open(&g, 400 * US, 500, true);
	usual_ns = burst(&g, 3 * MS);
	for (int i = 0; i < 4000; i++) {
		pass(&g, 7 * MS);
		longer += burst(&g, 3 * MS) > usual_ns + 2 * TICK;
	}
	assert_in_range(longer, 2, 40);
	rig_close(&g.r);
}

/* As an offline job can make them last that keeps a lock of the driver's. */
static void a_few_acts_that_take_long_are_not_remembered_for_long(void **state)
{
	struct gpu g;

	gpu_open(&g, 400 * US, 250, false);
	play(&g, 50, 3 * MS, 7 * MS);
	g.act_ns = 900 * MS;
	play(&g, 3, 3 * MS, 3000 * MS);
	g.act_ns = 400 * US;
	play(&g, 100, 3 * MS, 7 * MS);
	play(&g, 1000, 3 * MS, 7 * MS);
	assert_true(g.suspends >= 985);
	assert_true(g.resumes >= 985); /* nor are others kept off */
	rig_close(&g.r);
}

static void nothing_is_tried_with_a_latency_critical_job(void **state)
{
	const struct engine_job_config critical = {
		.gpu = RIG_GPU,
		.class = JOB_ONLINE,
		.flags = ENGINE_JOB_CRITICAL,
	};
	uint64_t usual_ns, longer = 0;
	struct gpu g;

	gpu_open(&g, 400 * US, 500, true);
	assert_int_equal(engine_change_job(g.r.e, g.online, &critical), 0);
	usual_ns = burst(&g, 3 * MS);
	for (int i = 0; i < 4000; i++) {
		pass(&g, 7 * MS);
		longer += burst(&g, 3 * MS) > usual_ns + 2 * TICK;
	}
	assert_int_equal(longer, 0);
	rig_close(&g.r);
}

/* Announced, and over between two looks: of these nobody knows how long they took. */
static void what_teaches_nothing_is_not_tried_more_often(void **state)
{
	size_t unheld = 0;
	struct gpu g;

	gpu_open(&g, 400 * US, 500, true);
	for (int i = 0; i < 1000; i++) {
		g.suspends = 0;
		engine_hint(g.r.e, g.r.now_ns, g.online, g.r.now_ns, 0);
		rig_step(&g.r, 0);
		take_actions(&g);
		unheld += !g.suspends;
		pass(&g, MS);
		if (!g.suspends)
			g.r.samples[0].read = ++g.r.samples[0].write;
		else
			burst(&g, 3 * MS);
		pass(&g, 7 * MS);
	}
	assert_in_range(unheld, 1, 1000 / 128 + 2);
	rig_close(&g.r);
}

static void what_is_learnt_changes_when_others_come(void **state)
{
	const struct engine_job_config other = { .gpu = RIG_GPU, .flags = ENGINE_JOB_PREEMPTIBLE };
	struct gpu g;

	gpu_open(&g, 400 * US, 1000, true);
	play(&g, 1000, 3 * MS, 7 * MS);
	g.speed = 100;
	rig_add(&g.r, &other, 1);
	assert_true(burst(&g, 3 * MS) <= 3 * MS + 400 * US + 2 * TICK);
	play(&g, 20, 3 * MS, 7 * MS);
	play(&g, 200, 3 * MS, 7 * MS);
	assert_true(g.suspends >= 195);
	rig_close(&g.r);
}

/* Behind something a hundred times as slow as what it learnt of. It was seen long before. */
static void a_burst_that_takes_much_longer_than_others_gets_room_after_all(void **state)
{
	uint64_t detections;
	struct gpu g;

	gpu_open(&g, 400 * US, 1000, true);
	play(&g, 2000, 3 * MS, 7 * MS);
	detections = rig_job(&g.r, g.online).detections;
	g.speed = 10;
	g.suspends = 0;
	assert_true(burst(&g, 3 * MS) <= 3 * MS + 4 * 400 * US + 4 * MS);
	assert_int_equal(g.suspends, 1);
	assert_int_equal(rig_job(&g.r, g.online).detections, detections);
	rig_close(&g.r);
}

/*
 * 0.55 ms alone, 2.2 beside others, 1.4 where they are held at once: but 2.3 when it comes as they
 * return, and so does every twentieth.
 */
static void one_burst_in_a_hundred_is_not_to_be_the_worse_for_it(void **state)
{
	for (int late = 0; late < 2; late++) {
		struct gpu g;

		gpu_open(&g, MS, 250, true);
		for (int i = 0; i < 2000; i++) {
			burst(&g, 550 * US);
			g.resumes = 0;
			for (int k = 0; late && i % 20 == 0 && k < 100 && !g.resumes; k++)
				tick(&g);
			pass(&g, g.resumes ? 0 : 18 * MS);
		}
		play(&g, 100, 550 * US, 18 * MS);
		if (late)
			assert_true(g.suspends <= 2);
		else
			assert_true(g.suspends >= 98);
		rig_close(&g.r);
	}
}

/* ---- whom it is for ---- */

/* One for whom it never pays, and behind it one for whom it does. */
static void one_who_gains_enough_is_reason_enough(void **state)
{
	struct gpu g;
	uint32_t other;

	gpu_open(&g, 400 * US, 500, true);
	play(&g, 300, 100 * US, 9 * MS);
	other = rig_online(&g.r);
	rig_step(&g.r, MS);
	play(&g, 100, 100 * US, 9 * MS);
	assert_true(g.suspends <= 1);
	rig_work(&g.r, g.online, true);
	rig_step(&g.r, TICK);
	assert_int_equal(g.r.n_actions, 0);
	rig_work(&g.r, other, true);
	rig_step(&g.r, TICK);
	assert_true(rig_did(&g.r, ENGINE_SUSPEND, g.offline));
	rig_close(&g.r);
}

/* 6.3 ms alone and 7 ms beside others, to whom an act costs 0.2 ms each: worth it but for four. */
static void those_who_would_stand_still_for_it_count(void **state)
{
	uint32_t urgent, others[4];
	struct gpu g;

	gpu_open(&g, 400 * US, 900, true);
	urgent = g.online;
	for (int i = 0; i < 4; i++)
		others[i] = rig_online(&g.r);
	rig_step(&g.r, MS);
	for (int i = 0; i < 4; i++) {
		g.online = others[i];
		play(&g, 20, 100 * US, 9 * MS); /* never worth it for these */
	}
	g.online = urgent;
	play(&g, 1500, 6300 * US, 3700 * US);
	play(&g, 20, 6300 * US, 3700 * US);
	assert_true(g.suspends >= 19);
	g.suspends = 0;
	for (int i = 0; i < 4; i++)
		rig_work(&g.r, others[i], true);
	tick(&g);
	rig_work(&g.r, urgent, true);
	tick(&g);
	assert_int_equal(g.suspends, 0);
	rig_close(&g.r);
}

static void lingering_is_no_reason_to_hold_who_comes(void **state)
{
	struct engine_config config = rig_config(&gpol_priority);
	uint32_t online, a;
	struct rig r;

	config.params.linger_ns = 50 * MS;
	rig_open(&r, &config, 1, 0);
	online = rig_online(&r);
	rig_step(&r, MS);
	rig_work(&r, online, true);
	rig_step(&r, 10 * MS);
	rig_work(&r, online, false);
	rig_step(&r, 5 * MS);
	a = rig_offline(&r);
	rig_run(&r, 20 * MS);
	assert_false(rig_holds(&r, a));
	rig_work(&r, online, true);
	rig_step(&r, MS);
	assert_true(rig_holds(&r, a));
	rig_close(&r);
}

/* Room is made when it is overdue, but not for the next burst, which did not wait for a second. */
static void work_that_was_announced_and_never_came_teaches_nothing(void **state)
{
	struct gpu g;

	gpu_open(&g, 400 * US, 1000, true);
	play(&g, 2000, 3 * MS, 7 * MS);
	for (int i = 0; i < 20; i++) {
		g.suspends = 0;
		engine_hint(g.r.e, g.r.now_ns, g.online, g.r.now_ns, 0);
		pass(&g, SEC);
		assert_int_equal(g.suspends, 1);
		burst(&g, 3 * MS);
		assert_int_equal(g.suspends, 1);
		pass(&g, 7 * MS);
	}
	rig_close(&g.r);
}

/* ---- gaps ---- */

static void others_stay_off_for_gaps_that_are_not_worth_it(void **state)
{
	struct gpu g;

	gpu_open(&g, 400 * US, 500, true);
	play(&g, 30, 3 * MS, 900 * US);
	play(&g, 300, 3 * MS, 900 * US);
	assert_int_equal(g.resumes, 0);
	assert_true(mean_ns(&g) <= 3 * MS + TICK);
	rig_close(&g.r);
}

static void others_are_let_go_for_gaps_that_are(void **state)
{
	struct gpu g;

	gpu_open(&g, 400 * US, 500, true);
	play(&g, 30, 3 * MS, 3 * MS);
	play(&g, 300, 3 * MS, 3 * MS);
	assert_true(g.resumes >= 298);
	rig_close(&g.r);
}

/* Three short gaps and a long one: the wait in the long one is less than what the short cost. */
static void a_gap_longer_than_those_not_worth_it_ends_what_was_kept(void **state)
{
	struct gpu g;

	gpu_open(&g, 400 * US, 500, true);
	for (int i = 0; i < 60; i++)
		play(&g, 1, 3 * MS, i % 4 == 3 ? 10 * MS : 600 * US);
	for (int i = 0; i < 60; i++) {
		play(&g, 1, 3 * MS, i % 4 == 3 ? 10 * MS : 600 * US);
		assert_int_equal(g.resumes, i % 4 == 3);
	}
	burst(&g, 3 * MS);
	g.resumes = 0;
	pass(&g, 2 * MS);
	assert_int_equal(g.resumes, 1);
	rig_close(&g.r);
}

/* Every other is long: to wait in those would cost more. */
static void what_is_worth_it_on_average_decides(void **state)
{
	struct gpu g;

	gpu_open(&g, 400 * US, 500, true);
	for (int i = 0; i < 60; i++)
		play(&g, 1, 3 * MS, i % 2 ? 10 * MS : 600 * US);
	play(&g, 1, 3 * MS, 600 * US);
	assert_int_equal(g.resumes, 1);
	rig_close(&g.r);
}

static void nobody_waits_past_its_bound_because_room_is_kept(void **state)
{
	struct engine_job_config bound = {
		.gpu = RIG_GPU,
		.flags = ENGINE_JOB_PREEMPTIBLE,
		.wait_bound_ns = 100 * MS,
	};
	struct gpu g;

	gpu_open(&g, 400 * US, 500, true);
	assert_int_equal(engine_change_job(g.r.e, g.offline, &bound), 0);
	play(&g, 600, 3 * MS, 900 * US);
	assert_in_range(rig_job(&g.r, g.offline).longest_wait_ns, 50 * MS, 101 * MS);
	assert_in_range(g.resumes, 5, 50);
	rig_close(&g.r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_does_no_harm_is_left_alone),
		cmocka_unit_test(who_slows_online_work_is_held_however_much_acts_disturb),
		cmocka_unit_test(
			a_short_burst_that_others_slow_much_is_worth_an_act_that_costs_more),
		cmocka_unit_test(what_looks_cannot_tell_apart_is_no_reason_to_let_work_wait),
		cmocka_unit_test(a_burst_that_is_over_before_room_is_made_is_let_be),
		cmocka_unit_test(the_other_way_is_tried_so_seldom_that_it_hardly_shows),
		cmocka_unit_test(a_few_acts_that_take_long_are_not_remembered_for_long),
		cmocka_unit_test(nothing_is_tried_with_a_latency_critical_job),
		cmocka_unit_test(what_teaches_nothing_is_not_tried_more_often),
		cmocka_unit_test(what_is_learnt_changes_when_others_come),
		cmocka_unit_test(a_burst_that_takes_much_longer_than_others_gets_room_after_all),
		cmocka_unit_test(one_burst_in_a_hundred_is_not_to_be_the_worse_for_it),
		cmocka_unit_test(one_who_gains_enough_is_reason_enough),
		cmocka_unit_test(those_who_would_stand_still_for_it_count),
		cmocka_unit_test(lingering_is_no_reason_to_hold_who_comes),
		cmocka_unit_test(work_that_was_announced_and_never_came_teaches_nothing),
		cmocka_unit_test(others_stay_off_for_gaps_that_are_not_worth_it),
		cmocka_unit_test(others_are_let_go_for_gaps_that_are),
		cmocka_unit_test(a_gap_longer_than_those_not_worth_it_ends_what_was_kept),
		cmocka_unit_test(what_is_worth_it_on_average_decides),
		cmocka_unit_test(nobody_waits_past_its_bound_because_room_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
