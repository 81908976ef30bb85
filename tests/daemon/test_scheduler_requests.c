/* SPDX-License-Identifier: MIT */
/* What people and programs ask of the scheduler. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/daemon/rig.h"

#define CONTAINER "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static enum gpreempt_class class_of(struct rig *r, pid_t pid)
{
	struct gpreempt_daemon_job job;

	assert_true(rig_job(r, pid, 1, &job));
	return job.job_class;
}

/* One that is left alone has no GPU. */
static enum gpreempt_class class_of_none(struct rig *r, pid_t pid)
{
	struct gpreempt_daemon_job job;

	assert_true(rig_job(r, pid, 0, &job));
	return job.job_class;
}

static uint32_t priority_of(struct rig *r, pid_t pid)
{
	struct gpreempt_daemon_job job;

	assert_true(rig_job(r, pid, 1, &job));
	return job.priority;
}

static struct class_request of_user(struct class_request request, uid_t uid)
{
	request.only_uid = uid;
	return request;
}

/* ---- classes ---- */

static void a_request_by_pid_classes_its_process(void **state)
{
	struct rig *r = rig_new(8);
	struct class_request request = rig_request(WIRE_BY_PID, OFFLINE_PID, JOB_ONLINE);
	struct gpreempt_daemon_job job;

	rig_offline(r, OFFLINE_PID, 1);
	rig_run(r, S);
	assert_int_equal(scheduler_class(r->s, &request), 1);
	assert_true(rig_job(r, OFFLINE_PID, 1, &job));
	assert_int_equal(job.job_class, GPREEMPT_CLASS_ONLINE);
	assert_string_equal(job.source, "request");
	assert_int_equal(job.priority, 5); /* kept */
	assert_int_equal(r->told[GPREEMPT_EVENT_JOB_CLASSED], 1);
	request.said.pid = 4711;
	assert_int_equal(scheduler_class(r->s, &request), -ESRCH);
	rig_end(r);
}

static void a_request_by_pid_holds_for_descendants_to_come(void **state)
{
	struct rig *r = rig_new(8);
	struct class_request request = rig_request(WIRE_BY_PID, 50, JOB_ONLINE);
	struct fake_process *child;

	fake_add(&r->fake, 50, "launcher", "/")->uses_gpu = false;
	fake_add(&r->fake, 51, "shell", "/")->uses_gpu = false;
	fake_find(&r->fake, 51)->parent = 50;
	rig_run(r, S);
	assert_int_equal(scheduler_class(r->s, &request), 0);
	child = rig_offline(r, OFFLINE_PID, 1);
	child->parent = 51;
	rig_offline(r, OFFLINE_PID + 1, 1);
	rig_run(r, S);
	assert_int_equal(class_of(r, OFFLINE_PID), GPREEMPT_CLASS_ONLINE);
	assert_int_equal(class_of(r, OFFLINE_PID + 1), GPREEMPT_CLASS_OFFLINE);
	rig_end(r);
}

static void a_request_by_pid_dies_with_its_pid_but_not_for_those_it_classed(void **state)
{
	struct rig *r = rig_new(8);
	struct class_request request = rig_request(WIRE_BY_PID, 50, JOB_ONLINE);

	fake_add(&r->fake, 50, "launcher", "/")->uses_gpu = false;
	rig_run(r, S);
	assert_int_equal(scheduler_class(r->s, &request), 0);
	rig_offline(r, OFFLINE_PID, 1)->parent = 50;
	rig_run(r, S);
	fake_exit(&r->fake, 50);
	fake_find(&r->fake, OFFLINE_PID)->parent = 1;
	rig_run(r, 2 * S);
	fake_add(&r->fake, 50, "another", "/")->uses_gpu = false;
	rig_offline(r, OFFLINE_PID + 1, 1)->parent = 50;
	rig_run(r, 20 * S);
	assert_int_equal(class_of(r, OFFLINE_PID), GPREEMPT_CLASS_ONLINE);
	assert_int_equal(class_of(r, OFFLINE_PID + 1), GPREEMPT_CLASS_OFFLINE);
	rig_end(r);
}

static void requests_match_names_cgroups_and_containers(void **state)
{
	struct rig *r = rig_new(8);
	struct class_request request = rig_request(WIRE_BY_NAME, 0, JOB_ONLINE);
	struct fake_process *p;

	p = rig_offline(r, 300, 1);
	snprintf(p->comm, sizeof(p->comm), "serve-1");
	p = rig_offline(r, 301, 1);
	snprintf(p->cgroup, sizeof(p->cgroup), "/slurm/job_7/step_0");
	p = rig_offline(r, 302, 1);
	snprintf(p->cgroup, sizeof(p->cgroup), "/docker/" CONTAINER);
	rig_run(r, S);
	snprintf(request.said.pattern, sizeof(request.said.pattern), "serve-*");
	assert_int_equal(scheduler_class(r->s, &request), 1);
	request.said.selector = WIRE_BY_CGROUP;
	snprintf(request.said.pattern, sizeof(request.said.pattern), "/slurm/job_7");
	assert_int_equal(scheduler_class(r->s, &request), 1);
	request.said.selector = WIRE_BY_CONTAINER;
	snprintf(request.said.pattern, sizeof(request.said.pattern), "0123456789ab");
	assert_int_equal(scheduler_class(r->s, &request), 1);
	for (pid_t pid = 300; pid <= 302; pid++)
		assert_int_equal(class_of(r, pid), GPREEMPT_CLASS_ONLINE);
	rig_end(r);
}

static void the_last_request_counts(void **state)
{
	struct rig *r = rig_new(8);
	struct class_request up = rig_request(WIRE_BY_PID, OFFLINE_PID, JOB_ONLINE);
	struct class_request down = rig_request(WIRE_BY_NAME, 0, JOB_OFFLINE);

	rig_offline(r, OFFLINE_PID, 1);
	rig_run(r, S);
	snprintf(down.said.pattern, sizeof(down.said.pattern), "*");
	assert_int_equal(scheduler_class(r->s, &up), 1);
	assert_int_equal(scheduler_class(r->s, &down), 1);
	assert_int_equal(class_of(r, OFFLINE_PID), GPREEMPT_CLASS_OFFLINE);
	assert_int_equal(scheduler_class(r->s, &up), 1);
	assert_int_equal(class_of(r, OFFLINE_PID), GPREEMPT_CLASS_ONLINE);
	rig_end(r);
}

static void a_hold_of_a_job_taken_out_of_its_class_is_told_of(void **state)
{
	struct rig *r = rig_new(8);
	struct class_request out = rig_request(WIRE_BY_PID, OFFLINE_PID, JOB_UNMANAGED);
	struct fake_process *online, *offline;

	rig_held(r, &online, &offline);
	assert_int_equal(scheduler_class(r->s, &out), 1);
	rig_run(r, 20 * MS);
	assert_false(fake_is_held(offline));
	assert_int_equal(r->told[GPREEMPT_EVENT_LET_GO], 1);
	assert_int_equal(r->last[GPREEMPT_EVENT_LET_GO].pid, OFFLINE_PID);
	assert_true(r->last[GPREEMPT_EVENT_LET_GO].duration_ns > 10 * MS);
	rig_end(r);
}

static void a_user_may_lower_only_their_own(void **state)
{
	struct rig *r = rig_new(8);
	struct class_request down =
		of_user(rig_request(WIRE_BY_PID, ONLINE_PID, JOB_OFFLINE), USER);
	struct class_request all = of_user(rig_request(WIRE_BY_NAME, 0, JOB_OFFLINE), USER);

	rig_online(r, ONLINE_PID, 1);
	rig_online(r, 101, 1)->uid = USER;
	rig_run(r, S);
	assert_int_equal(scheduler_class(r->s, &down), -EPERM);
	snprintf(all.said.pattern, sizeof(all.said.pattern), "*");
	assert_int_equal(scheduler_class(r->s, &all), 1);
	assert_int_equal(class_of(r, ONLINE_PID), GPREEMPT_CLASS_ONLINE);
	assert_int_equal(class_of(r, 101), GPREEMPT_CLASS_OFFLINE);
	fake_find(&r->fake, 101)->online = false;
	rig_end(r);
}

static void a_user_may_not_raise(void **state)
{
	struct rig *r = rig_new(8);
	struct class_request up =
		of_user(rig_request(WIRE_BY_PID, OFFLINE_PID, JOB_ONLINE), USER);
	struct class_request out =
		of_user(rig_request(WIRE_BY_PID, OFFLINE_PID, JOB_UNMANAGED), USER);

	rig_offline(r, OFFLINE_PID, 1);
	rig_run(r, S);
	assert_int_equal(scheduler_class(r->s, &up), -EPERM);
	assert_int_equal(scheduler_class(r->s, &out), -EPERM);
	assert_int_equal(class_of(r, OFFLINE_PID), GPREEMPT_CLASS_OFFLINE);
	rig_end(r);
}

/* As the configuration is shipped, jobs that nobody named are left alone. */
static void a_user_is_heard_of_what_nobody_said_anything_of(void **state)
{
	struct rig *r = rig_new(8);
	struct class_request theirs = of_user(rig_request(WIRE_BY_PID, 300, JOB_OFFLINE), USER);
	struct class_request roots = rig_request(WIRE_BY_PID, 302, JOB_UNMANAGED);

	r->config.rules.fallback.job_class = JOB_UNMANAGED;
	for (pid_t pid = 300; pid <= 302; pid++)
		rig_offline(r, pid, 1)->uid = USER;
	snprintf(fake_find(&r->fake, 301)->cgroup, sizeof(((struct fake_process *)0)->cgroup),
		 "/none");
	rig_run(r, S);
	assert_int_equal(scheduler_class(r->s, &roots), 1);
	for (theirs.said.pid = 300; theirs.said.pid <= 302; theirs.said.pid++)
		assert_int_equal(scheduler_class(r->s, &theirs), 1);
	rig_run(r, S);
	assert_int_equal(class_of(r, 300), GPREEMPT_CLASS_OFFLINE);
	for (pid_t pid = 301; pid <= 302; pid++)
		assert_int_equal(class_of_none(r, pid), GPREEMPT_CLASS_UNKNOWN);
	rig_end(r);
}

static void a_user_does_not_undo_what_root_said(void **state)
{
	struct rig *r = rig_new(8);
	struct class_request root = rig_request(WIRE_BY_PID, OFFLINE_PID, JOB_OFFLINE);
	struct class_request user =
		of_user(rig_request(WIRE_BY_PID, OFFLINE_PID, JOB_OFFLINE), USER);

	rig_offline(r, OFFLINE_PID, 1);
	rig_run(r, S);
	root.said.priority = 2;
	assert_int_equal(scheduler_class(r->s, &root), 1);
	user.said.priority = 200;
	assert_int_equal(scheduler_class(r->s, &user), 1);
	assert_int_equal(priority_of(r, OFFLINE_PID), 2);
	user.said.priority = 1;
	assert_int_equal(scheduler_class(r->s, &user), 1);
	assert_int_equal(priority_of(r, OFFLINE_PID), 1);
	rig_end(r);
}

static void a_later_word_of_root_counts_for_more_than_a_users(void **state)
{
	struct rig *r = rig_new(8);
	struct class_request user =
		of_user(rig_request(WIRE_BY_PID, OFFLINE_PID, JOB_OFFLINE), USER);
	struct class_request root = rig_request(WIRE_BY_PID, OFFLINE_PID, JOB_ONLINE);

	rig_offline(r, OFFLINE_PID, 1);
	rig_run(r, S);
	assert_int_equal(scheduler_class(r->s, &user), 1);
	assert_int_equal(scheduler_class(r->s, &root), 1);
	assert_int_equal(class_of(r, OFFLINE_PID), GPREEMPT_CLASS_ONLINE);
	assert_int_equal(scheduler_class(r->s, &user), 1);
	assert_int_equal(class_of(r, OFFLINE_PID), GPREEMPT_CLASS_OFFLINE);
	rig_end(r);
}

static void a_user_cannot_fill_the_list_of_requests(void **state)
{
	struct rig *r = rig_new(8);
	struct class_request request = of_user(rig_request(WIRE_BY_NAME, 0, JOB_OFFLINE), USER);
	int result = 0;

	for (int i = 0; i < 100 && result >= 0; i++) {
		snprintf(request.said.pattern, sizeof(request.said.pattern), "name-%d", i);
		result = scheduler_class(r->s, &request);
	}
	assert_int_equal(result, -ENOSPC);
	request.only_uid = (uid_t)-1;
	assert_int_equal(scheduler_class(r->s, &request), 0);
	rig_end(r);
}

static void many_users_leave_room_for_root(void **state)
{
	struct rig *r = rig_new(8);
	struct class_request request = of_user(rig_request(WIRE_BY_NAME, 0, JOB_OFFLINE), USER);
	int refused = 0;

	for (int i = 0; i < 1000; i++) {
		request.only_uid = (uid_t)(USER + i);
		snprintf(request.said.pattern, sizeof(request.said.pattern), "name-%d", i);
		refused += scheduler_class(r->s, &request) == -ENOSPC;
	}
	assert_in_range(refused, 1, 999);
	request.only_uid = (uid_t)-1;
	for (int i = 0; i < 100; i++) {
		snprintf(request.said.pattern, sizeof(request.said.pattern), "name-%d", i);
		assert_int_equal(scheduler_class(r->s, &request), 0);
	}
	rig_end(r);
}

static void nobody_is_raised_by_a_cgroup_they_named(void **state)
{
	static const char below[] = "/u.slice/user@1000.service/";
	struct rig *r = rig_new(8);
	struct class_request request = rig_request(WIRE_BY_CGROUP, 0, JOB_ONLINE);
	struct fake_process *p = rig_offline(r, 300, 1);

	snprintf(p->cgroup, sizeof(p->cgroup), "%skubepods", below);
	p = rig_offline(r, 301, 1);
	snprintf(p->cgroup, sizeof(p->cgroup), "%s%s", below, CONTAINER);
	rig_run(r, S);
	snprintf(request.said.pattern, sizeof(request.said.pattern), "*/kubepods");
	assert_int_equal(scheduler_class(r->s, &request), 0);
	snprintf(request.said.pattern, sizeof(request.said.pattern), "*/user@1000.service");
	assert_int_equal(scheduler_class(r->s, &request), 2);
	request.said.job_class = JOB_OFFLINE;
	assert_int_equal(scheduler_class(r->s, &request), 2);
	request = rig_request(WIRE_BY_CONTAINER, 0, JOB_ONLINE);
	snprintf(request.said.pattern, sizeof(request.said.pattern), "0123456789ab");
	assert_int_equal(scheduler_class(r->s, &request), 0);
	request.said.job_class = JOB_OFFLINE;
	assert_int_equal(scheduler_class(r->s, &request), 1);
	rig_end(r);
}

static void nobody_is_raised_by_a_name_they_took_later(void **state)
{
	struct rig *r = rig_new(8);
	struct class_request request = rig_request(WIRE_BY_NAME, 0, JOB_ONLINE);
	struct fake_process *p;

	snprintf(rig_offline(r, 300, 1)->comm, sizeof(p->comm), "serve");
	p = rig_offline(r, 301, 1);
	rig_run(r, S);
	snprintf(request.said.pattern, sizeof(request.said.pattern), "serve");
	assert_int_equal(scheduler_class(r->s, &request), 1);
	snprintf(p->comm, sizeof(p->comm), "serve");
	snprintf(rig_offline(r, 302, 1)->comm, sizeof(p->comm), "serve");
	rig_run(r, 30 * S);
	assert_int_equal(class_of(r, 300), GPREEMPT_CLASS_ONLINE);
	assert_int_equal(class_of(r, 301), GPREEMPT_CLASS_OFFLINE);
	assert_int_equal(class_of(r, 302), GPREEMPT_CLASS_OFFLINE);
	rig_end(r);
}

static void the_same_request_again_takes_no_more_room(void **state)
{
	struct rig *r = rig_new(8);
	struct class_request request = rig_request(WIRE_BY_NAME, 0, JOB_ONLINE);

	snprintf(request.said.pattern, sizeof(request.said.pattern), "name");
	for (int i = 0; i < 1000; i++)
		assert_int_equal(scheduler_class(r->s, &request), 0);
	rig_end(r);
}

static void a_pattern_no_longer_fits_after_a_change_of_name(void **state)
{
	struct rig *r = rig_new(8);
	struct class_request request = rig_request(WIRE_BY_NAME, 0, JOB_ONLINE);
	struct fake_process *p = rig_offline(r, OFFLINE_PID, 1);

	rig_run(r, S);
	snprintf(request.said.pattern, sizeof(request.said.pattern), "offline");
	assert_int_equal(scheduler_class(r->s, &request), 1);
	snprintf(p->comm, sizeof(p->comm), "something");
	rig_run(r, 2 * S);
	assert_int_equal(class_of(r, OFFLINE_PID), GPREEMPT_CLASS_OFFLINE);
	rig_end(r);
}

/* ---- hints ---- */

static void a_hint_holds_at_once(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;
	uint64_t steps;

	rig_pair(r, &online, &offline);
	steps = scheduler_figures(r->s)->status.steps;
	assert_int_equal(scheduler_hint(r->s, ONLINE_PID, 0, 0), 0);
	scheduler_act(r->s);
	assert_int_equal(offline->suspends, 1);
	assert_int_equal(scheduler_figures(r->s)->status.steps, steps + 1);
	assert_int_equal(scheduler_figures(r->s)->status.hints, 1);
	assert_int_equal(scheduler_figures(r->s)->detection.count, 1);
	assert_true(scheduler_figures(r->s)->detection.max_ns < MS);
	rig_end(r);
}

static void a_hint_without_work_expires(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;

	rig_pair(r, &online, &offline);
	assert_int_equal(scheduler_hint(r->s, ONLINE_PID, 0, 0), 0);
	scheduler_act(r->s);
	rig_run(r, 5 * MS);
	assert_true(fake_is_held(offline));
	rig_run(r, 10 * MS);
	assert_false(fake_is_held(offline));
	rig_end(r);
}

static void hints_of_others_than_online_jobs_are_refused(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;

	rig_pair(r, &online, &offline);
	assert_int_equal(scheduler_hint(r->s, OFFLINE_PID, 0, 0), -EPERM);
	assert_int_equal(scheduler_hint(r->s, 4711, 0, 0), -ENOENT);
	assert_int_equal(scheduler_hint(r->s, ONLINE_PID, r->fake.now_ns + 2 * S, 0), -EINVAL);
	scheduler_act(r->s);
	assert_int_equal(offline->suspends, 0);
	assert_int_equal(scheduler_figures(r->s)->status.hints, 0);
	assert_int_equal(scheduler_figures(r->s)->status.hints_refused, 3);
	rig_end(r);
}

static void a_hint_of_work_to_come_holds_just_before_it(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;
	uint64_t at_ns;

	rig_pair(r, &online, &offline);
	offline->outcomes[GPU_SUSPEND].takes_ns = r->fake.base.caps.suspend_ns;
	at_ns = r->fake.now_ns + 100 * MS;
	assert_int_equal(scheduler_hint(r->s, ONLINE_PID, at_ns, 0), 0);
	scheduler_act(r->s);
	rig_run(r, 90 * MS);
	assert_int_equal(offline->suspends, 0);
	rig_run(r, 10 * MS);
	assert_int_equal(offline->suspends, 1);
	assert_true(offline->asked_suspend_ns < at_ns);
	rig_end(r);
}

static struct wire_hint_page *map_page(struct rig *r, pid_t pid, int *ret_fd)
{
	struct wire_hint_page *page;

	assert_int_equal(scheduler_hint_page(r->s, pid, ret_fd), 0);
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, *ret_fd, 0);
	assert_true(page != MAP_FAILED);
	assert_int_equal(page->magic, WIRE_MAGIC);
	return page;
}

static void a_word_in_a_page_is_a_hint(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;
	struct wire_hint_page *page;
	int fd;

	rig_pair(r, &online, &offline);
	page = map_page(r, ONLINE_PID, &fd);
	rig_run(r, 50 * MS);
	assert_int_equal(offline->suspends, 0);
	page->at_ns = 0;
	page->calls++;
	rig_run(r, MS); /* a page is looked at as often as critical work */
	assert_int_equal(offline->suspends, 1);
	munmap(page, 4096);
	close(fd);
	rig_end(r);
}

static void garbage_in_a_page_is_no_hint(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;
	struct wire_hint_page *page;
	int fd;

	rig_pair(r, &online, &offline);
	page = map_page(r, ONLINE_PID, &fd);
	memset(page, 0xff, sizeof(*page));
	rig_run(r, 100 * MS);
	assert_int_equal(offline->suspends, 0);
	assert_int_equal(scheduler_figures(r->s)->status.hints_refused, 1);
	munmap(page, 4096);
	close(fd);
	rig_end(r);
}

static void a_page_cannot_be_cut_short(void **state)
{
	struct rig *r = rig_new(8);
	int fd;

	rig_online(r, ONLINE_PID, 1);
	rig_offline(r, OFFLINE_PID, 1);
	rig_run(r, S);
	assert_int_equal(scheduler_hint_page(r->s, OFFLINE_PID, &fd), -EPERM);
	assert_int_equal(scheduler_hint_page(r->s, 4711, &fd), -ENOENT);
	assert_int_equal(scheduler_hint_page(r->s, ONLINE_PID, &fd), 0);
	assert_int_not_equal(ftruncate(fd, 0), 0);
	assert_int_not_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
	close(fd);
	rig_end(r);
}

/* ---- pause and the like ---- */

static void a_pause_lets_go_of_everything(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;

	rig_held(r, &online, &offline);
	offline->outcomes[GPU_RELEASE].takes_ns = 50 * MS;
	scheduler_pause(r->s);
	assert_true(scheduler_is_paused(r->s));
	assert_false(scheduler_is_idle(r->s));
	rig_run(r, 100 * MS);
	assert_true(scheduler_is_idle(r->s));
	assert_false(fake_is_held(offline));
	assert_int_equal(r->fake.watches, 0);
	assert_int_equal(scheduler_hint(r->s, ONLINE_PID, 0, 0), 0);
	scheduler_act(r->s);
	rig_run(r, 60 * S);
	assert_int_equal(offline->attaches, 1);
	assert_int_equal(offline->suspends, 1);
	rig_end(r);
}

static void continuing_begins_anew(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;

	rig_pair(r, &online, &offline);
	scheduler_pause(r->s);
	rig_run(r, S);
	fake_exit(&r->fake, ONLINE_PID);
	online = rig_online(r, 101, 1);
	fake_set_work(online, true);
	scheduler_continue(r->s);
	rig_run(r, S);
	assert_true(fake_is_held(offline));
	assert_int_equal(r->last[GPREEMPT_EVENT_HELD].other_pid, 101);
	assert_int_equal(r->told[GPREEMPT_EVENT_PAUSED], 1);
	assert_int_equal(r->told[GPREEMPT_EVENT_CONTINUED], 1);
	rig_end(r);
}

static void without_a_backend_everything_waits(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;
	struct class_request request = rig_request(WIRE_BY_PID, OFFLINE_PID, JOB_ONLINE);
	struct gpreempt_daemon_status status = { 0 };
	struct gpreempt_daemon_job job;

	rig_pair(r, &online, &offline);
	scheduler_pause(r->s);
	rig_run(r, S);
	scheduler_set_backend(r->s, NULL);
	assert_true(scheduler_turn(r->s) == UINT64_MAX);
	scheduler_act(r->s);
	scheduler_hint(r->s, ONLINE_PID, 0, 0);
	scheduler_status(r->s, &status);
	scheduler_configure(r->s, &r->config);
	assert_true(scheduler_class(r->s, &request) < 0);
	assert_int_equal(scheduler_release(r->s, 4711), -ESRCH);
	assert_true(rig_job(r, OFFLINE_PID, 1, &job));
	scheduler_set_backend(r->s, &r->fake.base);
	scheduler_continue(r->s);
	fake_set_work(online, true);
	rig_run(r, S);
	assert_true(fake_is_held(offline));
	rig_end(r);
}

static void a_released_job_is_left_alone_for_a_minute(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;

	rig_held(r, &online, &offline);
	assert_int_equal(scheduler_release(r->s, 4711), -ESRCH);
	assert_int_equal(scheduler_release(r->s, OFFLINE_PID), 1);
	assert_int_equal(offline->resumes, 1);
	rig_run(r, 50 * S);
	assert_false(fake_is_held(offline));
	assert_int_equal(offline->suspends, 1);
	assert_int_equal(offline->attaches, 1);
	rig_run_until(r, offline->suspends == 2);
	rig_end(r);
}

static void everybody_can_be_released_at_once(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online = rig_online(r, ONLINE_PID, 1);
	struct fake_process *a = rig_offline(r, 300, 1), *b = rig_offline(r, 301, 1);

	rig_run(r, 2 * S);
	fake_set_work(online, true);
	rig_run(r, 20 * MS);
	assert_int_equal(scheduler_release(r->s, 0), 2);
	rig_turn(r);
	assert_false(fake_is_held(a));
	assert_false(fake_is_held(b));
	rig_end(r);
}

static void policies_change_while_jobs_are_held(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;

	rig_held(r, &online, &offline);
	scheduler_set_policy(r->s, &gpol_none);
	assert_ptr_equal(scheduler_policy(r->s), &gpol_none);
	rig_run(r, 5 * MS);
	assert_false(fake_is_held(offline));
	scheduler_set_policy(r->s, &gpol_share);
	rig_run(r, S);
	scheduler_set_policy(r->s, &gpol_priority);
	rig_run(r, 20 * MS);
	assert_true(fake_is_held(offline));
	assert_int_equal(offline->attaches, 1);
	rig_end(r);
}

static void a_reload_keeps_holds_and_judges_anew(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;
	struct config other;

	rig_held(r, &online, &offline);
	other = r->config;
	other.engine.interval_ns = 2 * MS;
	scheduler_configure(r->s, &other);
	rig_run(r, 50 * MS);
	assert_true(fake_is_held(offline));
	assert_int_equal(offline->resumes, 0);
	other.rules.n = 0; /* nobody is online any more */
	online->online = false;
	scheduler_configure(r->s, &other);
	rig_run(r, 50 * MS);
	assert_false(fake_is_held(offline));
	assert_int_equal(class_of(r, ONLINE_PID), GPREEMPT_CLASS_OFFLINE);
	rig_end(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_by_pid_classes_its_process),
		cmocka_unit_test(a_request_by_pid_holds_for_descendants_to_come),
		cmocka_unit_test(a_request_by_pid_dies_with_its_pid_but_not_for_those_it_classed),
		cmocka_unit_test(requests_match_names_cgroups_and_containers),
		cmocka_unit_test(the_last_request_counts),
		cmocka_unit_test(a_hold_of_a_job_taken_out_of_its_class_is_told_of),
		cmocka_unit_test(a_user_may_lower_only_their_own),
		cmocka_unit_test(a_user_may_not_raise),
		cmocka_unit_test(a_user_is_heard_of_what_nobody_said_anything_of),
		cmocka_unit_test(a_user_does_not_undo_what_root_said),
		cmocka_unit_test(a_later_word_of_root_counts_for_more_than_a_users),
		cmocka_unit_test(a_user_cannot_fill_the_list_of_requests),
		cmocka_unit_test(many_users_leave_room_for_root),
		cmocka_unit_test(nobody_is_raised_by_a_cgroup_they_named),
		cmocka_unit_test(nobody_is_raised_by_a_name_they_took_later),
		cmocka_unit_test(the_same_request_again_takes_no_more_room),
		cmocka_unit_test(a_pattern_no_longer_fits_after_a_change_of_name),
		cmocka_unit_test(a_hint_holds_at_once),
		cmocka_unit_test(a_hint_without_work_expires),
		cmocka_unit_test(hints_of_others_than_online_jobs_are_refused),
		cmocka_unit_test(a_hint_of_work_to_come_holds_just_before_it),
		cmocka_unit_test(a_word_in_a_page_is_a_hint),
		cmocka_unit_test(garbage_in_a_page_is_no_hint),
		cmocka_unit_test(a_page_cannot_be_cut_short),
		cmocka_unit_test(a_pause_lets_go_of_everything),
		cmocka_unit_test(continuing_begins_anew),
		cmocka_unit_test(without_a_backend_everything_waits),
		cmocka_unit_test(a_released_job_is_left_alone_for_a_minute),
		cmocka_unit_test(everybody_can_be_released_at_once),
		cmocka_unit_test(policies_change_while_jobs_are_held),
		cmocka_unit_test(a_reload_keeps_holds_and_judges_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
