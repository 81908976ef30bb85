/* SPDX-License-Identifier: MIT */
/* The library on NVIDIA's driver, as far as that can be played: one process, and what is held. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/nvrm/process.h"
#include "lib/internal.h"
#include "tests/lib/nvrm_rig.h"

#define TEST(f) cmocka_unit_test_setup_teardown(f, lib_rig_setup, lib_rig_teardown)

static void a_context_is_shown_as_its_channel_groups(void **state)
{
	struct lib_rig *r = *state;
	struct gpreempt_queue queues[8] = { { .size = sizeof(queues[0]) } };
	struct gpreempt_process *p = lib_rig_attach(r, JOB, GPREEMPT_ATTACH_LOOK_ONLY);
	int compute = 0;

	assert_int_equal(gpreempt_snapshot(p, queues, 8, NULL), 4);
	for (int i = 0; i < 4; i++) {
		const uint64_t known = GPREEMPT_QUEUE_CHANNELS | GPREEMPT_QUEUE_SLICE;

		assert_int_equal(queues[i].valid, known);
		assert_int_equal(queues[i].pid, JOB);
		assert_int_equal(queues[i].gpu_id, FAKE_GPU);
		if (queues[i].type != GPREEMPT_QUEUE_GROUP_COMPUTE)
			continue;
		compute++;
		assert_int_equal(queues[i].queue_id, COMPUTE);
		assert_int_equal(queues[i].channels, FAKE_CONNECTIONS);
		assert_int_equal(queues[i].slice_us, NVRM_CUDA_SLICE_US);
	}
	assert_int_equal(compute, 1);
	assert_string_equal(gpreempt_queue_type_name(GPREEMPT_QUEUE_GROUP_COPY), "group-copy");
	assert_int_equal(gpreempt_suspend_queues(p, NULL, 0, NULL, NULL), -EPERM);
	assert_int_equal(gpreempt_guard_fd(r->ctx), -1);
	gpreempt_detach(p);
}

static void a_hold_takes_all_groups_and_a_resumption_gives_them_back(void **state)
{
	struct lib_rig *r = *state;
	struct gpreempt_timing timing = { .size = sizeof(timing) };
	struct gpreempt_queue queues[8] = { { .size = sizeof(queues[0]) } };
	struct gpreempt_process *p = lib_rig_attach(r, JOB, 0);
	uint32_t held[8];

	assert_int_equal(gpreempt_suspend_queues(p, NULL, 0, NULL, &timing), 0);
	assert_int_equal(timing.queues, 4);
	assert_true(timing.call_ns > 0);
	assert_false(timing.has_saved);
	assert_true(fake_rm_group_off(r->fake, r->job, COMPUTE_GROUP));
	assert_int_equal(gpreempt_held_queues(p, held, 8), 4);
	assert_int_equal(held[0], COMPUTE);
	assert_int_equal(gpreempt_snapshot(p, queues, 8, NULL), 4);
	assert_string_equal(queues[3].state, "suspended");
	assert_int_equal(gpreempt_suspend_queues(p, NULL, 0, NULL, NULL), -EALREADY);
	assert_int_equal(gpreempt_resume_queues(p, &timing), 0);
	assert_int_equal(timing.queues, 4);
	assert_int_equal(fake_rm_disabled(r->fake, -1), 0);
	assert_int_equal(gpreempt_held_queues(p, NULL, 0), 0);
	assert_int_equal(gpreempt_resume_queues(p, &timing), 0);
	assert_int_equal(timing.queues, 0);
	gpreempt_detach(p);
}

static void single_groups_can_be_held(void **state)
{
	struct lib_rig *r = *state;
	struct gpreempt_process *p = lib_rig_attach(r, JOB, 0);
	const uint32_t ids[] = { COMPUTE }, twice[] = { COMPUTE, COMPUTE }, unknown[] = { 1 };
	struct gpreempt_timing timing = { .size = sizeof(timing) };

	assert_int_equal(gpreempt_suspend_queues(p, unknown, 1, NULL, NULL), -EINVAL);
	assert_int_equal(lib_rig_kind(r), GPREEMPT_ERROR_ABSENT);
	assert_int_equal(gpreempt_suspend_queues(p, twice, 2, NULL, NULL), -EINVAL);
	assert_int_equal(lib_rig_kind(r), GPREEMPT_ERROR_USAGE);
	assert_int_equal(fake_rm_disabled(r->fake, -1), 0);
	assert_int_equal(gpreempt_suspend_queues(p, ids, 1, NULL, &timing), 0);
	assert_int_equal(timing.queues, 1);
	assert_int_equal(fake_rm_disabled(r->fake, JOB), FAKE_CONNECTIONS);
	assert_int_equal(gpreempt_resume_queues(p, NULL), 0);
	assert_int_equal(gpreempt_suspend_queues(p, NULL, 0, NULL, &timing), 0);
	assert_int_equal(timing.queues, 4);
	gpreempt_detach(p);
	assert_int_equal(fake_rm_disabled(r->fake, -1), 0);
}

static void several_processes_take_as_few_calls_as_one(void **state)
{
	struct lib_rig *r = *state;
	struct gpreempt_process *p[2];

	fake_rm_job(r->fake, OTHER);
	p[0] = lib_rig_attach(r, JOB, 0);
	p[1] = lib_rig_attach(r, OTHER, 0);
	fake_rm_forget_calls(r->fake);
	assert_int_equal(gpreempt_batch_unmap_queues(p, 2, NULL), 0);
	assert_int_equal(fake_rm_count(r->fake, FAKE_IOCTL, NVRM_CTRL_DISABLE_CHANNELS), 2);
	assert_true(fake_rm_disabled(r->fake, JOB) > 0);
	assert_true(fake_rm_disabled(r->fake, OTHER) > 0);
	assert_int_equal(gpreempt_fast_remap_queues(p, 2), 0);
	assert_int_equal(fake_rm_disabled(r->fake, -1), 0);
	gpreempt_detach(p[0]);
	gpreempt_detach(p[1]);
}

static void of_a_batch_with_one_that_has_ended_nobody_is_held(void **state)
{
	struct lib_rig *r = *state;
	struct gpreempt_process *p[2];

	fake_rm_job(r->fake, OTHER);
	p[0] = lib_rig_attach(r, JOB, 0);
	p[1] = lib_rig_attach(r, OTHER, 0);
	fake_rm_exit(r->fake, OTHER);
	assert_int_equal(gpreempt_batch_unmap_queues(p, 2, NULL), -ESRCH);
	assert_int_equal(lib_rig_kind(r), GPREEMPT_ERROR_ABSENT);
	assert_int_equal(fake_rm_disabled(r->fake, -1), 0);
	assert_int_equal(gpreempt_process_check(p[0]), 0);
	gpreempt_detach(p[0]);
	gpreempt_detach(p[1]);
}

static void of_a_batch_the_driver_refuses_nobody_is_held(void **state)
{
	struct lib_rig *r = *state;
	struct gpreempt_process *p[2];

	fake_rm_job(r->fake, OTHER);
	p[0] = lib_rig_attach(r, JOB, 0);
	p[1] = lib_rig_attach(r, OTHER, 0);
	fake_rm_fault(r->fake, &(struct fake_fault){ .op = FAKE_IOCTL,
						     .cmd = NVRM_CTRL_DISABLE_CHANNELS,
						     .after = 1,
						     .status = NVRM_TIMEOUT });
	assert_int_equal(gpreempt_batch_unmap_queues(p, 2, NULL), -ETIMEDOUT);
	assert_int_equal(lib_rig_kind(r), GPREEMPT_ERROR_FAILED);
	assert_int_equal(fake_rm_disabled(r->fake, -1), 0);
	gpreempt_detach(p[0]);
	gpreempt_detach(p[1]);
}

static bool is_on(struct lib_rig *r)
{
	return fake_rm_disabled(r->fake, -1) == 0;
}

static void await_on(struct lib_rig *r)
{
	struct pollfd nothing = { .fd = -1 };

	for (int i = 0; i < 2000 && !is_on(r); i++)
		poll(&nothing, 1, 5);
	assert_true(is_on(r));
}

static void what_the_driver_would_not_resume_is_tried_again(void **state)
{
	struct lib_rig *r = *state;
	struct gpreempt_process *p = lib_rig_attach(r, JOB, 0);

	assert_int_equal(gpreempt_suspend_queues(p, NULL, 0, NULL, NULL), 0);
	fake_rm_fault(r->fake, &(struct fake_fault){ .op = FAKE_IOCTL,
						     .cmd = NVRM_CTRL_DISABLE_CHANNELS,
						     .times = 2,
						     .status = NVRM_TIMEOUT });
	assert_int_equal(gpreempt_resume_queues(p, NULL), -ETIMEDOUT);
	await_on(r);
	gpreempt_detach(p);
}

static void the_last_reference_lets_go(void **state)
{
	struct lib_rig *r = *state;
	struct gpreempt_process *p = lib_rig_attach(r, JOB, 0);

	assert_int_equal(gpreempt_suspend_queues(p, NULL, 0, NULL, NULL), 0);
	assert_int_equal(gpreempt_keepalive(r->ctx), 0);
	r->ctx = gpreempt_unref(r->ctx);
	assert_int_equal(fake_rm_disabled(r->fake, -1), 0);
	assert_int_equal(fake_rm_descriptors(r->fake), 0);
}

static void what_was_borrowed_of_a_process_that_ends_is_given_back_unasked(void **state)
{
	struct lib_rig *r = *state;
	struct gpreempt_process *p = lib_rig_attach(r, JOB, 0), *looked_at;
	struct pollfd over = { .fd = gpreempt_process_fd(p), .events = POLLIN };
	struct pollfd other = { .events = POLLIN };

	fake_rm_job(r->fake, OTHER);
	looked_at = lib_rig_attach(r, OTHER, GPREEMPT_ATTACH_LOOK_ONLY);
	other.fd = gpreempt_process_fd(looked_at);
	assert_int_equal(gpreempt_suspend_queues(p, NULL, 0, NULL, NULL), 0);
	fake_rm_exit(r->fake, JOB);
	fake_rm_exit(r->fake, OTHER);
	assert_int_equal(poll(&over, 1, 10000), 1);
	assert_int_equal(poll(&other, 1, 10000), 1);
	assert_int_equal(fake_rm_descriptors(r->fake), 0);
	assert_int_equal(fake_rm_pinned(r->fake), 0);
	gpreempt_detach(looked_at);
	assert_int_equal(gpreempt_process_check(p), -ESRCH);
	assert_int_equal(lib_rig_kind(r), GPREEMPT_ERROR_ABSENT);
	assert_int_equal(gpreempt_held_queues(p, NULL, 0), 0);
	assert_int_equal(gpreempt_snapshot(p, NULL, 0, NULL), -ESRCH);
	assert_int_equal(gpreempt_resume_queues(p, NULL), -ESRCH);
	gpreempt_detach(p);
}

/* The guard would kill a thread that is silent for so long, and us with it. */
static void who_takes_its_time_to_detach_from_the_dead_lives(void **state)
{
	struct lib_rig *r = *state;
	struct gpreempt_process *p = lib_rig_attach(r, JOB, 0);
	struct pollfd over = { .fd = gpreempt_process_fd(p), .events = POLLIN };
	struct pollfd guard = { .fd = gpreempt_guard_fd(r->ctx), .events = POLLIN };

	fake_rm_exit(r->fake, JOB);
	assert_int_equal(poll(&over, 1, 10000), 1);
	assert_int_equal(poll(&guard, 1, 2 * GUARD_SILENCE_NS / NSEC_PER_MSEC), 0);
	gpreempt_detach(p);
}

static void when_the_guard_dies_everybody_is_let_go(void **state)
{
	struct lib_rig *r = *state;
	struct gpreempt_process *p = lib_rig_attach(r, JOB, 0);
	struct pollfd over = { .fd = gpreempt_process_fd(p), .events = POLLIN };

	assert_int_equal(gpreempt_suspend_queues(p, NULL, 0, NULL, NULL), 0);
	kill(guard_pid(r->ctx->guard), SIGKILL);
	assert_int_equal(poll(&over, 1, 10000), 1);
	assert_int_equal(fake_rm_disabled(r->fake, -1), 0);
	assert_int_equal(gpreempt_process_check(p), -EOWNERDEAD);
	gpreempt_detach(p);
	p = lib_rig_attach(r, JOB, 0); /* with another guard */
	assert_int_equal(gpreempt_suspend_queues(p, NULL, 0, NULL, NULL), 0);
	gpreempt_detach(p);
}

static void a_hold_ends_by_itself_when_its_time_is_over(void **state)
{
	struct lib_rig *r = *state;
	struct gpreempt_suspend_options o = { .size = sizeof(o), .longest_ns = 20000000 };
	struct gpreempt_process *p = lib_rig_attach(r, JOB, 0);

	assert_int_equal(gpreempt_suspend_queues(p, NULL, 0, &o, NULL), 0);
	assert_true(gpreempt_held_queues(p, NULL, 0) > 0);
	LIB_RIG_WAIT(r, gpreempt_held_queues(p, NULL, 0) == 0);
	assert_int_equal(fake_rm_disabled(r->fake, -1), 0);
	assert_int_equal(gpreempt_process_check(p), 0);
	assert_int_equal(gpreempt_suspend_queues(p, NULL, 0, NULL, NULL), 0);
	gpreempt_detach(p);
}

static void a_context_that_a_held_process_creates_is_taken_off_too(void **state)
{
	struct lib_rig *r = *state;
	struct gpreempt_process *p = lib_rig_attach(r, JOB, 0);
	uint32_t group;

	assert_int_equal(gpreempt_suspend_queues(p, NULL, 0, NULL, NULL), 0);
	group = fake_rm_context(r->fake, r->job, FAKE_GPU, FAKE_CONNECTIONS);
	LIB_RIG_WAIT(r, fake_rm_group_off(r->fake, r->job, group));
	LIB_RIG_WAIT(r, gpreempt_held_queues(p, NULL, 0) == 8); /* the driver knows it first */
	assert_int_equal(gpreempt_resume_queues(p, NULL), 0);
	assert_int_equal(fake_rm_disabled(r->fake, -1), 0);
	gpreempt_detach(p);
}

static void who_cannot_be_attached_is_told_why(void **state)
{
	struct lib_rig *r = *state;
	struct gpreempt_process *p = NULL;

	assert_int_equal(gpreempt_attach(r->ctx, 99, 0, &p), -ESRCH);
	assert_int_equal(lib_rig_kind(r), GPREEMPT_ERROR_ABSENT);
	fake_rm_spawn(r->fake, OTHER, 0, "editor");
	assert_true(gpreempt_attach(r->ctx, OTHER, 0, &p) < 0);
	assert_int_equal(lib_rig_kind(r), GPREEMPT_ERROR_ABSENT);
	fake_rm_set_caller(r->fake, 1000);
	assert_true(gpreempt_attach(r->ctx, JOB, 0, &p) < 0);
	assert_int_equal(lib_rig_kind(r), GPREEMPT_ERROR_REFUSED);
	assert_null(p);
}

static void what_only_the_other_driver_has_is_refused(void **state)
{
	struct lib_rig *r = *state;
	struct gpreempt_suspend_options o = { .size = sizeof(o), .grace_kclk = 1 };
	struct gpreempt_process *p = lib_rig_attach(r, JOB, 0), *none = NULL;
	struct gpreempt_monitor *mon = NULL;

	lib_rig_cannot(r, gpreempt_suspend_queues(p, NULL, 0, &o, NULL));
	lib_rig_cannot(r, gpreempt_attach(r->ctx, JOB, GPREEMPT_ATTACH_PAUSE, &none));
	lib_rig_cannot(r, gpreempt_monitor_new(p, &mon));
	lib_rig_cannot(r, gpreempt_get_hqd_status(r->ctx, NULL, 0));
	lib_rig_cannot(r, gpreempt_find_idle_offline_queues(r->ctx, NULL, 0));
	lib_rig_cannot(r, gpreempt_suspend_own(r->ctx, NULL, 0, NULL, NULL));
	lib_rig_cannot(r, gpreempt_set_queue_policy(r->ctx, JOB, COMPUTE, 0));
	lib_rig_cannot(r, gpreempt_set_hqd_reservation(r->ctx, FAKE_GPU, 10, 10));
	assert_int_equal(gpreempt_resume_own(r->ctx, NULL), 0);
	assert_int_equal(gpreempt_is_queue_active(p, COMPUTE), -ENODATA);
	assert_int_equal(gpreempt_is_queue_active(p, 1), -EINVAL);
	assert_int_equal(fake_rm_disabled(r->fake, -1), 0);
	gpreempt_detach(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_context_is_shown_as_its_channel_groups),
		TEST(a_hold_takes_all_groups_and_a_resumption_gives_them_back),
		TEST(single_groups_can_be_held),
		TEST(several_processes_take_as_few_calls_as_one),
		TEST(of_a_batch_with_one_that_has_ended_nobody_is_held),
		TEST(of_a_batch_the_driver_refuses_nobody_is_held),
		TEST(what_the_driver_would_not_resume_is_tried_again),
		TEST(the_last_reference_lets_go),
		TEST(what_was_borrowed_of_a_process_that_ends_is_given_back_unasked),
		TEST(who_takes_its_time_to_detach_from_the_dead_lives),
		TEST(when_the_guard_dies_everybody_is_let_go),
		TEST(a_hold_ends_by_itself_when_its_time_is_over),
		TEST(a_context_that_a_held_process_creates_is_taken_off_too),
		TEST(who_cannot_be_attached_is_told_why),
		TEST(what_only_the_other_driver_has_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
