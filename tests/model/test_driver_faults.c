/* SPDX-License-Identifier: MIT */
/* Injected faults, eviction and reset. */
#include <errno.h>

#include "tests/model/test_driver_rig.h"
#include "util/macros.h"

static void a_slow_preemption_takes_longer_on_its_gpu_only(void **state)
{
	struct rig *r = *state;
	struct model_fault fault = { .kind = MODEL_FAULT_SLOW, .ns = 20 * NSEC_PER_MSEC };
	uint32_t id = 0;
	uint64_t before;

	rig_attached(r, 1);
	rig_queue(r, TARGET, 1, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	rig_snapshot(r, r->daemon, TARGET, NEW_MASK, NULL);
	model_fault_set(r->m, &fault);
	before = model_now_ns(r->m);
	assert_int_equal(rig_suspend(r, r->daemon, TARGET, &id, 1, 1), 1);
	assert_true(model_now_ns(r->m) - before >= 20 * NSEC_PER_MSEC);
	id = 1;
	before = model_now_ns(r->m);
	assert_int_equal(rig_suspend(r, r->daemon, TARGET, &id, 1, 1), 1);
	assert_true(model_now_ns(r->m) - before < NSEC_PER_MSEC);
}

static void a_dead_scheduler_costs_nine_seconds_and_a_reset(void **state)
{
	struct rig *r = *state;
	struct model_fault fault = { .kind = MODEL_FAULT_DEAD_SCHEDULER };
	struct model_gpu_stats stats;
	uint32_t ids[] = { 0, 1 };
	uint64_t before;

	rig_attached(r, 2);
	rig_queue(r, OTHER, 0, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	rig_busy(r, TARGET, 0);
	model_fault_set(r->m, &fault);
	before = model_now_ns(r->m);
	assert_int_equal(rig_suspend(r, r->daemon, TARGET, ids, 2, 1), 0);
	assert_int_equal(ids[0], ERROR_BIT | 0);
	assert_int_equal(ids[1], ERROR_BIT | 1);
	assert_true(model_now_ns(r->m) - before >= 9 * NSEC_PER_SEC);
	model_gpu_stats(r->m, 0, &stats);
	assert_int_equal(stats.resets, 1);
	assert_int_equal(stats.active_queues, 0);
}

static void after_a_reset_everybody_stays_evicted_and_newcomers_work(void **state)
{
	struct rig *r = *state;
	struct model_fault fault = { .kind = MODEL_FAULT_DEAD_SCHEDULER };
	struct model_queue_stats stats;
	uint32_t id = 0;

	rig_attached(r, 1);
	rig_queue(r, OTHER, 1, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	model_fault_set(r->m, &fault);
	rig_suspend(r, r->daemon, TARGET, &id, 1, 1);
	assert_int_equal(rig_resume(r, r->daemon, TARGET, NULL, 0), 1);
	assert_true(rig_queue_stats(r, 0).evicted);
	assert_false(rig_queue_stats(r, 0).mapped);
	/* The other GPU was not reset, yet its process is stopped as well. */
	assert_int_equal(model_queue_stats(r->m, OTHER, 0, &stats), 0);
	assert_true(stats.evicted);
	assert_int_equal(model_queue_stats(r->m, SECOND, 0, &stats), -ENOENT);
	model_proc_start(r->m, &(struct model_proc_spec){ .pid = 600 });
	rig_queue(r, 600, 0, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	assert_int_equal(model_queue_stats(r->m, 600, 0, &stats), 0);
	assert_true(stats.mapped);
}

static void a_stuck_queue_ends_in_a_reset_too(void **state)
{
	struct rig *r = *state;
	struct model_fault fault = {
		.kind = MODEL_FAULT_STUCK_QUEUE, .pid = TARGET, .queue_id = 1,
	};
	struct model_gpu_stats stats;
	uint32_t id = 0;

	rig_attached(r, 2);
	model_fault_set(r->m, &fault);
	assert_int_equal(rig_suspend(r, r->daemon, TARGET, &id, 1, 1), 0);
	assert_int_equal(id, ERROR_BIT);
	model_gpu_stats(r->m, 0, &stats);
	assert_int_equal(stats.resets, 1);
}

static void a_failed_resume_marks_the_ids(void **state)
{
	struct rig *r = *state;
	struct model_fault fault = { .kind = MODEL_FAULT_DEAD_SCHEDULER };
	uint32_t id = 0;

	rig_attached(r, 2);
	assert_int_equal(rig_suspend(r, r->daemon, TARGET, &id, 1, 1), 1);
	model_fault_set(r->m, &fault);
	assert_int_equal(rig_resume(r, r->daemon, TARGET, &id, 1), 0);
	assert_int_equal(id, ERROR_BIT);
	assert_false(rig_queue_stats(r, 0).suspended);
}

static void a_process_vanishes_right_before_the_call(void **state)
{
	struct rig *r = *state;
	struct model_fault fault = { .kind = MODEL_FAULT_VANISH, .pid = TARGET, .count = 2 };
	uint32_t id = 0;

	rig_attached(r, 1);
	model_fault_set(r->m, &fault);
	assert_int_equal(rig_suspend(r, r->daemon, TARGET, &id, 1, 1), 1);
	assert_int_equal(rig_resume(r, r->daemon, TARGET, &id, 1), -ESRCH);
}

static void faults_are_cleared_by_none(void **state)
{
	struct rig *r = *state;
	struct model_fault fault = { .kind = MODEL_FAULT_DEAD_SCHEDULER };
	uint32_t id = 0;

	rig_attached(r, 1);
	model_fault_set(r->m, &fault);
	model_fault_set(r->m, &(struct model_fault){ .kind = MODEL_FAULT_NONE });
	assert_int_equal(rig_suspend(r, r->daemon, TARGET, &id, 1, 1), 1);
	fault.gpu_index = 7;
	assert_int_equal(model_fault_set(r->m, &fault), -ENODEV);
}

/* ---- CRIU as a pause ---- */

static int criu(struct rig *r, uint32_t op)
{
	struct kfd_ioctl_criu_args args = { .op = op };

	return model_ioctl(r->m, r->daemon, TARGET, AMDKFD_IOC_CRIU_OP, &args);
}

static void a_criu_pause_needs_no_runtime_and_no_acknowledgement(void **state)
{
	struct rig *r = *state;
	uint64_t before;
	char *text;

	rig_queue(r, TARGET, 0, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	rig_queue(r, TARGET, 1, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	rig_busy(r, TARGET, 0);
	model_ptrace_seize(r->m, r->daemon, TARGET);
	before = rig_cycles(r, 0);
	assert_int_equal(criu(r, KFD_CRIU_OP_PROCESS_INFO), 0);
	assert_int_equal(rig_cycles(r, 0) - before, 1);
	assert_true(rig_queue_stats(r, 0).evicted);
	assert_false(rig_queue_stats(r, 1).mapped);
	model_advance(r->m, 30 * NSEC_PER_MSEC);
	assert_int_equal(criu(r, KFD_CRIU_OP_UNPAUSE), 0);
	assert_true(rig_queue_stats(r, 0).mapped);
	text = rig_file(r, GKFD_TREE_SYSFS, "proc/100/stats_11547/evicted_ms");
	assert_string_equal(text, "30\n");
	free(text);
}

static void a_queue_created_while_paused_waits_for_the_unpause(void **state)
{
	struct rig *r = *state;

	rig_target(r, 1);
	model_ptrace_seize(r->m, r->daemon, TARGET);
	assert_int_equal(criu(r, KFD_CRIU_OP_PROCESS_INFO), 0);
	assert_int_equal(rig_queue(r, TARGET, 0, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL), 1);
	assert_false(rig_queue_stats(r, 1).active);
	assert_int_equal(criu(r, KFD_CRIU_OP_UNPAUSE), 0);
	assert_true(rig_queue_stats(r, 1).active);
}

static void suspended_and_evicted_are_two_reasons_to_stand(void **state)
{
	struct rig *r = *state;
	uint32_t id = 0;

	rig_attached(r, 1);
	assert_int_equal(criu(r, KFD_CRIU_OP_PROCESS_INFO), 0);
	assert_int_equal(rig_suspend(r, r->daemon, TARGET, &id, 1, 1), 1);
	assert_int_equal(criu(r, KFD_CRIU_OP_UNPAUSE), 0);
	assert_false(rig_queue_stats(r, 0).active);
	assert_int_equal(rig_resume(r, r->daemon, TARGET, &id, 1), 1);
	assert_true(rig_queue_stats(r, 0).active);
}

#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_slow_preemption_takes_longer_on_its_gpu_only),
		T(a_dead_scheduler_costs_nine_seconds_and_a_reset),
		T(after_a_reset_everybody_stays_evicted_and_newcomers_work),
		T(a_stuck_queue_ends_in_a_reset_too),
		T(a_failed_resume_marks_the_ids),
		T(a_process_vanishes_right_before_the_call),
		T(faults_are_cleared_by_none),
		T(a_criu_pause_needs_no_runtime_and_no_acknowledgement),
		T(a_queue_created_while_paused_waits_for_the_unpause),
		T(suspended_and_evicted_are_two_reasons_to_stand),
	};

	return cmocka_run_group_tests_name("model/driver_faults", tests, NULL, NULL) != 0;
}
