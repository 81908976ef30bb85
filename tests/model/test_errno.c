/* SPDX-License-Identifier: MIT */
/* Every refusal by its number. */
#include <errno.h>

#include "abi/kfd_memory.h"
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

/* ---- runtime, queues ---- */

static void runtime_enable_twice_is_ebusy_and_after_a_queue_eexist(void **state)
{
	struct rig *r = *state;

	rig_target(r, 0);
	assert_int_equal(model_runtime_enable(r->m, TARGET), -EBUSY);
	rig_queue(r, OTHER, 0, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	assert_int_equal(model_runtime_enable(r->m, OTHER), -EEXIST);
}

/* Arguments of a queue that would work, with memory of its own. */
static struct kfd_ioctl_create_queue_args good_args(struct rig *r)
{
	struct kfd_ioctl_create_queue_args args = {
		.gpu_id = model_gpu_id(r->m, 0),
		.queue_type = KFD_IOC_QUEUE_TYPE_COMPUTE_AQL,
		.queue_percentage = 100,
		.ring_size = 8192,
		.eop_buffer_size = 4096,
		.ctx_save_restore_size = 12214272,
		.ctl_stack_size = 8192,
	};

	args.ring_base_address = model_mem_map(r->m, TARGET, 8192);
	args.read_pointer_address = model_mem_map(r->m, TARGET, 4096);
	args.write_pointer_address = model_mem_map(r->m, TARGET, 4096);
	args.eop_buffer_address = model_mem_map(r->m, TARGET, 4096);
	args.ctx_save_restore_address = model_mem_map(r->m, TARGET, (12214272 + 800 * 32) * 4);
	return args;
}

static int create(struct rig *r, struct kfd_ioctl_create_queue_args args)
{
	return rig_ioctl(r, r->target, AMDKFD_IOC_CREATE_QUEUE, &args);
}

static void create_queue_checks_values_before_the_gpu(void **state)
{
	struct rig *r = *state;
	struct kfd_ioctl_create_queue_args good, a;

	rig_target(r, 0);
	good = good_args(r);
	good.gpu_id = 1;
	a = good;
	a.queue_percentage = 101;
	assert_int_equal(create(r, a), -EINVAL);
	a = good;
	a.queue_priority = 16;
	assert_int_equal(create(r, a), -EINVAL);
	a = good;
	a.ring_base_address = 1ull << 63;
	assert_int_equal(create(r, a), -EFAULT);
	a = good;
	a.ring_size = 3000;
	assert_int_equal(create(r, a), -EINVAL);
	a = good;
	a.write_pointer_address = UINT64_MAX;
	assert_int_equal(create(r, a), -EFAULT);
	a = good;
	a.queue_type = 5;
	assert_int_equal(create(r, a), -524);
	assert_int_equal(create(r, good), -EINVAL);
	good.gpu_id = model_gpu_id(r->m, 0);
	assert_int_equal(create(r, good), -ESRCH);
}

static void create_queue_checks_buffers_to_the_page(void **state)
{
	struct rig *r = *state;
	struct kfd_ioctl_create_queue_args good, a;

	rig_target(r, 0);
	assert_int_equal(model_vm_acquire(r->m, TARGET, 0), 0);
	good = good_args(r);
	a = good;
	a.ring_size = 4096;
	assert_int_equal(create(r, a), -EINVAL);
	a = good;
	a.ring_base_address += 4096;
	assert_int_equal(create(r, a), -EINVAL);
	a = good;
	a.ring_base_address = 0;
	assert_int_equal(create(r, a), -EINVAL);
	a = good;
	a.read_pointer_address = 0x1000;
	assert_int_equal(create(r, a), -EINVAL);
	a = good;
	a.ctl_stack_size = 4096;
	assert_int_equal(create(r, a), -EINVAL);
	a = good;
	a.ctx_save_restore_size--;
	assert_int_equal(create(r, a), -EINVAL);
	a = good;
	a.ctx_save_restore_size += 4096;
	assert_int_equal(create(r, a), -EINVAL);
	a = good;
	a.eop_buffer_size = 2048;
	assert_int_equal(create(r, a), -EINVAL);
	a = good;
	a.queue_type = KFD_IOC_QUEUE_TYPE_SDMA_BY_ENG_ID;
	a.sdma_engine_id = 8;
	assert_int_equal(create(r, a), -EINVAL);
	assert_int_equal(create(r, good), 0);
}

static void a_process_may_have_255_queues_on_a_gpu(void **state)
{
	struct rig *r = *state;
	struct model_queue_spec spec = {
		.type = KFD_IOC_QUEUE_TYPE_COMPUTE_AQL,
		.ring_packets = 64,
		.percent_zero = 1,
	};
	uint32_t id;

	for (uint32_t i = 0; i < 255; i++)
		assert_int_equal(model_queue_create(r->m, TARGET, &spec, &id), 0);
	assert_int_equal(model_queue_create(r->m, TARGET, &spec, &id), -ENOSPC);
}

static void sdma_queues_run_out(void **state)
{
	struct rig *r = *state;
	struct model_queue_spec spec = { .type = KFD_IOC_QUEUE_TYPE_SDMA, .ring_packets = 64 };
	uint32_t id;

	for (uint32_t i = 0; i < 16; i++)
		assert_int_equal(model_queue_create(r->m, TARGET, &spec, &id), 0);
	assert_int_equal(model_queue_create(r->m, TARGET, &spec, &id), -ENOMEM);
}

static void unknown_queues_have_a_number_each_call_likes(void **state)
{
	struct rig *r = *state;
	uint32_t mask = 1;
	struct kfd_ioctl_update_queue_args update = { .queue_id = 5 };
	struct kfd_ioctl_set_cu_mask_args cu = {
		.queue_id = 5, .num_cu_mask = 32, .cu_mask_ptr = (uintptr_t)&mask,
	};
	struct kfd_ioctl_get_queue_wave_state_args wave = { .queue_id = 5 };
	struct kfd_ioctl_alloc_queue_gws_args gws = { .queue_id = 5, .num_gws = 64 };

	rig_target(r, 0);
	assert_int_equal(rig_destroy(r, r->target, 5), -EINVAL);
	assert_int_equal(rig_ioctl(r, r->target, AMDKFD_IOC_UPDATE_QUEUE, &update), -EFAULT);
	assert_int_equal(rig_ioctl(r, r->target, AMDKFD_IOC_SET_CU_MASK, &cu), -EFAULT);
	assert_int_equal(rig_ioctl(r, r->target, AMDKFD_IOC_GET_QUEUE_WAVE_STATE, &wave), -EFAULT);
	assert_int_equal(rig_ioctl(r, r->target, AMDKFD_IOC_ALLOC_QUEUE_GWS, &gws), -EINVAL);
}

static void cu_masks_and_gws(void **state)
{
	struct rig *r = *state;
	uint32_t mask[64] = { 1 };
	struct kfd_ioctl_set_cu_mask_args cu = { .cu_mask_ptr = (uintptr_t)mask };
	struct kfd_ioctl_alloc_queue_gws_args gws = { .num_gws = 64 };

	rig_target(r, 2);
	assert_int_equal(rig_ioctl(r, r->target, AMDKFD_IOC_SET_CU_MASK, &cu), -EINVAL);
	cu.num_cu_mask = 33;
	assert_int_equal(rig_ioctl(r, r->target, AMDKFD_IOC_SET_CU_MASK, &cu), -EINVAL);
	cu.num_cu_mask = 2048; /* cut to 1024 */
	assert_int_equal(rig_ioctl(r, r->target, AMDKFD_IOC_SET_CU_MASK, &cu), 0);
	cu.cu_mask_ptr = BAD_POINTER;
	assert_int_equal(rig_ioctl(r, r->target, AMDKFD_IOC_SET_CU_MASK, &cu), -EFAULT);
	assert_int_equal(rig_ioctl(r, r->target, AMDKFD_IOC_ALLOC_QUEUE_GWS, &gws), 0);
	gws.queue_id = 1;
	assert_int_equal(rig_ioctl(r, r->target, AMDKFD_IOC_ALLOC_QUEUE_GWS, &gws), -EBUSY);
	gws.num_gws = 0;
	assert_int_equal(rig_ioctl(r, r->target, AMDKFD_IOC_ALLOC_QUEUE_GWS, &gws), 0);
	assert_int_equal(rig_ioctl(r, r->target, AMDKFD_IOC_ALLOC_QUEUE_GWS, &gws), -EINVAL);
}

static void wave_state_of_an_active_queue_is_einval(void **state)
{
	struct rig *r = *state;
	uint32_t id = 0;
	struct kfd_queue_snapshot_entry entry;
	struct kfd_ioctl_get_queue_wave_state_args wave = { 0 };

	rig_attached(r, 1);
	rig_snapshot(r, r->daemon, TARGET, 0, &entry);
	wave.ctl_stack_address = entry.ctx_save_restore_address;
	rig_busy(r, TARGET, 0);
	assert_int_equal(rig_ioctl(r, r->target, AMDKFD_IOC_GET_QUEUE_WAVE_STATE, &wave), -EINVAL);
	assert_int_equal(rig_suspend(r, r->daemon, TARGET, &id, 1, 1), 1);
	assert_int_equal(rig_ioctl(r, r->target, AMDKFD_IOC_GET_QUEUE_WAVE_STATE, &wave), 0);
	assert_int_equal(wave.save_area_used_size, 20 * 610304);
	assert_int_equal(wave.ctl_stack_used_size, 20 * 32 * 8);
	wave.ctl_stack_address = BAD_POINTER;
	assert_int_equal(rig_ioctl(r, r->target, AMDKFD_IOC_GET_QUEUE_WAVE_STATE, &wave), -EFAULT);
}

static void update_queue_arguments(void **state)
{
	struct rig *r = *state;
	struct kfd_ioctl_update_queue_args a = { .ring_base_address = 0x5000, .ring_size = 4096 };

	rig_target(r, 1);
	assert_int_equal(rig_ioctl(r, r->target, AMDKFD_IOC_UPDATE_QUEUE, &a), -EFAULT);
	a.queue_percentage = 101;
	assert_int_equal(rig_ioctl(r, r->target, AMDKFD_IOC_UPDATE_QUEUE, &a), -EINVAL);
	a.queue_percentage = 100;
	a.queue_priority = 16;
	assert_int_equal(rig_ioctl(r, r->target, AMDKFD_IOC_UPDATE_QUEUE, &a), -EINVAL);
	a.queue_priority = 0;
	a.ring_size = 5000;
	assert_int_equal(rig_ioctl(r, r->target, AMDKFD_IOC_UPDATE_QUEUE, &a), -EINVAL);
	a.ring_size = 0;
	a.ring_base_address = 0;
	assert_int_equal(rig_ioctl(r, r->target, AMDKFD_IOC_UPDATE_QUEUE, &a), 0);
	assert_false(rig_queue_stats(r, 0).active);
}

static void a_process_that_lost_queues_to_a_reset_is_refused_updates(void **state)
{
	struct rig *r = *state;
	struct model_fault fault = { .kind = MODEL_FAULT_DEAD_SCHEDULER };
	uint32_t id = 0;

	rig_attached(r, 1);
	model_fault_set(r->m, &fault);
	assert_int_equal(rig_suspend(r, r->daemon, TARGET, &id, 1, 1), 0);
	assert_int_equal(rig_update(r, r->target, 0, 100), -EACCES);
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
		T(runtime_enable_twice_is_ebusy_and_after_a_queue_eexist),
		T(create_queue_checks_values_before_the_gpu),
		T(create_queue_checks_buffers_to_the_page),
		T(a_process_may_have_255_queues_on_a_gpu),
		T(sdma_queues_run_out),
		T(unknown_queues_have_a_number_each_call_likes),
		T(cu_masks_and_gws),
		T(wave_state_of_an_active_queue_is_einval),
		T(update_queue_arguments),
		T(a_process_that_lost_queues_to_a_reset_is_refused_updates),
		T(criu_needs_rights_and_its_own_order),
		T(ptrace_refusals),
	};

	return cmocka_run_group_tests_name("model/errno", tests, NULL, NULL) != 0;
}
