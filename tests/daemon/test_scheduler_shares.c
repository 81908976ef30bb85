/* SPDX-License-Identifier: MIT */
/* Room is limited: whoever has most of it keeps nobody else out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/daemon/rig.h"

#define CROWD 1400 /* more than there is room for */
#define CROWD_USER (USER + 1)
#define OTHER_USER (USER + 2)

static struct gpreempt_daemon_status status_of(struct rig *r)
{
	struct gpreempt_daemon_status status = { 0 };

	scheduler_status(r->s, &status);
	return status;
}

static void add_crowd(struct rig *r, pid_t first, size_t n)
{
	for (size_t i = 0; i < n; i++)
		rig_offline(r, first + (pid_t)i, 2)->uid = CROWD_USER;
}

static bool is_known(struct rig *r, pid_t pid, uint32_t gpu)
{
	struct gpreempt_daemon_job job;

	return rig_job(r, pid, gpu, &job);
}

static void a_crowd_of_one_user_keeps_nobody_out(void **state)
{
	struct rig *r = rig_new(CROWD + 8);
	struct fake_process *online, *offline;

	add_crowd(r, 1000, CROWD); /* lower pids than everybody else */
	rig_run(r, 10 * S);
	assert_int_equal(status_of(r).processes, SCHEDULER_MAX_PROCESSES);
	online = rig_online(r, 5000, 1);
	online->uid = OTHER_USER;
	offline = rig_offline(r, 5001, 1);
	offline->uid = USER;
	rig_run(r, 3 * S);
	assert_true(is_known(r, 5000, 1));
	assert_true(is_known(r, 5001, 1));
	assert_int_equal(status_of(r).processes, SCHEDULER_MAX_PROCESSES);
	fake_set_work(online, true);
	rig_run_until(r, fake_is_held(offline));
	assert_non_null(strstr(status_of(r).blind, "left alone"));
	rig_end(r);
}

static void who_makes_room_is_let_go_first(void **state)
{
	struct rig *r = rig_new(CROWD + 8);
	struct fake_process *online, *late = NULL;

	online = rig_online(r, 10, 2);
	online->uid = CROWD_USER;
	add_crowd(r, 1000, SCHEDULER_MAX_PROCESSES - 2);
	rig_run(r, 10 * S);
	late = rig_offline(r, 4000, 2);
	late->uid = CROWD_USER;
	fake_set_work(online, true);
	rig_run_until(r, fake_is_held(late));
	rig_offline(r, 5000, 1)->uid = OTHER_USER;
	rig_run(r, 3 * S);
	assert_true(is_known(r, 5000, 1));
	assert_false(is_known(r, 4000, 2));
	rig_run_until(r, !fake_is_held(late));
	rig_end(r);
}

static void users_with_as_many_change_nothing_for_each_other(void **state)
{
	struct rig *r = rig_new(CROWD + 8);
	uint32_t went;

	for (pid_t i = 0; i < CROWD; i++)
		rig_offline(r, 1000 + i, 1)->uid = USER + (uid_t)(i % 2);
	rig_run(r, 10 * S);
	assert_int_equal(status_of(r).processes, SCHEDULER_MAX_PROCESSES);
	went = r->told[GPREEMPT_EVENT_JOB_WENT];
	rig_run(r, 10 * S);
	assert_int_equal(r->told[GPREEMPT_EVENT_JOB_WENT], went);
	rig_end(r);
}

static void room_that_is_there_again_is_used(void **state)
{
	struct rig *r = rig_new(CROWD + 8);

	add_crowd(r, 1000, CROWD);
	rig_run(r, 10 * S);
	for (pid_t i = 0; i < CROWD; i++) {
		if (i % 4)
			fake_exit(&r->fake, 1000 + i);
	}
	rig_run(r, 20 * S);
	assert_int_equal(status_of(r).processes, CROWD / 4);
	assert_string_equal(status_of(r).blind, "");
	rig_end(r);
}

static void queues_of_one_user_leave_room_for_others(void **state)
{
	struct rig *r = rig_new(700);
	struct fake_process *online;

	for (pid_t pid = 0; pid < 600; pid++) {
		struct fake_process *p = rig_offline(r, 1000 + pid, 2);

		p->uid = CROWD_USER;
		for (uint32_t q = 2; q <= FAKE_QUEUES; q++)
			fake_add_queue(p, 2, q);
	}
	rig_run(r, 5 * S);
	assert_int_equal(status_of(r).queues, SCHEDULER_MAX_QUEUES);
	online = rig_online(r, 5000, 1);
	online->uid = OTHER_USER;
	for (uint32_t q = 2; q <= FAKE_QUEUES; q++)
		fake_add_queue(online, 1, q);
	rig_run(r, 3 * S);
	assert_true(is_known(r, 5000, 1));
	assert_true(status_of(r).queues <= SCHEDULER_MAX_QUEUES);
	rig_end(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_crowd_of_one_user_keeps_nobody_out),
		cmocka_unit_test(who_makes_room_is_let_go_first),
		cmocka_unit_test(users_with_as_many_change_nothing_for_each_other),
		cmocka_unit_test(room_that_is_there_again_is_used),
		cmocka_unit_test(queues_of_one_user_leave_room_for_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
