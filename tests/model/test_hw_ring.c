/* SPDX-License-Identifier: MIT */
/* What the command processor makes of a ring. */
#include "tests/model/hw_rig.h"

#define CU HW_CU_UNITS

struct fixture {
	struct rig rig;
	struct rig_queue q, other;
};

static int open_fixture(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	rig_open(&f->rig, "mi308x");
	rig_queue_open(&f->rig, &f->q, HW_RING_AQL, 64);
	rig_queue_open(&f->rig, &f->other, HW_RING_AQL, 64);
	*state = f;
	return 0;
}

static int close_fixture(void **state)
{
	struct fixture *f = *state;

	hw_reset(f->rig.gpu);
	rig_queue_close(&f->q);
	rig_queue_close(&f->other);
	rig_close(&f->rig);
	free(f);
	return 0;
}

static void map_both(struct fixture *f)
{
	rig_map(&f->rig, (struct hw_queue *[]){ f->q.hw, f->other.hw }, 2);
}

static uint16_t header_at(const struct rig_queue *q, uint64_t index)
{
	uint16_t header = 0;

	mem_read(q->rig->vm, rig_slot_va(q, index), &header, sizeof(header));
	return header;
}

static void a_packet_runs_for_as_long_as_its_workgroups_and_signals_once(void **state)
{
	struct fixture *f = *state;
	uint64_t signal = rig_signal(&f->rig, 1);
	struct model_packet p;

	rig_dispatch(&f->q, rig_kernel(&f->rig, 5000, CU), 160, 0, signal);
	rig_map_one(&f->q);
	rig_run(&f->rig, 9999);
	assert_int_equal(rig_signal_value(&f->rig, signal), 1);
	rig_run(&f->rig, 1);
	assert_int_equal(rig_signal_value(&f->rig, signal), 0);
	p = rig_packet(&f->q, 0);
	assert_int_equal(p.submitted_ns, 0);
	assert_int_equal(p.started_ns, f->rig.chip->costs.map_ns);
	assert_int_equal(p.done_ns, p.started_ns + 10000);
	assert_int_equal(p.finished, 160);
	assert_int_equal(p.executed_ns, 160 * 5000);
	assert_int_equal(rig_stats(&f->q).completed, 1);
}

static void the_read_index_moves_when_all_is_launched_not_when_it_is_done(void **state)
{
	struct fixture *f = *state;
	uint64_t kernel = rig_kernel(&f->rig, 1000, CU);

	rig_dispatch(&f->q, kernel, 81, 0, 0);
	rig_map_one(&f->q);
	assert_int_equal(hw_see(f->q.hw)->read, 0);
	assert_int_equal(header_at(&f->q, 0), AQL_KERNEL_DISPATCH);
	rig_run(&f->rig, 1000);
	assert_int_equal(hw_see(f->q.hw)->read, 1);
	assert_int_equal(mem_read64(f->rig.vm, f->q.config.read_ptr_va), 1);
	assert_int_equal(header_at(&f->q, 0), AQL_INVALID);
	assert_int_equal(rig_stats(&f->q).completed, 0);
	assert_int_equal(rig_stats(&f->q).resident, 1);
	rig_run(&f->rig, 1000);
	assert_int_equal(rig_stats(&f->q).completed, 1);
}

static void the_next_packet_starts_when_the_last_is_launched(void **state)
{
	struct fixture *f = *state;
	uint64_t kernel = rig_kernel(&f->rig, 1000, CU);

	rig_dispatch(&f->q, kernel, 40, 0, 0);
	rig_dispatch(&f->q, kernel, 40, 0, 0);
	rig_dispatch(&f->q, kernel, 40, 0, 0);
	rig_map_one(&f->q);
	assert_int_equal(rig_stats(&f->q).resident, 80);
	assert_int_equal(hw_see(f->q.hw)->read, 2);
	rig_run(&f->rig, 1000);
	assert_int_equal(rig_stats(&f->q).completed, 2);
	assert_int_equal(rig_stats(&f->q).resident, 40);
}

static void the_barrier_bit_waits_for_all_earlier_packets(void **state)
{
	struct fixture *f = *state;
	uint64_t slow = rig_kernel(&f->rig, 5000, CU), quick = rig_kernel(&f->rig, 1000, CU);

	rig_dispatch(&f->q, slow, 4, 0, 0);
	rig_dispatch(&f->q, quick, 4, 0, 0);
	rig_dispatch(&f->q, quick, 4, AQL_BARRIER_BIT, 0);
	rig_dispatch(&f->q, quick, 4, 0, 0);
	rig_map_one(&f->q);
	rig_run(&f->rig, 4999);
	assert_int_equal(rig_stats(&f->q).completed, 1);
	assert_int_equal(hw_see(f->q.hw)->read, 2);
	rig_run(&f->rig, 1);
	assert_int_equal(hw_see(f->q.hw)->read, 4);
	assert_int_equal(rig_packet(&f->q, 2).started_ns, rig_packet(&f->q, 0).done_ns);
	assert_int_equal(rig_packet(&f->q, 3).started_ns, rig_packet(&f->q, 2).started_ns);
}

static void an_invalid_header_stops_the_queue_until_the_next_doorbell(void **state)
{
	struct fixture *f = *state;
	uint16_t header = AQL_KERNEL_DISPATCH, invalid = AQL_INVALID;
	uint64_t kernel = rig_kernel(&f->rig, 1000, CU);

	rig_map_one(&f->q);
	rig_dispatch(&f->q, kernel, 1, 0, 0);
	mem_write(f->rig.vm, rig_slot_va(&f->q, 0), &invalid, sizeof(invalid));
	rig_dispatch(&f->q, kernel, 1, 0, 0);
	rig_run(&f->rig, 10000);
	assert_int_equal(hw_see(f->q.hw)->read, 0);
	mem_write(f->rig.vm, rig_slot_va(&f->q, 0), &header, sizeof(header));
	rig_run(&f->rig, 10000);
	assert_int_equal(hw_see(f->q.hw)->read, 0);
	hw_doorbell(f->q.hw);
	rig_run(&f->rig, 1000);
	assert_int_equal(rig_stats(&f->q).completed, 2);
	assert_false(hw_see(f->q.hw)->failed);
}

static void a_producer_may_reserve_more_than_the_ring_holds(void **state)
{
	struct fixture *f = *state;
	uint64_t kernel = rig_kernel(&f->rig, 1000, CU);

	rig_map_one(&f->q);
	rig_dispatch(&f->q, kernel, 1, 0, 0);
	mem_write64(f->rig.vm, f->q.config.write_ptr_va, 1ull << 60);
	hw_doorbell(f->q.hw);
	rig_run(&f->rig, 10000);
	assert_int_equal(rig_stats(&f->q).completed, 1);
	assert_int_equal(hw_see(f->q.hw)->read, 1);
	assert_false(hw_see(f->q.hw)->failed);
}

static void the_ring_is_used_over_and_over(void **state)
{
	struct fixture *f = *state;
	uint64_t kernel = rig_kernel(&f->rig, 100, CU / 2);

	rig_map_one(&f->q);
	for (int i = 0; i < 200; i++) {
		rig_dispatch(&f->q, kernel, 1, 0, 0);
		rig_run(&f->rig, 100);
	}
	assert_int_equal(rig_stats(&f->q).completed, 200);
	assert_int_equal(mem_read64(f->rig.vm, f->q.config.read_ptr_va), 200);
}

static void barrier_and_waits_for_all_signals_of_other_queues(void **state)
{
	struct fixture *f = *state;
	uint64_t first = rig_signal(&f->rig, 1), second = rig_signal(&f->rig, 1);
	uint64_t done = rig_signal(&f->rig, 1);

	rig_barrier(&f->q, AQL_BARRIER_AND, first, second, done);
	rig_dispatch(&f->q, rig_kernel(&f->rig, 100, CU), 1, 0, 0);
	rig_dispatch(&f->other, rig_kernel(&f->rig, 2000, CU), 1, 0, first);
	rig_dispatch(&f->other, rig_kernel(&f->rig, 7000, CU), 1, 0, second);
	map_both(f);
	rig_run(&f->rig, 6999);
	assert_int_equal(rig_signal_value(&f->rig, first), 0);
	assert_int_equal(hw_see(f->q.hw)->read, 0);
	rig_run(&f->rig, 1);
	assert_int_equal(hw_see(f->q.hw)->read, 2);
	rig_run(&f->rig, 1);
	assert_int_equal(rig_signal_value(&f->rig, done), 0);
}

static void barrier_or_waits_for_any_signal(void **state)
{
	struct fixture *f = *state;
	uint64_t first = rig_signal(&f->rig, 1), second = rig_signal(&f->rig, 1);

	rig_barrier(&f->q, AQL_BARRIER_OR, first, second, 0);
	rig_dispatch(&f->other, rig_kernel(&f->rig, 2000, CU), 1, 0, second);
	map_both(f);
	rig_run(&f->rig, 1999);
	assert_int_equal(hw_see(f->q.hw)->read, 0);
	rig_run(&f->rig, 1);
	assert_int_equal(hw_see(f->q.hw)->read, 1);
	assert_int_equal(rig_signal_value(&f->rig, first), 1);
}

static void a_barrier_sees_a_signal_the_host_stores(void **state)
{
	struct fixture *f = *state;
	uint64_t signal = rig_signal(&f->rig, 3);

	rig_barrier(&f->q, AQL_BARRIER_AND, signal, 0, 0);
	rig_map_one(&f->q);
	rig_run(&f->rig, 1000);
	mem_write64(f->rig.vm, signal + AQL_SIGNAL_VALUE_OFFSET, 1);
	rig_run(&f->rig, 1000);
	assert_int_equal(hw_see(f->q.hw)->read, 0);
	mem_write64(f->rig.vm, signal + AQL_SIGNAL_VALUE_OFFSET, -1);
	rig_run(&f->rig, 1);
	assert_int_equal(hw_see(f->q.hw)->read, 1);
}

static void a_barrier_sees_a_signal_of_another_gpu(void **state)
{
	struct fixture *f = *state;
	struct rig second = f->rig;
	uint64_t signal = rig_signal(&f->rig, 1);
	struct rig_queue far;

	second.gpu = hw_gpu_new(second.chip, &f->rig.time);
	rig_queue_open(&second, &far, HW_RING_AQL, 64);
	rig_barrier(&f->q, AQL_BARRIER_AND, signal, 0, 0);
	rig_dispatch(&far, rig_kernel(&f->rig, 500000, CU), 1, 0, signal);
	assert_int_equal(hw_map(f->rig.gpu, &f->q.hw, 1), 0);
	assert_int_equal(hw_map(second.gpu, &far.hw, 1), 0);
	rig_run(&f->rig, f->rig.chip->costs.map_ns + 499999);
	assert_int_equal(hw_see(f->q.hw)->read, 0);
	rig_run(&f->rig, 1);
	assert_int_equal(hw_see(f->q.hw)->read, 1);
	hw_reset(second.gpu);
	rig_queue_close(&far);
	hw_gpu_free(second.gpu);
}

static void a_barrier_wait_survives_being_unmapped(void **state)
{
	struct fixture *f = *state;
	uint64_t signal = rig_signal(&f->rig, 1);

	rig_barrier(&f->q, AQL_BARRIER_AND, signal, 0, 0);
	rig_map_one(&f->q);
	rig_unmap(&f->rig, 1);
	mem_write64(f->rig.vm, signal + AQL_SIGNAL_VALUE_OFFSET, 0);
	rig_run(&f->rig, 1000);
	assert_int_equal(hw_see(f->q.hw)->read, 0);
	rig_map_one(&f->q);
	assert_int_equal(hw_see(f->q.hw)->read, 1);
}

static void vendor_and_agent_packets_are_consumed_as_empty_work(void **state)
{
	struct fixture *f = *state;
	uint64_t signal = rig_signal(&f->rig, 2);
	struct aql_dispatch d = { .header = AQL_VENDOR, .completion_signal = signal };

	rig_put(&f->q, &d);
	d.header = AQL_AGENT_DISPATCH;
	rig_put(&f->q, &d);
	rig_map_one(&f->q);
	rig_run(&f->rig, 2);
	assert_int_equal(rig_signal_value(&f->rig, signal), 0);
	assert_int_equal(rig_stats(&f->q).completed, 2);
	assert_int_equal(rig_packet(&f->q, 1).finished, 0);
}

static void a_dispatch_without_workgroups_completes_at_once(void **state)
{
	struct fixture *f = *state;
	uint64_t signal = rig_signal(&f->rig, 1);

	rig_dispatch(&f->q, 0, 0, 0, signal);
	rig_map_one(&f->q);
	rig_run(&f->rig, 1);
	assert_int_equal(rig_signal_value(&f->rig, signal), 0);
	assert_int_equal(rig_packet(&f->q, 0).workgroups, 0);
}

static void a_partial_workgroup_counts_as_one(void **state)
{
	struct fixture *f = *state;
	struct aql_dispatch d = {
		.header = AQL_KERNEL_DISPATCH,
		.workgroup_x = 256,
		.grid_x = 257,
		.kernel_object = rig_kernel(&f->rig, 10, CU),
	};

	rig_put(&f->q, &d);
	rig_map_one(&f->q);
	assert_int_equal(rig_stats(&f->q).resident, 2);
}

static void stops_at_the_first(struct fixture *f, const struct aql_dispatch *bad)
{
	rig_queue_close(&f->q);
	rig_queue_open(&f->rig, &f->q, HW_RING_AQL, 64);
	rig_put(&f->q, bad);
	rig_dispatch(&f->q, rig_kernel(&f->rig, 10, CU), 1, 0, 0);
	rig_map_one(&f->q);
	rig_run(&f->rig, 1000);
	assert_true(hw_see(f->q.hw)->failed);
	assert_int_equal(hw_see(f->q.hw)->read, 0);
	assert_int_equal(rig_stats(&f->q).completed, 0);
	rig_unmap(&f->rig, 1);
	rig_map_one(&f->q);
	assert_int_equal(hw_see(f->q.hw)->read, 0);
	rig_unmap(&f->rig, 1);
}

static void a_packet_no_hardware_could_run_stops_the_queue_there(void **state)
{
	struct fixture *f = *state;
	struct aql_dispatch good = {
		.header = AQL_KERNEL_DISPATCH,
		.workgroup_x = 64,
		.grid_x = 64,
		.kernel_object = rig_kernel(&f->rig, 10, CU),
	};
	struct aql_dispatch bad = good;

	bad.kernel_object = 0xdead000;
	stops_at_the_first(f, &bad);
	bad.kernel_object = rig_kernel(&f->rig, 10, 0);
	stops_at_the_first(f, &bad);
	bad.kernel_object = rig_kernel(&f->rig, 10, CU + 1);
	stops_at_the_first(f, &bad);
	bad.kernel_object = rig_signal(&f->rig, 1);
	stops_at_the_first(f, &bad);
	bad = good;
	bad.workgroup_x = 0;
	stops_at_the_first(f, &bad);
	bad = good;
	bad.header = 77;
	stops_at_the_first(f, &bad);
}

static void a_barrier_on_memory_that_is_not_there_stops_the_queue(void **state)
{
	struct fixture *f = *state;

	rig_barrier(&f->q, AQL_BARRIER_AND, 0xdead000, 0, 0);
	rig_map_one(&f->q);
	assert_true(hw_see(f->q.hw)->failed);
}

static void a_ring_that_is_not_there_stops_the_queue(void **state)
{
	struct fixture *f = *state;

	hw_queue_set_ring(f->q.hw, 0xdead000, 4096);
	hw_queue_set_ring(f->other.hw, f->other.config.ring_va, 0);
	mem_write64(f->rig.vm, f->q.config.write_ptr_va, 1);
	mem_write64(f->rig.vm, f->other.config.write_ptr_va, 1);
	map_both(f);
	assert_true(hw_see(f->q.hw)->failed);
	assert_true(hw_see(f->other.hw)->failed);
}

static void doorbells_while_unmapped_are_dropped_but_a_map_reads_the_pointer(void **state)
{
	struct fixture *f = *state;
	uint64_t kernel = rig_kernel(&f->rig, 1000, CU), rang_at;

	rig_map_one(&f->q);
	rig_dispatch(&f->q, kernel, 1, 0, 0);
	rig_unmap(&f->rig, 1);
	rig_run(&f->rig, 5000);
	rang_at = f->rig.time.now_ns;
	rig_dispatch(&f->q, kernel, 1, 0, 0);
	rig_run(&f->rig, 5000);
	assert_int_equal(hw_see(f->q.hw)->write, 1);
	assert_int_equal(rig_stats(&f->q).completed, 0);
	rig_map_one(&f->q);
	assert_int_equal(hw_see(f->q.hw)->write, 2);
	rig_run(&f->rig, 2000);
	assert_int_equal(rig_stats(&f->q).completed, 2);
	assert_int_equal(rig_packet(&f->q, 1).submitted_ns, rang_at);
}

static void the_write_pointer_is_not_read_without_a_doorbell(void **state)
{
	struct fixture *f = *state;
	uint64_t kernel = rig_kernel(&f->rig, 1000, CU);

	rig_map_one(&f->q);
	rig_dispatch(&f->q, kernel, 1, 0, 0);
	rig_run(&f->rig, 10);
	rig_dispatch(&f->q, kernel, 1, 0, 0);
	mem_write64(f->rig.vm, f->q.config.write_ptr_va, 64);
	rig_run(&f->rig, 10);
	assert_int_equal(hw_see(f->q.hw)->write, 2);
}

static void timed_ring(struct fixture *f, enum hw_ring ring, uint64_t units)
{
	uint64_t signal = rig_signal(&f->rig, 3);
	struct rig_queue q;

	rig_queue_open(&f->rig, &q, ring, 16);
	for (int i = 0; i < 3; i++)
		rig_timed(&q, 1000, signal);
	rig_map_one(&q);
	rig_run(&f->rig, 999);
	assert_int_equal(rig_signal_value(&f->rig, signal), 3);
	assert_int_equal(hw_see(q.hw)->read, units);
	assert_int_equal(hw_see(q.hw)->write, 3 * units);
	rig_run(&f->rig, 1001);
	assert_int_equal(rig_signal_value(&f->rig, signal), 1);
	assert_int_equal(mem_read64(f->rig.vm, q.config.read_ptr_va), 3 * units);
	rig_run(&f->rig, 1000);
	for (int i = 0; i < 40; i++) {
		rig_timed(&q, 10, 0);
		rig_run(&f->rig, 10);
	}
	assert_int_equal(rig_stats(&q).completed, 43);
	assert_int_equal(rig_packet(&q, 42).executed_ns, 10);
	rig_unmap(&f->rig, 1);
	rig_queue_close(&q);
}

static void pm4_pointers_count_dwords_and_sdma_pointers_bytes(void **state)
{
	timed_ring(*state, HW_RING_PM4, 16);
	timed_ring(*state, HW_RING_SDMA, 64);
}

static void an_engine_keeps_its_remaining_time_over_an_unmap(void **state)
{
	struct fixture *f = *state;
	uint64_t signal = rig_signal(&f->rig, 1);
	struct hw_unmap op;
	struct rig_queue q;

	rig_queue_open(&f->rig, &q, HW_RING_SDMA, 16);
	rig_timed(&q, 100000, signal);
	rig_map_one(&q);
	rig_run(&f->rig, 30000);
	op = rig_unmap(&f->rig, 10);
	assert_int_equal(op.saved_bytes, 0);
	assert_int_equal(op.took_ns, f->rig.chip->costs.unmap_ns);
	rig_run(&f->rig, 200000);
	rig_map_one(&q);
	rig_run(&f->rig, 69999);
	assert_int_equal(rig_signal_value(&f->rig, signal), 1);
	rig_run(&f->rig, 1);
	assert_int_equal(rig_signal_value(&f->rig, signal), 0);
	assert_int_equal(rig_packet(&q, 0).executed_ns, 100000);
	rig_unmap(&f->rig, 1);
	rig_queue_close(&q);
}

static void a_timed_ring_of_nonsense_or_run_past_its_end_stops(void **state)
{
	struct fixture *f = *state;
	struct rig_queue pm4, sdma;

	rig_queue_open(&f->rig, &pm4, HW_RING_PM4, 16);
	rig_queue_open(&f->rig, &sdma, HW_RING_SDMA, 16);
	rig_timed(&sdma, 10, 0);
	mem_write64(f->rig.vm, pm4.config.write_ptr_va, 16);
	mem_write64(f->rig.vm, sdma.config.write_ptr_va, 1ull << 40);
	rig_map(&f->rig, (struct hw_queue *[]){ pm4.hw, sdma.hw }, 2);
	rig_run(&f->rig, 1000);
	assert_true(hw_see(pm4.hw)->failed);
	assert_true(hw_see(sdma.hw)->failed);
	rig_unmap(&f->rig, 1);
	rig_queue_close(&pm4);
	rig_queue_close(&sdma);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_packet_runs_for_as_long_as_its_workgroups_and_signals_once),
		TEST(the_read_index_moves_when_all_is_launched_not_when_it_is_done),
		TEST(the_next_packet_starts_when_the_last_is_launched),
		TEST(the_barrier_bit_waits_for_all_earlier_packets),
		TEST(an_invalid_header_stops_the_queue_until_the_next_doorbell),
		TEST(a_producer_may_reserve_more_than_the_ring_holds),
		TEST(the_ring_is_used_over_and_over),
		TEST(barrier_and_waits_for_all_signals_of_other_queues),
		TEST(barrier_or_waits_for_any_signal),
		TEST(a_barrier_sees_a_signal_the_host_stores),
		TEST(a_barrier_sees_a_signal_of_another_gpu),
		TEST(a_barrier_wait_survives_being_unmapped),
		TEST(vendor_and_agent_packets_are_consumed_as_empty_work),
		TEST(a_dispatch_without_workgroups_completes_at_once),
		TEST(a_partial_workgroup_counts_as_one),
		TEST(a_packet_no_hardware_could_run_stops_the_queue_there),
		TEST(a_barrier_on_memory_that_is_not_there_stops_the_queue),
		TEST(a_ring_that_is_not_there_stops_the_queue),
		TEST(doorbells_while_unmapped_are_dropped_but_a_map_reads_the_pointer),
		TEST(the_write_pointer_is_not_read_without_a_doorbell),
		TEST(pm4_pointers_count_dwords_and_sdma_pointers_bytes),
		TEST(an_engine_keeps_its_remaining_time_over_an_unmap),
		TEST(a_timed_ring_of_nonsense_or_run_past_its_end_stops),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
