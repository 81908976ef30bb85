/* SPDX-License-Identifier: MIT */
/* The library on NVIDIA's driver: the machine, its processes, and letting go of everybody. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/nvrm/driver.h"
#include "gpu/nvrm/process.h"
#include "lib/internal.h"
#include "tests/lib/nvrm_rig.h"

#define TEST(f) cmocka_unit_test_setup_teardown(f, lib_rig_setup, lib_rig_teardown)

static void no_driver_is_told_as_such(void **state)
{
	struct lib_rig *r = *state;
	struct gpreempt_ctx *ctx = ctx_new();

	fake_rm_set_version(r->fake, NULL);
	assert_int_equal(ctx_take(ctx, &nvrm_driver, fake_rm_nvrm(r->fake)), -ENODEV);
	assert_int_equal(ctx->last.kind, GPREEMPT_ERROR_ABSENT);
	assert_true(ctx->last.message[0] && ctx->last.hint[0]);
	gpreempt_unref(ctx);
}

static void the_driver_and_its_gpus_are_named(void **state)
{
	struct lib_rig *r = *state;
	struct gpreempt_device_info info = { .size = sizeof(info) };
	struct gpreempt_gpu gpus[4] = { { .size = sizeof(gpus[0]) } };

	fake_rm_add_gpu(r->fake, FAKE_GPU_2, "NVIDIA H100");
	fake_rm_set_mig(r->fake, FAKE_GPU_2);
	assert_false(gpreempt_is_modelled(r->ctx));
	assert_int_equal(gpreempt_get_device_info(r->ctx, &info), 0);
	assert_string_equal(info.backend, "nvrm");
	assert_string_equal(info.driver_version, "580.159.04");
	assert_string_equal(info.module, "open");
	assert_int_equal(info.valid & GPREEMPT_DEVICE_VERSION, 0);
	assert_int_equal(gpreempt_get_gpus(r->ctx, gpus, 4), 2);
	assert_int_equal(gpus[0].gpu_id, FAKE_GPU);
	assert_string_equal(gpus[0].name, "NVIDIA H200");
	assert_string_equal(gpus[0].pci, "0000:01:00.0");
	assert_true(gpus[0].valid & GPREEMPT_GPU_UUID);
	assert_false(gpus[0].mig);
	assert_int_equal(gpus[1].index, 1);
	assert_true(gpus[1].mig);
}

static void read_levels(struct lib_rig *r, struct gpreempt_level ret[2])
{
	ret[0].size = sizeof(ret[0]);
	assert_int_equal(gpreempt_get_levels(r->ctx, ret, 2), 2);
	assert_string_equal(ret[0].level, "N2");
	assert_string_equal(ret[1].level, "N1");
	assert_int_equal(ret[0].available, ret[1].available);
}

static void levels_say_why_they_are_missing(void **state)
{
	struct lib_rig *r = *state;
	struct gpreempt_level levels[2];

	read_levels(r, levels);
	assert_true(levels[0].available);
	assert_null(strstr(levels[0].reason, "MPS"));
	fake_rm_fault(r->fake,
		      &(struct fake_fault){ .op = FAKE_OPEN, .times = 9, .error = EACCES });
	read_levels(r, levels);
	assert_false(levels[0].available);
	assert_non_null(strstr(levels[0].reason, "no right"));
	fake_rm_mend(r->fake);
	fake_rm_set_mig(r->fake, FAKE_GPU);
	read_levels(r, levels);
	assert_false(levels[0].available);
	assert_non_null(strstr(levels[0].reason, "MIG"));
}

static void mps_is_mentioned(void **state)
{
	struct lib_rig *r = *state;
	struct gpreempt_level levels[2];

	fake_rm_spawn(r->fake, OTHER, 0, "nvidia-cuda-mps-server");
	fake_rm_open_file(r->fake, OTHER, "/dev/nvidia0");
	read_levels(r, levels);
	assert_true(levels[0].available);
	assert_non_null(strstr(levels[0].reason, "MPS"));
}

static void an_unknown_driver_is_left_alone(void **state)
{
	static const char text[] = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.1.1  x\n";
	struct lib_rig *r = *state;
	struct gpreempt_level levels[2];
	struct gpreempt_device_info info = { .size = sizeof(info) };
	struct gpreempt_process_info found = { .size = sizeof(found) };
	struct gpreempt_process *p = NULL;

	r->ctx = gpreempt_unref(r->ctx);
	fake_rm_set_version(r->fake, text);
	r->ctx = ctx_new();
	assert_int_equal(ctx_take(r->ctx, &nvrm_driver, fake_rm_nvrm(r->fake)), 0);
	assert_int_equal(gpreempt_get_device_info(r->ctx, &info), 0);
	assert_string_equal(info.module, "proprietary");
	read_levels(r, levels);
	assert_false(levels[0].available);
	assert_int_equal(gpreempt_attach(r->ctx, JOB, 0, &p), -EOPNOTSUPP);
	assert_int_equal(lib_rig_kind(r), GPREEMPT_ERROR_REFUSED);
	assert_int_equal(gpreempt_get_all_queues(r->ctx, NULL, NULL, 0), -EOPNOTSUPP);
	assert_int_equal(gpreempt_list_processes(r->ctx, &found, 1), 1);
	assert_true(found.hidden);
	assert_int_equal(gpreempt_release(r->ctx, NULL, 0, NULL, 0), -EOPNOTSUPP);
	assert_int_equal(fake_rm_count(r->fake, FAKE_BORROW, 0), 0);
}

static void processes_are_listed_with_what_can_be_seen_of_them(void **state)
{
	struct lib_rig *r = *state;
	struct gpreempt_process_info list[4] = { { .size = sizeof(list[0]) } };

	fake_rm_spawn(r->fake, 100, 0, "editor");
	fake_rm_spawn(r->fake, OTHER, 1000, "starting");
	fake_rm_open_file(r->fake, OTHER, "/dev/nvidia0");
	fake_rm_open_file(r->fake, OTHER, "/dev/nvidiactl");
	assert_int_equal(gpreempt_list_processes(r->ctx, list, 4), 2);
	assert_int_equal(list[0].pid, JOB);
	assert_int_equal(list[0].queues, 4);
	assert_int_equal(list[0].n_gpus, 1);
	assert_int_equal(list[0].gpus[0], FAKE_GPU);
	assert_string_equal(list[0].state, "running");
	assert_false(list[0].hidden);
	assert_int_equal(list[1].pid, OTHER);
	assert_int_equal(list[1].uid, 1000);
	assert_string_equal(list[1].comm, "starting");
	assert_int_equal(list[1].queues, 0);
	fake_rm_fault(r->fake,
		      &(struct fake_fault){ .op = FAKE_BORROW, .times = 9, .error = EPERM });
	assert_int_equal(gpreempt_list_processes(r->ctx, list, 4), 2);
	assert_true(list[0].hidden);
	assert_int_equal(list[0].queues, 0);
}

static void all_queues_are_those_of_whom_the_caller_may_look_into(void **state)
{
	struct lib_rig *r = *state;
	struct gpreempt_queue_filter filter = { .size = sizeof(filter),
						.min_priority = 3,
						.max_priority = -1 };

	fake_rm_job(r->fake, OTHER);
	assert_int_equal(gpreempt_get_all_queues(r->ctx, NULL, NULL, 0), 8);
	assert_int_equal(gpreempt_get_all_queues(r->ctx, &filter, NULL, 0), 0);
	fake_rm_fault(r->fake, &(struct fake_fault){ .op = FAKE_BORROW, .error = EPERM });
	assert_int_equal(gpreempt_get_all_queues(r->ctx, NULL, NULL, 0), 4);
}

/* A daemon that lives has given it: whoever only looks, or holds, must not take it away. */
static void somebody_elses_slices_stay(void **state)
{
	struct lib_rig *r = *state;
	struct gpreempt_process *p;

	fake_rm_leave_slice(r->fake, r->job, COMPUTE_GROUP, NVRM_SHORT_SLICE_US);
	assert_int_equal(gpreempt_list_processes(r->ctx, NULL, 0), 1);
	assert_int_equal(gpreempt_get_all_queues(r->ctx, NULL, NULL, 0), 4);
	p = lib_rig_attach(r, JOB, GPREEMPT_ATTACH_LOOK_ONLY);
	gpreempt_detach(p);
	p = lib_rig_attach(r, JOB, 0);
	assert_int_equal(gpreempt_suspend_queues(p, NULL, 0, NULL, NULL), 0);
	gpreempt_detach(p);
	assert_int_equal(fake_rm_slice(r->fake, r->job, COMPUTE_GROUP), NVRM_SHORT_SLICE_US);
}

static void a_release_undoes_what_somebody_left(void **state)
{
	struct lib_rig *r = *state;
	pid_t pids[] = { JOB, 100 }, released[4] = { 0 };

	fake_rm_leave_disabled(r->fake, r->job, COMPUTE_GROUP, 2);
	fake_rm_leave_slice(r->fake, r->job, COMPUTE_GROUP, NVRM_SHORT_SLICE_US);
	assert_int_equal(gpreempt_release(r->ctx, pids, 1, released, 4), 1);
	assert_int_equal(released[0], JOB);
	assert_int_equal(fake_rm_disabled(r->fake, -1), 0);
	assert_int_equal(fake_rm_slice(r->fake, r->job, COMPUTE_GROUP), NVRM_CUDA_SLICE_US);
	assert_int_equal(lib_rig_kind(r), GPREEMPT_ERROR_NONE);
	/* One that is named and cannot be is a failure, beside what could. */
	assert_int_equal(gpreempt_release(r->ctx, pids, 2, released, 4), 1);
	assert_int_equal(lib_rig_kind(r), GPREEMPT_ERROR_ABSENT);
}

static void a_release_of_all_passes_over_whom_the_caller_may_not_touch(void **state)
{
	struct lib_rig *r = *state;
	pid_t released[4] = { 0 };

	fake_rm_job(r->fake, OTHER);
	fake_rm_leave_disabled(r->fake, r->job, COMPUTE_GROUP, 1);
	assert_int_equal(gpreempt_release(r->ctx, NULL, 0, released, 4), 2);
	assert_int_equal(fake_rm_disabled(r->fake, -1), 0);
	fake_rm_fault(r->fake, &(struct fake_fault){ .op = FAKE_BORROW, .error = EPERM });
	assert_int_equal(gpreempt_release(r->ctx, NULL, 0, released, 4), 1);
	assert_int_equal(lib_rig_kind(r), GPREEMPT_ERROR_NONE);
}

static void who_is_attached_cannot_release(void **state)
{
	struct lib_rig *r = *state;
	struct gpreempt_process *p = lib_rig_attach(r, JOB, GPREEMPT_ATTACH_LOOK_ONLY);

	assert_int_equal(gpreempt_release(r->ctx, NULL, 0, NULL, 0), -EBUSY);
	gpreempt_detach(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(no_driver_is_told_as_such),
		TEST(the_driver_and_its_gpus_are_named),
		TEST(levels_say_why_they_are_missing),
		TEST(mps_is_mentioned),
		TEST(an_unknown_driver_is_left_alone),
		TEST(processes_are_listed_with_what_can_be_seen_of_them),
		TEST(all_queues_are_those_of_whom_the_caller_may_look_into),
		TEST(somebody_elses_slices_stay),
		TEST(a_release_undoes_what_somebody_left),
		TEST(a_release_of_all_passes_over_whom_the_caller_may_not_touch),
		TEST(who_is_attached_cannot_release),
	};

	/* Of a daemon on this machine nobody is to be asked. */
	setenv("GPREEMPT_SOCKET", "/nonexistent/gpreempt.sock", 1);
	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
