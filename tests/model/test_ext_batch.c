/* SPDX-License-Identifier: MIT */
/* Batches of the extension: what is done, what it costs, what is refused. */
#include <errno.h>
#include <string.h>

#include "tests/model/test_ext_rig.h"
#include "util/macros.h"

static void a_batch_of_ten_queues_costs_one_cycle(void **state)
{
	struct rig *r = *state;
	uint64_t file = ext_rig(r, 10), cycles;
	struct kfd_gpreempt_entry e[10];
	struct kfd_gpreempt_batch b = ext_batch(e, 10, 0);

	for (uint32_t i = 0; i < 10; i++)
		e[i] = ext_entry(TARGET, i);
	cycles = rig_cycles(r, 0);
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_BATCH_UNMAP_QUEUES, &b), 10);
	assert_int_equal(rig_cycles(r, 0) - cycles, 1);
	assert_int_equal(b.cycles, 1);
	assert_int_equal(b.victims, 0);
	assert_true(b.fence_ns > 0);
	assert_true(b.took_ns >= b.fence_ns);
	for (uint32_t i = 0; i < 10; i++) {
		assert_int_equal(e[i].result, 0);
		assert_int_equal(e[i].queues, 1);
		assert_false(rig_queue_stats(r, i).mapped);
	}
}

static void what_is_mapped_again_runs_again(void **state)
{
	struct rig *r = *state;
	uint64_t file = ext_rig(r, 2);
	uint32_t queues = 0;

	rig_busy(r, TARGET, 0);
	assert_int_equal(ext_unmap(r, file, TARGET, 0, &queues), 0);
	assert_int_equal(queues, 1);
	assert_false(rig_queue_stats(r, 0).active);
	assert_true(rig_queue_stats(r, 1).active);
	assert_true(rig_queue_stats(r, 0).saved > 0);
	assert_int_equal(ext_map(r, file, TARGET, 0, &queues), 0);
	assert_int_equal(queues, 1);
	model_advance(r->m, NSEC_PER_MSEC);
	assert_true(rig_queue_stats(r, 0).resident > 0);
}

static void work_given_to_a_held_queue_waits_for_it_to_be_mapped(void **state)
{
	struct rig *r = *state;
	struct model_work work = { .workgroups = 1, .wg_ns = 1000, .wg_per_cu = 1 };
	uint64_t file = ext_rig(r, 1);

	assert_int_equal(ext_unmap(r, file, TARGET, 0, NULL), 0);
	for (int i = 0; i < 5; i++)
		assert_int_equal(model_submit(r->m, TARGET, 0, &work, NULL), 0);
	model_advance(r->m, 10 * NSEC_PER_MSEC);
	assert_int_equal(rig_queue_stats(r, 0).completed, 0);
	assert_int_equal(ext_map(r, file, TARGET, 0, NULL), 0);
	model_advance(r->m, 10 * NSEC_PER_MSEC);
	assert_int_equal(rig_queue_stats(r, 0).completed, 5);
}

static void a_switch_takes_some_off_and_puts_others_on_in_one_cycle(void **state)
{
	struct rig *r = *state;
	uint64_t file = ext_rig(r, 2), cycles;
	struct kfd_gpreempt_entry e[] = { ext_entry(TARGET, 0), ext_entry(TARGET, 1) };
	struct kfd_gpreempt_batch b = ext_batch(e, 1, 1);

	assert_int_equal(ext_unmap(r, file, TARGET, 1, NULL), 0);
	cycles = rig_cycles(r, 0);
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_SWITCH, &b), 2);
	assert_int_equal(rig_cycles(r, 0) - cycles, 1);
	assert_false(rig_queue_stats(r, 0).mapped);
	assert_true(rig_queue_stats(r, 1).mapped);
}

static void gpus_are_cycled_at_the_same_time(void **state)
{
	struct rig *r = *state;
	struct model_fault slow = { .kind = MODEL_FAULT_SLOW, .ns = 5 * NSEC_PER_MSEC };
	uint64_t file = ext_rig(r, 1), before;
	struct kfd_gpreempt_entry e = ext_entry(TARGET, ALL);
	struct kfd_gpreempt_batch b = ext_batch(&e, 1, 0);
	struct model_queue_stats on_second;
	uint32_t second = rig_queue(r, TARGET, 1, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	uint64_t alone;

	e.gpu_id = model_gpu_id(r->m, 0);
	model_fault_set(r->m, &slow);
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_BATCH_UNMAP_QUEUES, &b), 1);
	alone = b.took_ns;
	assert_true(alone >= 5 * NSEC_PER_MSEC);
	assert_int_equal(ext_map(r, file, TARGET, ALL, NULL), 0);

	e.gpu_id = KFD_GPREEMPT_ANY_GPU;
	before = model_now_ns(r->m);
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_BATCH_UNMAP_QUEUES, &b), 1);
	assert_int_equal(b.cycles, 2);
	assert_int_equal(e.queues, 2);
	assert_int_equal(b.took_ns, alone);
	assert_true(model_now_ns(r->m) - before < alone + NSEC_PER_MSEC);
	assert_int_equal(model_queue_stats(r->m, TARGET, second, &on_second), 0);
	assert_false(on_second.mapped);
}

static void a_fast_gpu_does_not_wait_for_a_slow_one(void **state)
{
	struct rig *r = *state;
	struct model_fault slow = { .kind = MODEL_FAULT_SLOW, .ns = 5 * NSEC_PER_MSEC };
	uint64_t file = ext_rig(r, 2);
	uint32_t held = rig_queue(r, TARGET, 1, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	uint32_t stays = rig_queue(r, TARGET, 1, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	struct kfd_gpreempt_entry e[] = { ext_entry(TARGET, 0), ext_entry(TARGET, held) };
	struct kfd_gpreempt_batch b = ext_batch(e, 2, 0);
	struct model_queue_stats before, after;

	rig_busy(r, TARGET, stays);
	model_fault_set(r->m, &slow);
	model_queue_stats(r->m, TARGET, stays, &before);
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_BATCH_UNMAP_QUEUES, &b), 2);
	model_queue_stats(r->m, TARGET, stays, &after);
	assert_true(after.completed > before.completed + 10);
}

static void in_victims_only_mode_others_run_on(void **state)
{
	struct rig *r = *state;
	uint64_t file = ext_rig(r, 2), cycles;
	struct kfd_gpreempt_entry e = ext_entry(TARGET, 0);
	struct kfd_gpreempt_batch b = ext_batch(&e, 1, 0);
	struct model_gpu_stats before, after;

	rig_busy(r, TARGET, 0);
	rig_busy(r, TARGET, 1);
	b.flags = KFD_GPREEMPT_VICTIMS_ONLY;
	cycles = rig_cycles(r, 0);
	model_gpu_stats(r->m, 0, &before);
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_BATCH_UNMAP_QUEUES, &b), 1);
	model_gpu_stats(r->m, 0, &after);
	assert_int_equal(rig_cycles(r, 0), cycles);
	assert_int_equal(after.unmaps - before.unmaps, 1);
	assert_int_equal(b.cycles, 0);
	assert_int_equal(b.victims, 1);
	assert_false(rig_queue_stats(r, 0).mapped);
	assert_true(rig_queue_stats(r, 0).saved > 0);
	assert_true(rig_queue_stats(r, 1).mapped);
	assert_int_equal(rig_queue_stats(r, 1).saved, 0);
}

static void victims_that_come_back_need_a_cycle(void **state)
{
	struct rig *r = *state;
	uint64_t file = ext_rig(r, 2);
	struct kfd_gpreempt_entry e = ext_entry(TARGET, 0);
	struct kfd_gpreempt_batch b = ext_batch(&e, 1, 0);

	b.flags = KFD_GPREEMPT_VICTIMS_ONLY;
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_BATCH_UNMAP_QUEUES, &b), 1);
	b = ext_batch(&e, 0, 1);
	b.flags = KFD_GPREEMPT_VICTIMS_ONLY;
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_FAST_REMAP, &b), 1);
	assert_int_equal(b.cycles, 1);
	assert_int_equal(b.victims, 0);
	assert_true(rig_queue_stats(r, 0).mapped);
	assert_true(rig_queue_stats(r, 1).mapped);
}

static void an_over_subscribed_gpu_is_cycled_whatever_is_wanted(void **state)
{
	struct rig *r = *state;
	uint64_t file = ext_rig(r, 25);
	struct kfd_gpreempt_entry e = ext_entry(TARGET, 0);
	struct kfd_gpreempt_batch b = ext_batch(&e, 1, 0);

	assert_true(ext_hqd(r, file, 0).flags & KFD_GPREEMPT_HQD_OVERSUBSCRIBED);
	b.flags = KFD_GPREEMPT_VICTIMS_ONLY;
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_BATCH_UNMAP_QUEUES, &b), 1);
	assert_int_equal(b.cycles, 1);
	assert_int_equal(b.victims, 0);
}

static void mes_takes_queues_off_one_by_one_and_cycles_nothing(void **state)
{
	struct rig *r = *state;
	uint64_t file = ext_rig(r, 4);
	struct kfd_gpreempt_entry e[] = { ext_entry(TARGET, 0), ext_entry(TARGET, 2) };
	struct kfd_gpreempt_batch b = ext_batch(e, 2, 0);
	uint64_t two_ns;

	rig_busy(r, TARGET, 1);
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_BATCH_UNMAP_QUEUES, &b), 2);
	two_ns = b.fence_ns;
	assert_int_equal(b.cycles, 0);
	assert_int_equal(b.victims, 1);
	assert_false(rig_queue_stats(r, 0).mapped);
	assert_true(rig_queue_stats(r, 1).mapped);
	assert_false(rig_queue_stats(r, 2).mapped);
	e[0] = ext_entry(TARGET, 3);
	b = ext_batch(e, 1, 0);
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_BATCH_UNMAP_QUEUES, &b), 1);
	assert_int_equal(two_ns, 2 * b.fence_ns);
	assert_int_equal(ext_map(r, file, TARGET, ALL, NULL), 0);
	for (uint32_t i = 0; i < 4; i++)
		assert_true(rig_queue_stats(r, i).mapped);
}

static void results_are_told_entry_by_entry(void **state)
{
	struct rig *r = *state;
	uint64_t file = ext_rig(r, 2);
	struct kfd_gpreempt_entry e[] = {
		ext_entry(TARGET, 0), ext_entry(TARGET, 7), ext_entry(4711, 0),
		ext_entry(OTHER, 0), ext_entry(TARGET, 1), ext_entry(TARGET, 1),
	};
	struct kfd_gpreempt_batch b = ext_batch(e, 6, 0);

	e[4].gpu_id = model_gpu_id(r->m, 1);
	e[5].start_ticks = 1;
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_BATCH_UNMAP_QUEUES, &b), 1);
	assert_int_equal(e[0].result, 0);
	assert_int_equal(e[1].result, -ENOENT);
	assert_int_equal(e[2].result, -ESRCH);
	assert_int_equal(e[3].result, -ESRCH); /* does not use the driver */
	assert_int_equal(e[4].result, -ENOENT);
	assert_int_equal(e[5].result, -ESRCH);
	assert_true(rig_queue_stats(r, 1).active);
}

static void the_start_time_is_that_of_proc(void **state)
{
	struct rig *r = *state;
	uint64_t file = ext_rig(r, 1);
	struct kfd_gpreempt_entry e = ext_entry(TARGET, 0);
	struct kfd_gpreempt_batch b = ext_batch(&e, 1, 0);
	_cleanup_free_ char *stat = rig_file(r, GKFD_TREE_PROC, "100/stat");
	char *at = strchr(stat, ')');

	for (int i = 0; i < 20; i++)
		at = strchr(at + 1, ' ');
	e.start_ticks = strtoull(at, NULL, 10);
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_BATCH_UNMAP_QUEUES, &b), 1);
}

static int try_batch(struct rig *r, uint64_t file, struct kfd_gpreempt_batch b)
{
	return ext_ioctl(r, file, KFD_GPREEMPT_BATCH_UNMAP_QUEUES, &b);
}

static void arguments_that_make_no_sense_are_refused(void **state)
{
	struct rig *r = *state;
	uint64_t file = ext_rig(r, 1);
	struct kfd_gpreempt_entry e[2] = { ext_entry(TARGET, 0), ext_entry(TARGET, 0) };
	struct kfd_gpreempt_batch b = ext_batch(e, 1, 0), bad;

	assert_int_equal(try_batch(r, file, ext_batch(e, 0, 0)), -EINVAL);
	assert_int_equal(try_batch(r, file, ext_batch(e, KFD_GPREEMPT_MAX_ENTRIES + 1, 0)),
			 -EINVAL);
	assert_int_equal(try_batch(r, file, ext_batch(e, UINT32_MAX, 2)), -EINVAL);
	assert_int_equal(try_batch(r, file, ext_batch(e, 1, 1)), -EINVAL);
	bad = b, bad.flags = 0x100;
	assert_int_equal(try_batch(r, file, bad), -EINVAL);
	bad = b, bad.flags = KFD_GPREEMPT_KEEP_MQD;
	assert_int_equal(try_batch(r, file, bad), -EINVAL);
	bad = b, bad.flags = KFD_GPREEMPT_VICTIMS_ONLY;
	assert_int_equal(try_batch(r, file, bad), -EOPNOTSUPP);
	bad = b, bad.hold_ms = KFD_GPREEMPT_MAX_HOLD_MS + 1;
	assert_int_equal(try_batch(r, file, bad), -EINVAL);
	bad = b, bad.grace = 0;
	assert_int_equal(try_batch(r, file, bad), -EINVAL);
	bad = b, bad.grace = 256;
	assert_int_equal(try_batch(r, file, bad), -EINVAL);
	bad = b, bad.entries = BAD_POINTER;
	assert_int_equal(try_batch(r, file, bad), -EFAULT);
	e[0].pad = 1;
	assert_int_equal(try_batch(r, file, b), -EINVAL);
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_FAST_REMAP, &b), -EINVAL);
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_SWITCH, &b), -EINVAL);
	assert_true(rig_queue_stats(r, 0).mapped);
}

static void a_selective_unmap_keeps_everything_and_cannot_do_without_a_save(void **state)
{
	struct rig *r = *state;
	uint64_t file = ext_rig(r, 1);
	struct kfd_gpreempt_entry e = ext_entry(TARGET, 0);
	struct kfd_gpreempt_batch b = ext_batch(&e, 1, 0);

	b.flags = KFD_GPREEMPT_NO_CWSR;
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_SELECTIVE_UNMAP, &b), -EOPNOTSUPP);
	b.flags = KFD_GPREEMPT_KEEP_MQD | KFD_GPREEMPT_KEEP_STATE;
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_SELECTIVE_UNMAP, &b), 1);
	assert_false(rig_queue_stats(r, 0).mapped);
}

static void shorter_arguments_are_completed_and_longer_ones_end_in_zeros(void **state)
{
	struct rig *r = *state;
	uint64_t file = ext_rig(r, 1);
	struct {
		struct kfd_gpreempt_version v;
		uint64_t more;
	} a = { .more = 0 };
	uint32_t version = 0;

	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_IOWR(0xC0, uint32_t), &version), 0);
	assert_int_equal(version, KFD_GPREEMPT_VERSION);
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_IOWR(0xC0, a), &a), 0);
	assert_int_equal(a.v.version, KFD_GPREEMPT_VERSION);
	a.more = 1;
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_IOWR(0xC0, a), &a), -E2BIG);
}

static void one_queue_has_calls_of_its_own(void **state)
{
	struct rig *r = *state;
	uint64_t file = ext_rig(r, 1);
	struct kfd_gpreempt_one one = ext_one(TARGET, 0), none = ext_one(TARGET, 9);

	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_PREEMPT_QUEUE, &one), 0);
	assert_false(rig_queue_stats(r, 0).mapped);
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_RESUME_QUEUE, &one), 0);
	assert_true(rig_queue_stats(r, 0).mapped);
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_RESUME_QUEUE, &one), -EALREADY);
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_PREEMPT_QUEUE, &none), -ENOENT);
	one.state = 1;
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_PREEMPT_QUEUE, &one), -EINVAL);
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_RESUME_QUEUE, &one), -EINVAL);
}

static void a_state_can_be_set_that_is_there_already(void **state)
{
	struct rig *r = *state;
	uint64_t file = ext_rig(r, 1);
	struct kfd_gpreempt_one one = ext_one(TARGET, 0);

	one.state = KFD_GPREEMPT_ACTIVE;
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_SET_QUEUE_STATE, &one), 0);
	one.state = KFD_GPREEMPT_INACTIVE;
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_SET_QUEUE_STATE, &one), 0);
	assert_false(rig_queue_stats(r, 0).mapped);
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_SET_QUEUE_STATE, &one), 0);
	one.state = 2;
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_SET_QUEUE_STATE, &one), -EINVAL);
}

static void a_dead_scheduler_fails_the_entries_of_its_gpu_only(void **state)
{
	struct rig *r = *state;
	struct model_fault dead = { .kind = MODEL_FAULT_DEAD_SCHEDULER };
	uint64_t file = ext_rig(r, 1);
	uint32_t second = rig_queue(r, TARGET, 1, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	struct kfd_gpreempt_entry e[] = { ext_entry(TARGET, 0), ext_entry(TARGET, second) };
	struct kfd_gpreempt_batch b = ext_batch(e, 2, 0);

	e[1].gpu_id = model_gpu_id(r->m, 1);
	model_fault_set(r->m, &dead);
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_BATCH_UNMAP_QUEUES, &b), 1);
	assert_int_equal(e[0].result, -ETIME);
	assert_int_equal(e[1].result, 0);
}

static void a_queue_that_had_to_be_reset_is_an_error_of_its_process(void **state)
{
	struct rig *r = *state;
	struct model_fault stuck = {
		.kind = MODEL_FAULT_STUCK_QUEUE,
		.pid = TARGET,
		.resettable = true,
	};
	uint64_t file = ext_rig(r, 2);

	rig_busy(r, TARGET, 0);
	model_fault_set(r->m, &stuck);
	assert_int_equal(ext_unmap(r, file, TARGET, 0, NULL), -EIO);
	assert_true(rig_queue_stats(r, 1).mapped);
}

#define CASE(name, setup) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_batch_of_ten_queues_costs_one_cycle, rig_setup_ext),
		CASE(what_is_mapped_again_runs_again, rig_setup_ext),
		CASE(work_given_to_a_held_queue_waits_for_it_to_be_mapped, rig_setup_ext),
		CASE(a_switch_takes_some_off_and_puts_others_on_in_one_cycle, rig_setup_ext),
		CASE(gpus_are_cycled_at_the_same_time, rig_setup_ext),
		CASE(a_fast_gpu_does_not_wait_for_a_slow_one, rig_setup_ext),
		CASE(in_victims_only_mode_others_run_on, rig_setup_victims),
		CASE(victims_that_come_back_need_a_cycle, rig_setup_victims),
		CASE(an_over_subscribed_gpu_is_cycled_whatever_is_wanted, rig_setup_victims),
		CASE(mes_takes_queues_off_one_by_one_and_cycles_nothing, rig_setup_ext_mes),
		CASE(results_are_told_entry_by_entry, rig_setup_ext),
		CASE(the_start_time_is_that_of_proc, rig_setup_ext),
		CASE(arguments_that_make_no_sense_are_refused, rig_setup_ext),
		CASE(a_selective_unmap_keeps_everything_and_cannot_do_without_a_save,
		     rig_setup_ext),
		CASE(shorter_arguments_are_completed_and_longer_ones_end_in_zeros, rig_setup_ext),
		CASE(one_queue_has_calls_of_its_own, rig_setup_ext),
		CASE(a_state_can_be_set_that_is_there_already, rig_setup_ext),
		CASE(a_dead_scheduler_fails_the_entries_of_its_gpu_only, rig_setup_ext),
		CASE(a_queue_that_had_to_be_reset_is_an_error_of_its_process, rig_setup_ext),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
