/* SPDX-License-Identifier: MIT */
/* Announced work whose length was said. What holds for every hint: test_engine_rules.c. */
#include "tests/core/engine_rig.h"

/* One online and one offline job on a GPU that does not tell of progress. */
struct blind {
	struct rig r;
	uint32_t online, offline;
	uint64_t resume_ns;
};

static void blind_open(struct blind *b, const struct gpol_ops *policy)
{
	struct engine_config config = rig_config(policy);

	config.costs.counts_progress = false;
	config.params.linger_ns = 50 * MS;
	rig_open(&b->r, &config, 1, 0);
	b->online = rig_online(&b->r);
	b->offline = rig_offline(&b->r);
	b->resume_ns = config.costs.resume_ns;
	rig_step(&b->r, MS);
}

static void announce(struct blind *b, uint64_t ahead_ns, uint64_t for_ns)
{
	struct rig *r = &b->r;

	assert_int_equal(engine_hint(r->e, r->now_ns, b->online, r->now_ns + ahead_ns, for_ns), 0);
	rig_step(r, 0);
}

static void who_made_room_comes_back_when_announced_work_ends(void **state)
{
	struct blind b;
	uint64_t at_ns;

	blind_open(&b, &rig_urgent_first);
	at_ns = b.r.now_ns + 3 * MS;
	announce(&b, 3 * MS, 40 * MS);
	rig_run_until(&b.r, ENGINE_SUSPEND, b.offline);
	assert_true(b.r.now_ns < at_ns);
	rig_run_until(&b.r, ENGINE_RESUME, b.offline);
	assert_int_equal(b.r.now_ns, at_ns + 40 * MS);
	rig_run(&b.r, SEC);
	assert_int_equal(rig_job(&b.r, b.offline).preempted, 1);
	rig_close(&b.r);
}

/* A faster resume than was reckoned with must not make the work that is over come back. */
static void what_is_learnt_at_the_end_does_not_put_it_off(void **state)
{
	struct blind b;

	blind_open(&b, &rig_urgent_first);
	announce(&b, 0, 5 * MS);
	b.r.silent = true;
	rig_run_until(&b.r, ENGINE_RESUME, b.offline);
	engine_report(b.r.e, b.r.now_ns, b.r.actions[0].ticket, 0, 0);
	assert_true(rig_gpu(&b.r, RIG_GPU).resume_ns < b.resume_ns);
	b.r.silent = false;
	rig_run(&b.r, 10 * MS);
	assert_int_equal(rig_job(&b.r, b.offline).preempted, 1);
	rig_close(&b.r);
}

static void announced_work_does_not_end_before_it_begins(void **state)
{
	struct blind b;
	uint64_t at_ns;

	blind_open(&b, &rig_urgent_first);
	at_ns = b.r.now_ns + 3 * MS;
	announce(&b, 3 * MS, 1);
	rig_run_until(&b.r, ENGINE_SUSPEND, b.offline);
	rig_run_until(&b.r, ENGINE_RESUME, b.offline);
	assert_int_equal(b.r.now_ns, at_ns + 1);
	rig_close(&b.r);
}

static void an_announced_end_is_not_followed_by_lingering(void **state)
{
	const struct gpol_ops *const policies[] = { &gpol_priority, &gpol_rotate, &gpol_share };

	for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
		struct blind b;
		uint64_t at_ns;

		blind_open(&b, policies[i]);
		at_ns = b.r.now_ns;
		announce(&b, 0, 5 * MS);
		assert_true(rig_holds(&b.r, b.offline));
		rig_run_until(&b.r, ENGINE_RESUME, b.offline);
		assert_int_equal(b.r.now_ns, at_ns + 5 * MS);
		rig_close(&b.r);
	}
}

static void of_overlapping_announcements_the_last_end_counts(void **state)
{
	static const struct {
		uint64_t ahead_ns, for_ns;
	} second[] = { { 5 * MS, 15 * MS }, { 0, 20 * MS }, { 10 * MS, 10 * MS } },
	  inner[] = { { 5 * MS, 2 * MS }, { 0, 1 * MS }, { 19 * MS, 1 * MS } };

	for (size_t i = 0; i < 6; i++) {
		bool nested = i >= 3;
		struct blind b;
		uint64_t at_ns;

		blind_open(&b, &rig_urgent_first);
		at_ns = b.r.now_ns;
		announce(&b, 0, nested ? 20 * MS : 10 * MS);
		announce(&b, nested ? inner[i - 3].ahead_ns : second[i].ahead_ns,
			 nested ? inner[i - 3].for_ns : second[i].for_ns);
		rig_run_until(&b.r, ENGINE_RESUME, b.offline);
		assert_int_equal(b.r.now_ns, at_ns + 20 * MS);
		assert_int_equal(rig_job(&b.r, b.offline).preempted, 1);
		rig_close(&b.r);
	}
}

/* Once over, what was announced for within another does not take its place in the memory. */
static void a_long_phase_leaves_room_for_other_announcements(void **state)
{
	struct blind b;

	blind_open(&b, &rig_urgent_first);
	announce(&b, 0, SEC);
	for (int i = 0; i < 20; i++) {
		announce(&b, 2 * MS, MS);
		rig_run(&b.r, 10 * MS);
	}
	announce(&b, 790 * MS, 160 * MS);
	rig_run(&b.r, 801 * MS);
	assert_true(rig_holds(&b.r, b.offline));
	rig_run(&b.r, 100 * MS);
	assert_true(rig_holds(&b.r, b.offline));
	rig_run(&b.r, 100 * MS);
	assert_false(rig_holds(&b.r, b.offline));
	rig_close(&b.r);
}

static void turns_go_on_after_announced_work(void **state)
{
	struct engine_job_stats a, other;
	struct blind b;
	uint32_t second;

	blind_open(&b, &gpol_rotate);
	second = rig_offline(&b.r);
	rig_run(&b.r, 10 * MS);
	for (int i = 0; i < 1000; i++) {
		announce(&b, MS, 4 * MS);
		rig_run(&b.r, 2 * MS);
		assert_true(rig_holds(&b.r, b.offline) && rig_holds(&b.r, second));
		rig_run(&b.r, 3 * MS);
		assert_true(rig_holds(&b.r, b.offline) != rig_holds(&b.r, second));
		rig_run(&b.r, 5 * MS);
	}
	a = rig_job(&b.r, b.offline);
	other = rig_job(&b.r, second);
	assert_in_range(a.ran_ns, 2500 * MS, 3300 * MS);
	assert_in_range(other.ran_ns, 2500 * MS, 3300 * MS);
	rig_close(&b.r);
}

static void work_that_shows_up_ends_what_was_announced_of_it(void **state)
{
	struct engine_config config = rig_config(&rig_urgent_first);
	uint32_t online, a;
	struct rig r;

	rig_open(&r, &config, 1, 0);
	online = rig_online(&r);
	a = rig_offline(&r);
	rig_step(&r, MS);
	assert_int_equal(engine_hint(r.e, r.now_ns, online, r.now_ns, SEC), 0);
	assert_int_equal(rig_step(&r, 0), 1);
	rig_work(&r, online, true);
	rig_step(&r, MS);
	assert_true(rig_holds(&r, a));
	rig_work(&r, online, false);
	rig_step(&r, MS);
	assert_false(rig_holds(&r, a));
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_made_room_comes_back_when_announced_work_ends),
		cmocka_unit_test(what_is_learnt_at_the_end_does_not_put_it_off),
		cmocka_unit_test(announced_work_does_not_end_before_it_begins),
		cmocka_unit_test(an_announced_end_is_not_followed_by_lingering),
		cmocka_unit_test(of_overlapping_announcements_the_last_end_counts),
		cmocka_unit_test(a_long_phase_leaves_room_for_other_announcements),
		cmocka_unit_test(turns_go_on_after_announced_work),
		cmocka_unit_test(work_that_shows_up_ends_what_was_announced_of_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
