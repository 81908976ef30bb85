/* SPDX-License-Identifier: MIT */
/* What a debugger hears, in what order, and who is told. */
#include <errno.h>

#include "tests/model/test_driver_rig.h"
#include "util/macros.h"

static int query(struct rig *r, uint64_t clear,
		 struct kfd_ioctl_dbg_trap_query_debug_event_args *ret)
{
	struct kfd_ioctl_dbg_trap_args args = { .query_debug_event = { .exception_mask = clear } };
	int result = rig_dbg(r, r->daemon, TARGET, KFD_IOC_DBG_TRAP_QUERY_DEBUG_EVENT, &args);

	*ret = args.query_debug_event;
	return result;
}

static void queues_come_first_newest_ahead_then_devices_then_the_process(void **state)
{
	struct rig *r = *state;
	struct kfd_ioctl_dbg_trap_query_debug_event_args e;

	rig_attached(r, 1);
	rig_queue(r, TARGET, 1, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	rig_queue(r, TARGET, 0, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	assert_int_equal(rig_destroy(r, r->target, 0), 0);
	assert_int_equal(rig_runtime_disable(r, r->target), MODEL_BLOCKED);

	assert_int_equal(query(r, UINT64_MAX, &e), 0);
	assert_int_equal(e.exception_mask, NEW_MASK);
	assert_int_equal(e.queue_id, 2);
	assert_int_equal(e.gpu_id, model_gpu_id(r->m, 0));
	assert_int_equal(query(r, UINT64_MAX, &e), 0);
	assert_int_equal(e.queue_id, 1);
	assert_int_equal(e.gpu_id, model_gpu_id(r->m, 1));
	assert_int_equal(query(r, UINT64_MAX, &e), 0);
	assert_int_equal(e.exception_mask, DELETE_MASK);
	assert_int_equal(e.gpu_id, model_gpu_id(r->m, 0));
	assert_int_equal(e.queue_id, 0);
	assert_int_equal(query(r, UINT64_MAX, &e), 0);
	assert_int_equal(e.exception_mask, RUNTIME_MASK);
	assert_int_equal(e.gpu_id, 0);
	assert_int_equal(query(r, UINT64_MAX, &e), -EAGAIN);
	assert_int_equal(e.exception_mask, 0);
}

static void an_event_stays_until_it_is_cleared(void **state)
{
	struct rig *r = *state;
	struct kfd_ioctl_dbg_trap_query_debug_event_args e;

	rig_attached(r, 0);
	rig_queue(r, TARGET, 0, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	assert_int_equal(query(r, 0, &e), 0);
	assert_int_equal(query(r, DELETE_MASK, &e), 0);
	assert_true(rig_queue_stats(r, 0).is_new);
	assert_int_equal(query(r, NEW_MASK, &e), 0);
	assert_false(rig_queue_stats(r, 0).is_new);
	assert_int_equal(query(r, NEW_MASK, &e), -EAGAIN);
}

static void what_is_not_subscribed_is_neither_told_nor_reported(void **state)
{
	struct rig *r = *state;
	struct kfd_ioctl_dbg_trap_query_debug_event_args e;

	rig_target(r, 0);
	model_ptrace_seize(r->m, r->daemon, TARGET);
	assert_int_equal(rig_enable(r, r->daemon, TARGET, DELETE_MASK, NULL), 0);
	rig_queue(r, TARGET, 0, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	assert_int_equal(rig_dots(r), 0);
	assert_int_equal(query(r, 0, &e), -EAGAIN);
}

static void a_wider_subscription_tells_of_what_is_pending(void **state)
{
	struct rig *r = *state;
	struct kfd_ioctl_dbg_trap_args args = { .set_exceptions_enabled = { NEW_MASK } };
	struct kfd_ioctl_dbg_trap_query_debug_event_args e;

	rig_target(r, 1);
	model_ptrace_seize(r->m, r->daemon, TARGET);
	assert_int_equal(rig_enable(r, r->daemon, TARGET, 0, NULL), 0);
	assert_int_equal(rig_dots(r), 0);
	assert_int_equal(rig_dbg(r, r->daemon, TARGET, 3, &args), 0);
	assert_int_equal(rig_dots(r), 1);
	assert_int_equal(query(r, 0, &e), 0);
	args.set_exceptions_enabled.exception_mask = RUNTIME_MASK;
	assert_int_equal(rig_dbg(r, r->daemon, TARGET, 3, &args), 0);
	assert_int_equal(rig_dots(r), 0);
}

static void nothing_is_raised_without_a_session(void **state)
{
	struct rig *r = *state;
	struct kfd_ioctl_dbg_trap_query_debug_event_args e;

	rig_target(r, 2);
	assert_int_equal(rig_destroy(r, r->target, 0), 0);
	model_ptrace_seize(r->m, r->daemon, TARGET);
	assert_int_equal(rig_enable(r, r->daemon, TARGET, DELETE_MASK, NULL), 0);
	assert_int_equal(query(r, 0, &e), -EAGAIN);
}

static void exception_info_can_clear_too(void **state)
{
	struct rig *r = *state;
	char info[16];
	struct kfd_ioctl_dbg_trap_args args = {
		.query_exception_info = {
			.info_ptr = (uintptr_t)info,
			.info_size = sizeof(info),
			.exception_code = EC_QUEUE_NEW,
			.clear_exception = 1,
		},
	};

	rig_target(r, 1);
	assert_int_equal(rig_enable(r, r->target, TARGET, 0, NULL), 0);
	assert_int_equal(rig_dbg(r, r->target, TARGET, 12, &args), 0);
	assert_int_equal(args.query_exception_info.info_size, 0);
	assert_false(rig_queue_stats(r, 0).is_new);
}

static void an_interrupted_runtime_disable_is_retried_without_a_second_event(void **state)
{
	struct rig *r = *state;
	int result;

	rig_attached(r, 0);
	assert_int_equal(rig_runtime_disable(r, r->target), MODEL_BLOCKED);
	model_signal(r->m, r->target);
	assert_true(model_blocked_result(r->m, r->target, &result));
	assert_int_equal(rig_dots(r), 1);
	assert_int_equal(rig_runtime_disable(r, r->target), MODEL_BLOCKED);
	assert_int_equal(rig_dots(r), 0);
}

static void after_disable_the_debugger_has_no_rights_left(void **state)
{
	struct rig *r = *state;

	rig_attached(r, 0);
	model_ptrace_detach(r->m, r->daemon, TARGET);
	assert_int_equal(rig_disable(r, r->daemon, TARGET), 0);
	assert_int_equal(rig_enable(r, r->target, TARGET, 0, NULL), 0);
	assert_int_equal(rig_snapshot(r, r->daemon, TARGET, 0, NULL), -EPERM);
}

static void a_failed_enable_costs_a_whole_session(void **state)
{
	struct rig *r = *state;
	struct kfd_ioctl_dbg_trap_args args = {
		.enable = {
			.rinfo_ptr = BAD_POINTER,
			.rinfo_size = 16,
			.dbg_fd = (uint32_t)r->pipe[1],
		},
	};
	uint64_t before;

	rig_target(r, 1);
	before = rig_cycles(r, 0);
	assert_int_equal(rig_dbg(r, r->target, TARGET, KFD_IOC_DBG_TRAP_ENABLE, &args), -EFAULT);
	assert_int_equal(rig_cycles(r, 0) - before, 5);
}

static void any_other_runtime_event_reaches_the_error_payload(void **state)
{
	struct rig *r = *state;
	struct kfd_queue_snapshot_entry e;
	struct kfd_context_save_area_header header;
	uint64_t payload_va, payload = 0;
	struct kfd_ioctl_dbg_trap_args args = {
		.send_runtime_event = { .exception_mask = KFD_EC_MASK(EC_QUEUE_PREEMPTION_ERROR) },
	};

	rig_attached(r, 1);
	rig_snapshot(r, r->daemon, TARGET, 0, &e);
	payload_va = model_mem_map(r->m, TARGET, 8);
	header = rig_header(r, 0, 0);
	header.err_payload_addr = payload_va;
	model_mem_write(r->m, TARGET, e.ctx_save_restore_address, &header, sizeof(header));
	assert_int_equal(rig_dbg(r, r->daemon, TARGET, 2, &args), 0);
	model_mem_read(r->m, TARGET, payload_va, &payload, sizeof(payload));
	assert_int_equal(payload, KFD_EC_MASK(EC_QUEUE_PREEMPTION_ERROR));
}

#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(queues_come_first_newest_ahead_then_devices_then_the_process),
		T(an_event_stays_until_it_is_cleared),
		T(what_is_not_subscribed_is_neither_told_nor_reported),
		T(a_wider_subscription_tells_of_what_is_pending),
		T(nothing_is_raised_without_a_session),
		T(exception_info_can_clear_too),
		T(an_interrupted_runtime_disable_is_retried_without_a_second_event),
		T(after_disable_the_debugger_has_no_rights_left),
		T(a_failed_enable_costs_a_whole_session),
		T(any_other_runtime_event_reaches_the_error_payload),
	};

	return cmocka_run_group_tests_name("model/driver_events", tests, NULL, NULL) != 0;
}
