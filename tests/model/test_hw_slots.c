/* SPDX-License-Identifier: MIT */
/* More queues than slots, more address spaces than VMIDs: who is on hardware when. */
#include <errno.h>

#include "tests/model/hw_rig.h"

#define CU HW_CU_UNITS
#define MAX_QUEUES 60
#define QUANTUM (10 * NSEC_PER_MSEC)

struct fixture {
	struct model_chip chip;
	struct rig rig;
	struct rig spaces[20]; /* the same GPU, each with memory of its own */
	struct rig_queue q[MAX_QUEUES];
	size_t n;
};

static int open_fixture(void **state)
{
	*state = calloc(1, sizeof(struct fixture));
	return 0;
}

static void use_chip(struct fixture *f, const char *name)
{
	f->chip = *model_chip_find(name);
	rig_open_chip(&f->rig, &f->chip);
}

/* One whose GPU has room for one queue at a time. */
static void use_one_slot(struct fixture *f)
{
	f->chip = *model_chip_find("mi308x");
	f->chip.n_cp_queues = 1;
	rig_open_chip(&f->rig, &f->chip);
}

static int close_fixture(void **state)
{
	struct fixture *f = *state;

	hw_reset(f->rig.gpu);
	for (size_t i = 0; i < f->n; i++)
		rig_queue_close(&f->q[i]);
	for (size_t i = 0; i < ARRAY_SIZE(f->spaces); i++)
		mem_free(f->spaces[i].vm);
	rig_close(&f->rig);
	free(f);
	return 0;
}

static struct rig_queue *add_queue(struct fixture *f, struct rig *rig, enum hw_ring ring)
{
	rig_queue_open(rig, &f->q[f->n], ring, 64);
	return &f->q[f->n++];
}

static void add_queues(struct fixture *f, size_t n)
{
	for (size_t i = 0; i < n; i++)
		add_queue(f, &f->rig, HW_RING_AQL);
}

/* One queue in each of @n address spaces. */
static void add_spaces(struct fixture *f, size_t n, enum hw_ring ring)
{
	for (size_t i = 0; i < n; i++) {
		f->spaces[i] = f->rig;
		f->spaces[i].vm = mem_new();
		add_queue(f, &f->spaces[i], ring);
	}
}

static void map_all(struct fixture *f)
{
	struct hw_queue *qs[MAX_QUEUES];

	for (size_t i = 0; i < f->n; i++)
		qs[i] = f->q[i].hw;
	assert_int_equal(hw_map(f->rig.gpu, qs, f->n), 0);
	rig_run(&f->rig, f->chip.costs.map_ns);
}

static bool on(const struct fixture *f, size_t i)
{
	return hw_see(f->q[i].hw)->on;
}

/* All but @n from @first on, over the end of the list. */
static void all_on_but(const struct fixture *f, size_t first, size_t n)
{
	for (size_t i = 0; i < f->n; i++) {
		bool out = (i + f->n - first) % f->n < n;

		if (on(f, i) == out)
			fail_msg("queue %zu of %zu is %s hardware", i, f->n, out ? "on" : "off");
		assert_true(hw_see(f->q[i].hw)->mapped);
	}
}

static struct hw_turns turns(const struct fixture *f)
{
	return *hw_gpu_turns(f->rig.gpu);
}

/* Runs from just before the change to just after it; they have nothing to move. */
static void next_turn(struct fixture *f)
{
	uint64_t before = turns(f).rotations;

	rig_run(&f->rig, QUANTUM - 1);
	assert_int_equal(turns(f).rotations, before);
	rig_run(&f->rig, 1);
	assert_int_equal(turns(f).rotations, before + 1);
	rig_run(&f->rig, f->chip.costs.map_ns);
}

static void queues_that_all_have_a_slot_are_left_in_peace(void **state)
{
	struct fixture *f = *state;

	use_chip(f, "mi308x");
	add_queues(f, 24);
	for (int i = 0; i < 8; i++)
		add_queue(f, &f->rig, HW_RING_SDMA);
	map_all(f);
	all_on_but(f, 0, 0);
	rig_run(&f->rig, NSEC_PER_SEC);
	assert_int_equal(turns(f).rotations, 0);
	all_on_but(f, 0, 0);
}

static void the_turn_passes_to_those_left_over_in_the_order_of_the_list(void **state)
{
	struct fixture *f = *state;

	use_chip(f, "mi308x");
	add_queues(f, 30);
	map_all(f);
	all_on_but(f, 24, 6);
	next_turn(f);
	all_on_but(f, 18, 6);
	next_turn(f);
	all_on_but(f, 12, 6);
	next_turn(f);
	all_on_but(f, 6, 6);
	next_turn(f);
	all_on_but(f, 0, 6);
	next_turn(f);
	all_on_but(f, 24, 6);
}

static void pm4_queues_need_a_slot_and_sdma_queues_none(void **state)
{
	struct fixture *f = *state;

	use_one_slot(f);
	add_queue(f, &f->rig, HW_RING_SDMA);
	add_queue(f, &f->rig, HW_RING_PM4);
	add_queue(f, &f->rig, HW_RING_SDMA);
	add_queue(f, &f->rig, HW_RING_PM4);
	map_all(f);
	assert_true(on(f, 0) && on(f, 1) && on(f, 2));
	assert_false(on(f, 3));
	next_turn(f);
	assert_true(on(f, 3) && on(f, 0));
	assert_false(on(f, 1));
}

static void address_spaces_take_turns_on_the_vmids(void **state)
{
	struct fixture *f = *state;

	use_chip(f, "mi308x");
	add_spaces(f, 14, HW_RING_SDMA);
	map_all(f);
	all_on_but(f, 13, 1);
	next_turn(f);
	all_on_but(f, 12, 1);
}

static void queues_of_one_address_space_share_a_vmid(void **state)
{
	struct fixture *f = *state;

	use_chip(f, "mi25"); /* 8 VMIDs */
	add_spaces(f, 8, HW_RING_AQL);
	for (int i = 0; i < 16; i++)
		add_queue(f, &f->spaces[i % 8], HW_RING_AQL);
	map_all(f);
	all_on_but(f, 0, 0);
	rig_run(&f->rig, NSEC_PER_SEC);
	assert_int_equal(turns(f).rotations, 0);
}

/* Two that fill the GPU for longer than a quantum. */
static void two_rivals(struct fixture *f, uint64_t wg_ns)
{
	add_queues(f, 2);
	for (int i = 0; i < 2; i++)
		rig_dispatch(&f->q[i], rig_kernel(&f->rig, wg_ns, CU), 80, 0, 0);
	map_all(f);
	assert_int_equal(rig_stats(&f->q[0]).resident, 80);
	assert_int_equal(rig_stats(&f->q[1]).resident, 0);
}

static void a_change_of_turns_saves_one_and_restores_the_other_at_the_cost_of_both(void **state)
{
	struct fixture *f = *state;
	uint64_t live_ns, move_ns, change_ns;
	struct hw_saved_state saved;

	use_one_slot(f);
	two_rivals(f, 15 * NSEC_PER_MSEC);
	live_ns = f->rig.time.now_ns;
	rig_run(&f->rig, QUANTUM);
	assert_int_equal(turns(f).rotations, 1);
	assert_int_equal(turns(f).saved.bytes, 80 * 610304);
	move_ns = turns(f).saved.ns;
	assert_in_range(move_ns, 9200, 9230);
	assert_int_equal(rig_stats(&f->q[0]).saved, 80);
	saved = hw_see(f->q[0].hw)->left[3];
	assert_int_equal(saved.wave_bytes, 20 * 610304);

	rig_run(&f->rig, 10 * QUANTUM);
	change_ns = f->chip.costs.trap_ns + move_ns + f->chip.costs.map_ns;
	assert_int_equal(rig_packet(&f->q[1], 0).started_ns, live_ns + QUANTUM + change_ns);
	/* A quantum of its own, one of the other's, two changes of which one brings it back. */
	assert_int_equal(rig_packet(&f->q[0], 0).done_ns,
			 live_ns + QUANTUM + change_ns + QUANTUM + change_ns + move_ns +
				 5 * NSEC_PER_MSEC);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(rig_packet(&f->q[i], 0).finished, 80);
		assert_int_equal(rig_packet(&f->q[i], 0).executed_ns, 80 * 15 * NSEC_PER_MSEC);
		assert_int_equal(rig_packet(&f->q[i], 0).saves, 1);
	}
}

static void a_quantum_shorter_than_a_save_still_lets_work_progress(void **state)
{
	struct fixture *f = *state;

	f->chip = *model_chip_find("mi308x");
	f->chip.n_cp_queues = 1;
	f->chip.save_in_host = true;
	f->chip.costs.quantum_ns = NSEC_PER_USEC;
	rig_open_chip(&f->rig, &f->chip);
	two_rivals(f, 100 * NSEC_PER_USEC);
	rig_run(&f->rig, NSEC_PER_SEC);
	assert_int_equal(rig_stats(&f->q[0]).completed, 1);
	assert_int_equal(rig_stats(&f->q[1]).completed, 1);
}

/* Those in both turns, one of them at work. */
static void who_stays_runs_on_through_a_change_of_turns(void **state)
{
	struct fixture *f = *state;

	use_chip(f, "mi308x");
	add_queues(f, 26);
	rig_dispatch(&f->q[5], rig_kernel(&f->rig, 25 * NSEC_PER_MSEC, CU), 80, 0, 0);
	map_all(f);
	rig_run(&f->rig, NSEC_PER_SEC);
	assert_int_equal(rig_packet(&f->q[5], 0).saves, 0);
	assert_int_equal(rig_packet(&f->q[5], 0).done_ns,
			 rig_packet(&f->q[5], 0).started_ns + 25 * NSEC_PER_MSEC);
}

static void a_doorbell_out_of_turn_is_dropped_and_the_pointer_read_with_the_turn(void **state)
{
	struct fixture *f = *state;
	uint64_t live_ns;

	use_one_slot(f);
	add_queues(f, 2);
	map_all(f);
	live_ns = f->rig.time.now_ns;
	rig_run(&f->rig, NSEC_PER_MSEC);
	rig_dispatch(&f->q[1], rig_kernel(&f->rig, 1000, CU), 1, 0, 0);
	assert_int_equal(hw_see(f->q[1].hw)->write, 0);
	rig_run(&f->rig, 5 * NSEC_PER_MSEC);
	assert_int_equal(rig_stats(&f->q[1]).completed, 0);
	rig_run(&f->rig, QUANTUM);
	assert_int_equal(rig_packet(&f->q[1], 0).submitted_ns, live_ns + NSEC_PER_MSEC);
	assert_int_equal(rig_packet(&f->q[1], 0).started_ns,
			 live_ns + QUANTUM + f->chip.costs.map_ns);
}

static void a_signal_set_out_of_turn_is_seen_with_the_turn(void **state)
{
	struct fixture *f = *state;
	uint64_t signal;

	use_one_slot(f);
	add_queues(f, 2);
	signal = rig_signal(&f->rig, 1);
	rig_barrier(&f->q[0], AQL_BARRIER_AND, signal, 0, 0);
	map_all(f);
	next_turn(f);
	mem_write64(f->rig.vm, signal + AQL_SIGNAL_VALUE_OFFSET, 0);
	rig_run(&f->rig, NSEC_PER_MSEC);
	assert_int_equal(rig_stats(&f->q[0]).completed, 0);
	rig_run(&f->rig, QUANTUM);
	assert_int_equal(rig_stats(&f->q[0]).completed, 1);
}

static void sixty_queues_on_24_slots_get_equal_shares(void **state)
{
	struct fixture *f = *state;
	uint64_t sum = 0;

	use_chip(f, "mi100");
	add_queues(f, 60);
	for (int i = 0; i < 60; i++) {
		uint64_t kernel = rig_kernel(&f->rig, NSEC_PER_MSEC, CU);

		rig_dispatch(&f->q[i], kernel, 1000000, 0, 0);
	}
	map_all(f);
	rig_run(&f->rig, 10 * NSEC_PER_SEC);
	for (int i = 0; i < 60; i++)
		sum += rig_packet(&f->q[i], 0).finished;
	/* A change of turns takes 132 us: 60 to save, 60 to restore, 12 for the rest. */
	assert_in_range(sum, 120 * 10000 * 98 / 100, 120 * 10000 * 99 / 100);
	for (int i = 0; i < 60; i++)
		assert_in_range(rig_packet(&f->q[i], 0).finished, sum / 60 * 95 / 100,
				sum / 60 * 105 / 100);
}

static void a_map_begins_with_the_first_again(void **state)
{
	struct fixture *f = *state;
	uint64_t rotations;
	struct hw_unmap op;

	use_chip(f, "mi308x");
	add_queues(f, 30);
	map_all(f);
	next_turn(f);
	op = rig_unmap(&f->rig, 1);
	assert_int_equal(op.unmapped, 30);
	rotations = turns(f).rotations;
	rig_run(&f->rig, NSEC_PER_SEC);
	assert_int_equal(turns(f).rotations, rotations);
	for (size_t i = 0; i < f->n; i++)
		assert_false(on(f, i) || hw_see(f->q[i].hw)->mapped);
	map_all(f);
	all_on_but(f, 24, 6);
	next_turn(f);
	all_on_but(f, 18, 6);
}

static void turns_do_not_change_while_an_unmap_is_under_way(void **state)
{
	struct fixture *f = *state;

	use_one_slot(f);
	two_rivals(f, QUANTUM + 50 * NSEC_PER_USEC);
	rig_run(&f->rig, QUANTUM - NSEC_PER_USEC);
	rig_unmap(&f->rig, 255); /* 121 us */
	assert_int_equal(turns(f).rotations, 0);
	assert_int_equal(rig_stats(&f->q[0]).completed, 1);
}

static void an_unmap_waits_for_what_a_change_of_turns_still_saves(void **state)
{
	struct fixture *f = *state;
	struct hw_unmap op;

	use_one_slot(f);
	two_rivals(f, NSEC_PER_SEC);
	rig_run(&f->rig, QUANTUM + 1000);
	op = rig_unmap(&f->rig, 1);
	assert_int_equal(op.saved_bytes, 0);
	assert_int_equal(op.took_ns,
			 f->chip.costs.trap_ns + turns(f).saved.ns - 1000 + f->chip.costs.unmap_ns);
	assert_int_equal(rig_stats(&f->q[0]).saved, 80);
	map_all(f);
	rig_run(&f->rig, RIG_FOREVER_NS);
	assert_int_equal(rig_packet(&f->q[0], 0).executed_ns, 80 * NSEC_PER_SEC);
	assert_int_equal(rig_packet(&f->q[1], 0).executed_ns, 80 * NSEC_PER_SEC);
}

static void who_is_off_hardware_neither_sticks_nor_loses_its_work(void **state)
{
	struct fixture *f = *state;
	struct hw_unmap op = { .grace_kclk = 1, .timeout_ns = RIG_TIMEOUT_NS };

	use_one_slot(f);
	two_rivals(f, 2 * RIG_TIMEOUT_NS);
	rig_run(&f->rig, QUANTUM + NSEC_PER_MSEC);
	op.stuck = f->q[0].hw;
	assert_int_equal(hw_unmap(f->rig.gpu, NULL, &op), 0);
	map_all(f);
	rig_run(&f->rig, QUANTUM + NSEC_PER_MSEC);
	op.dead = true;
	assert_int_equal(hw_unmap(f->rig.gpu, NULL, &op), -ETIME);
	assert_false(hw_see(f->q[0].hw)->failed);
	assert_true(hw_see(f->q[1].hw)->failed);
	assert_int_equal(rig_stats(&f->q[0]).saved, 80);
}

/* ---- one queue at a time ---- */

static void add_all(struct fixture *f)
{
	for (size_t i = 0; i < f->n; i++)
		assert_int_equal(hw_add(f->q[i].hw), 0);
	rig_run(&f->rig, f->chip.costs.map_ns);
}

static void remove_one(struct fixture *f, size_t i)
{
	struct hw_unmap op = { .timeout_ns = RIG_TIMEOUT_NS };

	assert_int_equal(hw_unmap(f->rig.gpu, f->q[i].hw, &op), 0);
	assert_int_equal(op.took_ns, f->chip.costs.unmap_ns);
}

static void mes_goes_round_as_well(void **state)
{
	struct fixture *f = *state;

	use_chip(f, "gfx1200");
	add_queues(f, 26);
	add_all(f);
	all_on_but(f, 24, 2);
	next_turn(f);
	all_on_but(f, 22, 2);
}

static void a_slot_that_comes_free_goes_to_the_next_at_once(void **state)
{
	struct fixture *f = *state;

	use_chip(f, "gfx1200");
	add_queues(f, 26);
	add_all(f);
	remove_one(f, 3);
	assert_true(on(f, 24));
	assert_false(on(f, 25));
	assert_false(on(f, 3) || hw_see(f->q[3].hw)->mapped);
	remove_one(f, 25);
	rig_run(&f->rig, NSEC_PER_SEC);
	assert_int_equal(turns(f).rotations, 0);
}

/* It is the one this turn began with. */
static void the_first_of_a_turn_may_go(void **state)
{
	struct fixture *f = *state;

	use_chip(f, "gfx1200");
	add_queues(f, 27);
	add_all(f);
	next_turn(f);
	remove_one(f, 24);
	for (size_t i = 0; i < 27; i++)
		assert_int_equal(on(f, i), i != 24 && i != 22 && i != 23);
	remove_one(f, 26);
	remove_one(f, 25);
	for (size_t i = 0; i < 24; i++)
		assert_true(on(f, i));
}

static void queues_added_in_any_order_share_the_vmid_of_their_address_space(void **state)
{
	struct fixture *f = *state;

	use_chip(f, "gfx1150"); /* 8 VMIDs */
	add_spaces(f, 8, HW_RING_AQL);
	for (int i = 0; i < 16; i++)
		add_queue(f, &f->spaces[i % 8], HW_RING_AQL);
	add_all(f);
	all_on_but(f, 0, 0);
	rig_run(&f->rig, NSEC_PER_SEC);
	assert_int_equal(turns(f).rotations, 0);
}

static void an_added_queue_starts_when_its_bytes_are_back(void **state)
{
	struct fixture *f = *state;
	struct hw_unmap op = { .timeout_ns = RIG_TIMEOUT_NS };
	uint64_t before;

	use_chip(f, "gfx1200");
	add_queues(f, 1);
	rig_dispatch(&f->q[0], rig_kernel(&f->rig, NSEC_PER_MSEC, CU), 32, 0, 0);
	add_all(f);
	assert_int_equal(hw_unmap(f->rig.gpu, f->q[0].hw, &op), 0);
	assert_true(op.save_ns > 40 * NSEC_PER_USEC);
	before = f->rig.time.now_ns;
	assert_int_equal(hw_add(f->q[0].hw), 0);
	rig_run(&f->rig, 2 * NSEC_PER_MSEC);
	assert_int_equal(rig_packet(&f->q[0], 0).done_ns,
			 before + f->chip.costs.map_ns + op.save_ns + NSEC_PER_MSEC);
}

static void chips_without_slots_vmids_quantum_or_link_are_refused(void **state)
{
	struct fixture *f = *state;
	struct model_chip bad;

	use_chip(f, "mi308x");
	bad = f->chip;
	bad.n_cp_queues = 0;
	assert_null(hw_gpu_new(&bad, &f->rig.time));
	bad = f->chip;
	bad.n_vmid = 0;
	assert_null(hw_gpu_new(&bad, &f->rig.time));
	bad = f->chip;
	bad.costs.quantum_ns = 0;
	assert_null(hw_gpu_new(&bad, &f->rig.time));
	bad = f->chip;
	bad.save_in_host = true;
	bad.link_bytes_per_s = 0;
	assert_null(hw_gpu_new(&bad, &f->rig.time));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(queues_that_all_have_a_slot_are_left_in_peace),
		TEST(the_turn_passes_to_those_left_over_in_the_order_of_the_list),
		TEST(pm4_queues_need_a_slot_and_sdma_queues_none),
		TEST(address_spaces_take_turns_on_the_vmids),
		TEST(queues_of_one_address_space_share_a_vmid),
		TEST(a_change_of_turns_saves_one_and_restores_the_other_at_the_cost_of_both),
		TEST(a_quantum_shorter_than_a_save_still_lets_work_progress),
		TEST(who_stays_runs_on_through_a_change_of_turns),
		TEST(a_doorbell_out_of_turn_is_dropped_and_the_pointer_read_with_the_turn),
		TEST(a_signal_set_out_of_turn_is_seen_with_the_turn),
		TEST(sixty_queues_on_24_slots_get_equal_shares),
		TEST(a_map_begins_with_the_first_again),
		TEST(turns_do_not_change_while_an_unmap_is_under_way),
		TEST(an_unmap_waits_for_what_a_change_of_turns_still_saves),
		TEST(who_is_off_hardware_neither_sticks_nor_loses_its_work),
		TEST(mes_goes_round_as_well),
		TEST(a_slot_that_comes_free_goes_to_the_next_at_once),
		TEST(the_first_of_a_turn_may_go),
		TEST(queues_added_in_any_order_share_the_vmid_of_their_address_space),
		TEST(an_added_queue_starts_when_its_bytes_are_back),
		TEST(chips_without_slots_vmids_quantum_or_link_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
