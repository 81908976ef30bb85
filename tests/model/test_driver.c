/* SPDX-License-Identifier: MIT */
/* Queues, suspend and resume as the driver counts them, and what the work does meanwhile. */
#include <errno.h>

#include "tests/model/test_driver_rig.h"
#include "util/macros.h"

static void ten_queues_suspended_in_a_batch_cost_one_cycle(void **state)
{
	struct rig *r = *state;
	uint32_t ids[10];
	uint64_t before;

	rig_attached(r, 10);
	for (uint32_t i = 0; i < 10; i++)
		ids[i] = i;
	before = rig_cycles(r, 0);
	assert_int_equal(rig_suspend(r, r->daemon, TARGET, ids, 10, 1), 10);
	assert_int_equal(rig_cycles(r, 0) - before, 1);
	for (uint32_t i = 0; i < 10; i++) {
		assert_int_equal(ids[i], i);
		assert_true(rig_queue_stats(r, i).suspended);
		assert_false(rig_queue_stats(r, i).mapped);
	}
	before = rig_cycles(r, 0);
	assert_int_equal(rig_resume(r, r->daemon, TARGET, ids, 10), 10);
	assert_int_equal(rig_cycles(r, 0) - before, 1);
	assert_true(rig_queue_stats(r, 9).mapped);
}

static void ten_queues_suspended_one_by_one_cost_ten_cycles(void **state)
{
	struct rig *r = *state;
	uint64_t before;

	rig_attached(r, 10);
	before = rig_cycles(r, 0);
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(rig_suspend(r, r->daemon, TARGET, &(uint32_t){ i }, 1, 1), 1);
	assert_int_equal(rig_cycles(r, 0) - before, 10);
	assert_int_equal(rig_cycles(r, 1), 0);
}

static void work_submitted_while_suspended_runs_after_the_resume(void **state)
{
	struct rig *r = *state;
	struct model_work work = { .workgroups = 8, .wg_ns = NSEC_PER_USEC, .wg_per_cu = 1 };
	uint32_t id = 0;

	rig_attached(r, 1);
	assert_int_equal(rig_suspend(r, r->daemon, TARGET, &id, 1, 1), 1);
	for (int i = 0; i < 50; i++)
		assert_int_equal(model_submit(r->m, TARGET, 0, &work, NULL), 0);
	model_advance(r->m, NSEC_PER_SEC);
	assert_int_equal(rig_queue_stats(r, 0).completed, 0);
	assert_int_equal(rig_resume(r, r->daemon, TARGET, &id, 1), 1);
	model_advance(r->m, 10 * NSEC_PER_MSEC);
	assert_int_equal(rig_queue_stats(r, 0).completed, 50);
}

static void a_busy_queue_is_saved_and_goes_on_where_it_was(void **state)
{
	struct rig *r = *state;
	struct model_packet packet;
	struct model_gpu_stats stats;
	uint32_t id = 0;

	rig_attached(r, 1);
	rig_busy(r, TARGET, 0);
	assert_int_equal(rig_suspend(r, r->daemon, TARGET, &id, 1, 1), 1);
	assert_int_equal(rig_queue_stats(r, 0).resident, 0);
	assert_int_equal(rig_queue_stats(r, 0).saved, 80);
	model_gpu_stats(r->m, 0, &stats);
	assert_int_equal(stats.saved_bytes, 80 * 610304);
	assert_true(stats.save_ns > 0);
	for (uint32_t xcc = 0; xcc < 4; xcc++) {
		assert_int_equal(rig_header(r, 0, xcc).wave_state.wave_state_size, 20 * 610304);
		assert_int_equal(rig_header(r, 0, xcc).wave_state.wave_state_offset,
				 8192 + 20 * 610304);
	}
	model_advance(r->m, NSEC_PER_SEC);
	assert_int_equal(rig_resume(r, r->daemon, TARGET, &id, 1), 1);
	model_advance(r->m, NSEC_PER_MSEC);
	assert_int_equal(model_packets(r->m, TARGET, 0, 0, &packet, 1), 1);
	assert_int_equal(packet.finished, 80);
	assert_int_equal(packet.executed_ns, 80 * 200 * NSEC_PER_USEC);
	assert_int_equal(packet.saves, 1);
}

static void queue_ids_are_the_lowest_free_ones(void **state)
{
	struct rig *r = *state;

	rig_target(r, 4);
	assert_int_equal(rig_destroy(r, r->target, 1), 0);
	assert_int_equal(rig_destroy(r, r->target, 2), 0);
	assert_int_equal(rig_queue(r, TARGET, 1, KFD_IOC_QUEUE_TYPE_COMPUTE), 1);
	assert_int_equal(rig_queue(r, TARGET, 0, KFD_IOC_QUEUE_TYPE_SDMA), 2);
	assert_int_equal(rig_queue(r, TARGET, 0, KFD_IOC_QUEUE_TYPE_SDMA_XGMI), 4);
}

static void a_queue_created_with_percent_zero_costs_no_cycle_and_an_update_starts_it(void **state)
{
	struct rig *r = *state;
	struct model_queue_spec spec = {
		.type = KFD_IOC_QUEUE_TYPE_COMPUTE_AQL,
		.percent_zero = 1,
	};
	uint32_t id;

	rig_attached(r, 0);
	assert_int_equal(model_queue_create(r->m, TARGET, &spec, &id), 0);
	assert_int_equal(rig_cycles(r, 0), 0);
	assert_false(rig_queue_stats(r, id).active);
	assert_int_equal(rig_update(r, r->target, id, 100), 0);
	assert_int_equal(rig_cycles(r, 0), 1);
	assert_true(rig_queue_stats(r, id).mapped);
	assert_int_equal(rig_update(r, r->target, id, 0), 0);
	assert_false(rig_queue_stats(r, id).mapped);
}

static void a_suspend_preempts_the_queues_of_everybody_on_that_gpu(void **state)
{
	struct rig *r = *state;
	struct model_gpu_stats before, after;
	uint32_t id = 0;

	rig_attached(r, 2);
	rig_queue(r, OTHER, 0, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	rig_queue(r, OTHER, 1, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	model_gpu_stats(r->m, 0, &before);
	assert_int_equal(rig_suspend(r, r->daemon, TARGET, &id, 1, 1), 1);
	model_gpu_stats(r->m, 0, &after);
	assert_int_equal(after.unmaps - before.unmaps, 3);
	assert_int_equal(after.maps - before.maps, 2);
	assert_int_equal(rig_cycles(r, 1), 1);
	assert_int_equal(after.processes, 2);
	assert_int_equal(after.active_queues, 2);
	assert_int_equal(after.total_queues, 3);
}

static void a_suspend_over_two_gpus_costs_one_cycle_on_each(void **state)
{
	struct rig *r = *state;
	uint32_t ids[] = { 0, 1 };
	uint64_t before[2];

	rig_target(r, 1);
	assert_int_equal(rig_queue(r, TARGET, 1, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL), 1);
	assert_int_equal(model_ptrace_seize(r->m, r->daemon, TARGET), 0);
	assert_int_equal(rig_enable(r, r->daemon, TARGET, 0, NULL), 0);
	rig_snapshot(r, r->daemon, TARGET, NEW_MASK, NULL);
	before[0] = rig_cycles(r, 0);
	before[1] = rig_cycles(r, 1);
	assert_int_equal(rig_suspend(r, r->daemon, TARGET, ids, 2, 1), 2);
	assert_int_equal(rig_cycles(r, 0) - before[0], 1);
	assert_int_equal(rig_cycles(r, 1) - before[1], 1);
}

static void every_call_moves_the_clock_by_its_cost(void **state)
{
	struct rig *r = *state;
	struct kfd_ioctl_get_version_args version;
	uint64_t before = model_now_ns(r->m);

	assert_int_equal(rig_ioctl(r, r->daemon, AMDKFD_IOC_GET_VERSION, &version), 0);
	assert_int_equal(model_now_ns(r->m) - before, model_chip_find("mi308x")->costs.ioctl_ns);
}

static void a_suspend_takes_at_least_the_preemption_and_the_header_copies(void **state)
{
	struct rig *r = *state;
	const struct model_costs *costs = &model_chip_find("mi308x")->costs;
	uint32_t id = 0;
	uint64_t before;

	rig_attached(r, 3);
	before = model_now_ns(r->m);
	assert_int_equal(rig_suspend(r, r->daemon, TARGET, &id, 1, 1), 1);
	assert_true(model_now_ns(r->m) - before >=
		    costs->ioctl_ns + costs->unmap_ns + 3 * 4 * costs->header_ns);
}

static void sdma_queues_can_be_suspended_too(void **state)
{
	struct rig *r = *state;
	uint32_t ids[] = { 0 };

	rig_target(r, 0);
	assert_int_equal(rig_queue(r, TARGET, 0, KFD_IOC_QUEUE_TYPE_SDMA), 0);
	assert_int_equal(model_ptrace_seize(r->m, r->daemon, TARGET), 0);
	assert_int_equal(rig_enable(r, r->daemon, TARGET, 0, NULL), 0);
	rig_snapshot(r, r->daemon, TARGET, NEW_MASK, NULL);
	assert_int_equal(rig_suspend(r, r->daemon, TARGET, ids, 1, 1), 1);
	assert_false(rig_queue_stats(r, 0).mapped);
}

#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(ten_queues_suspended_in_a_batch_cost_one_cycle),
		T(ten_queues_suspended_one_by_one_cost_ten_cycles),
		T(work_submitted_while_suspended_runs_after_the_resume),
		T(a_busy_queue_is_saved_and_goes_on_where_it_was),
		T(queue_ids_are_the_lowest_free_ones),
		T(a_queue_created_with_percent_zero_costs_no_cycle_and_an_update_starts_it),
		T(a_suspend_preempts_the_queues_of_everybody_on_that_gpu),
		T(a_suspend_over_two_gpus_costs_one_cycle_on_each),
		T(every_call_moves_the_clock_by_its_cost),
		T(a_suspend_takes_at_least_the_preemption_and_the_header_copies),
		T(sdma_queues_can_be_suspended_too),
	};

	return cmocka_run_group_tests_name("model/driver", tests, NULL, NULL) != 0;
}
