/* SPDX-License-Identifier: MIT */
/* Who gets room on the compute units. */
#include "tests/model/hw_rig.h"

#define CU HW_CU_UNITS

struct fixture {
	struct rig rig;
	struct rig_queue q[3];
};

static int open_fixture(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	rig_open(&f->rig, "mi308x");
	for (int i = 0; i < 3; i++)
		rig_queue_open(&f->rig, &f->q[i], HW_RING_AQL, 256);
	*state = f;
	return 0;
}

static int close_fixture(void **state)
{
	struct fixture *f = *state;

	hw_reset(f->rig.gpu);
	for (int i = 0; i < 3; i++)
		rig_queue_close(&f->q[i]);
	rig_close(&f->rig);
	free(f);
	return 0;
}

static void map_first(struct fixture *f, size_t n)
{
	rig_map(&f->rig, (struct hw_queue *[]){ f->q[0].hw, f->q[1].hw, f->q[2].hw }, n);
}

static uint64_t resident(const struct fixture *f, int i)
{
	return rig_stats(&f->q[i]).resident;
}

static void a_compute_unit_holds_as_many_workgroups_as_fit_whole(void **state)
{
	static const struct {
		uint32_t units, per_cu, waves;
	} shapes[] = {
		{ CU, 1, 32 },     { CU / 2, 2, 16 },  { CU / 2 + 1, 1, 16 }, { CU / 3, 3, 10 },
		{ CU / 7, 7, 4 },  { CU / 31, 31, 1 }, { CU / 32, 32, 1 },    { CU / 64, 32, 1 },
		{ 1, 32, 1 },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
		uint64_t kernel = rig_kernel(&f->rig, 100, shapes[i].units);
		uint32_t per_cu = shapes[i].per_cu;

		rig_dispatch(&f->q[0], kernel, 10000, 0, 0);
		map_first(f, 1);
		assert_int_equal(resident(f, 0), 80 * per_cu);
		assert_int_equal(hw_see(f->q[0].hw)->waves[3], 20 * per_cu * shapes[i].waves);
		rig_run(&f->rig, NSEC_PER_MSEC);
		assert_int_equal(resident(f, 0), 0);
		assert_int_equal(hw_see(f->q[0].hw)->waves[3], 0);
		rig_unmap(&f->rig, 1);
	}
	assert_int_equal(hw_see(f->q[0].hw)->waves[4], 0);
}

static void workgroups_are_dealt_to_the_xccs_in_turn_from_packet_to_packet(void **state)
{
	struct fixture *f = *state;
	uint64_t kernel = rig_kernel(&f->rig, 1000, CU);

	rig_dispatch(&f->q[0], kernel, 5, 0, 0);
	map_first(f, 1);
	assert_int_equal(hw_see(f->q[0].hw)->waves[0], 2 * 32);
	assert_int_equal(hw_see(f->q[0].hw)->waves[1], 1 * 32);
	rig_dispatch(&f->q[0], kernel, 2, 0, 0);
	rig_run(&f->rig, 1);
	assert_int_equal(hw_see(f->q[0].hw)->waves[1], 2 * 32);
	assert_int_equal(hw_see(f->q[0].hw)->waves[2], 2 * 32);
	assert_int_equal(hw_see(f->q[0].hw)->waves[3], 1 * 32);
}

static void equal_queues_take_turns(void **state)
{
	struct fixture *f = *state;
	uint64_t kernel = rig_kernel(&f->rig, 1000, CU);

	for (int i = 0; i < 3; i++)
		rig_dispatch(&f->q[i], kernel, 1000, 0, 0);
	map_first(f, 3);
	for (uint32_t i = 0; i < 12; i++) {
		assert_int_equal(resident(f, i % 3), 80);
		rig_run(&f->rig, 1000);
	}
	for (int i = 0; i < 3; i++)
		assert_int_equal(rig_packet(&f->q[i], 0).finished, 4 * 80);
}

static void room_one_queue_does_not_use_goes_to_the_others(void **state)
{
	struct fixture *f = *state;
	uint64_t kernel = rig_kernel(&f->rig, 1000, CU);

	rig_dispatch(&f->q[0], kernel, 8, 0, 0);
	rig_dispatch(&f->q[1], kernel, 1000, 0, 0);
	map_first(f, 3);
	assert_int_equal(resident(f, 0), 8);
	assert_int_equal(resident(f, 1), 72);
}

static void a_single_free_place_goes_round(void **state)
{
	struct fixture *f = *state;
	uint64_t blocker = rig_kernel(&f->rig, NSEC_PER_SEC, CU);
	uint64_t kernel = rig_kernel(&f->rig, 1000, CU);

	rig_dispatch(&f->q[0], blocker, 76, 0, 0);
	map_first(f, 3);
	for (int i = 0; i < 12; i++) {
		rig_dispatch(&f->q[1], kernel, 4, 0, 0);
		rig_dispatch(&f->q[2], kernel, 4, 0, 0);
	}
	for (uint64_t i = 1; i <= 10; i++) {
		rig_run(&f->rig, 2000);
		assert_int_equal(rig_stats(&f->q[1]).completed, i);
		assert_int_equal(rig_stats(&f->q[2]).completed, i);
	}
}

static void a_running_workgroup_is_never_displaced(void **state)
{
	struct fixture *f = *state;

	rig_dispatch(&f->q[0], rig_kernel(&f->rig, 100000, CU), 80, 0, 0);
	map_first(f, 2);
	rig_dispatch(&f->q[1], rig_kernel(&f->rig, 10, CU), 1, 0, 0);
	rig_run(&f->rig, 99999);
	assert_int_equal(resident(f, 0), 80);
	assert_int_equal(rig_stats(&f->q[1]).completed, 0);
	rig_run(&f->rig, 11);
	assert_int_equal(rig_stats(&f->q[1]).completed, 1);
	assert_int_equal(rig_packet(&f->q[1], 0).started_ns, rig_packet(&f->q[0], 0).done_ns);
}

static void a_small_workgroup_may_pass_a_large_one_that_does_not_fit(void **state)
{
	struct fixture *f = *state;

	rig_dispatch(&f->q[0], rig_kernel(&f->rig, 1000, CU / 2), 156, 0, 0);
	map_first(f, 3);
	rig_dispatch(&f->q[1], rig_kernel(&f->rig, 1000, CU), 80, 0, 0);
	rig_dispatch(&f->q[2], rig_kernel(&f->rig, 1000, CU / 4), 80, 0, 0);
	rig_run(&f->rig, 1);
	assert_int_equal(resident(f, 0), 156);
	assert_int_equal(resident(f, 1), 0);
	assert_int_equal(resident(f, 2), 8);
}

static void refill(void *user, uint64_t index)
{
	struct rig_queue *q = user;
	struct aql_dispatch d = { .header = AQL_KERNEL_DISPATCH, .workgroup_x = 1 };

	assert_int_equal(index, rig_stats(q).completed - 1);
	rig_put(q, &d);
	hw_doorbell(q->hw);
}

static void a_program_that_refills_with_empty_work_does_not_stop_the_clock(void **state)
{
	struct fixture *f = *state;

	hw_queue_on_complete(f->q[0].hw, refill, &f->q[0]);
	rig_dispatch(&f->q[0], 0, 0, 0, 0);
	map_first(f, 1);
	rig_run(&f->rig, 1000);
	assert_int_equal(rig_stats(&f->q[0]).completed, 1000);
}

struct loop {
	struct rig_queue *q;
	uint64_t kernel;
};

static void again(void *user, uint64_t index)
{
	struct loop *l = user;

	rig_dispatch(l->q, l->kernel, 320, AQL_BARRIER_BIT, 0);
}

/* Long simulations stand or fall with it; counted, because a time would depend on the machine. */
static void a_packet_costs_a_handful_of_events_however_many_workgroups(void **state)
{
	struct fixture *f = *state;
	struct loop loops[3];
	uint64_t packets = 0, before;

	for (int i = 0; i < 3; i++) {
		loops[i] = (struct loop){ &f->q[i], rig_kernel(&f->rig, 20000 + i, CU / 4) };
		hw_queue_on_complete(f->q[i].hw, again, &loops[i]);
		again(&loops[i], 0);
		again(&loops[i], 0);
	}
	map_first(f, 3);
	before = f->rig.time.seq;
	rig_run(&f->rig, NSEC_PER_SEC);
	for (int i = 0; i < 3; i++)
		packets += rig_stats(&f->q[i]).completed;
	assert_in_range(packets, 49000, 50000);
	assert_true(f->rig.time.seq - before < packets * 8);
}

static void kernels_without_duration_and_without_end_are_run(void **state)
{
	struct fixture *f = *state;

	rig_dispatch(&f->q[0], rig_kernel(&f->rig, 0, CU), 800, 0, 0);
	rig_dispatch(&f->q[1], rig_kernel(&f->rig, UINT64_MAX, CU), 1, 0, 0);
	map_first(f, 2);
	rig_run(&f->rig, 100);
	assert_int_equal(rig_packet(&f->q[0], 0).finished, 800);
	assert_int_equal(rig_packet(&f->q[0], 0).executed_ns, 0);
	rig_run(&f->rig, RIG_FOREVER_NS);
	assert_int_equal(resident(f, 1), 1);
	rig_unmap(&f->rig, 1);
	assert_int_equal(rig_stats(&f->q[1]).saved, 1);
}

static void progress_of_running_workgroups_shows(void **state)
{
	struct fixture *f = *state;

	rig_dispatch(&f->q[0], rig_kernel(&f->rig, 1000, CU), 100, 0, 0);
	map_first(f, 1);
	rig_run(&f->rig, 1250);
	assert_int_equal(rig_packet(&f->q[0], 0).executed_ns, 80 * 1000 + 20 * 250);
	assert_int_equal(rig_packet(&f->q[0], 0).finished, 80);
	assert_int_equal(rig_packet(&f->q[0], 0).done_ns, 0);
}

static void chips_that_cannot_be_are_refused(void **state)
{
	struct fixture *f = *state;
	struct model_chip chip = *f->rig.chip;

	chip.n_xcc = MODEL_MAX_XCC + 1;
	assert_null(hw_gpu_new(&chip, &f->rig.time));
	chip.n_xcc = 0;
	assert_null(hw_gpu_new(&chip, &f->rig.time));
	assert_null(model_chip_find("mi50"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_compute_unit_holds_as_many_workgroups_as_fit_whole),
		TEST(workgroups_are_dealt_to_the_xccs_in_turn_from_packet_to_packet),
		TEST(equal_queues_take_turns),
		TEST(room_one_queue_does_not_use_goes_to_the_others),
		TEST(a_single_free_place_goes_round),
		TEST(a_running_workgroup_is_never_displaced),
		TEST(a_small_workgroup_may_pass_a_large_one_that_does_not_fit),
		TEST(a_program_that_refills_with_empty_work_does_not_stop_the_clock),
		TEST(a_packet_costs_a_handful_of_events_however_many_workgroups),
		TEST(kernels_without_duration_and_without_end_are_run),
		TEST(progress_of_running_workgroups_shows),
		TEST(chips_that_cannot_be_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
