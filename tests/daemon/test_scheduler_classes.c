/* SPDX-License-Identifier: MIT */
/* How long what people asked processes to be counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/stat.h>

#include "tests/daemon/rig.h"

static enum gpreempt_class class_of(struct rig *r, pid_t pid)
{
	struct gpreempt_daemon_job job;

	assert_true(rig_job(r, pid, 1, &job));
	return job.job_class;
}

static struct class_request of_user(struct class_request request, uid_t uid)
{
	request.only_uid = uid;
	return request;
}

static struct class_request withdrawn(struct class_request request)
{
	request.said.flags = WIRE_CLASS_WITHDRAW;
	return request;
}

static void what_is_withdrawn_counts_no_more(void **state)
{
	struct rig *r = rig_new(8);
	struct class_request by_pid = rig_request(WIRE_BY_PID, 300, JOB_ONLINE);
	struct class_request by_cgroup = rig_request(WIRE_BY_CGROUP, 0, JOB_ONLINE);
	struct class_request none;

	snprintf(by_cgroup.said.pattern, sizeof(by_cgroup.said.pattern), "/job_7");
	rig_offline(r, 300, 1);
	snprintf(rig_offline(r, 301, 1)->cgroup, sizeof(((struct fake_process *)0)->cgroup),
		 "/job_7/step_0");
	rig_run(r, S);
	assert_int_equal(scheduler_class(r->s, &by_pid), 1);
	assert_int_equal(scheduler_class(r->s, &by_cgroup), 1);
	none = withdrawn(by_pid);
	assert_int_equal(scheduler_class(r->s, &none), 1);
	assert_int_equal(class_of(r, 300), GPREEMPT_CLASS_OFFLINE);
	assert_int_equal(class_of(r, 301), GPREEMPT_CLASS_ONLINE);
	assert_int_equal(scheduler_class(r->s, &none), 0); /* once is enough */
	none = withdrawn(by_cgroup);
	assert_int_equal(scheduler_class(r->s, &none), 1);
	assert_int_equal(class_of(r, 301), GPREEMPT_CLASS_OFFLINE);
	rig_run(r, 20 * S);
	assert_int_equal(class_of(r, 300), GPREEMPT_CLASS_OFFLINE);
	assert_int_equal(class_of(r, 301), GPREEMPT_CLASS_OFFLINE);
	rig_end(r);
}

static void a_user_withdraws_only_what_they_asked(void **state)
{
	struct rig *r = rig_new(8);
	struct class_request roots = rig_request(WIRE_BY_PID, 300, JOB_ONLINE);
	struct class_request theirs = of_user(rig_request(WIRE_BY_PID, 300, JOB_OFFLINE), USER);
	struct class_request none = withdrawn(theirs), others = of_user(none, USER + 1);

	rig_offline(r, 300, 1)->uid = USER;
	rig_run(r, S);
	assert_int_equal(scheduler_class(r->s, &roots), 1);
	assert_int_equal(scheduler_class(r->s, &none), 0);
	assert_int_equal(class_of(r, 300), GPREEMPT_CLASS_ONLINE);
	assert_int_equal(scheduler_class(r->s, &theirs), 1);
	assert_int_equal(class_of(r, 300), GPREEMPT_CLASS_OFFLINE);
	assert_int_equal(scheduler_class(r->s, &others), 0);
	assert_int_equal(class_of(r, 300), GPREEMPT_CLASS_OFFLINE);
	assert_int_equal(scheduler_class(r->s, &none), 1);
	assert_int_equal(class_of(r, 300), GPREEMPT_CLASS_ONLINE);
	rig_end(r);
}

static void make_folder(const struct rig *r, const char *name, bool there)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", r->cgroups, name);
	assert_int_equal(there ? mkdir(path, 0700) : rmdir(path), 0);
}

/* Two jobs of one number, months apart: what was asked of the first is not the second's. */
static void a_request_by_cgroup_ends_with_the_cgroup(void **state)
{
	struct rig *r = rig_new(8);
	struct class_request request = rig_request(WIRE_BY_CGROUP, 0, JOB_ONLINE);
	struct fake_process *p;

	snprintf(request.said.pattern, sizeof(request.said.pattern), "/job_7");
	assert_int_equal(scheduler_class(r->s, &request), 0);
	rig_run(r, 5 * S); /* as long as it was never there it is yet to come */
	make_folder(r, "freezer", true);
	make_folder(r, "freezer/job_7", true);
	rig_run(r, 2 * S);
	p = rig_offline(r, 300, 1);
	snprintf(p->cgroup, sizeof(p->cgroup), "/job_7/step_0");
	rig_run(r, 2 * S);
	assert_int_equal(class_of(r, 300), GPREEMPT_CLASS_ONLINE);
	fake_exit(&r->fake, 300);
	make_folder(r, "freezer/job_7", false);
	rig_run(r, 2 * S);
	make_folder(r, "freezer/job_7", true);
	p = rig_offline(r, 301, 1);
	snprintf(p->cgroup, sizeof(p->cgroup), "/job_7/step_0");
	rig_run(r, 2 * S);
	assert_int_equal(class_of(r, 301), GPREEMPT_CLASS_OFFLINE);
	make_folder(r, "freezer/job_7", false);
	make_folder(r, "freezer", false);
	rig_end(r);
}

/* Whoever is in it has been there: no matter when it was looked at last. */
static void a_cgroup_may_be_there_for_less_than_a_look(void **state)
{
	struct rig *r = rig_new(8);
	struct class_request request = rig_request(WIRE_BY_CGROUP, 0, JOB_ONLINE);
	struct fake_process *p;

	r->config.scan_ns = 10 * MS;
	snprintf(request.said.pattern, sizeof(request.said.pattern), "/job_7");
	assert_int_equal(scheduler_class(r->s, &request), 0);
	rig_run(r, S + 20 * MS);
	make_folder(r, "job_7", true);
	p = rig_offline(r, 300, 1);
	snprintf(p->cgroup, sizeof(p->cgroup), "/job_7");
	rig_run(r, 50 * MS);
	assert_int_equal(class_of(r, 300), GPREEMPT_CLASS_ONLINE);
	fake_exit(&r->fake, 300);
	make_folder(r, "job_7", false);
	rig_run(r, 2 * S);
	p = rig_offline(r, 301, 1);
	snprintf(p->cgroup, sizeof(p->cgroup), "/job_7");
	rig_run(r, S);
	assert_int_equal(class_of(r, 301), GPREEMPT_CLASS_OFFLINE);
	rig_end(r);
}

static void a_request_by_a_pattern_stays(void **state)
{
	struct rig *r = rig_new(8);
	struct class_request request = rig_request(WIRE_BY_CGROUP, 0, JOB_ONLINE);
	struct fake_process *p;

	snprintf(request.said.pattern, sizeof(request.said.pattern), "/job_*");
	assert_int_equal(scheduler_class(r->s, &request), 0);
	make_folder(r, "job_7", true);
	rig_run(r, 2 * S);
	make_folder(r, "job_7", false);
	rig_run(r, 2 * S);
	p = rig_offline(r, 300, 1);
	snprintf(p->cgroup, sizeof(p->cgroup), "/job_8");
	rig_run(r, 2 * S);
	assert_int_equal(class_of(r, 300), GPREEMPT_CLASS_ONLINE);
	rig_end(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_withdrawn_counts_no_more),
		cmocka_unit_test(a_user_withdraws_only_what_they_asked),
		cmocka_unit_test(a_request_by_cgroup_ends_with_the_cgroup),
		cmocka_unit_test(a_cgroup_may_be_there_for_less_than_a_look),
		cmocka_unit_test(a_request_by_a_pattern_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
