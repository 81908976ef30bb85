/* SPDX-License-Identifier: MIT */
/* The debugfs file of the driver's extension: what its scheduler does. */
#include "tests/readers/rig.h"

#include "gpu/kfd/scheduler.h"

#define BOOK "slots 24\nactive 12\nactive_sum 12\nqueues 12\nheld 3\nflags 0x10\n"
#define OFF "gpu 11547\n" BOOK "scheduler off\n"
#define ON \
	"gpu 18256\n" BOOK "scheduler on\npolicy share\ninterval_us 2000\n" \
	"critical_interval_us 500\nturn_ms 20\nhold_max_ms 400\n" \
	"online_permille 100\noffline_permille 800\nlow_water 2\n" \
	"looks 18446744073709551615\nlooked_queues 9\nbusy_ns 77\n" \
	"holds 5\nresumes 4\nfailures 1\ntripped 1\nonline 1\noffline 2\nheld 1\n"

#define EVERYTHING 0x1ffu

static void each_gpu_tells_whether_it_is_scheduled_and_how(void **state)
{
	struct gkfd_schedulers found;
	const struct gkfd_scheduled *g;
	uint32_t line = 0;

	assert_int_equal(gkfd_schedulers_parse(OFF ON, strlen(OFF ON), &found, &line), 0);
	assert_int_equal(found.n, 2);
	assert_int_equal(found.gpus[0].gpu_id, 11547);
	assert_false(found.gpus[0].on);
	assert_int_equal(found.gpus[0].known, GKFD_SCHEDULER_SLOTS);
	g = &found.gpus[1];
	assert_true(g->on);
	assert_int_equal(g->known, EVERYTHING);
	assert_string_equal(g->policy, "share");
	assert_int_equal(g->interval_us, 2000);
	assert_int_equal(g->hold_max_ms, 400);
	assert_int_equal(g->offline_permille, 800);
	assert_int_equal(g->looks, UINT64_MAX);
	assert_int_equal(g->tripped, 1);
	/* The same name twice: queues of the driver's, jobs of the scheduler's. */
	assert_int_equal(g->held_queues, 3);
	assert_int_equal(g->held, 1);
	gkfd_schedulers_done(&found);
}

static void what_a_driver_does_not_tell_is_not_known(void **state)
{
	static const char text[] = "gpu 1\nscheduler on\npolicy none\nsomething new\nlooks 3\n";
	struct gkfd_schedulers found;
	uint32_t line = 0;

	assert_int_equal(gkfd_schedulers_parse(text, strlen(text), &found, &line), 0);
	assert_int_equal(found.gpus[0].known, GKFD_SCHEDULER_POLICY);
	gkfd_schedulers_done(&found);
	assert_int_equal(gkfd_schedulers_parse("", 0, &found, &line), 0);
	assert_int_equal(found.n, 0);
}

static void bad_lines_are_named(void **state)
{
	static const struct {
		const char *text;
		uint32_t line;
	} bad[] = {
		{ "slots 24\n", 1 },
		{ "gpu x\n", 1 },
		{ "gpu 4294967296\n", 1 },
		{ "gpu 1\n", 1 }, /* neither on nor off */
		{ "gpu 1\ngpu 2\n", 2 },
		{ "gpu 1\nscheduler perhaps\n", 2 },
		{ "gpu 1\nscheduler on\nscheduler on\n", 3 },
		{ "gpu 1\nscheduler on\nlooks many\n", 3 },
		{ "gpu 1\nscheduler on\nlooks -1\n", 3 },
		{ "gpu 1\nscheduler on\nlooks 18446744073709551616\n", 3 },
		{ "gpu 1\nscheduler on\nlooks\n", 3 },
		{ "gpu 1\nscheduler on\n\n", 3 },
		{ "gpu 1\nscheduler on\nlooks 1", 3 }, /* cut off */
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct gkfd_schedulers found;
		uint32_t line = 0;

		assert_int_equal(
			gkfd_schedulers_parse(bad[i].text, strlen(bad[i].text), &found, &line),
			-EBADMSG);
		assert_int_equal(line, bad[i].line);
	}
}

static void the_file_is_read_where_the_extension_has_it(void **state)
{
	struct fake *f;
	_cleanup_gkfd_ struct gkfd *k = fake_open(&f);
	struct gkfd_schedulers found;

	assert_int_equal(gkfd_schedulers_read(k, &found), -ENOENT);
	fake_file(f, GKFD_TREE_SYS, "kernel/debug/kfd_gpreempt", OFF);
	assert_int_equal(gkfd_schedulers_read(k, &found), 0);
	assert_int_equal(found.n, 1);
	gkfd_schedulers_done(&found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_gpu_tells_whether_it_is_scheduled_and_how),
		cmocka_unit_test(what_a_driver_does_not_tell_is_not_known),
		cmocka_unit_test(bad_lines_are_named),
		cmocka_unit_test(the_file_is_read_where_the_extension_has_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
