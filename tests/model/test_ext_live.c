/* SPDX-License-Identifier: MIT */
/* The extension on the software device in real time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "abi/kfd_gpreempt.h"
#include "gpu/model/live.h"
#include "util/macros.h"

#define TRAIN 1001

static const struct gkfd_transport *t = &gkfd_transport_live;

static bool is_mapped(struct live *l)
{
	struct model_queue_stats stats = { 0 };

	assert_int_equal(model_queue_stats(live_lock(l), TRAIN, 0, &stats), 0);
	live_unlock(l);
	return stats.mapped;
}

static int preempt(void *data, uint32_t hold_ms)
{
	struct kfd_gpreempt_one one = {
		.pid = TRAIN,
		.gpu_id = KFD_GPREEMPT_ANY_GPU,
		.grace = KFD_GPREEMPT_DEFAULT_GRACE,
		.hold_ms = hold_ms,
	};

	return t->ext(data, KFD_GPREEMPT_PREEMPT_QUEUE, &one);
}

static int setup(void **state)
{
	struct live *l = NULL;
	char *why = NULL;

	if (live_new("mi308x,gpus=1,jobs=1,occupancy=0,ext=1", &l, &why) < 0)
		return -1;
	*state = l;
	return 0;
}

static int teardown(void **state)
{
	live_unref(*state);
	return 0;
}

static void what_a_client_holds_comes_back_when_the_last_one_has_gone(void **state)
{
	struct live *l = *state;
	void *first = live_transport(l), *second = live_transport(l);

	assert_int_equal(preempt(first, 0), 0);
	t->close(first);
	assert_false(is_mapped(l));
	t->close(second);
	assert_true(is_mapped(l));
}

static void a_hold_ends_in_real_time(void **state)
{
	struct live *l = *state;
	void *data = live_transport(l);

	assert_int_equal(preempt(data, 20), 0);
	assert_false(is_mapped(l));
	assert_int_equal(t->wait(data, NULL, 0, 25 * NSEC_PER_MSEC), 0);
	assert_true(is_mapped(l));
	t->close(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			what_a_client_holds_comes_back_when_the_last_one_has_gone, setup, teardown),
		cmocka_unit_test_setup_teardown(a_hold_ends_in_real_time, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
