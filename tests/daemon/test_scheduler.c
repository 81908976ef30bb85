/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "tests/daemon/rig.h"

/* ---- the two classes ---- */

static void offline_makes_room_for_online_work(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;

	rig_pair(r, &online, &offline);
	assert_false(fake_is_held(offline));
	fake_set_work(online, true);
	rig_run(r, 10 * MS);
	assert_true(fake_is_held(offline));
	assert_int_equal(r->told[GPREEMPT_EVENT_HELD], 1);
	assert_int_equal(r->last[GPREEMPT_EVENT_HELD].pid, OFFLINE_PID);
	assert_int_equal(r->last[GPREEMPT_EVENT_HELD].other_pid, ONLINE_PID);
	assert_int_equal(r->last[GPREEMPT_EVENT_HELD].gpu_id, 1);
	rig_end(r);
}

static void offline_returns_when_online_is_done(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;

	rig_pair(r, &online, &offline);
	fake_set_work(online, true);
	rig_run(r, 10 * MS);
	fake_set_work(online, false);
	rig_run(r, 20 * MS);
	assert_false(fake_is_held(offline));
	assert_int_equal(r->told[GPREEMPT_EVENT_LET_GO], 1);
	assert_true(r->last[GPREEMPT_EVENT_LET_GO].duration_ns > 0);
	assert_true(r->last[GPREEMPT_EVENT_LET_GO].duration_ns < 20 * MS);
	rig_end(r);
}

static void online_alone_disturbs_nobody(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online = rig_online(r, ONLINE_PID, 1);

	fake_set_work(online, true);
	rig_run(r, 10 * S);
	assert_int_equal(online->attaches, 0);
	rig_end(r);
}

static void a_hold_ends_by_its_deadline(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;

	rig_held(r, &online, &offline);
	assert_true(offline->longest_ns <= r->config.engine.hold_max_ns);
	rig_run(r, r->config.engine.hold_max_ns);
	assert_true(r->told[GPREEMPT_EVENT_LET_GO] >= 1);
	rig_end(r);
}

static void unmanaged_processes_are_listed_and_left_alone(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *p = fake_add(&r->fake, 300, "none", "/none");
	struct gpreempt_daemon_job job;

	fake_add_queue(p, 1, 1);
	rig_online(r, ONLINE_PID, 1);
	rig_run(r, 10 * S);
	assert_int_equal(p->attaches, 0);
	assert_int_equal(p->looks, 0);
	assert_true(rig_job(r, 300, 0, &job));
	assert_int_equal(job.job_class, GPREEMPT_CLASS_UNKNOWN);
	rig_end(r);
}

static void work_nobody_can_tell_the_end_of_counts_for_offline_only(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;
	struct gpreempt_daemon_job job;

	rig_pair(r, &online, &offline);
	online->queues[0].idle_state = GPU_UNKNOWN;
	offline->queues[0].idle_state = GPU_UNKNOWN;
	fake_set_work(offline, false);
	rig_run(r, S);
	assert_true(rig_job(r, OFFLINE_PID, 1, &job));
	assert_true(job.working);
	assert_true(rig_job(r, ONLINE_PID, 1, &job));
	assert_false(job.working);
	assert_false(fake_is_held(offline));
	rig_end(r);
}

/* It may be found late where to look, or never. */
static void an_offline_job_that_cannot_be_looked_at_makes_room(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;
	struct gpreempt_daemon_job job;

	rig_pair(r, &online, &offline);
	offline->queues[0].queue.unseen = true;
	fake_set_work(offline, false);
	rig_run(r, S);
	assert_true(rig_job(r, OFFLINE_PID, 1, &job));
	assert_false(job.working);
	assert_false(fake_is_held(offline));
	fake_set_work(online, true);
	rig_run_until(r, fake_is_held(offline));
	fake_set_work(online, false);
	rig_run_until(r, !fake_is_held(offline));
	rig_end(r);
}

/* Of another priority than others, and of which nobody knows whether it works. */
static struct fake_process *rig_unseen(struct rig *r, struct verdict verdict)
{
	struct fake_process *p;

	r->rules[2].verdict = verdict;
	p = fake_add(&r->fake, 300, "gang", "/gang");
	fake_add_queue(p, 1, 1);
	fake_set_work(p, false);
	p->queues[0].queue.unseen = true;
	return p;
}

static void nobody_else_waits_for_jobs_that_cannot_be_looked_at(void **state)
{
	static const struct gpol_ops *const policies[] = { &gpol_priority, &gpol_rotate,
							   &gpol_share, &gpol_deadline };
	const struct verdict high = { .job_class = JOB_OFFLINE, .priority = 9, .source = "high" };

	for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
		struct rig *r = rig_new(8);
		struct fake_process *online, *offline;

		rig_pair(r, &online, &offline);
		rig_unseen(r, high);
		fake_set_work(offline, true);
		scheduler_set_policy(r->s, policies[i]);
		rig_run(r, 20 * S);
		assert_int_equal(offline->suspends, 0);
		rig_end(r);
	}
}

/* While nobody could see its first work it is left on; and to be found is not to work. */
static void a_lazy_job_gives_its_slot_up_once_it_can_be_looked_at(void **state)
{
	const struct verdict lazy = { .job_class = JOB_OFFLINE, .lazy = true, .source = "lazy" };
	struct rig *r = rig_new(8);
	struct fake_process *p;

	rig_online(r, ONLINE_PID, 1);
	p = rig_unseen(r, lazy);
	p->queues[0].read = p->queues[0].write = 1000;
	rig_run(r, 5 * S);
	assert_false(fake_is_held(p));
	p->queues[0].queue.unseen = false;
	rig_run_until(r, fake_is_held(p));
	rig_end(r);
}

/* What it did before anybody looked is no work that has just been done. */
static void nobody_makes_room_for_what_an_online_job_did_unseen(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online = rig_online(r, ONLINE_PID, 1);
	struct fake_process *offline = rig_offline(r, OFFLINE_PID, 1);

	online->queues[0].queue.unseen = true;
	rig_run(r, S);
	online->queues[0].read = online->queues[0].write = 1000;
	rig_run(r, S);
	online->queues[0].queue.unseen = false;
	rig_run(r, S);
	assert_int_equal(offline->suspends, 0);
	rig_end(r);
}

static void a_queue_that_runs_its_last_packet_is_busy(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;

	rig_pair(r, &online, &offline);
	online->queues[0].idle_state = GPU_BUSY;
	rig_run(r, 20 * MS);
	assert_true(fake_is_held(offline));
	rig_end(r);
}

/* ---- accounts ---- */

static void accounts_tell_who_was_held_for_whom_and_how_long(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;
	struct gpreempt_daemon_job job;

	rig_pair(r, &online, &offline);
	fake_set_work(online, true);
	rig_run(r, 500 * MS);
	fake_set_work(online, false);
	rig_run(r, S);
	assert_true(rig_job(r, OFFLINE_PID, 1, &job));
	assert_int_equal(job.preempted, 1);
	assert_int_equal(job.because, ONLINE_PID);
	assert_in_range(job.held_ns, 450 * MS, 510 * MS);
	assert_in_range(job.stolen_ns, 450 * MS, 510 * MS);
	assert_true(rig_job(r, ONLINE_PID, 1, &job));
	assert_int_equal(job.made_room, 1);
	rig_end(r);
}

static void a_hold_of_a_job_without_work_steals_nothing(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;
	struct gpreempt_daemon_job job;

	rig_pair(r, &online, &offline);
	fake_set_work(offline, false);
	fake_set_work(online, true);
	rig_run(r, 500 * MS);
	assert_true(fake_is_held(offline));
	assert_true(rig_job(r, OFFLINE_PID, 1, &job));
	assert_true(job.held_ns > 400 * MS);
	assert_true(job.stolen_ns <= 10 * MS);
	rig_end(r);
}

static void inversions_are_seen_and_resolved(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;
	const struct scheduler_figures *f;

	rig_pair(r, &online, &offline);
	f = scheduler_figures(r->s);
	assert_int_equal(f->status.inversions, 0);
	fake_set_work(online, true);
	rig_run(r, 20 * MS);
	assert_int_equal(f->status.inversions, 1);
	assert_int_equal(f->status.resolved, 1);
	assert_int_equal(f->status.preemptions, 1);
	assert_int_equal(f->suspend.count, 1);
	assert_int_equal(f->detection.count, 1);
	rig_end(r);
}

static void an_inversion_that_ends_by_itself_is_not_resolved(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online = rig_online(r, ONLINE_PID, 1);

	r->config.attach_age_ns = 3600 * S;
	rig_offline(r, OFFLINE_PID, 1);
	rig_run(r, S);
	fake_set_work(online, true);
	rig_run(r, S);
	fake_set_work(online, false);
	rig_run(r, S);
	assert_int_equal(scheduler_figures(r->s)->status.inversions, 1);
	assert_int_equal(scheduler_figures(r->s)->status.resolved, 0);
	rig_end(r);
}

static void shares_are_told_by_the_second(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;
	struct gpreempt_daemon_job job;

	rig_pair(r, &online, &offline);
	rig_run(r, 5 * S);
	assert_true(rig_job(r, OFFLINE_PID, 1, &job));
	assert_in_range(job.share_permille, 990, 1000);
	assert_in_range(job.history[0], 250, 255);
	assert_int_equal(job.history[13], 0);
	assert_true(rig_job(r, ONLINE_PID, 1, &job));
	assert_int_equal(job.share_permille, 0);
	rig_end(r);
}

static void status_counts_processes_by_what_they_are(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;
	struct gpreempt_daemon_status status = { 0 };

	rig_held(r, &online, &offline);
	scheduler_status(r->s, &status);
	assert_int_equal(status.processes, 2);
	assert_int_equal(status.online, 1);
	assert_int_equal(status.offline, 1);
	assert_int_equal(status.attached, 1);
	assert_int_equal(status.held, 1);
	assert_int_equal(status.queues, 2);
	assert_string_equal(status.policy, "priority");
	rig_end(r);
}

/* ---- looking no more than needed ---- */

static void nobody_is_looked_at_between_scans_where_one_class_is_alone(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online = rig_online(r, ONLINE_PID, 1);
	struct fake_process *offline = rig_offline(r, OFFLINE_PID, 2);

	rig_run(r, 10 * S);
	assert_in_range(online->looks, 9, 12);
	assert_in_range(offline->looks, 9, 12);
	assert_true(r->turns < 40);
	rig_end(r);
}

static void critical_jobs_are_looked_at_each_millisecond_and_offline_ones_are_not(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online = rig_critical(r, ONLINE_PID, 1);
	struct fake_process *offline = rig_offline(r, OFFLINE_PID, 1);
	uint32_t before_online, before_offline;

	rig_run(r, 2 * S);
	before_online = online->looks;
	before_offline = offline->looks;
	rig_run(r, S);
	assert_in_range(online->looks - before_online, 990, 1010);
	assert_in_range(offline->looks - before_offline, 18, 30);
	rig_end(r);
}

static void where_nothing_happens_looks_become_rare_and_work_ends_that(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;
	uint32_t before_online, before_offline;

	rig_pair(r, &online, &offline);
	rig_run(r, 20 * S);
	before_online = online->looks;
	before_offline = offline->looks;
	rig_run(r, S); /* somebody works who would be in the way of online work */
	assert_in_range(online->looks - before_online, 190, 210);
	assert_in_range(offline->looks - before_offline, 9, 15);
	fake_set_work(offline, false);
	rig_run(r, 200 * MS);
	before_online = online->looks;
	before_offline = offline->looks;
	rig_run(r, S);
	assert_in_range(online->looks - before_online, 18, 30);
	assert_in_range(offline->looks - before_offline, 9, 15);
	fake_set_work(offline, true);
	fake_set_work(online, true);
	before_online = online->looks;
	rig_run_until(r, online->looks > before_online);
	rig_run(r, MS);
	assert_true(fake_is_held(offline)); /* seen to work in the turn that saw the online work */
	before_online = online->looks;
	before_offline = offline->looks;
	rig_run(r, S);
	assert_in_range(online->looks - before_online, 190, 210);
	assert_in_range(offline->looks - before_offline, 190, 210);
	rig_end(r);
}

static void jobs_that_are_due_share_their_turns(void **state)
{
	struct rig *r = rig_new(64);
	uint64_t before;

	for (pid_t pid = 1; pid <= 20; pid++)
		rig_critical(r, ONLINE_PID + pid, 1);
	rig_offline(r, OFFLINE_PID, 1);
	rig_run(r, 2 * S);
	before = r->turns;
	rig_run(r, S);
	assert_true(r->turns - before < 2200);
	rig_end(r);
}

static void the_detection_of_critical_work_takes_a_millisecond(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online = rig_critical(r, ONLINE_PID, 1);
	struct fake_process *offline = rig_offline(r, OFFLINE_PID, 1);
	uint64_t at_ns;

	rig_run(r, 2 * S + 300000);
	at_ns = r->fake.now_ns;
	fake_set_work(online, true);
	rig_run_until(r, offline->suspends == 1);
	assert_true(offline->asked_suspend_ns - at_ns <= MS);
	rig_end(r);
}

/* ---- many ---- */

static void a_thousand_queues_in_two_hundred_processes(void **state)
{
	struct rig *r = rig_new(256);
	struct fake_process *first = NULL;
	struct gpreempt_daemon_status status = { 0 };

	for (pid_t pid = 0; pid < 200; pid++) {
		struct fake_process *p = pid % 5 ? rig_offline(r, 1000 + pid, 1) :
						   rig_online(r, 1000 + pid, 1);

		for (uint32_t q = 2; q <= 5; q++)
			fake_add_queue(p, 1, q);
		first = first ? first : p;
	}
	rig_run(r, 60 * S);
	scheduler_status(r->s, &status);
	assert_int_equal(status.queues, 1000);
	assert_int_equal(status.attached, 160);
	fake_set_work(first, true);
	rig_run(r, 50 * MS);
	scheduler_status(r->s, &status);
	assert_int_equal(status.held, 160);
	rig_end(r);
}

static void a_process_past_the_limit_of_queues_is_left_alone(void **state)
{
	struct rig *r = rig_new(700);
	struct gpreempt_daemon_status status = { 0 };

	for (pid_t pid = 0; pid < 600; pid++) {
		struct fake_process *p = rig_online(r, 1000 + pid, 1);

		for (uint32_t q = 2; q <= FAKE_QUEUES; q++)
			fake_add_queue(p, 1, q);
	}
	rig_run(r, 2 * S);
	scheduler_status(r->s, &status);
	assert_int_equal(status.processes, 600);
	assert_int_equal(status.queues, SCHEDULER_MAX_QUEUES);
	rig_end(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(offline_makes_room_for_online_work),
		cmocka_unit_test(offline_returns_when_online_is_done),
		cmocka_unit_test(online_alone_disturbs_nobody),
		cmocka_unit_test(a_hold_ends_by_its_deadline),
		cmocka_unit_test(unmanaged_processes_are_listed_and_left_alone),
		cmocka_unit_test(work_nobody_can_tell_the_end_of_counts_for_offline_only),
		cmocka_unit_test(an_offline_job_that_cannot_be_looked_at_makes_room),
		cmocka_unit_test(nobody_else_waits_for_jobs_that_cannot_be_looked_at),
		cmocka_unit_test(a_lazy_job_gives_its_slot_up_once_it_can_be_looked_at),
		cmocka_unit_test(nobody_makes_room_for_what_an_online_job_did_unseen),
		cmocka_unit_test(a_queue_that_runs_its_last_packet_is_busy),
		cmocka_unit_test(accounts_tell_who_was_held_for_whom_and_how_long),
		cmocka_unit_test(a_hold_of_a_job_without_work_steals_nothing),
		cmocka_unit_test(inversions_are_seen_and_resolved),
		cmocka_unit_test(an_inversion_that_ends_by_itself_is_not_resolved),
		cmocka_unit_test(shares_are_told_by_the_second),
		cmocka_unit_test(status_counts_processes_by_what_they_are),
		cmocka_unit_test(nobody_is_looked_at_between_scans_where_one_class_is_alone),
		cmocka_unit_test(
			critical_jobs_are_looked_at_each_millisecond_and_offline_ones_are_not),
		cmocka_unit_test(where_nothing_happens_looks_become_rare_and_work_ends_that),
		cmocka_unit_test(jobs_that_are_due_share_their_turns),
		cmocka_unit_test(the_detection_of_critical_work_takes_a_millisecond),
		cmocka_unit_test(a_thousand_queues_in_two_hundred_processes),
		cmocka_unit_test(a_process_past_the_limit_of_queues_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
