/* SPDX-License-Identifier: MIT */
/* Pipe priorities: who starts first when all wait. */
#include "tests/model/hw_rig.h"

#define CU HW_CU_UNITS
#define LOW 0
#define MEDIUM 7
#define HIGH 11
#define QUEUES 4

struct fixture {
	struct rig rig;
	struct rig_queue q[QUEUES];
	uint64_t kernel; /* a compute unit for 1000 ns */
};

static int open_fixture(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	rig_open(&f->rig, "mi308x");
	for (int i = 0; i < QUEUES; i++)
		rig_queue_open(&f->rig, &f->q[i], HW_RING_AQL, 256);
	f->kernel = rig_kernel(&f->rig, 1000, CU);
	*state = f;
	return 0;
}

static int close_fixture(void **state)
{
	struct fixture *f = *state;

	hw_reset(f->rig.gpu);
	for (int i = 0; i < QUEUES; i++)
		rig_queue_close(&f->q[i]);
	rig_close(&f->rig);
	free(f);
	return 0;
}

static void map_with(struct fixture *f, size_t n, const uint32_t *priorities)
{
	struct hw_queue *qs[QUEUES];

	for (size_t i = 0; i < n; i++) {
		qs[i] = f->q[i].hw;
		hw_queue_set_priority(qs[i], priorities[i]);
	}
	rig_map(&f->rig, qs, n);
}

static uint64_t resident(const struct fixture *f, int i)
{
	return rig_stats(&f->q[i]).resident;
}

/* Which of two queues of these priorities has the GPU first. */
static int first_of(struct fixture *f, uint32_t a, uint32_t b)
{
	int first;

	rig_dispatch(&f->q[0], f->kernel, 80, 0, 0);
	rig_dispatch(&f->q[1], f->kernel, 80, 0, 0);
	map_with(f, 2, (uint32_t[]){ a, b });
	assert_int_equal(resident(f, 0) + resident(f, 1), 80);
	first = resident(f, 0) ? 0 : 1;
	rig_run(&f->rig, NSEC_PER_MSEC);
	rig_unmap(&f->rig, 1);
	return first;
}

static void sixteen_priorities_make_three_pipes(void **state)
{
	struct fixture *f = *state;

	for (uint32_t p = 0; p < 16; p++) {
		int one = first_of(f, p, MEDIUM), other = first_of(f, MEDIUM, p);

		if (p < 7) {
			assert_int_equal(one, 1);
			assert_int_equal(other, 0);
		} else if (p < 11) {
			assert_int_equal(one, other);
		} else {
			assert_int_equal(one, 0);
			assert_int_equal(other, 1);
		}
	}
}

static void an_urgent_queue_takes_all_room_that_comes_free_but_displaces_nobody(void **state)
{
	struct fixture *f = *state;

	rig_dispatch(&f->q[0], f->kernel, 1000, 0, 0);
	rig_dispatch(&f->q[1], f->kernel, 1000, 0, 0);
	map_with(f, 3, (uint32_t[]){ LOW, MEDIUM, HIGH });
	assert_int_equal(resident(f, 1), 80);
	rig_dispatch(&f->q[2], f->kernel, 200, 0, 0);
	rig_run(&f->rig, 999);
	assert_int_equal(resident(f, 1), 80);
	assert_int_equal(resident(f, 2), 0);
	rig_run(&f->rig, 1);
	assert_int_equal(resident(f, 2), 80);
	rig_run(&f->rig, 2000);
	/* What it does not need is the next one's, not the least's. */
	assert_int_equal(resident(f, 2), 40);
	assert_int_equal(resident(f, 1), 40);
	assert_int_equal(resident(f, 0), 0);
}

/* A turn lost to the urgent queue between them is nobody's turn. */
static void lesser_queues_take_turns_whatever_the_urgent_one_does(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 200; i++)
		rig_dispatch(&f->q[1], f->kernel, 40, AQL_BARRIER_BIT, 0);
	rig_dispatch(&f->q[0], f->kernel, 100000, 0, 0);
	rig_dispatch(&f->q[2], f->kernel, 100000, 0, 0);
	map_with(f, 3, (uint32_t[]){ LOW, HIGH, LOW });
	rig_run(&f->rig, 100000);
	assert_in_range(rig_packet(&f->q[0], 0).finished, 1900, 2100);
	assert_in_range(rig_packet(&f->q[2], 0).finished, 1900, 2100);
}

static void room_too_small_for_an_urgent_workgroup_is_kept_for_it(void **state)
{
	struct fixture *f = *state;

	rig_dispatch(&f->q[0], rig_kernel(&f->rig, 5000, CU), 76, 0, 0);
	rig_dispatch(&f->q[0], rig_kernel(&f->rig, 2000, CU / 2), 4, 0, 0);
	map_with(f, 3, (uint32_t[]){ LOW, LOW, HIGH });
	rig_dispatch(&f->q[2], f->kernel, 80, 0, 0);
	rig_dispatch(&f->q[1], rig_kernel(&f->rig, 1000, CU / 2), 80, 0, 0);
	rig_run(&f->rig, 1000);
	assert_int_equal(resident(f, 1), 0);
	rig_run(&f->rig, 1000);
	assert_int_equal(resident(f, 2), 4);
	assert_int_equal(resident(f, 1), 0);
}

/* Both ran at one time or another and are saved; there is room for one of them. */
static void save_both(struct fixture *f, uint32_t first, uint32_t second)
{
	uint64_t long_kernel = rig_kernel(&f->rig, 100000, CU);

	hw_queue_set_priority(f->q[0].hw, first);
	hw_queue_set_priority(f->q[1].hw, second);
	for (int i = 0; i < 2; i++) {
		rig_dispatch(&f->q[i], long_kernel, 80, 0, 0);
		rig_map_one(&f->q[i]);
		rig_unmap(&f->rig, 1);
		assert_int_equal(rig_stats(&f->q[i]).saved, 80);
	}
}

static void urgent_workgroups_are_restored_first(void **state)
{
	struct fixture *f = *state;

	save_both(f, LOW, HIGH);
	map_with(f, 2, (uint32_t[]){ LOW, HIGH });
	assert_int_equal(resident(f, 1), 80);
	assert_int_equal(rig_stats(&f->q[0]).saved, 80);
}

static void new_urgent_work_goes_before_saved_work_that_waits_for_room(void **state)
{
	struct fixture *f = *state;

	save_both(f, MEDIUM, LOW);
	map_with(f, 3, (uint32_t[]){ MEDIUM, LOW, HIGH });
	assert_int_equal(resident(f, 0), 80);
	rig_dispatch(&f->q[2], f->kernel, 60, 0, 0);
	rig_run(&f->rig, 110000);
	assert_int_equal(rig_packet(&f->q[2], 0).started_ns, rig_packet(&f->q[0], 0).done_ns);
	assert_int_equal(resident(f, 1), 80);
	rig_run(&f->rig, 200000);
	assert_int_equal(rig_packet(&f->q[1], 0).executed_ns, 80 * 100000);
}

static void new_work_of_the_same_pipe_waits_for_saved_work(void **state)
{
	struct fixture *f = *state;

	save_both(f, MEDIUM, LOW);
	map_with(f, 3, (uint32_t[]){ MEDIUM, LOW, 6 });
	rig_dispatch(&f->q[2], f->kernel, 60, 0, 0);
	rig_run(&f->rig, 150000);
	assert_int_equal(resident(f, 1), 80);
	assert_int_equal(rig_packet(&f->q[2], 0).started_ns, 0);
}

static void saved_work_does_not_take_the_crumbs_of_urgent_work(void **state)
{
	struct fixture *f = *state;
	uint64_t quarter = rig_kernel(&f->rig, 300000, CU / 4);

	/* Saved: 320 quarters, of low priority. */
	rig_dispatch(&f->q[0], quarter, 320, 0, 0);
	hw_queue_set_priority(f->q[0].hw, LOW);
	rig_map_one(&f->q[0]);
	rig_unmap(&f->rig, 1);
	/* Urgent: 76 whole ones, and on each XCC two halves that do not end together. */
	rig_dispatch(&f->q[1], rig_kernel(&f->rig, 200000, CU), 76, 0, 0);
	rig_dispatch(&f->q[1], rig_kernel(&f->rig, 50000, CU / 2), 4, 0, 0);
	rig_dispatch(&f->q[1], rig_kernel(&f->rig, 100000, CU / 2), 4, 0, 0);
	hw_queue_set_priority(f->q[1].hw, HIGH);
	rig_map_one(&f->q[1]);
	rig_unmap(&f->rig, 1);
	map_with(f, 3, (uint32_t[]){ LOW, HIGH, HIGH });
	assert_int_equal(resident(f, 1), 84);
	rig_dispatch(&f->q[2], rig_kernel(&f->rig, 50000, CU), 8, 0, 0);
	rig_run(&f->rig, 80000);
	assert_int_equal(resident(f, 1), 80);
	assert_int_equal(resident(f, 0), 0);
	rig_run(&f->rig, 40000);
	assert_int_equal(resident(f, 2), 4);
	assert_int_equal(resident(f, 0), 0);
}

static void a_changed_priority_counts_from_the_next_map(void **state)
{
	struct fixture *f = *state;

	rig_dispatch(&f->q[0], f->kernel, 100000, 0, 0);
	rig_dispatch(&f->q[1], f->kernel, 100000, 0, 0);
	map_with(f, 2, (uint32_t[]){ LOW, HIGH });
	hw_queue_set_priority(f->q[0].hw, 15);
	hw_queue_set_priority(f->q[1].hw, LOW);
	rig_run(&f->rig, 10000);
	assert_int_equal(resident(f, 1), 80);
	rig_unmap(&f->rig, 10);
	rig_map(&f->rig, (struct hw_queue *[]){ f->q[0].hw, f->q[1].hw }, 2);
	rig_run(&f->rig, 10000);
	assert_int_equal(resident(f, 0), 80);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(sixteen_priorities_make_three_pipes),
		TEST(an_urgent_queue_takes_all_room_that_comes_free_but_displaces_nobody),
		TEST(lesser_queues_take_turns_whatever_the_urgent_one_does),
		TEST(room_too_small_for_an_urgent_workgroup_is_kept_for_it),
		TEST(urgent_workgroups_are_restored_first),
		TEST(new_urgent_work_goes_before_saved_work_that_waits_for_room),
		TEST(new_work_of_the_same_pipe_waits_for_saved_work),
		TEST(saved_work_does_not_take_the_crumbs_of_urgent_work),
		TEST(a_changed_priority_counts_from_the_next_map),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
