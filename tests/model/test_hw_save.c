/* SPDX-License-Identifier: MIT */
/* Unmap, map, reset: what they cost and what they keep. */
#include <errno.h>

#include "tests/model/hw_rig.h"

#define CU HW_CU_UNITS

struct fixture {
	struct rig rig;
	struct rig_queue a, b;
};

static int open_fixture(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	rig_open(&f->rig, "mi308x");
	rig_queue_open(&f->rig, &f->a, HW_RING_AQL, 64);
	rig_queue_open(&f->rig, &f->b, HW_RING_AQL, 64);
	*state = f;
	return 0;
}

static int close_fixture(void **state)
{
	struct fixture *f = *state;

	hw_reset(f->rig.gpu);
	rig_queue_close(&f->a);
	rig_queue_close(&f->b);
	rig_close(&f->rig);
	free(f);
	return 0;
}

static void map_both(struct fixture *f)
{
	rig_map(&f->rig, (struct hw_queue *[]){ f->a.hw, f->b.hw }, 2);
}

static void all_done(struct fixture *f, struct rig_queue *q)
{
	rig_run(&f->rig, RIG_FOREVER_NS);
	for (uint64_t i = 0; i < q->written; i++) {
		struct model_packet p = rig_packet(q, i);

		assert_int_not_equal(p.done_ns, 0);
		assert_int_equal(p.finished, p.workgroups);
	}
}

/* What saving @workgroups of a whole compute unit each takes, right after they started. */
static struct hw_unmap save(const char *chip, uint32_t workgroups, uint32_t units)
{
	struct rig rig;
	struct rig_queue q;
	struct hw_unmap op;

	rig_open(&rig, chip);
	rig_queue_open(&rig, &q, HW_RING_AQL, 64);
	rig_dispatch(&q, rig_kernel(&rig, NSEC_PER_SEC, units), workgroups, 0, 0);
	rig_map_one(&q);
	op = rig_unmap(&rig, 1);
	rig_queue_close(&q);
	rig_close(&rig);
	return op;
}

static void a_full_gpu_saves_at_memory_bandwidth(void **state)
{
	struct hw_unmap op = save("mi308x", 80, CU);

	assert_int_equal(op.saved_bytes, 80 * 610304);
	assert_in_range(op.save_ns, 9200, 9230);
	assert_int_equal(op.took_ns, 476 + 2000 + op.save_ns + 15000);
	assert_int_equal(op.unmapped, 1);
	assert_int_equal(save("mi308x", 320, CU / 4).saved_bytes, op.saved_bytes);
}

static void a_save_area_in_host_memory_is_as_slow_as_the_link_both_ways(void **state)
{
	struct model_chip chip = *model_chip_find("mi308x");
	struct rig rig;
	struct rig_queue q;
	struct hw_unmap op;
	uint64_t start_ns;

	chip.save_in_host = true;
	rig_open_chip(&rig, &chip);
	rig_queue_open(&rig, &q, HW_RING_AQL, 64);
	rig_dispatch(&q, rig_kernel(&rig, NSEC_PER_SEC, CU), 80, 0, 0);
	rig_map_one(&q);
	op = rig_unmap(&rig, 1);
	assert_int_equal(op.saved_bytes, 80 * 610304);
	assert_in_range(op.save_ns, 762880, 762890); /* at 64 GB/s */
	start_ns = rig.time.now_ns;
	rig_map_one(&q);
	rig_run(&rig, RIG_FOREVER_NS);
	assert_int_equal(rig_packet(&q, 0).done_ns, start_ns + chip.costs.map_ns + op.save_ns +
							    NSEC_PER_SEC - 476);
	rig_unmap(&rig, 1);
	rig_queue_close(&q);
	rig_close(&rig);
}

static void half_the_occupancy_saves_half_the_bytes_in_half_the_time(void **state)
{
	struct hw_unmap full = save("mi308x", 80, CU), half = save("mi308x", 40, CU);
	struct hw_unmap thin = save("mi308x", 80, CU / 2);

	assert_int_equal(half.saved_bytes * 2, full.saved_bytes);
	assert_int_equal(thin.saved_bytes * 2, full.saved_bytes);
	assert_in_range(half.save_ns * 100 / full.save_ns, 49, 51);
	assert_in_range(thin.save_ns * 100 / full.save_ns, 49, 51);
}

static void a_mi300x_saves_3_8_times_as_long_as_a_mi308x(void **state)
{
	struct hw_unmap small = save("mi308x", 10000, CU), large = save("mi300x", 10000, CU);

	assert_in_range(large.save_ns, 34900, 35100);
	assert_in_range(large.save_ns * 100 / small.save_ns, 378, 382);
}

static void the_fullest_xcc_decides_how_long_a_save_takes(void **state)
{
	struct hw_unmap one = save("mi308x", 1, CU), four = save("mi308x", 4, CU);

	assert_int_equal(one.saved_bytes * 4, four.saved_bytes);
	assert_int_equal(one.save_ns, four.save_ns);
}

static void an_idle_gpu_has_nothing_to_save(void **state)
{
	struct fixture *f = *state;
	struct hw_saved_state s;
	struct hw_unmap op;

	map_both(f);
	op = rig_unmap(&f->rig, 200);
	assert_int_equal(op.saved_bytes, 0);
	assert_int_equal(op.save_ns, 0);
	assert_int_equal(op.took_ns, f->rig.chip->costs.unmap_ns);
	assert_int_equal(op.unmapped, 2);
	s = hw_see(f->a.hw)->left[0];
	assert_int_equal(s.wave_bytes, 0);
	assert_false(hw_see(f->a.hw)->mapped);
}

static void grace_lets_short_workgroups_finish_and_ends_early_when_all_did(void **state)
{
	struct fixture *f = *state;
	struct hw_unmap op;

	rig_dispatch(&f->a, rig_kernel(&f->rig, 3000, CU), 800, 0, 0);
	rig_map_one(&f->a);
	op = rig_unmap(&f->rig, 10);
	assert_int_equal(op.saved_bytes, 0);
	assert_int_equal(op.took_ns, 3000 + f->rig.chip->costs.unmap_ns);
	assert_int_equal(rig_packet(&f->a, 0).finished, 80);
	rig_map_one(&f->a);
	op = rig_unmap(&f->rig, 6); /* 2857 ns */
	assert_int_equal(op.saved_bytes, 80 * 610304);
	assert_int_equal(rig_packet(&f->a, 0).finished, 80);
	assert_int_equal(rig_packet(&f->a, 0).executed_ns, 80 * (3000 + 2857));
}

static void a_workgroup_that_ends_with_the_grace_is_not_saved(void **state)
{
	struct fixture *f = *state;

	rig_dispatch(&f->a, rig_kernel(&f->rig, 476, CU), 1, 0, 0);
	rig_dispatch(&f->b, rig_kernel(&f->rig, 477, CU), 1, 0, 0);
	map_both(f);
	rig_unmap(&f->rig, 1);
	assert_int_equal(rig_stats(&f->a).saved, 0);
	assert_int_equal(rig_stats(&f->b).saved, 1);
	assert_int_equal(rig_packet(&f->b, 0).executed_ns, 476);
}

static void no_workgroup_starts_once_an_unmap_has_begun(void **state)
{
	struct fixture *f = *state;

	rig_dispatch(&f->a, rig_kernel(&f->rig, 100, CU), 160, 0, 0);
	rig_map_one(&f->a);
	rig_unmap(&f->rig, 255);
	assert_int_equal(rig_packet(&f->a, 0).finished, 80);
}

static void a_grace_of_zero_waits_for_the_last_workgroup(void **state)
{
	struct fixture *f = *state;
	struct hw_unmap op;

	rig_dispatch(&f->a, rig_kernel(&f->rig, 8 * NSEC_PER_SEC, CU), 1, 0, 0);
	rig_map_one(&f->a);
	op = rig_unmap(&f->rig, 0);
	assert_int_equal(op.saved_bytes, 0);
	assert_int_equal(op.took_ns, 8 * NSEC_PER_SEC + f->rig.chip->costs.unmap_ns);
	assert_int_equal(rig_stats(&f->a).completed, 1);
}

static void a_grace_of_zero_that_takes_too_long_loses_the_work(void **state)
{
	struct fixture *f = *state;
	struct hw_unmap op = { .grace_kclk = 0, .timeout_ns = RIG_TIMEOUT_NS };

	rig_dispatch(&f->a, rig_kernel(&f->rig, 10 * NSEC_PER_SEC, CU), 1, 0, 0);
	map_both(f);
	assert_int_equal(hw_unmap(f->rig.gpu, NULL, &op), -ETIME);
	assert_int_equal(op.took_ns, RIG_TIMEOUT_NS);
	assert_true(hw_see(f->a.hw)->failed);
	assert_false(hw_see(f->b.hw)->failed);
	assert_int_equal(rig_stats(&f->a).saved, 0);
	assert_int_equal(rig_stats(&f->a).resident, 0);
}

static void the_fence_of_a_dead_scheduler_never_comes(void **state)
{
	struct fixture *f = *state;
	struct hw_unmap op = { .grace_kclk = 1, .timeout_ns = RIG_TIMEOUT_NS, .dead = true };

	rig_dispatch(&f->a, rig_kernel(&f->rig, 1000, CU), 40, 0, 0);
	rig_dispatch(&f->b, rig_kernel(&f->rig, 1000, CU), 8000, 0, 0);
	map_both(f);
	assert_int_equal(hw_unmap(f->rig.gpu, NULL, &op), -ETIME);
	assert_int_equal(op.took_ns, RIG_TIMEOUT_NS);
	assert_int_equal(op.saved_bytes, 0);
	assert_int_equal(op.unmapped, 2);
	assert_false(hw_see(f->a.hw)->mapped);
	assert_int_equal(rig_packet(&f->a, 0).finished, 40); /* what ran ran on */
	assert_int_equal(rig_packet(&f->b, 0).finished, 40);
	assert_false(hw_see(f->a.hw)->failed);
	assert_true(hw_see(f->b.hw)->failed);
	hw_reset(f->rig.gpu);
	rig_map_one(&f->b);
	rig_run(&f->rig, RIG_FOREVER_NS);
	assert_int_equal(rig_packet(&f->b, 0).done_ns, 0);
}

static void a_fence_that_is_just_too_late_counts_as_lost(void **state)
{
	struct fixture *f = *state;
	struct hw_unmap op = { .grace_kclk = 1, .timeout_ns = 100000 };

	op.extra_ns = op.timeout_ns - f->rig.chip->costs.unmap_ns;
	rig_map_one(&f->a);
	assert_int_equal(hw_unmap(f->rig.gpu, NULL, &op), 0);
	assert_int_equal(op.took_ns, op.timeout_ns);
	op.extra_ns++;
	rig_map_one(&f->a);
	assert_int_equal(hw_unmap(f->rig.gpu, NULL, &op), -ETIME);
	op.extra_ns = UINT64_MAX;
	rig_map_one(&f->a);
	assert_int_equal(hw_unmap(f->rig.gpu, NULL, &op), -ETIME);
	assert_int_equal(op.took_ns, op.timeout_ns);
}

static void a_stuck_queue_is_given_up_and_the_others_are_saved(void **state)
{
	struct fixture *f = *state;
	struct hw_unmap op = { .grace_kclk = 1, .timeout_ns = RIG_TIMEOUT_NS };

	rig_dispatch(&f->a, rig_kernel(&f->rig, 10000, CU), 40, 0, 0);
	rig_dispatch(&f->b, rig_kernel(&f->rig, 10000, CU), 40, 0, 0);
	map_both(f);
	op.stuck = f->a.hw;
	assert_int_equal(hw_unmap(f->rig.gpu, NULL, &op), -EREMOTEIO);
	assert_int_equal(op.saved_bytes, 40 * 610304);
	assert_true(hw_see(f->a.hw)->failed);
	assert_int_equal(rig_stats(&f->b).saved, 40);
	rig_map_one(&f->b);
	all_done(f, &f->b);
	assert_int_equal(rig_packet(&f->a, 0).done_ns, 0);
	assert_int_equal(hw_unmap(f->rig.gpu, NULL, &op), 0);
}

static void saved_state_tells_what_ran_on_each_xcc(void **state)
{
	struct fixture *f = *state;
	struct hw_saved_state s;

	rig_dispatch(&f->a, rig_kernel(&f->rig, 10000, CU / 2), 6, 0, 0);
	rig_dispatch(&f->a, rig_kernel(&f->rig, 10000, CU / 64), 1, 0, 0);
	rig_map_one(&f->a);
	rig_unmap(&f->rig, 1);
	s = hw_see(f->a.hw)->left[0];
	assert_int_equal(s.wave_bytes, 610304);
	assert_int_equal(s.ctl_stack_used, 2 * 16 * 8);
	s = hw_see(f->a.hw)->left[2];
	assert_int_equal(s.wave_bytes, 610304 / 2 + 610304 / 64);
	assert_int_equal(s.ctl_stack_used, 17 * 8);
	rig_map_one(&f->a);
	s = hw_see(f->a.hw)->left[2];
	assert_int_equal(s.ctl_stack_used, 17 * 8); /* until the next save */
	rig_run(&f->rig, 20000);
	rig_unmap(&f->rig, 1);
	s = hw_see(f->a.hw)->left[2];
	assert_int_equal(s.ctl_stack_used, 0);
}

static void restored_workgroups_run_for_what_was_left_after_their_bytes_moved(void **state)
{
	struct fixture *f = *state;
	const struct model_costs *costs = &f->rig.chip->costs;
	struct hw_unmap op;
	uint64_t mapped_at;

	rig_dispatch(&f->a, rig_kernel(&f->rig, 100000, CU), 80, 0, 0);
	rig_map_one(&f->a);
	rig_run(&f->rig, 30000);
	op = rig_unmap(&f->rig, 1);
	rig_run(&f->rig, 12345678);
	assert_int_equal(rig_packet(&f->a, 0).executed_ns, 80 * 30476);
	mapped_at = f->rig.time.now_ns;
	rig_map_one(&f->a);
	assert_int_equal(rig_stats(&f->a).saved, 0);
	all_done(f, &f->a);
	assert_int_equal(rig_packet(&f->a, 0).done_ns,
			 mapped_at + costs->map_ns + op.save_ns + 100000 - 30476);
	assert_int_equal(rig_packet(&f->a, 0).executed_ns, 80 * 100000);
	assert_int_equal(rig_packet(&f->a, 0).saves, 1);
}

static void an_unmap_during_a_map_or_a_restore_loses_nothing(void **state)
{
	struct fixture *f = *state;
	struct hw_saved_state before, after;
	struct hw_unmap op;

	rig_dispatch(&f->a, rig_kernel(&f->rig, 100000, CU), 100, 0, 0);
	rig_map_one(&f->a);
	rig_run(&f->rig, 1000);
	rig_unmap(&f->rig, 1);
	before = hw_see(f->a.hw)->left[1];
	for (uint64_t at = 0; at < 18000; at += 1000) { /* the restore ends after 19212 ns */
		assert_int_equal(hw_map(f->rig.gpu, &f->a.hw, 1), 0);
		rig_run(&f->rig, at);
		op = rig_unmap(&f->rig, 1);
		assert_int_equal(op.saved_bytes, 0);
		assert_int_equal(rig_stats(&f->a).saved, 80);
		after = hw_see(f->a.hw)->left[1];
		assert_memory_equal(&before, &after, sizeof(before));
	}
	assert_int_equal(rig_packet(&f->a, 0).saves, 1);
	rig_map_one(&f->a);
	all_done(f, &f->a);
	assert_int_equal(rig_packet(&f->a, 0).executed_ns, 100 * 100000);
}

static void saved_workgroups_without_room_wait_and_go_before_new_ones(void **state)
{
	struct fixture *f = *state;

	rig_dispatch(&f->a, rig_kernel(&f->rig, 100000, CU), 200, 0, 0);
	rig_dispatch(&f->b, rig_kernel(&f->rig, 50000, CU / 2), 200, 0, 0);
	rig_map_one(&f->a);
	rig_unmap(&f->rig, 1);
	rig_map_one(&f->b);
	rig_unmap(&f->rig, 1);
	assert_int_equal(rig_stats(&f->a).saved, 80);
	assert_int_equal(rig_stats(&f->b).saved, 160);
	map_both(f);
	assert_int_equal(rig_stats(&f->a).resident, 80);
	assert_int_equal(rig_stats(&f->b).saved, 160);
	rig_run(&f->rig, 130000);
	assert_int_equal(rig_stats(&f->a).resident, 0);
	assert_int_equal(rig_stats(&f->b).resident, 160);
	all_done(f, &f->a);
	all_done(f, &f->b);
	assert_int_equal(rig_packet(&f->a, 0).executed_ns, 200 * 100000);
	assert_int_equal(rig_packet(&f->b, 0).executed_ns, 200 * 50000);
}

static void what_is_saved_goes_before_new_work_that_would_fit(void **state)
{
	struct fixture *f = *state;

	rig_dispatch(&f->b, rig_kernel(&f->rig, 100000, CU), 80, 0, 0);
	rig_map_one(&f->b);
	rig_unmap(&f->rig, 1);
	rig_dispatch(&f->a, rig_kernel(&f->rig, 100000, CU / 2), 156, 0, 0);
	rig_map_one(&f->a);
	rig_unmap(&f->rig, 1);
	rig_dispatch(&f->a, rig_kernel(&f->rig, 1000, CU / 4), 4, 0, 0);
	map_both(f);
	rig_run(&f->rig, 50000);
	assert_int_equal(rig_stats(&f->a).resident, 156); /* half a unit is free on each XCC */
	assert_int_equal(rig_stats(&f->b).saved, 80);
	rig_run(&f->rig, 80000);
	assert_int_equal(rig_stats(&f->b).resident, 80);
	all_done(f, &f->a);
	assert_true(rig_packet(&f->a, 1).started_ns >= rig_packet(&f->b, 0).done_ns);
}

static void what_is_saved_comes_back_in_order(void **state)
{
	struct fixture *f = *state;

	rig_dispatch(&f->b, rig_kernel(&f->rig, 100000, CU), 4, 0, 0);
	rig_dispatch(&f->b, rig_kernel(&f->rig, 100000, CU / 4), 4, 0, 0);
	rig_map_one(&f->b);
	rig_unmap(&f->rig, 1);
	rig_dispatch(&f->a, rig_kernel(&f->rig, 100000, CU / 2), 156, 0, 0);
	rig_map_one(&f->a);
	rig_unmap(&f->rig, 1);
	map_both(f);
	assert_int_equal(rig_stats(&f->a).resident, 156);
	assert_int_equal(rig_stats(&f->b).saved, 8); /* the small ones would fit */
	all_done(f, &f->b);
}

static void a_save_counts_once_for_a_packet_whatever_its_parts(void **state)
{
	struct fixture *f = *state;

	rig_dispatch(&f->b, rig_kernel(&f->rig, 10000, CU), 40, 0, 0);
	rig_dispatch(&f->a, rig_kernel(&f->rig, 100000, CU), 80, 0, 0);
	rig_map(&f->rig, (struct hw_queue *[]){ f->b.hw, f->a.hw }, 2);
	rig_run(&f->rig, 20000); /* the first half runs since before the second could start */
	assert_int_equal(rig_stats(&f->a).resident, 80);
	rig_unmap(&f->rig, 1);
	assert_int_equal(rig_packet(&f->a, 0).saves, 1);
	assert_int_equal(rig_packet(&f->a, 0).executed_ns, 40 * 20476 + 40 * 10476);
}

static void part_of_what_was_saved_together_may_come_back_first(void **state)
{
	struct fixture *f = *state;

	rig_dispatch(&f->a, rig_kernel(&f->rig, 100000, CU), 40, 0, 0);
	rig_map_one(&f->a);
	rig_unmap(&f->rig, 1);
	rig_dispatch(&f->b, rig_kernel(&f->rig, 100000, CU), 80, 0, 0);
	rig_map_one(&f->b);
	rig_unmap(&f->rig, 1);
	map_both(f);
	assert_int_equal(rig_stats(&f->a).resident, 40);
	assert_int_equal(rig_stats(&f->b).resident, 40);
	assert_int_equal(rig_stats(&f->b).saved, 40);
	all_done(f, &f->b);
	assert_int_equal(rig_packet(&f->b, 0).executed_ns, 80 * 100000);
}

static void time_on_other_gpus_goes_on_during_an_unmap(void **state)
{
	struct fixture *f = *state;
	struct rig far = f->rig;
	struct rig_queue q;

	far.gpu = hw_gpu_new(far.chip, &f->rig.time);
	rig_queue_open(&far, &q, HW_RING_AQL, 64);
	rig_dispatch(&q, rig_kernel(&f->rig, 100, CU), 800, 0, 0);
	rig_map_one(&f->a);
	rig_run(&f->rig, far.chip->costs.map_ns);
	assert_int_equal(hw_map(far.gpu, &q.hw, 1), 0);
	rig_unmap(&f->rig, 1);
	assert_int_equal(rig_packet(&q, 0).finished, 800);
	hw_reset(far.gpu);
	rig_queue_close(&q);
	hw_gpu_free(far.gpu);
}

static void a_map_that_makes_no_sense_changes_nothing(void **state)
{
	struct fixture *f = *state;
	struct rig far = f->rig;
	struct rig_queue q;

	far.gpu = hw_gpu_new(far.chip, &f->rig.time);
	rig_queue_open(&far, &q, HW_RING_AQL, 64);
	assert_int_equal(hw_map(f->rig.gpu, (struct hw_queue *[]){ f->a.hw, f->a.hw }, 2), -EINVAL);
	assert_int_equal(hw_map(f->rig.gpu, (struct hw_queue *[]){ f->a.hw, q.hw }, 2), -EINVAL);
	assert_false(hw_see(f->a.hw)->mapped);
	map_both(f);
	assert_int_equal(hw_map(f->rig.gpu, &f->a.hw, 1), -EBUSY);
	assert_true(hw_see(f->a.hw)->mapped);
	rig_unmap(&f->rig, 1);
	assert_int_equal(hw_map(f->rig.gpu, NULL, 0), 0);
	rig_queue_close(&q);
	hw_gpu_free(far.gpu);
}

static void a_reset_loses_what_is_resident_and_what_is_saved(void **state)
{
	struct fixture *f = *state;
	struct hw_saved_state s;

	rig_dispatch(&f->a, rig_kernel(&f->rig, 100000, CU), 80, 0, 0);
	rig_dispatch(&f->b, rig_kernel(&f->rig, 100000, CU), 80, 0, 0);
	rig_map_one(&f->a);
	rig_unmap(&f->rig, 1);
	rig_map_one(&f->b);
	hw_reset(f->rig.gpu);
	assert_false(hw_see(f->b.hw)->mapped);
	assert_int_equal(rig_stats(&f->a).saved + rig_stats(&f->b).resident, 0);
	assert_true(hw_see(f->a.hw)->failed && hw_see(f->b.hw)->failed);
	s = hw_see(f->a.hw)->left[0];
	assert_int_equal(s.wave_bytes, 0);
	map_both(f);
	rig_run(&f->rig, RIG_FOREVER_NS);
	assert_int_equal(rig_stats(&f->a).completed + rig_stats(&f->b).completed, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_full_gpu_saves_at_memory_bandwidth),
		TEST(a_save_area_in_host_memory_is_as_slow_as_the_link_both_ways),
		TEST(half_the_occupancy_saves_half_the_bytes_in_half_the_time),
		TEST(a_mi300x_saves_3_8_times_as_long_as_a_mi308x),
		TEST(the_fullest_xcc_decides_how_long_a_save_takes),
		TEST(an_idle_gpu_has_nothing_to_save),
		TEST(grace_lets_short_workgroups_finish_and_ends_early_when_all_did),
		TEST(a_workgroup_that_ends_with_the_grace_is_not_saved),
		TEST(no_workgroup_starts_once_an_unmap_has_begun),
		TEST(a_grace_of_zero_waits_for_the_last_workgroup),
		TEST(a_grace_of_zero_that_takes_too_long_loses_the_work),
		TEST(the_fence_of_a_dead_scheduler_never_comes),
		TEST(a_fence_that_is_just_too_late_counts_as_lost),
		TEST(a_stuck_queue_is_given_up_and_the_others_are_saved),
		TEST(saved_state_tells_what_ran_on_each_xcc),
		TEST(restored_workgroups_run_for_what_was_left_after_their_bytes_moved),
		TEST(an_unmap_during_a_map_or_a_restore_loses_nothing),
		TEST(saved_workgroups_without_room_wait_and_go_before_new_ones),
		TEST(what_is_saved_goes_before_new_work_that_would_fit),
		TEST(what_is_saved_comes_back_in_order),
		TEST(a_save_counts_once_for_a_packet_whatever_its_parts),
		TEST(part_of_what_was_saved_together_may_come_back_first),
		TEST(time_on_other_gpus_goes_on_during_an_unmap),
		TEST(a_map_that_makes_no_sense_changes_nothing),
		TEST(a_reset_loses_what_is_resident_and_what_is_saved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
