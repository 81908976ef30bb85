/* SPDX-License-Identifier: MIT */
/* Out of memory at every place where it can happen: an error, and nothing left behind. */
#include <errno.h>
#include <stdlib.h>

#include "tests/sim/sim_rig.h"

static long countdown = -1; /* allocations until one fails; negative: none does */

void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_reallocarray(void *p, size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size);

static bool fails(void)
{
	return countdown >= 0 && countdown-- == 0;
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return fails() ? NULL : __real_realloc(p, size);
}

void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
	return fails() ? NULL : __real_reallocarray(p, n, size);
}

static void every_allocation_may_fail(void **state)
{
	struct sim_options options = { .mode = SIM_ENGINE, .policy = &gpol_priority, .seed = 1 };
	struct sim_job *online;
	struct sim_result r;
	struct sim_rig rig;
	long n = 0;
	int result;

	sim_rig_init(&rig);
	rig.s.duration_ns = 300 * MSEC;
	online = sim_rig_job(&rig, JOB_ONLINE, 1, 100 * USEC);
	online->arrival = SIM_POISSON;
	online->rate_mhz = 2000 * 1000;
	sim_rig_job(&rig, JOB_OFFLINE, 10, 100 * USEC)->copies = 30;
	stub_reset(STUB_PREEMPTS);
	do {
		r = (struct sim_result){ .cycles = 12345 };
		countdown = n++;
		result = sim_run(&rig.s, &options, &r);
		if (countdown < 0 && result < 0) {
			assert_int_equal(result, -ENOMEM);
			assert_int_equal(r.cycles, 12345);
		}
	} while (countdown < 0);
	assert_int_equal(result, 0);
	assert_true(n > 60); /* there were as many places, of samples and batches too */
	assert_true(r.online.n > 256);
	sim_result_done(&r);
	countdown = -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(every_allocation_may_fail) };

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
