/* SPDX-License-Identifier: MIT */
/* Online jobs whose next work is told at once, and how often anybody is looked at. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>

#include <cmocka.h>

#include "tests/daemon/rig.h"

#define US NSEC_PER_USEC

static struct gpreempt_daemon_status status_of(struct rig *r)
{
	struct gpreempt_daemon_status status = { 0 };

	scheduler_status(r->s, &status);
	return status;
}

static struct gpreempt_daemon_job job_of(struct rig *r, pid_t pid)
{
	struct gpreempt_daemon_job job;

	assert_true(rig_job(r, pid, 1, &job));
	return job;
}

static struct rig *watched_pair(struct fake_process **online, struct fake_process **offline)
{
	struct rig *r = rig_new(8);

	fake_give_alerts(&r->fake);
	rig_pair(r, online, offline);
	rig_run(r, S);
	assert_true((*online)->armed);
	return r;
}

static void work_of_a_watched_job_is_acted_on_without_a_look(void **state)
{
	struct fake_process *online, *offline;
	struct rig *r = watched_pair(&online, &offline);
	uint32_t looks = online->looks;

	assert_true(job_of(r, ONLINE_PID).watched);
	fake_set_work(online, true);
	rig_turn(r);
	assert_int_equal(online->looks, looks);
	assert_int_equal(offline->asked_suspend_ns, r->fake.now_ns);
	assert_int_equal(status_of(r).seen_by_watch, 1);
	assert_int_equal(status_of(r).seen_by_look, 0);
	assert_false(job_of(r, ONLINE_PID).watched);
	rig_end(r);
}

static void a_job_is_watched_anew_for_each_burst_and_once(void **state)
{
	struct fake_process *online, *offline;
	struct rig *r = watched_pair(&online, &offline);
	uint32_t alerts = online->alerts;

	for (int i = 0; i < 20; i++) {
		fake_set_work(online, true);
		rig_run(r, 20 * MS);
		assert_true(fake_is_held(offline));
		assert_false(online->armed);
		fake_set_work(online, false);
		rig_run(r, 20 * MS);
		assert_false(fake_is_held(offline));
	}
	assert_int_equal(online->alerts - alerts, 20);
	assert_int_equal(status_of(r).seen_by_watch, 20);
	assert_int_equal(status_of(r).seen_by_look + status_of(r).seen_late, 0);
	rig_end(r);
}

/* A look of 20 us, a tenth of a processor for them: each 200 us. */
static void the_end_of_work_is_looked_for_within_the_budget(void **state)
{
	struct fake_process *online, *offline;
	struct rig *r = watched_pair(&online, &offline);
	uint32_t looks;

	r->fake.look_cost_ns = 20 * US;
	fake_set_work(online, true);
	rig_run(r, 50 * MS);
	looks = online->looks;
	rig_run(r, 100 * MS);
	assert_in_range(online->looks - looks, 200, 510); /* of the offline one, too */
	fake_set_work(online, false);
	rig_run(r, MS); /* with what the policy waits for more, and the resume */
	assert_false(fake_is_held(offline));

	r->fake.look_cost_ns = 1; /* no more often than this */
	fake_set_work(online, true);
	rig_run(r, 100 * MS);
	looks = online->looks;
	rig_run(r, 100 * MS);
	assert_in_range(online->looks - looks, 1900, 2100);
	rig_end(r);
}

static void looks_at_watched_jobs_become_rare(void **state)
{
	struct fake_process *online, *offline;
	struct rig *r = watched_pair(&online, &offline);
	uint32_t before_online, before_offline;

	rig_run(r, 10 * S);
	before_online = online->looks;
	before_offline = offline->looks;
	rig_run(r, 10 * S);
	assert_in_range(online->looks - before_online, 9, 60); /* scans look at all */
	assert_in_range(offline->looks - before_offline, 9, 60);
	rig_end(r);
}

/* A watchpoint that tells nothing is no reason to be blind. */
/* Whether an offline job works is of use before online work only where looks go by it. */
static void offline_jobs_are_looked_at_more_often_where_work_is_not_told(void **state)
{
	struct fake_process *online, *offline;
	struct rig *r = watched_pair(&online, &offline);
	uint32_t looks;

	rig_run(r, 10 * S);
	fake_set_work(offline, true);
	fake_set_work(online, true);
	rig_turn(r);
	assert_int_equal(offline->asked_suspend_ns, r->fake.now_ns);
	fake_set_work(online, false);
	fake_set_work(offline, false);
	rig_run(r, S);

	online->unwatchable = -EPERM;
	fake_set_work(online, true);
	rig_run(r, 100 * MS);
	fake_set_work(online, false);
	rig_run(r, 20 * S);
	looks = offline->looks;
	rig_run(r, 10 * S);
	assert_in_range(offline->looks - looks, 95, 150);
	rig_end(r);
}

static void work_that_was_not_told_is_found_by_a_rare_look_and_counted(void **state)
{
	struct fake_process *online, *offline;
	struct rig *r = watched_pair(&online, &offline);

	r->config.scan_ns = 30 * S; /* scans look at all */
	scheduler_configure(r->s, &r->config);
	rig_run(r, 25 * S);
	online->deaf = true;
	fake_set_work(online, true);
	rig_run(r, S);
	assert_true(fake_is_held(offline));
	assert_int_equal(status_of(r).seen_late, 1);
	assert_int_equal(status_of(r).seen_by_watch, 0);
	rig_end(r);
}

static void one_that_cannot_be_watched_is_looked_at_and_told_of(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;
	uint32_t looks;

	fake_give_alerts(&r->fake);
	online = rig_online(r, ONLINE_PID, 1);
	offline = rig_offline(r, OFFLINE_PID, 1);
	online->unwatchable = -EACCES;
	fake_set_work(offline, true);
	rig_run(r, 5 * S);
	assert_string_equal(status_of(r).unwatched, strerror(EACCES));
	assert_false(job_of(r, ONLINE_PID).watched);
	looks = online->looks;
	rig_run(r, S);
	assert_in_range(online->looks - looks, 190, 210);
	fake_set_work(online, true);
	rig_run(r, 10 * MS);
	assert_true(fake_is_held(offline));
	assert_int_equal(status_of(r).seen_by_look, 1);

	online->unwatchable = 0;
	fake_set_work(online, false);
	rig_run(r, S);
	assert_true(online->armed);
	assert_string_equal(status_of(r).unwatched, "");
	rig_end(r);
}

static void nobody_is_watched_where_nobody_could_be_held(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online = rig_online(r, ONLINE_PID, 1), *offline;

	fake_give_alerts(&r->fake);
	rig_run(r, 2 * S);
	assert_false(online->alert); /* alone */
	offline = rig_offline(r, OFFLINE_PID, 2);
	rig_run(r, 2 * S);
	assert_false(online->alert); /* on another GPU */
	fake_add_queue(offline, 1, 2);
	offline->queues_changed = true;
	rig_run(r, 5 * S);
	assert_true(online->alert && online->armed);
	fake_exit(&r->fake, OFFLINE_PID);
	rig_run(r, 2 * S);
	assert_false(online->alert);
	rig_end(r);
}

static void nobody_is_watched_while_paused_or_where_people_say_so(void **state)
{
	struct fake_process *online, *offline;
	struct rig *r = watched_pair(&online, &offline);
	struct config config = r->config;

	scheduler_pause(r->s);
	rig_run(r, S);
	assert_int_equal(r->fake.watches, 0);
	scheduler_continue(r->s);
	rig_run(r, 5 * S);
	assert_true(online->armed);

	config.watch = false;
	scheduler_configure(r->s, &config);
	rig_run(r, S);
	assert_false(online->alert);
	fake_set_work(online, true);
	rig_run(r, 10 * MS);
	assert_true(fake_is_held(offline));
	assert_int_equal(status_of(r).seen_by_look, 1);
	assert_string_equal(status_of(r).unwatched, "the configuration has [look] watch = no");
	scheduler_configure(r->s, &r->config);
	assert_string_equal(status_of(r).unwatched, "");
	rig_end(r);
}

/* It began before the work came, and would say that there is none. */
static void what_was_told_counts_though_a_look_is_under_way(void **state)
{
	struct fake_process *online, *offline;
	struct rig *r = watched_pair(&online, &offline);

	online->late = true;
	rig_run(r, 2 * S);
	online->late = false;
	fake_set_work(online, true);
	rig_turn(r);
	assert_int_equal(offline->asked_suspend_ns, r->fake.now_ns);
	assert_int_equal(status_of(r).seen_by_watch, 1);
	rig_end(r);
}

static int told_fd;

static int get_told_fd(struct gpu_backend *b)
{
	return told_fd;
}

/* One with hundreds of threads, each of which has a watchpoint. */
static void who_tells_all_the_time_keeps_nobody_from_being_looked_at(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *loud, *quiet, *in_the_way;
	struct gpu_ops ops;
	uint64_t until_ns;

	fake_give_alerts(&r->fake);
	ops = *r->fake.base.ops;
	ops.alert_fd = get_told_fd;
	r->fake.base.ops = &ops;
	told_fd = eventfd(0, EFD_CLOEXEC);
	scheduler_set_backend(r->s, NULL);
	scheduler_set_backend(r->s, &r->fake.base);
	loud = rig_online(r, ONLINE_PID, 2);
	rig_offline(r, OFFLINE_PID, 2);
	quiet = rig_online(r, ONLINE_PID + 10, 1);
	in_the_way = rig_offline(r, OFFLINE_PID + 10, 1);
	quiet->unwatchable = -ENOSPC;
	rig_run(r, 5 * S);
	assert_true(loud->armed);
	fake_set_work(loud, true);
	fake_set_work(quiet, true);
	eventfd_write(told_fd, 1); /* and so it stays */
	until_ns = r->fake.now_ns + 20 * MS;
	while (r->fake.now_ns < until_ns && !in_the_way->asked_suspend_ns) {
		loud->struck = true;
		rig_turn(r);
		fake_set_time(&r->fake, r->fake.now_ns + 100 * US);
	}
	assert_true(in_the_way->asked_suspend_ns);
	rig_end(r);
	close(told_fd);
}

/* Announced work is not counted as seen by what saw it later. */
static void announced_work_is_counted_as_such(void **state)
{
	struct fake_process *online, *offline;
	struct rig *r = watched_pair(&online, &offline);

	assert_int_equal(scheduler_hint(r->s, ONLINE_PID, r->fake.now_ns, 0), 0);
	rig_run(r, MS);
	fake_set_work(online, true);
	rig_run(r, MS);
	assert_int_equal(status_of(r).seen_by_hint, 1);
	assert_int_equal(status_of(r).seen_by_watch, 0);
	rig_end(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(work_of_a_watched_job_is_acted_on_without_a_look),
		cmocka_unit_test(a_job_is_watched_anew_for_each_burst_and_once),
		cmocka_unit_test(the_end_of_work_is_looked_for_within_the_budget),
		cmocka_unit_test(looks_at_watched_jobs_become_rare),
		cmocka_unit_test(offline_jobs_are_looked_at_more_often_where_work_is_not_told),
		cmocka_unit_test(work_that_was_not_told_is_found_by_a_rare_look_and_counted),
		cmocka_unit_test(one_that_cannot_be_watched_is_looked_at_and_told_of),
		cmocka_unit_test(nobody_is_watched_where_nobody_could_be_held),
		cmocka_unit_test(nobody_is_watched_while_paused_or_where_people_say_so),
		cmocka_unit_test(what_was_told_counts_though_a_look_is_under_way),
		cmocka_unit_test(who_tells_all_the_time_keeps_nobody_from_being_looked_at),
		cmocka_unit_test(announced_work_is_counted_as_such),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
