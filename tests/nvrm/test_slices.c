/* SPDX-License-Identifier: MIT */
/* Giving contexts shorter and longer turns, and giving their own back. */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/nvrm/rig.h"
#include "util/macros.h"

static size_t sets(struct rig *r)
{
	return fake_rm_count(r->fake, FAKE_IOCTL, NVRM_CTRL_SET_TIMESLICE);
}

static void compute_groups_are_given_a_slice_and_their_own_back(void **state)
{
	struct rig *r = *state;
	uint32_t client = fake_rm_job(r->fake, JOB);
	struct nvrm_process *p = rig_open(r, JOB);
	uint32_t copy = p->groups[1].handle;

	assert_int_equal(nvrm_slice(p, FAKE_GPU, NVRM_SHORT_SLICE_US, &r->failure), 0);
	assert_int_equal(fake_rm_slice(r->fake, client, COMPUTE_GROUP), 1);
	assert_int_equal(fake_rm_slice(r->fake, client, copy), FAKE_COPY_SLICE_US);
	assert_int_equal(p->groups[0].slice_us, 1);
	assert_int_equal(p->groups[0].own_slice_us, NVRM_CUDA_SLICE_US);
	assert_int_equal(nvrm_slice(p, FAKE_GPU, NVRM_LONG_SLICE_US, &r->failure), 0);
	assert_int_equal(fake_rm_slice(r->fake, client, COMPUTE_GROUP), 50000);
	assert_int_equal(nvrm_slice(p, FAKE_GPU, 0, &r->failure), 0);
	assert_int_equal(fake_rm_slice(r->fake, client, COMPUTE_GROUP), NVRM_CUDA_SLICE_US);
	nvrm_process_close(p);
}

static void a_slice_it_has_is_not_given_again(void **state)
{
	struct rig *r = *state;
	struct nvrm_process *p;

	fake_rm_job(r->fake, JOB);
	p = rig_open(r, JOB);
	assert_int_equal(nvrm_slice(p, FAKE_GPU, 0, &r->failure), 0);
	assert_int_equal(sets(r), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(nvrm_slice(p, FAKE_GPU, 1, &r->failure), 0);
	assert_int_equal(sets(r), 1);
	nvrm_process_close(p);
	assert_int_equal(sets(r), 2);
}

static void closing_gives_back_what_the_program_itself_had_chosen(void **state)
{
	struct rig *r = *state;
	uint32_t client = fake_rm_job(r->fake, JOB);
	struct nvrm_process *p;

	fake_rm_leave_slice(r->fake, client, COMPUTE_GROUP, 777);
	p = rig_open(r, JOB);
	assert_int_equal(nvrm_slice(p, NVRM_ALL_GPUS, NVRM_SHORT_SLICE_US, &r->failure), 0);
	nvrm_process_close(p);
	assert_int_equal(fake_rm_slice(r->fake, client, COMPUTE_GROUP), 777);
}

/* Whoever left it is dead, or it would not be there: only we give such slices. */
static void a_slice_that_was_left_behind_is_not_taken_for_its_own(void **state)
{
	struct rig *r = *state;
	uint32_t client = fake_rm_job(r->fake, JOB);
	struct nvrm_process *p;

	fake_rm_leave_slice(r->fake, client, COMPUTE_GROUP, NVRM_SHORT_SLICE_US);
	p = rig_open(r, JOB);
	assert_int_equal(p->groups[0].own_slice_us, NVRM_CUDA_SLICE_US);
	assert_int_equal(nvrm_slice(p, FAKE_GPU, NVRM_LONG_SLICE_US, &r->failure), 0);
	nvrm_process_close(p);
	assert_int_equal(fake_rm_slice(r->fake, client, COMPUTE_GROUP), NVRM_CUDA_SLICE_US);
}

static void only_the_gpu_that_is_named_is_given_one(void **state)
{
	struct rig *r = *state;
	struct nvrm_process *p;
	uint32_t client, second;

	fake_rm_add_gpu(r->fake, FAKE_GPU_2, "NVIDIA H200");
	client = fake_rm_job(r->fake, JOB);
	second = fake_rm_context(r->fake, client, FAKE_GPU_2, 8);
	p = rig_open(r, JOB);
	assert_int_equal(nvrm_slice(p, FAKE_GPU_2, 1, &r->failure), 0);
	assert_int_equal(fake_rm_slice(r->fake, client, COMPUTE_GROUP), NVRM_CUDA_SLICE_US);
	assert_int_equal(fake_rm_slice(r->fake, client, second), 1);
	assert_int_equal(nvrm_slice(p, NVRM_ALL_GPUS, 1, &r->failure), 0);
	assert_int_equal(fake_rm_slice(r->fake, client, COMPUTE_GROUP), 1);
	assert_int_equal(sets(r), 2);
	nvrm_process_close(p);
	assert_int_equal(fake_rm_slice(r->fake, client, second), NVRM_CUDA_SLICE_US);
}

static void what_was_given_is_remembered_when_contexts_come_and_go(void **state)
{
	struct rig *r = *state;
	uint32_t client = fake_rm_job(r->fake, JOB), second;
	struct nvrm_process *p = rig_open(r, JOB);

	assert_int_equal(nvrm_slice(p, FAKE_GPU, 1, &r->failure), 0);
	second = fake_rm_context(r->fake, client, FAKE_GPU, 8);
	assert_int_equal(nvrm_process_refresh(p, &r->failure), 1);
	assert_int_equal(nvrm_slice(p, FAKE_GPU, 1, &r->failure), 0);
	assert_int_equal(fake_rm_slice(r->fake, client, second), 1);
	fake_rm_advance(r->fake, 60 * NSEC_PER_SEC);
	assert_int_equal(nvrm_process_refresh(p, &r->failure), 0);
	nvrm_process_close(p);
	assert_int_equal(fake_rm_slice(r->fake, client, COMPUTE_GROUP), NVRM_CUDA_SLICE_US);
	assert_int_equal(fake_rm_slice(r->fake, client, second), NVRM_CUDA_SLICE_US);
}

static void who_has_ended_is_told_and_keeps_no_memory(void **state)
{
	struct rig *r = *state;
	struct nvrm_process *p;

	fake_rm_job(r->fake, JOB);
	p = rig_open(r, JOB);
	fake_rm_exit(r->fake, JOB);
	assert_int_equal(nvrm_slice(p, FAKE_GPU, 1, &r->failure), -ESRCH);
	assert_int_equal(r->failure.why, NVRM_WHY_EXITED);
	assert_int_equal(fake_rm_pinned(r->fake), 0);
	assert_int_equal(sets(r), 0);
	nvrm_process_close(p);
}

static void a_slice_that_was_refused_is_told_and_not_left(void **state)
{
	struct rig *r = *state;
	uint32_t client = fake_rm_job(r->fake, JOB);
	struct nvrm_process *p = rig_open(r, JOB);

	fake_rm_fault(r->fake, &(struct fake_fault){ .cmd = NVRM_CTRL_SET_TIMESLICE,
						     .status = NVRM_INVALID_STATE,
						     .applied = true });
	assert_true(nvrm_slice(p, FAKE_GPU, 1, &r->failure) < 0);
	assert_int_equal(r->failure.why, NVRM_WHY_REFUSED);
	assert_int_equal(r->failure.status, NVRM_INVALID_STATE);
	assert_int_equal(fake_rm_slice(r->fake, client, COMPUTE_GROUP), NVRM_CUDA_SLICE_US);
	fake_rm_mend(r->fake);
	fake_rm_fault(r->fake, &(struct fake_fault){ .cmd = NVRM_CTRL_SET_TIMESLICE,
						     .times = UINT_MAX / 2,
						     .status = NVRM_TIMEOUT,
						     .applied = true });
	assert_int_equal(nvrm_slice(p, FAKE_GPU, 1, NULL), -ETIMEDOUT);
	fake_rm_mend(r->fake);
	nvrm_process_close(p);
	assert_int_equal(fake_rm_slice(r->fake, client, COMPUTE_GROUP), NVRM_CUDA_SLICE_US);
}

static void one_group_that_refuses_does_not_keep_the_others(void **state)
{
	struct rig *r = *state;
	uint32_t client = fake_rm_job(r->fake, JOB), second;
	struct nvrm_process *p;

	second = fake_rm_context(r->fake, client, FAKE_GPU, 8);
	p = rig_open(r, JOB);
	fake_rm_fault(r->fake, &(struct fake_fault){ .cmd = NVRM_CTRL_SET_TIMESLICE,
						     .status = NVRM_INVALID_STATE });
	assert_true(nvrm_slice(p, FAKE_GPU, 1, &r->failure) < 0);
	assert_int_equal(fake_rm_slice(r->fake, client, second), 1);
	nvrm_process_close(p);
	assert_int_equal(fake_rm_slice(r->fake, client, second), NVRM_CUDA_SLICE_US);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
		CASE(compute_groups_are_given_a_slice_and_their_own_back),
		CASE(a_slice_it_has_is_not_given_again),
		CASE(closing_gives_back_what_the_program_itself_had_chosen),
		CASE(a_slice_that_was_left_behind_is_not_taken_for_its_own),
		CASE(only_the_gpu_that_is_named_is_given_one),
		CASE(what_was_given_is_remembered_when_contexts_come_and_go),
		CASE(who_has_ended_is_told_and_keeps_no_memory),
		CASE(a_slice_that_was_refused_is_told_and_not_left),
		CASE(one_group_that_refuses_does_not_keep_the_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
