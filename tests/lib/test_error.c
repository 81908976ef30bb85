/* SPDX-License-Identifier: MIT */
/* Every failure has a kind, a line for people and a hint. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/internal.h"

static int open_model(void **state)
{
	struct gpreempt_ctx *ctx = NULL;

	if (gpreempt_open("model", &ctx, NULL) < 0)
		return -1;
	*state = ctx;
	return 0;
}

static int close_model(void **state)
{
	gpreempt_unref(*state);
	return 0;
}

static void expect(struct gpreempt_ctx *ctx, int r, const struct gkfd_failure *f,
		   enum gpreempt_error_kind kind, const char *message, const char *hint)
{
	struct gpreempt_error e = { .size = sizeof(e) };

	assert_int_equal(ctx_fail_target(ctx, r, 1001, f), r);
	gpreempt_get_error(ctx, &e);
	assert_int_equal(e.kind, kind);
	assert_int_equal(e.error, r);
	assert_string_equal(e.message, message);
	if (hint)
		assert_string_equal(e.hint, hint);
	assert_int_not_equal(e.hint[0], '\0');
}

static void who_is_missing_is_named(void **state)
{
	expect(*state, -ESRCH, &(struct gkfd_failure){ .why = GKFD_WHY_NO_PROCESS },
	       GPREEMPT_ERROR_ABSENT, "there is no process 1001",
	       "see what uses the GPU with: gpreempt list");
	expect(*state, -ESRCH, &(struct gkfd_failure){ .why = GKFD_WHY_NO_KFD_PROCESS },
	       GPREEMPT_ERROR_ABSENT, "process 1001 (train) does not use the GPU driver", NULL);
	expect(*state, -ESRCH, &(struct gkfd_failure){ .why = GKFD_WHY_EXITED },
	       GPREEMPT_ERROR_ABSENT, "process 1001 has ended", NULL);
	expect(*state, -ESRCH, &(struct gkfd_failure){ .why = GKFD_WHY_EXECED },
	       GPREEMPT_ERROR_ABSENT, "process 1001 now runs another program", NULL);
}

static void who_is_in_the_way_is_named(void **state)
{
	expect(*state, -EBUSY,
	       &(struct gkfd_failure){ .why = GKFD_WHY_TRACED, .other_pid = 1002 },
	       GPREEMPT_ERROR_REFUSED,
	       "process 1001 is already being debugged by process 1002 (infer)",
	       "end that debugger first");
	expect(*state, -EBUSY, &(struct gkfd_failure){ .why = GKFD_WHY_TRACED },
	       GPREEMPT_ERROR_REFUSED, "process 1001 is already being debugged",
	       "end that debugger first");
	expect(*state, -EBUSY, &(struct gkfd_failure){ .why = GKFD_WHY_DEBUGGED },
	       GPREEMPT_ERROR_REFUSED, "somebody has a GPU debug session on process 1001",
	       "if no debugger is left: gpreempt release 1001");
	expect(*state, -EPERM, &(struct gkfd_failure){ .why = GKFD_WHY_TAKEN },
	       GPREEMPT_ERROR_REFUSED, "process 1001 was taken over by another debugger", NULL);
}

static void our_own_hold_is_told_from_a_debugger(void **state)
{
	/* The model calls the process that opened it "gpreempt". */
	struct gpreempt_ctx *ctx = *state;
	struct gpreempt_process *p = NULL;
	struct gpreempt_error e = { .size = sizeof(e) };

	assert_int_equal(gpreempt_attach(ctx, 1001, GPREEMPT_ATTACH_LOOK_ONLY, &p), 0);
	assert_int_equal(gpreempt_attach(ctx, 1001, GPREEMPT_ATTACH_LOOK_ONLY, &p), -EBUSY);
	gpreempt_get_error(ctx, &e);
	assert_int_equal(e.kind, GPREEMPT_ERROR_REFUSED);
	assert_string_equal(e.hint, "end that hold with: gpreempt release 1001");
	gpreempt_detach(p);
}

static void missing_rights_say_which(void **state)
{
	expect(*state, -EPERM, &(struct gkfd_failure){ .why = GKFD_WHY_NO_RIGHT },
	       GPREEMPT_ERROR_REFUSED, "no right to trace process 1001 (train)",
	       "needs the same user, or CAP_SYS_PTRACE; try sudo");
}

static void a_thread_leads_to_its_process(void **state)
{
	expect(*state, -EINVAL,
	       &(struct gkfd_failure){ .why = GKFD_WHY_NOT_A_LEADER, .other_pid = 77 },
	       GPREEMPT_ERROR_USAGE, "1001 is a thread of process 77", "use 77");
}

static void bad_queue_ids_are_named(void **state)
{
	expect(*state, -EINVAL,
	       &(struct gkfd_failure){ .why = GKFD_WHY_NO_SUCH_QUEUE, .queue_id = 9 },
	       GPREEMPT_ERROR_ABSENT, "process 1001 has no queue 9",
	       "see its queues with: gpreempt queues 1001");
	expect(*state, -EINVAL,
	       &(struct gkfd_failure){ .why = GKFD_WHY_DUPLICATE_QUEUE, .queue_id = 9 },
	       GPREEMPT_ERROR_USAGE, "queue 9 is named twice", NULL);
	expect(*state, -EIO,
	       &(struct gkfd_failure){ .why = GKFD_WHY_PREEMPTION_FAILED, .queue_id = 9 },
	       GPREEMPT_ERROR_FAILED, "queue 9 of process 1001 could not be taken off the GPU",
	       NULL);
}

static void too_old_says_how_old(void **state)
{
	struct gpreempt_ctx *ctx = NULL;

	assert_int_equal(gpreempt_open("model:mi308x,kfd_minor=11", &ctx, NULL), 0);
	assert_int_equal(ctx_open_device(ctx), 0);
	expect(ctx, -EOPNOTSUPP, &(struct gkfd_failure){ .why = GKFD_WHY_KFD_TOO_OLD },
	       GPREEMPT_ERROR_REFUSED, "the GPU driver is too old: KFD 1.11, need 1.13",
	       "needs Linux 6.5 or later");
	gpreempt_unref(ctx);
}

static void every_reason_has_a_line_and_a_hint(void **state)
{
	for (int why = GKFD_WHY_NONE; why <= GKFD_WHY_LAPSED; why++) {
		struct gkfd_failure f = { .why = (enum gkfd_why)why, .step = "seize" };
		struct gpreempt_error e = { .size = sizeof(e) };

		assert_int_equal(ctx_fail_target(*state, -EIO, 1001, &f), -EIO);
		gpreempt_get_error(*state, &e);
		assert_int_not_equal(e.kind, GPREEMPT_ERROR_NONE);
		assert_null(strchr(e.message, '\n'));
		assert_true(strlen(e.message) > 10);
		assert_true(strlen(e.hint) > 0 || why == GKFD_WHY_NOT_A_LEADER);
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_model, close_model)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(who_is_missing_is_named),
		TEST(who_is_in_the_way_is_named),
		TEST(our_own_hold_is_told_from_a_debugger),
		TEST(missing_rights_say_which),
		TEST(a_thread_leads_to_its_process),
		TEST(bad_queue_ids_are_named),
		TEST(too_old_says_how_old),
		TEST(every_reason_has_a_line_and_a_hint),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
