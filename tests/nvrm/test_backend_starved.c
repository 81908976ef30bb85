/* SPDX-License-Identifier: MIT */
/* What hostile processes cost the backend, and whom they make wait: counted, not timed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/nvrm/backend_rig.h"
#include "util/macros.h"

#define HOSTILE 3000
#define HOSTILE_UID 1001

/* ---- the owner's thread ---- */

#define LOOKERS 4
#define SOCKETS 40000u
#define FIRST_LOOKS 8
#define FIRST_CALLS 2300u /* of one look for processes, at the beginning */
#define MOST_CALLS 600u /* and later */

static void open_160_000_descriptors(struct bed *bed)
{
	for (pid_t pid = HOSTILE; pid < HOSTILE + LOOKERS; pid++) {
		fake_rm_spawn(bed->fake, pid, HOSTILE_UID, "hostile");
		fake_rm_open_sockets(bed->fake, pid, SOCKETS);
	}
}

static void a_look_for_processes_costs_the_same_whatever_is_open(void **state)
{
	struct bed *bed = *state;
	pid_t pids[4];
	size_t all = 0;

	open_160_000_descriptors(bed);
	fake_rm_job(bed->fake, OTHER);
	for (int i = 0; i < 400; i++) {
		size_t calls;

		fake_rm_forget_calls(bed->fake);
		assert_int_equal(bed_ops(bed)->processes(bed->b, pids, ARRAY_SIZE(pids)), 2);
		assert_int_equal(pids[0], JOB);
		assert_int_equal(pids[1], OTHER);
		calls = fake_rm_count(bed->fake, FAKE_ANY, 0);
		assert_in_range(calls, 1, i < FIRST_LOOKS ? FIRST_CALLS : MOST_CALLS);
		all += calls;
	}
	assert_true(all > LOOKERS * SOCKETS); /* they were read all the same */
}

static void who_comes_while_they_are_read_is_found_at_once(void **state)
{
	struct bed *bed = *state;
	pid_t pids[4];

	open_160_000_descriptors(bed);
	assert_int_equal(bed_ops(bed)->processes(bed->b, pids, ARRAY_SIZE(pids)), 1);
	fake_rm_job(bed->fake, OTHER);
	assert_int_equal(bed_ops(bed)->processes(bed->b, pids, ARRAY_SIZE(pids)), 2);
	assert_int_equal(pids[1], OTHER);
}

#define T(f) cmocka_unit_test_setup_teardown(f, bed_setup, bed_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_look_for_processes_costs_the_same_whatever_is_open),
		T(who_comes_while_they_are_read_is_found_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
