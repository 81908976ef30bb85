/* SPDX-License-Identifier: MIT */
/*
 * The GPU as rates beside the GPU as workgroups of gpu/model: the same work, and completion times
 * that are within 15 % of each other on average, and within 25 % for each queue.
 */
#include "sim/machine.h"
#include "tests/model/hw_rig.h"
#include "tests/sim/sim_rig.h"

#define QUEUES 32
#define REQUESTS 6
#define FAR_AWAY_NS (3600 * SEC)

/* Each request of a queue is a few kernels, each of rounds of workgroups; then comes the next. */
struct load {
	uint32_t kernels, rounds;
	uint64_t workgroup_ns;
	uint32_t permille; /* of the compute units; less than all: one round */
	uint64_t gap_ns; /* after each kernel; there a single workgroup keeps the queue waiting */
};

struct cross {
	struct load loads[QUEUES];
	size_t n;
	uint64_t hold_ns, hold_for_ns; /* queue 0 is off the GPU for this time */
	bool first_is_urgent; /* by the priority of its pipe; the others do not end before it */
};

static uint64_t kernel_ns(const struct load *l)
{
	return l->rounds * l->workgroup_ns;
}

/* ---- workgroups ---- */

static uint32_t workgroups(const struct load *l, const struct model_chip *chip)
{
	return l->rounds * chip->n_xcc * chip->cu_per_xcc * l->permille / 1000;
}

/* All but queue 0, or all. */
static void map_from(struct rig *rig, struct rig_queue *qs, size_t first, size_t n)
{
	struct hw_queue *hw[QUEUES];

	for (size_t i = first; i < n; i++)
		hw[i] = qs[i].hw;
	assert_int_equal(hw_map(rig->gpu, hw + first, n - first), 0);
}

static void hold_first(struct rig *rig, struct rig_queue *qs, const struct cross *c)
{
	rig_run(rig, c->hold_ns);
	rig_unmap(rig, 1);
	map_from(rig, qs, 1, c->n);
	rig_run(rig, c->hold_for_ns);
	rig_unmap(rig, 1);
	map_from(rig, qs, 0, c->n);
}

static void fill_ring(struct rig *rig, struct rig_queue *q, const struct load *l)
{
	uint64_t kernel = rig_kernel(rig, l->workgroup_ns, HW_CU_UNITS);

	uint64_t gap = rig_kernel(rig, l->gap_ns, HW_CU_UNITS);

	for (uint32_t i = 0; i < REQUESTS * l->kernels; i++) {
		rig_dispatch(q, kernel, workgroups(l, rig->chip), AQL_BARRIER_BIT, 0);
		if (l->gap_ns)
			rig_dispatch(q, gap, 1, AQL_BARRIER_BIT, 0);
	}
}

static uint64_t by_workgroups(const struct cross *c, uint64_t done_ns[QUEUES])
{
	struct rig_queue qs[QUEUES];
	struct rig rig;
	uint64_t sum = 0;

	rig_open(&rig, "mi100");
	for (size_t i = 0; i < c->n; i++) {
		rig_queue_open(&rig, &qs[i], HW_RING_AQL, 4096);
		if (c->first_is_urgent)
			hw_queue_set_priority(qs[i].hw, i ? 7 : 15);
		fill_ring(&rig, &qs[i], &c->loads[i]);
	}
	map_from(&rig, qs, 0, c->n);
	rig_run(&rig, rig.chip->costs.map_ns);
	if (c->hold_for_ns)
		hold_first(&rig, qs, c);
	rig_run(&rig, RIG_FOREVER_NS);
	for (size_t i = 0; i < c->n; i++) {
		done_ns[i] = rig_packet(&qs[i], qs[i].written - 1).done_ns - rig.chip->costs.map_ns;
		sum += done_ns[i];
	}
	hw_reset(rig.gpu);
	for (size_t i = 0; i < c->n; i++)
		rig_queue_close(&qs[i]);
	rig_close(&rig);
	return sum / c->n;
}

/* ---- rates ---- */

/* A cycle of this chip, as its costs have it: everybody is saved and brought back. */
static void cycle(struct sim_machine *m, enum sim_place place)
{
	const struct model_costs *costs = &m->chip->costs;
	uint64_t bytes = 0;

	for (size_t i = 0; i < m->n; i++)
		bytes += sim_queue_state_bytes(&m->queues[i]);
	sim_machine_stand_still(m, m->now_ns + costs->unmap_ns + costs->trap_ns + costs->map_ns +
					   2 * sim_move_ns(bytes, m->chip->hbm_bytes_per_s));
	sim_machine_set_place(m, &m->queues[0], place);
	sim_machine_update(m);
}

/* Advances to the next thing that happens, at most to @until_ns; false: nothing did. */
static bool go_on(struct sim_machine *m, uint64_t until_ns, uint64_t done_ns[QUEUES])
{
	uint64_t next = sim_machine_next_ns(m);

	if (next > until_ns) {
		sim_machine_advance(m, until_ns);
		return false;
	}
	sim_machine_advance(m, next);
	for (size_t i = 0; i < m->n; i++) {
		struct sim_queue *q = &m->queues[i];

		if (!sim_machine_finish(m, q))
			continue;
		done_ns[i] = next;
		if (q->done < REQUESTS)
			sim_machine_submit(m, q);
	}
	sim_machine_turn(m);
	sim_machine_update(m);
	return true;
}

static void run_until(struct sim_machine *m, uint64_t until_ns, uint64_t done_ns[QUEUES])
{
	while (go_on(m, until_ns, done_ns))
		;
}

static uint64_t by_rates(const struct cross *c, uint64_t done_ns[QUEUES])
{
	const struct model_chip *chip = model_chip_find("mi100");
	uint64_t bytes = (uint64_t)chip->n_xcc * chip->cu_per_xcc * chip->cwsr_bytes_per_cu;
	struct sim_program programs[QUEUES];
	struct sim_machine m;
	uint64_t sum = 0;

	assert_int_equal(sim_machine_init(&m, c->first_is_urgent ? SIM_STREAM_PRIORITY : SIM_NONE,
					  chip, c->n),
			 0);
	m.queues[0].online = c->first_is_urgent;
	for (size_t i = 0; i < c->n; i++) {
		struct sim_model model = {
			.kernels = c->loads[i].kernels,
			.kernel_ns = kernel_ns(&c->loads[i]),
			.occupancy_permille = c->loads[i].permille,
			.workgroup_ns = c->loads[i].workgroup_ns,
			.gap_ns = c->loads[i].gap_ns,
		};

		sim_program_init(&programs[i], &model, 1000, bytes);
		m.queues[i].program = &programs[i];
		sim_machine_submit(&m, &m.queues[i]);
	}
	sim_machine_update(&m);
	if (c->hold_for_ns) {
		run_until(&m, c->hold_ns, done_ns);
		cycle(&m, SIM_OFF);
		run_until(&m, m.still_until_ns + c->hold_for_ns, done_ns);
		cycle(&m, SIM_ON);
	}
	run_until(&m, FAR_AWAY_NS, done_ns);
	for (size_t i = 0; i < c->n; i++)
		sum += done_ns[i];
	sim_machine_done(&m);
	return sum / c->n;
}

static void compare(const struct cross *c)
{
	uint64_t a[QUEUES] = { 0 }, b[QUEUES] = { 0 };
	uint64_t hw = by_workgroups(c, a), sim = by_rates(c, b);

	for (size_t i = 0; i < c->n; i++) {
		print_message("# queue %zu: %lu us by workgroups, %lu us by rates\n", i,
			      (unsigned long)(a[i] / USEC), (unsigned long)(b[i] / USEC));
		assert_in_range(b[i], a[i] * 75 / 100, a[i] * 125 / 100);
	}
	assert_in_range(sim, hw * 85 / 100, hw * 115 / 100);
}

/* ---- the loads ---- */

static void one_queue(void **state)
{
	compare(&(struct cross){ .loads = { { 10, 5, 20 * USEC, 1000 } }, .n = 1 });
}

static void two_equal_queues(void **state)
{
	compare(&(struct cross){
		.loads = { { 10, 5, 20 * USEC, 1000 }, { 10, 5, 20 * USEC, 1000 } },
		.n = 2,
	});
}

static void a_long_and_a_short_job(void **state)
{
	compare(&(struct cross){
		.loads = { { 40, 5, 20 * USEC, 1000 }, { 10, 5, 20 * USEC, 1000 } },
		.n = 2,
	});
}

static void workgroups_of_unequal_length(void **state)
{
	compare(&(struct cross){
		.loads = { { 10, 6, 15 * USEC, 1000 }, { 10, 2, 45 * USEC, 1000 } },
		.n = 2,
	});
}

static void two_that_fit_beside_each_other(void **state)
{
	compare(&(struct cross){
		.loads = { { 10, 1, 50 * USEC, 400 }, { 20, 1, 30 * USEC, 500 } },
		.n = 2,
	});
}

static void two_that_nearly_fit(void **state)
{
	compare(&(struct cross){
		.loads = { { 20, 1, 40 * USEC, 600 }, { 20, 1, 40 * USEC, 600 } },
		.n = 2,
	});
}

static void a_small_and_three_large(void **state)
{
	compare(&(struct cross){
		.loads = { { 20, 1, 40 * USEC, 200 },
			   { 10, 4, 20 * USEC, 1000 },
			   { 10, 4, 25 * USEC, 1000 },
			   { 10, 4, 30 * USEC, 1000 } },
		.n = 4,
	});
}

static void four_of_all_kinds(void **state)
{
	compare(&(struct cross){
		.loads = { { 30, 1, 40 * USEC, 300 },
			   { 10, 4, 20 * USEC, 1000 },
			   { 20, 1, 60 * USEC, 500 },
			   { 10, 10, 5 * USEC, 1000 } },
		.n = 4,
	});
}

static void gaps_between_kernels(void **state)
{
	compare(&(struct cross){
		.loads = { { 20, 4, 20 * USEC, 1000, 30 * USEC }, { 40, 4, 25 * USEC, 1000 } },
		.n = 2,
	});
}

static void an_urgent_queue_without_gaps(void **state)
{
	compare(&(struct cross){
		.loads = { { 20, 4, 20 * USEC, 1000 }, { 60, 2, 50 * USEC, 1000 } },
		.n = 2,
		.first_is_urgent = true,
	});
}

static void an_urgent_queue_that_waits_after_each_gap(void **state)
{
	compare(&(struct cross){
		.loads = { { 20, 4, 20 * USEC, 1000, 10 * USEC },
			   { 60, 2, 50 * USEC, 1000 },
			   { 60, 2, 37 * USEC, 1000 } },
		.n = 3,
		.first_is_urgent = true,
	});
}

static void an_urgent_queue_that_needs_some_of_the_room(void **state)
{
	compare(&(struct cross){
		.loads = { { 40, 1, 40 * USEC, 500, 5 * USEC },
			   { 40, 4, 30 * USEC, 1000 },
			   { 80, 1, 47 * USEC, 400 } },
		.n = 3,
		.first_is_urgent = true,
	});
}

static void more_queues_than_slots(void **state)
{
	struct cross c = { .n = 30 };

	for (size_t i = 0; i < c.n; i++)
		c.loads[i] = (struct load){ 10, 2, (20 + i) * USEC, 1000 };
	compare(&c);
}

static void one_preemption(void **state)
{
	compare(&(struct cross){
		.loads = { { 40, 5, 20 * USEC, 1000 }, { 10, 5, 20 * USEC, 1000 } },
		.n = 2,
		.hold_ns = 3 * MSEC + 333,
		.hold_for_ns = 5 * MSEC,
	});
}

static void one_preemption_of_several(void **state)
{
	compare(&(struct cross){
		.loads = { { 20, 1, 40 * USEC, 700 },
			   { 10, 4, 20 * USEC, 1000 },
			   { 10, 4, 30 * USEC, 1000 } },
		.n = 3,
		.hold_ns = 2 * MSEC,
		.hold_for_ns = 4 * MSEC,
	});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_queue),
		cmocka_unit_test(two_equal_queues),
		cmocka_unit_test(a_long_and_a_short_job),
		cmocka_unit_test(workgroups_of_unequal_length),
		cmocka_unit_test(two_that_fit_beside_each_other),
		cmocka_unit_test(two_that_nearly_fit),
		cmocka_unit_test(a_small_and_three_large),
		cmocka_unit_test(four_of_all_kinds),
		cmocka_unit_test(gaps_between_kernels),
		cmocka_unit_test(an_urgent_queue_without_gaps),
		cmocka_unit_test(an_urgent_queue_that_waits_after_each_gap),
		cmocka_unit_test(an_urgent_queue_that_needs_some_of_the_room),
		cmocka_unit_test(more_queues_than_slots),
		cmocka_unit_test(one_preemption),
		cmocka_unit_test(one_preemption_of_several),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
