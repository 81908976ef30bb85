/* SPDX-License-Identifier: MIT */
/* Every refusal by its number. */
#include <errno.h>

#include "tests/model/test_driver_rig.h"
#include "util/macros.h"

static int op(struct rig *r, struct model_task who, pid_t pid, uint32_t number)
{
	struct kfd_ioctl_dbg_trap_args args = { 0 };

	return rig_dbg(r, who, pid, number, &args);
}

/* ---- DBG_TRAP: who ---- */

static void pid_zero_and_pids_of_nobody_are_esrch(void **state)
{
	struct rig *r = *state;

	for (uint32_t i = 0; i <= 16; i++) {
		assert_int_equal(op(r, r->daemon, 0, i), -ESRCH);
		assert_int_equal(op(r, r->daemon, 999, i), -ESRCH);
		assert_int_equal(op(r, r->daemon, -1, i), -ESRCH);
	}
}

static void a_process_without_kfd_is_esrch_unless_its_tracer_enables(void **state)
{
	struct rig *r = *state;

	assert_int_equal(op(r, r->daemon, TARGET, KFD_IOC_DBG_TRAP_GET_QUEUE_SNAPSHOT), -ESRCH);
	assert_int_equal(rig_enable(r, r->daemon, TARGET, 0, NULL), -ESRCH);
	model_ptrace_seize(r->m, r->daemon, TARGET);
	assert_int_equal(rig_snapshot(r, r->daemon, TARGET, 0, NULL), -ESRCH);
	assert_int_equal(rig_enable(r, r->daemon, TARGET, 0, NULL), 0);
	assert_int_equal(rig_snapshot(r, r->daemon, TARGET, 0, NULL), 0);
}

static void without_ptrace_everything_is_eperm(void **state)
{
	struct rig *r = *state;

	rig_target(r, 0);
	for (uint32_t i = 0; i <= 15; i++)
		assert_int_equal(op(r, r->daemon, TARGET, i), -EPERM);
}

static void another_thread_than_the_tracer_is_eperm(void **state)
{
	struct rig *r = *state;
	struct model_task sibling = { DAEMON, DAEMON + 1 };

	rig_target(r, 0);
	model_ptrace_seize(r->m, r->daemon, TARGET);
	assert_int_equal(rig_enable(r, sibling, TARGET, 0, NULL), -EPERM);
	assert_int_equal(rig_enable(r, r->daemon, TARGET, 0, NULL), 0);
	assert_int_equal(rig_snapshot(r, sibling, TARGET, 0, NULL), 0);
}

static void the_debugger_keeps_its_rights_after_detach(void **state)
{
	struct rig *r = *state;

	rig_attached(r, 1);
	model_ptrace_detach(r->m, r->daemon, TARGET);
	assert_int_equal(rig_snapshot(r, r->daemon, TARGET, 0, NULL), 1);
	assert_int_equal(rig_disable(r, r->daemon, TARGET), 0);
}

static void older_drivers_need_the_live_tracer_for_all_but_disable(void **state)
{
	struct rig *r = *state;
	struct model_task sibling = { DAEMON, DAEMON + 1 };
	uint32_t id = 0;

	rig_attached(r, 1);
	assert_int_equal(rig_snapshot(r, sibling, TARGET, 0, NULL), -EPERM);
	model_ptrace_detach(r->m, r->daemon, TARGET);
	assert_int_equal(rig_snapshot(r, r->daemon, TARGET, 0, NULL), -EPERM);
	assert_int_equal(rig_suspend(r, r->daemon, TARGET, &id, 1, 1), -EPERM);
	assert_int_equal(rig_disable(r, r->daemon, TARGET), 0);
}

static void disable_without_ptrace_is_eperm_on_the_current_driver(void **state)
{
	struct rig *r = *state;

	rig_attached(r, 0);
	assert_int_equal(rig_disable(r, r->second, TARGET), -EPERM);
}

static void any_thread_id_of_the_target_names_it(void **state)
{
	struct rig *r = *state;
	struct model_task worker = { TARGET, TARGET + 7 };

	rig_attached(r, 1);
	assert_int_equal(rig_snapshot(r, r->daemon, TARGET + 7, 0, NULL), -ESRCH);
	assert_int_equal(model_kfd_open(r->m, worker), 0);
	assert_int_equal(rig_snapshot(r, r->daemon, TARGET + 7, 0, NULL), 1);
}

/* ---- DBG_TRAP: when ---- */

static void before_enable_every_other_op_is_einval(void **state)
{
	struct rig *r = *state;

	rig_target(r, 0);
	model_ptrace_seize(r->m, r->daemon, TARGET);
	for (uint32_t i = 1; i <= 20; i++)
		assert_int_equal(op(r, r->daemon, TARGET, i), -EINVAL);
	assert_int_equal(op(r, r->target, TARGET, KFD_IOC_DBG_TRAP_DISABLE), -EINVAL);
}

static void already_enabled_is_ealready(void **state)
{
	struct rig *r = *state;

	rig_attached(r, 0);
	assert_int_equal(rig_enable(r, r->daemon, TARGET, 0, NULL), -EALREADY);
	assert_int_equal(rig_enable(r, r->target, TARGET, 0, NULL), -EALREADY);
}

static void hardware_ops_without_runtime_are_eperm(void **state)
{
	static const uint32_t hardware[] = { 4, 5, 6, 7, 8, 9, 10 };
	struct rig *r = *state;

	model_kfd_open(r->m, r->target);
	assert_int_equal(rig_enable(r, r->target, TARGET, 0, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(hardware); i++)
		assert_int_equal(op(r, r->target, TARGET, hardware[i]), -EPERM);
	assert_int_equal(rig_snapshot(r, r->target, TARGET, 0, NULL), 0);
	assert_int_equal(rig_disable(r, r->target, TARGET), 0);
}

static void an_unknown_op_is_einval(void **state)
{
	struct rig *r = *state;

	rig_attached(r, 0);
	assert_int_equal(op(r, r->daemon, TARGET, 15), -EINVAL);
	assert_int_equal(op(r, r->daemon, TARGET, UINT32_MAX), -EINVAL);
}

/* ---- DBG_TRAP: arguments ---- */

static void enable_with_a_bad_descriptor_is_ebadf(void **state)
{
	struct rig *r = *state;
	struct kfd_ioctl_dbg_trap_args args = { .enable = { .dbg_fd = UINT32_MAX } };

	rig_target(r, 0);
	assert_int_equal(rig_dbg(r, r->target, TARGET, KFD_IOC_DBG_TRAP_ENABLE, &args), -EBADF);
	assert_int_equal(op(r, r->target, TARGET, KFD_IOC_DBG_TRAP_DISABLE), -EINVAL);
}

static void enable_with_a_bad_info_pointer_is_efault_and_undone(void **state)
{
	struct rig *r = *state;
	struct kfd_ioctl_dbg_trap_args args = {
		.enable = {
			.rinfo_ptr = BAD_POINTER,
			.rinfo_size = 16,
			.dbg_fd = (uint32_t)r->pipe[1],
		},
	};

	rig_target(r, 0);
	model_ptrace_seize(r->m, r->daemon, TARGET);
	assert_int_equal(rig_dbg(r, r->daemon, TARGET, KFD_IOC_DBG_TRAP_ENABLE, &args), -EFAULT);
	assert_int_equal(args.enable.rinfo_size, 16);
	assert_int_equal(op(r, r->daemon, TARGET, KFD_IOC_DBG_TRAP_DISABLE), -EINVAL);
	assert_int_equal(rig_enable(r, r->daemon, TARGET, 0, NULL), 0);
}

static void enable_copies_no_more_than_asked_and_says_16(void **state)
{
	struct rig *r = *state;
	struct kfd_runtime_info rinfo = { .runtime_state = 77, .ttmp_setup = 77 };
	struct kfd_ioctl_dbg_trap_args args = {
		.enable = {
			.rinfo_ptr = (uintptr_t)&rinfo,
			.rinfo_size = 12,
			.dbg_fd = (uint32_t)r->pipe[1],
		},
	};

	rig_target(r, 0);
	assert_int_equal(rig_dbg(r, r->target, TARGET, KFD_IOC_DBG_TRAP_ENABLE, &args), 0);
	assert_int_equal(args.enable.rinfo_size, 16);
	assert_int_equal(rinfo.runtime_state, DEBUG_RUNTIME_STATE_ENABLED);
	assert_int_equal(rinfo.ttmp_setup, 77);
}

static void suspend_arguments(void **state)
{
	struct rig *r = *state;
	uint32_t ids[1025] = { 0 };

	rig_attached(r, 1);
	assert_int_equal(rig_suspend(r, r->daemon, TARGET, ids, 1025, 1), -EINVAL);
	assert_int_equal(rig_suspend(r, r->daemon, TARGET, NULL, 1, 1), -EINVAL);
	assert_int_equal(rig_suspend(r, r->daemon, TARGET, NULL, 0, 1), 0);
	assert_int_equal(rig_suspend(r, r->daemon, TARGET, (void *)BAD_POINTER, 1, 1), -EFAULT);
	assert_int_equal(rig_suspend(r, r->daemon, TARGET, ids, 1024, 1), 1);
	assert_int_equal(ids[0], 0);
	assert_int_equal(ids[1], INVALID_BIT);
}

static void resume_arguments(void **state)
{
	struct rig *r = *state;
	uint32_t ids[1025] = { 0 };

	rig_attached(r, 1);
	assert_int_equal(rig_resume(r, r->daemon, TARGET, ids, 1025), -EINVAL);
	assert_int_equal(rig_resume(r, r->daemon, TARGET, (void *)BAD_POINTER, 1), -EFAULT);
	assert_int_equal(rig_resume(r, r->daemon, TARGET, ids, 0), 0);
	assert_int_equal(rig_resume(r, r->daemon, TARGET, NULL, 5), 1);
}

static void queue_snapshot_arguments(void **state)
{
	struct rig *r = *state;
	struct kfd_ioctl_dbg_trap_args args = { .queue_snapshot = { .num_queues = 7 } };

	rig_attached(r, 3);
	assert_int_equal(rig_dbg(r, r->daemon, TARGET, 13, &args), -EINVAL);
	assert_int_equal(args.queue_snapshot.num_queues, 0);
	args.queue_snapshot.entry_size = 100;
	args.queue_snapshot.num_queues = 0;
	assert_int_equal(rig_dbg(r, r->daemon, TARGET, 13, &args), 0);
	assert_int_equal(args.queue_snapshot.num_queues, 3);
	assert_int_equal(args.queue_snapshot.entry_size, 64);
	args.queue_snapshot.snapshot_buf_ptr = BAD_POINTER;
	args.queue_snapshot.num_queues = 2;
	assert_int_equal(rig_dbg(r, r->daemon, TARGET, 13, &args), -EFAULT);
	assert_int_equal(args.queue_snapshot.num_queues, 0);
}

static void a_snapshot_entry_is_cut_to_the_stride(void **state)
{
	struct rig *r = *state;
	unsigned char buf[3 * 48];
	struct kfd_ioctl_dbg_trap_args args = {
		.queue_snapshot = {
			.snapshot_buf_ptr = (uintptr_t)buf,
			.num_queues = 3,
			.entry_size = 48,
		},
	};
	const struct kfd_queue_snapshot_entry *second = (const void *)(buf + 48);

	rig_attached(r, 3);
	assert_int_equal(rig_dbg(r, r->daemon, TARGET, 13, &args), 0);
	assert_int_equal(args.queue_snapshot.entry_size, 48);
	assert_int_equal(second->queue_id, 1);
	assert_int_equal(second->gpu_id, model_gpu_id(r->m, 0));
}

static void device_snapshot_arguments(void **state)
{
	struct rig *r = *state;
	struct kfd_dbg_device_info_entry entries[3];
	struct kfd_ioctl_dbg_trap_args args = { .device_snapshot = { .entry_size = 120 } };

	rig_attached(r, 0);
	assert_int_equal(rig_dbg(r, r->daemon, TARGET, 14, &args), -EINVAL);
	args.device_snapshot.snapshot_buf_ptr = BAD_POINTER;
	args.device_snapshot.num_devices = 1;
	assert_int_equal(rig_dbg(r, r->daemon, TARGET, 14, &args), -EFAULT);
	args.device_snapshot.snapshot_buf_ptr = (uintptr_t)entries;
	args.device_snapshot.num_devices = 3;
	assert_int_equal(rig_dbg(r, r->daemon, TARGET, 14, &args), 0);
	assert_int_equal(args.device_snapshot.num_devices, 2);
	assert_int_equal(entries[1].gpu_id, model_gpu_id(r->m, 1));
	assert_int_equal(entries[0].num_xcc, 4);
	assert_int_equal(entries[0].simd_count, 320);
	assert_int_equal(entries[0].gfx_target_version, 90402);
}

static void events_and_exception_info(void **state)
{
	struct rig *r = *state;
	struct kfd_runtime_info info;
	struct kfd_ioctl_dbg_trap_args args = { 0 };

	rig_attached(r, 1);
	assert_int_equal(op(r, r->daemon, TARGET, KFD_IOC_DBG_TRAP_QUERY_DEBUG_EVENT), -EAGAIN);
	assert_int_equal(op(r, r->daemon, TARGET, KFD_IOC_DBG_TRAP_QUERY_EXCEPTION_INFO), -EINVAL);
	args.query_exception_info.info_ptr = (uintptr_t)&info;
	args.query_exception_info.info_size = sizeof(info);
	args.query_exception_info.exception_code = EC_PROCESS_RUNTIME;
	assert_int_equal(rig_dbg(r, r->daemon, TARGET, 12, &args), -ENODATA);
	args.query_exception_info.exception_code = EC_QUEUE_NEW;
	args.query_exception_info.source_id = 5;
	assert_int_equal(rig_dbg(r, r->daemon, TARGET, 12, &args), -EINVAL);
	args.query_exception_info.source_id = 0;
	assert_int_equal(rig_dbg(r, r->daemon, TARGET, 12, &args), -ENODATA);
	args.query_exception_info.exception_code = EC_DEVICE_QUEUE_DELETE;
	assert_int_equal(rig_dbg(r, r->daemon, TARGET, 12, &args), -EINVAL);
	args.query_exception_info.exception_code = 40;
	assert_int_equal(rig_dbg(r, r->daemon, TARGET, 12, &args), -EINVAL);
}

static void launch_modes_overrides_flags_and_watches(void **state)
{
	struct rig *r = *state;
	struct kfd_ioctl_dbg_trap_args args = { .launch_mode = { .launch_mode = 2 } };

	rig_attached(r, 0);
	assert_int_equal(rig_dbg(r, r->daemon, TARGET, 5, &args), -EINVAL);
	args.launch_mode.launch_mode = KFD_DBG_TRAP_WAVE_LAUNCH_MODE_HALT;
	assert_int_equal(rig_dbg(r, r->daemon, TARGET, 5, &args), 0);

	args = (struct kfd_ioctl_dbg_trap_args){ .launch_override = { .override_mode = 2 } };
	assert_int_equal(rig_dbg(r, r->daemon, TARGET, 4, &args), -EPERM);
	args.launch_override.override_mode = 1;
	args.launch_override.support_request_mask = 1u << 20;
	assert_int_equal(rig_dbg(r, r->daemon, TARGET, 4, &args), -EACCES);
	assert_int_equal(args.launch_override.support_request_mask, 0xc00001ff);
	args.launch_override.support_request_mask = 1;
	args.launch_override.enable_mask = 1;
	assert_int_equal(rig_dbg(r, r->daemon, TARGET, 4, &args), 0);
	assert_int_equal(args.launch_override.enable_mask, 0);

	args = (struct kfd_ioctl_dbg_trap_args){ .set_flags = { .flags = 1 } };
	assert_int_equal(rig_dbg(r, r->daemon, TARGET, 10, &args), 0);
	assert_int_equal(args.set_flags.flags, 0);
	args.set_flags.flags = 2;
	assert_int_equal(rig_dbg(r, r->daemon, TARGET, 10, &args), -EACCES);
	assert_int_equal(args.set_flags.flags, 1);
}

static void watch_points_are_four_per_gpu(void **state)
{
	struct rig *r = *state;
	struct kfd_ioctl_dbg_trap_args args = { 0 };

	rig_attached(r, 0);
	assert_int_equal(rig_dbg(r, r->daemon, TARGET, 8, &args), -ENODEV);
	for (uint32_t i = 0; i < 4; i++) {
		args.set_node_address_watch.gpu_id = model_gpu_id(r->m, 0);
		assert_int_equal(rig_dbg(r, r->daemon, TARGET, 8, &args), 0);
		assert_int_equal(args.set_node_address_watch.id, i);
	}
	assert_int_equal(rig_dbg(r, r->daemon, TARGET, 8, &args), -ENOMEM);
	args.clear_node_address_watch.gpu_id = model_gpu_id(r->m, 1);
	args.clear_node_address_watch.id = 0;
	assert_int_equal(rig_dbg(r, r->daemon, TARGET, 9, &args), -EINVAL);
	args.clear_node_address_watch.gpu_id = model_gpu_id(r->m, 0);
	assert_int_equal(rig_dbg(r, r->daemon, TARGET, 9, &args), 0);
	args.clear_node_address_watch.id = 4;
	assert_int_equal(rig_dbg(r, r->daemon, TARGET, 9, &args), -EINVAL);
}

static void a_memory_violation_is_sent_to_a_known_gpu_only(void **state)
{
	struct rig *r = *state;
	struct kfd_ioctl_dbg_trap_args args = {
		.send_runtime_event = { .exception_mask = KFD_EC_MASK(EC_DEVICE_MEMORY_VIOLATION) },
	};

	rig_attached(r, 0);
	assert_int_equal(rig_dbg(r, r->daemon, TARGET, 2, &args), -ENODEV);
	args.send_runtime_event.gpu_id = model_gpu_id(r->m, 1);
	assert_int_equal(rig_dbg(r, r->daemon, TARGET, 2, &args), 0);
}

/* ---- CRIU ---- */

static void criu_needs_rights_and_its_own_order(void **state)
{
	struct rig *r = *state;
	struct kfd_ioctl_criu_args a = { .op = KFD_CRIU_OP_UNPAUSE };

	rig_target(r, 1);
	assert_int_equal(rig_ioctl(r, r->target, AMDKFD_IOC_CRIU_OP, &a), -EACCES);
	assert_int_equal(model_ioctl(r->m, r->daemon, TARGET, AMDKFD_IOC_CRIU_OP, &a), -EBADF);
	model_ptrace_seize(r->m, r->daemon, TARGET);
	assert_int_equal(model_ioctl(r->m, r->daemon, TARGET, AMDKFD_IOC_CRIU_OP, &a), -EINVAL);
	a.op = KFD_CRIU_OP_CHECKPOINT;
	assert_int_equal(model_ioctl(r->m, r->daemon, TARGET, AMDKFD_IOC_CRIU_OP, &a), -EINVAL);
	a.op = 9;
	assert_int_equal(model_ioctl(r->m, r->daemon, TARGET, AMDKFD_IOC_CRIU_OP, &a), -EINVAL);
	a.op = KFD_CRIU_OP_RESUME;
	a.pid = 999;
	assert_int_equal(model_ioctl(r->m, r->daemon, TARGET, AMDKFD_IOC_CRIU_OP, &a), -ESRCH);
}

static void ptrace_refusals(void **state)
{
	struct rig *r = *state;
	struct model_task other = { OTHER, OTHER };

	assert_int_equal(model_ptrace_seize(r->m, other, TARGET), -EPERM);
	assert_int_equal(model_ptrace_seize(r->m, r->daemon, 999), -ESRCH);
	assert_int_equal(model_ptrace_seize(r->m, r->daemon, DAEMON), -EPERM);
	assert_int_equal(model_ptrace_seize(r->m, r->daemon, TARGET), 0);
	assert_int_equal(model_ptrace_seize(r->m, r->second, TARGET), -EPERM);
	assert_int_equal(model_ptrace_detach(r->m, r->second, TARGET), -ESRCH);
	assert_int_equal(model_ptrace_detach(r->m, r->daemon, TARGET), 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(pid_zero_and_pids_of_nobody_are_esrch),
		T(a_process_without_kfd_is_esrch_unless_its_tracer_enables),
		T(without_ptrace_everything_is_eperm),
		T(another_thread_than_the_tracer_is_eperm),
		T(the_debugger_keeps_its_rights_after_detach),
		cmocka_unit_test_setup_teardown(
			older_drivers_need_the_live_tracer_for_all_but_disable,
			rig_setup_old_permission, rig_teardown),
		T(disable_without_ptrace_is_eperm_on_the_current_driver),
		T(any_thread_id_of_the_target_names_it),
		T(before_enable_every_other_op_is_einval),
		T(already_enabled_is_ealready),
		T(hardware_ops_without_runtime_are_eperm),
		T(an_unknown_op_is_einval),
		T(enable_with_a_bad_descriptor_is_ebadf),
		T(enable_with_a_bad_info_pointer_is_efault_and_undone),
		T(enable_copies_no_more_than_asked_and_says_16),
		T(suspend_arguments),
		T(resume_arguments),
		T(queue_snapshot_arguments),
		T(a_snapshot_entry_is_cut_to_the_stride),
		T(device_snapshot_arguments),
		T(events_and_exception_info),
		T(launch_modes_overrides_flags_and_watches),
		T(watch_points_are_four_per_gpu),
		T(a_memory_violation_is_sent_to_a_known_gpu_only),
		T(criu_needs_rights_and_its_own_order),
		T(ptrace_refusals),
	};

	return cmocka_run_group_tests_name("model/errno", tests, NULL, NULL) != 0;
}
