/* SPDX-License-Identifier: MIT */
/*
 * The daemon's way to GPUs of which it knows nothing but their driver's table: two toys, of which
 * the first may not be there.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cmd/gpreemptd/clean_up.h"
#include "cmd/gpreemptd/device.h"
#include "tests/backend/toy/toy.h"

#define JOB 501

static struct gpu_driver other; /* "other", with level T2 */
const struct gpu_driver *const gpu_drivers[] = { &other, &toy_driver, NULL };

static bool other_is_there, other_counts;

static int open_other(const char *argument, void **ret, struct gpu_why *ret_why)
{
	if (!other_is_there)
		return gpu_why_fail(ret_why, -ENODEV, "there is no other");
	*ret = toy_machine;
	return 0;
}

static bool counts_ended(void *data)
{
	return other_counts;
}

static int setup(void **state)
{
	toy_machine = calloc(1, sizeof(*toy_machine));
	assert_non_null(toy_machine);
	toy_machine->procs[0] = (struct toy_proc){ .pid = JOB, .start_ticks = 71, .n = 3 };
	other = toy_driver;
	other.name = "other";
	other.whose = "the other's";
	other.node = "other";
	other.module = "other";
	other.levels = "T2";
	other.open = open_other;
	other.counts_ended = counts_ended;
	other_is_there = false;
	return 0;
}

static int teardown(void **state)
{
	free(toy_machine);
	return 0;
}

/* What opening it comes to; where that is 0 it is closed again. */
static int try_open(const char *name, const char *level, const char *words)
{
	struct daemon_options options = { .device = name, .level = level, .run_dir = "." };
	struct device *d = NULL;
	int r = device_new(&options, NULL, &d);

	if (r == 0)
		r = device_take_up(d);
	if (r == 0)
		assert_string_equal(device_backend(d)->caps.name, "toy");
	else
		assert_null(device_backend(d));
	if (words && !strstr(device_why(d), words))
		fail_msg("'%s' is not in '%s'", words, device_why(d));
	device_close(d);
	return r;
}

static void a_driver_goes_by_its_name(void **state)
{
	assert_int_equal(try_open("toy", NULL, NULL), 0);
	assert_int_equal(try_open("other", NULL, "there is no other"), -ENODEV);
	assert_int_equal(try_open("toy:1", NULL, "no such device 'toy:1'"), -EINVAL);
	assert_int_equal(try_open("kfd", NULL, "auto, model[:PRESET], other, toy"), -EINVAL);
}

static void auto_is_the_first_that_is_there(void **state)
{
	struct toy *machine = toy_machine;

	assert_int_equal(try_open("auto", NULL, NULL), 0);
	toy_machine = NULL;
	assert_int_equal(
		try_open("auto", NULL, "neither the other's (no /dev/other) nor the toy's"),
		-ENODEV);
	toy_machine = machine;
	other_is_there = true;
	assert_int_equal(try_open("auto", "T2", NULL), 0);
}

static void a_level_is_of_whoever_has_it(void **state)
{
	assert_int_equal(try_open("toy", "t1", NULL), 0);
	assert_int_equal(try_open("auto", "T1", NULL), 0);
	assert_int_equal(try_open("toy", "T2", "a daemon; the toy's driver has T1"), -EINVAL);
	assert_int_equal(try_open("auto", "T2", "there is no other"), -ENODEV);
	assert_int_equal(
		try_open("auto", "T", "the other's driver has T2, the toy's driver has T1"),
		-EINVAL);
}

static void what_is_let_go_of_is_taken_up_again(void **state)
{
	struct daemon_options options = { .device = "auto", .run_dir = "." };
	struct device *d = NULL;

	assert_int_equal(device_new(&options, NULL, &d), 0);
	assert_int_equal(device_take_up(d), 0);
	device_let_go(d);
	assert_null(device_backend(d));
	assert_false(device_counts_ended(d)); /* the toy's driver counts nobody */
	assert_int_equal(device_take_up(d), 0);
	assert_non_null(device_backend(d));
	assert_int_equal(device_take_up(d), 0);
	device_close(d);
}

static void whoever_was_taken_is_asked_for_those_it_counts(void **state)
{
	struct daemon_options options = { .device = "auto", .run_dir = "." };
	struct device *d = NULL;

	other_is_there = other_counts = true;
	assert_int_equal(device_new(&options, NULL, &d), 0);
	assert_int_equal(device_take_up(d), 0);
	assert_true(device_counts_ended(d));
	other_counts = false;
	assert_false(device_counts_ended(d));
	device_close(d);
}

/* ---- after a daemon that is no more ---- */

static struct clean_up_result clean_up_after(uint64_t start_ticks, const char *level)
{
	struct journal_entry e = { .pid = JOB, .start_ticks = start_ticks };
	struct clean_up_result result = { 0 };

	snprintf(e.level, sizeof(e.level), "%s", level);
	assert_int_equal(toy_move(toy_machine, JOB, 7, UINT64_MAX), 3);
	clean_up_here(&e, &result);
	return result;
}

static void what_it_held_is_undone_by_the_driver_of_its_level(void **state)
{
	struct clean_up_result result = clean_up_after(71, "T1");

	assert_int_equal(result.released, 1);
	assert_int_equal(result.failed, 0);
	assert_int_equal(toy_machine->procs[0].off, 0);
}

static void others_are_left_alone(void **state)
{
	assert_int_equal(clean_up_after(70, "T1").left, 0);
	assert_int_equal(toy_machine->procs[0].off, 7);
	toy_machine->procs[0].off = 0;
	assert_int_equal(clean_up_after(71, "T2").left, 0); /* no driver of that level is there */
	assert_int_equal(toy_machine->procs[0].off, 7);
}

static int fail_to_undo(void *data, const struct gpu_leftover *left)
{
	return -EIO;
}

static void what_cannot_be_undone_is_a_failure(void **state)
{
	struct clean_up_result result;

	other_is_there = true;
	other.undo = fail_to_undo;
	result = clean_up_after(71, "T2");
	assert_int_equal(result.left, 1);
	assert_int_equal(result.released, 0);
	assert_int_equal(result.failed, 1);
	assert_int_equal(result.error, -EIO);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_driver_goes_by_its_name),
		TEST(auto_is_the_first_that_is_there),
		TEST(a_level_is_of_whoever_has_it),
		TEST(what_is_let_go_of_is_taken_up_again),
		TEST(whoever_was_taken_is_asked_for_those_it_counts),
		TEST(what_it_held_is_undone_by_the_driver_of_its_level),
		TEST(others_are_left_alone),
		TEST(what_cannot_be_undone_is_a_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
