/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "tests/daemon/rig.h"

static void a_young_offline_job_is_not_attached(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *offline = rig_offline(r, OFFLINE_PID, 1);

	r->config.attach_age_ns = 5 * S;
	rig_online(r, ONLINE_PID, 1);
	rig_run(r, 5 * S - MS);
	assert_int_equal(offline->attaches, 0);
	rig_run(r, 2 * S);
	assert_int_equal(offline->attaches, 1);
	rig_end(r);
}

static void where_attaching_costs_nothing_nobody_waits_for_it(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *offline = rig_offline(r, OFFLINE_PID, 1);

	r->config.attach_age_ns = 3600 * S;
	r->fake.base.caps.attach_is_free = true;
	rig_online(r, ONLINE_PID, 1);
	rig_turn(r);
	assert_int_equal(offline->attaches, 1);
	rig_end(r);
}

static void an_offline_job_without_online_neighbours_is_not_attached(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *alone = rig_offline(r, OFFLINE_PID, 2);

	rig_online(r, ONLINE_PID, 1);
	rig_run(r, 20 * S);
	assert_int_equal(alone->attaches, 0);
	rig_end(r);
}

static void an_online_job_is_never_attached(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *a = rig_online(r, ONLINE_PID, 1), *b = rig_online(r, 101, 1);

	rig_offline(r, OFFLINE_PID, 1);
	fake_set_work(a, true);
	fake_set_work(b, true);
	rig_run(r, 20 * S);
	assert_int_equal(a->attaches + b->attaches, 0);
	rig_end(r);
}

static void a_job_whose_cgroup_became_that_of_online_jobs_is_not_attached(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *moved;

	r->config.attach_age_ns = 5 * S;
	rig_online(r, ONLINE_PID, 1);
	moved = rig_offline(r, OFFLINE_PID, 1);
	rig_run(r, 4500 * MS);
	snprintf(moved->cgroup, sizeof(moved->cgroup), "/online");
	moved->online = true;
	rig_run(r, 20 * S);
	assert_int_equal(moved->attaches, 0);
	rig_end(r);
}

static void a_job_that_a_reload_in_a_pause_made_online_is_not_attached(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;
	struct config other;

	rig_pair(r, &online, &offline);
	scheduler_pause(r->s);
	rig_run(r, S);
	scheduler_set_backend(r->s, NULL);
	other = r->config;
	other.rules.fallback.job_class = JOB_ONLINE;
	offline->online = true;
	scheduler_configure(r->s, &other);
	scheduler_set_backend(r->s, &r->fake.base);
	assert_int_equal(r->last[GPREEMPT_EVENT_JOB_CLASSED].pid, OFFLINE_PID);
	scheduler_continue(r->s);
	rig_run(r, 20 * S);
	assert_int_equal(offline->attaches, 1);
	rig_end(r);
}

/* The pid of whoever is attached is another's by the time that is asked for. */
static const struct gpu_ops *fake_ops;

static int pass_on_and_attach(struct gpu_backend *b, const struct gpu_attach *request,
			      uint64_t cookie, struct gpu_target **ret)
{
	fake_pass_on(fake_find((struct fake *)b, request->pid));
	return fake_ops->attach(b, request, cookie, ret);
}

static void a_pid_that_passes_on_in_the_middle_of_an_attach_is_let_go(void **state)
{
	struct rig *r = rig_new(8);
	struct gpu_ops passing = *r->fake.base.ops;
	struct fake_process *offline;

	fake_ops = r->fake.base.ops;
	passing.attach = pass_on_and_attach;
	r->fake.base.ops = &passing;
	rig_online(r, ONLINE_PID, 1);
	offline = rig_offline(r, OFFLINE_PID, 1);
	rig_turn(r);
	r->fake.base.ops = fake_ops;
	assert_int_equal(offline->attaches, 1);
	assert_int_equal(offline->releases, 1);
	rig_end(r);
}

static void a_job_is_released_some_time_after_its_online_neighbour_is_gone(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;

	rig_pair(r, &online, &offline);
	fake_exit(&r->fake, ONLINE_PID);
	rig_run(r, 4 * S);
	assert_int_equal(offline->releases, 0);
	rig_run(r, 3 * S);
	assert_int_equal(offline->releases, 1);
	assert_null(offline->target);
	rig_end(r);
}

static void a_short_absence_of_online_jobs_changes_nothing(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;

	rig_pair(r, &online, &offline);
	fake_exit(&r->fake, ONLINE_PID);
	rig_run(r, 3 * S);
	rig_online(r, 101, 1);
	rig_run(r, 20 * S);
	assert_int_equal(offline->attaches, 1);
	assert_int_equal(offline->releases, 0);
	rig_end(r);
}

static void a_refused_job_is_tried_later_and_later(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *offline = rig_offline(r, OFFLINE_PID, 1);
	struct gpreempt_daemon_job job;

	offline->outcomes[GPU_ATTACH].result = -EPERM;
	rig_online(r, ONLINE_PID, 1);
	rig_run(r, 4 * S);
	assert_int_equal(offline->attaches, 1);
	rig_run(r, 3 * S); /* 5 s after the first */
	assert_int_equal(offline->attaches, 2);
	rig_run(r, 7 * S);
	assert_int_equal(offline->attaches, 2);
	rig_run(r, 4 * S); /* 10 s after the second */
	assert_int_equal(offline->attaches, 3);
	rig_run(r, 3600 * S); /* then every 5 minutes */
	assert_in_range(offline->attaches, 14, 20);
	assert_int_equal(r->told[GPREEMPT_EVENT_NOT_ATTACHED], 1);
	assert_true(rig_job(r, OFFLINE_PID, 1, &job));
	assert_true(job.refused);
	assert_non_null(strstr(job.why, "the test says"));
	rig_end(r);
}

static void a_job_that_was_refused_once_is_attached_the_next_time(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *offline = rig_offline(r, OFFLINE_PID, 1);
	struct gpreempt_daemon_job job;

	offline->outcomes[GPU_ATTACH] = (struct fake_outcome){ .result = -EBUSY, .times = 1 };
	rig_online(r, ONLINE_PID, 1);
	rig_run(r, 10 * S);
	assert_int_equal(offline->attaches, 2);
	assert_true(rig_job(r, OFFLINE_PID, 1, &job));
	assert_true(job.attached);
	assert_false(job.refused);
	assert_string_equal(job.why, "");
	rig_end(r);
}

static void without_a_policy_nobody_is_attached(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *offline = rig_offline(r, OFFLINE_PID, 1);

	scheduler_set_policy(r->s, &gpol_none);
	rig_online(r, ONLINE_PID, 1);
	rig_run(r, 10 * S);
	assert_int_equal(offline->attaches, 0);
	scheduler_set_policy(r->s, &gpol_priority);
	rig_turn(r);
	assert_int_equal(offline->attaches, 1);
	rig_end(r);
}

static void few_are_attached_at_once(void **state)
{
	struct rig *r = rig_new(64);

	rig_online(r, ONLINE_PID, 1);
	for (pid_t pid = 0; pid < 20; pid++)
		rig_offline(r, OFFLINE_PID + pid, 1)->outcomes[GPU_ATTACH].takes_ns = S;
	rig_turn(r);
	rig_run(r, 500 * MS);
	assert_int_equal(r->fake.targets, 4);
	rig_run(r, 6 * S);
	assert_int_equal(r->fake.targets, 20);
	rig_end(r);
}

static void nothing_is_held_before_its_attach_is_done(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online = rig_online(r, ONLINE_PID, 1);
	struct fake_process *offline = rig_offline(r, OFFLINE_PID, 1);

	offline->outcomes[GPU_ATTACH].takes_ns = 3 * S;
	fake_set_work(online, true);
	rig_run(r, 2 * S);
	assert_int_equal(offline->attaches, 1);
	assert_int_equal(offline->suspends, 0);
	rig_run(r, 2 * S);
	assert_int_equal(offline->suspends, 1);
	rig_end(r);
}

static void an_attached_job_that_becomes_online_is_released_at_once(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;
	struct class_request raise = rig_request(WIRE_BY_PID, OFFLINE_PID, JOB_ONLINE);

	rig_held(r, &online, &offline);
	offline->online = true;
	assert_int_equal(scheduler_class(r->s, &raise), 1);
	assert_int_equal(offline->releases, 1);
	rig_turn(r);
	assert_false(fake_is_held(offline));
	assert_int_equal(journal_left(r->journal, NULL, 0), 0);
	assert_int_equal(r->told[GPREEMPT_EVENT_LET_GO], 1);
	rig_run(r, 20 * S);
	assert_int_equal(offline->attaches, 1);
	rig_end(r);
}

/* ---- gangs ---- */

static void a_process_on_two_gpus_leaves_both_with_one_call(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online = rig_online(r, ONLINE_PID, 2);
	struct fake_process *offline = rig_offline(r, OFFLINE_PID, 1);

	fake_add_queue(offline, 2, 2);
	fake_set_work(offline, true);
	rig_run(r, 2 * S);
	fake_set_work(online, true);
	rig_run(r, 20 * MS);
	assert_true(fake_is_held_on(offline, 1));
	assert_true(fake_is_held_on(offline, 2));
	assert_int_equal(offline->suspends, 1);
	assert_true(offline->last_was_all);
	assert_int_equal(r->last[GPREEMPT_EVENT_HELD].gpu_id, 0);
	assert_int_equal(r->last[GPREEMPT_EVENT_HELD].count, 2);
	fake_set_work(online, false);
	rig_run(r, 50 * MS);
	assert_false(fake_is_held(offline));
	assert_int_equal(offline->resumes, 1);
	rig_end(r);
}

static struct fake_process *gang_member(struct rig *r, pid_t pid, uint32_t gpu)
{
	struct fake_process *p = fake_add(&r->fake, pid, "rank", "/gang");

	fake_add_queue(p, gpu, 1);
	fake_set_work(p, true);
	return p;
}

static void processes_of_a_named_gang_are_attached_and_held_together(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online = rig_online(r, ONLINE_PID, 1);
	struct fake_process *a = gang_member(r, 300, 1), *b = gang_member(r, 301, 2);
	struct gpreempt_daemon_job x, y;

	rig_run(r, 2 * S);
	assert_int_equal(a->attaches, 1);
	assert_int_equal(b->attaches, 1);
	assert_true(rig_job(r, 300, 1, &x) && rig_job(r, 301, 2, &y));
	assert_true(x.gang && x.gang == y.gang);
	fake_set_work(online, true);
	rig_run(r, 20 * MS);
	assert_true(fake_is_held(a));
	assert_true(fake_is_held(b));
	rig_end(r);
}

static void a_gang_is_not_held_while_one_of_it_cannot_be(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online = rig_online(r, ONLINE_PID, 1);
	struct fake_process *a = gang_member(r, 300, 1), *b = gang_member(r, 301, 2);

	b->outcomes[GPU_ATTACH].result = -EPERM;
	fake_set_work(online, true);
	rig_run(r, 10 * S);
	assert_int_equal(a->suspends + b->suspends, 0);
	rig_end(r);
}

static void a_queue_on_another_gpu_makes_a_gang_of_a_job(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;
	struct gpreempt_daemon_job job;

	rig_pair(r, &online, &offline);
	assert_true(rig_job(r, OFFLINE_PID, 1, &job));
	assert_int_equal(job.gang, 0);
	fake_add_queue(offline, 2, 2);
	rig_run(r, 2 * S);
	assert_true(rig_job(r, OFFLINE_PID, 2, &job));
	assert_int_not_equal(job.gang, 0);
	fake_set_work(online, true);
	rig_run(r, 20 * MS);
	assert_true(fake_is_held_on(offline, 2));
	rig_end(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_young_offline_job_is_not_attached),
		cmocka_unit_test(where_attaching_costs_nothing_nobody_waits_for_it),
		cmocka_unit_test(an_offline_job_without_online_neighbours_is_not_attached),
		cmocka_unit_test(an_online_job_is_never_attached),
		cmocka_unit_test(a_job_whose_cgroup_became_that_of_online_jobs_is_not_attached),
		cmocka_unit_test(a_job_that_a_reload_in_a_pause_made_online_is_not_attached),
		cmocka_unit_test(a_pid_that_passes_on_in_the_middle_of_an_attach_is_let_go),
		cmocka_unit_test(a_job_is_released_some_time_after_its_online_neighbour_is_gone),
		cmocka_unit_test(a_short_absence_of_online_jobs_changes_nothing),
		cmocka_unit_test(a_refused_job_is_tried_later_and_later),
		cmocka_unit_test(a_job_that_was_refused_once_is_attached_the_next_time),
		cmocka_unit_test(without_a_policy_nobody_is_attached),
		cmocka_unit_test(few_are_attached_at_once),
		cmocka_unit_test(nothing_is_held_before_its_attach_is_done),
		cmocka_unit_test(an_attached_job_that_becomes_online_is_released_at_once),
		cmocka_unit_test(a_process_on_two_gpus_leaves_both_with_one_call),
		cmocka_unit_test(processes_of_a_named_gang_are_attached_and_held_together),
		cmocka_unit_test(a_gang_is_not_held_while_one_of_it_cannot_be),
		cmocka_unit_test(a_queue_on_another_gpu_makes_a_gang_of_a_job),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
