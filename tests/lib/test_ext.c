/* SPDX-License-Identifier: MIT */
/* Level K3 on a played driver with the extension. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/kfd/driver.h"
#include "lib/internal.h"
#include "tests/kfd/counts.h"
#include "tests/kfd/fake_ext.h"

#define JOB 4711
#define OTHER 4712
#define QUEUES 3u
#define NOBODY 0x7ffffff0 /* a pid there cannot be */

struct rig {
	struct fake_ext *fake;
	struct gpreempt_ctx *ctx;
	size_t fds; /* open before the test */
	unsigned int sins; /* that are expected */
};

static int setup(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	r->fds = count_fds();
	r->fake = fake_ext_new();
	fake_ext_add(r->fake, JOB, QUEUES);
	fake_ext_add(r->fake, OTHER, QUEUES);
	r->ctx = ctx_new();
	assert_non_null(r->ctx);
	assert_int_equal(ctx_take(r->ctx, &gkfd_driver, fake_ext_gkfd(r->fake)), 0);
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	_cleanup_free_ struct rig *r = *state;
	unsigned int sins = fake_ext_counts(r->fake).sins;

	gpreempt_unref(r->ctx);
	assert_int_equal(sins, r->sins);
	assert_int_equal(count_fds(), r->fds);
	return 0;
}

static struct gpreempt_process *attach(struct rig *r, pid_t pid)
{
	struct gpreempt_process *p = NULL;

	assert_int_equal(gpreempt_attach(r->ctx, pid, 0, &p), 0);
	return p;
}

static void refused(struct rig *r, int result, int error, enum gpreempt_error_kind kind)
{
	assert_int_equal(result, error);
	assert_int_equal(r->ctx->last.kind, kind);
	assert_true(r->ctx->last.message[0]);
}

static void wait_ms(struct rig *r, unsigned int ms)
{
	assert_int_equal(gpreempt_wait(r->ctx, NULL, 0, ms * NSEC_PER_MSEC), 0);
}

/* It is over by itself, which is told. */
static void wait_over(struct gpreempt_process *p)
{
	struct pollfd fd = { .fd = gpreempt_process_fd(p), .events = POLLIN };

	assert_int_equal(poll(&fd, 1, 20000), 1);
}

static void a_batch_of_ten_processes_is_one_call(void **state)
{
	struct gpreempt_process *procs[10];
	struct rig *r = *state;

	for (int i = 0; i < 10; i++) {
		fake_ext_add(r->fake, 100 + i, QUEUES);
		procs[i] = attach(r, 100 + i);
	}
	assert_int_equal(gpreempt_batch_unmap_queues(procs, 10, NULL), 0);
	assert_int_equal(fake_ext_counts(r->fake).unmaps, 1);
	assert_int_equal(fake_ext_last(r->fake).n_unmap, 10);
	for (int i = 0; i < 10; i++)
		assert_int_equal(fake_ext_held(r->fake, 100 + i), QUEUES);
	assert_int_equal(gpreempt_fast_remap_queues(procs, 10), 0);
	assert_int_equal(fake_ext_counts(r->fake).maps, 1);
	for (int i = 0; i < 10; i++)
		assert_int_equal(fake_ext_held(r->fake, 100 + i), 0);
}

static void a_batch_is_held_as_a_whole_or_not_at_all(void **state)
{
	struct rig *r = *state;
	struct gpreempt_process *procs[] = { attach(r, JOB), attach(r, OTHER) };

	fake_ext_hold_by(r->fake, OTHER, NOBODY);
	refused(r, gpreempt_batch_unmap_queues(procs, 2, NULL), -EBUSY, GPREEMPT_ERROR_REFUSED);
	assert_non_null(strstr(r->ctx->last.message, "held by process 2147483632"));
	assert_non_null(strstr(r->ctx->last.hint, "release 4712"));
	assert_int_equal(fake_ext_held(r->fake, JOB), 0);
	assert_int_equal(gpreempt_held_queues(procs[0], NULL, 0), 0);
}

static void a_batch_that_makes_no_sense_touches_nobody(void **state)
{
	struct rig *r = *state;
	struct gpreempt_process *job = attach(r, JOB), *other = attach(r, OTHER);
	struct gpreempt_process *twice[] = { job, job }, *held[] = { other, job };

	refused(r, gpreempt_batch_unmap_queues(twice, 2, NULL), -EINVAL, GPREEMPT_ERROR_USAGE);
	assert_int_equal(fake_ext_held(r->fake, JOB), 0);
	assert_int_equal(gpreempt_suspend_queues(job, NULL, 0, NULL, NULL), 0);
	assert_int_equal(gpreempt_resume_queues(job, NULL), 0);
	assert_int_equal(fake_ext_held(r->fake, JOB), 0);
	assert_int_equal(gpreempt_suspend_queues(job, NULL, 0, NULL, NULL), 0);
	assert_int_equal(fake_ext_counts(r->fake).unmaps, 3);
	refused(r, gpreempt_batch_unmap_queues(held, 2, NULL), -EALREADY, GPREEMPT_ERROR_USAGE);
	assert_int_equal(fake_ext_counts(r->fake).unmaps, 3);
	assert_int_equal(gpreempt_fast_remap_queues(twice, 2), 0);
	assert_int_equal(fake_ext_held(r->fake, JOB), 0);
}

static void what_the_driver_measured_is_told(void **state)
{
	struct gpreempt_timing t = { .size = sizeof(t) };
	struct rig *r = *state;
	struct gpreempt_process *p = attach(r, JOB);

	assert_int_equal(gpreempt_suspend_queues(p, NULL, 0, NULL, &t), 0);
	assert_int_equal(t.call_ns, 1000);
	assert_int_equal(t.queues, QUEUES);
	assert_false(t.has_saved);
	assert_int_equal(fake_ext_last(r->fake).grace, 1);
	assert_int_equal(gpreempt_resume_queues(p, &t), 0);
	assert_int_equal(t.queues, QUEUES);
	assert_int_equal(gpreempt_resume_queues(p, &t), 0);
	assert_int_equal(t.queues, 0);
	assert_int_equal(fake_ext_counts(r->fake).maps, 1);
}

static void a_hold_is_short_and_renewed_as_long_as_it_is_wanted(void **state)
{
	struct rig *r = *state;
	struct gpreempt_process *p = attach(r, JOB);
	unsigned int looks = fake_ext_counts(r->fake).looks;

	assert_int_equal(gpreempt_suspend_queues(p, NULL, 0, NULL, NULL), 0);
	assert_in_range(fake_ext_last(r->fake).hold_ms, 1, 1500);
	while (fake_ext_counts(r->fake).unmaps < 6) {
		wait_ms(r, 10);
		assert_int_equal(fake_ext_held(r->fake, JOB), QUEUES);
	}
	assert_int_equal(fake_ext_counts(r->fake).looks, looks);
	assert_int_equal(gpreempt_process_check(p), 0);
	assert_int_equal(gpreempt_resume_queues(p, NULL), 0);
	assert_int_equal(fake_ext_held(r->fake, JOB), 0);
}

static void new_queues_of_a_held_process_are_held_too(void **state)
{
	struct rig *r = *state;
	struct gpreempt_process *p = attach(r, JOB);
	uint32_t ids[8];

	assert_int_equal(gpreempt_suspend_queues(p, NULL, 0, NULL, NULL), 0);
	fake_ext_create(r->fake, JOB, 9);
	assert_int_equal(fake_ext_held(r->fake, JOB), QUEUES + 1);
	assert_int_equal(gpreempt_held_queues(p, ids, 8), QUEUES + 1);
	assert_int_equal(ids[0], 1);
	assert_int_equal(ids[QUEUES], 9);
	gpreempt_detach(p);
	assert_int_equal(fake_ext_held(r->fake, JOB), 0);
}

static void a_hold_ends_when_its_time_is_over(void **state)
{
	const struct gpreempt_suspend_options o = { .size = sizeof(o),
						    .longest_ns = 50 * NSEC_PER_MSEC };
	struct rig *r = *state;
	struct gpreempt_process *p = attach(r, JOB);

	assert_int_equal(gpreempt_suspend_queues(p, NULL, 0, &o, NULL), 0);
	assert_in_range(fake_ext_last(r->fake).hold_ms, 1, 50);
	wait_ms(r, 60);
	assert_int_equal(fake_ext_held(r->fake, JOB), 0);
	assert_int_equal(gpreempt_held_queues(p, NULL, 0), 0);
	assert_int_equal(gpreempt_process_check(p), 0);
	assert_int_equal(gpreempt_suspend_queues(p, NULL, 0, &o, NULL), 0);
}

static void who_stood_still_has_lost_its_hold_and_is_told(void **state)
{
	struct rig *r = *state;
	struct gpreempt_process *p = attach(r, JOB);

	assert_int_equal(gpreempt_suspend_queues(p, NULL, 0, NULL, NULL), 0);
	fake_ext_sleep(r->fake, 5 * NSEC_PER_SEC);
	wait_over(p);
	refused(r, gpreempt_process_check(p), -EAGAIN, GPREEMPT_ERROR_FAILED);
	assert_int_equal(fake_ext_held(r->fake, JOB), 0);
	assert_int_equal(gpreempt_held_queues(p, NULL, 0), 0);
	refused(r, gpreempt_suspend_queues(p, NULL, 0, NULL, NULL), -EAGAIN, GPREEMPT_ERROR_FAILED);
}

static void who_breaks_its_promise_loses_its_hold(void **state)
{
	struct rig *r = *state;
	struct gpreempt_process *p = attach(r, JOB);

	gpreempt_keepalive(r->ctx);
	assert_int_equal(gpreempt_suspend_queues(p, NULL, 0, NULL, NULL), 0);
	wait_ms(r, 1600);
	assert_int_equal(fake_ext_held(r->fake, JOB), QUEUES);
	wait_over(p);
	assert_int_equal(fake_ext_held(r->fake, JOB), 0);
	refused(r, gpreempt_process_check(p), -EAGAIN, GPREEMPT_ERROR_FAILED);
}

static void named_queues_are_held_and_no_others(void **state)
{
	const uint32_t ids[] = { 3, 1 }, twice[] = { 1, 1 }, unknown[] = { 1, 77 };
	struct rig *r = *state;
	struct gpreempt_process *p = attach(r, JOB);
	uint32_t held[4] = { 0 };

	refused(r, gpreempt_suspend_queues(p, twice, 2, NULL, NULL), -EINVAL, GPREEMPT_ERROR_USAGE);
	refused(r, gpreempt_suspend_queues(p, unknown, 2, NULL, NULL), -EINVAL,
		GPREEMPT_ERROR_ABSENT);
	refused(r, gpreempt_suspend_queues(p, ids, 1025, NULL, NULL), -EINVAL,
		GPREEMPT_ERROR_USAGE);
	assert_int_equal(fake_ext_held(r->fake, JOB), 0);
	assert_int_equal(gpreempt_suspend_queues(p, ids, 2, NULL, NULL), 0);
	refused(r, gpreempt_suspend_queues(p, ids, 2, NULL, NULL), -EALREADY, GPREEMPT_ERROR_USAGE);
	assert_int_equal(gpreempt_held_queues(p, held, 4), 2);
	assert_int_equal(held[0], 1);
	assert_int_equal(held[1], 3);
}

static void a_queue_that_got_the_id_of_a_held_one_is_not_held(void **state)
{
	const uint32_t ids[] = { 1, 2 };
	struct rig *r = *state;
	struct gpreempt_process *p = attach(r, JOB);
	unsigned int maps;

	assert_int_equal(gpreempt_suspend_queues(p, ids, 2, NULL, NULL), 0);
	fake_ext_destroy(r->fake, JOB, 1);
	fake_ext_create(r->fake, JOB, 1);
	maps = fake_ext_counts(r->fake).maps;
	while (fake_ext_counts(r->fake).maps == maps)
		wait_ms(r, 10);
	assert_int_equal(fake_ext_held(r->fake, JOB), 1);
	fake_ext_destroy(r->fake, JOB, 2);
	wait_ms(r, 1500);
	assert_int_equal(gpreempt_process_check(p), 0);
	assert_int_equal(fake_ext_held(r->fake, JOB), 0);
	assert_int_equal(gpreempt_resume_queues(p, NULL), 0);
}

static void the_end_of_a_process_is_told(void **state)
{
	struct rig *r = *state;
	struct gpreempt_process *p = attach(r, JOB), *other = attach(r, OTHER);

	assert_int_equal(gpreempt_suspend_queues(p, NULL, 0, NULL, NULL), 0);
	assert_int_equal(gpreempt_suspend_queues(other, NULL, 0, NULL, NULL), 0);
	fake_ext_exit(r->fake, JOB);
	wait_over(p);
	refused(r, gpreempt_process_check(p), -ESRCH, GPREEMPT_ERROR_ABSENT);
	fake_ext_exec(r->fake, OTHER);
	wait_over(other);
	refused(r, gpreempt_process_check(other), -ESRCH, GPREEMPT_ERROR_ABSENT);
	assert_non_null(strstr(r->ctx->last.message, "another program"));
}

static void the_dead_do_not_keep_the_living_held(void **state)
{
	struct rig *r = *state;
	struct gpreempt_process *procs[] = { attach(r, JOB), attach(r, OTHER) };

	assert_int_equal(gpreempt_batch_unmap_queues(procs, 2, NULL), 0);
	fake_ext_exit(r->fake, JOB);
	refused(r, gpreempt_fast_remap_queues(procs, 2), -ESRCH, GPREEMPT_ERROR_ABSENT);
	assert_int_equal(fake_ext_held(r->fake, OTHER), 0);
}

static void what_cannot_be_attached_is_said(void **state)
{
	struct rig *r = *state;
	struct gpreempt_process *p;

	refused(r, gpreempt_attach(r->ctx, NOBODY, 0, &p), -ESRCH, GPREEMPT_ERROR_ABSENT);
	fake_ext_exec(r->fake, OTHER);
	refused(r, gpreempt_attach(r->ctx, OTHER, 0, &p), -ESRCH, GPREEMPT_ERROR_ABSENT);
	assert_non_null(strstr(r->ctx->last.message, "does not use the GPU driver"));
	fake_ext_set_admin(r->fake, false);
	gpreempt_detach(attach(r, JOB));
	assert_int_equal(fake_ext_counts(r->fake).binds, 1);
	fake_ext_add(r->fake, 99, 1);
	fake_ext_forbid(r->fake, 99);
	refused(r, gpreempt_attach(r->ctx, 99, 0, &p), -EPERM, GPREEMPT_ERROR_REFUSED);
}

static void every_failure_of_a_hold_is_said_and_leaves_nothing_held(void **state)
{
	static const struct {
		int result, error;
		enum gpreempt_error_kind kind;
	} cases[] = {
		{ -ESRCH, -ESRCH, GPREEMPT_ERROR_ABSENT },
		{ -EPERM, -EPERM, GPREEMPT_ERROR_REFUSED },
		{ -ENOENT, -EINVAL, GPREEMPT_ERROR_ABSENT },
		{ -EBUSY, -EBUSY, GPREEMPT_ERROR_REFUSED },
		{ -EIO, -EIO, GPREEMPT_ERROR_FAILED },
		{ -ETIME, -EIO, GPREEMPT_ERROR_FAILED },
		{ -ECANCELED, -ECANCELED, GPREEMPT_ERROR_FAILED },
	};
	struct rig *r = *state;
	struct gpreempt_process *p;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		p = attach(r, JOB); /* of a process that is gone the attachment is over */
		fake_ext_fail(r->fake, JOB, cases[i].result);
		refused(r, gpreempt_suspend_queues(p, NULL, 0, NULL, NULL), cases[i].error,
			cases[i].kind);
		assert_int_equal(gpreempt_held_queues(p, NULL, 0), 0);
		gpreempt_detach(p);
		fake_ext_fail(r->fake, JOB, 0);
	}
	p = attach(r, JOB);
	fake_ext_fail_calls(r->fake, -ENOMEM);
	refused(r, gpreempt_suspend_queues(p, NULL, 0, NULL, NULL), -ENOMEM, GPREEMPT_ERROR_FAILED);
}

static void a_preemption_that_fails_later_ends_the_hold(void **state)
{
	struct rig *r = *state;
	struct gpreempt_process *p = attach(r, JOB);

	assert_int_equal(gpreempt_suspend_queues(p, NULL, 0, NULL, NULL), 0);
	fake_ext_fail(r->fake, JOB, -EIO);
	wait_over(p);
	refused(r, gpreempt_process_check(p), -EIO, GPREEMPT_ERROR_FAILED);
}

static void a_snapshot_tells_what_the_driver_knows(void **state)
{
	struct gpreempt_queue q[4] = { { .size = sizeof(q[0]) } };
	struct rig *r = *state;
	struct gpreempt_process *p = attach(r, JOB);
	const uint32_t one = 2;

	assert_int_equal(gpreempt_suspend_queues(p, &one, 1, NULL, NULL), 0);
	assert_int_equal(gpreempt_snapshot(p, q, 4, NULL), QUEUES);
	assert_int_equal(q[0].queue_id, 3);
	assert_int_equal(q[0].ring_base, 0x3000);
	assert_int_equal(q[0].priority, 2);
	assert_int_equal(q[0].job_class, GPREEMPT_CLASS_OFFLINE);
	assert_false(q[0].valid & (GPREEMPT_QUEUE_STATE | GPREEMPT_QUEUE_EXCEPTIONS));
	assert_string_equal(q[1].state, "suspended");
	fake_ext_exit(r->fake, JOB);
	refused(r, gpreempt_snapshot(p, q, 4, NULL), -ESRCH, GPREEMPT_ERROR_ABSENT);
}

static void the_level_is_told_and_why_not(void **state)
{
	struct gpreempt_level levels[4] = { { .size = sizeof(levels[0]) } };
	struct rig *r = *state;

	assert_int_equal(gpreempt_get_levels(r->ctx, levels, 4), 4);
	assert_string_equal(levels[0].level, "K3");
	assert_true(levels[0].available);
	fake_ext_open_with(r->fake, -EACCES);
	gpreempt_get_levels(r->ctx, levels, 4);
	assert_false(levels[0].available);
	assert_non_null(strstr(levels[0].reason, "sudo"));
	fake_ext_open_with(r->fake, -ENODEV);
	gpreempt_get_levels(r->ctx, levels, 4);
	assert_non_null(strstr(levels[0].reason, "not loaded"));
	fake_ext_open_with(r->fake, 0);
	fake_ext_set_version(r->fake, 9);
	gpreempt_get_levels(r->ctx, levels, 4);
	assert_false(levels[0].available);
	assert_non_null(strstr(levels[0].reason, "version"));
}

static void one_start_ends_a_stop_however_often_it_was_renewed(void **state)
{
	struct rig *r = *state;
	uint64_t left_ns;

	for (int i = 1; i < 4; i++) {
		assert_int_equal(gpreempt_stop_gpu(r->ctx, FAKE_GPU, i * NSEC_PER_SEC), 0);
		assert_int_equal(fake_ext_stops(r->fake, &left_ns), 1);
		assert_true(left_ns > (i - 1) * NSEC_PER_SEC && left_ns <= i * NSEC_PER_SEC);
	}
	assert_int_equal(gpreempt_start_gpu(r->ctx, FAKE_GPU), 0);
	assert_int_equal(fake_ext_stops(r->fake, &left_ns), 0);
	refused(r, gpreempt_start_gpu(r->ctx, FAKE_GPU), -EALREADY, GPREEMPT_ERROR_USAGE);
	assert_int_equal(gpreempt_stop_gpu(r->ctx, FAKE_GPU, UINT64_MAX), 0);
	fake_ext_stops(r->fake, &left_ns);
	assert_true(left_ns <= 60 * NSEC_PER_SEC);
}

static void a_stop_that_cannot_be_is_said(void **state)
{
	struct rig *r = *state;

	refused(r, gpreempt_stop_gpu(r->ctx, FAKE_GPU, 0), -EINVAL, GPREEMPT_ERROR_USAGE);
	refused(r, gpreempt_stop_gpu(r->ctx, 77, 1), -ENODEV, GPREEMPT_ERROR_ABSENT);
	fake_ext_set_admin(r->fake, false);
	refused(r, gpreempt_stop_gpu(r->ctx, FAKE_GPU, 1), -EPERM, GPREEMPT_ERROR_REFUSED);
	fake_ext_open_with(r->fake, -EACCES);
	refused(r, gpreempt_stop_gpu(r->ctx, FAKE_GPU, 1), -EACCES, GPREEMPT_ERROR_REFUSED);
	fake_ext_open_with(r->fake, -ENODEV);
	refused(r, gpreempt_stop_gpu(r->ctx, FAKE_GPU, 1), -EOPNOTSUPP, GPREEMPT_ERROR_REFUSED);
	refused(r, gpreempt_start_gpu(r->ctx, FAKE_GPU), -EOPNOTSUPP, GPREEMPT_ERROR_REFUSED);
}

static void what_the_scheduler_in_the_driver_holds_is_released(void **state)
{
	struct gkfd_failure failure = { 0 };
	struct rig *r = *state;

	assert_int_equal(gkfd_ext_release(r->ctx->k, JOB, &failure), 0);
	fake_ext_schedule_off(r->fake, JOB);
	assert_int_equal(gkfd_ext_is_scheduled_off(r->ctx->k, JOB, 0), 1);
	fake_ext_set_admin(r->fake, false);
	assert_int_equal(gkfd_ext_release(r->ctx->k, JOB, &failure), -EPERM);
	assert_int_equal(failure.why, GKFD_WHY_NO_RIGHT);
	fake_ext_set_admin(r->fake, true);
	assert_int_equal(gkfd_ext_release(r->ctx->k, JOB, &failure), 1);
	assert_int_equal(gkfd_ext_is_scheduled_off(r->ctx->k, JOB, 0), 0);
	assert_int_equal(gkfd_ext_release(r->ctx->k, JOB, &failure), 0);
}

/* The played driver lets nobody trace: that it was tried is what matters. */
static void without_the_extension_or_on_request_processes_are_traced(void **state)
{
	struct rig *r = *state;
	struct gpreempt_process *p;

	assert_true(gpreempt_attach(r->ctx, JOB, GPREEMPT_ATTACH_DEBUG, &p) < 0);
	assert_int_equal(fake_ext_counts(r->fake).sins, 1);
	fake_ext_open_with(r->fake, -ENODEV);
	assert_true(gpreempt_attach(r->ctx, JOB, 0, &p) < 0);
	assert_int_equal(fake_ext_counts(r->fake).sins, 2);
	r->sins = 2;
}

#define EXT_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		EXT_TEST(a_batch_of_ten_processes_is_one_call),
		EXT_TEST(a_batch_is_held_as_a_whole_or_not_at_all),
		EXT_TEST(a_batch_that_makes_no_sense_touches_nobody),
		EXT_TEST(what_the_driver_measured_is_told),
		EXT_TEST(a_hold_is_short_and_renewed_as_long_as_it_is_wanted),
		EXT_TEST(new_queues_of_a_held_process_are_held_too),
		EXT_TEST(a_hold_ends_when_its_time_is_over),
		EXT_TEST(who_stood_still_has_lost_its_hold_and_is_told),
		EXT_TEST(who_breaks_its_promise_loses_its_hold),
		EXT_TEST(named_queues_are_held_and_no_others),
		EXT_TEST(a_queue_that_got_the_id_of_a_held_one_is_not_held),
		EXT_TEST(the_end_of_a_process_is_told),
		EXT_TEST(the_dead_do_not_keep_the_living_held),
		EXT_TEST(what_cannot_be_attached_is_said),
		EXT_TEST(every_failure_of_a_hold_is_said_and_leaves_nothing_held),
		EXT_TEST(a_preemption_that_fails_later_ends_the_hold),
		EXT_TEST(a_snapshot_tells_what_the_driver_knows),
		EXT_TEST(the_level_is_told_and_why_not),
		EXT_TEST(one_start_ends_a_stop_however_often_it_was_renewed),
		EXT_TEST(a_stop_that_cannot_be_is_said),
		EXT_TEST(what_the_scheduler_in_the_driver_holds_is_released),
		EXT_TEST(without_the_extension_or_on_request_processes_are_traced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
