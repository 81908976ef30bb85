/* SPDX-License-Identifier: MIT */
/* GPUs of contexts: no progress to be seen, turns to be made shorter and longer, and hints. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/daemon/rig.h"

#define JOBS 4
#define TURN (200 * MS)

/* One online job and @n offline ones on GPU 1, all tied. */
static struct rig *shared(size_t n, struct fake_process **ret_online,
			  struct fake_process **ret_offline)
{
	struct rig *r = rig_new_contexts(16);

	*ret_online = rig_online(r, ONLINE_PID, 1);
	for (size_t i = 0; i < n; i++)
		ret_offline[i] = rig_offline(r, OFFLINE_PID + (pid_t)i, 1);
	rig_run(r, 2 * S);
	assert_int_equal(r->told[GPREEMPT_EVENT_ATTACHED], n);
	return r;
}

/* ---- turns of the GPU ---- */

static void beside_an_online_job_an_offline_one_leaves_at_once(void **state)
{
	struct fake_process *online, *offline;
	struct rig *r = shared(1, &online, &offline);

	assert_int_equal(offline->slice, GPU_SLICE_SHORT);
	assert_int_equal(online->slice, GPU_SLICE_LONG);
	assert_int_equal(online->suspends + offline->suspends, 0);
	rig_run(r, 20 * S);
	assert_int_equal(online->slices + offline->slices, 2);
	rig_end(r);
}

static void an_online_job_that_is_tied_is_never_held_and_not_told_as_attached(void **state)
{
	struct fake_process *online, *offline;
	struct rig *r = shared(1, &online, &offline);
	struct gpreempt_daemon_status status = { 0 };
	struct gpreempt_daemon_job job;

	assert_non_null(online->target);
	scheduler_status(r->s, &status);
	assert_int_equal(status.attached, 1);
	assert_true(rig_job(r, ONLINE_PID, 1, &job));
	assert_false(job.attached);
	assert_int_equal(scheduler_hint(r->s, ONLINE_PID, 0, 0), 0);
	scheduler_act(r->s);
	rig_run(r, MS);
	assert_true(fake_is_held(offline));
	assert_int_equal(online->suspends, 0);
	assert_int_equal(scheduler_release(r->s, ONLINE_PID), 0);
	rig_end(r);
}

static void an_online_job_alone_is_not_tied(void **state)
{
	struct rig *r = rig_new_contexts(8);
	struct fake_process *online = rig_online(r, ONLINE_PID, 1), *refused;

	rig_offline(r, OFFLINE_PID, 2);
	refused = rig_offline(r, OFFLINE_PID + 1, 1);
	refused->outcomes[GPU_ATTACH].result = -EPERM;
	rig_run(r, 20 * S);
	assert_int_equal(online->attaches, 0);
	rig_end(r);
}

static void online_jobs_do_not_wait_for_each_other_s_long_turns(void **state)
{
	struct fake_process *online, *offline, *second;
	struct rig *r = shared(1, &online, &offline);

	second = rig_online(r, ONLINE_PID + 1, 1);
	rig_run(r, S);
	assert_int_equal(online->slice, GPU_SLICE_OWN);
	assert_int_equal(second->slice, GPU_SLICE_OWN);
	assert_int_equal(offline->slice, GPU_SLICE_SHORT);
	rig_run(r, 10 * S);
	assert_null(online->target);
	assert_int_equal(second->attaches, 0);
	fake_exit(&r->fake, ONLINE_PID);
	rig_run(r, 2 * S);
	assert_int_equal(second->slice, GPU_SLICE_LONG);
	rig_end(r);
}

static void where_several_run_beside_each_other_none_is_made_to_leave_at_once(void **state)
{
	struct fake_process *online, *offline[2];
	struct rig *r = shared(2, &online, offline);

	assert_int_equal(scheduler_policy(r->s), &gpol_rotate);
	assert_int_equal(offline[0]->slice, GPU_SLICE_SHORT);
	assert_int_equal(offline[1]->slice, GPU_SLICE_SHORT);
	scheduler_set_policy(r->s, &gpol_priority);
	rig_run(r, MS);
	assert_int_equal(offline[0]->slice, GPU_SLICE_OWN);
	assert_int_equal(offline[1]->slice, GPU_SLICE_OWN);
	assert_int_equal(online->slice, GPU_SLICE_LONG);
	fake_exit(&r->fake, OFFLINE_PID);
	rig_run(r, S);
	assert_int_equal(offline[1]->slice, GPU_SLICE_SHORT);
	rig_end(r);
}

static void one_that_takes_no_part_in_turns_lets_the_others_keep_theirs(void **state)
{
	struct fake_process *online, *offline[2], *young;
	struct rig *r = shared(2, &online, offline);

	r->config.attach_age_ns = 5 * S;
	young = rig_offline(r, 300, 1);
	rig_run(r, 2 * S);
	assert_int_equal(offline[0]->slice, GPU_SLICE_OWN);
	rig_run(r, 6 * S);
	assert_int_equal(offline[0]->slice, GPU_SLICE_SHORT);
	assert_int_equal(young->slice, GPU_SLICE_SHORT);
	rig_end(r);
}

static void without_a_policy_turns_are_their_own_at_once(void **state)
{
	struct fake_process *online, *offline;
	struct rig *r = shared(1, &online, &offline);

	scheduler_set_policy(r->s, &gpol_none);
	rig_run(r, MS);
	assert_int_equal(online->slice, GPU_SLICE_OWN);
	assert_int_equal(offline->slice, GPU_SLICE_OWN);
	rig_run(r, 7 * S);
	assert_null(online->target);
	assert_null(offline->target);
	assert_int_equal(journal_left(r->journal, NULL, 0), 0);
	rig_end(r);
}

static void a_pause_gives_turns_back_and_unties_everybody(void **state)
{
	struct fake_process *online, *offline;
	struct rig *r = shared(1, &online, &offline);

	scheduler_pause(r->s);
	rig_run(r, MS);
	assert_true(scheduler_is_idle(r->s));
	assert_int_equal(online->slice, GPU_SLICE_OWN);
	assert_int_equal(offline->slice, GPU_SLICE_OWN);
	assert_int_equal(journal_left(r->journal, NULL, 0), 0);
	scheduler_continue(r->s);
	rig_run(r, 2 * S);
	assert_int_equal(online->slice, GPU_SLICE_LONG);
	assert_int_equal(offline->slice, GPU_SLICE_SHORT);
	rig_end(r);
}

static void whoever_is_left_alone_on_a_gpu_has_its_own_turns(void **state)
{
	struct fake_process *online, *offline;
	struct rig *r = shared(1, &online, &offline);

	fake_exit(&r->fake, ONLINE_PID);
	rig_run(r, MS);
	assert_int_equal(offline->slice, GPU_SLICE_OWN);
	rig_run(r, 7 * S);
	assert_null(offline->target);
	rig_end(r);
	r = shared(1, &online, &offline);
	fake_exit(&r->fake, OFFLINE_PID);
	rig_run(r, MS);
	assert_int_equal(online->slice, GPU_SLICE_OWN);
	rig_run(r, 7 * S);
	assert_null(online->target);
	rig_end(r);
}

static void another_class_means_other_turns(void **state)
{
	struct class_request lower = rig_request(WIRE_BY_PID, ONLINE_PID, JOB_OFFLINE);
	struct class_request raise = rig_request(WIRE_BY_PID, OFFLINE_PID, JOB_ONLINE);
	struct fake_process *online, *offline;
	struct rig *r = shared(1, &online, &offline);

	offline->online = true;
	assert_int_equal(scheduler_class(r->s, &raise), 1);
	rig_run(r, MS);
	assert_int_equal(offline->slice, GPU_SLICE_OWN);
	assert_int_equal(online->slice, GPU_SLICE_OWN);
	online->online = false;
	assert_int_equal(scheduler_class(r->s, &lower), 1);
	rig_run(r, 3 * S);
	assert_int_equal(offline->slice, GPU_SLICE_LONG);
	assert_int_equal(online->slice, GPU_SLICE_SHORT);
	rig_end(r);
}

static void a_change_of_turns_is_written_down_until_it_is_undone(void **state)
{
	struct journal_entry entries[4];
	struct fake_process *online, *offline;
	struct rig *r = shared(1, &online, &offline);

	assert_int_equal(journal_left(r->journal, entries, 4), 2);
	assert_string_equal(entries[0].level, "N2");
	assert_int_equal(scheduler_hint(r->s, ONLINE_PID, 0, 5 * MS), 0);
	scheduler_act(r->s);
	rig_run(r, 100 * MS);
	assert_int_equal(offline->resumes, 1);
	assert_int_equal(journal_left(r->journal, NULL, 0), 2);
	fake_exit(&r->fake, ONLINE_PID);
	rig_run(r, MS);
	assert_int_equal(journal_left(r->journal, NULL, 0), 0);
	rig_end(r);
}

/* A change and its undoing are under way: the end of the first is not that of the second. */
static void what_is_still_to_be_undone_stays_written_down(void **state)
{
	struct fake_process *online, *offline;
	struct rig *r = shared(1, &online, &offline);

	scheduler_set_policy(r->s, &gpol_none);
	rig_run(r, MS);
	assert_int_equal(journal_left(r->journal, NULL, 0), 0);
	offline->outcomes[GPU_SLICE].takes_ns = online->outcomes[GPU_SLICE].takes_ns = 100 * MS;
	scheduler_set_policy(r->s, &gpol_rotate);
	rig_run(r, MS);
	scheduler_set_policy(r->s, &gpol_none);
	rig_run(r, 150 * MS);
	assert_int_equal(offline->slice, GPU_SLICE_SHORT);
	assert_int_equal(journal_left(r->journal, NULL, 0), 2);
	rig_run(r, 100 * MS);
	assert_int_equal(offline->slice, GPU_SLICE_OWN);
	assert_int_equal(journal_left(r->journal, NULL, 0), 0);
	rig_end(r);
}

static void a_gpu_that_fails_at_a_change_of_turns_is_left_alone(void **state)
{
	struct rig *r = rig_new_contexts(8);
	struct fake_process *online = rig_online(r, ONLINE_PID, 1);
	struct fake_process *offline = rig_offline(r, OFFLINE_PID, 1);

	offline->outcomes[GPU_SLICE] = (struct fake_outcome){
		.result = -EIO, .gpu_failed = true, .gpu = 1, .times = 1
	};
	rig_run(r, 3 * S);
	assert_int_equal(r->told[GPREEMPT_EVENT_TRIPPED], 1);
	assert_int_equal(online->slice, GPU_SLICE_OWN);
	assert_int_equal(offline->slice, GPU_SLICE_OWN);
	assert_int_equal(scheduler_hint(r->s, ONLINE_PID, 0, 5 * MS), 0);
	scheduler_act(r->s);
	rig_run(r, 10 * S);
	assert_int_equal(offline->suspends, 0);
	assert_null(offline->target);
	assert_null(online->target);
	assert_int_equal(journal_left(r->journal, NULL, 0), 0);
	assert_int_equal(scheduler_rearm(r->s, 1), 0);
	rig_run(r, 2 * S);
	assert_int_equal(offline->slice, GPU_SLICE_SHORT);
	assert_int_equal(online->slice, GPU_SLICE_LONG);
	rig_end(r);
}

static void turns_that_cannot_be_changed_trip_nothing(void **state)
{
	struct rig *r = rig_new_contexts(8);
	struct fake_process *online = rig_online(r, ONLINE_PID, 1);
	struct fake_process *offline = rig_offline(r, OFFLINE_PID, 1);

	offline->outcomes[GPU_SLICE] = (struct fake_outcome){ .result = -EIO };
	online->outcomes[GPU_SLICE] = (struct fake_outcome){ .result = -EPERM };
	rig_run(r, 10 * S);
	assert_int_equal(offline->slices, 1);
	assert_int_equal(online->slices, 1);
	assert_int_equal(r->told[GPREEMPT_EVENT_TRIPPED], 0);
	assert_non_null(offline->target);
	assert_int_equal(scheduler_hint(r->s, ONLINE_PID, 0, 5 * MS), 0);
	scheduler_act(r->s);
	rig_run(r, MS);
	assert_true(fake_is_held(offline));
	assert_int_equal(journal_left(r->journal, NULL, 0), 2);
	rig_end(r);
}

static void an_online_job_that_may_not_be_tied_is_told_of_and_serves_on(void **state)
{
	struct rig *r = rig_new_contexts(8);
	struct fake_process *online = rig_online(r, ONLINE_PID, 1), *offline;

	online->outcomes[GPU_ATTACH].result = -EPERM;
	offline = rig_offline(r, OFFLINE_PID, 1);
	rig_run(r, 3 * S);
	assert_int_equal(r->told[GPREEMPT_EVENT_NOT_ATTACHED], 1);
	assert_non_null(strstr(r->last[GPREEMPT_EVENT_NOT_ATTACHED].text, "longer turns"));
	assert_int_equal(scheduler_hint(r->s, ONLINE_PID, 0, 500 * MS), 0);
	scheduler_act(r->s);
	rig_run(r, 100 * MS);
	assert_true(fake_is_held(offline));
	rig_end(r);
}

/* ---- turns of ours ---- */

static size_t on(struct fake_process *const *jobs, size_t n)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		count += !fake_is_held(jobs[i]);
	return count;
}

static void offline_jobs_take_turns_of_equal_length(void **state)
{
	struct fake_process *online, *jobs[JOBS];
	struct rig *r = shared(JOBS, &online, jobs);
	uint32_t began[JOBS], first;
	uint64_t turns;

	for (size_t i = 0; i < JOBS; i++) {
		jobs[i]->outcomes[GPU_SUSPEND].takes_ns = 650000;
		jobs[i]->outcomes[GPU_RESUME].takes_ns = 300000;
	}
	rig_run(r, TURN);
	turns = r->turns;
	for (size_t i = 0; i < JOBS; i++)
		began[i] = jobs[i]->resumes;
	for (int i = 0; i < 200; i++) {
		rig_run(r, 50 * MS);
		assert_in_range(on(jobs, JOBS), 0, 2); /* two while they change places */
	}
	first = jobs[0]->resumes - began[0];
	assert_in_range(first, 11, 13); /* in 10 s */
	for (size_t i = 1; i < JOBS; i++)
		assert_in_range(jobs[i]->resumes - began[i], first - 1, first + 1);
	assert_int_equal(online->suspends, 0);
	/* Nobody is looked at: a few of ours for each of theirs, for the guard and for scans. */
	assert_true(r->turns - turns <= 2 * 200 + 4 * 51 + 58 + 10);
	rig_end(r);
}

static uint64_t ran_ns(struct rig *r, pid_t pid)
{
	struct gpreempt_daemon_job job;

	assert_true(rig_job(r, pid, 1, &job));
	return r->fake.now_ns - job.held_ns;
}

static void a_hint_with_a_length_stops_the_one_whose_turn_it_is_until_its_end(void **state)
{
	struct fake_process *online, *jobs[JOBS];
	struct rig *r = shared(JOBS, &online, jobs);
	uint64_t began[JOBS], all = 0;

	for (size_t i = 0; i < JOBS; i++)
		began[i] = ran_ns(r, jobs[i]->pid);
	for (int i = 0; i < 1000; i++) {
		uint64_t at_ns = r->fake.now_ns + 2 * MS;

		assert_int_equal(scheduler_hint(r->s, ONLINE_PID, at_ns, 3 * MS), 0);
		scheduler_act(r->s);
		rig_run(r, 2 * MS);
		assert_int_equal(on(jobs, JOBS), 0);
		rig_run(r, 2 * MS);
		assert_int_equal(on(jobs, JOBS), 0);
		rig_run(r, MS);
		assert_int_equal(on(jobs, JOBS), 1);
		rig_run(r, 5 * MS);
	}
	for (size_t i = 0; i < JOBS; i++)
		all += ran_ns(r, jobs[i]->pid) - began[i];
	/* Of each 10 ms the work and a suspend before it are not theirs. */
	assert_in_range(all, 6000 * MS, 7500 * MS);
	for (size_t i = 0; i < JOBS; i++)
		assert_in_range(ran_ns(r, jobs[i]->pid) - began[i], all / JOBS - 150 * MS,
				all / JOBS + 150 * MS);
	rig_end(r);
}

static void more_than_a_second_of_work_is_to_be_announced_again(void **state)
{
	struct fake_process *online, *offline;
	struct rig *r = shared(1, &online, &offline);

	assert_int_equal(scheduler_hint(r->s, ONLINE_PID, 0, UINT64_MAX), 0);
	scheduler_act(r->s);
	rig_run(r, 990 * MS);
	assert_true(fake_is_held(offline));
	rig_run(r, 20 * MS);
	assert_false(fake_is_held(offline));
	rig_end(r);
}

/* By announcements as long and as many as there may be. */
static void whoever_announces_work_for_ever_starves_nobody(void **state)
{
	struct fake_process *online, *jobs[JOBS];
	struct rig *r = shared(JOBS, &online, jobs);
	uint64_t began[JOBS];

	for (size_t i = 0; i < JOBS; i++)
		began[i] = ran_ns(r, jobs[i]->pid);
	for (int i = 0; i < 600; i++) {
		uint64_t at_ns = i % 3 ? 0 : r->fake.now_ns + 900 * MS;

		assert_int_equal(scheduler_hint(r->s, ONLINE_PID, at_ns, UINT64_MAX), 0);
		scheduler_act(r->s);
		rig_run(r, 100 * MS);
	}
	for (size_t i = 0; i < JOBS; i++) {
		struct gpreempt_daemon_job job;

		assert_true(rig_job(r, jobs[i]->pid, 1, &job));
		assert_true(job.longest_wait_ns <= 10 * S);
		/* A turn in each ten seconds. */
		assert_true(ran_ns(r, jobs[i]->pid) - began[i] >= 4 * TURN);
	}
	rig_end(r);
}

static void gpus_of_another_driver_bring_their_own_policy(void **state)
{
	struct rig *r = rig_new(8);

	assert_int_equal(scheduler_policy(r->s), &gpol_priority);
	scheduler_pause(r->s);
	rig_run(r, MS);
	scheduler_set_backend(r->s, NULL);
	fake_make_contexts(&r->fake);
	scheduler_set_backend(r->s, &r->fake.base);
	scheduler_continue(r->s);
	assert_int_equal(scheduler_policy(r->s), &gpol_rotate);
	scheduler_set_policy(r->s, &gpol_share);
	scheduler_pause(r->s);
	rig_run(r, MS);
	scheduler_set_backend(r->s, NULL);
	scheduler_set_backend(r->s, &r->fake.base);
	scheduler_continue(r->s);
	assert_int_equal(scheduler_policy(r->s), &gpol_share);
	rig_end(r);
}

/* ---- what is looked at ---- */

static void what_nobody_can_see_is_not_told(void **state)
{
	static const uint8_t nothing[sizeof(((struct gpreempt_daemon_job *)0)->history)];
	struct fake_process *online, *offline;
	struct rig *r = shared(1, &online, &offline);
	const pid_t pids[] = { ONLINE_PID, OFFLINE_PID };
	struct gpreempt_daemon_job job;

	rig_run(r, 5 * S);
	for (size_t i = 0; i < ARRAY_SIZE(pids); i++) {
		assert_true(rig_job(r, pids[i], 1, &job));
		assert_true(job.unseen);
		assert_false(job.working || job.waiting);
		assert_int_equal(job.share_permille, 0);
		assert_int_equal(job.ran_ns + job.stolen_ns, 0);
		assert_memory_equal(job.history, nothing, sizeof(nothing));
	}
	rig_end(r);
}

static struct wire_hint_page *map_page(struct rig *r, int *ret_fd)
{
	struct wire_hint_page *page;

	assert_int_equal(scheduler_hint_page(r->s, ONLINE_PID, ret_fd), 0);
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, *ret_fd, 0);
	assert_true(page != MAP_FAILED);
	return page;
}

static void of_an_online_job_only_its_page_is_looked_at(void **state)
{
	struct fake_process *online, *offline;
	struct rig *r = shared(1, &online, &offline);
	struct wire_hint_page *page;
	uint64_t looks;
	int fd;

	page = map_page(r, &fd);
	looks = r->fake.looks;
	page->at_ns = 0;
	page->for_ns = 100 * MS;
	page->calls++;
	rig_run(r, 2 * MS);
	assert_true(fake_is_held(offline));
	rig_run(r, 95 * MS);
	assert_true(fake_is_held(offline));
	rig_run(r, 5 * MS);
	assert_false(fake_is_held(offline));
	assert_true(r->fake.looks - looks <= 2);
	munmap(page, 4096);
	close(fd);
	rig_end(r);
}

static void a_page_is_not_looked_at_where_nobody_could_be_held(void **state)
{
	struct rig *r = rig_new_contexts(8);
	struct wire_hint_page *page;
	uint64_t turns;
	int fd;

	rig_online(r, ONLINE_PID, 1);
	rig_run(r, 2 * S);
	page = map_page(r, &fd);
	rig_run(r, S);
	turns = r->turns;
	rig_run(r, 10 * S);
	assert_in_range(r->turns - turns, 10, 12);
	munmap(page, 4096);
	close(fd);
	rig_end(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(beside_an_online_job_an_offline_one_leaves_at_once),
		cmocka_unit_test(an_online_job_that_is_tied_is_never_held_and_not_told_as_attached),
		cmocka_unit_test(an_online_job_alone_is_not_tied),
		cmocka_unit_test(online_jobs_do_not_wait_for_each_other_s_long_turns),
		cmocka_unit_test(where_several_run_beside_each_other_none_is_made_to_leave_at_once),
		cmocka_unit_test(one_that_takes_no_part_in_turns_lets_the_others_keep_theirs),
		cmocka_unit_test(without_a_policy_turns_are_their_own_at_once),
		cmocka_unit_test(a_pause_gives_turns_back_and_unties_everybody),
		cmocka_unit_test(whoever_is_left_alone_on_a_gpu_has_its_own_turns),
		cmocka_unit_test(another_class_means_other_turns),
		cmocka_unit_test(a_change_of_turns_is_written_down_until_it_is_undone),
		cmocka_unit_test(what_is_still_to_be_undone_stays_written_down),
		cmocka_unit_test(a_gpu_that_fails_at_a_change_of_turns_is_left_alone),
		cmocka_unit_test(turns_that_cannot_be_changed_trip_nothing),
		cmocka_unit_test(an_online_job_that_may_not_be_tied_is_told_of_and_serves_on),
		cmocka_unit_test(offline_jobs_take_turns_of_equal_length),
		cmocka_unit_test(a_hint_with_a_length_stops_the_one_whose_turn_it_is_until_its_end),
		cmocka_unit_test(more_than_a_second_of_work_is_to_be_announced_again),
		cmocka_unit_test(whoever_announces_work_for_ever_starves_nobody),
		cmocka_unit_test(gpus_of_another_driver_bring_their_own_policy),
		cmocka_unit_test(what_nobody_can_see_is_not_told),
		cmocka_unit_test(of_an_online_job_only_its_page_is_looked_at),
		cmocka_unit_test(a_page_is_not_looked_at_where_nobody_could_be_held),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
