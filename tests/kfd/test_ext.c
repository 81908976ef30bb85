/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "gpu/kfd/release.h"
#include "tests/kfd/fake_ext.h"
#include "util/macros.h"

#define JOB 4711
#define OTHER 4712
#define NOBODY 0x7ffffff0 /* a pid there cannot be */
#define ALL KFD_GPREEMPT_ALL_QUEUES

struct rig {
	struct fake_ext *fake;
	struct gkfd *k;
	struct gkfd_failure fail;
};

static int setup(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	r->fake = fake_ext_new();
	r->k = fake_ext_gkfd(r->fake);
	fake_ext_add(r->fake, JOB, 3);
	fake_ext_add(r->fake, OTHER, 2);
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	_cleanup_free_ struct rig *r = *state;
	unsigned int sins = fake_ext_counts(r->fake).sins;

	gkfd_free(r->k);
	assert_int_equal(sins, 0);
	return 0;
}

static void a_driver_without_the_extension_says_so(void **state)
{
	struct rig *r = *state;
	struct kfd_gpreempt_version v;
	struct kfd_gpreempt_queue *queues;

	fake_ext_open_with(r->fake, -ENODEV);
	assert_int_equal(gkfd_ext_open(r->k, &v), -ENODEV);
	assert_int_equal(gkfd_ext_bind(r->k, JOB), -ENODEV);
	assert_int_equal(gkfd_ext_queues(r->k, JOB, 0, &queues), -ENODEV);
	fake_ext_open_with(r->fake, -EPERM);
	assert_int_equal(gkfd_ext_open(r->k, &v), -EACCES);
	fake_ext_open_with(r->fake, 0);
	fake_ext_set_version(r->fake, KFD_GPREEMPT_VERSION + 1);
	assert_int_equal(gkfd_ext_open(r->k, &v), -EPROTO);
}

static void an_administrator_binds_nobody(void **state)
{
	struct rig *r = *state;

	assert_int_equal(gkfd_ext_bind(r->k, JOB), 0);
	assert_int_equal(fake_ext_counts(r->fake).binds, 0);
}

static void anybody_else_shows_a_descriptor_of_the_process_itself(void **state)
{
	struct rig *r = *state;
	struct kfd_gpreempt_queue *queues = NULL;

	fake_ext_set_admin(r->fake, false);
	fake_ext_inherit(r->fake, JOB, OTHER);
	assert_int_equal(gkfd_ext_queues(r->k, JOB, 0, &queues), -EPERM);
	assert_int_equal(gkfd_ext_bind(r->k, JOB), 0);
	assert_int_equal(fake_ext_counts(r->fake).binds, 2); /* the first was the parent's */
	assert_int_equal(gkfd_ext_queues(r->k, JOB, 0, &queues), 3);
	free(queues);
	fake_ext_forbid(r->fake, OTHER);
	assert_int_equal(gkfd_ext_bind(r->k, OTHER), -EPERM);
	fake_ext_exec(r->fake, JOB);
	assert_int_equal(gkfd_ext_bind(r->k, JOB), -ESRCH);
}

static void a_descriptor_of_a_parent_that_ended_is_passed_over(void **state)
{
	struct rig *r = *state;

	fake_ext_set_admin(r->fake, false);
	fake_ext_inherit(r->fake, JOB, OTHER);
	fake_ext_exit(r->fake, OTHER);
	assert_int_equal(gkfd_ext_bind(r->k, JOB), 0);
}

static void one_call_unmaps_and_maps_what_it_names(void **state)
{
	struct rig *r = *state;
	struct kfd_gpreempt_batch b = { .grace = 1, .hold_ms = 1000 };
	struct kfd_gpreempt_entry e[] = {
		gkfd_ext_entry(JOB, FAKE_START_TICKS, 2),
		gkfd_ext_entry(OTHER, 0, ALL),
	};

	assert_int_equal(gkfd_ext_batch(r->k, e, 2, 0, &b), 2);
	assert_int_equal(fake_ext_held(r->fake, JOB), 1);
	assert_int_equal(fake_ext_held(r->fake, OTHER), 2);
	e[0] = gkfd_ext_entry(JOB, FAKE_START_TICKS, 3);
	assert_int_equal(gkfd_ext_batch(r->k, e, 1, 1, &b), 2);
	assert_int_equal(fake_ext_held(r->fake, JOB), 2);
	assert_int_equal(fake_ext_held(r->fake, OTHER), 0);
	assert_int_equal(gkfd_ext_batch(r->k, e, 0, 1, &b), 1);
	assert_int_equal(fake_ext_held(r->fake, JOB), 1);
	assert_int_equal(fake_ext_counts(r->fake).unmaps, 1);
	assert_int_equal(fake_ext_counts(r->fake).switches, 1);
	assert_int_equal(fake_ext_counts(r->fake).maps, 1);
}

static void all_queues_are_told_however_many_there_are(void **state)
{
	struct rig *r = *state;
	struct kfd_gpreempt_queue *queues = NULL;

	fake_ext_add(r->fake, 99, 50);
	assert_int_equal(gkfd_ext_queues(r->k, 99, FAKE_START_TICKS, &queues), 50);
	for (uint32_t i = 0; i < 50; i++)
		assert_int_equal(queues[i].queue_id, 50 - i);
	free(queues);
	assert_int_equal(gkfd_ext_queues(r->k, 99, FAKE_START_TICKS + 1, &queues), -ESRCH);
}

struct meaning {
	int result, error;
	enum gkfd_why why;
	enum gpu_why_kind kind;
};

static void every_result_has_a_meaning_and_a_line(void **state)
{
	static const struct meaning meanings[] = {
		{ -ESRCH, -ESRCH, GKFD_WHY_NO_KFD_PROCESS, GPU_WHY_ABSENT },
		{ -EPERM, -EPERM, GKFD_WHY_NO_RIGHT, GPU_WHY_REFUSED },
		{ -ENOENT, -EINVAL, GKFD_WHY_NO_SUCH_QUEUE, GPU_WHY_ABSENT },
		{ -EBUSY, -EBUSY, GKFD_WHY_HELD, GPU_WHY_REFUSED },
		{ -EALREADY, -EAGAIN, GKFD_WHY_LAPSED, GPU_WHY_FAILED },
		{ -EIO, -EIO, GKFD_WHY_PREEMPTION_FAILED, GPU_WHY_FAILED },
		{ -ETIME, -EIO, GKFD_WHY_PREEMPTION_FAILED, GPU_WHY_FAILED },
		{ -ECANCELED, -ECANCELED, GKFD_WHY_SYSTEM, GPU_WHY_FAILED },
	};
	struct rig *r = *state;
	struct kfd_gpreempt_entry e = gkfd_ext_entry(JOB, FAKE_START_TICKS, ALL);
	struct gpu_why text;

	assert_int_equal(gkfd_ext_explain(r->k, &e, 0, &r->fail), 0);
	for (size_t i = 0; i < ARRAY_SIZE(meanings); i++) {
		const struct meaning *m = &meanings[i];

		assert_int_equal(gkfd_ext_explain(r->k, &e, m->result, &r->fail), m->error);
		assert_int_equal(r->fail.why, m->why);
		gkfd_failure_describe(r->k, m->error, JOB, &r->fail, &text);
		assert_int_equal(text.kind, m->kind);
		assert_true(text.message[0]);
	}
	fake_ext_exit(r->fake, JOB);
	assert_int_equal(gkfd_ext_explain(r->k, &e, -ESRCH, &r->fail), -ESRCH);
	assert_int_equal(r->fail.why, GKFD_WHY_EXITED);
}

static void who_holds_a_process_is_told(void **state)
{
	struct rig *r = *state;
	struct kfd_gpreempt_entry e = gkfd_ext_entry(JOB, FAKE_START_TICKS, 1);
	struct kfd_gpreempt_batch b = { .grace = 1, .hold_ms = 1000 };
	pid_t holder = 0;

	assert_int_equal(gkfd_ext_holder(r->k, JOB, 0, &holder), 0);
	assert_int_equal(gkfd_ext_batch(r->k, &e, 1, 0, &b), 1);
	assert_int_equal(gkfd_ext_holder(r->k, JOB, 0, &holder), 0); /* ourselves */
	fake_ext_hold_by(r->fake, OTHER, NOBODY);
	assert_int_equal(gkfd_ext_holder(r->k, OTHER, 0, &holder), 1);
	assert_int_equal(holder, NOBODY);
	e = gkfd_ext_entry(OTHER, 0, ALL);
	gkfd_ext_explain(r->k, &e, -EBUSY, &r->fail);
	assert_int_equal(r->fail.other_pid, NOBODY);
}

/* A holder that ends when asked, as they all do; its hold ends with it. */
static pid_t start_holder(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		pause();
		_exit(0);
	}
	return pid;
}

static void release_ends_whoever_holds_it(void **state)
{
	struct rig *r = *state;
	pid_t holder = start_holder();
	int status;

	assert_int_equal(gkfd_ext_release(r->k, JOB, &r->fail), 0);
	fake_ext_hold_by(r->fake, JOB, holder);
	assert_int_equal(gkfd_ext_release(r->k, JOB, &r->fail), 1);
	assert_int_equal(fake_ext_held(r->fake, JOB), 0);
	assert_int_equal(waitpid(holder, &status, 0), holder);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

static void a_software_gpu_cannot_have_just_any_process_ended(void **state)
{
	struct rig *r = *state;
	pid_t victim = start_holder();

	fake_ext_set_modelled(r->fake);
	fake_ext_hold_by(r->fake, JOB, victim);
	assert_int_equal(gkfd_ext_release(r->k, JOB, &r->fail), -EBUSY);
	assert_int_equal(waitpid(victim, NULL, WNOHANG), 0);
	assert_int_equal(kill(victim, SIGKILL), 0);
	assert_int_equal(waitpid(victim, NULL, 0), victim);
}

static void release_of_what_cannot_be_seen_is_refused_truthfully(void **state)
{
	struct rig *r = *state;

	fake_ext_hold_by(r->fake, JOB, 0);
	assert_int_equal(gkfd_ext_release(r->k, JOB, &r->fail), -EBUSY);
	assert_int_equal(r->fail.why, GKFD_WHY_HELD);
	fake_ext_hold_by(r->fake, JOB, getpid());
	assert_int_equal(gkfd_ext_release(r->k, JOB, &r->fail), -EALREADY);
	fake_ext_set_admin(r->fake, false);
	fake_ext_forbid(r->fake, JOB);
	assert_int_equal(gkfd_ext_release(r->k, JOB, &r->fail), -EPERM);
	fake_ext_open_with(r->fake, -ENODEV);
	assert_int_equal(gkfd_ext_release(r->k, JOB, &r->fail), 0);
}

#define EXT_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		EXT_TEST(a_driver_without_the_extension_says_so),
		EXT_TEST(an_administrator_binds_nobody),
		EXT_TEST(anybody_else_shows_a_descriptor_of_the_process_itself),
		EXT_TEST(a_descriptor_of_a_parent_that_ended_is_passed_over),
		EXT_TEST(one_call_unmaps_and_maps_what_it_names),
		EXT_TEST(all_queues_are_told_however_many_there_are),
		EXT_TEST(every_result_has_a_meaning_and_a_line),
		EXT_TEST(who_holds_a_process_is_told),
		EXT_TEST(release_ends_whoever_holds_it),
		EXT_TEST(a_software_gpu_cannot_have_just_any_process_ended),
		EXT_TEST(release_of_what_cannot_be_seen_is_refused_truthfully),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
