/* SPDX-License-Identifier: MIT */
/* The library over file trees of machines that are not this one, broken ones among them. */
#include "tests/readers/rig.h"

#include "gpu/kfd/driver.h"
#include "lib/internal.h"

static struct gpreempt_ctx *ctx_over(const char *tree)
{
	struct gpreempt_ctx *ctx = ctx_new();

	assert_non_null(ctx);
	assert_int_equal(ctx_take(ctx, &gkfd_driver, tree_open(tree)), 0);
	return ctx;
}

static void expect_nonsense(struct gpreempt_ctx *ctx)
{
	struct gpreempt_error e = { .size = sizeof(e) };

	gpreempt_get_error(ctx, &e);
	assert_int_equal(e.kind, GPREEMPT_ERROR_FAILED);
	assert_non_null(strstr(e.message, "make no sense"));
	assert_int_not_equal(e.hint[0], '\0');
}

static void a_machine_without_debugfs_leaves_classes_unknown(void **state)
{
	struct gpreempt_process_info procs[4] = { { .size = sizeof(procs[0]) } };
	struct gpreempt_queue queues[8] = { { .size = sizeof(queues[0]) } };
	struct gpreempt_queue_filter filter = {
		.size = sizeof(filter), .min_priority = 0, .max_priority = 15,
	};
	struct gpreempt_ctx *ctx = ctx_over("mi308x");

	assert_int_equal(gpreempt_list_processes(ctx, procs, 4), 2);
	assert_int_equal(procs[0].pid, 977);
	assert_int_equal(procs[1].pid, 4242);
	assert_int_equal(procs[1].queues, 6);
	assert_int_equal(procs[1].job_class, GPREEMPT_CLASS_UNKNOWN);
	assert_true(procs[1].valid & GPREEMPT_PROC_VRAM);
	assert_int_equal(gpreempt_get_all_queues(ctx, NULL, queues, 8), 6);
	for (int i = 0; i < 6; i++)
		assert_int_equal(queues[i].valid, 0);
	/* A queue of unknown priority matches no range of them. */
	assert_int_equal(gpreempt_get_all_queues(ctx, &filter, queues, 8), 0);
	gpreempt_unref(ctx);
}

static void slots_are_read_never_assumed(void **state)
{
	struct gpreempt_hqd_status gpu = { .size = sizeof(gpu) };
	struct gpreempt_ctx *ctx = ctx_over("slots120");

	assert_int_equal(gpreempt_get_hqd_status(ctx, &gpu, 1), 1);
	assert_int_equal(gpu.total, 120);
	/* That tree lists no processes: how many slots are taken is unknown, not 0. */
	assert_int_equal(gpu.valid, GPREEMPT_HQD_TOTAL | GPREEMPT_HQD_RESERVED);
	assert_int_equal(gpreempt_list_processes(ctx, NULL, 0), -ENOENT);
	gpreempt_unref(ctx);
}

static void what_an_old_kernel_does_not_tell_is_not_valid(void **state)
{
	struct gpreempt_gpu gpu = { .size = sizeof(gpu) };
	struct gpreempt_ctx *ctx = ctx_over("linux-6.1");

	assert_true(gpreempt_get_gpus(ctx, &gpu, 1) >= 1);
	assert_false(gpu.valid & (GPREEMPT_GPU_XCC | GPREEMPT_GPU_CWSR));
	assert_true(gpu.valid & GPREEMPT_GPU_GFX);
	gpreempt_unref(ctx);
}

static void a_driver_that_drives_no_pci_device_drives_no_gpu(void **state)
{
	struct gpreempt_device_info info = { .size = sizeof(info) };
	struct gpreempt_ctx *ctx = ctx_over("linux-6.1");

	assert_int_equal(gpreempt_get_device_info(ctx, &info), 0);
	assert_false(info.emulated);
	assert_true(info.valid & GPREEMPT_DEVICE_DRIVER);
	assert_string_equal(info.driver_version, "5.18.13");
	gpreempt_unref(ctx);

	ctx = ctx_over("mi308x");
	assert_int_equal(gpreempt_get_device_info(ctx, &info), 0);
	assert_true(info.emulated);
	assert_false(info.valid & GPREEMPT_DEVICE_DRIVER);
	gpreempt_unref(ctx);
}

static void where_modules_must_be_signed_it_says_what_to_do(void **state)
{
	struct gpreempt_device_info info = { .size = sizeof(info) };
	struct gpreempt_level levels[4] = { { .size = sizeof(levels[0]) } };
	struct gpreempt_ctx *ctx = ctx_over("secure-boot");

	assert_int_equal(gpreempt_get_device_info(ctx, &info), 0);
	assert_true(info.valid & GPREEMPT_DEVICE_SECURE_BOOT);
	assert_true(info.secure_boot);
	assert_string_equal(info.lockdown, "integrity");
	assert_true(info.signed_modules_only);
	assert_int_equal(gpreempt_get_levels(ctx, levels, 4), 4);
	assert_string_equal(levels[0].level, "K3");
	assert_false(levels[0].available);
	assert_non_null(strstr(levels[0].reason, "Secure Boot, lockdown integrity"));
	assert_non_null(strstr(levels[0].reason, "mokutil --import /var/lib/dkms/mok.pub, and "
						 "restart")); /* to its end */
	gpreempt_unref(ctx);

	ctx = ctx_over("cpu-only");
	assert_int_equal(gpreempt_get_device_info(ctx, &info), 0);
	assert_false(info.valid & (GPREEMPT_DEVICE_SECURE_BOOT | GPREEMPT_DEVICE_LOCKDOWN));
	assert_false(info.signed_modules_only);
	assert_int_equal(gpreempt_get_levels(ctx, levels, 4), 4);
	assert_string_equal(levels[0].reason, "kernel extension: not loaded");
	gpreempt_unref(ctx);
}

static void what_to_do_is_said_to_its_end_without_secure_boot_too(void **state)
{
	struct gpreempt_level level = { .size = sizeof(level) };
	struct gpreempt_ctx *ctx = ctx_over("lockdown");

	assert_true(gpreempt_get_levels(ctx, &level, 1) > 1);
	assert_string_equal(level.level, "K3");
	assert_non_null(strstr(level.reason, "(signing enforced, lockdown confidentiality)"));
	assert_non_null(strstr(level.reason, "mok.pub, and restart"));
	gpreempt_unref(ctx);
}

static void no_gpu_is_an_empty_list(void **state)
{
	struct gpreempt_ctx *ctx = ctx_over("cpu-only");

	assert_int_equal(gpreempt_get_gpus(ctx, NULL, 0), 0);
	assert_int_equal(gpreempt_get_hqd_status(ctx, NULL, 0), 0);
	gpreempt_unref(ctx);
}

static void broken_trees_are_said_to_be_broken(void **state)
{
	static const char *const trees[] = { "garbage", "truncated" };

	for (size_t i = 0; i < ARRAY_SIZE(trees); i++) {
		struct gpreempt_ctx *ctx = ctx_over(trees[i]);

		assert_int_equal(gpreempt_get_gpus(ctx, NULL, 0), -EBADMSG);
		expect_nonsense(ctx);
		assert_int_equal(gpreempt_list_processes(ctx, NULL, 0), -EBADMSG);
		expect_nonsense(ctx);
		assert_int_equal(gpreempt_get_all_queues(ctx, NULL, NULL, 0), -EBADMSG);
		expect_nonsense(ctx);
		gpreempt_unref(ctx);
	}
}

/* ---- which descriptor is whose ---- */

#define PID 4242
#define GPU 16458

static void compare_to(struct gkfd_mqd *mqds, size_t n_mqds, const uint64_t *ring_bytes, size_t n,
		       struct gpreempt_queue *ret)
{
	struct gpreempt_ctx *ctx = ctx_over("mi308x");
	struct gkfd_mqds m = { .n = n_mqds, .mqds = mqds };
	struct gkfd_proc_queue ids[8] = { 0 };
	struct gkfd_proc proc = { .pid = PID, .n_queues = n, .queues = ids };

	for (size_t i = 0; i < n; i++)
		ids[i] = (struct gkfd_proc_queue){ .queue_id = (uint32_t)i,
						   .gpu_id = GPU,
						   .ring_bytes = ring_bytes[i] };
	assert_int_equal(queues_of_proc(ctx, &proc, &m, ret), 0);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(ret[i].queue_id, i);
		assert_int_equal(ret[i].gpu_id, GPU);
		assert_int_equal(ret[i].type, GPREEMPT_QUEUE_COMPUTE);
		assert_int_equal(ret[i].ring_bytes, ring_bytes[i]);
	}
	gpreempt_unref(ctx);
}

static struct gkfd_mqd mqd(uint64_t ring_base, uint64_t ring_bytes, uint32_t priority)
{
	return (struct gkfd_mqd){ .pid = PID,
				  .gpu_id = GPU,
				  .priority = priority,
				  .ring_base = ring_base,
				  .ring_bytes = ring_bytes };
}

static void a_queue_unlike_all_others_is_fully_known(void **state)
{
	struct gkfd_mqd mqds[] = { mqd(0x1000, 4096, 7), mqd(0x9000, 8192, 11) };
	const uint64_t sizes[] = { 8192, 4096 };
	struct gpreempt_queue q[2];

	compare_to(mqds, 2, sizes, 2, q);
	assert_true(q[0].valid & GPREEMPT_QUEUE_RING_BASE);
	assert_int_equal(q[0].ring_base, 0x9000);
	assert_int_equal(q[0].priority, 11);
	assert_int_equal(q[1].ring_base, 0x1000);
	assert_int_equal(q[1].priority, 7);
}

static void lookalikes_share_only_what_is_common(void **state)
{
	struct gkfd_mqd mqds[] = { mqd(0x1000, 4096, 7), mqd(0x9000, 4096, 7) };
	const uint64_t sizes[] = { 4096, 4096 };
	struct gpreempt_queue q[2];

	compare_to(mqds, 2, sizes, 2, q);
	for (int i = 0; i < 2; i++) {
		assert_false(q[i].valid & GPREEMPT_QUEUE_RING_BASE);
		assert_true(q[i].valid & GPREEMPT_QUEUE_PRIORITY);
		assert_int_equal(q[i].priority, 7);
	}
}

static void lookalikes_of_two_priorities_have_none(void **state)
{
	struct gkfd_mqd mqds[] = { mqd(0x1000, 4096, 0), mqd(0x9000, 4096, 15) };
	const uint64_t sizes[] = { 4096, 4096 };
	struct gpreempt_queue q[2];

	compare_to(mqds, 2, sizes, 2, q);
	assert_false(q[0].valid & GPREEMPT_QUEUE_PRIORITY);
	assert_false(q[1].valid & GPREEMPT_QUEUE_PRIORITY);
}

static void a_descriptor_too_few_or_too_many_proves_nothing(void **state)
{
	struct gkfd_mqd mqds[] = { mqd(0x1000, 4096, 7), mqd(0x9000, 4096, 7) };
	const uint64_t sizes[] = { 4096, 4096, 4096 };
	struct gpreempt_queue q[3];

	compare_to(mqds, 2, sizes, 3, q);
	assert_int_equal(q[0].valid, 0);
	compare_to(mqds, 2, sizes, 1, q);
	assert_int_equal(q[0].valid, 0);
}

static void a_queue_that_copies_is_told_from_one_of_compute(void **state)
{
	struct gkfd_mqd one = mqd(0x1000, 4096, 7);
	struct gkfd_mqds m = { .n = 1, .mqds = &one };
	struct gkfd_proc_queue ids[] = {
		{ .queue_id = 0, .gpu_id = GPU, .ring_bytes = 4096 },
		{ .queue_id = 1,
		  .gpu_id = GPU,
		  .type = KFD_IOC_QUEUE_TYPE_SDMA,
		  .ring_bytes = 4096 },
	};
	struct gkfd_proc proc = { .pid = PID, .n_queues = 2, .queues = ids };
	struct gpreempt_ctx *ctx = ctx_over("mi308x");
	struct gpreempt_queue q[2];

	assert_int_equal(queues_of_proc(ctx, &proc, &m, q), 0);
	assert_true(q[0].valid & GPREEMPT_QUEUE_PRIORITY);
	assert_int_equal(q[1].type, GPREEMPT_QUEUE_SDMA);
	assert_int_equal(q[1].valid, 0);
	gpreempt_unref(ctx);
}

static void classes_follow_priorities(void **state)
{
	struct gkfd_mqd low[] = { mqd(1, 1, 0), mqd(2, 1, 6) };
	struct gkfd_mqd medium[] = { mqd(1, 1, 0), mqd(2, 1, 7) };
	struct gkfd_mqd high[] = { mqd(1, 1, 0), mqd(2, 1, 11) };

	assert_int_equal(mqds_class(low, 2, 2), GPREEMPT_CLASS_OFFLINE);
	assert_int_equal(mqds_class(low, 2, 3), GPREEMPT_CLASS_UNKNOWN);
	assert_int_equal(mqds_class(medium, 2, 2), GPREEMPT_CLASS_UNKNOWN);
	assert_int_equal(mqds_class(high, 2, 2), GPREEMPT_CLASS_ONLINE);
	assert_int_equal(mqds_class(high, 2, 3), GPREEMPT_CLASS_ONLINE);
	assert_int_equal(mqds_class(NULL, 0, 0), GPREEMPT_CLASS_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_machine_without_debugfs_leaves_classes_unknown),
		cmocka_unit_test(slots_are_read_never_assumed),
		cmocka_unit_test(what_an_old_kernel_does_not_tell_is_not_valid),
		cmocka_unit_test(a_driver_that_drives_no_pci_device_drives_no_gpu),
		cmocka_unit_test(where_modules_must_be_signed_it_says_what_to_do),
		cmocka_unit_test(what_to_do_is_said_to_its_end_without_secure_boot_too),
		cmocka_unit_test(no_gpu_is_an_empty_list),
		cmocka_unit_test(broken_trees_are_said_to_be_broken),
		cmocka_unit_test(a_queue_unlike_all_others_is_fully_known),
		cmocka_unit_test(lookalikes_share_only_what_is_common),
		cmocka_unit_test(lookalikes_of_two_priorities_have_none),
		cmocka_unit_test(a_descriptor_too_few_or_too_many_proves_nothing),
		cmocka_unit_test(a_queue_that_copies_is_told_from_one_of_compute),
		cmocka_unit_test(classes_follow_priorities),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
