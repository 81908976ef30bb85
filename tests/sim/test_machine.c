/* SPDX-License-Identifier: MIT */
/* Who gets how much of a GPU, and that no work is lost or made. */
#include <stdlib.h>

#include "sim/arrival.h"
#include "sim/machine.h"
#include "tests/sim/sim_rig.h"

#define MAX_QUEUES 40
#define QUANTUM_NS (10 * MSEC) /* of the chip */
#define MAP_NS 10000u
#define TRAP_NS 2000u

struct bench {
	struct sim_machine m;
	struct model_chip chip;
	struct sim_program programs[MAX_QUEUES];
};

static struct sim_model plain(uint32_t occupancy_permille, uint64_t workgroup_ns)
{
	return (struct sim_model){
		.kernels = 10,
		.kernel_ns = 100 * USEC,
		.occupancy_permille = occupancy_permille,
		.workgroup_ns = workgroup_ns,
	};
}

static void bench_open(struct bench *b, enum sim_mode mode, const struct sim_model *models,
		       size_t n)
{
	b->chip = *model_chip_find("mi100");
	assert_int_equal(sim_machine_init(&b->m, mode, &b->chip, n), 0);
	for (size_t i = 0; i < n; i++) {
		sim_program_init(&b->programs[i], &models[i], 1000, 1000000);
		b->m.queues[i].program = &b->programs[i];
		b->m.queues[i].process = i;
	}
}

static void submit_all(struct bench *b)
{
	for (size_t i = 0; i < b->m.n; i++)
		sim_machine_submit(&b->m, &b->m.queues[i]);
	sim_machine_update(&b->m);
}

/* Runs until the queue is done with its request; when that is. */
static uint64_t run_until_done(struct bench *b, size_t queue)
{
	for (;;) {
		uint64_t next = sim_machine_next_ns(&b->m);

		assert_true(next != UINT64_MAX);
		sim_machine_advance(&b->m, next);
		for (size_t i = 0; i < b->m.n; i++) {
			if (sim_machine_finish(&b->m, &b->m.queues[i]) && i == queue)
				return next;
		}
		sim_machine_turn(&b->m);
		sim_machine_update(&b->m);
	}
}

static void alone_a_request_takes_its_kernels_and_gaps(void **state)
{
	struct sim_model model = plain(300, 10 * USEC);
	struct bench b;

	model.gap_ns = 7;
	bench_open(&b, SIM_NONE, &model, 1);
	submit_all(&b);
	assert_int_equal(run_until_done(&b, 0), 10 * 100 * USEC + 9 * 7);
	sim_machine_done(&b.m);
}

static void two_that_fill_the_gpu_take_twice_as_long(void **state)
{
	struct sim_model models[] = { plain(1000, 10 * USEC), plain(1000, 10 * USEC) };
	struct bench b;

	bench_open(&b, SIM_NONE, models, 2);
	submit_all(&b);
	assert_int_equal(b.m.queues[0].speed, SIM_SPEED / 2);
	assert_int_equal(run_until_done(&b, 0), 2 * MSEC);
	sim_machine_done(&b.m);
}

static void what_fits_runs_as_if_alone(void **state)
{
	struct sim_model models[] = { plain(600, USEC), plain(300, 9 * USEC), plain(100, USEC) };
	struct bench b;

	bench_open(&b, SIM_NONE, models, 3);
	submit_all(&b);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(b.m.queues[i].speed, SIM_SPEED);
	sim_machine_done(&b.m);
}

static void what_a_small_one_does_not_need_goes_to_the_large(void **state)
{
	struct sim_model models[] = { plain(200, USEC), plain(1000, USEC), plain(1000, USEC) };
	struct bench b;

	bench_open(&b, SIM_NONE, models, 3);
	submit_all(&b);
	assert_int_equal(b.m.queues[0].speed, SIM_SPEED);
	assert_in_range(b.m.queues[1].room, SIM_ROOM * 4 / 10 - 1, SIM_ROOM * 4 / 10 + 1);
	assert_int_equal(b.m.queues[1].room, b.m.queues[2].room);
	sim_machine_done(&b.m);
}

static void longer_workgroups_hold_more_room(void **state)
{
	struct sim_model models[] = { plain(1000, 10 * USEC), plain(1000, 30 * USEC) };
	struct bench b;

	bench_open(&b, SIM_NONE, models, 2);
	submit_all(&b);
	assert_int_equal(b.m.queues[0].room, SIM_ROOM / 4);
	assert_int_equal(b.m.queues[1].room, SIM_ROOM * 3 / 4);
	sim_machine_done(&b.m);
}

static void a_program_with_gaps_leaves_room_in_them(void **state)
{
	struct sim_model models[] = { plain(1000, USEC), plain(1000, USEC) };
	struct bench b;

	models[0].gap_ns = 100 * USEC; /* about half the time */
	bench_open(&b, SIM_NONE, models, 2);
	submit_all(&b);
	assert_in_range(b.m.queues[1].room, SIM_ROOM * 47 / 100, SIM_ROOM / 2);
	assert_in_range(b.m.queues[0].speed, SIM_SPEED * 95 / 100, SIM_SPEED);
	sim_machine_done(&b.m);
}

static void with_stream_priority_a_kernel_waits_for_resident_workgroups_at_each_start(void **state)
{
	struct sim_model models[] = { plain(1000, 10 * USEC), plain(1000, 40 * USEC) };
	struct bench b;

	models[0].gap_ns = 1;
	bench_open(&b, SIM_STREAM_PRIORITY, models, 2);
	b.m.queues[0].online = true;
	submit_all(&b);
	assert_true(b.m.inverted);
	assert_in_range(run_until_done(&b, 0), 10 * 140 * USEC, 10 * 140 * USEC + 100);
	sim_machine_done(&b.m);
}

static void with_stream_priority_and_no_gap_only_the_first_start_waits(void **state)
{
	struct sim_model models[] = { plain(1000, 10 * USEC), plain(500, 40 * USEC) };
	struct bench b;

	bench_open(&b, SIM_STREAM_PRIORITY, models, 2);
	b.m.queues[0].online = true;
	submit_all(&b);
	assert_in_range(run_until_done(&b, 0), 10 * 100 * USEC + 40 * USEC,
			10 * 100 * USEC + 40 * USEC + 100);
	sim_machine_done(&b.m);
}

static void in_sequence_each_runs_to_its_end_and_online_goes_first(void **state)
{
	static const size_t order[] = { 1, 2, 3, 0 };
	struct sim_model models[4];
	struct bench b;

	for (size_t i = 0; i < 4; i++)
		models[i] = plain(100, USEC);
	bench_open(&b, SIM_SEQUENTIAL, models, 4);
	b.m.queues[2].online = true;
	sim_machine_submit(&b.m, &b.m.queues[1]);
	sim_machine_update(&b.m);
	assert_false(b.m.inverted);
	sim_machine_advance(&b.m, 10);
	sim_machine_submit(&b.m, &b.m.queues[3]);
	sim_machine_submit(&b.m, &b.m.queues[0]);
	sim_machine_submit(&b.m, &b.m.queues[2]);
	sim_machine_update(&b.m);
	assert_true(b.m.inverted);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(run_until_done(&b, order[i]), (i + 1) * MSEC);
		sim_machine_update(&b.m);
	}
	sim_machine_done(&b.m);
}

static void a_queue_being_saved_keeps_its_room_until_it_is_off(void **state)
{
	struct sim_model models[] = { plain(1000, USEC), plain(1000, USEC) };
	struct bench b;

	bench_open(&b, SIM_ENGINE, models, 2);
	submit_all(&b);
	assert_int_equal(sim_queue_state_bytes(&b.m.queues[1]), 500000);
	sim_machine_set_place(&b.m, &b.m.queues[1], SIM_LEAVING);
	sim_machine_update(&b.m);
	assert_int_equal(b.m.queues[0].speed, SIM_SPEED / 2);
	assert_int_equal(b.m.queues[1].speed, 0);
	sim_machine_set_place(&b.m, &b.m.queues[1], SIM_OFF);
	sim_machine_update(&b.m);
	assert_int_equal(b.m.queues[0].speed, SIM_SPEED);
	sim_machine_done(&b.m);
}

static void nobody_gets_on_while_all_stand_still(void **state)
{
	struct sim_model models[] = { plain(1000, USEC), plain(1000, USEC) };
	struct bench b;

	bench_open(&b, SIM_ENGINE, models, 2);
	sim_machine_submit(&b.m, &b.m.queues[0]);
	sim_machine_update(&b.m);
	sim_machine_stand_still(&b.m, 300);
	sim_machine_submit(&b.m, &b.m.queues[1]);
	sim_machine_update(&b.m);
	assert_int_equal(sim_machine_next_ns(&b.m), 300);
	/* Each has what it had. */
	assert_int_equal(b.m.queues[0].room, SIM_ROOM);
	assert_int_equal(b.m.queues[1].room, 0);
	assert_int_equal(run_until_done(&b, 0), 2 * MSEC + 300);
	sim_machine_done(&b.m);
}

/* ---- slots ---- */

static void queues_without_a_slot_take_turns(void **state)
{
	struct sim_model models[MAX_QUEUES];
	struct bench b;
	size_t with = 0;

	for (size_t i = 0; i < MAX_QUEUES; i++)
		models[i] = plain(10, USEC);
	bench_open(&b, SIM_NONE, models, MAX_QUEUES);
	for (size_t i = 0; i < MAX_QUEUES; i++)
		b.m.queues[i].process = i / 20;
	b.m.queues[30].online = true;
	submit_all(&b);
	for (size_t i = 0; i < MAX_QUEUES; i++)
		with += b.m.queues[i].has_slot;
	assert_int_equal(with, b.chip.n_cp_queues);
	assert_int_equal(b.m.in_use, with);
	assert_false(b.m.queues[30].has_slot);
	assert_true(b.m.inverted);
	assert_true(run_until_done(&b, 30) > QUANTUM_NS + MSEC);
	assert_false(b.m.inverted);
	/* Those who left had done their work: nothing was to be moved. */
	assert_int_equal(b.m.still_until_ns, QUANTUM_NS + MAP_NS);
	sim_slots_end(&b.m);
	assert_in_range(b.m.online_slot_wait_max_ns, QUANTUM_NS, QUANTUM_NS);
	sim_machine_done(&b.m);
}

static void a_turn_moves_those_who_leave_out_and_those_who_come_in(void **state)
{
	struct sim_model models[26];
	struct bench b;
	uint64_t all;

	for (size_t i = 0; i < 26; i++) {
		models[i] = plain(1000, USEC);
		models[i].kernels = 10000;
	}
	bench_open(&b, SIM_NONE, models, 26);
	submit_all(&b);
	/* 13 of 26 leave, who had all of the GPU: 1 MB at 1.23 TB/s. */
	all = 814;
	sim_machine_advance(&b.m, QUANTUM_NS);
	sim_machine_turn(&b.m);
	assert_in_range(b.m.still_until_ns - b.m.now_ns, MAP_NS + TRAP_NS + all - 1,
			MAP_NS + TRAP_NS + all);
	sim_machine_update(&b.m);
	assert_int_equal(sim_machine_next_ns(&b.m), b.m.still_until_ns);
	sim_machine_advance(&b.m, b.m.still_until_ns);
	sim_machine_update(&b.m);
	assert_int_equal(sim_machine_next_ns(&b.m), b.m.still_until_ns + QUANTUM_NS);
	sim_machine_advance(&b.m, b.m.turn_ends_ns);
	sim_machine_turn(&b.m);
	assert_in_range(b.m.still_until_ns - b.m.now_ns, MAP_NS + TRAP_NS + 2 * all - 2,
			MAP_NS + TRAP_NS + 2 * all);
	sim_machine_done(&b.m);
}

static void address_spaces_run_out_as_slots_do(void **state)
{
	struct sim_model models[20];
	struct bench b;

	for (size_t i = 0; i < 20; i++)
		models[i] = plain(10, USEC);
	bench_open(&b, SIM_NONE, models, 20);
	submit_all(&b);
	assert_true(b.m.crowded);
	assert_int_equal(b.m.in_use, b.chip.n_vmid);
	/* Who is held needs neither. */
	for (size_t i = 0; i < 7; i++)
		sim_machine_set_place(&b.m, &b.m.queues[i], SIM_OFF);
	sim_machine_update(&b.m);
	assert_false(b.m.crowded);
	assert_int_equal(b.m.in_use, 13);
	sim_machine_done(&b.m);
}

/* ---- any workload ---- */

struct rolled {
	struct bench b;
	struct sim_model models[MAX_QUEUES];
	uint64_t key, n;
	unsigned __int128 submitted; /* work, in the unit of left */
};

static uint64_t roll(struct rolled *r, uint64_t below)
{
	return sim_random(r->key, 9, r->n++) % below;
}

static void roll_machine(struct rolled *r, uint64_t seed)
{
	size_t n;

	*r = (struct rolled){ .key = seed };
	n = 1 + roll(r, MAX_QUEUES);
	for (size_t i = 0; i < n; i++) {
		r->models[i] = (struct sim_model){
			.kernels = roll(r, 20),
			.kernel_ns = roll(r, 200 * USEC),
			.gap_ns = roll(r, 2) * roll(r, 20 * USEC),
			.occupancy_permille = 1 + roll(r, 1000),
			.workgroup_ns = roll(r, 50 * USEC),
		};
	}
	bench_open(&r->b, SIM_NONE + roll(r, 3), r->models, n);
	for (size_t i = 0; i < n; i++)
		r->b.m.queues[i].online = !roll(r, 3);
}

static void check_shares(const struct sim_machine *m)
{
	uint64_t room = 0, wanted = 0;

	for (size_t i = 0; i < m->n; i++) {
		const struct sim_queue *q = &m->queues[i];

		assert_true(q->speed <= SIM_SPEED);
		assert_true(q->room <= q->program->room || q->place == SIM_LEAVING);
		assert_true(!q->speed || sim_queue_runs(q));
		room += q->room;
		wanted += sim_queue_runs(q) ? q->program->room : 0;
	}
	assert_true(room <= SIM_ROOM);
	/* Nothing is left lying while somebody wants it. */
	if (m->mode == SIM_NONE && m->now_ns >= m->still_until_ns)
		assert_true(room + m->n >= MIN(wanted, SIM_ROOM));
}

static void change_something(struct rolled *r)
{
	struct sim_machine *m = &r->b.m;
	struct sim_queue *q = &m->queues[roll(r, m->n)];

	if (!q->has_work && roll(r, 3)) {
		sim_machine_submit(m, q);
		r->submitted += q->left;
	} else if (!roll(r, 4)) {
		sim_machine_set_place(m, q, roll(r, 4));
	} else if (!roll(r, 20)) {
		sim_machine_stand_still(m, m->now_ns + roll(r, MSEC));
	}
}

static void play(uint64_t seed)
{
	unsigned __int128 left = 0;
	struct rolled r;

	roll_machine(&r, seed);
	for (unsigned int i = 0; i < 200; i++) {
		struct sim_machine *m = &r.b.m;
		uint64_t next = sim_machine_next_ns(m), some = m->now_ns + roll(&r, MSEC);

		sim_machine_advance(m, MIN(next, some));
		for (size_t q = 0; q < m->n; q++)
			sim_machine_finish(m, &m->queues[q]);
		sim_machine_turn(m);
		change_something(&r);
		sim_machine_update(m);
		check_shares(m);
		assert_true(sim_machine_next_ns(m) > m->now_ns);
	}
	for (size_t i = 0; i < r.b.m.n; i++)
		left += r.b.m.queues[i].has_work ? r.b.m.queues[i].left : 0;
	assert_true(r.submitted == left + r.b.m.progress);
	sim_machine_done(&r.b.m);
}

static void work_is_neither_lost_nor_made_whatever_happens(void **state)
{
	for (uint64_t seed = 1; seed <= 1000; seed++)
		play(seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(alone_a_request_takes_its_kernels_and_gaps),
		cmocka_unit_test(two_that_fill_the_gpu_take_twice_as_long),
		cmocka_unit_test(what_fits_runs_as_if_alone),
		cmocka_unit_test(what_a_small_one_does_not_need_goes_to_the_large),
		cmocka_unit_test(longer_workgroups_hold_more_room),
		cmocka_unit_test(a_program_with_gaps_leaves_room_in_them),
		cmocka_unit_test(
			with_stream_priority_a_kernel_waits_for_resident_workgroups_at_each_start),
		cmocka_unit_test(with_stream_priority_and_no_gap_only_the_first_start_waits),
		cmocka_unit_test(in_sequence_each_runs_to_its_end_and_online_goes_first),
		cmocka_unit_test(a_queue_being_saved_keeps_its_room_until_it_is_off),
		cmocka_unit_test(nobody_gets_on_while_all_stand_still),
		cmocka_unit_test(queues_without_a_slot_take_turns),
		cmocka_unit_test(a_turn_moves_those_who_leave_out_and_those_who_come_in),
		cmocka_unit_test(address_spaces_run_out_as_slots_do),
		cmocka_unit_test(work_is_neither_lost_nor_made_whatever_happens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
