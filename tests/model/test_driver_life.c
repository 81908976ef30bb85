/* SPDX-License-Identifier: MIT */
/* Sessions from begin to end, whoever dies, forks or execs meanwhile; and calls that sleep. */
#include <errno.h>

#include "tests/model/test_driver_rig.h"
#include "util/macros.h"

static void hold(struct rig *r, uint32_t n)
{
	uint32_t ids[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };

	rig_attached(r, n);
	assert_int_equal(rig_suspend(r, r->daemon, TARGET, ids, n, 1), n);
}

/* ---- the lifetime table ---- */

static void detach_or_end_of_the_tracer_thread_leaves_queues_suspended(void **state)
{
	struct rig *r = *state;

	hold(r, 2);
	model_ptrace_detach(r->m, r->daemon, TARGET);
	assert_true(rig_queue_stats(r, 0).suspended);
	model_ptrace_seize(r->m, r->daemon, TARGET);
	model_thread_exit(r->m, r->daemon);
	assert_true(rig_queue_stats(r, 1).suspended);
	assert_int_equal(model_ptrace_seize(r->m, r->second, TARGET), 0);
}

static void death_of_the_debugger_disables_its_targets(void **state)
{
	struct rig *r = *state;

	hold(r, 2);
	model_proc_exit(r->m, DAEMON);
	assert_false(rig_queue_stats(r, 0).suspended);
	assert_true(rig_queue_stats(r, 1).mapped);
	assert_int_equal(rig_enable(r, r->target, TARGET, 0, NULL), 0);
}

static void exec_of_the_debugger_disables_its_targets(void **state)
{
	struct rig *r = *state;

	hold(r, 1);
	assert_int_equal(model_proc_exec(r->m, DAEMON), 0);
	assert_true(rig_queue_stats(r, 0).mapped);
}

static void death_of_the_debugger_releases_every_target(void **state)
{
	struct rig *r = *state;
	struct model_queue_stats stats;
	uint32_t id = 0;

	hold(r, 1);
	model_runtime_enable(r->m, OTHER);
	rig_queue(r, OTHER, 0, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	model_ptrace_seize(r->m, r->daemon, OTHER);
	assert_int_equal(rig_enable(r, r->daemon, OTHER, 0, NULL), 0);
	rig_snapshot(r, r->daemon, OTHER, NEW_MASK, NULL);
	assert_int_equal(rig_suspend(r, r->daemon, OTHER, &id, 1, 1), 1);
	model_proc_exit(r->m, DAEMON);
	assert_false(rig_queue_stats(r, 0).suspended);
	assert_int_equal(model_queue_stats(r->m, OTHER, 0, &stats), 0);
	assert_false(stats.suspended);
}

static void death_of_the_target_ends_the_session(void **state)
{
	struct rig *r = *state;
	struct model_gpu_stats stats;

	hold(r, 2);
	rig_busy(r, TARGET, 1);
	model_proc_exit(r->m, TARGET);
	assert_int_equal(rig_resume(r, r->daemon, TARGET, NULL, 0), -ESRCH);
	model_gpu_stats(r->m, 0, &stats);
	assert_int_equal(stats.total_queues, 0);
	assert_int_equal(stats.processes, 0);
}

static void exec_of_the_target_ends_the_session(void **state)
{
	struct rig *r = *state;

	hold(r, 1);
	assert_int_equal(model_proc_exec(r->m, TARGET), 0);
	assert_int_equal(rig_snapshot(r, r->daemon, TARGET, 0, NULL), -ESRCH);
	/* Still traced: it can be attached again once it opened the device, or before. */
	rig_target(r, 1);
	assert_int_equal(rig_enable(r, r->daemon, TARGET, 0, NULL), 0);
}

static void a_child_of_the_target_has_no_kfd_process(void **state)
{
	const struct model_proc_spec forked = { .pid = 101, .uid = 1000 };
	struct rig *r = *state;

	hold(r, 1);
	assert_int_equal(model_proc_start(r->m, &forked), 0);
	assert_int_equal(rig_snapshot(r, r->daemon, 101, 0, NULL), -ESRCH);
	model_proc_exit(r->m, 101);
	assert_true(rig_queue_stats(r, 0).suspended);
}

static void a_self_debugger_that_exits_cleans_up(void **state)
{
	struct rig *r = *state;
	struct model_gpu_stats stats;

	rig_target(r, 1);
	assert_int_equal(rig_enable(r, r->target, TARGET, 0, NULL), 0);
	model_proc_exit(r->m, TARGET);
	model_gpu_stats(r->m, 0, &stats);
	assert_int_equal(stats.total_queues, 0);
}

static void the_session_outlives_a_second_open(void **state)
{
	struct rig *r = *state;

	hold(r, 1);
	assert_int_equal(model_kfd_open(r->m, r->daemon), 0);
	assert_int_equal(rig_resume(r, r->daemon, TARGET, NULL, 0), 1);
}

static void with_the_seizure_kept_a_second_debugger_is_refused(void **state)
{
	struct rig *r = *state;

	hold(r, 1);
	assert_int_equal(model_ptrace_seize(r->m, r->second, TARGET), -EPERM);
	assert_int_equal(rig_enable(r, r->second, TARGET, 0, NULL), -EPERM);
	model_proc_exit(r->m, DAEMON);
	assert_false(rig_queue_stats(r, 0).suspended);
}

static void a_hijacker_that_disables_miscounts_its_next_target(void **state)
{
	struct rig *r = *state;
	struct model_queue_stats stats;
	uint32_t id = 0;

	hold(r, 1);
	model_ptrace_detach(r->m, r->daemon, TARGET);
	model_ptrace_seize(r->m, r->second, TARGET);
	assert_int_equal(rig_enable(r, r->second, TARGET, 0, NULL), -EALREADY);
	assert_int_equal(rig_disable(r, r->second, TARGET), 0);
	/* Its count is -1 now: the next session brings it to 0 and its death goes unnoticed. */
	model_runtime_enable(r->m, OTHER);
	rig_queue(r, OTHER, 0, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	model_ptrace_seize(r->m, r->second, OTHER);
	assert_int_equal(rig_enable(r, r->second, OTHER, 0, NULL), 0);
	rig_snapshot(r, r->second, OTHER, NEW_MASK, NULL);
	assert_int_equal(rig_suspend(r, r->second, OTHER, &id, 1, 1), 1);
	model_proc_exit(r->m, SECOND);
	assert_int_equal(model_queue_stats(r->m, OTHER, 0, &stats), 0);
	assert_true(stats.suspended);
}

/* ---- what a session costs ---- */

static void enable_costs_one_cycle_and_disable_four_where_queues_are(void **state)
{
	struct rig *r = *state;
	uint64_t before;

	rig_target(r, 1);
	model_ptrace_seize(r->m, r->daemon, TARGET);
	before = rig_cycles(r, 0);
	assert_int_equal(rig_enable(r, r->daemon, TARGET, 0, NULL), 0);
	assert_int_equal(rig_cycles(r, 0) - before, 1);
	before = rig_cycles(r, 0);
	assert_int_equal(rig_disable(r, r->daemon, TARGET), 0);
	assert_int_equal(rig_cycles(r, 0) - before, 4);
	assert_int_equal(rig_cycles(r, 1), 0); /* nothing runs there: nothing to refresh */
}

static void a_session_costs_cycles_on_gpus_only_others_use(void **state)
{
	struct rig *r = *state;
	uint64_t before;

	rig_target(r, 1);
	rig_queue(r, OTHER, 1, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	model_ptrace_seize(r->m, r->daemon, TARGET);
	before = rig_cycles(r, 1);
	assert_int_equal(rig_enable(r, r->daemon, TARGET, 0, NULL), 0);
	assert_int_equal(rig_cycles(r, 1) - before, 1);
	assert_int_equal(rig_disable(r, r->daemon, TARGET), 0);
	assert_int_equal(rig_cycles(r, 1) - before, 4); /* launch mode, flags, refresh */
}

static void without_runtime_enable_costs_nothing(void **state)
{
	struct rig *r = *state;
	uint64_t before;

	rig_queue(r, TARGET, 0, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	model_ptrace_seize(r->m, r->daemon, TARGET);
	before = rig_cycles(r, 0);
	assert_int_equal(rig_enable(r, r->daemon, TARGET, 0, NULL), 0);
	assert_int_equal(rig_disable(r, r->daemon, TARGET), 0);
	assert_int_equal(rig_cycles(r, 0), before);
}

static void a_chip_without_per_vmid_debug_serves_one_session(void **state)
{
	struct rig *r = *state;
	struct kfd_runtime_info rinfo;

	rig_target(r, 1);
	model_runtime_enable(r->m, OTHER);
	model_ptrace_seize(r->m, r->daemon, TARGET);
	model_ptrace_seize(r->m, r->daemon, OTHER);
	assert_int_equal(rig_enable(r, r->daemon, TARGET, 0, &rinfo), 0);
	assert_int_equal(rinfo.runtime_state, DEBUG_RUNTIME_STATE_ENABLED);
	assert_int_equal(rig_enable(r, r->daemon, OTHER, 0, &rinfo), 0);
	assert_int_equal(rinfo.runtime_state, DEBUG_RUNTIME_STATE_ENABLED_BUSY);
}

/* ---- calls that sleep ---- */

static void destroy_of_a_suspended_queue_waits_for_the_resume(void **state)
{
	struct rig *r = *state;
	int result;

	hold(r, 2);
	assert_int_equal(rig_destroy(r, r->target, 0), MODEL_BLOCKED);
	assert_false(model_blocked_result(r->m, r->target, &result));
	assert_int_equal(rig_destroy(r, (struct model_task){ TARGET, 101 }, 0), -EBUSY);
	assert_int_equal(rig_resume(r, r->daemon, TARGET, NULL, 0), 2);
	assert_true(model_blocked_result(r->m, r->target, &result));
	assert_int_equal(result, 0);
	assert_int_equal(rig_snapshot(r, r->daemon, TARGET, 0, NULL), 1);
	assert_false(model_blocked_result(r->m, r->target, &result));
}

static void disable_lets_a_waiting_destroy_go_on(void **state)
{
	struct rig *r = *state;
	int result;

	hold(r, 1);
	assert_int_equal(rig_destroy(r, r->target, 0), MODEL_BLOCKED);
	assert_int_equal(rig_disable(r, r->daemon, TARGET), 0);
	assert_true(model_blocked_result(r->m, r->target, &result));
	assert_int_equal(result, 0);
}

static void death_of_the_debugger_lets_a_waiting_destroy_go_on(void **state)
{
	struct rig *r = *state;
	int result;

	hold(r, 1);
	assert_int_equal(rig_destroy(r, r->target, 0), MODEL_BLOCKED);
	model_proc_exit(r->m, DAEMON);
	assert_true(model_blocked_result(r->m, r->target, &result));
	assert_int_equal(result, 0);
}

static void a_signal_ends_a_waiting_destroy_and_the_queue_stays(void **state)
{
	struct rig *r = *state;
	int result;

	hold(r, 1);
	assert_int_equal(rig_destroy(r, r->target, 0), MODEL_BLOCKED);
	model_signal(r->m, r->target);
	assert_true(model_blocked_result(r->m, r->target, &result));
	assert_int_equal(result, -EINTR);
	assert_int_equal(rig_destroy(r, r->target, 0), MODEL_BLOCKED);
}

static void a_held_queue_being_destroyed_still_counts_as_suspended(void **state)
{
	struct rig *r = *state;
	uint32_t id = 0;

	hold(r, 1);
	assert_int_equal(rig_destroy(r, r->target, 0), MODEL_BLOCKED);
	assert_int_equal(rig_suspend(r, r->daemon, TARGET, &id, 1, 1), 1); /* is already */
}

static void an_attached_target_waits_in_runtime_disable_for_its_debugger(void **state)
{
	struct rig *r = *state;
	struct kfd_runtime_info info;
	struct kfd_ioctl_dbg_trap_args args = {
		.query_exception_info = {
			.info_ptr = (uintptr_t)&info,
			.info_size = sizeof(info),
			.exception_code = EC_PROCESS_RUNTIME,
			.clear_exception = 1,
		},
	};
	int result;

	hold(r, 1);
	rig_dots(r);
	assert_int_equal(rig_runtime_disable(r, r->target), MODEL_BLOCKED);
	assert_int_equal(rig_dots(r), 1);
	assert_false(rig_queue_stats(r, 0).suspended); /* resumed first */
	assert_int_equal(rig_dbg(r, r->daemon, TARGET, 12, &args), 0);
	assert_int_equal(args.query_exception_info.info_size, 16);
	assert_int_equal(info.runtime_state, DEBUG_RUNTIME_STATE_DISABLED);
	assert_int_equal(rig_send_runtime(r, r->daemon, TARGET), 0);
	assert_true(model_blocked_result(r->m, r->target, &result));
	assert_int_equal(result, 0);
}

static void an_attached_target_waits_in_runtime_enable_too(void **state)
{
	struct rig *r = *state;
	int result;

	model_kfd_open(r->m, r->target);
	model_ptrace_seize(r->m, r->daemon, TARGET);
	assert_int_equal(rig_enable(r, r->daemon, TARGET, RUNTIME_MASK, NULL), 0);
	assert_int_equal(model_runtime_enable(r->m, TARGET), MODEL_BLOCKED);
	assert_int_equal(rig_dots(r), 1);
	assert_int_equal(rig_ioctl(r, r->target, AMDKFD_IOC_GET_VERSION, &result), -EDEADLK);
	assert_int_equal(rig_send_runtime(r, r->daemon, TARGET), 0);
	assert_true(model_blocked_result(r->m, r->target, &result));
	assert_int_equal(result, 0);
}

static void death_of_the_debugger_does_not_wake_it_but_a_signal_does(void **state)
{
	struct rig *r = *state;
	int result;

	rig_attached(r, 0);
	assert_int_equal(rig_runtime_disable(r, r->target), MODEL_BLOCKED);
	model_proc_exit(r->m, DAEMON);
	assert_false(model_blocked_result(r->m, r->target, &result));
	model_signal(r->m, r->target);
	assert_true(model_blocked_result(r->m, r->target, &result));
	assert_int_equal(result, -EINTR);
	assert_int_equal(rig_runtime_disable(r, r->target), 0);
}

static void an_interrupted_enable_is_retried_without_a_second_event(void **state)
{
	struct rig *r = *state;
	int result;

	model_kfd_open(r->m, r->target);
	model_ptrace_seize(r->m, r->daemon, TARGET);
	rig_enable(r, r->daemon, TARGET, RUNTIME_MASK, NULL);
	assert_int_equal(model_runtime_enable(r->m, TARGET), MODEL_BLOCKED);
	model_signal(r->m, r->target);
	assert_true(model_blocked_result(r->m, r->target, &result));
	rig_dots(r);
	assert_int_equal(model_runtime_enable(r->m, TARGET), MODEL_BLOCKED);
	assert_int_equal(rig_dots(r), 0);
	assert_int_equal(rig_send_runtime(r, r->daemon, TARGET), 0);
	assert_true(model_blocked_result(r->m, r->target, &result));
	assert_int_equal(result, 0);
}

static void death_of_a_sleeping_target_is_clean(void **state)
{
	struct rig *r = *state;
	int result;

	hold(r, 1);
	assert_int_equal(rig_destroy(r, r->target, 0), MODEL_BLOCKED);
	model_proc_exit(r->m, TARGET);
	assert_false(model_blocked_result(r->m, r->target, &result));
}

#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(detach_or_end_of_the_tracer_thread_leaves_queues_suspended),
		T(death_of_the_debugger_disables_its_targets),
		T(exec_of_the_debugger_disables_its_targets),
		T(death_of_the_debugger_releases_every_target),
		T(death_of_the_target_ends_the_session),
		T(exec_of_the_target_ends_the_session),
		T(a_child_of_the_target_has_no_kfd_process),
		T(a_self_debugger_that_exits_cleans_up),
		T(the_session_outlives_a_second_open),
		T(with_the_seizure_kept_a_second_debugger_is_refused),
		T(a_hijacker_that_disables_miscounts_its_next_target),
		T(enable_costs_one_cycle_and_disable_four_where_queues_are),
		T(a_session_costs_cycles_on_gpus_only_others_use),
		T(without_runtime_enable_costs_nothing),
		cmocka_unit_test_setup_teardown(a_chip_without_per_vmid_debug_serves_one_session,
						rig_setup_mi100_like, rig_teardown),
		T(destroy_of_a_suspended_queue_waits_for_the_resume),
		T(disable_lets_a_waiting_destroy_go_on),
		T(death_of_the_debugger_lets_a_waiting_destroy_go_on),
		T(a_signal_ends_a_waiting_destroy_and_the_queue_stays),
		T(a_held_queue_being_destroyed_still_counts_as_suspended),
		T(an_attached_target_waits_in_runtime_disable_for_its_debugger),
		T(an_attached_target_waits_in_runtime_enable_too),
		T(death_of_the_debugger_does_not_wake_it_but_a_signal_does),
		T(an_interrupted_enable_is_retried_without_a_second_event),
		T(death_of_a_sleeping_target_is_clean),
	};

	return cmocka_run_group_tests_name("model/driver_life", tests, NULL, NULL) != 0;
}
