/* SPDX-License-Identifier: MIT */
/* Holds of the extension: whose they are, how long they last, and the brake. */
#include <errno.h>

#include "tests/model/test_ext_rig.h"
#include "util/macros.h"

static void holding_again_takes_longer_but_no_cycle(void **state)
{
	struct rig *r = *state;
	uint64_t file = ext_rig(r, 1), cycles;
	uint32_t queues = 1;

	assert_int_equal(ext_hold_ms(r, file, TARGET, 0, 10), 0);
	cycles = rig_cycles(r, 0);
	model_advance(r->m, 8 * NSEC_PER_MSEC);
	assert_int_equal(ext_hold_ms(r, file, TARGET, 0, 10), 0);
	assert_int_equal(ext_unmap(r, file, TARGET, 0, &queues), 0);
	assert_int_equal(queues, 0);
	assert_int_equal(ext_hold_ms(r, file, TARGET, 0, 10), 0);
	model_advance(r->m, 8 * NSEC_PER_MSEC);
	assert_false(rig_queue_stats(r, 0).mapped);
	assert_int_equal(rig_cycles(r, 0), cycles);
}

static void a_hold_ends_when_its_time_is_over(void **state)
{
	struct rig *r = *state;
	uint64_t file = ext_rig(r, 2);

	assert_int_equal(ext_hold_ms(r, file, TARGET, 0, 10), 0);
	assert_int_equal(ext_hold_ms(r, file, TARGET, 1, 20), 0);
	model_advance(r->m, 9 * NSEC_PER_MSEC);
	assert_false(rig_queue_stats(r, 0).mapped);
	model_advance(r->m, 2 * NSEC_PER_MSEC);
	assert_true(rig_queue_stats(r, 0).mapped);
	assert_false(rig_queue_stats(r, 1).mapped);
	model_advance(r->m, 10 * NSEC_PER_MSEC);
	assert_true(rig_queue_stats(r, 1).mapped);
	assert_int_equal(ext_map(r, file, TARGET, 1, NULL), -EALREADY);
}

static void no_hold_lasts_longer_than_the_longest(void **state)
{
	struct rig *r = *state;
	uint64_t file = ext_rig(r, 1);

	assert_int_equal(ext_hold_ms(r, file, TARGET, 0, 0), 0);
	model_advance(r->m, (KFD_GPREEMPT_MAX_HOLD_MS - 1) * NSEC_PER_MSEC);
	assert_false(rig_queue_stats(r, 0).mapped);
	model_advance(r->m, 2 * NSEC_PER_MSEC);
	assert_true(rig_queue_stats(r, 0).mapped);
}

/* The clock passes the deadline inside another call, which must not be disturbed. */
static void a_hold_that_ends_during_another_cycle_ends_after_it(void **state)
{
	struct rig *r = *state;
	struct model_fault slow = { .kind = MODEL_FAULT_SLOW, .ns = 20 * NSEC_PER_MSEC };
	uint64_t file = ext_rig(r, 3), began;

	assert_int_equal(ext_hold_ms(r, file, TARGET, 0, 10), 0);
	model_fault_set(r->m, &slow);
	began = model_now_ns(r->m);
	assert_int_equal(ext_hold_ms(r, file, TARGET, 1, 1000), 0);
	assert_true(model_now_ns(r->m) - began >= 40 * NSEC_PER_MSEC); /* one after the other */
	assert_true(rig_queue_stats(r, 0).mapped);
	assert_false(rig_queue_stats(r, 1).mapped);
	assert_true(rig_queue_stats(r, 2).mapped);
}

static void a_hold_that_ends_during_a_call_of_the_stock_driver_ends_after_it(void **state)
{
	struct rig *r = *state;
	struct model_fault slow = { .kind = MODEL_FAULT_SLOW, .ns = 20 * NSEC_PER_MSEC };
	uint64_t file;
	uint32_t id = 1;

	rig_attached(r, 2);
	file = ext_open(r, r->second);
	assert_int_equal(ext_hold_ms(r, file, TARGET, 0, 10), 0);
	model_fault_set(r->m, &slow);
	assert_int_equal(rig_suspend(r, r->daemon, TARGET, &id, 1, 1), 1);
	assert_true(rig_queue_stats(r, 0).mapped);
	assert_false(rig_queue_stats(r, 1).mapped);
}

static void closing_the_file_lets_everything_go(void **state)
{
	struct rig *r = *state;
	uint64_t file = ext_rig(r, 2);
	uint32_t second = rig_queue(r, TARGET, 1, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	struct model_queue_stats stats;

	assert_int_equal(ext_unmap(r, file, TARGET, ALL, NULL), 0);
	model_ext_close(r->m, file);
	assert_true(rig_queue_stats(r, 0).mapped);
	assert_true(rig_queue_stats(r, 1).mapped);
	model_queue_stats(r->m, TARGET, second, &stats);
	assert_true(stats.mapped);
	assert_true(rig_queue_stats(r, rig_queue(r, TARGET, 0, KFD_IOC_QUEUE_TYPE_COMPUTE)).mapped);
}

static void a_holder_that_dies_lets_everything_go(void **state)
{
	struct rig *r = *state;
	uint64_t file = ext_rig(r, 2);

	assert_int_equal(ext_unmap(r, file, TARGET, ALL, NULL), 0);
	model_proc_exit(r->m, DAEMON);
	assert_true(rig_queue_stats(r, 0).mapped);
	assert_true(rig_queue_stats(r, 1).mapped);
}

static void a_target_may_die_while_it_is_held(void **state)
{
	struct rig *r = *state;
	uint64_t file = ext_rig(r, 2);

	assert_int_equal(ext_hold_ms(r, file, TARGET, ALL, 10), 0);
	model_proc_exit(r->m, TARGET);
	assert_int_equal(ext_map(r, file, TARGET, ALL, NULL), -ESRCH);
	model_advance(r->m, 20 * NSEC_PER_MSEC);
	assert_int_equal(ext_hqd(r, file, 0).queues, 0);
}

static void a_queue_has_one_holder_at_a_time(void **state)
{
	struct rig *r = *state;
	uint64_t file = ext_rig(r, 2), other = ext_open(r, r->second);

	assert_int_equal(ext_unmap(r, file, TARGET, 0, NULL), 0);
	assert_int_equal(ext_unmap(r, other, TARGET, 0, NULL), -EBUSY);
	assert_int_equal(ext_map(r, other, TARGET, 0, NULL), -EBUSY);
	assert_int_equal(ext_unmap(r, other, TARGET, ALL, NULL), -EBUSY);
	assert_false(rig_queue_stats(r, 1).mapped); /* the one that was free */
	assert_int_equal(ext_unmap(r, file, TARGET, ALL, NULL), -EBUSY);
	assert_int_equal(ext_map(r, other, TARGET, 1, NULL), 0);
	assert_int_equal(ext_map(r, file, TARGET, 0, NULL), 0);
	assert_true(rig_queue_stats(r, 0).mapped);
}

static void all_queues_are_also_those_that_come_later(void **state)
{
	struct rig *r = *state;
	uint64_t file = ext_rig(r, 1), cycles;
	uint32_t queues = 0, later;

	assert_int_equal(ext_unmap(r, file, TARGET, ALL, &queues), 0);
	assert_int_equal(queues, 1);
	cycles = rig_cycles(r, 0);
	later = rig_queue(r, TARGET, 0, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	assert_false(rig_queue_stats(r, later).mapped);
	assert_int_equal(rig_cycles(r, 0), cycles);
	assert_int_equal(ext_map(r, file, TARGET, ALL, &queues), 0);
	assert_int_equal(queues, 2);
	assert_true(rig_queue_stats(r, later).mapped);
	assert_true(rig_queue_stats(r, rig_queue(r, TARGET, 0, KFD_IOC_QUEUE_TYPE_COMPUTE)).mapped);
}

static void a_process_without_queues_can_be_held_for_later(void **state)
{
	struct rig *r = *state;
	uint64_t file = ext_rig(r, 0);

	assert_int_equal(ext_hold_ms(r, file, TARGET, ALL, 10), 0);
	assert_false(
		rig_queue_stats(r, rig_queue(r, TARGET, 0, KFD_IOC_QUEUE_TYPE_COMPUTE)).mapped);
	model_advance(r->m, 11 * NSEC_PER_MSEC);
	assert_true(rig_queue_stats(r, 0).mapped);
	assert_true(rig_queue_stats(r, rig_queue(r, TARGET, 0, KFD_IOC_QUEUE_TYPE_COMPUTE)).mapped);
}

static void nothing_held_is_nothing_to_map(void **state)
{
	struct rig *r = *state;
	uint64_t file = ext_rig(r, 1), cycles = rig_cycles(r, 0);
	uint32_t queues = 1;

	assert_int_equal(ext_map(r, file, TARGET, 0, NULL), -EALREADY);
	assert_int_equal(ext_map(r, file, TARGET, ALL, &queues), 0);
	assert_int_equal(queues, 0);
	assert_int_equal(rig_cycles(r, 0), cycles);
}

/* ---- a process itself ---- */

static void a_process_holds_its_own_queues(void **state)
{
	struct rig *r = *state;

	ext_rig(r, 2);
	assert_int_equal(ext_own_unmap(r, TARGET, 0), 0);
	assert_false(rig_queue_stats(r, 0).mapped);
	assert_true(rig_queue_stats(r, 1).mapped);
	assert_int_equal(ext_own_map(r, TARGET, 0), 0);
	assert_true(rig_queue_stats(r, 0).mapped);
}

static void a_queue_runs_when_neither_its_process_nor_another_holds_it(void **state)
{
	struct rig *r = *state;
	uint64_t file = ext_rig(r, 1);

	assert_int_equal(ext_own_unmap(r, TARGET, 0), 0);
	assert_int_equal(ext_unmap(r, file, TARGET, 0, NULL), 0);
	assert_int_equal(ext_own_map(r, TARGET, 0), 0);
	assert_false(rig_queue_stats(r, 0).mapped);
	assert_int_equal(ext_map(r, file, TARGET, 0, NULL), 0);
	assert_true(rig_queue_stats(r, 0).mapped);
}

static void on_its_own_descriptor_a_process_names_nobody_else(void **state)
{
	struct rig *r = *state;
	struct kfd_gpreempt_one one = ext_one(TARGET, 0);
	struct kfd_gpreempt_stop stop = { .gpu_id = model_gpu_id(r->m, 0) };
	struct kfd_gpreempt_collect collect = { 0 };
	struct kfd_gpreempt_bind bind = { .fd = 0 };

	ext_rig(r, 1);
	assert_int_equal(rig_ioctl(r, r->daemon, KFD_GPREEMPT_PREEMPT_QUEUE, &one), -EPERM);
	assert_int_equal(rig_ioctl(r, r->target, KFD_GPREEMPT_PREEMPT_QUEUE, &one), 0);
	one.flags = KFD_GPREEMPT_ASYNC;
	assert_int_equal(rig_ioctl(r, r->target, KFD_GPREEMPT_PREEMPT_QUEUE, &one), -EOPNOTSUPP);
	one.flags = 0;
	one.timeout_ms = 1;
	assert_int_equal(rig_ioctl(r, r->target, KFD_GPREEMPT_PREEMPT_QUEUE, &one), -EOPNOTSUPP);
	assert_int_equal(rig_ioctl(r, r->daemon, KFD_GPREEMPT_STOP_SCHED, &stop), -ENOTTY);
	assert_int_equal(rig_ioctl(r, r->daemon, KFD_GPREEMPT_START_SCHED, &stop), -ENOTTY);
	assert_int_equal(rig_ioctl(r, r->target, KFD_GPREEMPT_COLLECT, &collect), -ENOTTY);
	assert_int_equal(rig_ioctl(r, r->target, KFD_GPREEMPT_BIND, &bind), -ENOTTY);
}

/* ---- beside the driver's own reasons ---- */

static void a_debugger_and_a_holder_do_not_undo_each_other(void **state)
{
	struct rig *r = *state;
	uint64_t file;
	uint32_t id = 0;

	rig_attached(r, 1);
	file = ext_open(r, r->second);
	assert_int_equal(rig_suspend(r, r->daemon, TARGET, &id, 1, 1), 1);
	assert_int_equal(ext_unmap(r, file, TARGET, 0, NULL), 0);
	id = 0;
	assert_int_equal(rig_resume(r, r->daemon, TARGET, &id, 1), 1);
	assert_false(rig_queue_stats(r, 0).mapped);
	id = 0;
	assert_int_equal(rig_suspend(r, r->daemon, TARGET, &id, 1, 1), 1);
	assert_int_equal(ext_map(r, file, TARGET, 0, NULL), 0);
	assert_false(rig_queue_stats(r, 0).mapped);
	id = 0;
	assert_int_equal(rig_resume(r, r->daemon, TARGET, &id, 1), 1);
	assert_true(rig_queue_stats(r, 0).mapped);
}

static void an_owner_that_updates_a_held_queue_does_not_put_it_on(void **state)
{
	struct rig *r = *state;
	uint64_t file;

	rig_attached(r, 1);
	file = ext_open(r, r->second);
	assert_int_equal(ext_unmap(r, file, TARGET, 0, NULL), 0);
	assert_int_equal(rig_update(r, r->target, 0, 50), 0);
	assert_false(rig_queue_stats(r, 0).mapped);
	assert_int_equal(rig_update(r, r->target, 0, 0), 0);
	assert_int_equal(ext_map(r, file, TARGET, 0, NULL), 0);
	assert_false(rig_queue_stats(r, 0).mapped);
	assert_int_equal(rig_update(r, r->target, 0, 100), 0);
	assert_true(rig_queue_stats(r, 0).mapped);
}

static void a_held_queue_can_be_destroyed(void **state)
{
	struct rig *r = *state;
	uint64_t file = ext_rig(r, 2);

	assert_int_equal(ext_unmap(r, file, TARGET, 0, NULL), 0);
	assert_int_equal(rig_destroy(r, r->target, 0), 0);
	assert_int_equal(ext_map(r, file, TARGET, 0, NULL), -ENOENT);
	assert_int_equal(ext_hqd(r, file, 0).held, 0);
}

/* ---- the brake ---- */

static int stop(struct rig *r, uint64_t file, uint32_t hold_ms, uint32_t *ret_stops)
{
	struct kfd_gpreempt_stop a = { .gpu_id = model_gpu_id(r->m, 0), .hold_ms = hold_ms };
	int ret = ext_ioctl(r, file, KFD_GPREEMPT_STOP_SCHED, &a);

	*ret_stops = a.stops;
	return ret;
}

static int start(struct rig *r, uint64_t file, uint32_t *ret_stops)
{
	struct kfd_gpreempt_stop a = { .gpu_id = model_gpu_id(r->m, 0) };
	int ret = ext_ioctl(r, file, KFD_GPREEMPT_START_SCHED, &a);

	*ret_stops = a.stops;
	return ret;
}

static void a_stopped_gpu_runs_nothing_until_each_stop_is_undone(void **state)
{
	struct rig *r = *state;
	uint64_t file = ext_rig(r, 1);
	uint32_t stops = 0, later;

	assert_int_equal(stop(r, file, 0, &stops), 0);
	assert_int_equal(stops, 1);
	assert_int_equal(stop(r, file, 0, &stops), 0);
	assert_int_equal(stops, 2);
	assert_false(rig_queue_stats(r, 0).mapped);
	later = rig_queue(r, TARGET, 0, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	assert_false(rig_queue_stats(r, later).mapped);
	assert_int_equal(start(r, file, &stops), 0);
	assert_int_equal(stops, 1);
	assert_false(rig_queue_stats(r, 0).mapped);
	assert_int_equal(start(r, file, &stops), 0);
	assert_int_equal(stops, 0);
	assert_true(rig_queue_stats(r, 0).mapped);
	assert_true(rig_queue_stats(r, later).mapped);
	assert_int_equal(start(r, file, &stops), -EALREADY);
}

static void the_other_gpus_of_a_stopped_one_run_on(void **state)
{
	struct rig *r = *state;
	uint64_t file = ext_rig(r, 1);
	uint32_t second = rig_queue(r, TARGET, 1, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL), stops;
	struct model_queue_stats stats;

	assert_int_equal(stop(r, file, 0, &stops), 0);
	model_queue_stats(r->m, TARGET, second, &stats);
	assert_true(stats.mapped);
}

static void a_gpu_stopped_by_two_is_started_by_both(void **state)
{
	struct rig *r = *state;
	uint64_t file = ext_rig(r, 1), other = ext_open(r, r->second);
	uint32_t stops;

	assert_int_equal(stop(r, file, 0, &stops), 0);
	assert_int_equal(start(r, other, &stops), -EALREADY);
	assert_int_equal(stop(r, other, 0, &stops), 0);
	assert_int_equal(stops, 1);
	assert_int_equal(start(r, file, &stops), 0);
	assert_false(rig_queue_stats(r, 0).mapped);
	model_ext_close(r->m, other);
	assert_true(rig_queue_stats(r, 0).mapped);
}

static void a_stop_ends_when_its_time_is_over(void **state)
{
	struct rig *r = *state;
	uint64_t file = ext_rig(r, 1);
	uint32_t stops;

	assert_int_equal(stop(r, file, 10, &stops), 0);
	assert_int_equal(stop(r, file, 20, &stops), 0);
	model_advance(r->m, 15 * NSEC_PER_MSEC);
	assert_false(rig_queue_stats(r, 0).mapped);
	model_advance(r->m, 10 * NSEC_PER_MSEC);
	assert_true(rig_queue_stats(r, 0).mapped);
	assert_int_equal(start(r, file, &stops), -EALREADY);
}

static void what_is_held_stays_off_when_the_gpu_is_started(void **state)
{
	struct rig *r = *state;
	uint64_t file = ext_rig(r, 2);
	uint32_t stops;

	assert_int_equal(ext_unmap(r, file, TARGET, 0, NULL), 0);
	assert_int_equal(stop(r, file, 0, &stops), 0);
	assert_int_equal(start(r, file, &stops), 0);
	assert_false(rig_queue_stats(r, 0).mapped);
	assert_true(rig_queue_stats(r, 1).mapped);
}

static void only_an_administrator_stops_and_only_what_there_is(void **state)
{
	struct rig *r = *state;
	struct model_task user = { OTHER, OTHER };
	uint64_t file = ext_rig(r, 1), users = ext_open(r, user);
	struct kfd_gpreempt_stop a = { .gpu_id = model_gpu_id(r->m, 0) };

	assert_int_equal(model_ext_ioctl(r->m, user, users, KFD_GPREEMPT_STOP_SCHED, &a), -EPERM);
	assert_int_equal(model_ext_ioctl(r->m, user, users, KFD_GPREEMPT_START_SCHED, &a), -EPERM);
	a.hold_ms = KFD_GPREEMPT_MAX_HOLD_MS + 1;
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_STOP_SCHED, &a), -EINVAL);
	a.hold_ms = 1;
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_START_SCHED, &a), -EINVAL);
	a = (struct kfd_gpreempt_stop){ .gpu_id = 1 };
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_STOP_SCHED, &a), -ENODEV);
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_START_SCHED, &a), -ENODEV);
	a.pad = 1;
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_STOP_SCHED, &a), -EINVAL);
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_START_SCHED, &a), -EINVAL);
	assert_true(rig_queue_stats(r, 0).mapped);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, rig_setup_ext, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(holding_again_takes_longer_but_no_cycle),
		CASE(a_hold_ends_when_its_time_is_over),
		CASE(no_hold_lasts_longer_than_the_longest),
		CASE(a_hold_that_ends_during_another_cycle_ends_after_it),
		CASE(a_hold_that_ends_during_a_call_of_the_stock_driver_ends_after_it),
		CASE(closing_the_file_lets_everything_go),
		CASE(a_holder_that_dies_lets_everything_go),
		CASE(a_target_may_die_while_it_is_held),
		CASE(a_queue_has_one_holder_at_a_time),
		CASE(all_queues_are_also_those_that_come_later),
		CASE(a_process_without_queues_can_be_held_for_later),
		CASE(nothing_held_is_nothing_to_map),
		CASE(a_process_holds_its_own_queues),
		CASE(a_queue_runs_when_neither_its_process_nor_another_holds_it),
		CASE(on_its_own_descriptor_a_process_names_nobody_else),
		CASE(a_debugger_and_a_holder_do_not_undo_each_other),
		CASE(an_owner_that_updates_a_held_queue_does_not_put_it_on),
		CASE(a_held_queue_can_be_destroyed),
		CASE(a_stopped_gpu_runs_nothing_until_each_stop_is_undone),
		CASE(the_other_gpus_of_a_stopped_one_run_on),
		CASE(a_gpu_stopped_by_two_is_started_by_both),
		CASE(a_stop_ends_when_its_time_is_over),
		CASE(what_is_held_stays_off_when_the_gpu_is_started),
		CASE(only_an_administrator_stops_and_only_what_there_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
