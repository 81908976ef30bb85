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
	static struct gpreempt_daemon_status status;

	status = (struct gpreempt_daemon_status){ 0 };
	scheduler_status(r->s, &status);
	return status.blind;
}

static struct gpreempt_daemon_job job_of(struct rig *r, pid_t pid)
{
	struct gpreempt_daemon_job job;

	assert_true(rig_job(r, pid, 1, &job));
	return job;
}

static void a_job_that_cannot_be_looked_at_is_told_of_once(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;
	struct gpreempt_daemon_job job;

	rig_pair(r, &online, &offline);
	offline->blind = true;
	rig_run(r, 10 * S);
	assert_int_equal(r->told[GPREEMPT_EVENT_JOB_BLIND], 1);
	assert_int_equal(r->last[GPREEMPT_EVENT_JOB_BLIND].pid, OFFLINE_PID);
	assert_non_null(
		strstr(r->last[GPREEMPT_EVENT_JOB_BLIND].text, "does not let itself be looked"));
	assert_true(rig_job(r, OFFLINE_PID, 1, &job));
	assert_true(job.blind && job.unseen && !job.working);
	assert_string_equal(job.why, "it does not let itself be looked at");
	assert_false(job_of(r, ONLINE_PID).blind);
	assert_string_equal(blind_of(r), "");

	offline->blind = false;
	rig_run(r, 2 * S);
	assert_int_equal(r->told[GPREEMPT_EVENT_JOB_SEEN], 1);
	assert_false(job_of(r, OFFLINE_PID).blind || job_of(r, OFFLINE_PID).unseen);
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
	assert_int_equal(r->told[GPREEMPT_EVENT_BLIND], 1);
	assert_non_null(strstr(r->last[GPREEMPT_EVENT_BLIND].text, "there is no list of queues"));
	assert_int_equal(r->told[GPREEMPT_EVENT_JOB_BLIND], 0);
	assert_string_equal(blind_of(r), "there is no list of queues");
	assert_true(job_of(r, ONLINE_PID).blind);
	assert_true(job_of(r, OFFLINE_PID).blind);

	r->fake.problem = NULL;
	online->blind = offline->blind = false;
	rig_run(r, 2 * S);
	assert_int_equal(r->told[GPREEMPT_EVENT_SEES], 1);
	assert_string_equal(blind_of(r), "");
	assert_false(job_of(r, ONLINE_PID).blind);
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
	assert_in_range(r->told[GPREEMPT_EVENT_BLIND], 3, 5);
	assert_in_range(r->told[GPREEMPT_EVENT_SEES], 0, 5);
	rig_end(r);
}

static void processes_that_cannot_be_listed_are_told_of_and_kept(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;

	rig_pair(r, &online, &offline);
	r->fake.processes_result = -EBADMSG;
	rig_run(r, 5 * S);
	assert_int_equal(r->told[GPREEMPT_EVENT_BLIND], 1);
	assert_non_null(strstr(blind_of(r), "cannot be listed"));
	fake_set_work(online, true);
	rig_run_until(r, fake_is_held(offline));
	r->fake.processes_result = 0;
	rig_run(r, 2 * S);
	assert_int_equal(r->told[GPREEMPT_EVENT_SEES], 1);
	rig_end(r);
}

static void who_does_not_let_itself_be_read_is_told_of(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *offline = rig_offline(r, OFFLINE_PID, 1);

	offline->unreadable = true;
	rig_run(r, 5 * S);
	assert_int_equal(r->told[GPREEMPT_EVENT_BLIND], 1);
	assert_non_null(strstr(blind_of(r), "process 200 "));
	offline->unreadable = false;
	rig_run_until(r, r->told[GPREEMPT_EVENT_SEES] == 1);
	assert_false(job_of(r, OFFLINE_PID).blind);
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
