/* SPDX-License-Identifier: MIT */
/* Queues that come and go one by one, beside others that stay. */
#include <errno.h>

#include "tests/model/hw_rig.h"

#define HALF_CU (HW_CU_UNITS / 2)
#define WG_NS (10 * NSEC_PER_MSEC)

struct fixture {
	struct rig rig;
	struct rig_queue a, b;
	uint32_t half; /* workgroups that take half of all room */
};

/* Both run, each with half of the GPU, and will for 10 ms. */
static int open_fixture(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	uint64_t kernel;

	rig_open(&f->rig, "gfx1200");
	rig_queue_open(&f->rig, &f->a, HW_RING_AQL, 64);
	rig_queue_open(&f->rig, &f->b, HW_RING_AQL, 64);
	f->half = f->rig.chip->cu_per_xcc;
	kernel = rig_kernel(&f->rig, WG_NS, HALF_CU);
	rig_dispatch(&f->a, kernel, f->half, 0, 0);
	rig_dispatch(&f->b, kernel, f->half, 0, 0);
	assert_int_equal(hw_add(f->a.hw), 0);
	assert_int_equal(hw_add(f->b.hw), 0);
	rig_run(&f->rig, NSEC_PER_MSEC);
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

static struct hw_unmap off(struct rig_queue *q, int expected)
{
	struct hw_unmap op = { .timeout_ns = RIG_TIMEOUT_NS };

	assert_int_equal(hw_unmap(q->rig->gpu, q->hw, &op), expected);
	return op;
}

static void removing_one_saves_it_and_leaves_the_other(void **state)
{
	struct fixture *f = *state;
	struct hw_unmap op = off(&f->a, 0);
	struct hw_saved_state saved;

	saved = hw_see(f->a.hw)->left[0];
	assert_int_equal(op.unmapped, 1);
	assert_int_equal(op.saved_bytes, f->half * (f->rig.chip->cwsr_bytes_per_cu / 2));
	assert_int_equal(saved.wave_bytes, op.saved_bytes);
	assert_false(hw_see(f->a.hw)->mapped);
	assert_int_equal(rig_stats(&f->a).saved, f->half);
	assert_int_equal(rig_stats(&f->b).resident, f->half);
}

static void the_other_one_ends_on_time(void **state)
{
	struct fixture *f = *state;
	uint64_t started = rig_packet(&f->b, 0).started_ns;

	off(&f->a, 0);
	rig_run(&f->rig, WG_NS);
	assert_int_equal(rig_packet(&f->b, 0).done_ns, started + WG_NS);
	assert_int_equal(rig_packet(&f->b, 0).saves, 0);
}

static void what_was_saved_goes_on_where_it_stopped(void **state)
{
	struct fixture *f = *state;
	struct model_packet p;

	off(&f->a, 0);
	rig_run(&f->rig, NSEC_PER_SEC);
	assert_int_equal(rig_packet(&f->a, 0).done_ns, 0);
	assert_int_equal(hw_add(f->a.hw), 0);
	rig_run(&f->rig, NSEC_PER_SEC);
	p = rig_packet(&f->a, 0);
	assert_int_not_equal(p.done_ns, 0);
	assert_int_equal(p.finished, f->half);
	assert_int_equal(p.executed_ns, f->half * WG_NS);
	assert_int_equal(p.saves, 1);
}

static void a_queue_is_there_once_or_not_at_all(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(hw_add(f->a.hw), -EBUSY);
	off(&f->a, 0);
	off(&f->a, -EINVAL);
	assert_int_equal(hw_add(f->a.hw), 0);
}

static void a_stuck_queue_loses_its_own_work_only(void **state)
{
	struct fixture *f = *state;
	struct hw_unmap op = { .timeout_ns = RIG_TIMEOUT_NS, .stuck = f->a.hw };

	assert_int_equal(hw_unmap(f->rig.gpu, f->a.hw, &op), -EREMOTEIO);
	assert_true(hw_see(f->a.hw)->failed);
	rig_run(&f->rig, NSEC_PER_SEC);
	assert_int_equal(rig_packet(&f->b, 0).finished, f->half);
}

static void a_dead_scheduler_takes_until_its_timeout(void **state)
{
	struct fixture *f = *state;
	struct hw_unmap op = { .timeout_ns = RIG_TIMEOUT_NS, .dead = true };

	assert_int_equal(hw_unmap(f->rig.gpu, f->a.hw, &op), -ETIME);
	assert_int_equal(op.took_ns, RIG_TIMEOUT_NS);
	assert_int_equal(op.saved_bytes, 0);
	assert_false(hw_see(f->a.hw)->mapped);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_fixture, close_fixture)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(removing_one_saves_it_and_leaves_the_other),
		TEST(the_other_one_ends_on_time),
		TEST(what_was_saved_goes_on_where_it_stopped),
		TEST(a_queue_is_there_once_or_not_at_all),
		TEST(a_stuck_queue_loses_its_own_work_only),
		TEST(a_dead_scheduler_takes_until_its_timeout),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
