/* SPDX-License-Identifier: MIT */
/* A process and its own queues, call by call. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "gpu/kfd/own.h"
#include "tests/kfd/script.h"
#include "util/macros.h"

#define PID 4711
#define NONE_YET "snapshot mask=0 room=0", -EINVAL
#define ENABLED .runtime_state = DEBUG_RUNTIME_STATE_ENABLED

static const struct gkfd_own_queue queues[] = {
	{ .id = 3, .priority = 7, .ring_base = 0x1000, .ring_bytes = 4096 },
	{ .id = 5, .priority = 11, .ring_base = 0x8000, .ring_bytes = 8192 },
};

struct fixture {
	struct script *script;
	struct gkfd *k;
	struct gkfd_own own;
	struct gkfd_failure fail;
	struct gkfd_moved hold, resumed;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->script = script_new(NULL);
	f->k = script_gkfd(f->script);
	f->k->major = 1;
	f->k->minor = 17;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	gkfd_free(f->k);
	free(f);
	return 0;
}

static int hold(struct fixture *f)
{
	return gkfd_own_hold(&f->own, f->k, PID, queues, ARRAY_SIZE(queues), 1, &f->hold, &f->fail);
}

static int resume(struct fixture *f)
{
	return gkfd_own_resume(&f->own, f->k, &f->resumed, &f->fail);
}

static void all_queues_take_one_call_each_way(void **state)
{
	struct fixture *f = *state;

	SCRIPT_PLAY(f->script, { NONE_YET }, { "enable", 0, ENABLED }, { "runtime-event", 0 },
		    { "snapshot mask=40000000 room=64", 0, .queues = 2, .ids = { 5, 3 } },
		    { "suspend grace=1 ids=3,5", 2 }, { "resume ids=3,5", 2 }, { "disable", 0 });
	assert_int_equal(hold(f), 0);
	assert_int_equal(f->hold.n, 2);
	assert_int_equal(hold(f), -EALREADY);
	assert_int_equal(resume(f), 0);
	assert_int_equal(f->resumed.n, 2);
	assert_int_equal(resume(f), 0);
	assert_int_equal(f->resumed.n, 0);
	script_done(f->script);
}

static void an_old_driver_updates_one_by_one_and_keeps_ring_and_priority(void **state)
{
	struct fixture *f = *state;

	f->k->minor = 12;
	SCRIPT_PLAY(f->script, { "update 3 percent=0 priority=7 ring=1000+4096", 0 },
		    { "update 5 percent=0 priority=11 ring=8000+8192", 0 },
		    { "update 3 percent=100 priority=7 ring=1000+4096", 0 },
		    { "update 5 percent=100 priority=11 ring=8000+8192", 0 });
	assert_int_equal(hold(f), 0);
	assert_int_equal(f->hold.n, 2);
	assert_int_equal(resume(f), 0);
	assert_int_equal(f->resumed.n, 2);
	script_done(f->script);
}

static void an_old_runtime_is_no_obstacle(void **state)
{
	struct fixture *f = *state;

	SCRIPT_PLAY(f->script, { NONE_YET },
		    { "enable", 0, .runtime_state = DEBUG_RUNTIME_STATE_DISABLED },
		    { "runtime-event", 0 }, { "disable", 0 },
		    { "update 3 percent=0 priority=7 ring=1000+4096", 0 },
		    { "update 5 percent=0 priority=11 ring=8000+8192", 0 },
		    { "update 3 percent=100 priority=7 ring=1000+4096", 0 },
		    { "update 5 percent=100 priority=11 ring=8000+8192", -EFAULT });
	assert_int_equal(hold(f), 0);
	assert_int_equal(resume(f), 0);
	assert_int_equal(f->resumed.n, 1); /* the other was destroyed meanwhile */
	script_done(f->script);
}

static void an_update_that_fails_undoes_those_before_it(void **state)
{
	struct fixture *f = *state;

	f->k->minor = 12;
	SCRIPT_PLAY(f->script, { "update 3 percent=0 priority=7 ring=1000+4096", 0 },
		    { "update 5 percent=0 priority=11 ring=8000+8192", -EFAULT },
		    { "update 3 percent=100 priority=7 ring=1000+4096", 0 });
	assert_int_equal(hold(f), -EINVAL);
	assert_int_equal(f->fail.why, GKFD_WHY_NO_SUCH_QUEUE);
	assert_int_equal(f->fail.queue_id, 5);
	assert_int_equal(resume(f), 0);
	script_done(f->script);
}

static void without_debugging_a_ring_must_be_known(void **state)
{
	struct fixture *f = *state;
	struct gkfd_own_queue bare = { .id = 4 };

	f->k->minor = 12;
	SCRIPT_PLAY(f->script, { "nothing" });
	assert_int_equal(gkfd_own_hold(&f->own, f->k, PID, &bare, 1, 1, &f->hold, &f->fail),
			 -EOPNOTSUPP);
	assert_int_equal(f->fail.why, GKFD_WHY_NO_RING);
	assert_int_equal(gkfd_own_hold(&f->own, f->k, PID, NULL, 0, 1, &f->hold, &f->fail),
			 -EOPNOTSUPP);
}

static void who_is_debugged_by_somebody_is_refused(void **state)
{
	struct fixture *f = *state;

	SCRIPT_PLAY(f->script, { "snapshot mask=0 room=0", 0 });
	assert_int_equal(hold(f), -EBUSY);
	assert_int_equal(f->fail.why, GKFD_WHY_DEBUGGED);
	script_done(f->script);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(all_queues_take_one_call_each_way),
		TEST(an_old_driver_updates_one_by_one_and_keeps_ring_and_priority),
		TEST(an_old_runtime_is_no_obstacle),
		TEST(an_update_that_fails_undoes_those_before_it),
		TEST(without_debugging_a_ring_must_be_known),
		TEST(who_is_debugged_by_somebody_is_refused),
	};

	return cmocka_run_group_tests_name("own", tests, NULL, NULL) != 0;
}
