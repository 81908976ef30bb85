/* SPDX-License-Identifier: MIT */
/* The driver's surprises, one by one: what a kinder model would hide. */
#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>

#include "tests/model/test_driver_rig.h"
#include "util/macros.h"

/* ---- EC_QUEUE_NEW ---- */

static void every_queue_is_born_new_even_without_a_debugger(void **state)
{
	struct rig *r = *state;

	rig_target(r, 3);
	for (uint32_t i = 0; i < 3; i++)
		assert_true(rig_queue_stats(r, i).is_new);
}

static void suspend_of_a_new_queue_is_refused_and_not_counted(void **state)
{
	struct rig *r = *state;
	uint32_t ids[] = { 0, 1 };
	uint64_t before;

	rig_target(r, 2);
	model_ptrace_seize(r->m, r->daemon, TARGET);
	assert_int_equal(rig_enable(r, r->daemon, TARGET, 0, NULL), 0);
	before = rig_cycles(r, 0);
	assert_int_equal(rig_suspend(r, r->daemon, TARGET, ids, 2, 1), 0);
	assert_int_equal(ids[0], INVALID_BIT | 0);
	assert_int_equal(ids[1], INVALID_BIT | 1);
	assert_int_equal(rig_cycles(r, 0), before);
	assert_false(rig_queue_stats(r, 0).suspended);
}

static void a_snapshot_with_mask_zero_leaves_queues_new(void **state)
{
	struct rig *r = *state;
	uint32_t id = 0;

	rig_target(r, 1);
	model_ptrace_seize(r->m, r->daemon, TARGET);
	rig_enable(r, r->daemon, TARGET, 0, NULL);
	assert_int_equal(rig_snapshot(r, r->daemon, TARGET, 0, NULL), 1);
	assert_int_equal(rig_suspend(r, r->daemon, TARGET, &id, 1, 1), 0);
	id = 0;
	assert_int_equal(rig_snapshot(r, r->daemon, TARGET, NEW_MASK, NULL), 1);
	assert_int_equal(rig_suspend(r, r->daemon, TARGET, &id, 1, 1), 1);
}

static void a_snapshot_clears_only_the_entries_it_returns(void **state)
{
	struct rig *r = *state;
	struct kfd_queue_snapshot_entry entry;
	struct kfd_ioctl_dbg_trap_args args = {
		.queue_snapshot = {
			.exception_mask = NEW_MASK,
			.snapshot_buf_ptr = (uintptr_t)&entry,
			.num_queues = 1,
			.entry_size = sizeof(entry),
		},
	};

	rig_target(r, 3);
	model_ptrace_seize(r->m, r->daemon, TARGET);
	rig_enable(r, r->daemon, TARGET, 0, NULL);
	assert_int_equal(rig_dbg(r, r->daemon, TARGET, KFD_IOC_DBG_TRAP_GET_QUEUE_SNAPSHOT, &args),
			 0);
	assert_int_equal(args.queue_snapshot.num_queues, 3);
	assert_int_equal(entry.queue_id, 2); /* newest first */
	assert_true(entry.exception_status & NEW_MASK);
	assert_false(rig_queue_stats(r, 2).is_new);
	assert_true(rig_queue_stats(r, 1).is_new);
}

static void disable_clears_new(void **state)
{
	struct rig *r = *state;

	rig_target(r, 1);
	model_ptrace_seize(r->m, r->daemon, TARGET);
	rig_enable(r, r->daemon, TARGET, 0, NULL);
	assert_int_equal(rig_disable(r, r->daemon, TARGET), 0);
	assert_false(rig_queue_stats(r, 0).is_new);
}

static void a_suspended_sister_lets_the_exception_mask_clear_a_refused_new_queue(void **state)
{
	struct rig *r = *state;
	uint32_t ids[] = { 0, 1 };
	struct kfd_ioctl_dbg_trap_args args = {
		.suspend_queues = {
			.exception_mask = NEW_MASK,
			.queue_array_ptr = (uintptr_t)ids,
			.num_queues = 2,
		},
	};

	rig_attached(r, 1);
	rig_queue(r, TARGET, 0, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	assert_int_equal(rig_dbg(r, r->daemon, TARGET, KFD_IOC_DBG_TRAP_SUSPEND_QUEUES, &args), 1);
	assert_int_equal(ids[1], INVALID_BIT | 1);
	assert_false(rig_queue_stats(r, 1).is_new);
}

/* ---- counting ---- */

static void the_count_includes_queues_already_suspended(void **state)
{
	struct rig *r = *state;
	uint32_t ids[] = { 0, 1 };
	uint64_t before;

	rig_attached(r, 3);
	assert_int_equal(rig_suspend(r, r->daemon, TARGET, ids, 1, 1), 1);
	assert_int_equal(rig_suspend(r, r->daemon, TARGET, ids, 2, 1), 2);
	before = rig_cycles(r, 0);
	assert_int_equal(rig_suspend(r, r->daemon, TARGET, ids, 2, 1), 2);
	assert_int_equal(rig_cycles(r, 0) - before, 1); /* queue 2 still runs */
}

static void a_cycle_without_anything_active_sends_nothing(void **state)
{
	struct rig *r = *state;
	uint32_t id = 0;
	uint64_t before;

	rig_attached(r, 1);
	assert_int_equal(rig_suspend(r, r->daemon, TARGET, &id, 1, 1), 1);
	before = rig_cycles(r, 0);
	assert_int_equal(rig_suspend(r, r->daemon, TARGET, &id, 1, 1), 1);
	assert_int_equal(rig_cycles(r, 0), before);
}

static void resume_without_an_array_means_all_queues_whatever_the_count(void **state)
{
	struct rig *r = *state;
	uint32_t ids[] = { 0, 1, 2 };

	rig_attached(r, 3);
	assert_int_equal(rig_suspend(r, r->daemon, TARGET, ids, 2, 1), 2);
	assert_int_equal(rig_resume(r, r->daemon, TARGET, NULL, 17), 3);
	assert_false(rig_queue_stats(r, 0).suspended);
	assert_int_equal(rig_resume(r, r->daemon, TARGET, NULL, 0), 3);
}

static void resume_counts_queues_that_were_not_suspended(void **state)
{
	struct rig *r = *state;
	uint32_t ids[] = { 0, 1, 9 };

	rig_attached(r, 2);
	assert_int_equal(rig_resume(r, r->daemon, TARGET, ids, 3), 2);
	assert_int_equal(ids[0], 0);
	assert_int_equal(ids[2], INVALID_BIT | 9);
}

static void of_duplicate_ids_only_the_first_slot_is_updated(void **state)
{
	struct rig *r = *state;
	uint32_t ids[] = { 0, 0 };

	rig_attached(r, 1);
	assert_int_equal(rig_suspend(r, r->daemon, TARGET, ids, 2, 1), 1);
	assert_int_equal(ids[0], 0);
	assert_int_equal(ids[1], INVALID_BIT | 0);
}

static void ids_with_bit_30_never_match_but_bit_31_is_ignored(void **state)
{
	struct rig *r = *state;
	uint32_t ids[] = { ERROR_BIT | 0 };

	rig_attached(r, 1);
	assert_int_equal(rig_suspend(r, r->daemon, TARGET, ids, 1, 1), 0);
	assert_int_equal(ids[0], ERROR_BIT | INVALID_BIT);
	ids[0] = INVALID_BIT | 0;
	assert_int_equal(rig_suspend(r, r->daemon, TARGET, ids, 1, 1), 1);
	assert_int_equal(ids[0], 0);
}

/* ---- the save area ---- */

static void headers_are_rewritten_for_queues_that_were_not_suspended(void **state)
{
	struct rig *r = *state;
	struct kfd_context_save_area_header h;
	uint32_t id = 0;

	rig_attached(r, 2);
	assert_int_equal(rig_header(r, 1, 0).wave_state.wave_state_offset, 0);
	assert_int_equal(rig_suspend(r, r->daemon, TARGET, &id, 1, 1), 1);
	for (uint32_t xcc = 0; xcc < 4; xcc++) {
		h = rig_header(r, 1, xcc);
		assert_int_equal(h.wave_state.wave_state_offset, 8192);
		assert_int_equal(h.wave_state.control_stack_offset, 8192);
		assert_int_equal(h.wave_state.wave_state_size, 0);
		assert_int_equal(h.debug_offset, (4 - xcc) * 12214272); /* left as it was */
	}
}

/* ---- enable ---- */

static void enable_hides_a_failed_activation(void **state)
{
	struct rig *r = *state;
	struct model_fault fault = { .kind = MODEL_FAULT_ACTIVATE_FAILS };
	struct kfd_runtime_info rinfo = { 0 };
	uint32_t id = 0;

	rig_target(r, 1);
	model_ptrace_seize(r->m, r->daemon, TARGET);
	model_fault_set(r->m, &fault);
	assert_int_equal(rig_enable(r, r->daemon, TARGET, 0, &rinfo), 0);
	assert_int_equal(rinfo.runtime_state, DEBUG_RUNTIME_STATE_ENABLED_ERROR);
	assert_int_equal(rig_suspend(r, r->daemon, TARGET, &id, 1, 1), -EPERM);
	assert_int_equal(rig_disable(r, r->daemon, TARGET), 0);
	assert_int_equal(rig_enable(r, r->daemon, TARGET, 0, &rinfo), 0);
	assert_int_equal(rinfo.runtime_state, DEBUG_RUNTIME_STATE_ENABLED);
}

static void a_second_enable_answers_ealready_and_takes_the_session_over(void **state)
{
	struct rig *r = *state;

	rig_attached(r, 1);
	model_ptrace_detach(r->m, r->daemon, TARGET);
	model_ptrace_seize(r->m, r->second, TARGET);
	assert_int_equal(rig_enable(r, r->second, TARGET, 0, NULL), -EALREADY);
	assert_int_equal(rig_snapshot(r, r->daemon, TARGET, 0, NULL), -EPERM);
	assert_int_equal(rig_snapshot(r, r->second, TARGET, 0, NULL), 1);
}

static void after_a_hijack_no_death_resumes_the_queues(void **state)
{
	struct rig *r = *state;
	uint32_t id = 0;

	rig_attached(r, 1);
	assert_int_equal(rig_suspend(r, r->daemon, TARGET, &id, 1, 1), 1);
	model_ptrace_detach(r->m, r->daemon, TARGET);
	model_ptrace_seize(r->m, r->second, TARGET);
	assert_int_equal(rig_enable(r, r->second, TARGET, 0, NULL), -EALREADY);
	model_proc_exit(r->m, DAEMON);
	model_proc_exit(r->m, SECOND);
	assert_true(rig_queue_stats(r, 0).suspended);
	assert_int_equal(rig_enable(r, r->target, TARGET, 0, NULL), -EALREADY);
}

static void a_hijacked_session_is_taken_back_by_enable_resume_disable(void **state)
{
	struct rig *r = *state;
	uint32_t id = 0;

	rig_attached(r, 1);
	assert_int_equal(rig_suspend(r, r->daemon, TARGET, &id, 1, 1), 1);
	model_ptrace_detach(r->m, r->daemon, TARGET);
	model_ptrace_seize(r->m, r->second, TARGET);
	rig_enable(r, r->second, TARGET, 0, NULL);
	model_proc_exit(r->m, SECOND);
	assert_int_equal(rig_resume(r, r->daemon, TARGET, NULL, 0), -EPERM);
	assert_int_equal(model_ptrace_seize(r->m, r->daemon, TARGET), 0);
	assert_int_equal(rig_enable(r, r->daemon, TARGET, 0, NULL), -EALREADY);
	assert_int_equal(rig_resume(r, r->daemon, TARGET, NULL, 0), 1);
	assert_int_equal(rig_disable(r, r->daemon, TARGET), 0);
	assert_true(rig_queue_stats(r, 0).mapped);
	assert_int_equal(rig_enable(r, r->target, TARGET, 0, NULL), 0);
}

static void a_failed_enable_leaves_its_caller_the_debugger(void **state)
{
	struct rig *r = *state;
	struct kfd_ioctl_dbg_trap_args args = { .enable = { .dbg_fd = 9999 } };

	rig_target(r, 0);
	model_ptrace_seize(r->m, r->daemon, TARGET);
	assert_int_equal(rig_dbg(r, r->daemon, TARGET, KFD_IOC_DBG_TRAP_ENABLE, &args), -EBADF);
	model_ptrace_detach(r->m, r->daemon, TARGET);
	assert_int_equal(rig_enable(r, r->daemon, TARGET, 0, NULL), 0);
}

/* ---- grace ---- */

static uint64_t suspend_time(struct rig *r, uint32_t grace, int *ret, uint32_t *id)
{
	uint64_t before = model_now_ns(r->m);

	*ret = rig_suspend(r, r->daemon, TARGET, id, 1, grace);
	return model_now_ns(r->m) - before;
}

static void a_grace_of_zero_means_one(void **state)
{
	struct rig *r = *state;
	uint32_t id = 0;
	int ret;

	rig_attached(r, 1);
	rig_busy(r, TARGET, 0);
	assert_true(suspend_time(r, 0, &ret, &id) < NSEC_PER_MSEC);
	assert_int_equal(ret, 1);
	assert_int_equal(rig_queue_stats(r, 0).saved, 80);
}

static void a_grace_of_1000_is_cut_to_232(void **state)
{
	struct rig *r = *state;
	struct model_work work = { .workgroups = 80, .wg_ns = 160 * NSEC_PER_USEC, .wg_per_cu = 1 };
	uint32_t id = 0;
	int ret;

	/* 232 k clocks of 2.1 GHz are 110 us: what has 60 us to go ends by itself. */
	rig_attached(r, 1);
	assert_int_equal(model_submit(r->m, TARGET, 0, &work, NULL), 0);
	model_advance(r->m, 120 * NSEC_PER_USEC);
	suspend_time(r, 1000, &ret, &id);
	assert_int_equal(ret, 1);
	assert_int_equal(rig_queue_stats(r, 0).completed, 1);
	assert_int_equal(rig_queue_stats(r, 0).saved, 0);
}

static void a_grace_of_1000_is_no_more_than_232(void **state)
{
	struct rig *r = *state;
	struct model_work work = { .workgroups = 80, .wg_ns = 300 * NSEC_PER_USEC, .wg_per_cu = 1 };
	uint32_t id = 0;
	int ret;

	/* 1000 k clocks would be 476 us, and enough for what has 200 us to go. */
	rig_attached(r, 1);
	assert_int_equal(model_submit(r->m, TARGET, 0, &work, NULL), 0);
	model_advance(r->m, 100 * NSEC_PER_USEC);
	suspend_time(r, 1000, &ret, &id);
	assert_int_equal(ret, 1);
	assert_int_equal(rig_queue_stats(r, 0).completed, 0);
	assert_int_equal(rig_queue_stats(r, 0).saved, 80);
}

static void a_grace_of_256_never_ends_and_costs_the_gpu(void **state)
{
	struct rig *r = *state;
	struct model_work work = { .workgroups = 80, .wg_ns = 100 * NSEC_PER_SEC, .wg_per_cu = 1 };
	struct model_gpu_stats stats;
	uint32_t id = 0;
	int ret;

	rig_attached(r, 1);
	assert_int_equal(model_submit(r->m, TARGET, 0, &work, NULL), 0);
	model_advance(r->m, NSEC_PER_MSEC);
	assert_true(suspend_time(r, 256, &ret, &id) >= 9 * NSEC_PER_SEC);
	assert_int_equal(ret, 0);
	assert_int_equal(id, ERROR_BIT);
	model_gpu_stats(r->m, 0, &stats);
	assert_int_equal(stats.resets, 1);
}

static void a_failed_suspend_leaves_the_queue_suspended_and_inactive(void **state)
{
	struct rig *r = *state;
	struct model_fault fault = { .kind = MODEL_FAULT_DEAD_SCHEDULER };
	uint32_t id = 0;

	rig_attached(r, 1);
	model_fault_set(r->m, &fault);
	assert_int_equal(rig_suspend(r, r->daemon, TARGET, &id, 1, 1), 0);
	assert_int_equal(id, ERROR_BIT);
	assert_true(rig_queue_stats(r, 0).suspended);
	assert_false(rig_queue_stats(r, 0).active);
}

/* ---- events and descriptors ---- */

static void the_runtime_semaphore_counts_a_post_made_in_advance(void **state)
{
	struct rig *r = *state;

	rig_attached(r, 0);
	assert_int_equal(rig_send_runtime(r, r->daemon, TARGET), 0);
	assert_int_equal(rig_runtime_disable(r, r->target), 0);
	assert_int_equal(model_runtime_enable(r->m, TARGET), MODEL_BLOCKED);
}

static void an_eventfd_never_fires(void **state)
{
	struct rig *r = *state;
	_cleanup_close_ int efd = eventfd(0, EFD_NONBLOCK);
	struct kfd_runtime_info rinfo;
	struct kfd_ioctl_dbg_trap_args args = {
		.enable = {
			.exception_mask = NEW_MASK,
			.rinfo_ptr = (uintptr_t)&rinfo,
			.rinfo_size = sizeof(rinfo),
			.dbg_fd = (uint32_t)efd,
		},
	};
	uint64_t count;

	rig_target(r, 0);
	model_ptrace_seize(r->m, r->daemon, TARGET);
	assert_int_equal(rig_dbg(r, r->daemon, TARGET, KFD_IOC_DBG_TRAP_ENABLE, &args), 0);
	rig_queue(r, TARGET, 0, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	assert_int_equal(read(efd, &count, sizeof(count)), -1);
	assert_int_equal(errno, EAGAIN);
}

static void a_pipe_gets_one_dot_per_subscribed_exception(void **state)
{
	struct rig *r = *state;

	rig_attached(r, 1);
	assert_int_equal(rig_dots(r), 0); /* what was pending before is not signalled */
	rig_queue(r, TARGET, 0, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	rig_queue(r, TARGET, 1, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	assert_int_equal(rig_dots(r), 2);
	assert_int_equal(rig_destroy(r, r->target, 1), 0);
	assert_int_equal(rig_dots(r), 1);
}

static void a_pipe_nobody_reads_from_does_no_harm(void **state)
{
	struct rig *r = *state;

	rig_attached(r, 0);
	close(r->pipe[0]);
	rig_queue(r, TARGET, 0, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	r->pipe[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void outputs_are_copied_back_on_failure(void **state)
{
	struct rig *r = *state;
	struct kfd_ioctl_create_queue_args args = { .ring_size = 1, .gpu_id = 12345 };

	rig_target(r, 0);
	assert_int_equal(rig_ioctl(r, r->target, AMDKFD_IOC_CREATE_QUEUE, &args), -EINVAL);
	assert_int_equal(args.ring_size, KFD_MIN_QUEUE_RING_SIZE); /* raised before it failed */
}

static void criu_paused_twice_is_unpaused_at_once(void **state)
{
	struct rig *r = *state;
	struct kfd_ioctl_criu_args args = { .op = KFD_CRIU_OP_PROCESS_INFO };

	rig_target(r, 1);
	model_ptrace_seize(r->m, r->daemon, TARGET);
	assert_int_equal(model_ioctl(r->m, r->daemon, TARGET, AMDKFD_IOC_CRIU_OP, &args), 0);
	assert_int_equal(args.pid, TARGET);
	args.op = KFD_CRIU_OP_PROCESS_INFO;
	assert_int_equal(model_ioctl(r->m, r->daemon, TARGET, AMDKFD_IOC_CRIU_OP, &args), 0);
	args.op = KFD_CRIU_OP_UNPAUSE;
	assert_int_equal(model_ioctl(r->m, r->daemon, TARGET, AMDKFD_IOC_CRIU_OP, &args), 0);
	assert_false(rig_queue_stats(r, 0).evicted);
	assert_int_equal(model_ioctl(r->m, r->daemon, TARGET, AMDKFD_IOC_CRIU_OP, &args), -EINVAL);
	assert_true(rig_queue_stats(r, 0).mapped);
}

#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(every_queue_is_born_new_even_without_a_debugger),
		T(suspend_of_a_new_queue_is_refused_and_not_counted),
		T(a_snapshot_with_mask_zero_leaves_queues_new),
		T(a_snapshot_clears_only_the_entries_it_returns),
		T(disable_clears_new),
		T(a_suspended_sister_lets_the_exception_mask_clear_a_refused_new_queue),
		T(the_count_includes_queues_already_suspended),
		T(a_cycle_without_anything_active_sends_nothing),
		T(resume_without_an_array_means_all_queues_whatever_the_count),
		T(resume_counts_queues_that_were_not_suspended),
		T(of_duplicate_ids_only_the_first_slot_is_updated),
		T(ids_with_bit_30_never_match_but_bit_31_is_ignored),
		T(headers_are_rewritten_for_queues_that_were_not_suspended),
		T(enable_hides_a_failed_activation),
		T(a_second_enable_answers_ealready_and_takes_the_session_over),
		T(after_a_hijack_no_death_resumes_the_queues),
		T(a_hijacked_session_is_taken_back_by_enable_resume_disable),
		T(a_failed_enable_leaves_its_caller_the_debugger),
		T(a_grace_of_zero_means_one),
		T(a_grace_of_1000_is_cut_to_232),
		T(a_grace_of_1000_is_no_more_than_232),
		T(a_grace_of_256_never_ends_and_costs_the_gpu),
		T(a_failed_suspend_leaves_the_queue_suspended_and_inactive),
		T(the_runtime_semaphore_counts_a_post_made_in_advance),
		T(an_eventfd_never_fires),
		T(a_pipe_gets_one_dot_per_subscribed_exception),
		T(a_pipe_nobody_reads_from_does_no_harm),
		T(outputs_are_copied_back_on_failure),
		T(criu_paused_twice_is_unpaused_at_once),
	};

	return cmocka_run_group_tests_name("model/quirks", tests, NULL, NULL) != 0;
}
