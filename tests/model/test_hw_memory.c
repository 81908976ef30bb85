/* SPDX-License-Identifier: MIT */
/* When memory runs short work is late, never lost. Linked so that allocations pass by here. */
#include <errno.h>

#include "tests/model/hw_rig.h"

void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_reallocarray(void *p, size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size);

static uint64_t good_left = UINT64_MAX; /* allocations that still succeed */
static uint64_t refused;

static bool refuse(void)
{
	if (good_left) {
		good_left -= good_left != UINT64_MAX;
		return false;
	}
	refused++;
	return true;
}

void *__wrap_calloc(size_t n, size_t size)
{
	return refuse() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return refuse() ? NULL : __real_realloc(p, size);
}

void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
	return refuse() ? NULL : __real_reallocarray(p, n, size);
}

static void objects_are_not_made_without_memory(void **state)
{
	struct hw_queue_config config = { 0 };
	struct event e = { 0 };
	struct timeline t;
	struct rig rig;

	rig_open(&rig, "mi308x");
	timeline_init(&t);
	good_left = 0;
	assert_null(mem_new());
	assert_int_equal(timeline_set(&t, &e, 1), -ENOMEM);
	assert_null(hw_gpu_new(rig.chip, &rig.time));
	good_left = 1;
	assert_null(hw_gpu_new(rig.chip, &t));
	assert_null(hw_queue_new(rig.gpu, &config));
	assert_int_equal(mem_map(rig.vm, 4096), 0);
	good_left = UINT64_MAX;
	assert_int_not_equal(mem_map(rig.vm, 4096), 0);
	timeline_done(&t);
	rig_close(&rig);
}

static void a_map_without_memory_maps_nothing(void **state)
{
	struct rig rig;
	struct rig_queue q;

	rig_open(&rig, "mi308x");
	rig_queue_open(&rig, &q, HW_RING_AQL, 64);
	good_left = 0;
	assert_int_equal(hw_map(rig.gpu, &q.hw, 1), -ENOMEM);
	good_left = UINT64_MAX;
	assert_false(hw_see(q.hw)->mapped);
	rig_map_one(&q);
	rig_unmap(&rig, 1);
	rig_queue_close(&q);
	rig_close(&rig);
}

/* Memory comes and goes over a run with saves: at the end all is done, exactly once. */
static void run_with(uint64_t good)
{
	struct rig rig;
	struct rig_queue a, b;
	struct hw_queue *both[2];
	uint64_t kernel, barrier_signal;

	rig_open(&rig, "mi308x");
	rig_queue_open(&rig, &a, HW_RING_AQL, 64);
	rig_queue_open(&rig, &b, HW_RING_SDMA, 64);
	kernel = rig_kernel(&rig, 30000, HW_CU_UNITS / 3);
	barrier_signal = rig_signal(&rig, 0);
	both[0] = a.hw;
	both[1] = b.hw;
	rig_map(&rig, both, 2);
	good_left = good;
	for (int i = 0; i < 20; i++) {
		rig_dispatch(&a, kernel, 100 + i * 10, 0, 0);
		rig_barrier(&a, AQL_BARRIER_AND, barrier_signal, 0, 0);
		rig_timed(&b, 5000, 0);
		rig_run(&rig, 11111);
		rig_unmap(&rig, 1);
		rig_map(&rig, both, 2);
	}
	good_left = UINT64_MAX;
	rig_run(&rig, RIG_FOREVER_NS);
	assert_int_equal(rig_stats(&a).completed, 40);
	assert_int_equal(rig_stats(&b).completed, 20);
	for (uint64_t i = 0; i < 20; i++) {
		assert_int_equal(rig_packet(&a, i * 2).finished, 100 + i * 10);
		assert_int_equal(rig_packet(&a, i * 2).executed_ns, (100 + i * 10) * 30000);
		assert_int_equal(rig_packet(&b, i).executed_ns, 5000);
	}
	rig_unmap(&rig, 1);
	rig_queue_close(&a);
	rig_queue_close(&b);
	rig_close(&rig);
}

static void work_is_late_but_never_lost_without_memory(void **state)
{
	refused = 0;
	for (uint64_t good = 0; good < 150; good++)
		run_with(good);
	assert_true(refused > 150);
}

/*
 * A cohort that cannot be divided for lack of memory waits for room for all of it; asking for
 * memory again in the middle of a long map is too soon.
 */
static void what_cannot_be_split_waits(void **state)
{
	struct model_chip slow = *model_chip_find("mi308x");
	struct rig rig;
	struct rig_queue a, b;

	slow.costs.map_ns = 5 * NSEC_PER_MSEC;
	rig_open_chip(&rig, &slow);
	rig_queue_open(&rig, &a, HW_RING_AQL, 64);
	rig_queue_open(&rig, &b, HW_RING_AQL, 64);
	rig_dispatch(&a, rig_kernel(&rig, 100000, HW_CU_UNITS), 40, 0, 0);
	rig_map_one(&a);
	rig_unmap(&rig, 1);
	rig_dispatch(&b, rig_kernel(&rig, 100000, HW_CU_UNITS), 80, 0, 0);
	rig_map_one(&b);
	rig_unmap(&rig, 1);
	refused = 0;
	good_left = 0; /* the list of mapped queues has room since they were there */
	assert_int_equal(hw_map(rig.gpu, (struct hw_queue *[]){ a.hw, b.hw }, 2), 0);
	assert_true(refused > 0);
	good_left = UINT64_MAX;
	rig_run(&rig, slow.costs.map_ns);
	assert_int_equal(rig_stats(&b).saved, 80);
	rig_run(&rig, 10000); /* the other's bytes are back */
	assert_int_equal(rig_stats(&b).resident, 40);
	rig_run(&rig, RIG_FOREVER_NS);
	assert_int_equal(rig_packet(&b, 0).executed_ns, 80 * 100000);
	rig_unmap(&rig, 1);
	rig_queue_close(&a);
	rig_queue_close(&b);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(objects_are_not_made_without_memory),
		cmocka_unit_test(a_map_without_memory_maps_nothing),
		cmocka_unit_test(work_is_late_but_never_lost_without_memory),
		cmocka_unit_test(what_cannot_be_split_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
