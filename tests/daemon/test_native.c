/* SPDX-License-Identifier: MIT */
/* Handing over to the scheduler that the driver has itself, and taking back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/daemon/rig.h"

static struct rig *rig_schedules(void)
{
	struct rig *r = rig_new(8);

	r->fake.base.caps.schedules = true;
	r->config.kernel_scheduler = true;
	scheduler_configure(r->s, &r->config);
	return r;
}

/* One of each on GPU 1, and the driver decides. */
static struct rig *rig_handed(struct fake_process **ret_online, struct fake_process **ret_offline)
{
	struct rig *r = rig_schedules();

	*ret_online = rig_online(r, ONLINE_PID, 1);
	*ret_offline = rig_offline(r, OFFLINE_PID, 1);
	rig_run(r, 2 * S);
	assert_true(r->fake.native.on);
	assert_int_equal(r->told[GPREEMPT_EVENT_HANDED_OVER], 1);
	return r;
}

static bool says_kernel(struct rig *r)
{
	struct gpreempt_daemon_status status = { 0 };

	scheduler_status(r->s, &status);
	return status.kernel;
}

static void expect_taken_back(struct rig *r, struct fake_process *online,
			      struct fake_process *offline, const char *why)
{
	rig_run_until(r, r->told[GPREEMPT_EVENT_TAKEN_BACK] == 1);
	assert_non_null(strstr(r->last[GPREEMPT_EVENT_TAKEN_BACK].text, why));
	assert_false(says_kernel(r));
	fake_set_work(online, true);
	rig_run_until(r, fake_is_held(offline));
}

static void the_driver_decides_and_nothing_is_held_from_here(void **state)
{
	struct fake_process *online, *offline;
	struct rig *r = rig_handed(&online, &offline);

	assert_true(says_kernel(r));
	assert_int_equal(online->native.job_class, JOB_ONLINE);
	assert_int_equal(offline->native.job_class, JOB_OFFLINE);
	assert_int_equal(offline->native.priority, 5);
	fake_set_work(online, true);
	rig_run(r, 5 * S);
	assert_int_equal(offline->attaches, 0);
	assert_int_equal(offline->suspends, 0);
	assert_int_equal(r->told[GPREEMPT_EVENT_HELD], 0);
	rig_end(r);
}

static void without_being_told_to_it_is_left_off(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;

	r->fake.base.caps.schedules = true;
	rig_held(r, &online, &offline);
	assert_int_equal(r->fake.native.turn_ons, 0);
	assert_false(says_kernel(r));
	rig_end(r);
}

static void where_there_is_none_the_daemon_schedules(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;

	r->config.kernel_scheduler = true;
	scheduler_configure(r->s, &r->config);
	rig_held(r, &online, &offline);
	assert_int_equal(r->fake.native.turn_ons, 0);
	rig_end(r);
}

static void where_it_cannot_be_turned_on_the_daemon_schedules(void **state)
{
	static const int errors[] = { -EPERM, -EOPNOTSUPP, -ENOMEM, -EINVAL };

	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		struct rig *r = rig_schedules();
		struct fake_process *online, *offline;

		r->fake.native.turn_on_result = errors[i];
		rig_held(r, &online, &offline);
		assert_int_equal(r->fake.native.turn_ons, 1); /* and is not tried for ever */
		assert_false(r->fake.native.on);
		assert_int_equal(r->told[GPREEMPT_EVENT_HANDED_OVER], 0);
		assert_false(journal_turned_on(r->journal));
		rig_end(r);
	}
}

static void what_is_held_is_let_go_when_it_is_handed_over(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;

	r->fake.base.caps.schedules = true;
	rig_held(r, &online, &offline);
	r->config.kernel_scheduler = true;
	scheduler_configure(r->s, &r->config);
	rig_run(r, 100 * MS);
	assert_true(says_kernel(r));
	assert_false(fake_is_held(offline));
	assert_int_equal(r->fake.targets, 0);
	assert_int_equal(offline->native.job_class, JOB_OFFLINE);
	rig_end(r);
}

static void settings_reach_it_and_later_ones_too(void **state)
{
	struct fake_process *online, *offline;
	struct rig *r = rig_handed(&online, &offline);
	const struct gpu_native_config *c = &r->fake.native.config;

	assert_string_equal(c->policy, "priority");
	assert_int_equal(c->interval_ns, r->config.engine.interval_ns);
	assert_int_equal(c->hold_max_ns, r->config.engine.hold_max_ns);
	assert_false(c->reserve);
	scheduler_set_policy(r->s, &gpol_share);
	rig_run(r, MS);
	assert_string_equal(c->policy, "share");
	r->config.engine.policy = &gpol_rotate;
	r->config.ration_slots = true;
	scheduler_configure(r->s, &r->config);
	rig_run(r, MS);
	assert_string_equal(c->policy, "rotate");
	assert_true(c->reserve);
	assert_int_equal(c->offline_permille, r->config.engine.offline_permille);
	assert_int_equal(r->told[GPREEMPT_EVENT_TAKEN_BACK], 0);
	rig_end(r);
}

static void settings_it_does_not_take_give_the_work_back(void **state)
{
	struct fake_process *online, *offline;
	struct rig *r = rig_handed(&online, &offline);

	r->fake.native.turn_on_result = -EINVAL;
	scheduler_set_policy(r->s, &gpol_share);
	expect_taken_back(r, online, offline, "configuration");
	assert_false(r->fake.native.on);
	rig_end(r);
}

static void new_jobs_and_new_classes_are_told(void **state)
{
	struct fake_process *online, *offline, *late;
	struct rig *r = rig_handed(&online, &offline);
	struct class_request request = rig_request(WIRE_BY_PID, OFFLINE_PID, JOB_ONLINE);
	uint32_t sets;

	late = rig_offline(r, 300, 2);
	rig_run_until(r, late->native.job_class == JOB_OFFLINE);
	sets = offline->native_sets;
	rig_run(r, 5 * S);
	assert_true(offline->native_sets - sets <= 1); /* not again and again */
	assert_int_equal(scheduler_class(r->s, &request), 1);
	rig_run(r, MS);
	assert_int_equal(offline->native.job_class, JOB_ONLINE);
	request = rig_request(WIRE_BY_PID, OFFLINE_PID, JOB_UNMANAGED);
	assert_int_equal(scheduler_class(r->s, &request), 1);
	rig_run(r, MS);
	assert_int_equal(offline->native.job_class, JOB_UNMANAGED);
	rig_end(r);
}

static void a_class_it_did_not_take_is_told_again(void **state)
{
	struct fake_process *online, *offline, *late;
	struct rig *r = rig_handed(&online, &offline);

	r->fake.native.set_job_result = -ENOMEM;
	late = rig_offline(r, 300, 2);
	rig_run(r, 3 * S);
	assert_int_equal(late->native.job_class, JOB_UNMANAGED);
	r->fake.native.set_job_result = 0;
	rig_run_until(r, late->native.job_class == JOB_OFFLINE);
	rig_end(r);
}

/* The driver forgets with the old program; the daemon looks now and then who it is. */
static void another_program_in_the_same_process_is_told_again(void **state)
{
	struct fake_process *online, *offline;
	struct rig *r = rig_handed(&online, &offline);

	offline->native.job_class = JOB_UNMANAGED;
	snprintf(offline->comm, sizeof(offline->comm), "other");
	rig_run_until(r, offline->native.job_class == JOB_OFFLINE);
	rig_end(r);
}

static void hints_are_passed_on(void **state)
{
	struct fake_process *online, *offline;
	struct rig *r = rig_handed(&online, &offline);
	uint64_t now_ns = r->fake.now_ns;

	assert_int_equal(scheduler_hint(r->s, ONLINE_PID, now_ns + 3 * MS, 2 * MS), 0);
	assert_int_equal(online->native_hints, 1);
	assert_int_equal(online->native_ahead_ns, 3 * MS);
	assert_int_equal(online->native_for_ns, 2 * MS);
	assert_int_equal(scheduler_figures(r->s)->status.hints, 1);
	assert_int_equal(scheduler_hint(r->s, OFFLINE_PID, 0, 0), -EPERM);
	rig_end(r);
}

static void hints_by_page_are_passed_on_in_time(void **state)
{
	struct fake_process *online, *offline;
	struct rig *r = rig_handed(&online, &offline);
	struct wire_hint_page *page;
	int fd;

	assert_int_equal(scheduler_hint_page(r->s, ONLINE_PID, &fd), 0);
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(page != MAP_FAILED);
	rig_run(r, 100 * MS);
	assert_true(online->native.critical);
	page->calls++;
	rig_run(r, 2 * r->config.engine.critical_interval_ns);
	assert_int_equal(online->native_hints, 1);
	munmap(page, 4096);
	close(fd);
	rig_end(r);
}

static void whoever_is_released_is_left_alone_for_a_while(void **state)
{
	struct fake_process *online, *offline;
	struct rig *r = rig_handed(&online, &offline);

	scheduler_release(r->s, OFFLINE_PID);
	assert_int_equal(offline->native.job_class, JOB_UNMANAGED); /* before it returns */
	rig_run(r, 62 * S);
	assert_int_equal(offline->native.job_class, JOB_OFFLINE);
	rig_end(r);
}

static void a_gpu_is_rearmed_there_too(void **state)
{
	struct fake_process *online, *offline;
	struct rig *r = rig_handed(&online, &offline);

	assert_int_equal(scheduler_rearm(r->s, 1), 0);
	assert_int_equal(r->fake.native.rearms, 1);
	rig_end(r);
}

static void when_somebody_turns_it_off_the_daemon_takes_back(void **state)
{
	struct fake_process *online, *offline;
	struct rig *r = rig_handed(&online, &offline);

	r->fake.native.on = false;
	expect_taken_back(r, online, offline, "turned");
	rig_run(r, 10 * S);
	assert_int_equal(r->fake.native.turn_ons, 1); /* it is not fought over */
	scheduler_configure(r->s, &r->config);
	rig_run(r, S);
	assert_true(r->fake.native.on); /* until it is said again */
	rig_end(r);
}

static void when_it_goes_the_daemon_takes_back(void **state)
{
	struct fake_process *online, *offline;
	struct rig *r = rig_handed(&online, &offline);

	r->fake.native.gone = true;
	expect_taken_back(r, online, offline, "gone");
	assert_false(journal_turned_on(r->journal));
	rig_end(r);
}

static void the_configuration_takes_back_too(void **state)
{
	struct fake_process *online, *offline;
	struct rig *r = rig_handed(&online, &offline);

	r->config.kernel_scheduler = false;
	scheduler_configure(r->s, &r->config);
	expect_taken_back(r, online, offline, "configuration");
	assert_false(r->fake.native.on);
	rig_end(r);
}

static void it_ends_with_the_daemon_that_turned_it_on(void **state)
{
	struct fake_process *online, *offline;
	struct rig *r = rig_handed(&online, &offline);

	assert_true(journal_turned_on(r->journal)); /* should it be killed */
	scheduler_free(r->s);
	assert_false(r->fake.native.on);
	assert_false(journal_turned_on(r->journal));
	r->s = NULL;
	rig_free(r);
}

static void one_that_a_killed_daemon_turned_on_ends_with_this_one(void **state)
{
	struct rig *r = rig_schedules();

	r->fake.native.on = true;
	journal_set_turned_on(r->journal, true);
	rig_run(r, 2 * S);
	assert_true(says_kernel(r));
	scheduler_free(r->s);
	assert_false(r->fake.native.on);
	r->s = NULL;
	rig_free(r);
}

/* On, though the configuration says no: of a daemon that was killed, or of somebody else. */
static void nobody_wants(bool ours, int turn_off_result)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;

	r->fake.base.caps.schedules = true;
	r->fake.native.on = true;
	r->fake.native.turn_off_result = turn_off_result;
	journal_set_turned_on(r->journal, ours);
	rig_held(r, &online, &offline); /* it is no reason not to schedule */
	rig_run(r, 5 * S);
	assert_int_equal(r->fake.native.turn_offs, ours); /* and is not tried for ever */
	assert_int_equal(r->fake.native.on, !ours || turn_off_result);
	assert_int_equal(journal_turned_on(r->journal), ours && turn_off_result);
	assert_int_equal(r->told[GPREEMPT_EVENT_TAKEN_BACK], ours && !turn_off_result);
	rig_end(r);
}

static void one_that_a_killed_daemon_turned_on_and_nobody_wants_is_turned_off(void **state)
{
	nobody_wants(true, 0);
	nobody_wants(true, -EPERM);
}

/* Before it came to look, or after it looked in vain. */
static void whoever_is_let_go_of_is_not_held_by_it_either(void **state)
{
	struct rig *r = rig_schedules();

	r->fake.native.on = true;
	journal_set_turned_on(r->journal, true);
	scheduler_pause(r->s);
	assert_false(r->fake.native.on);
	rig_free(r);

	r = rig_schedules();
	r->fake.native.on = true;
	r->fake.native.turn_on_result = r->fake.native.turn_off_result = -EIO;
	journal_set_turned_on(r->journal, true);
	rig_run(r, 5 * S);
	assert_true(r->fake.native.on);
	r->fake.native.turn_off_result = 0;
	scheduler_free(r->s);
	r->s = NULL;
	assert_false(r->fake.native.on);
	assert_false(journal_turned_on(r->journal));
	rig_free(r);
}

static void one_that_others_turned_on_is_left_on(void **state)
{
	nobody_wants(false, 0);
}

static void what_was_on_before_stays_on(void **state)
{
	struct rig *r = rig_schedules();

	r->fake.native.on = true;
	rig_run(r, 2 * S);
	assert_true(says_kernel(r));
	scheduler_free(r->s);
	assert_true(r->fake.native.on);
	assert_int_equal(r->fake.native.turn_offs, 0);
	r->s = NULL;
	rig_free(r);
}

static void a_pause_turns_it_off_and_the_end_of_it_on_again(void **state)
{
	struct fake_process *online, *offline;
	struct rig *r = rig_handed(&online, &offline);

	scheduler_pause(r->s);
	assert_false(r->fake.native.on);
	rig_run(r, 5 * S);
	assert_false(r->fake.native.on);
	scheduler_continue(r->s);
	rig_run(r, 2 * S);
	assert_true(r->fake.native.on);
	assert_int_equal(offline->native.job_class, JOB_OFFLINE);
	rig_end(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_driver_decides_and_nothing_is_held_from_here),
		cmocka_unit_test(without_being_told_to_it_is_left_off),
		cmocka_unit_test(where_there_is_none_the_daemon_schedules),
		cmocka_unit_test(where_it_cannot_be_turned_on_the_daemon_schedules),
		cmocka_unit_test(what_is_held_is_let_go_when_it_is_handed_over),
		cmocka_unit_test(settings_reach_it_and_later_ones_too),
		cmocka_unit_test(settings_it_does_not_take_give_the_work_back),
		cmocka_unit_test(new_jobs_and_new_classes_are_told),
		cmocka_unit_test(a_class_it_did_not_take_is_told_again),
		cmocka_unit_test(another_program_in_the_same_process_is_told_again),
		cmocka_unit_test(hints_are_passed_on),
		cmocka_unit_test(hints_by_page_are_passed_on_in_time),
		cmocka_unit_test(whoever_is_released_is_left_alone_for_a_while),
		cmocka_unit_test(a_gpu_is_rearmed_there_too),
		cmocka_unit_test(when_somebody_turns_it_off_the_daemon_takes_back),
		cmocka_unit_test(when_it_goes_the_daemon_takes_back),
		cmocka_unit_test(the_configuration_takes_back_too),
		cmocka_unit_test(it_ends_with_the_daemon_that_turned_it_on),
		cmocka_unit_test(what_was_on_before_stays_on),
		cmocka_unit_test(one_that_a_killed_daemon_turned_on_ends_with_this_one),
		cmocka_unit_test(whoever_is_let_go_of_is_not_held_by_it_either),
		cmocka_unit_test(
			one_that_a_killed_daemon_turned_on_and_nobody_wants_is_turned_off),
		cmocka_unit_test(one_that_others_turned_on_is_left_on),
		cmocka_unit_test(a_pause_turns_it_off_and_the_end_of_it_on_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
