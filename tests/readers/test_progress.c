/* SPDX-License-Identifier: MIT */
#include "abi/aql.h"
#include "gpu/kfd/progress.h"
#include "tests/readers/rig.h"

#define RING 0x100000ull
#define SLOTS 16u
#define POINTERS 0x200000ull
#define SIGNALS 0x300000ull

struct signal {
	uint64_t kind;
	int64_t value;
	uint64_t rest[6];
};

struct world { /* one AQL queue and some signals, in made-up memory */
	struct gkfd *k;
	struct fake *f;
	struct aql_barrier *ring;
	uint64_t *read, *write;
	struct signal *signals;
	struct gkfd_queue_addr queue;
};

static int make_world(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	uint64_t *pointers;

	w->k = fake_open(&w->f);
	w->ring = fake_map(w->f, RING, SLOTS * AQL_PACKET_BYTES);
	pointers = fake_map(w->f, POINTERS, 16);
	w->read = &pointers[0];
	w->write = &pointers[1];
	w->signals = fake_map(w->f, SIGNALS, 8 * AQL_SIGNAL_BYTES);
	for (size_t i = 0; i < SLOTS; i++)
		w->ring[i].header = AQL_INVALID;
	w->queue = (struct gkfd_queue_addr){
		.type = KFD_IOC_QUEUE_TYPE_COMPUTE_AQL,
		.ring_base = RING,
		.ring_bytes = SLOTS * AQL_PACKET_BYTES,
		.read_ptr_addr = POINTERS,
		.write_ptr_addr = POINTERS + 8,
	};
	*state = w;
	return 0;
}

static int end_world(void **state)
{
	struct world *w = *state;

	gkfd_free(w->k);
	free(w);
	return 0;
}

static uint64_t signal_handle(size_t i)
{
	return SIGNALS + i * AQL_SIGNAL_BYTES;
}

static struct aql_barrier *packet(struct world *w, uint64_t index, enum aql_type type)
{
	struct aql_barrier *p = &w->ring[index % SLOTS];

	p->header = (uint16_t)(type | AQL_BARRIER_BIT);
	return p;
}

static struct gkfd_progress look(struct world *w, uint64_t read, uint64_t write)
{
	struct gkfd_progress p;

	*w->read = read;
	*w->write = write;
	assert_int_equal(gkfd_progress_read(w->k, 1, &w->queue, 1, &p), 0);
	return p;
}

static void published_packets_are_pending(void **state)
{
	struct world *w = *state;
	struct gkfd_progress p;

	packet(w, 14, AQL_KERNEL_DISPATCH);
	packet(w, 15, AQL_KERNEL_DISPATCH);
	packet(w, 16, AQL_VENDOR); /* behind the wrap */
	p = look(w, 14, 18);
	assert_int_equal(p.state, GKFD_QUEUE_PENDING);
	assert_int_equal(p.pending, 3); /* 17 is reserved only */
	assert_true(p.pointers_known);
	assert_int_equal(p.read_index, 14);
	assert_int_equal(p.write_index, 18);
}

static void reserved_packets_are_no_work(void **state)
{
	struct world *w = *state;
	struct gkfd_progress p;

	packet(w, 3, AQL_INVALID)->completion_signal = signal_handle(0);
	p = look(w, 4, 8);
	assert_int_equal(p.pending, 0);
	assert_int_equal(p.state, GKFD_QUEUE_IDLE);
	w->signals[0].value = 1;
	assert_int_equal(look(w, 4, 8).state, GKFD_QUEUE_RUNNING);
}

static void a_queue_never_used_is_idle(void **state)
{
	struct world *w = *state;

	assert_int_equal(look(w, 0, 0).state, GKFD_QUEUE_IDLE);
	assert_int_equal(look(w, 0, 3).state, GKFD_QUEUE_IDLE);
}

static void an_empty_queue_runs_until_its_last_signal_is_done(void **state)
{
	struct world *w = *state;

	packet(w, 36, AQL_INVALID)->completion_signal = signal_handle(1);
	w->signals[1].value = 1;
	assert_int_equal(look(w, 37, 37).state, GKFD_QUEUE_RUNNING);
	w->signals[1].value = 0;
	assert_int_equal(look(w, 37, 37).state, GKFD_QUEUE_IDLE);
	w->signals[1].value = -1;
	assert_int_equal(look(w, 37, 37).state, GKFD_QUEUE_IDLE);
}

static void a_last_packet_without_signal_leaves_us_in_the_dark(void **state)
{
	struct world *w = *state;
	struct gkfd_progress p = look(w, 37, 37);

	assert_int_equal(p.state, GKFD_QUEUE_UNKNOWN);
	assert_true(p.pointers_known);
	packet(w, 36, AQL_INVALID)->completion_signal = 0xdead000; /* not mapped */
	assert_int_equal(look(w, 37, 37).state, GKFD_QUEUE_UNKNOWN);
	packet(w, 36, AQL_INVALID)->completion_signal = signal_handle(0) + 3;
	assert_int_equal(look(w, 37, 37).state, GKFD_QUEUE_UNKNOWN);
	packet(w, 36, AQL_INVALID)->completion_signal = UINT64_MAX - 7;
	assert_int_equal(look(w, 37, 37).state, GKFD_QUEUE_UNKNOWN);
}

static void an_and_barrier_blocks_until_all_its_signals_are_0(void **state)
{
	struct world *w = *state;
	struct aql_barrier *b = packet(w, 5, AQL_BARRIER_AND);

	packet(w, 6, AQL_KERNEL_DISPATCH);
	assert_int_equal(look(w, 5, 7).state, GKFD_QUEUE_PENDING); /* waits for nothing */
	b->dep_signal[0] = signal_handle(0);
	b->dep_signal[4] = signal_handle(1);
	w->signals[1].value = 1;
	assert_int_equal(look(w, 5, 7).state, GKFD_QUEUE_BLOCKED);
	assert_int_equal(look(w, 5, 7).pending, 2);
	w->signals[1].value = 0;
	assert_int_equal(look(w, 5, 7).state, GKFD_QUEUE_PENDING);
	b->dep_signal[2] = 0xdead000;
	assert_int_equal(look(w, 5, 7).state, GKFD_QUEUE_UNKNOWN);
	w->signals[0].value = 1;
	assert_int_equal(look(w, 5, 7).state, GKFD_QUEUE_BLOCKED); /* whatever the other is */
}

static void an_or_barrier_blocks_until_one_signal_is_0(void **state)
{
	struct world *w = *state;
	struct aql_barrier *b = packet(w, 5, AQL_BARRIER_OR);

	assert_int_equal(look(w, 5, 6).state, GKFD_QUEUE_PENDING);
	b->dep_signal[0] = signal_handle(0);
	b->dep_signal[1] = signal_handle(1);
	w->signals[0].value = w->signals[1].value = 1;
	assert_int_equal(look(w, 5, 6).state, GKFD_QUEUE_BLOCKED);
	w->signals[1].value = 0;
	assert_int_equal(look(w, 5, 6).state, GKFD_QUEUE_PENDING);
	b->dep_signal[1] = 0xdead000;
	assert_int_equal(look(w, 5, 6).state, GKFD_QUEUE_UNKNOWN);
}

static void only_a_barrier_at_the_front_blocks(void **state)
{
	struct world *w = *state;

	packet(w, 5, AQL_KERNEL_DISPATCH);
	packet(w, 6, AQL_BARRIER_AND)->dep_signal[0] = signal_handle(0);
	w->signals[0].value = 1;
	assert_int_equal(look(w, 5, 7).state, GKFD_QUEUE_PENDING);
	packet(w, 5, AQL_INVALID); /* consumed, the read index not yet moved */
	assert_int_equal(look(w, 5, 7).state, GKFD_QUEUE_BLOCKED);
}

static void a_full_queue_is_pending_even_with_producers_waiting(void **state)
{
	struct world *w = *state;
	struct gkfd_progress p;

	for (uint64_t i = 0; i < SLOTS; i++)
		packet(w, i, AQL_KERNEL_DISPATCH);
	p = look(w, 100, 100 + SLOTS);
	assert_int_equal(p.state, GKFD_QUEUE_PENDING);
	p = look(w, 100, 100 + SLOTS + 3); /* reserved before there is room */
	assert_int_equal(p.state, GKFD_QUEUE_PENDING);
	assert_int_equal(p.pending, SLOTS);
}

static void a_full_queue_that_shows_nothing_published_is_unknown(void **state)
{
	struct world *w = *state;

	/* The slot of the last packet consumed is reserved again: its signal is not to be had. */
	packet(w, 99, AQL_INVALID)->completion_signal = signal_handle(0);
	assert_int_equal(look(w, 100, 100 + SLOTS).state, GKFD_QUEUE_UNKNOWN);
}

static void nonsense_in_the_pointers_is_unknown(void **state)
{
	struct world *w = *state;
	static const uint64_t bad[][2] = {
		{ 6, 5 }, { UINT64_MAX, 0 }, { 0, UINT64_MAX }, { 5, 5 + (1u << 20) },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct gkfd_progress p = look(w, bad[i][0], bad[i][1]);

		assert_int_equal(p.state, GKFD_QUEUE_UNKNOWN);
		assert_false(p.pointers_known);
		assert_int_equal(p.pending, 0);
	}
	packet(w, UINT64_MAX - 2, AQL_KERNEL_DISPATCH);
	assert_int_equal(look(w, UINT64_MAX - 2, UINT64_MAX).pending, 1); /* the very end is fine */
}

static void produce_meanwhile(void *arg, size_t i)
{
	struct world *w = arg;

	if (w->f->calls == 1 && i > 0) {
		*w->write += 1;
		*w->read = *w->write - (i == 1 ? 0 : 1); /* past what was written at first */
	}
}

static void a_queue_that_moves_while_it_is_read_still_makes_sense(void **state)
{
	struct world *w = *state;
	struct gkfd_progress p;

	w->f->before_span = produce_meanwhile;
	w->f->arg = w;
	packet(w, 6, AQL_KERNEL_DISPATCH);
	p = look(w, 5, 5);
	assert_true(p.pointers_known);
	assert_int_equal(p.read_index, 6);
	assert_int_equal(p.write_index, 7);
	assert_int_equal(p.state, GKFD_QUEUE_PENDING);
}

static void write_backwards(void *arg, size_t i)
{
	struct world *w = arg;

	if (i == 2)
		*w->write -= 1;
}

static void a_write_pointer_that_goes_back_is_nonsense(void **state)
{
	struct world *w = *state;

	w->f->before_span = write_backwards;
	w->f->arg = w;
	assert_false(look(w, 5, 9).pointers_known);
}

static void nonsense_in_the_addresses_reads_nothing(void **state)
{
	struct world *w = *state;
	const struct gkfd_queue_addr good = w->queue;
	struct gkfd_queue_addr bad[10];

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		bad[i] = good;
	bad[0].ring_bytes = 0;
	bad[1].ring_bytes = 1000;
	bad[2].ring_bytes = 32;
	bad[3].ring_base = 0;
	bad[4].ring_base += 8;
	bad[5].ring_base = UINT64_MAX - 63;
	bad[6].read_ptr_addr = 0;
	bad[7].write_ptr_addr += 4;
	bad[8].type = UINT32_MAX;
	bad[9].ring_bytes = 1ull << 63 | 64;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		w->queue = bad[i];
		assert_int_equal(look(w, 1, 2).state, GKFD_QUEUE_UNKNOWN);
	}
	assert_int_equal(w->f->calls, 0);
}

static void unmapped_pointers_and_rings_are_unknown(void **state)
{
	struct world *w = *state;
	struct gkfd_progress p;

	w->queue.ring_base = 0xdead000;
	p = look(w, 1, 2);
	assert_int_equal(p.state, GKFD_QUEUE_UNKNOWN);
	assert_true(p.pointers_known);
	w->queue.read_ptr_addr = 0xdead000;
	p = look(w, 1, 2);
	assert_int_equal(p.state, GKFD_QUEUE_UNKNOWN);
	assert_false(p.pointers_known);
}

static void queues_that_cannot_be_followed_are_pending_or_unknown(void **state)
{
	static const uint32_t types[] = {
		KFD_IOC_QUEUE_TYPE_COMPUTE,
		KFD_IOC_QUEUE_TYPE_SDMA,
		KFD_IOC_QUEUE_TYPE_SDMA_XGMI,
		KFD_IOC_QUEUE_TYPE_SDMA_BY_ENG_ID,
	};
	struct world *w = *state;

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		w->queue.type = types[i];
		assert_int_equal(look(w, 0, 0).state, GKFD_QUEUE_IDLE);
		assert_int_equal(look(w, 64, 64).state, GKFD_QUEUE_UNKNOWN);
		assert_int_equal(look(w, 64, 96).state, GKFD_QUEUE_PENDING);
		assert_int_equal(look(w, 64, 96).pending, 32);
	}
	assert_int_equal(w->f->calls, 16); /* one each: no packet is looked at */
}

static void few_reads_serve_many_queues(void **state)
{
	struct world *w = *state;
	struct gkfd_queue_addr queues[100];
	struct gkfd_progress ret[100];

	packet(w, 0, AQL_BARRIER_AND)->dep_signal[0] = signal_handle(0);
	packet(w, 0, AQL_BARRIER_AND)->dep_signal[1] = signal_handle(1);
	w->signals[0].value = 1;
	*w->write = 1;
	for (size_t i = 0; i < ARRAY_SIZE(queues); i++)
		queues[i] = w->queue;
	queues[50].ring_base = 0xdead000; /* one of them fails alone */
	queues[51].type = KFD_IOC_QUEUE_TYPE_SDMA;
	assert_int_equal(gkfd_progress_read(w->k, 1, queues, ARRAY_SIZE(queues), ret), 0);
	assert_int_equal(ret[50].state, GKFD_QUEUE_UNKNOWN);
	assert_int_equal(ret[51].state, GKFD_QUEUE_PENDING);
	for (size_t i = 0; i < ARRAY_SIZE(queues); i++) {
		if (i != 50 && i != 51)
			assert_int_equal(ret[i].state, GKFD_QUEUE_BLOCKED);
	}
	assert_int_equal(w->f->calls, 3);
}

static void at_most_so_many_packets_are_counted(void **state)
{
	struct world *w = *state;
	struct aql_barrier *big = fake_map(w->f, 0x400000, 1024 * AQL_PACKET_BYTES);

	for (size_t i = 0; i < 1024; i++)
		big[i].header = AQL_KERNEL_DISPATCH;
	w->queue.ring_base = 0x400000;
	w->queue.ring_bytes = 1024 * AQL_PACKET_BYTES;
	assert_int_equal(look(w, 0, 1000).pending, GKFD_PROGRESS_SCAN);
}

static void a_target_that_dies_is_an_error_only_at_first(void **state)
{
	struct world *w = *state;
	struct gkfd_progress p;

	packet(w, 0, AQL_BARRIER_AND)->dep_signal[0] = signal_handle(0);
	*w->write = 1;
	w->f->dies_at_call = 1;
	assert_int_equal(gkfd_progress_read(w->k, 1, &w->queue, 1, &p), -ESRCH);
	assert_int_equal(p.state, GKFD_QUEUE_UNKNOWN);
	for (int call = 2; call <= 3; call++) {
		w->f->calls = 0;
		w->f->dies_at_call = call;
		p = look(w, 0, 1);
		assert_int_equal(p.state, GKFD_QUEUE_UNKNOWN);
		assert_true(p.pointers_known);
	}
	assert_int_equal(gkfd_progress_read(w->k, 1, NULL, 0, NULL), 0);
}

static void states_have_names(void **state)
{
	assert_string_equal(gkfd_queue_state_name(GKFD_QUEUE_BLOCKED), "blocked");
	assert_string_equal(gkfd_queue_state_name(GKFD_QUEUE_PENDING), "pending");
	assert_string_equal(gkfd_queue_state_name((enum gkfd_queue_state)99), "unknown");
}

static void what_was_saved_is_summed_over_xccs(void **state)
{
	struct world *w = *state;
	struct kfd_context_save_area_header *first = fake_map(w->f, 0x500000, 0x4000), *second;
	uint64_t saved;

	second = (void *)((char *)first + 0x2000);
	assert_int_equal(gkfd_saved_read(w->k, 1, 0x500000, 0x2000, 2, &saved), 0);
	assert_int_equal(saved, 0);
	first->wave_state.wave_state_size = 0x1000;
	second->wave_state.wave_state_size = 0x800;
	second->wave_state.control_stack_size = 0x10;
	assert_int_equal(gkfd_saved_read(w->k, 1, 0x500000, 0x2000, 2, &saved), 0);
	assert_int_equal(saved, 0x1800);
}

static void a_save_area_that_makes_no_sense_is_refused(void **state)
{
	struct world *w = *state;
	struct kfd_context_save_area_header *h = fake_map(w->f, 0x500000, 0x2000);
	uint64_t saved = 77;

	assert_int_equal(gkfd_saved_read(w->k, 1, 0x500000, 0x2000, 0, &saved), -EINVAL);
	assert_int_equal(gkfd_saved_read(w->k, 1, 0x500000, 0x2000, 65, &saved), -EINVAL);
	assert_int_equal(gkfd_saved_read(w->k, 1, 0, 0x2000, 1, &saved), -EINVAL);
	assert_int_equal(gkfd_saved_read(w->k, 1, 0x500000, 8, 1, &saved), -EINVAL);
	assert_int_equal(gkfd_saved_read(w->k, 1, UINT64_MAX - 99, 0x2000, 1, &saved), -EINVAL);
	assert_int_equal(gkfd_saved_read(w->k, 1, 0x500000, 0x2000, 2, &saved), -EFAULT);
	h->wave_state.wave_state_size = 0x2001; /* the offsets of a queue that was never saved */
	assert_int_equal(gkfd_saved_read(w->k, 1, 0x500000, 0x2000, 1, &saved), -EBADMSG);
	w->f->dies_at_call = 1;
	assert_int_equal(gkfd_saved_read(w->k, 1, 0x500000, 0x2000, 1, &saved), -ESRCH);
	assert_int_equal(saved, 77);
}

#define WORLD_TEST(f) cmocka_unit_test_setup_teardown(f, make_world, end_world)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(published_packets_are_pending),
		WORLD_TEST(reserved_packets_are_no_work),
		WORLD_TEST(a_queue_never_used_is_idle),
		WORLD_TEST(an_empty_queue_runs_until_its_last_signal_is_done),
		WORLD_TEST(a_last_packet_without_signal_leaves_us_in_the_dark),
		WORLD_TEST(an_and_barrier_blocks_until_all_its_signals_are_0),
		WORLD_TEST(an_or_barrier_blocks_until_one_signal_is_0),
		WORLD_TEST(only_a_barrier_at_the_front_blocks),
		WORLD_TEST(a_full_queue_is_pending_even_with_producers_waiting),
		WORLD_TEST(a_full_queue_that_shows_nothing_published_is_unknown),
		WORLD_TEST(nonsense_in_the_pointers_is_unknown),
		WORLD_TEST(a_queue_that_moves_while_it_is_read_still_makes_sense),
		WORLD_TEST(a_write_pointer_that_goes_back_is_nonsense),
		WORLD_TEST(nonsense_in_the_addresses_reads_nothing),
		WORLD_TEST(unmapped_pointers_and_rings_are_unknown),
		WORLD_TEST(queues_that_cannot_be_followed_are_pending_or_unknown),
		WORLD_TEST(few_reads_serve_many_queues),
		WORLD_TEST(at_most_so_many_packets_are_counted),
		WORLD_TEST(a_target_that_dies_is_an_error_only_at_first),
		WORLD_TEST(states_have_names),
		WORLD_TEST(what_was_saved_is_summed_over_xccs),
		WORLD_TEST(a_save_area_that_makes_no_sense_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
