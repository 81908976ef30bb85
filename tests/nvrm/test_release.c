/* SPDX-License-Identifier: MIT */
/* Undoing what somebody who is dead has left on a process. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/nvrm/rig.h"
#include "util/macros.h"

/* Off, and as often as holders have died with it. */
static void leave_held(struct rig *r, uint32_t client, unsigned int times)
{
	struct nvrm_objects objects = { 0 };

	fake_rm_table(r->fake, client, &objects);
	for (size_t i = 0; i < objects.n; i++)
		if (objects.all[i].class == NVRM_CLASS_CHANNEL_GROUP)
			fake_rm_leave_disabled(r->fake, client, objects.all[i].handle, times);
	nvrm_objects_done(&objects);
	fake_rm_leave_slice(r->fake, client, COMPUTE_GROUP, NVRM_SHORT_SLICE_US);
}

static void holds_and_slices_of_the_dead_are_undone(void **state)
{
	struct rig *r = *state;
	uint32_t client = fake_rm_job(r->fake, JOB);

	for (unsigned int holders = 1; holders <= 3; holders++) {
		leave_held(r, client, holders);
		assert_int_equal(fake_rm_highest(r->fake, JOB), holders);
		assert_int_equal(nvrm_release_pid(r->n, JOB, &r->failure), 4);
		assert_int_equal(fake_rm_disabled(r->fake, JOB), 0);
		assert_int_equal(fake_rm_slice(r->fake, client, COMPUTE_GROUP), NVRM_CUDA_SLICE_US);
	}
}

static void a_long_slice_that_was_left_is_given_back_too(void **state)
{
	struct rig *r = *state;
	uint32_t client = fake_rm_job(r->fake, JOB);

	fake_rm_leave_slice(r->fake, client, COMPUTE_GROUP, NVRM_LONG_SLICE_US);
	assert_int_equal(nvrm_release_pid(r->n, JOB, &r->failure), 4);
	assert_int_equal(fake_rm_slice(r->fake, client, COMPUTE_GROUP), NVRM_CUDA_SLICE_US);
}

static void who_is_well_is_not_harmed(void **state)
{
	struct rig *r = *state;
	uint32_t client = fake_rm_job(r->fake, JOB);

	fake_rm_leave_slice(r->fake, client, COMPUTE_GROUP, 777);
	assert_int_equal(nvrm_release_pid(r->n, JOB, &r->failure), 4);
	assert_int_equal(fake_rm_disabled(r->fake, JOB), 0);
	assert_int_equal(fake_rm_slice(r->fake, client, COMPUTE_GROUP), 777);
	assert_int_equal(fake_rm_count(r->fake, FAKE_IOCTL, NVRM_CTRL_SET_TIMESLICE), 0);
}

static void nobody_else_is_touched(void **state)
{
	struct rig *r = *state;
	uint32_t other = fake_rm_job(r->fake, OTHER);

	fake_rm_job(r->fake, JOB);
	leave_held(r, other, 1);
	assert_int_equal(nvrm_release_pid(r->n, JOB, &r->failure), 4);
	assert_int_equal(fake_rm_disabled(r->fake, OTHER), 20);
	assert_int_equal(nvrm_release_pid(r->n, OTHER, &r->failure), 4);
}

static void every_context_on_every_gpu_is_freed(void **state)
{
	struct rig *r = *state;
	uint32_t client, second;

	fake_rm_add_gpu(r->fake, FAKE_GPU_2, "NVIDIA H200");
	client = fake_rm_job(r->fake, JOB);
	fake_rm_context(r->fake, client, FAKE_GPU_2, 32);
	fake_rm_memory(r->fake, client, 3000);
	second = fake_rm_client(r->fake, JOB, fake_rm_open_file(r->fake, JOB, "/dev/nvidiactl"));
	fake_rm_context(r->fake, second, FAKE_GPU, 8);
	leave_held(r, client, 2);
	leave_held(r, second, 1);
	assert_int_equal(nvrm_release_pid(r->n, JOB, &r->failure), 12);
	assert_int_equal(fake_rm_disabled(r->fake, JOB), 0);
}

static void who_cannot_be_found_is_told(void **state)
{
	struct rig *r = *state;

	assert_int_equal(nvrm_release_pid(r->n, JOB, &r->failure), -ESRCH);
	assert_int_equal(r->failure.why, NVRM_WHY_EXITED);
	fake_rm_spawn(r->fake, JOB, 0, "sh");
	assert_int_equal(nvrm_release_pid(r->n, JOB, &r->failure), -ENOENT);
	assert_int_equal(r->failure.why, NVRM_WHY_NO_CONTEXT);
	fake_rm_job(r->fake, OTHER);
	fake_rm_set_caller(r->fake, 1000);
	assert_int_equal(nvrm_release_pid(r->n, OTHER, &r->failure), -EPERM);
	assert_int_equal(r->failure.why, NVRM_WHY_NO_RIGHT);
	assert_int_equal(nvrm_release_pid(r->n, OTHER, NULL), -EPERM);
}

static void a_gpu_that_refuses_is_told(void **state)
{
	struct rig *r = *state;
	uint32_t client = fake_rm_job(r->fake, JOB);

	leave_held(r, client, 1);
	fake_rm_fault(r->fake, &(struct fake_fault){ .cmd = NVRM_CTRL_DISABLE_CHANNELS,
						     .times = 100,
						     .status = NVRM_GPU_IS_LOST });
	assert_int_equal(nvrm_release_pid(r->n, JOB, &r->failure), -ENODEV);
	assert_int_equal(r->failure.why, NVRM_WHY_GPU_LOST);
	assert_int_equal(r->failure.gpu, FAKE_GPU);
	assert_int_equal(fake_rm_descriptors(r->fake), 0);
	fake_rm_mend(r->fake);
	assert_int_equal(nvrm_release_pid(r->n, JOB, &r->failure), 4);
}

/* ---- trouble, everywhere ---- */

static void a_held_job(struct rig *r)
{
	leave_held(r, fake_rm_job(r->fake, JOB), 1);
}

static void release(struct rig *r)
{
	nvrm_release_pid(r->n, JOB, &r->failure);
}

/* What went wrong once goes well the next time. */
static void release_again(struct rig *r)
{
	int result = nvrm_release_pid(r->n, JOB, &r->failure);

	assert_true(result == 4 || result == -ESRCH);
	if (result == 4)
		assert_int_equal(fake_rm_slice(r->fake, NVRM_FIRST_CLIENT, COMPUTE_GROUP),
				 NVRM_CUDA_SLICE_US);
}

static void whatever_goes_wrong_nothing_is_kept_and_the_next_time_helps(void **state)
{
	const struct rig_scene scene = { a_held_job, release, release_again };

	rig_try_all(&scene, &(struct fake_fault){ .exits = JOB });
	rig_try_all(&scene, &(struct fake_fault){ .error = EIO });
	rig_try_all(&scene, &(struct fake_fault){ .op = FAKE_IOCTL, .status = NVRM_TIMEOUT });
	rig_try_all(&scene, &(struct fake_fault){ .op = FAKE_IOCTL,
						  .status = NVRM_INVALID_STATE,
						  .applied = true });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
		CASE(holds_and_slices_of_the_dead_are_undone),
		CASE(a_long_slice_that_was_left_is_given_back_too),
		CASE(who_is_well_is_not_harmed),
		CASE(nobody_else_is_touched),
		CASE(every_context_on_every_gpu_is_freed),
		CASE(who_cannot_be_found_is_told),
		CASE(a_gpu_that_refuses_is_told),
		CASE(whatever_goes_wrong_nothing_is_kept_and_the_next_time_helps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
