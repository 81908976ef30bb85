/* SPDX-License-Identifier: MIT */
/* GPUs of both vendors in one machine: what is done to one's jobs is nothing to the other's. */
#include "tests/kfd/backend_rig.h"
#include "tests/nvrm/backend_rig.h"

struct both {
	struct rig amd;
	struct bed nvidia;
};

static int setup(void **state)
{
	struct both *b = calloc(1, sizeof(*b));

	bed_make(&b->nvidia, true); /* whose guard is the whole process's */
	rig_open(&b->amd, "mi308x,gpus=2");
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct both *b = *state;

	rig_close(&b->amd);
	bed_unmake(&b->nvidia);
	free(b);
	return 0;
}

static void each_finds_its_own(void **state)
{
	struct both *b = *state;
	pid_t pids[8];

	assert_int_equal(ops_of(&b->amd)->processes(b->amd.b, pids, 8), 3);
	assert_int_equal(pids[0], OFFLINE);
	assert_int_equal(bed_ops(&b->nvidia)->processes(b->nvidia.b, pids, 8), 1);
	assert_int_equal(pids[0], JOB);
	assert_string_equal(b->amd.b->caps.name, "model");
	assert_string_equal(b->nvidia.b->caps.name, "nvrm");
}

static void both_hold_at_once_and_let_go_apart(void **state)
{
	struct both *b = *state;
	struct gpu_target *amd = rig_attach(&b->amd, OFFLINE);
	struct gpu_target *nvidia = bed_attach(&b->nvidia, JOB);

	ops_of(&b->amd)->suspend(amd, &(struct gpu_hold){ 0 }, 1);
	bed_ops(&b->nvidia)->suspend(nvidia, &(struct gpu_hold){ 0 }, 2);
	rig_expect(&b->amd, GPU_SUSPEND, 0, 10);
	bed_expect(&b->nvidia, GPU_SUSPEND, 0, HELD);
	ops_of(&b->amd)->resume(amd, NULL, 0, 3);
	rig_expect(&b->amd, GPU_RESUME, 0, 10);
	assert_int_equal(rig_count_suspended(&b->amd, OFFLINE), 0);
	assert_true(bed_job_off(&b->nvidia, HELD_CHANNELS));
	bed_ops(&b->nvidia)->release(nvidia, 4);
	bed_expect(&b->nvidia, GPU_RELEASE, 0, 0);
	assert_true(bed_job_off(&b->nvidia, 0));
}

static void one_that_ends_leaves_the_other_alone(void **state)
{
	struct both *b = *state;
	struct gpu_target *amd = rig_attach(&b->amd, OFFLINE);
	struct gpu_target *nvidia = bed_attach(&b->nvidia, JOB);

	ops_of(&b->amd)->suspend(amd, &(struct gpu_hold){ 0 }, 1);
	rig_expect(&b->amd, GPU_SUSPEND, 0, 10);
	bed_ops(&b->nvidia)->suspend(nvidia, &(struct gpu_hold){ 0 }, 2);
	bed_expect(&b->nvidia, GPU_SUSPEND, 0, HELD);
	rig_close(&b->amd);
	assert_true(bed_job_off(&b->nvidia, HELD_CHANNELS));
	rig_open(&b->amd, "mi308x,gpus=2");
	assert_true(bed_job_off(&b->nvidia, HELD_CHANNELS));
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(each_finds_its_own),
		T(both_hold_at_once_and_let_go_apart),
		T(one_that_ends_leaves_the_other_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
