/* SPDX-License-Identifier: MIT */
/* What cannot be seen is told, and never taken for idle. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/daemon/rig.h"

static const char *blind_of(struct rig *r)
{
	static struct wire_status status;

	status = (struct wire_status){ 0 };
	scheduler_status(r->s, &status);
	return status.blind;
}

static uint32_t flags_of(struct rig *r, pid_t pid)
{
	struct wire_job job;

	assert_true(rig_job(r, pid, 1, &job));
	return job.flags;
}

static void a_job_that_cannot_be_looked_at_is_told_of_once(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;
	struct wire_job job;

	rig_pair(r, &online, &offline);
	offline->blind = true;
	rig_run(r, 10 * S);
	assert_int_equal(r->told[WIRE_JOB_BLIND_NOW], 1);
	assert_int_equal(r->last[WIRE_JOB_BLIND_NOW].pid, OFFLINE_PID);
	assert_non_null(strstr(r->last[WIRE_JOB_BLIND_NOW].text, "does not let itself be looked"));
	assert_true(rig_job(r, OFFLINE_PID, 1, &job));
	assert_int_equal(job.flags & (WIRE_JOB_BLIND | WIRE_JOB_UNSEEN | WIRE_JOB_WORKING),
			 WIRE_JOB_BLIND | WIRE_JOB_UNSEEN);
	assert_string_equal(job.why, "it does not let itself be looked at");
	assert_false(flags_of(r, ONLINE_PID) & WIRE_JOB_BLIND);
	assert_string_equal(blind_of(r), "");

	offline->blind = false;
	rig_run(r, 2 * S);
	assert_int_equal(r->told[WIRE_JOB_SEEN], 1);
	assert_false(flags_of(r, OFFLINE_PID) & (WIRE_JOB_BLIND | WIRE_JOB_UNSEEN));
	rig_end(r);
}

static void such_a_job_makes_room_for_online_work_all_the_same(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;

	rig_pair(r, &online, &offline);
	offline->blind = true;
	fake_set_work(online, true);
	rig_run_until(r, fake_is_held(offline));
	rig_end(r);
}

static void one_whose_looks_do_not_come_back_keeps_nobody(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline, *late;

	rig_pair(r, &online, &offline);
	late = rig_offline(r, 300, 1);
	rig_run(r, 2 * S);
	late->late = true;
	fake_set_work(online, true);
	rig_run_until(r, fake_is_held(offline));
	fake_set_work(online, false);
	rig_run_until(r, !fake_is_held(offline));
	rig_end(r);
}

static void queues_that_come_during_a_look_are_looked_at(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;

	rig_pair(r, &online, &offline);
	online->late = true;
	rig_run(r, S);
	fake_add_queue(online, 1, 77);
	rig_run(r, 2 * S);
	online->late = false;
	fake_set_work(online, true);
	rig_run_until(r, fake_is_held(offline));
	rig_end(r);
}

static void what_is_so_of_all_is_told_once_and_not_of_each(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;

	r->fake.problem = "there is no list of queues";
	online = rig_online(r, ONLINE_PID, 1);
	offline = rig_offline(r, OFFLINE_PID, 1);
	online->blind = offline->blind = true;
	rig_run(r, 10 * S);
	assert_int_equal(r->told[WIRE_BLIND], 1);
	assert_non_null(strstr(r->last[WIRE_BLIND].text, "there is no list of queues"));
	assert_int_equal(r->told[WIRE_JOB_BLIND_NOW], 0);
	assert_string_equal(blind_of(r), "there is no list of queues");
	assert_true(flags_of(r, ONLINE_PID) & WIRE_JOB_BLIND);
	assert_true(flags_of(r, OFFLINE_PID) & WIRE_JOB_BLIND);

	r->fake.problem = NULL;
	online->blind = offline->blind = false;
	rig_run(r, 2 * S);
	assert_int_equal(r->told[WIRE_SEES], 1);
	assert_string_equal(blind_of(r), "");
	assert_false(flags_of(r, ONLINE_PID) & WIRE_JOB_BLIND);
	rig_end(r);
}

static void what_comes_and_goes_is_told_now_and_then(void **state)
{
	struct rig *r = rig_new(8);

	rig_offline(r, OFFLINE_PID, 1);
	for (int i = 0; i < 40; i++) {
		r->fake.problem = i % 2 ? NULL : i % 4 ? "one is unseen" : "two are unseen";
		rig_run(r, S);
	}
	assert_in_range(r->told[WIRE_BLIND], 3, 5);
	assert_in_range(r->told[WIRE_SEES], 0, 5);
	rig_end(r);
}

static void processes_that_cannot_be_listed_are_told_of_and_kept(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;

	rig_pair(r, &online, &offline);
	r->fake.processes_result = -EBADMSG;
	rig_run(r, 5 * S);
	assert_int_equal(r->told[WIRE_BLIND], 1);
	assert_non_null(strstr(blind_of(r), "cannot be listed"));
	fake_set_work(online, true);
	rig_run_until(r, fake_is_held(offline));
	r->fake.processes_result = 0;
	rig_run(r, 2 * S);
	assert_int_equal(r->told[WIRE_SEES], 1);
	rig_end(r);
}

static void who_does_not_let_itself_be_read_is_told_of(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *offline = rig_offline(r, OFFLINE_PID, 1);

	offline->unreadable = true;
	rig_run(r, 5 * S);
	assert_int_equal(r->told[WIRE_BLIND], 1);
	assert_non_null(strstr(blind_of(r), "process 200 "));
	offline->unreadable = false;
	rig_run_until(r, r->told[WIRE_SEES] == 1);
	assert_false(flags_of(r, OFFLINE_PID) & WIRE_JOB_BLIND);
	rig_end(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_job_that_cannot_be_looked_at_is_told_of_once),
		cmocka_unit_test(such_a_job_makes_room_for_online_work_all_the_same),
		cmocka_unit_test(one_whose_looks_do_not_come_back_keeps_nobody),
		cmocka_unit_test(queues_that_come_during_a_look_are_looked_at),
		cmocka_unit_test(what_is_so_of_all_is_told_once_and_not_of_each),
		cmocka_unit_test(what_comes_and_goes_is_told_now_and_then),
		cmocka_unit_test(processes_that_cannot_be_listed_are_told_of_and_kept),
		cmocka_unit_test(who_does_not_let_itself_be_read_is_told_of),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
